"""The path, left to right. Read this first.

    bank → prompt → model → answer → score → statistic → publication

`prepare` turns a plan into numbered trials, `run` asks and seals, `leaderboard` reads a sealed
run. Publication lies above, in `audit`, since it joins finished runs.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medassay.bank.catalog import BANKS
from medassay.bank.folder import load_bank
from medassay.bank.loaders.demo import SHIPPED
from medassay.bank.lock import register
from medassay.bank.run_items import RunItems
from medassay.context.tools.schema import tool_schema
from medassay.core.again import Again, read_again
from medassay.core.amount import NOTHING
from medassay.core.canonical import canonical
from medassay.core.log import log
from medassay.core.records.context_config import CONTEXTS
from medassay.core.records.item import Bank
from medassay.core.records.leaderboard import Leaderboard, told_fallback
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import DdxRules, Plan, load_plan
from medassay.core.records.task import Task
from medassay.errors import IncompleteError, InputError, OverBudget, UsageError
from medassay.judging.assignment import JudgeAssignment, assign_judges
from medassay.judging.graders.steps import load_steps
from medassay.kinds.catalog import task_of_plan
from medassay.kinds.diagnoses.tasks import aggregated_by, case_scores, remembered_rules
from medassay.kinds.graders import graders_of, remembered_graphs
from medassay.model.spec import load_models
from medassay.runner.answer_stage import AnswerStageSpec
from medassay.runner.ask import Asker
from medassay.runner.context import Contexts, embedding_entry
from medassay.runner.engine.catalog import engine_of, refuse_unknown
from medassay.runner.engine.lease import await_dead, held
from medassay.runner.manifest import bank_entry, run_identity, surroundings
from medassay.runner.measure import gauges_of, measure
from medassay.runner.preview import (
    held_against,
    judged_cases,
    preview_judge,
    preview_model,
    priced,
    totals,
)
from medassay.runner.providing import all_named_secrets, knows_majority, make_chats
from medassay.runner.replication import compare_with_stored, stored_run
from medassay.runner.reply_room import room_of, told_room
from medassay.runner.retrying import journalled, sealed, trials_again
from medassay.runner.schedule import Schedule
from medassay.runner.spending import spending, spent_by
from medassay.runner.stages import (
    ProgressFactory,
    RunContext,
    answer,
    judge,
    refuse_given_up,
    refuse_incomplete,
    refuse_leaving,
)
from medassay.storage.journal import Journal
from medassay.storage.remote import carry_home, fetch_runs, left_behind, open_workspace
from medassay.storage.response import ResponseStore
from medassay.storage.run import (
    JOURNAL,
    Run,
    create_run,
    latest,
    lock_run,
    open_run,
    runs_of_plan,
    tidy,
)

if TYPE_CHECKING:
    from medassay.report.plot.figure import Figure


def find_bank(name: str, base: Path, lock: Path) -> Bank:
    """Return a bank by folder (relative to `base`), or by name if it is shipped."""
    folder = base / name
    if (folder / "bank.toml").is_file():
        return load_bank(folder, lock=lock)
    if name in BANKS and BANKS[name].checked == "shipped":
        return BANKS[name].load(SHIPPED / BANKS[name].folder)
    raise InputError(
        f"bank '{name}': no folder {folder} with a bank.toml, and not shipped; "
        "`medassay bank list` shows the catalogue, `medassay bank import` makes a folder"
    )


def prepare(
    plan: Plan, base: Path, workspace: Path
) -> tuple[Schedule, list[Bank], JudgeAssignment | None]:
    """Return the schedule of a plan (trials numbered), its banks, and who judges if anyone does."""
    banks = [find_bank(name, base, workspace / "banks.lock") for name in plan.banks]
    specs = load_models(base / plan.models_file)
    schedule = Schedule(plan, banks, specs, task_of_plan(plan))
    for name in plan.engine.replicas:
        if not specs[name].in_process:
            raise InputError(
                f"plan: 'engine.replicas' names '{name}', whose weights are not loaded here"
                f" (provider '{specs[name].provider}'); leave it out"
            )
    schedule.room = room_of(schedule)
    entries = [bank_entry(bank) for bank in banks]
    rules: dict[str, Any] = {}
    if plan.steps:
        rules["steps"] = load_steps(base / plan.steps).to_dict()
    rules |= remembered_graphs(schedule.task, plan.graphs, base)
    if "diagnoses" in schedule.task.readers:
        golden = (bank.items[at].diagnoses[0] for bank, at in schedule.items())
        rules["ddx"] = remembered_rules(plan.ddx, golden, base)
    if plan.retrieval is not None or set(plan.settings) & set(CONTEXTS):
        schedule.contexts = Contexts(plan, base, workspace)
        schedule.contexts.check(bank.items[at] for bank, at in schedule.items())
    if plan.tools is not None:
        schedule.tools = tool_schema(plan.tools)
    remembered = {"banks": entries, "domains": schedule.domains, **rules}
    rubrics = graders_of(schedule.task, remembered)
    bench = assign_judges(plan, schedule.task, schedule.specs, specs, rubrics, rules)
    asked_specs = [*schedule.specs.values(), *(bench.models.values() if bench else ())]
    if schedule.contexts is not None:
        embedding = embedding_entry(schedule.contexts.index)
        asked_specs += [specs[embedding]] if embedding in specs else []
    refuse_leaving(entries, asked_specs, plan.tools)
    return schedule, banks, bench


def run(  # noqa: PLR0913 -- each is an option of the verb
    plan: Plan | str | Path,
    *,
    secrets: Mapping[str, str],
    workspace: Path | str | None = None,
    watch: ProgressFactory | None = None,
    fresh: bool = False,
    accept_failures: bool = False,
    again: str = "",
    engine: str = "local",
    tell: Callable[[str], None] = lambda line: None,
) -> Run:
    """Ask all models of a plan and return the sealed run; the same call resumes what was cut off.

    Parameters
    ----------
    workspace : folder of runs/, responses/ and banks.lock, or an address in an object store, as
        s3://bucket/work
    again : what is asked once more of the last run of this plan: classes of replies that could not
        be used ("empty", "truncated", "refused"; "unusable" for verdicts), comma-separated, and
        ":MODEL" for one model or judge alone; of a sealed run it makes a new one that names the
        first
    engine : "local", or "ray" for several processes or machines; either resumes what the other
        began
    tell : called, before anything is asked, with each line that a user must know: models asked
        otherwise than the plan says

    Raises
    ------
    InputError
        Before any call, when plan, bank or models file is wrong.
    IncompleteError
        When trials or verdicts failed or the budget ended: the run stays unsealed and resumes.
    ModelError
        When every model, or every judge, is given up.
    Interrupted
        After Ctrl-C; everything answered is kept.
    """
    base = Path.cwd() if isinstance(plan, Plan) else Path(plan).resolve().parent
    plan_read = plan if isinstance(plan, Plan) else load_plan(Path(plan))
    refuse_unknown(engine)
    workspace = open_workspace(workspace or base, plan_read.hash)
    schedule, banks, bench = prepare(plan_read, base, workspace)
    gauges = gauges_of(plan_read.metrics, schedule.task)
    for line in (*told_fallback(schedule.fallback), *schedule.unused, *told_room(schedule)):
        tell(line)
    identity = run_identity(schedule, banks, bench, gauges.to_dict())
    contents = [bank.content_hash for bank in banks]
    stored = stored_run(workspace / "runs", schedule.plan.hash, contents) if fresh else None
    if fresh:
        identity["fresh_of"] = stored.id if stored else None
    repeated = _repeated(workspace / "runs", plan_read, again, fresh=fresh) if again else None
    if repeated is not None and repeated[1] is not None:
        identity["again_of"] = _named(repeated[1], again)
    current = _find(workspace / "runs", schedule.plan, identity, tell)
    if current.sealed:
        return current
    for bank in banks:
        register(workspace / "banks.lock", bank.version, bank.content_hash)
    await_dead(current.path, tell)
    fetch_runs(workspace, schedule.plan.hash)  # what others did until they ended
    with lock_run(current), held(current.path) as in_doubt:
        specs = {**schedule.specs, **(bench.models if bench else {})}
        searching = _embedder_of(schedule, base / plan_read.models_file)
        with (
            ResponseStore(workspace / "responses") as store,
            spending(
                workspace, current.id, specs | searching, store, plan_read.budget, fresh=fresh
            ) as purse,
        ):
            if current.sealed:  # by another process, between finding the run and locking it
                tidy(current)
                return current
            majority = schedule.majority() if knows_majority(specs) else {}
            portable = AnswerStageSpec(schedule, base / plan_read.models_file, majority)
            named = all_named_secrets(specs.values(), secrets, portable.secret_names)
            means = RunContext(
                asker=Asker(
                    specs,
                    make_chats(specs, secrets, majority),
                    store,
                    purse,
                    seed=plan_read.seed,
                    rules=plan_read.engine,
                    fresh=fresh,
                ),
                engine=engine_of(engine, plan_read.engine, workspace / "responses", named),
                watch=watch,
                accept_failures=accept_failures,
                in_doubt=in_doubt,
                again=None if repeated is None else repeated[0],
                source=None if repeated is None else repeated[1],
            )
            items = _ask(current, portable, means, secrets)
            if bench is not None:
                judge(current, schedule.task, bench, items, means)
            measure(current, items, gauges, workspace, watch, means.engine)
            _seal(current, schedule.task, items, stored)
        carry_home(current.path)
    return open_run(current.path)


def _embedder_of(schedule: Schedule, models_file: Path) -> dict[str, ModelSpec]:
    """Return the entry that queries are sent to, by its name; {} where nobody is asked."""
    name = "" if schedule.contexts is None else embedding_entry(schedule.contexts.index)
    return {name: load_models(models_file)[name]} if name else {}


def _repeated(runs: Path, plan: Plan, again: str, *, fresh: bool) -> tuple[Again, Run | None]:
    """Return what is asked once more, and the sealed run whose replies they are.

    None where the last run is not sealed.

    Raises
    ------
    InputError
        When nothing was run yet, or a model or judge is not of this plan.
    """
    again_rule = read_again(again)
    if fresh:
        raise UsageError(
            "--again asks for some replies once more, --fresh for all: give one of them"
        )
    _, last = latest(runs, plan.hash)
    if last is None:
        raise InputError(f"--again {again}: this plan was not run yet; run it first")
    names = {*plan.models, *plan.judges, plan.substitute}
    if again_rule.model and again_rule.model not in names:
        raise InputError(
            f"--again {again}: '{again_rule.model}' is no model or judge of this plan; expected"
            " one of " + ", ".join(sorted(names - {""}))
        )
    if not last.sealed:
        again_of = last.manifest.get("again_of")
        return again_rule, (
            open_run(runs / again_of["run"])
            if again_of and again_of["of"] == str(again_rule)
            else None
        )
    return again_rule, last


def _named(source: Run, again: str) -> dict[str, str]:
    """Return how a run names the one whose replies are asked once more."""
    return {"run": source.id, "root": source.seal["root"], "of": str(read_again(again))}


def _find(runs: Path, plan: Plan, identity: Mapping[str, Any], tell: Callable[[str], None]) -> Run:
    """Return the run to do.

    A sealed one where nothing is left to do, or only to carry it to its object store.
    """
    _, late = latest(runs, plan.hash)
    if late is not None and left_behind(late.path):
        tell(f"run {late.id} is sealed here; it is carried over to the object store")
        carry_home(late.path)
        if "fresh_of" not in identity and _same(late, identity):
            return late
    done = None if "fresh_of" in identity else _finished(runs, plan, identity)
    if done is not None:
        tidy(done)  # it may have been killed just behind the seal
        log.say(
            f"run {done.id} of this plan is finished, nothing is asked; --fresh asks all of it"
            " anew, --again what could not be used"
        )
        return done
    return _open(plan.hash, identity, plan.name, runs)


def _finished(runs: Path, plan: Plan, identity: Mapping[str, Any]) -> Run | None:
    """Return the last sealed run of the same identity.

    None where a later one waits to be finished, or where something failed.
    """
    for run in reversed(runs_of_plan(runs, plan.hash)):
        if "fresh_of" in run.manifest or not _same(run, identity):
            continue
        return run if run.sealed and not _has_failures(run) else None
    return None


def _has_failures(run: Run) -> bool:
    """Return whether trials or verdicts of a sealed run failed, so that asking again may bring
    them.
    """
    return any(
        row["outcomes"]["failed"] or row.get("judge_failures")
        for row in run.statistics["domains"]["overall"]
    )


def _ask(
    run_: Run, portable: AnswerStageSpec, means: RunContext, secrets: Mapping[str, str]
) -> RunItems:
    """Ask what was not asked yet and write the trials; return the items of the run.

    Raises
    ------
    ModelError
        When every model is given up.
    IncompleteError
        When trials failed or the budget ended.
    """
    schedule, tally = portable.schedule, means.asker.tally
    journal = Journal(run_.path / JOURNAL, schedule.n_trials)
    journal.resume(schedule.number_of)
    portable = _asked_again(portable, journal, means)
    if schedule.contexts is not None and journal.done < schedule.n_trials:
        items_asked = (bank.items[at] for bank, at in schedule.items())
        try:
            schedule.contexts.find(
                items_asked, portable.models_file, secrets, means.watch, means.asker.purse
            )
        except OverBudget as over:
            raise IncompleteError(f"run {run_.id}: {over}; the same command resumes") from None
    items = answer(run_, portable, journal, means, secrets)
    n_left = schedule.n_trials - journal.done
    if not (means.accept_failures and journal.done):
        models = {name for name, spec in schedule.specs.items() if not spec.is_baseline}
        refuse_given_up(run_, "model", n_left, models, tally)
    refuse_incomplete(run_, "trials have no answer", n_left, tally, means.accept_failures)
    from medassay.runner.finish import write_trials

    write_trials(run_, schedule, journal)
    return items


def _asked_again(portable: AnswerStageSpec, journal: Journal, means: RunContext) -> AnswerStageSpec:
    """Return the stage with the trials that are asked once more.

    In the journal they are no longer done.
    """
    if means.again is None:
        return portable
    if means.source is not None:
        path = means.source.path / "trials.jsonl"
        attempts, _ = trials_again(sealed(path, portable.schedule.number_of), means.again)
    else:
        attempts, chosen = trials_again(journalled(journal), means.again)
        for number in chosen:
            journal.forget(number)
    return replace(portable, again=attempts)


def _seal(run_: Run, task: Task, items: RunItems, stored: Run | None) -> None:
    """Compute the statistics of a run, hold it against the stored one of the same plan, and seal
    it.
    """
    from medassay.runner.finish import finish

    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    findings = []
    if stored is not None:
        findings = compare_with_stored(stored, run_, task, items, opened=now)
    finish(run_, task, items, findings, sealed_at=now)


def _open(plan_hash: str, identity: Mapping[str, Any], title: str, runs: Path) -> Run:
    """Return the unfinished run of the same identity, or a new one.

    Fresh runs resume fresh ones only.
    """
    counter, last = latest(runs, plan_hash)
    if last is not None and last.sealed:
        tidy(last)
    for run in reversed(runs_of_plan(runs, plan_hash)):
        alike = all((name in run.manifest) == (name in identity) for name in _ASIDE)
        if not run.sealed and alike and _same(run, identity):
            return run
    created = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    name = f"{plan_hash}-{counter + 1}"
    around = surroundings(identity["models"])
    manifest = {**identity, "name": title, "created_at": created, **around}
    return create_run(runs, name, manifest)


_ASIDE = ("fresh_of", "again_of")  # of runs that resume only runs of their kind


def _same(run: Run, identity: Mapping[str, Any]) -> bool:
    """Return whether a run was begun with this identity.

    Graders and revisions stand in the methodology, too.
    """
    return all(
        canonical(run.manifest.get(name)) == canonical(value)
        for name, value in identity.items()
        if name not in ("rubrics", "judge_prompts", "revisions")
    )


def leaderboard(run: Run | str | Path, *, ddx: DdxRules | None = None) -> Leaderboard:
    """Return the rankings of a sealed run.

    `ddx` are other rules for the aggregates of ranked diagnoses (preset, k and x0, semantic_max).
    """
    opened = run if isinstance(run, Run) else open_run(Path(run))
    if not opened.sealed:
        raise IncompleteError(f"run {opened.id}: not finished; run its plan again to resume it")
    statistics: dict[str, Any] = opened.statistics
    if ddx is not None:
        statistics = aggregated_by(opened, ddx)
    return Leaderboard(
        run=opened.id,
        domains=statistics["domains"],
        by_kind=statistics.get("by_kind"),
        ddx=statistics.get("ddx"),
    )


def figure(run: Run | str | Path, name: str = "forest", *, ddx: DdxRules | None = None) -> "Figure":
    """Return a figure of a sealed run, for notebooks and files: the bytes are those of the board.

    Parameters
    ----------
    name : "forest", pairs of models over all domains; "bars", every model in every domain; of
        ranked diagnoses also "quadrant", "semantic" and "severity" (violins), "top"; of Relaxed
        Perplexity "positions"
    ddx : other rules for the aggregates of ranked diagnoses

    Raises
    ------
    InputError
        When there is no such figure, or nothing to draw.
    """
    from medassay.report.pages.compare import pairs_figure
    from medassay.report.plot.bars import bars

    opened = run if isinstance(run, Run) else open_run(Path(run))
    board = leaderboard(opened)
    drawing: Figure | None
    mode = sorted(opened.statistics["fields"], key=lambda mode_: (mode_ != "solo", mode_))[0]
    if name == "forest":
        drawing = pairs_figure(opened.statistics, mode)
    elif name == "bars":
        rows = [
            {**row, "domain": domain, "model": f"{row['model']} · {row['setting']}"}
            for domain, rows_of_domain in board.domains.items()
            for row in rows_of_domain
            if domain != "overall" and row["mode"] == mode and row["score"] is not None
        ]
        hundred = bool(rows) and rows[0]["scale"] == [0, 1]
        unit = f"{rows[0]['metric']}, %" if hundred else "score"
        drawing = bars(rows, by="domain", group="model", unit=unit, factor=100 if hundred else 1)
    elif name in DDX_FIGURES and "ddx" in opened.statistics:
        statistics = aggregated_by(opened, ddx) if ddx else opened.statistics
        drawing = ddx_figure(opened, statistics, name, mode)
    elif name == "positions" and "likelihood" in opened.statistics:
        from medassay.kinds.likelihood.page import positions_figure

        drawing = positions_figure(
            [r for r in board.domains["overall"] if r["mode"] == mode], "must"
        )
    else:
        names = ["forest", "bars", *(DDX_FIGURES if "ddx" in opened.statistics else ())]
        names += ["positions"] if "likelihood" in opened.statistics else []
        raise InputError(f"figure '{name}': expected {', '.join(names)}")
    if drawing is None or not drawing.rows:
        raise InputError(
            f"run {opened.id}: nothing to draw as {name}: too few models, or no such score"
        )
    return drawing


DDX_FIGURES = ("quadrant", "semantic", "severity", "top")


def ddx_figure(run: Run, statistics: Mapping[str, Any], name: str, mode: str) -> "Figure | None":
    """Return a figure of ranked diagnoses, None where there is nothing to draw."""
    from medassay.kinds.diagnoses import page as ddx

    rows = [r for r in statistics["domains"]["overall"] if r["mode"] == mode]
    if name == "quadrant":
        return ddx.plane_figure(statistics, mode)
    if name == "top":
        return ddx.top_figure(rows)
    return ddx.violin_figure(case_scores(run, name, mode), rows, name)


def preview(plan: Plan | str | Path, *, workspace: Path | str | None = None) -> dict[str, Any]:
    """Return what a run would ask, judges among it: calls, replies already stored, upper bounds."""
    base = Path.cwd() if isinstance(plan, Plan) else Path(plan).resolve().parent
    plan_read = plan if isinstance(plan, Plan) else load_plan(Path(plan))
    workspace = open_workspace(workspace or base, plan_read.hash)
    schedule, _, bench = prepare(plan_read, base, workspace)
    if schedule.contexts is not None:
        schedule.contexts.assumed = True
    with ResponseStore(workspace / "responses") as store:
        rows = [preview_model(schedule, spec, store) for spec in schedule.specs.values()]
        if bench is not None:
            judged, judges = judged_cases(schedule, bench, store), bench.models.values()
            rows += [preview_judge(schedule, bench, spec, judged, store) for spec in judges]
        _, last = latest(workspace / "runs", plan_read.hash)
        resumed = "" if last is None or last.sealed else last.id
        spent = spent_by(workspace, resumed, store) if resumed else NOTHING
    fallback = {"fallback": schedule.fallback} if schedule.fallback else {}
    lines = [*schedule.unused, *told_room(schedule)]
    limits = {"limits": lines} if lines else {}
    to_come = totals(rows)
    held = held_against(plan_read.budget, spent, to_come)
    document = {**to_come, "models": rows, **fallback, **limits, **held}
    return {"trials": schedule.n_trials, **document}


def has_prices(plan: Path) -> bool:
    """Return whether any model or judge of a plan has a price, so that a run may cost money."""
    plan_read = load_plan(plan)
    models_file = plan.resolve().parent / plan_read.models_file
    return priced(models_file, {*plan_read.models, *plan_read.judges, plan_read.substitute})
