"""CareQA-Open: exam questions rephrased so that they need no options.

From documentation (the set is on a hub only).
"""

from pathlib import Path

from medassay.bank.builder import (
    BankBuilder,
    find_file,
    need_columns,
    read_records,
    whole_number,
)
from medassay.core.records.item import Bank


def load(root: Path) -> Bank:
    """Return the open set; the answer of the exam is the reference."""
    draft = BankBuilder(
        "careqa_open",
        licence="Apache-2.0",
        source="CareQA-Open, Spanish specialised health training exams 2020–2024, rephrased",
        title="CareQA-Open",
        limits="Most references are a few words long: BLEU without smoothing gives them nothing.",
    )
    path = find_file(root, "CareQA_en_open.json*", "*open*.json*", "*open*.csv")
    for number, row in enumerate(read_records(path)):
        need_columns(path, row, {"question", "answer"})
        draft.text(
            f"careqa-open-{row.get('unique_id') or row.get('exam_id') or number}",
            row["question"],
            row["answer"],
            category=str(row.get("category") or "") or None,
            year=whole_number(row.get("year")),
        )
    return draft.bank()
