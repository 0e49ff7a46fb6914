"""Decisions of people: nothing becomes an item of a bank, and nothing in a bank is changed, without
one on record.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from medassay.core.canonical import canonical
from medassay.core.records.decision_graph import contract_problem
from medassay.errors import InputError
from medassay.synthesis.correction import checked_correction
from medassay.synthesis.exam import read_choice, read_only, read_version
from medassay.synthesis.items import (
    checked_change,
    manual_queue,
    present_items,
    queued,
    undecided,
)
from medassay.synthesis.project import Event, Step, Workshop, by_person
from medassay.synthesis.proposals import read_draft, read_verdict, state_of
from medassay.synthesis.question import read_question
from medassay.synthesis.records import Correction
from medassay.synthesis.refine import read_steps
from medassay.synthesis.source import clean_text
from medassay.synthesis.steps import decision_on, handle_of
from medassay.synthesis.translation import read_translation

Verb = Literal["accept", "change", "keep", "remove"]
VERBS: tuple[Verb, ...] = get_args(Verb)
ALL = "all"  # everything that waits
_STEPS: tuple[Step, ...] = get_args(Step)


def decide(
    workshop: Workshop,
    verb: Verb,
    handles: Sequence[str],
    *,
    who: str,
    reason: str = "",
    change: Any = None,
) -> list[str]:
    """Note what a person decided, and return the handles; nothing is noted unless all of it can be.

    Parameters
    ----------
    handles : ids of items, `step:subject` of what is in the queue, or `all` for every item that
        waits
    change : what stands in the place of what was made, as parsed JSON, for the verb `change`

    Raises
    ------
    InputError
        Naming what is unknown or cannot be decided so.
    """
    by = by_person(who)
    together = list(handles) == [ALL]
    if together:
        handles = [event.line.subject for event in undecided(workshop)]
        if not handles:
            raise InputError(f"{workshop.folder}: nothing waits for a decision")
    if not handles:
        raise InputError("nothing is named; name items, entries of the queue, or 'all'")
    if (verb == "change") != (change is not None):
        raise InputError(
            "a change needs what shall stand there (--with FILE), and only a change does"
        )
    if verb == "change" and len(handles) != 1:
        raise InputError(f"a change is of one thing; {len(handles)} are named")
    decidable = _decidable(workshop)
    events = [_find(workshop, decidable, handle) for handle in dict.fromkeys(handles)]
    results = [_replacement(workshop, event, verb, change) for event in events]
    for event, result in zip(events, results, strict=True):
        workshop.note(
            "decision",
            handle_of(event.place),
            verb,
            basis=event.hash,
            by=by,
            sources=[event.place],
            note=" ".join(reason.split()),
            # Accepted in one go: whoever reads the limits of the bank should know that.
            together=together,
            **({} if result is None else {"result": result}),
        )
    return [handle_of(event.place) for event in events]


def _decidable(workshop: Workshop) -> dict[str, Event]:
    """Return what may be decided about, once or again: the items that the plan makes now, its
    queue, and reviews.
    """
    events = (*present_items(workshop), *queued(workshop), *workshop.all_latest("review"))
    return {handle_of(event.place): event for event in events}


def _find(workshop: Workshop, decidable: Mapping[str, Event], handle: str) -> Event:
    step, sign, subject = handle.partition(":")
    former = sign and step in _STEPS and workshop.latest(step, subject)
    if handle not in decidable and (former or workshop.latest("item", handle)):
        raise InputError(
            f"'{handle}' does not wait: it is not in the queue, or no longer made by the plan;"
            " nothing was decided"
        )
    if handle not in decidable:
        raise InputError(
            f"{workshop.folder}: nothing is called '{handle}'; `medassay bank queue` lists what"
            " waits"
        )
    return decidable[handle]


def _replacement(workshop: Workshop, event: Event, verb: Verb, change: Any) -> Any:
    """Return what a decision puts in place of what was made, None where it puts nothing."""
    step, handle = event.place[0], handle_of(event.place)
    if step == "item":
        if verb == "keep":
            raise InputError(f"item '{handle}': expected accept, change or remove")
        return None if change is None else checked_change(event, change)
    if step == "review":
        return _checked_review(event, verb, change)
    if verb == "keep" and step != "refine":
        raise InputError(f"'{handle}': nothing was there before; expected accept, change or remove")
    if verb == "accept" and event.result is None:
        raise InputError(f"'{handle}': nothing usable was made; expected change or remove")
    if change is None:
        return None
    try:
        return _READERS[step](change, event)
    except ValueError as error:
        raise InputError(f"change of '{handle}': {error}") from None


def _checked_review(event: Event, verb: Verb, change: Any) -> Any:
    handle = handle_of(event.place)
    if event.status == "queued" and verb == "accept":
        raise InputError(f"'{handle}': no review could be used; expected keep, change or remove")
    review = event.result_as(Correction) if event.status == "made" else None
    if review is not None and 0 in review.types and verb in ("accept", "keep"):
        raise InputError(
            f"'{handle}' was found complex or ambiguous as a whole (type 0): expected change or"
            " remove"
        )
    if verb == "accept" and (review is None or not review.types):
        raise InputError(f"'{handle}': no change is proposed; expected keep, change or remove")
    return None if change is None else checked_correction(event, change)


def _text(value: Any, event: Event) -> Any:
    if not isinstance(value, str) or not clean_text(value):
        raise ValueError(f"{value!r:.40}; expected the text of the document, as one JSON text")
    return clean_text(value)


def _graph(value: Any, event: Event) -> Any:
    if (problem := contract_problem(value)) is not None:
        raise ValueError(problem)
    return value


def _steps(value: Any, event: Event) -> Any:
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40}; expected the sequence as one text, steps joined by ->")
    return list(read_steps(value))


def _as_reply(read: Callable[[str], Any]) -> Callable[[Any, Event], Any]:
    """Return what reads a person's JSON as it reads a model's reply."""
    return lambda value, event: read(canonical(value).decode())


def _draft(value: Any, event: Event) -> Any:
    form = "closed" if isinstance(value, dict) and "options" in value else "open"
    return read_draft(canonical(value).decode(), form)


_READERS: dict[str, Callable[[Any, Event], Any]] = {
    "choice": _as_reply(read_choice),
    "draft": _draft,
    "end": _draft,
    "graph": _graph,
    "only": _as_reply(read_only),
    "question": lambda value, event: read_question(value).to_list(),
    "refine": _steps,
    "rephrase": _as_reply(read_version),
    "text": _text,
    "translate": lambda value, event: read_translation(canonical(value).decode(), event.line.given),
    "verdict": _as_reply(read_verdict),
}


def waiting(workshop: Workshop) -> list[dict[str, str]]:
    """Return what waits for a person: drafts of items, corrections, and what no model could
    finish.
    """
    reviews = [e for e in workshop.all_latest("review") if decision_on(workshop, e) is None]
    rows = [
        *((e, _queue_text(workshop, e), e.note) for e in manual_queue(workshop)),
        *((e, "correction", _review_text(e)) for e in reviews),
        *((e, _queue_text(workshop, e), e.result["question"]) for e in undecided(workshop)),
    ]
    return [{"handle": handle_of(e.place), "what": what, "why": why} for e, what, why in rows]


def _queue_text(workshop: Workshop, event: Event) -> str:
    """Return what something in the queue is; of private items with their state."""
    step = event.place[0]
    kind = event.result.get("kind") if isinstance(event.result, dict) else None
    private = step in ("end", "draft") or kind == "synthetic"
    return f"{step}, {state_of(workshop, event)}" if private else step


def _review_text(event: Event) -> str:
    if event.status == "queued":
        return event.note
    review = event.result_as(Correction)
    return f"type {', '.join(map(str, review.types)) or 'none'}: {review.reasons}"
