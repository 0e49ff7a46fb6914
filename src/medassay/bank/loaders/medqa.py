"""MedQA (USMLE, four options). Verified on data."""

from pathlib import Path

from medassay.bank.builder import (
    BankBuilder,
    find_file,
    letter_index,
    need_columns,
    read_records,
    whole_number,
)
from medassay.core.records.item import Bank

_LETTERED = {"question", "options", "answer_idx"}  # original, and copies with `realidx`
_HUB = {"sent1", "ending0", "ending1", "ending2", "ending3", "label"}


def load(root: Path) -> Bank:
    """Return MedQA from JSON Lines in the original layout or the hub's `sent1`/`ending*` layout."""
    draft = BankBuilder(
        "medqa", licence="MIT", source="MedQA, USMLE, four options", title="MedQA (USMLE)"
    )
    path = find_file(root, "test.jsonl", "*test*.jsonl", "*.jsonl", "*.json")
    for number, row in enumerate(read_records(path)):
        name = f"medqa-{row.get('realidx', row.get('id', number))}"
        if need_columns(path, row, _LETTERED, _HUB) == 0:
            options, key = list(row["options"].values()), letter_index(row["answer_idx"])
            question, step = row["question"], row.get("meta_info")
        else:
            options = [row[f"ending{i}"] for i in range(4)]
            key, step = whole_number(row["label"]), None
            question = f"{row['sent1']} {row.get('sent2') or ''}".strip()
        draft.choice(name, question, options, key, domain="medqa", category=step)
    return draft.bank()
