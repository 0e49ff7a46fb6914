"""Medical Abstracts: which of five classes of conditions an abstract is about (Schopf et al.).

Verified on data.
"""

from pathlib import Path

import msgspec

from medassay.bank.builder import BankBuilder, find_file, read_csv, rows_of, whole_number
from medassay.core.canonical import sha256_hex
from medassay.core.records.item import Bank

CLASSES = (
    "neoplasms",
    "digestive system diseases",
    "nervous system diseases",
    "cardiovascular diseases",
    "general pathological conditions",
)


class _Abstract(msgspec.Struct):
    condition_label: str
    medical_abstract: str


class _HubAbstract(msgspec.Struct):
    condition_label: str = msgspec.field(name="class")
    medical_abstract: str = msgspec.field(name="text")


_QUESTION = "Which class of conditions is this medical text about?"


def load(root: Path) -> Bank:
    """Return the test file; of a train file its first tenth, as the published suite does.

    Abstracts that occur more than once share a cluster: they are one piece of evidence.
    """
    path = find_file(root, "*test*.csv", "*train*.csv", "*.csv")
    train = "train" in path.stem.lower()
    rows = list(read_csv(path))
    draft = BankBuilder(
        "medical_abstracts",
        licence="CC-BY-SA-3.0",
        source="Medical Abstracts text classification corpus (Schopf et al. 2022)",
        title="Medical text classification, five classes",
        limits="Some abstracts occur twice with two labels: no model can reach 100 %."
        + (" Tests are of the train split: a model may have learned them." if train else ""),
    )
    rows = rows[: len(rows) // 10] if train else rows
    for number, row in enumerate(rows_of(path, rows, _Abstract, _HubAbstract)):
        key, text = whole_number(row.condition_label), row.medical_abstract.strip()
        draft.choice(
            f"abstract-{number:05}",
            _QUESTION,
            list(CLASSES),
            None if key is None else key - 1,
            domain="medical_abstracts",
            context=text,
            cluster=sha256_hex(text.encode())[:12],
        )
    return draft.bank()
