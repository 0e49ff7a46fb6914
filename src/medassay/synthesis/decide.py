"""Decisions of people: nothing becomes an item of a bank, and nothing in a bank is changed, without one on record."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

from medassay.core.canonical import canonical
from medassay.core.decision_graph import contract_problem
from medassay.errors import InputError
from medassay.synthesis.correction import checked_correction, needs_rewriting
from medassay.synthesis.items import checked_change, present_items, undecided
from medassay.synthesis.jobs import decision_on, handle_of, manual_queue
from medassay.synthesis.proposals import read_draft
from medassay.synthesis.question import read_question
from medassay.synthesis.refine import read_steps
from medassay.synthesis.workshop import Event, Step, Workshop, by_person

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
    handles : ids of items, `step:subject` of what is in the queue, or `all` for every item that waits
    change : what stands in the place of what was made, as parsed JSON, for the verb `change`

    Raises
    ------
    InputError
        Naming what is unknown or cannot be decided so.
    """
    by = by_person(who)
    together = list(handles) == [ALL]
    if together:
        handles = [event.record["subject"] for event in undecided(workshop)]
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
    found = [_find(workshop, handle) for handle in dict.fromkeys(handles)]
    results = [_checked(workshop, event, verb, change) for event in found]
    for event, result in zip(found, results, strict=True):
        workshop.note(
            "decision",
            handle_of(event.place),
            verb,
            basis=event.record["basis"],
            by=by,
            sources=[event.place],
            note=" ".join(reason.split()),
            # Accepted in one go: whoever reads the limits of the bank should know that.
            together=together and len(handles) > 1,
            **({} if result is None else {"result": result}),
        )
    return [handle_of(event.place) for event in found]


def _find(workshop: Workshop, handle: str) -> Event:
    step, sign, subject = handle.partition(":")
    named = [one for one in _STEPS if one == step] if sign else []
    event = workshop.latest(named[0], subject) if named else None
    if event is None:
        event = workshop.latest("item", handle)
        present = {one.record["subject"] for one in present_items(workshop)}
        if event is not None and handle not in present:
            raise InputError(f"'{handle}' is no longer made by the plan; nothing was decided")
    if event is None:
        raise InputError(
            f"{workshop.folder}: nothing is called '{handle}'; `medassay bank queue` lists what waits"
        )
    return event


def _checked(workshop: Workshop, event: Event, verb: Verb, change: Any) -> Any:
    """Return what a decision puts in place of what was made, None where it puts nothing."""
    step, handle = event.place[0], handle_of(event.place)
    if event.status == "dropped":
        raise InputError(f"'{handle}' was left out ({event.note}); there is nothing to decide")
    if step == "item":
        if verb == "keep":
            raise InputError(f"item '{handle}': expected accept, change or remove")
        return None if change is None else checked_change(event, change)
    if step == "review" and "types" in (event.result or {}):
        return _checked_review(event, verb, change)
    if event.status != "queued":
        raise InputError(f"'{handle}' is not in the queue; there is nothing to decide")
    if verb == "keep" and step != "refine":
        raise InputError(
            f"'{handle}': nothing was there before; expected accept, change or remove"
        )
    if verb == "accept" and event.result is None:
        raise InputError(f"'{handle}': nothing usable was made; expected change or remove")
    if change is None:
        return None
    if step not in _READERS:
        raise InputError(f"'{handle}': cannot be changed by hand; expected accept or remove")
    try:
        return _READERS[step](change)
    except ValueError as error:
        raise InputError(f"change of '{handle}': {error}") from None


def _checked_review(event: Event, verb: Verb, change: Any) -> Any:
    if needs_rewriting(event.result) and verb not in ("change", "remove"):
        raise InputError(
            f"'{handle_of(event.place)}' was found complex or ambiguous as a whole (type 0): expected change or remove"
        )
    if verb == "accept" and not event.result["types"]:
        raise InputError(
            f"'{handle_of(event.place)}': no change is proposed; expected keep, change or remove"
        )
    return None if change is None else checked_correction(event, change)


def _graph(value: Any) -> Any:
    if (problem := contract_problem(value)) is not None:
        raise ValueError(problem)
    return value


def _steps(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError(
            f"{value!r:.40}; expected the sequence as one text, steps joined by ->"
        )
    return list(read_steps(value))


def _question(value: Any) -> Any:
    if isinstance(value, dict):
        form = "closed" if "options" in value else "open"
        return read_draft(canonical(value).decode(), form)
    return read_question(value).to_list()


_READERS: dict[str, Callable[[Any], Any]] = {
    "graph": _graph,
    "question": _question,
    "refine": _steps,
    "select": _question,
}


def waiting(workshop: Workshop) -> list[dict[str, str]]:
    """Return what waits for a person: drafts of items, corrections, and what no model could finish."""
    rows = [
        {"handle": handle_of(e.place), "what": e.place[0], "why": e.note}
        for e in manual_queue(workshop)
    ]
    for event in workshop.all_latest("review"):
        if (
            event.status == "made"
            and "types" in event.result
            and decision_on(workshop, event) is None
        ):
            types = ", ".join(map(str, event.result["types"])) or "none"
            rows.append(
                {
                    "handle": handle_of(event.place),
                    "what": "correction",
                    "why": f"type {types}: {event.result['reasons']}",
                }
            )
    for event in undecided(workshop):
        rows.append(
            {"handle": handle_of(event.place), "what": "item", "why": event.result["question"]}
        )
    return rows
