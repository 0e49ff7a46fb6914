"""OLAPH / MedLFQA: long answers, with statements that an answer must have and others that are nice
to have. Verified on data.
"""

from pathlib import Path

import msgspec

from medassay.bank.builder import BankBuilder, Cell, read_records, rows_of
from medassay.core.records.item import Bank
from medassay.errors import InputError

LEAST = 10  # characters of a reference, and of an answer


class _OlaphQuestion(msgspec.Struct):
    question: Cell = msgspec.field(name="Question")
    answer: Cell = msgspec.field(name="Free_form_answer")
    must: list[Cell] | None = msgspec.field(name="Must_have")
    nice: list[Cell] | None = msgspec.field(name="Nice_to_have")


def load(root: Path) -> Bank:
    """Return the questions of every file by its authors, or of the hub's single file its first
    tenth, as published.

    Statements that an answer must have become target facts; both kinds are targets of Relaxed
    Perplexity.
    """
    draft = BankBuilder(
        "olaph",
        licence="unstated",
        source="MedLFQA, OLAPH (Jeong et al. 2024)",
        title="OLAPH (MedLFQA)",
        limits="Many answers and statements were written or split by a model.",
    )
    paths = [root] if root.is_file() else sorted(root.glob("*MedLFQA*.jsonl"))
    records = [path for path in paths if "human" not in path.stem and "prediction" not in path.stem]
    hub = not records
    if hub and root.is_dir():
        records = sorted(root.glob("*test*.json*"))[:1]
    if not records:
        raise InputError(f"{root}: holds no *MedLFQA*.jsonl, and no test file of the hub")
    seen_questions: set[str] = set()
    for path in records:
        rows = list(read_records(path))
        rows = rows[: len(rows) // 10] if hub else rows
        for number, row in enumerate(rows_of(path, rows, _OlaphQuestion)):
            question = str(row.question or "").strip()
            if question in seen_questions:
                draft.drop("question occurs twice")
                continue
            seen_questions.add(question)
            must, nice = _statements(row.must), _statements(row.nice)
            draft.text(
                f"olaph-{path.stem.partition('_test')[0]}-{number}",
                question,
                row.answer,
                least=LEAST,
                **({"facts": must} if must else {}),
                **({"nice_to_have": nice} if nice else {}),
            )
    return draft.bank()


def _statements(cells: list[Cell] | None) -> list[str]:
    return [str(statement).strip() for statement in cells or [] if str(statement).strip()]
