"""A bank in another language: each item translated by a model, checked, and confirmed by people
before it counts.

Source: specification of bank synthesis, 10.4 (optional translation, human-checked).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from medassay.bank.folder import bank_records, load_bank
from medassay.core.canonical import canonical
from medassay.core.records.item_line import item_line
from medassay.core.records.item_object import CriterionObject, FactObject, ItemObject
from medassay.errors import InputError
from medassay.judging.sanitize import delimit
from medassay.runner.stages import refuse_leaving
from medassay.synthesis.author import Author
from medassay.synthesis.plan import SynthesisPlan, Translation
from medassay.synthesis.project import Event, Place, Workshop
from medassay.synthesis.question import checked_text, reply_object
from medassay.synthesis.steps import Stage, SynthesisStep, value_of

_TEXTS = ("context", "question", "reference", "rationale", "path")
_LISTS = ("options", "nice_to_have", "diagnoses")
_OBJECTS = ("facts", "criteria")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_LONGEST = 20_000
Texts = Mapping[str, str | Sequence[str]]  # key of an item → a text, or several


class TranslationMaker:
    """Translates the items of a bank; see `synthesis.jobs.Maker`."""

    def __init__(
        self, plan: SynthesisPlan, base: Path, workshop: Workshop, authors: Mapping[str, Author]
    ) -> None:
        options = plan.translation
        if options is None:
            raise InputError("a plan without the table [translation]")
        self._plan = plan
        self._translation_plan: Translation = options
        self._workshop = workshop
        self._author = authors[plan.generator]
        self._bank = load_bank(base / options.bank, lock=None)
        self._records_by_id = {item.id: record for item, record in bank_records(self._bank)}
        if not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]+)?", options.to):
            raise InputError(f"translation: '{options.to}'; expected the code of a language, as es")
        private = any(item.kind == "synthetic" for item in self._bank.items)
        leaves = self._bank.may_leave and not private
        refuse_leaving([(self._bank.name, leaves)], [self._author.spec])
        self._jobs: dict[str, SynthesisStep] = {}
        self.ended: list[Event] = []

    def stages(self) -> Iterator[Stage]:
        """Yield the translations."""
        record = {
            "bank": self._bank.version,
            "sha256": self._bank.content_hash,
            "made": self._bank.created,
            "may_leave": self._bank.may_leave,
            "limits": self._bank.limits,
        }
        self._workshop.note_latest("source", self._bank.name, record)
        self._jobs = {
            name: self._job(name, record)
            for name, record in self._records_by_id.items()
            if item_line(record).language != self._translation_plan.to and texts_of(record)
        }
        yield "translations", [*self._jobs.values()]

    def _job(self, name: str, record: ItemObject) -> SynthesisStep:
        texts = texts_of(record)
        return SynthesisStep(
            step="translate",
            subject=name,
            author=self._author,
            part="make_translation",
            holes={
                "item": delimit(canonical(texts).decode(), "item"),
                "source": item_line(record).language,
                "code": self._translation_plan.to,
            },
            read=lambda reply: read_translation(reply, texts),
            sources=[("source", self._bank.name)],
            shown=texts,
        )

    def records(self) -> Iterator[tuple[ItemObject, Sequence[Place]]]:
        """Yield the items whose translation is whole; they wait for people."""
        spec = self._author.spec
        for name, job in self._jobs.items():
            value = value_of(self._workshop, job, dict)
            if value is None:
                continue
            before = self._records_by_id[name]
            line = item_line(before)
            question = name if line.meta.question is None else line.meta.question
            record = {k: v for k, v in before.items() if k not in ("approval", "revision")}
            record |= {k: _put(before, k, v) if k in _OBJECTS else v for k, v in value.items()}
            record |= {
                "id": f"{name}-{self._translation_plan.to}",
                "language": self._translation_plan.to,
                "cluster": name if line.cluster is None else line.cluster,
                "source": f"translation of {self._bank.version}, item {name}",
                "meta": {
                    "maker": "translation",
                    "question": f"{question}-{self._translation_plan.to}",
                    "generator": spec.id,
                    "family": spec.family,
                    "of": name,
                    **({"of_family": line.meta.family} if line.meta.family else {}),
                },
            }
            yield cast(ItemObject, record), [("translate", name)]


def _entries(record: ItemObject, key: str) -> Sequence[FactObject | CriterionObject]:
    """Return facts or criteria as objects."""
    if key == "criteria":
        return record.get("criteria", [])
    return [
        FactObject(text=fact) if isinstance(fact, str) else fact for fact in record.get("facts", [])
    ]


def _put(before: ItemObject, key: str, texts: Sequence[str]) -> list[FactObject | CriterionObject]:
    """Return facts or criteria with other texts."""
    entries = _entries(before, key)
    put = [entry.copy() for entry in entries]
    for entry, text in zip(put, texts, strict=True):
        entry |= {"text": text}
    return put


def texts_of(record: ItemObject) -> Texts:
    """Return the texts of an item that a reader reads."""
    texts = {name: text for name in (*_TEXTS, *_LISTS) if (text := record.get(name))}
    for name in _OBJECTS:
        if entries := _entries(record, name):
            texts[name] = [entry["text"] for entry in entries]
    return cast(Texts, texts)


def read_translation(reply: str, texts: Texts) -> Texts:
    """Return the translated texts: the same keys, as many texts in each list, every number in its
    text.

    Raises
    ------
    ValueError
        Saying what is missing or was added.
    """
    reply_value = reply_object(reply, texts.keys())
    if strange := sorted(reply_value.keys() - texts.keys()):
        raise ValueError(f"the key '{strange[0]}' was added; expected {', '.join(texts)}")
    return {name: _translated(reply_value[name], before, name) for name, before in texts.items()}


def _translated(translated: Any, before: str | Sequence[str], what: str) -> str | list[str]:
    if isinstance(before, str):
        text = checked_text(translated, what, _LONGEST)
        if not _same_numbers(text, before):
            raise ValueError(f"{what}: the numbers differ from those of the original")
        if text.count("->") != before.count("->"):
            raise ValueError(f"{what}: the steps of the pathway differ from those of the original")
        return text
    if not isinstance(translated, list) or len(translated) != len(before):
        raise ValueError(f"{what}: expected a list of {len(before)} texts")
    texts = [
        str(_translated(text, old, f"{what} {at}"))
        for at, (text, old) in enumerate(zip(translated, before, strict=True), 1)
    ]
    if what == "options" and len({" ".join(t.casefold().split()) for t in texts}) < len(texts):
        raise ValueError("options: two translations are the same")
    return texts


def _same_numbers(first: str, second: str) -> bool:
    """Return whether two texts have the same numbers, however each language writes decimals and
    thousands.
    """
    numbers_left = [_values(number) for number in _NUMBER.findall(second)]
    for number in _NUMBER.findall(first):
        values = _values(number)
        fitting = next((candidate for candidate in numbers_left if candidate & values), None)
        if fitting is None:
            return False
        numbers_left.remove(fitting)
    return not numbers_left


def _values(number: str) -> frozenset[Decimal]:
    """Return what a number may mean: "1.5" and "1,5" one and a half, "1.500" that or one thousand
    five hundred.

    Examples
    --------
    >>> sorted(map(str, _values("1,500"))), sorted(map(str, _values("1.5")))
    (['1.5', '1500'], ['1.5'])
    """
    parts = re.split(r"[.,]", number)
    whole = Decimal("".join(parts))
    if len(parts) == 1:
        return frozenset((whole,))
    decimal = Decimal("".join(parts[:-1]) + "." + parts[-1]).normalize()
    grouped = all(len(part) == 3 for part in parts[1:]) and len(parts[0]) <= 3
    if len(parts) > 2:
        return frozenset((whole,)) if grouped else frozenset((decimal,))
    return frozenset((whole, decimal)) if grouped else frozenset((decimal,))
