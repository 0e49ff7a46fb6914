"""CareQA, closed, in English and Spanish. From documentation (the set is on a hub only)."""

from pathlib import Path

from medassay.bank.builder import (
    BankBuilder,
    find_file,
    need_columns,
    read_records,
    whole_number,
)
from medassay.core.records.item import Bank

_COLUMNS = {"question", "op1", "op2", "op3", "op4", "cop"}


def load_en(root: Path) -> Bank:
    """Return the English closed set."""
    return _load(root, "en")


def load_es(root: Path) -> Bank:
    """Return the Spanish closed set."""
    return _load(root, "es")


def _load(root: Path, language: str) -> Bank:
    draft = BankBuilder(
        f"careqa_{language}",
        licence="Apache-2.0",
        source="CareQA, Spanish specialised health training exams 2020–2024",
        title=f"CareQA ({language})",
    )
    path = find_file(
        root, f"CareQA_{language}.json*", f"*CareQA_{language}*.json*", f"*_{language}*.csv"
    )
    for number, row in enumerate(read_records(path)):
        need_columns(path, row, _COLUMNS)
        key = whole_number(row["cop"])
        draft.choice(
            f"careqa-{language}-{row.get('unique_id') or row.get('exam_id') or number}",
            row["question"],
            [row[f"op{i}"] for i in range(1, 5)],
            None if key is None else key - 1,
            domain=str(row.get("category") or "careqa"),
            language=language,
            year=whole_number(row.get("year")),
        )
    return draft.bank()
