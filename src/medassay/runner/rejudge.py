"""A sealed run judged again: a new run with its answers and other verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import msgspec

from medassay.bank.run_items import RunItems
from medassay.core.again import UNUSABLE, Again, read_again
from medassay.core.records.manifest import Manifest, judged_banks
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.model import FREE
from medassay.core.records.plan import EngineRules, Plan
from medassay.core.records.preview import Preview
from medassay.core.records.target import Form
from medassay.core.records.task import Task
from medassay.errors import InputError
from medassay.judging.assignment import RULE, JudgeAssignment, assign_judges
from medassay.judging.graders.steps import load_steps
from medassay.judging.queue import Answers
from medassay.kinds.catalog import RULES, find_task, task_of_run, tasks_together
from medassay.kinds.graders import graders_of, remembered_graphs
from medassay.model.chats import all_named_secrets, provide
from medassay.model.spec import ModelsSource, load_models, remembered, source_name
from medassay.own_code.kept import keep, recalled, trusted
from medassay.runner.ask import Asker, AskSettings
from medassay.runner.derived import (
    SURROUNDINGS,
    derived_run,
    forms_held,
    refuse_unscorable,
    sealed_source,
)
from medassay.runner.engine.catalog import engine_of, refuse_unknown
from medassay.runner.engine.lease import await_dead, held
from medassay.runner.finish import finish
from medassay.runner.manifest import (
    assignment_entry,
    grader_entry,
    own_entry,
    rejudged_methodology,
    tasks_entry,
)
from medassay.runner.preview import preview_judging, preview_of
from medassay.runner.progress import ProgressFactory
from medassay.runner.revisions import derived_revisions, other_revisions, revisions
from medassay.runner.spending import spending
from medassay.runner.stages import RunContext, judge, refuse_leaving
from medassay.runner.write import copy_answers, write_scores
from medassay.storage.object_store import carry_home, fetch_stores
from medassay.storage.response import ResponseStore
from medassay.storage.run import Run, lock_run, open_run

_MADE_ANEW = SURROUNDINGS | frozenset(
    [
        "judge_prompts",
        "judges",
        "metrics",
        "tasks",
        "own_code",
        "bench",
        "revisions",
        "rubrics",
        "steps",
        "ddx",
        "graphs",
        "audited",
        "judged_from",
    ]
)


class JudgingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Who shall judge the answers of a finished run, and how; `task` "" is the run's own.

    `graphs` are names or files of graphs; empty takes those of the run, else of the task.
    `trust_code` says that own code beside the run may be executed.
    """

    judges: Sequence[str]
    models_file: ModelsSource
    task: str = ""
    substitute: str = ""
    allow_own: bool = False
    steps: Path | None = None
    graphs: Sequence[str] = ()
    trust_code: bool = False


def judge_run(
    run: Run | str | Path,
    options: JudgingOptions,
    *,
    secrets: Mapping[str, str],
    workspace: Path | None = None,
    watch: ProgressFactory | None = None,
    accept_failures: bool = False,
    engine: str = "local",
) -> Run:
    """Judge the stored answers of a sealed run, and return a new sealed run.

    No model is asked again.

    Parameters
    ----------
    workspace : folder of runs/ and responses/; default: that of the run
    engine : "local", or "ray" for several processes or machines

    Raises
    ------
    InputError, IncompleteError, Interrupted
        As `run` does.
    """
    refuse_unknown(engine)
    source = sealed_source(run, "judged")
    workspace = workspace or source.path.resolve().parents[1]
    fetch_stores(workspace)
    forms = forms_held(source)
    task, assignment, plan = _assign(source, options, forms)
    trusted(task, source.path, trust_code=options.trust_code)
    document = source.manifest_document
    manifest = cast(ManifestObject, {k: v for k, v in document.items() if k not in _MADE_ANEW})
    parts = revisions(task, assignment.graders.values(), forms=forms)
    identity: ManifestObject = {
        **manifest,
        "task": task.name,
        **tasks_entry(task),
        **own_entry(task),
        **_read_as(source, task),
        **assignment_entry(assignment),
        "methodology": rejudged_methodology(source.manifest, task, parts, assignment, plan),
        "revisions": derived_revisions(parts, source.manifest),
        "judged_from": {"run": source.id, "root": source.seal.root},
    }
    how = _How(secrets, workspace, watch, accept_failures, engine)
    return _judge_derived(source, identity, task, assignment, how)


