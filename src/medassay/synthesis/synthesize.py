"""Making items by a plan in a workshop: every step once, resumed where it was interrupted."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

import msgspec

from medassay.core.keyed import KeyedRecord
from medassay.core.records.model import FREE, ModelSpec
from medassay.core.records.target import LETTERS
from medassay.errors import IncompleteError, InputError
from medassay.model.chats import provide
from medassay.model.spec import load_models, named
from medassay.runner.ask import Asker, AskSettings
from medassay.runner.budget import Budget
from medassay.runner.progress import ProgressFactory
from medassay.runner.spending import spending
from medassay.runner.stages import refuse_leaving
from medassay.storage.response import ResponseStore
from medassay.synthesis.author import Author
from medassay.synthesis.exam import ExamMaker
from medassay.synthesis.items import left_out, manual_queue, note_items, present_items
from medassay.synthesis.pathways import PathwayMaker
from medassay.synthesis.plan import SynthesisPlan, load_synthesis_plan
from medassay.synthesis.project import JOURNAL, Workshop, open_workshop
from medassay.synthesis.proposals import ProposalMaker
from medassay.synthesis.records import PlanNote
from medassay.synthesis.steps import (
    FAILED,
    Maker,
    SynthesisPreview,
    SynthesisStep,
    do_jobs,
    event_of,
    stage_previews,
    synthesis_preview,
)
from medassay.synthesis.translation import TranslationMaker

Authors = Mapping[str, Author]
MAKERS: dict[str, Callable[[SynthesisPlan, Path, Workshop, Authors], Maker]] = {
    "exam": ExamMaker,
    "pathways": PathwayMaker,
    "proposals": ProposalMaker,
    "translation": TranslationMaker,
}


class SynthesisResult(KeyedRecord, msgspec.Struct, frozen=True, kw_only=True):
    """What a workshop holds after a pass: items, what waits in the queue, what was left out and
    why, letters of the keys.
    """

    KEYS: ClassVar = ("items", "queue", "dropped", "letters", "calls", "replayed", "failed")

    items: int
    queue: list[dict[str, str]]
    dropped: Mapping[str, int]
    letters: Mapping[str, int]
    calls: int = 0
    replayed: int = 0
    failed: Mapping[str, str] = msgspec.field(default_factory=dict)


class _PlannedModels(msgspec.Struct, frozen=True, kw_only=True):
    """A plan with the models that it names."""

    plan: SynthesisPlan
    base: Path
    specs: Mapping[str, ModelSpec]

    def maker(self, workshop: Workshop, asker: Asker) -> Maker:
        """Return who makes the items of the plan."""
        authors = {n: Author(s, asker, seed=self.plan.seed) for n, s in self.specs.items()}
        return MAKERS[self.plan.maker](self.plan, self.base, workshop, authors)


def _planned_models(path: Path) -> _PlannedModels:
    plan = load_synthesis_plan(path)
    names = [plan.generator]
    if plan.proposals is not None:
        names.append(plan.proposals.reviewer)
    if plan.exam is not None:
        names = [plan.generator, plan.exam.selector] if plan.exam.open_versions else []
    entries = load_models(path.parent / plan.models_file) if names else {}
    specs = {name: named(entries, name, f"{path}:", plan.models_file) for name in names}
    for name, spec in specs.items():
        if spec.is_baseline:
            raise InputError(f"{path}: '{name}' is a baseline and writes nothing")
    for other in names[1:]:
        if specs[other].family == specs[names[0]].family:
            raise InputError(
                f"{path}: '{names[0]}' and '{other}' are of one family, {specs[other].family}; who"
                " reviews must be of another"
            )
    refuse_leaving([(plan.name, plan.may_leave)], specs.values())
    return _PlannedModels(plan=plan, base=path.parent, specs=specs)


def synthesize(
    path: Path,
    to: Path,
    *,
    secrets: Mapping[str, str],
    workspace: Path,
    watch: ProgressFactory | None = None,
    again: Collection[str] = (),
) -> SynthesisResult:
    """Make the items of a plan in the workshop `to`.

    What is made stays made, the same call resumes.

    Parameters
    ----------
    again : handles of steps that are asked for once more, or "failed" for all that ended in the
        queue undecided

    Raises
    ------
    InputError
        When plan, models or sources are wrong.
    IncompleteError
        When calls had no reply, or the budget is spent: the same call goes on.
    """
    planned = _planned_models(path)
    with ExitStack() as stack:
        workshop = stack.enter_context(open_workshop(to))
        _note_plan(workshop, planned)
        store = stack.enter_context(ResponseStore(workspace / "responses"))
        account, bounds = workshop.account, planned.plan.budget
        budget = stack.enter_context(spending(workspace, account, planned.specs, store, bounds))
        chats = {name: provide(spec, secrets) for name, spec in planned.specs.items()}
        asker = Asker(planned.specs, chats, store, budget, AskSettings(seed=planned.plan.seed))
        failed: dict[str, str] = {}
        maker, done = planned.maker(workshop, asker), list[SynthesisStep]()
        for what, jobs in maker.stages():
            failed |= do_jobs(what, jobs, workshop, asker, watch, again)
            done += jobs
        ends = [event for job in done if (event := event_of(workshop, job)) is not None]
        ended = [event for event in ends if event.status == "queued"]
        note_items(workshop, maker.records(), [*maker.ended, *ended])
        result = _summary(workshop, asker, failed)
    _refuse_strange(again, done)
    if failed:
        name, why = next(iter(failed.items()))
        raise IncompleteError(
            f"{len(failed)} calls had no reply, {name}: {why}; {result.items} items are made and"
            " kept, the same command resumes"
        )
    return result


def _refuse_strange(again: Collection[str], jobs: Sequence[SynthesisStep]) -> None:
    handles = {job.handle for job in jobs} | {FAILED}
    if strange := sorted(set(again) - handles):
        raise InputError(
            f"--again {strange[0]}: no step of this workshop; expected failed, or one of"
            f" {', '.join(sorted(handles - {FAILED})[:5])} …"
        )


def _note_plan(workshop: Workshop, planned: _PlannedModels) -> None:
    models = {
        name: {"family": s.family, "provider": s.provider, "scripted": s.is_scripted}
        for name, s in planned.specs.items()
    }
    record = {"plan": {**planned.plan.to_dict(), "maker": planned.plan.maker}, "models": models}
    _refuse_other(workshop, planned)
    workshop.note_latest("plan", "plan", record)


def _refuse_other(workshop: Workshop, planned: _PlannedModels) -> None:
    """Refuse a workshop in which something else was made."""
    before = workshop.latest("plan", "plan")
    if before is None:
        return
    plan = before.result_as(PlanNote).plan
    if plan.maker != planned.plan.maker:
        raise InputError(
            f"{workshop.folder}: a workshop of another maker; expected a new folder for"
            f" [{planned.plan.maker}]"
        )
    if plan.name != planned.plan.name:
        raise InputError(
            f"{workshop.folder}: a workshop of '{plan.name}'; expected a new folder for"
            f" '{planned.plan.name}'"
        )


def _summary(workshop: Workshop, asker: Asker, failed: Mapping[str, str]) -> SynthesisResult:
    items = present_items(workshop)
    letters = Counter(e.result["expected"] for e in items if len(e.result.get("options", ())) > 1)
    return SynthesisResult(
        items=len(items),
        queue=[
            {"step": e.place[0], "subject": e.place[1], "why": e.note}
            for e in manual_queue(workshop)
        ],
        dropped=left_out(workshop),
        letters={letter: letters[letter] for letter in LETTERS if letters[letter]},
        calls=asker.tally.called,
        replayed=asker.tally.replayed,
        failed=failed,
    )


def preview(path: Path, to: Path) -> SynthesisPreview:
    """Return what the command would ask and cost at most, stage by stage, as far as it can be
    known; nothing is asked or written.

    Later stages follow from what earlier ones make: questions are counted once the decision graphs
    are there.
    """
    planned = _planned_models(path)
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "workshop"
        copy.mkdir()
        if (to / JOURNAL).is_file():
            shutil.copyfile(to / JOURNAL, copy / JOURNAL)
        with (
            open_workshop(copy) as workshop,
            ResponseStore(Path(temporary) / "responses") as store,
        ):
            _refuse_other(workshop, planned)
            asker = Asker(
                planned.specs,
                {},
                store,
                Budget(planned.plan.budget),
                AskSettings(seed=planned.plan.seed),
            )
            stages = stage_previews(planned.maker(workshop, asker).stages(), workshop)
    return synthesis_preview(planned.plan.name, planned.plan.maker, stages)


def has_prices(path: Path) -> bool:
    """Return whether any model of a plan has a price, or one that is not known, so that making
    items may cost money.
    """
    return any(spec.known_price != FREE for spec in _planned_models(path).specs.values())
