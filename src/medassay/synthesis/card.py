"""What whoever uses a made bank must know: who wrote it, what people did, how old its sources are.

The card of a bank is written from it.
"""

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence

from medassay.core.records.card_object import CardObject
from medassay.core.records.item_object import ItemObject
from medassay.core.wording import counted
from medassay.errors import InputError
from medassay.synthesis.items import left_out, present_items
from medassay.synthesis.project import Event, Workshop
from medassay.synthesis.records import PlannedBank, PlannedModel, PlanNote, SourceNote
from medassay.synthesis.steps import decision_on

_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


def plan_of(workshop: Workshop) -> PlannedBank:
    """Return what the plan of a workshop says of its bank.

    Raises
    ------
    InputError
        When it has none yet.
    """
    latest = workshop.latest("plan", "plan")
    if latest is None:
        raise InputError(
            f"{workshop.folder}: a workshop without a plan; `medassay bank synthesize` makes items"
        )
    return latest.result_as(PlanNote).plan


def card_of(
    workshop: Workshop,
    records: Sequence[ItemObject],
    before: CardObject,
    today: dt.date,
) -> CardObject:
    """Return the card of a workshop's bank.

    `before` is that of its last version, empty for the first.
    """
    plan = plan_of(workshop)
    title = plan.title or plan.name
    dropped = left_out(workshop)
    undecided = len(present_items(workshop)) - len(records)
    if undecided:
        dropped["not accepted by a person"] = undecided
    sources_leave = all(source.may_leave for source in _sources(workshop))
    return {
        "name": plan.name,
        "title": f"DEMONSTRATION: {title}" if _is_scripted(workshop) else title,
        "question_bank_version": before.get("question_bank_version", f"{plan.name}-{today.year}.1"),
        "licence": plan.licence,
        "created": before.get("created", today.isoformat()),
        "limits": " ".join(limits_of(workshop)),
        "domains": sorted({record["domain"] for record in records}),
        # What was private at its source, or is made to be, stays.
        "may_leave": plan.may_leave and plan.maker != "proposals" and sources_leave,
        "kept": len(records),
        "dropped": dropped,
        **({"content_sha256": before["content_sha256"]} if "content_sha256" in before else {}),
    }


def _models(workshop: Workshop) -> Mapping[str, PlannedModel]:
    latest = workshop.latest("plan", "plan")
    return {} if latest is None else latest.result_as(PlanNote).models


def _is_scripted(workshop: Workshop) -> bool:
    scripted = any(model.scripted for model in _models(workshop).values())
    return scripted or any("DEMONSTRATION" in source.limits for source in _sources(workshop))


def _sources(workshop: Workshop) -> list[SourceNote]:
    """Return the sources that the present items were made from."""
    used = {place for event in present_items(workshop) for place in _all_before(workshop, event)}
    events = (event for event in workshop.all_latest("source") if event.place in used)
    return [event.result_as(SourceNote) for event in events if event.result is not None]


def _all_before(workshop: Workshop, event: Event) -> set[tuple[str, str]]:
    places: set[tuple[str, str]] = set()
    waiting = [*event.line.sources]
    while waiting:
        place = waiting.pop()
        if place not in places:
            places.add(place)
            latest = workshop.latest(*place)
            waiting += [] if latest is None else [*latest.line.sources]
    return places


def limits_of(workshop: Workshop) -> Iterator[str]:
    """Yield the limits of a workshop's items, a sentence each."""
    plan, models = plan_of(workshop), _models(workshop)
    if any(model.scripted for model in models.values()):
        yield "DEMONSTRATION: written by a script, not by a model; a score says nothing."
    if plan.limits:
        yield plan.limits
    for source in _sources(workshop):
        if source.limits:
            yield f"Of {source.bank}: {source.limits}"
    if models:
        named = ", ".join(f"{name} (family {model.family})" for name, model in models.items())
        yield (
            f"Made with {named}: models of these families may find the items easier, and their"
            " errors may be in them."
        )
    yield _review_share(workshop)
    yield _source_age(workshop)


def _review_share(workshop: Workshop) -> str:
    decided = [decision_on(workshop, event) for event in present_items(workshop)]
    accepted = [
        decision
        for decision in decided
        if decision is not None and decision.status in ("accept", "change")
    ]
    singly = sum(not decision.line.together for decision in accepted)
    share = 100 * singly / len(accepted) if accepted else 0.0
    return (
        f"Of {counted(len(accepted), 'item')} {singly} ({share:.0f} %)"
        f" {'was' if singly == 1 else 'were'} reviewed or decided by people one by one, the others"
        " accepted together."
    )


def _source_age(workshop: Workshop) -> str:
    """Return how old the documents are that items were made from.

    Private items have none and name their sources themselves.
    """
    sources = _sources(workshop)
    if not sources and plan_of(workshop).maker == "proposals":
        return _named_sources(workshop)
    dates = sorted(source.made for source in sources if source.made)
    count = f"{len(sources)} source{'s' if len(sources) != 1 else ''}"
    if not dates:
        return f"{count}, undated."
    date_range = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    undated = len(sources) - len(dates)
    return (
        f"{count}, of {date_range}{f', {undated} undated' if undated else ''}; what changed in"
        " medicine since is not in the items."
    )


def _named_sources(workshop: Workshop) -> str:
    """Return how many sources the items name, and the years in these names.

    What the model that wrote them named was not looked up.
    """
    named = {
        name
        for event in present_items(workshop)
        for name in event.result.get("source", "").split("; ")
        if name
    }
    if not named:
        return "The items name no source."
    years = sorted({int(year) for name in named for year in _YEAR.findall(name)})
    dated = sum(bool(_YEAR.search(name)) for name in named)
    span = f" of {years[0]}" if years else ""
    span += f" to {years[-1]}" if len(years) > 1 else ""
    return (
        f"The items name {counted(len(named), 'source')}, {dated} with a year{span}, as the model"
        " that wrote them says; nobody looked them up. What changed in medicine since is not in"
        " the items."
    )