def judge_again(  # noqa: PLR0913 -- each is an option of the verb
    run: Run | str | Path,
    again: str,
    *,
    models_file: ModelsSource,
    secrets: Mapping[str, str],
    watch: ProgressFactory | None = None,
    accept_failures: bool = False,
    engine: str = "local",
    trust_code: bool = False,
) -> Run:
    """Ask judges of a sealed run once more where nothing in their reply could be used.

    Return a new sealed run that names the first.

    All other verdicts are those of the run: nobody else is asked.

    Parameters
    ----------
    again : "unusable", or "unusable:JUDGE" for one judge alone
    models_file : where entries are that answer for the judges by now; where it has none, the run's
        own are used
    trust_code : whether own code beside the run may be executed

    Raises
    ------
    InputError, IncompleteError, Interrupted
        As `run` does.
    """
    refuse_unknown(engine)
    source = sealed_source(run, "judged")
    workspace = source.path.resolve().parents[1]
    fetch_stores(workspace)
    wish = read_again(again)
    if wish.classes != (UNUSABLE,):
        raise InputError(
            f"--again {again}: only verdicts are asked again here; expected unusable or"
            " unusable:JUDGE"
        )
    task = trusted(task_of_run(source.manifest), source.path, trust_code=trust_code)
    assignment = _assignment_of(source, task, models_file)
    if wish.model and wish.model not in assignment.models:
        raise InputError(
            f"--again {again}: '{wish.model}' is no judge of run {source.id}; expected one of"
            f" {', '.join(sorted(assignment.models))}"
        )
    parts = revisions(task, assignment.graders.values(), forms=forms_held(source))
    if other := other_revisions(source.manifest, parts, ("grader", "sanitizer")):
        raise InputError(
            f"run {source.id}: judged by other code ({other}); verdicts of two graders are not"
            " mixed, judge all answers anew with `medassay judge`"
        )
    document = source.manifest_document
    identity = cast(ManifestObject, {k: v for k, v in document.items() if k not in SURROUNDINGS})
    identity |= {
        **grader_entry(assignment.graders),
        "revisions": derived_revisions(parts, source.manifest),
        "again_of": {"run": source.id, "root": source.seal.root, "of": str(wish)},
    }
    how = _How(secrets, workspace, watch, accept_failures, engine)
    return _judge_derived(source, identity, task, assignment, how, again=wish)


def is_paid(run: Run | Path) -> bool:
    """Return whether any judge of a run costs money, or has no price that is known."""
    source = run if isinstance(run, Run) else open_run(run)
    return any(
        remembered(entry).known_price != FREE
        for entry in source.manifest_document.get("judges", [])
    )


def preview_again(
    run: Run | str | Path, options: JudgingOptions, *, workspace: Path | None = None
) -> Preview:
    """Return what judging the answers again would ask: calls, replies stored, upper bounds of
    cost.
    """
    source = sealed_source(run, "judged")
    workspace = workspace or source.path.resolve().parents[1]
    fetch_stores(workspace)
    task, assignment, _ = _assign(source, options, forms_held(source))
    answers = Answers(source, RunItems(source.path, source.manifest.domains), task)
    with ResponseStore(workspace / "responses") as store:
        rows = [
            preview_judging(answers, assignment, spec, store) for spec in assignment.models.values()
        ]
    return msgspec.structs.replace(preview_of(rows), answers=len(answers.open))


class _How(msgspec.Struct, frozen=True):
    """With what a run is judged: keys, where, who watches, whether failures are accepted, and on
    which engine.
    """

    secrets: Mapping[str, str]
    workspace: Path
    watch: ProgressFactory | None
    accept_failures: bool
    engine: str


