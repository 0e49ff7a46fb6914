"""MMLU, the six medical subjects. Verified on data."""

from pathlib import Path

import msgspec

from medassay.bank.builder import (
    BankBuilder,
    Cell,
    LetteredRow,
    letter_index,
    read_csv,
    read_records,
    rows_of,
    whole_number,
)
from medassay.core.records.item import Bank
from medassay.errors import InputError

SUBJECTS = (
    "anatomy",
    "clinical_knowledge",
    "college_biology",
    "college_medicine",
    "medical_genetics",
    "professional_medicine",
)
_HEADLESS = ["question", "choice0", "choice1", "choice2", "choice3", "answer"]


class _LetteredMmlu(LetteredRow, kw_only=True):
    subject: Cell


class _MmluQuestion(msgspec.Struct):
    question: str
    choice0: str
    choice1: str
    choice2: str
    choice3: str
    answer: str


def load(root: Path) -> Bank:
    """Return the six subjects as domains, from a folder of CSV files or one lettered JSON Lines
    file.

    The original CSV has no header and letters A–D, the hub's has a header and 0–3; the first row
    tells them apart. 78 questions stand in two subjects: both stay, since each subject is scored.
    """
    draft = BankBuilder(
        "mmlu_medical", licence="MIT", source="MMLU, test set", title="MMLU, medical subjects"
    )
    if root.is_file():
        for row in rows_of(root, read_records(root), _LetteredMmlu):
            draft.choice(
                f"mmlu-{row.realidx}",
                row.question,
                list(row.options.values()),
                letter_index(row.answer_idx),
                domain=str(row.subject),
            )
        return draft.bank()
    n_files = 0
    for subject in SUBJECTS:
        for split in ("test", "dev"):
            path = root / split / f"{subject}_{split}.csv"
            if path.is_file():
                n_files += 1
                _subject(draft, path, subject, split)
    if not n_files:
        raise InputError(f"{root}: holds none of test/<subject>_test.csv for {', '.join(SUBJECTS)}")
    return draft.bank()


def _subject(draft: BankBuilder, path: Path, subject: str, split: str) -> None:
    with path.open(encoding="utf-8-sig") as file:
        headed = file.readline().startswith("question,choice0")
    records = read_csv(path, None if headed else _HEADLESS)
    for number, row in enumerate(rows_of(path, records, _MmluQuestion)):
        key = whole_number(row.answer) if headed else letter_index(row.answer)
        draft.choice(
            f"mmlu-{subject}-{split}-{number:04}",
            row.question,
            [row.choice0, row.choice1, row.choice2, row.choice3],
            key,
            domain=subject,
            split=split,
        )
