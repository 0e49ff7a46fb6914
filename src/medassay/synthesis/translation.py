"""A bank in another language: each item translated by a model, checked, and confirmed by people before it counts.

Source: specification of bank synthesis, 10.4 (optional translation, human-checked).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from medassay.bank.folder import bank_records, load_bank
from medassay.core.canonical import canonical
from medassay.core.json_reply import read_json_reply
from medassay.errors import InputError
from medassay.judge.shown import fence
from medassay.synthesis.author import Author
from medassay.synthesis.items import note_items
from medassay.synthesis.jobs import Job, Stage, value_of
from medassay.synthesis.plan import SynthesisPlan, Translation
from medassay.synthesis.question import checked_text
from medassay.synthesis.workshop import BY_PROGRAM, Place, Workshop, basis_of

_TEXTS = ("context", "question", "reference", "rationale")
_LISTS = ("options", "nice_to_have")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_LONGEST = 20_000


class TranslationMaker:
    """Translates the items of a bank; see `synthesis.jobs.Maker`."""

    def __init__(
        self, plan: SynthesisPlan, base: Path, workshop: Workshop, authors: Mapping[str, Author]
    ) -> None:
        wanted = plan.translation
        if wanted is None:
            raise InputError("a plan without the table [translation]")
        self._plan = plan
        self._wanted: Translation = wanted
        self._workshop = workshop
        self._author = authors[plan.generator]
        self._bank = load_bank(base / wanted.bank, lock=None)
        self._records_by_id = {item.id: record for item, record in bank_records(self._bank)}
        if not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]+)?", wanted.to):
            raise InputError(
                f"translation: '{wanted.to}'; expected the code of a language, as es"
            )
        private = any(r.get("kind") == "synthetic" for r in self._records_by_id.values())
        if (
            (private or not self._bank.may_leave)
            and self._author.spec.location == "external"
            and not self._author.spec.is_scripted
        ):
            raise InputError(
                f"bank '{self._bank.name}' holds private items or may not leave, but '{self._author.spec.id}' is at an "
                "external endpoint; no call was made"
            )

    def stages(self) -> Iterator[Stage]:
        """Yield the translations; those that are whole become items that wait for people."""
        basis = basis_of(self._bank.content_hash)
        if self._workshop.done("source", self._bank.name, basis) is None:
            told = {
                "bank": self._bank.version,
                "sha256": self._bank.content_hash,
                "made": self._bank.created,
            }
            self._workshop.note(
                "source", self._bank.name, "made", basis=basis, by=BY_PROGRAM, result=told
            )
        jobs = {
            name: self._job(name, record)
            for name, record in self._records_by_id.items()
            if record.get("language", "en") != self._wanted.to and texts_of(record)
        }
        yield "translations", [*jobs.values()]
        note_items(self._workshop, self._records(jobs))

    def _job(self, name: str, record: Mapping[str, Any]) -> Job:
        given = texts_of(record)
        return Job(
            step="translate",
            subject=name,
            author=self._author,
            part="make_translation",
            holes={
                "item": fence(canonical(given).decode(), "item"),
                "source": record.get("language", "en"),
                "code": self._wanted.to,
            },
            read=lambda reply: read_translation(reply, given),
            sources=[("source", self._bank.name)],
        )

    def _records(
        self, jobs: Mapping[str, Job]
    ) -> Iterator[tuple[dict[str, Any], Sequence[Place]]]:
        spec = self._author.spec
        for name, job in jobs.items():
            made = value_of(self._workshop, "translate", name, job.basis)
            if made is None:
                continue
            before = self._records_by_id[name]
            kept = {
                k: v for k, v in before.items() if k not in ("approval", "revision", "meta")
            }
            record = {**kept, **{k: v for k, v in made.items() if k != "facts"}}
            if "facts" in made:
                whole = [f if isinstance(f, dict) else {"text": f} for f in before["facts"]]
                record["facts"] = [
                    {**f, "text": t} for f, t in zip(whole, made["facts"], strict=True)
                ]
            record |= {
                "id": f"{name}-{self._wanted.to}",
                "language": self._wanted.to,
                "cluster": before.get("cluster", name),
                "source": f"translation of {self._bank.version}, item {name}",
                "meta": {
                    "maker": "translation",
                    "generator": spec.id,
                    "family": spec.family,
                    "of": name,
                },
            }
            yield record, [("translate", name)]


def texts_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of an item that a reader reads."""
    texts: dict[str, Any] = {name: record[name] for name in _TEXTS if record.get(name)}
    texts |= {name: record[name] for name in _LISTS if record.get(name)}
    if record.get("facts"):
        texts["facts"] = [f["text"] if isinstance(f, dict) else f for f in record["facts"]]
    return texts


def read_translation(reply: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the translated texts: the same keys, as many texts in each list, every number in its text.

    Raises
    ------
    ValueError
        Saying what is missing or was added.
    """
    found = read_json_reply(reply)
    if not isinstance(found.value, dict):
        raise ValueError(found.reason or "a list; expected one JSON object")
    if found.value.keys() != given.keys():
        shown = ", ".join(map(str, found.value))
        raise ValueError(f"keys {shown[:80]}; expected {', '.join(given)}")
    return {
        name: _translated(found.value[name], before, name) for name, before in given.items()
    }


def _translated(made: Any, before: Any, what: str) -> Any:
    if isinstance(before, str):
        text = checked_text(made, what, _LONGEST)
        if _numbers(text) != _numbers(before):
            raise ValueError(f"{what}: the numbers differ from those of the original")
        return text
    if not isinstance(made, list) or len(made) != len(before):
        raise ValueError(f"{what}: expected a list of {len(before)} texts")
    texts = [
        _translated(one, old, f"{what} {at}")
        for at, (one, old) in enumerate(zip(made, before, strict=True), 1)
    ]
    if what == "options" and len({" ".join(t.casefold().split()) for t in texts}) < len(texts):
        raise ValueError("options: two translations are the same")
    return texts


def _numbers(text: str) -> Counter[str]:
    """Return the numbers of a text, however a language writes the decimal."""
    return Counter(re.sub(r"[.,]", "", number) for number in _NUMBER.findall(text))
