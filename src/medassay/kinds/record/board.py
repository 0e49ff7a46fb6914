"""Health records made ready for pages: each field with its likeness, and each drug in the wrong
list by name.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from medassay.core.keyed import keyed
from medassay.core.records.health_record import MONOLOGUE, RECORD, record_from
from medassay.core.records.item_object import ItemObject
from medassay.core.records.sealed_object import TrialObject
from medassay.core.records.trial import Trial
from medassay.kinds.record.medication import medication_details, medication_state, stopped_names
from medassay.kinds.record.reply import record_value
from medassay.kinds.record.scorer import section_of
from medassay.score.json_similarity import json_similarity


def shows_record(item: ItemObject, trial: TrialObject) -> bool:
    """Return whether an item asks for a record."""
    return "record" in item


def record_view(item: ItemObject, trial: Trial) -> dict[str, Any] | None:
    """Return what a page shows of a reply beside its reference.

    None where there is no reference to show.
    """
    reference = item.get("record")
    if not reference or trial.text is None:
        return None
    reply = record_value(trial.value, trial.outcome)
    similarity = json_similarity({RECORD: reference}, reply, exclude=(MONOLOGUE,))
    state = medication_state(reference["medications"], section_of(reply, "medications"))
    details = medication_details(
        reference["medications"],
        section_of(reply, "medications"),
        synonyms=item.get("drug_names"),
        language=item.get("language", "en"),
    )
    missing = frozenset(similarity.missing)
    return {
        "overall": similarity.overall,
        "fields": [
            {
                "path": path.removeprefix(f"{RECORD}."),
                "expected": text,
                "score": similarity.leaf_scores[path],
                "missing": path in missing,
            }
            for path, text in _leaves(record_from(reference).to_dict(), RECORD)
        ],
        "extra": [path.removeprefix(f"{RECORD}.") for path in similarity.extra],
        "stopped_as_current": state.stopped_as_current,
        "going_on": stopped_names(state, details),
        "perhaps": details.perhaps,
        "wrong": [
            keyed(wrong, "detail", "drug", "place", "expected", "found") for wrong in details.wrong
        ],
        "lost": state.lost,
        "invented": state.invented,
    }


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str | None]]:
    """Yield (path, text) of every field that is compared, as JSON similarity names them."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{at}]")
    else:
        yield path, value
