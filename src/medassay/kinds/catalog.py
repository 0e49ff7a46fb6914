"""Every kind of task: one line each; and what the kinds bring, by name."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

from medassay.bank.run_items import RunItems
from medassay.core.parser import Parser
from medassay.core.protocols import Summary
from medassay.core.records.item import Item
from medassay.core.records.manifest import Manifest
from medassay.core.records.manifest_object import GraderRules, ManifestObject
from medassay.core.records.plan import Plan
from medassay.core.records.relaxed import RelaxedSetting
from medassay.core.records.task import CHAT_SUFFIX, Task
from medassay.core.records.verdict import Grader
from medassay.core.scale import Scale
from medassay.errors import InputError
from medassay.judging.graders.catalog import GRADERS as SHARED_GRADERS
from medassay.kinds.choice.kind import CHOICE
from medassay.kinds.choice.tasks import CLOSED
from medassay.kinds.criteria.kind import CRITERIA
from medassay.kinds.diagnoses.kind import DIAGNOSES
from medassay.kinds.facts.kind import FACTS
from medassay.kinds.facts.tasks import OPEN
from medassay.kinds.imported.kind import IMPORTED
from medassay.kinds.kind import Kind, Presentation
from medassay.kinds.likelihood.kind import LIKELIHOOD
from medassay.kinds.pattern.kind import PATTERN
from medassay.kinds.record.kind import HEALTH_RECORD
from medassay.kinds.reference.kind import REFERENCE
from medassay.score.measure import Measure
from medassay.score.scorer import Scorer
from medassay.summary.columns import ColumnSummary
from medassay.summary.tool_use import lookups_of

KINDS: dict[str, Kind] = {
    "choice": CHOICE,
    "criteria": CRITERIA,
    "diagnoses": DIAGNOSES,
    "facts": FACTS,
    "imported": IMPORTED,
    "likelihood": LIKELIHOOD,
    "pattern": PATTERN,
    "record": HEALTH_RECORD,
    "reference": REFERENCE,
}


def _columns(kind: Kind) -> dict[str, Scale]:
    """Return the columns of a kind's measures with their scales."""
    return {name: scale for measure in kind.measures for name, scale in measure.columns.items()}


# Closed and open questions together, each worth 0 to 1: the method of the audited leaderboard. The
# one task that spans kinds, and belongs to none.
LEADERBOARD = Task(
    name="leaderboard",
    metric="top100",
    split="test",
    template="leaderboard",
    readers={**CLOSED.readers, **OPEN.readers},
    graders=OPEN.graders,
)

_KIND_OF = {task.name: name for name, kind in KINDS.items() for task in kind.tasks}
TASKS: dict[str, Task] = {
    LEADERBOARD.name: LEADERBOARD,
    **{task.name: task for kind in KINDS.values() for task in kind.tasks},
}
PARSERS: dict[str, Parser] = {
    parser.name: parser for kind in KINDS.values() for parser in kind.parsers
}
SCORERS: dict[str, Scorer] = {
    scorer.name: scorer for kind in KINDS.values() for scorer in kind.scorers
}
MEASURES: dict[str, Measure] = {
    measure.name: measure for kind in KINDS.values() for measure in kind.measures
}
RULES = {kind.key: kind.rules for kind in KINDS.values() if kind.rules is not None}
# Parts of scores that are published of withheld items.
PUBLIC_PARTS: tuple[str, ...] = tuple(
    part for kind in KINDS.values() for part in (*kind.public_parts, *_columns(kind))
)
GRADERS: dict[str, Callable[[GraderRules], Grader]] = {
    **SHARED_GRADERS,
    **{name: make for kind in KINDS.values() for name, make in kind.graders.items()},
}


def summaries_of(items: RunItems, manifest: Manifest, task: Task) -> list[Summary]:
    """Return what a run tells besides its rankings: its kind, and what its models looked up."""
    name = _KIND_OF.get(task.name)
    kind = Kind(tasks=()) if name is None else KINDS[name]
    summary: Summary | None = None
    if kind.summary is not None:
        summary = kind.summary(items, manifest, task)
    elif name is not None and (columns := _columns(kind)):
        summary = ColumnSummary(name, items, manifest, columns)
    return [*([] if summary is None else [summary]), *lookups_of(items, manifest)]


