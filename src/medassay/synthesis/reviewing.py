"""Reviews of flawed items by a model of another family, in a workshop of their own.

People decide about each of them.

Source: specification of bank synthesis, 10.1, flaw detection.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TypedDict

import msgspec

from medassay.bank.folder import bank_records, load_bank
from medassay.context.tools.loop import ToolLoop
from medassay.context.tools.schema import tool_schema
from medassay.context.tools.toolbox import Toolbox
from medassay.core.records.context_config import ToolRules
from medassay.core.records.item import Bank
from medassay.core.records.item_line import item_line
from medassay.core.records.item_object import ItemObject
from medassay.core.records.model import ModelSpec
from medassay.core.records.target import Choice
from medassay.errors import IncompleteError, InputError
from medassay.judging.sanitize import delimit
from medassay.model.chats import provide
from medassay.model.spec import load_models, named
from medassay.runner.ask import Asker
from medassay.runner.progress import ProgressFactory
from medassay.runner.spending import spending
from medassay.runner.stages import refuse_leaving
from medassay.storage.response import ResponseStore
from medassay.synthesis.author import Author
from medassay.synthesis.correction import item_text, read_correction, shown_fields
from medassay.synthesis.flaws import Flaws
from medassay.synthesis.project import Event, Workshop, open_workshop
from medassay.synthesis.records import CorrectableFields, Correction, PlanNote
from medassay.synthesis.steps import SynthesisStep, decision_on, do_jobs

MAKER = "flaws"


class FlawReview(TypedDict):
    """What a reviewing model found: item → types of what is wrong, item → why there is no usable
    review, and the number of calls.
    """

    reviewed: dict[str, list[int]]
    queue: dict[str, str]
    calls: int


class ReviewerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Who shall review flawed items, an entry of a models file, with which tools.

    And the bank that they are in.
    """

    reviewer: str
    models_file: Path
    bank: Path
    tools: ToolRules | None = None


def review_flaws(
    flaws: Flaws,
    options: ReviewerOptions,
    to: Path,
    *,
    secrets: Mapping[str, str],
    workspace: Path,
    watch: ProgressFactory | None = None,
    again: Collection[str] = (),
) -> FlawReview:
    """Have a model of another family review flawed items in a workshop.

    Nothing is changed before a person decides.

    Parameters
    ----------
    again : handles of reviews that are asked for once more, or "failed" for all that ended in the
        queue undecided

    Returns
    -------
    dict
        reviewed (item → types), queue (item → why there is no usable review), calls

    Raises
    ------
    InputError
        When the reviewer is unknown, of the family that wrote an item, or the bank is not that of
        the runs.
    IncompleteError
        When calls had no reply: the same call goes on.
    """
    spec = _reviewer(options)
    bank = load_bank(options.bank, lock=None)
    records = _records(flaws, bank, spec)
    private = any(item_line(record).kind == "synthetic" for record in records.values())
    leaves = bank.may_leave and not private
    refuse_leaving([(bank.name, leaves)], [spec], options.tools)
    with ExitStack() as stack:
        workshop = stack.enter_context(open_workshop(to))
        _note_plan(workshop, flaws, options, bank, spec)
        store = stack.enter_context(ResponseStore(workspace / "responses"))
        own_specs = {spec.id: spec}
        budget = stack.enter_context(spending(workspace, workshop.account, own_specs, store))
        asker = Asker({spec.id: spec}, {spec.id: provide(spec, secrets)}, store, budget)
        looking = None
        if options.tools is not None:
            toolbox = Toolbox(options.tools, secrets=secrets)
            looking = ToolLoop(toolbox, asker), tool_schema(options.tools)
        author = Author(spec, asker, seed=0, tool_loop=looking)
        jobs = [_job(record, author) for record in records.values()]
        failed = do_jobs("reviews", jobs, workshop, asker, watch, again)
        reviews = [e for e in workshop.all_latest("review") if e.place[1] in records]
    if failed:
        name, why = next(iter(failed.items()))
        raise IncompleteError(
            f"{len(failed)} reviews had no reply, {name}: {why}; the same command resumes"
        )
    return {
        "reviewed": {
            e.place[1]: e.result_as(Correction).types for e in reviews if e.status == "made"
        },
        "queue": {e.place[1]: e.note for e in reviews if e.status == "queued"},
        "calls": asker.tally.called,
    }