def _judge_derived(
    source: Run,
    identity: ManifestObject,
    task: Task,
    assignment: JudgeAssignment,
    how: _How,
    again: Again | None = None,
) -> Run:
    """Return a new sealed run with the answers of another one and the verdicts of an
    assignment of judges.
    """
    secrets, workspace = how.secrets, how.workspace
    derived = derived_run(source, identity, workspace / "runs", assignment.graders)
    named = all_named_secrets(assignment.models.values(), secrets)
    spread = engine_of(how.engine, EngineRules(), workspace / "responses", named)
    await_dead(derived.path, lambda line: None)
    asked_specs = {n: spec for n, spec in assignment.models.items() if spec is not RULE}
    with lock_run(derived), held(derived.path) as in_doubt:
        with (
            ResponseStore(workspace / "responses") as store,
            spending(workspace, derived.id, asked_specs, store) as budget,
        ):
            copy_answers(source, derived)
            keep(derived.path, task.own)
            items = RunItems(derived.path, derived.manifest.domains)
            write_scores(derived, task, items, spread)
            chats = {n: provide(spec, secrets) for n, spec in asked_specs.items()}
            asker = Asker(
                assignment.models, chats, store, budget, AskSettings(seed=assignment.seed)
            )
            context = RunContext(
                asker=asker,
                engine=spread,
                watch=how.watch,
                accept_failures=how.accept_failures,
                in_doubt=in_doubt,
                again=again,
                source=None if again is None else source,
            )
            judge(derived, task, assignment, items, context)
            finish(derived, task, items, [])
        carry_home(derived.path)
    return open_run(derived.path)


def _assign(
    source: Run, options: JudgingOptions, forms: set[Form]
) -> tuple[Task, JudgeAssignment, Plan]:
    """Return the task by which a run's answers are judged, and who judges; refuse what cannot be
    judged.
    """
    document, manifest = source.manifest_document, source.manifest
    task = _judged_task(manifest, options.task)
    if task.own is not None:
        task = msgspec.structs.replace(task, n_judges=len(options.judges) or task.n_judges)
        task = recalled(task, source.path) if options.trust_code is True else task
    specs = load_models(options.models_file)
    tested = {name: remembered(entry) for name, entry in document["models"].items()}
    plan = replace(
        Plan(banks=("",), models=("",)),
        judges=tuple(options.judges),
        substitute=options.substitute,
        allow_own=options.allow_own,
        models_file=source_name(options.models_file),
        seed=int(manifest.plan.seed),
    )
    rules = cast(ManifestObject, {key: document.get(key) for key in RULES if key in document})
    rules.update(remembered_graphs(task, options.graphs, Path.cwd()))
    if options.steps:
        rules |= {"steps": load_steps(options.steps).to_dict()}
    if task.graphs and not options.graphs and "graphs" in document:
        rules |= {"graphs": document["graphs"]}
    judged = judged_banks({"banks": document["banks"], "domains": document["domains"], **rules})
    assignment = assign_judges(plan, task, tested, specs, graders_of(task, judged), rules)
    if assignment is None:
        raise InputError(f"task '{task.name}' has no judges; name another one with --task")
    refuse_leaving(manifest.leaving, assignment.models.values())
    refuse_unscorable(source, task, forms)
    return task, assignment, plan


def _judged_task(manifest: Manifest, name: str) -> Task:
    """Return the task by which a run's answers are judged: of a run over items of several kinds,
    the one that is named judges those that it can.
    """
    if manifest.own_code is not None and not name:
        return task_of_run(manifest)
    if not manifest.tasks:
        return find_task(name or manifest.task)
    if not name:
        return task_of_run(manifest)
    task = find_task(name)
    parts = {form: find_task(own_name) for form, own_name in manifest.tasks.items()}
    parts |= {form: task for form in parts if form in task.readers}
    return task if set(parts) <= set(task.readers) else tasks_together(parts)


def _assignment_of(source: Run, task: Task, models_file: ModelsSource) -> JudgeAssignment:
    """Return the assignment of judges that a run remembers."""
    document, manifest = source.manifest_document, source.manifest
    if manifest.bench is None:
        raise InputError(f"run {source.id}: has no judges; expected a judged run")
    is_there = not isinstance(models_file, Path) or models_file.exists()
    known_specs = load_models(models_file) if is_there else {}
    specs = {}
    for entry in document["judges"]:
        judge = remembered(entry)
        now = known_specs.get(judge.id)
        same = now is not None and now.to_dict() == entry
        specs[judge.id] = now if now is not None and same else judge
    refuse_leaving(manifest.leaving, specs.values())
    return JudgeAssignment(
        graders=graders_of(task, manifest),
        seats={m: tuple(specs[n] for n in names) for m, names in manifest.bench.items()},
        seed=int(manifest.plan.seed),
    )


def _read_as(source: Run, task: Task) -> ManifestObject:
    """Return which parsers read the answers of the source, where the task that judges them would
    read them otherwise.
    """
    parsers = task_of_run(source.manifest).parsers
    here = {form: parsers.get(form, parser) for form, parser in task.parsers.items()}
    same = here == task.parsers and not task.parser_before
    return {} if same else {"readers": here}