def rules_of(task: Task, plan: Plan, items: Iterator[Item], base: Path) -> ManifestObject:
    """Return what a run remembers of the rules of its kind.

    Parameters
    ----------
    items : those that are asked
    base : folder of the plan
    """
    kind = KINDS[_KIND_OF[task.name]] if task.name in _KIND_OF else None
    if kind is None or kind.rules is None:
        return {}
    return cast(ManifestObject, {kind.key: kind.rules.remember(plan, items, base)})


def measures_of(task: Task, form: str) -> list[Measure]:
    """Return what is told of the answers to items of a form besides their scores."""
    return [
        measure
        for measure in MEASURES.values()
        if form in measure.forms or (task.metrics and not measure.forms)
    ]


def presentations() -> dict[str, Presentation]:
    """Return key of a summary → how it is shown, of the kinds that show any."""
    return presentations_of({kind.key or name: None for name, kind in KINDS.items()})


def presentations_of(statistics: Collection[str]) -> dict[str, Presentation]:
    """Return how the results of a run are shown, by the keys of the summaries in its statistics: in
    the way of their kind, or as columns of measures.
    """
    shown: dict[str, Presentation] = {}
    for name, kind in KINDS.items():
        key = kind.key or name
        if key in statistics and kind.presentation is not None:
            shown[key] = kind.presentation()
        elif key in statistics and _columns(kind):
            from medassay.kinds.columns import shown_columns

            shown[key] = shown_columns(name)
    return shown


def find_task(name: str) -> Task:
    """Return a task by name."""
    if name not in TASKS:
        raise InputError(f"plan: task '{name}' is unknown; known are {', '.join(sorted(TASKS))}")
    return TASKS[name]


def task_of_plan(plan: Plan) -> Task:
    """Return the task that a plan means: `scoring`, `relaxed_perplexity` and `chat_template` each
    lead to one of its own.

    Raises
    ------
    InputError
        When the task is unknown, or has no such twin.
    """
    task = find_task(plan.task)
    if plan.relaxed_perplexity is not None and task.asks != "relaxed":
        if "open" not in task.readers:
            raise InputError(
                f"plan: 'relaxed_perplexity' is for open items, task '{task.name}' has none; "
                'leave it out, or set task = "relaxed_perplexity"'
            )
        task = TASKS["relaxed_perplexity"]
    if plan.scoring == "likelihood" and task.asks == "reply":
        if not task.likelihood:
            names = sorted(
                name
                for name, task_ in TASKS.items()
                if task_.likelihood and not task_.chat_template
            )
            raise InputError(
                f"plan: task '{task.name}' cannot be scored by likelihood; tasks that can are"
                f" {', '.join(names)}"
            )
        task = TASKS[task.likelihood]
    if plan.chat_template and not task.chat_template:
        if task.name + CHAT_SUFFIX not in TASKS:
            why = (
                "scores texts alone, without a prompt"
                if task.asks == "alone"
                else "asks for replies, for which the model's entry decides"
            )
            raise InputError(
                f"plan: 'chat_template' is of no use to task '{task.name}', which {why}; leave"
                " it out"
            )
        task = TASKS[task.name + CHAT_SUFFIX]
    return _measured(task, plan.relaxed_perplexity or RelaxedSetting())


def task_of_run(manifest: Manifest) -> Task:
    """Return the task of a run, by its manifest."""
    setting = manifest.plan.relaxed_perplexity
    task = _measured(
        TASKS[manifest.task], RelaxedSetting(**setting) if setting else RelaxedSetting()
    )
    parsers: Mapping[str, str | None] = manifest.readers
    if not parsers and task.parser_before:
        parsers = dict.fromkeys(task.readers, task.parser_before)
    readers = {
        form: (parsers.get(form, parser), scorer) for form, (parser, scorer) in task.readers.items()
    }
    return replace(task, readers=readers) if parsers else task


def _measured(task: Task, setting: RelaxedSetting) -> Task:
    """Return a task whose metric carries the setting that its values depend on."""
    return replace(task, metric=setting.name("sum")) if task.asks == "relaxed" else task