def _reviewer(options: ReviewerOptions) -> ModelSpec:
    specs = load_models(options.models_file)
    spec = named(specs, options.reviewer, "--review:", options.models_file)
    if spec.is_baseline:
        raise InputError(f"--review: '{spec.id}' is a baseline and reviews nothing")
    if options.tools is not None and spec.no_tools is not None:
        raise InputError(f"--review: '{spec.id}' cannot search: {spec.no_tools}")
    return spec


def _records(flaws: Flaws, bank: Bank, spec: ModelSpec) -> dict[str, ItemObject]:
    """Return the records of the flawed items that are in the bank, by id."""
    if bank.content_hash not in flaws.contents:
        raise InputError(
            f"bank '{bank.name}' {bank.version} is not what the runs asked; expected the version of"
            " the runs, unchanged"
        )
    ids = {flaw.item for flaw in flaws.selected.flaws}
    records_found = {
        i.id: record
        for i, record in bank_records(bank)
        if (i.domain, i.id) in ids and isinstance(i.target, Choice)
    }
    for name, record in records_found.items():
        meta = item_line(record).meta
        if spec.family in (meta.family, meta.of_family):
            raise InputError(
                f"item '{name}' was written by the family {spec.family}, as '{spec.id}'; who"
                " reviews must be of another"
            )
    return records_found


def _note_plan(
    workshop: Workshop, flaws: Flaws, options: ReviewerOptions, bank: Bank, spec: ModelSpec
) -> None:
    plan = {"name": bank.name, "bank": str(options.bank.resolve()), "maker": MAKER}
    before = workshop.latest("plan", "plan")
    if before is not None and before.result["plan"] != plan:
        raise InputError(
            f"{workshop.folder}: a workshop of something else; expected a new folder for the"
            f" corrections of {options.bank}"
        )
    model = {"family": spec.family, "provider": spec.provider, "scripted": spec.is_scripted}
    record = {"plan": plan, "models": {spec.id: model}}
    record |= {"content_sha256": bank.content_hash, "flaws": flaws.to_dict()}
    workshop.note_latest("plan", "plan", record)


def _job(record: ItemObject, author: Author) -> SynthesisStep:
    return SynthesisStep(
        step="review",
        subject=item_line(record).id,
        author=author,
        part="make_correction",
        holes={"item": delimit(item_text(record), "item"), "searching": author.searches},
        read=lambda reply: read_correction(reply, record),
        sources=[("plan", "plan")],
        shown=shown_fields(record),
    )


def type_counts(workshop: Workshop) -> list[tuple[int, str, int]]:
    """Return how many reviews propose each type of change, by what people decided.

    An item may have two types.

    Each is type, decision (accept, change, keep, remove, or waiting) and how many.
    """
    counts: Counter[tuple[int, str]] = Counter()
    for event in workshop.all_latest("review"):
        decided = decision_on(workshop, event)
        for kind in event.result_as(Correction).types if event.result else ():
            counts[kind, "waiting" if decided is None else decided.status] += 1
    return [(kind, verb, n) for (kind, verb), n in sorted(counts.items())]


def is_correction(workshop: Workshop) -> bool:
    """Return whether a workshop is of corrections to a bank."""
    latest = workshop.latest("plan", "plan")
    return latest is not None and latest.result_as(PlanNote).plan.maker == MAKER


class CorrectedItem(msgspec.Struct, frozen=True, kw_only=True):
    """A decided correction: what the item was, what it shall be (None: removed), and the
    decision.
    """

    item: str
    before: CorrectableFields
    after: CorrectableFields | None
    decision: Event


def corrected(workshop: Workshop) -> Iterator[CorrectedItem]:
    """Yield every decided correction that changes or removes an item."""
    for event in workshop.all_latest("review"):
        decided = decision_on(workshop, event)
        if decided is not None and decided.status != "keep":
            after = None
            if decided.status == "change":
                after = decided.result_as(CorrectableFields)
            elif decided.status == "accept":
                after = event.result_as(Correction).after
            before = event.shown_as(CorrectableFields)
            yield CorrectedItem(item=event.place[1], before=before, after=after, decision=decided)
