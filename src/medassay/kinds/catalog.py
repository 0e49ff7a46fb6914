"""Every task: one line each."""

from collections.abc import Mapping
from dataclasses import replace

from medassay.core.records.manifest import Manifest
from medassay.core.records.plan import Plan
from medassay.core.records.relaxed import RelaxedSetting
from medassay.core.records.task import CHAT_SUFFIX, Task
from medassay.errors import InputError
from medassay.kinds.choice.tasks import CLOSED
from medassay.kinds.criteria.tasks import RUBRIC
from medassay.kinds.diagnoses.tasks import DDX, DDX_NAMES
from medassay.kinds.facts.tasks import (
    G_EVAL,
    G_EVAL_NO_PATH,
    G_EVAL_SINGLE,
    G_EVAL_WEIGHTED,
    OPEN,
    OPEN_GRAPH,
    PROMETHEUS,
)
from medassay.kinds.likelihood.tasks import (
    CLOSED_LIKELIHOOD,
    PERPLEXITY,
    PERPLEXITY_COND,
    RELAXED_PERPLEXITY,
    with_chat_template,
)
from medassay.kinds.record.tasks import RECORD, RECORD_GRAPH
from medassay.kinds.reference.tasks import (
    HEALTHBRANCHES_SIMILARITY,
    PROMETHEUS_TEXT,
    TEXT_TASKS,
    WHOLE_REPLIES,
)

# Closed and open questions together, each worth 0 to 1: the method of the audited leaderboard.
LEADERBOARD = Task(
    name="leaderboard",
    metric="top100",
    split="test",
    template="leaderboard",
    readers={**CLOSED.readers, **OPEN.readers},
    graders=OPEN.graders,
)

TASKS: dict[str, Task] = {
    **TEXT_TASKS,
    "closed": CLOSED,
    "closed_likelihood": CLOSED_LIKELIHOOD,
    "closed_likelihood_chat": with_chat_template(CLOSED_LIKELIHOOD),
    "ddx": DDX,
    "ddx_names": DDX_NAMES,
    "g_eval": G_EVAL,
    "g_eval_no_path": G_EVAL_NO_PATH,
    "g_eval_single": G_EVAL_SINGLE,
    "g_eval_weighted": G_EVAL_WEIGHTED,
    "healthbranches_similarity": HEALTHBRANCHES_SIMILARITY,
    "leaderboard": LEADERBOARD,
    "open": OPEN,
    "open_graph": OPEN_GRAPH,
    "perplexity": PERPLEXITY,
    "perplexity_cond": PERPLEXITY_COND,
    "perplexity_cond_chat": with_chat_template(PERPLEXITY_COND),
    "prometheus": PROMETHEUS,
    "prometheus_text": PROMETHEUS_TEXT,
    "record": RECORD,
    "record_graph": RECORD_GRAPH,
    "relaxed_perplexity": RELAXED_PERPLEXITY,
    "relaxed_perplexity_chat": with_chat_template(RELAXED_PERPLEXITY),
    "rubric": RUBRIC,
}


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
    if not parsers and task.name in WHOLE_REPLIES:
        parsers = dict.fromkeys(task.readers, "paragraph")
    readers = {
        form: (parsers.get(form, parser), scorer) for form, (parser, scorer) in task.readers.items()
    }
    return replace(task, readers=readers) if parsers else task


def _measured(task: Task, setting: RelaxedSetting) -> Task:
    """Return a task whose metric carries the setting that its values depend on."""
    return replace(task, metric=setting.name("sum")) if task.asks == "relaxed" else task
