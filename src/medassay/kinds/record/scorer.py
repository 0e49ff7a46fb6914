"""A structured health record against its reference: likeness section by section, and the state of
medication.

Both are told, always: a record can be alike in nearly every letter and list a stopped drug as
current.

Source: specification of health-record extraction, "Evaluation".
"""

import re
from collections.abc import Mapping
from typing import Any

from medassay.core.records.answer import Answer
from medassay.core.records.health_record import FIELDS, MONOLOGUE, RECORD
from medassay.core.records.item import Item
from medassay.core.records.target import Record
from medassay.kinds.record.medication import (
    LISTS,
    MedicationDetails,
    medication_details,
    medication_state,
)
from medassay.kinds.record.reply import read_record_reply, record_value
from medassay.score.json_similarity import json_similarity

REVISION = 1

_INDEX = re.compile(r"\[\d+\]")


def record_similarity(item: Item, answer: Answer) -> tuple[float, str]:
    """Return the likeness of the whole record, in [0, 1]."""
    similarity = json_similarity(
        {RECORD: item.target_as(Record).record}, answer.value, exclude=(MONOLOGUE,)
    )
    return (
        similarity.overall,
        similarity.reason or f"{len(similarity.missing)} of {len(similarity.leaf_scores)} missing",
    )


def unreferenced(item: Item, answer: Answer) -> tuple[None, str]:
    """Return that nobody can know: the report has no reference record."""
    return None, "no reference"


def record_parts(item: Item, answer: Answer, reply_text: str) -> dict[str, Any]:
    """Return what is told of a record besides its score.

    Of a reply without JSON, that it has nothing.

    Parameters
    ----------
    reply_text : the whole reply, thoughts and all that stands around its JSON

    Returns
    -------
    dict
        reference (standing of its origin, of a silver one maker and family), read (whether the
        whole reply, or its one fenced block, is a record in JSON), similarity, as_published
        (similarity of the longest JSON value in the reply, also of one that was cut off), sections
        and fields (name → likeness, of those with anything expected), leaves, missing and extra
        (numbers of leaves), correct and total (drugs in the right list, drugs expected),
        stopped_as_current, lost and invented (numbers of drugs), drugs (what `medication_details`
        counts), characters (of the whole reply); of a report without a reference read and
        characters alone. Names of drugs are no part of a score: they belong to the report, and are
        deleted with it.
    """
    reply = record_value(answer.value, answer.outcome)
    alone = reply is not None and read_record_reply(reply_text).alone
    parts = {"read": alone, "characters": len(reply_text)}
    if not isinstance(item.target, Record):
        return parts
    reference = item.target.record
    expected = {RECORD: reference}
    similarity = json_similarity(expected, reply, exclude=(MONOLOGUE,))
    section = section_of(reply, "medications")
    state = medication_state(reference["medications"], section)
    sections = dict(similarity.by_section)
    if not similarity.parsed:
        sections = dict.fromkeys(json_similarity(expected, expected).by_section, 0.0)
    return parts | {
        "reference": _reference(item),
        "similarity": similarity.overall,
        "as_published": (
            similarity.overall
            if alone
            else json_similarity(expected, reply_text, exclude=(MONOLOGUE,)).overall
        ),
        "sections": sections,
        "fields": _fields(similarity.leaf_scores),
        "leaves": len(similarity.leaf_scores),
        "missing": len(similarity.missing),
        "extra": len(similarity.extra),
        "correct": state.correct,
        "total": state.total,
        "stopped_as_current": len(state.stopped_as_current),
        "lost": len(state.lost),
        "invented": len(state.invented),
        "drugs": _drugs(item, section),
    }


def details_of(item: Item, medications: Any) -> MedicationDetails:
    """Return how the drugs of a reply agree with those of the reference, by the synonyms that the
    item carries.
    """
    target = item.target_as(Record)
    return medication_details(
        target.record["medications"],
        medications,
        synonyms=target.drug_names,
        language=item.language,
    )


def _drugs(item: Item, medications: Any) -> dict[str, Any]:
    details = details_of(item, medications)
    return {
        "agree": dict(details.agree),
        "compared": dict(details.compared),
        "stopped": details.stopped,
        "matched": details.matched,
        "as_current": len(details.as_current),
        "perhaps": len(details.perhaps),
        "changed": details.changed,
        "old_dose": len(details.old_dose),
        "going_on": details.going_on,
    }


def _reference(item: Item) -> dict[str, Any]:
    """Return what every score says of its reference: standing, whether it was converted, and which
    model wrote it.

    Who wrote a gold one stands in the item alone: scores outlive it, and it may be a person.
    """
    origin = item.target_as(Record).origin
    if origin is None:
        return {}
    by = ("maker", "family") if origin.standing == "silver" else ()
    document = origin.to_dict()
    return {key: document.get(key) for key in ("standing", "converted", *by) if key in document}


def _fields(leaves: Mapping[str, float]) -> dict[str, float]:
    """Return the mean over the leaves of each field."""
    scores: dict[str, list[float]] = {}
    for path, score in leaves.items():
        plain = _INDEX.sub("", path.removeprefix(f"{RECORD}."))
        field = next(f for f in FIELDS if plain == f or plain.startswith(f"{f}."))
        scores.setdefault(field, []).append(score)
    return {field: sum(scores) / len(scores) for field, scores in scores.items()}


# Keys of the record's objects in the order in which they are read aloud.
_KEYS = ("name", "value", "unit", "note", "dose", "schedule", "date", "source", *LISTS)


def section_text(value: Any) -> str:
    r"""Return a section of a record, in whatever shape, as plain text.

    A line for each object, null left out.

    Examples
    --------
    >>> section_text([{"unit": "mmHg", "name": "RR", "value": "132/84", "note": None}, "CRP 4"])
    'RR 132/84 mmHg\nCRP 4'
    """
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(filter(None, map(section_text, value)))
    if not isinstance(value, dict):
        return str(value)
    keys = [key for key in _KEYS if key in value]
    parts = [section_text(value[key]) for key in (*keys, *(k for k in value if k not in _KEYS))]
    flat = all("\n" not in part for part in parts) and not {*LISTS} & value.keys()
    return (" " if flat else "\n").join(filter(None, parts))


def section_of(reply: Any, section: str) -> Any:
    """Return one section of the record in a parsed reply, in whatever shape; None where it is
    absent.
    """
    record = reply.get(RECORD) if isinstance(reply, dict) else None
    return record.get(section) if isinstance(record, dict) else None
