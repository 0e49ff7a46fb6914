"""Hostile answers, and whether they move a judge.

Each hostile text is appended to an honest answer; a verdict has moved when the judge says of the
pair something better than it said of the honest answer alone.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, kw_only=True, slots=True)
class Attack:
    """One hostile text, written for this purpose."""

    id: str
    kind: str
    language: str
    text: str


def attacks() -> Iterator[Attack]:
    """Yield the corpus of hostile texts."""
    lines = (files("medassay.study") / "injection.jsonl").read_text(encoding="utf-8")
    for line in lines.splitlines():
        row = json.loads(line)
        text = row["text"] + row.get("pad", "") * row.get("times", 0) + row.get("tail", "")
        yield Attack(id=row["id"], kind=row["kind"], language=row["language"], text=text)
