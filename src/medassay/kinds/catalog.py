"""Every kind of task: one line each; and what the kinds bring, by name."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from medassay.bank.run_items import RunItems
from medassay.core.parser import Parser
from medassay.core.protocols import Summary
from medassay.core.records.item import Item
from medassay.core.records.manifest import JudgingRules, Manifest, RunBank
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.own_code import OwnCode
from medassay.core.records.plan import Plan
from medassay.core.records.relaxed import RelaxedSetting
from medassay.core.records.target import Choice, Form
from medassay.core.records.task import CHAT_SUFFIX, Task
from medassay.core.records.verdict import Grader
from medassay.core.scale import Scale
from medassay.errors import InputError
from medassay.judging.graders.catalog import GRADERS as SHARED_GRADERS
from medassay.kinds.choice.kind import CHOICE
from medassay.kinds.choice.tasks import CLOSED
from medassay.kinds.criteria.kind import CRITERIA
from medassay.kinds.diagnoses.kind import DIAGNOSES
from medassay.kinds.document.kind import DOCUMENTS
from medassay.kinds.facts.kind import FACTS
from medassay.kinds.facts.tasks import OPEN
from medassay.kinds.imported.kind import IMPORTED
from medassay.kinds.kind import Kind, Presentation
from medassay.kinds.likelihood.kind import LIKELIHOOD
from medassay.kinds.pattern.kind import PATTERN
from medassay.kinds.record.kind import HEALTH_RECORD
from medassay.kinds.reference.kind import REFERENCE
from medassay.own_code.functions import own_parser, own_scorer
from medassay.prompt.own_template import check_holes, holes_in
from medassay.prompt.render import HOLES
from medassay.score.measure import Measure
from medassay.score.scorer import Scorer
from medassay.summary.columns import ColumnSummary
from medassay.summary.tool_use import lookups_of

KINDS: dict[str, Kind] = {
    "choice": CHOICE,
    "criteria": CRITERIA,
    "diagnoses": DIAGNOSES,
    "document": DOCUMENTS,
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

# Form of items → the task by which one's own are asked where a plan names none.
OWN_TASKS = {form: kind.own_task for kind in KINDS.values() for form in kind.forms}
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
_PUBLIC_PARTS: tuple[str, ...] = tuple(
    part for kind in KINDS.values() for part in (*kind.public_parts, *_columns(kind))
)
GRADERS: dict[str, Callable[[RunBank, JudgingRules], Grader]] = {
    **SHARED_GRADERS,
    **{name: make for kind in KINDS.values() for name, make in kind.graders.items()},
}


OWN_SCORER = "own_scorer"  # key of the summary of the columns that a scorer of the user gives


def parser_of(task: Task, form: Form) -> Parser:
    """Return what reads the replies to items of a form."""
    if task.own is not None and "parser" in task.own.parts:
        return own_parser(task.own)
    return PARSERS[task.readers[form][0] or ""]


def scorer_of(task: Task, form: Form) -> Scorer:
    """Return what scores the answers to items of a form; judged ones have no score at first."""
    if task.own is not None and "scorer" in task.own.parts:
        return own_scorer(task.own)
    if (kind := _schema_kind(task)) is not None:
        return kind.scorers[0]
    name = task.readers[form][1]
    if name:
        return SCORERS[name]
    scale = task.part(form).scale
    return Scorer("judges", lambda item, answer: (None, "unjudged"), revision=1, scale=scale)


def _schema_kind(task: Task) -> Kind | None:
    """Return the kind of a task for the schema of its plan, None where it has none."""
    kind = KINDS.get(_KIND_OF.get(task.name, ""))
    if kind is None or kind.by_schema is None or task.own is None or task.own.schema is None:
        return None
    return kind.by_schema(task.own.schema)


def public_parts(manifest: Manifest) -> tuple[str, ...]:
    """Return the parts of scores that are published of withheld items."""
    own = manifest.own_code
    if own is None:
        return _PUBLIC_PARTS
    task = task_of_run(manifest)
    measures = [measure for form in task.readers for measure in measures_of(task, form)]
    shown = [column for measure in measures for column in measure.columns]
    return (*_PUBLIC_PARTS, *own.columns, *dict.fromkeys(shown))


def misfit_of(task: Task) -> Callable[[Item], str | None] | None:
    """Return what says whether the reference of an item fits the schema of a task's plan; None
    where there is no schema.
    """
    kind = _schema_kind(task)
    return None if kind is None else kind.misfit


def summaries_of(items: RunItems, manifest: Manifest, task: Task) -> list[Summary]:
    """Return what a run of one task tells besides its rankings: its kind, and what its models
    looked up.
    """
    name = _KIND_OF.get(task.name)
    kind = Kind(tasks=()) if name is None else KINDS[name]
    summary: Summary | None = None
    if task.own is not None and task.own.scores:
        if task.own.columns:
            summary = ColumnSummary(OWN_SCORER, items, manifest, task.own.column_scales)
    elif kind.summary is not None:
        summary = kind.summary(items, manifest, task)
    elif name is not None and (columns := _columns(_schema_kind(task) or kind)):
        summary = ColumnSummary(name, items, manifest, columns)
    return [*([] if summary is None else [summary]), *lookups_of(items, manifest)]


def rules_of(task: Task, plan: Plan, items: Iterator[Item], base: Path) -> ManifestObject:
    """Return what a run remembers of the rules of its kind.

    Parameters
    ----------
    items : those that are asked
    base : folder of the plan

    Raises
    ------
    InputError
        When the plan has rules of a kind that it does not ask.
    """
    rules: dict[str, Any] = {}
    for part, forms in task.single_tasks:
        kind = KINDS[_KIND_OF[part.name]] if part.name in _KIND_OF else None
        if kind is not None and kind.rules is not None:
            own_items = (item for item in items if item.form in forms)
            rules[kind.key] = kind.rules.remember(plan, own_items, base)
    for kind in KINDS.values():
        unasked = kind.rules is not None and kind.key not in rules
        if unasked and getattr(plan, kind.key) != getattr(Plan, kind.key):
            names = ", ".join(kind_task.name for kind_task in kind.tasks)
            raise InputError(
                f"plan: '{kind.key}' holds rules of other tasks ({names}), and this plan asks by"
                f" '{task.name}'; leave it out"
            )
    return cast(ManifestObject, rules)


def measures_of(task: Task, form: str) -> list[Measure]:
    """Return what is told of the answers to items of a form besides their scores; nothing where a
    user's own code gives these, since it may read answers in its own way.
    """
    if task.own is not None and task.own.scores:
        return []
    if (kind := _schema_kind(task)) is not None:
        return list(kind.measures)
    return [
        measure
        for measure in MEASURES.values()
        if form in measure.forms or (task.part(form).metrics and not measure.forms)
    ]


def presentations() -> dict[str, Presentation]:
    """Return key of a summary → how it is shown, of the kinds that show any."""
    return presentations_of({*(kind.key or name for name, kind in KINDS.items()), OWN_SCORER})


def presentations_of(statistics: Collection[str]) -> dict[str, Presentation]:
    """Return how the results of a run are shown, by the keys of the summaries in its statistics: in
    the way of their kind, or as columns of measures.
    """
    shown: dict[str, Presentation] = {}
    for name, kind in KINDS.items():
        key = kind.key or name
        if key in statistics and kind.presentation is not None:
            shown[key] = kind.presentation()
        elif key in statistics and (_columns(kind) or kind.by_schema is not None):
            shown[key] = _columns_shown(name)
    if OWN_SCORER in statistics:
        shown[OWN_SCORER] = _columns_shown(OWN_SCORER)
    return shown


def _columns_shown(key: str) -> Presentation:
    from medassay.kinds.columns import shown_columns  # brings what draws

    return shown_columns(key)


def find_task(name: str) -> Task:
    """Return a task by name."""
    if name not in TASKS:
        raise InputError(f"plan: task '{name}' is unknown; known are {', '.join(sorted(TASKS))}")
    return TASKS[name]


def task_of_plan(plan: Plan, forms: Collection[Form] = (), own: OwnCode | None = None) -> Task:
    """Return the task that a plan means: `scoring`, `relaxed_perplexity` and `chat_template` each
    lead to one of its own; a plan that names none means that of each kind of its items.

    Parameters
    ----------
    forms : of the items that the plan's banks hold to be asked
    own : what the plan takes from files of its user

    Raises
    ------
    InputError
        When a task is unknown, has no such twin, cannot be asked beside the others, or does not
        take what the user brings.
    """
    task = _task_of_plan(plan, forms)
    kind = KINDS.get(_KIND_OF.get(task.name, ""))
    if kind is not None and kind.by_schema is not None and (own is None or own.schema is None):
        raise InputError(
            f"plan: task '{task.name}' needs to know the form of a record; name its JSON Schema, as"
            ' schema = "letter.schema.json"'
        )
    if own is None:
        return task
    if task.parts:
        raise InputError(
            "plan: [task] is for items of one kind, and the banks hold"
            f" {', '.join(sorted(task.parts))}; name the task that yours is like, as like ="
            f' "{task.single_tasks[0][0].name}"'
        )
    if own.parts and task.asks != "reply":
        raise InputError(
            f"plan: task '{task.name}' asks for likelihoods, and own code is for replies; leave it"
            " out"
        )
    choosing = Choice.form in forms and Choice.form in task.readers and not own.scores
    for name, texts in own.templates.items():
        check_holes(name, texts, HOLES, ["question", "context"])
        if choosing and not all("options" in holes_in(text) for text in texts.values()):
            raise InputError(
                f"template '{name}' shows no options, of which a model shall choose one; go through"
                " them with {% for letter, option in options %}"
            )
    if own.grader_templates and not task.graders:
        raise InputError(
            f"plan: 'task.grader_template' is for judges, and task '{task.name}' has none; name a"
            ' judged task, as like = "prometheus"'
        )
    if own.schema is not None and _schema_kind(replace(task, own=own)) is None:
        raise InputError(
            f"plan: 'schema' describes records, and task '{task.name}' asks for none; set task ="
            ' "document", or leave it out'
        )
    named = plan.own.template if plan.own is not None else ""
    changed = with_own_code(task, own, n_judges=max(1, len(plan.judges)))
    return replace(changed, template=Path(named).name) if named else changed


def with_own_code(task: Task, own: OwnCode, *, n_judges: int = 1) -> Task:
    """Return a task whose parser, scorer, grader and prompts are those of a user.

    Parameters
    ----------
    n_judges : that a grader of the user has
    """
    own_parts = {role: part.id for role, part in own.parts.items()}
    readers = {
        form: (own_parts.get("parser", parser), own_parts.get("scorer", scorer))
        for form, (parser, scorer) in task.readers.items()
        if parser is not None
    }
    if not own.scores:
        metric = "field_score" if own.schema is not None and own.schema.has_rules else task.metric
        own_readers = readers if "parser" in own_parts else task.readers
        return replace(task, own=own, readers=own_readers, metric=metric)
    judged = "grader" in own_parts
    return replace(
        task,
        own=own,
        readers={form: (parser, None) for form, (parser, _) in readers.items()}
        if judged
        else readers,
        graders=dict.fromkeys(readers, own_parts["grader"]) if judged else {},
        n_judges=n_judges if judged else 0,
        graphs=(),
        metrics=(),
        metric=own.metric,
        scale=own.score_scale,
        likelihood="",
    )


def _task_of_plan(plan: Plan, forms: Collection[Form]) -> Task:
    # Templates are of one task: beside them none was ever meant but the closed one.
    if plan.tasks or not (plan.task or plan.templates or _asks_likelihoods(plan)):
        return _task_of_kinds(plan, forms)
    task = find_task(plan.task or CLOSED.name)
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


def _asks_likelihoods(plan: Plan) -> bool:
    return plan.scoring == "likelihood" or plan.relaxed_perplexity is not None or plan.chat_template


def _task_of_kinds(plan: Plan, forms: Collection[Form]) -> Task:
    """Return the task that asks each item in the way of its kind, or as `[tasks]` says.

    Kinds that judges decide on are asked where the plan names judges, or where there is no other.
    """
    chosen = _tasks_named(plan, forms)
    parts: dict[Form, Task] = {}
    for kind_name, kind in KINDS.items():
        if not kind.own_task:
            continue
        task = chosen.get(kind_name) or TASKS[kind.own_task]
        parts |= {form: task for form in kind.forms if form in forms and form in task.readers}
    named = {task.name for task in chosen.values()}
    unjudged = {f: task for f, task in parts.items() if not task.graders or task.name in named}
    if not plan.judges and unjudged:
        parts = unjudged
    tasks = {task.name: task for task in parts.values()} or {CLOSED.name: CLOSED}
    if len(tasks) == 1:
        return next(iter(tasks.values()))
    return tasks_together(parts)


def _tasks_named(plan: Plan, forms: Collection[Form]) -> dict[str, Task]:
    """Return kind → the task that `[tasks]` names for it."""
    chosen: dict[str, Task] = {}
    askable = {name: kind for name, kind in KINDS.items() if kind.own_task}
    for name, task_name in plan.tasks.items():
        if name not in askable:
            raise InputError(
                f"plan: 'tasks' names the kind '{name}', which is unknown; known are"
                f" {', '.join(askable)}"
            )
        task = chosen[name] = find_task(task_name)
        if not set(askable[name].forms) & task.readers.keys():
            fitting = sorted(
                t.name for t in TASKS.values() if set(t.readers) & set(askable[name].forms)
            )
            raise InputError(
                f"plan: 'tasks': task '{task_name}' asks no items of kind '{name}'; those that do"
                f" are {', '.join(fitting)}"
            )
    if plan.tasks and not any(set(askable[name].forms) & set(forms) for name in chosen):
        held = [name for name, kind in askable.items() if set(kind.forms) & set(forms)]
        raise InputError(
            f"plan: 'tasks' names {', '.join(chosen)}, of which the banks have no items; they have"
            f" {', '.join(held) or 'none to ask'}"
        )
    return chosen


def tasks_together(parts: Mapping[Form, Task]) -> Task:
    """Return the task that asks items of several kinds, each form by a task of its own.

    Raises
    ------
    InputError
        When one of them cannot be asked beside others: it asks no replies, ends them in a way of
        its own, or has the metric or the judges of another.
    """
    tasks = sorted({task.name: task for task in parts.values()}.values(), key=lambda t: t.name)
    for task in tasks:
        alone = "asks for likelihoods" if task.asks != "reply" else ""
        alone = alone or ("ends replies at a mark" if task.stop else "")
        if alone:
            raise InputError(
                f"plan: task '{task.name}' {alone}; ask it in a plan of its own, with task ="
                f' "{task.name}"'
            )
    metrics = Counter(task.metric for task in tasks)
    judged = [task.name for task in tasks if task.graders]
    if len(judged) > 1:
        raise InputError(
            f"plan: tasks {' and '.join(judged)} are both scored by judges, and a run has one"
            " panel; ask one of them in a plan of its own, or give both kinds one task in [tasks]"
        )
    if (twice := max(metrics.values())) > 1:
        metric = next(name for name, times in metrics.items() if times == twice)
        same = [task.name for task in tasks if task.metric == metric]
        raise InputError(
            f"plan: tasks {' and '.join(same)} have one metric, {metric}, and would be taken for"
            " one; ask one of them in a plan of its own"
        )
    return Task(
        name="+".join(task.name for task in tasks),
        metric="+".join(task.metric for task in tasks),
        split=tasks[0].split,
        template="",
        readers={form: task.readers[form] for form, task in sorted(parts.items())},
        graders={f: t.graders[f] for f, t in sorted(parts.items()) if f in t.graders},
        n_judges=max((task.n_judges for task in tasks if task.graders), default=0),
        graphs=tuple(graph for task in tasks for graph in task.graphs),
        scale=tasks[0].scale,
        plain=all(task.plain for task in tasks),
        reply_tokens=max(task.reply_tokens for task in tasks),
        metrics=tuple(dict.fromkeys(name for task in tasks for name in task.metrics)),
        parts=dict(sorted(parts.items())),
    )


def task_of_run(manifest: Manifest) -> Task:
    """Return the task of a run, by its manifest."""
    if manifest.tasks:
        return tasks_together({form: TASKS[name] for form, name in manifest.tasks.items()})
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
    task = replace(task, readers=readers) if parsers else task
    own = manifest.own_code
    return task if own is None else with_own_code(task, own.own_code)


def judged_part(task: Task) -> Task:
    """Return the task whose scores judges give, where items of several kinds are asked."""
    return next((part for part, _ in task.single_tasks if part.graders), task)


def _measured(task: Task, setting: RelaxedSetting) -> Task:
    """Return a task whose metric carries the setting that its values depend on."""
    return replace(task, metric=setting.name("sum")) if task.asks == "relaxed" else task
