"""The path, left to right. Read this first.

    bank → prompt → model → answer → score → statistic → publication

`prepare` turns a plan into numbered trials, `run` asks and seals, `leaderboard` reads a sealed
run. Publication lies above, in `audit`, since it joins finished runs.
"""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from medassay.bank.catalog import BANKS
from medassay.bank.folder import bank_record, load_bank
from medassay.bank.lock import register
from medassay.core.canonical import canonical, short_hash
from medassay.core.item import Bank
from medassay.core.leaderboard import Leaderboard
from medassay.core.model import Chat, ModelSpec
from medassay.core.plan import Budget, Plan, load_plan
from medassay.errors import IncompleteError, InputError, Interrupted, ModelError
from medassay.model.baseline import Baseline
from medassay.model.catalog import PROVIDERS
from medassay.model.spec import load_models, remembered
from medassay.runner.asking import Asker, Tally
from medassay.runner.bridge import run_async
from medassay.runner.engine import Engine, Stop
from medassay.runner.judging import (
    Answers,
    Bench,
    Judging,
    judging_sizes,
    seat,
    verdict_number,
)
from medassay.runner.manifest import (
    bank_entry,
    bench_entry,
    run_identity,
    scorer_ids,
    surroundings,
)
from medassay.runner.preview import preview_judge, preview_model
from medassay.runner.progress import Progress, Silent
from medassay.runner.schedule import Schedule
from medassay.storage.journal import Journal
from medassay.storage.response import ResponseStore
from medassay.storage.run import (
    JOURNAL,
    VERDICTS,
    Run,
    create_run,
    latest,
    lock_run,
    open_run,
    tidy,
)
from medassay.task.catalog import TASKS
from medassay.task.judged import judges_of
from medassay.task.scoring import RunItems
from medassay.task.task import Task

# What is counted ("trials", "verdicts"), how many there are and how many are done, by model and domain.
Watch = Callable[
    [str, Counter[tuple[str, str]], Counter[tuple[str, str]]], AbstractContextManager[Progress]
]


def find_bank(name: str, base: Path, lock: Path) -> Bank:
    """Return a bank by folder (relative to `base`), or by name if it is shipped."""
    folder = base / name
    if (folder / "bank.toml").is_file():
        return load_bank(folder, lock=lock)
    if name in BANKS and BANKS[name].checked == "shipped":
        return BANKS[name].load(Path(__file__).parent / "bank" / "demo_bank")
    raise InputError(
        f"bank '{name}': no folder {folder} with a bank.toml, and not shipped; "
        "`medassay bank list` shows the catalogue, `medassay bank import` makes a folder"
    )


def prepare(
    plan: Plan, base: Path, workspace: Path
) -> tuple[Schedule, list[Bank], Bench | None]:
    """Return the schedule of a plan (trials numbered), its banks, and who judges if anyone does."""
    banks = [find_bank(name, base, workspace / "banks.lock") for name in plan.banks]
    specs = load_models(base / plan.models_file)
    schedule = Schedule(plan, banks, specs, find_task(plan.task))
    entries = [bank_entry(bank) for bank in banks]
    rubrics = judges_of(schedule.task, entries, schedule.domains)
    bench = seat(plan, schedule.task, schedule.specs, specs, rubrics)
    refuse_leaving(
        entries, [*schedule.specs.values(), *(bench.models.values() if bench else ())]
    )
    return schedule, banks, bench


def refuse_leaving(banks: Sequence[Mapping[str, Any]], asked: Iterable[ModelSpec]) -> None:
    """Refuse to send a bank that may not leave to an external endpoint, before any call."""
    for bank in banks:
        for spec in asked:
            if bank["may_leave"] or spec.location != "external" or spec.is_scripted:
                continue
            raise InputError(
                f"bank '{bank['name']}' may not leave this place (may_leave = false), but model "
                f"'{spec.id}' is at an external endpoint; no call was made"
            )


def find_task(name: str) -> Task:
    """Return a task by name."""
    if name not in TASKS:
        raise InputError(
            f"plan: task '{name}' is unknown; known are {', '.join(sorted(TASKS))}"
        )
    return TASKS[name]


def run(
    plan: Plan | str | Path,
    *,
    secrets: Mapping[str, str],
    workspace: Path | None = None,
    watch: Watch | None = None,
    fresh: bool = False,
    accept_failures: bool = False,
) -> Run:
    """Ask all models of a plan and return the sealed run; the same call resumes what was cut off.

    Raises
    ------
    InputError
        Before any call, when plan, bank or models file is wrong.
    IncompleteError
        When trials or verdicts failed or the budget ended: the run stays unsealed and resumes.
    ModelError
        When no model can be reached at all.
    Interrupted
        After Ctrl-C; everything answered is kept.
    """
    base = Path.cwd() if isinstance(plan, Plan) else Path(plan).resolve().parent
    wanted = plan if isinstance(plan, Plan) else load_plan(Path(plan))
    workspace = workspace or base
    schedule, banks, bench = prepare(wanted, base, workspace)
    found = _open(schedule, banks, bench, workspace / "runs", fresh=fresh)
    for bank in banks:
        register(workspace / "banks.lock", bank.version, bank.content_hash)
    with lock_run(found), ResponseStore(workspace / "responses") as store:
        if found.sealed:  # by another process, between finding the run and locking it
            tidy(found)
            return found
        specs = {**schedule.specs, **(bench.models if bench else {})}
        chats = make_chats(schedule, specs, secrets)
        asker = Asker(specs, chats, store, wanted.budget, seed=wanted.seed, fresh=fresh)
        journal = Journal(found.path / JOURNAL, schedule.n_trials)
        journal.resume(schedule.number_of)
        items = _answer(found, schedule, journal, asker, watch)
        if not journal.done and asker.tally.dead.keys() >= schedule.specs.keys():
            raise ModelError(
                f"run {found.id}: no model answers: {'; '.join(asker.tally.dead.values())}"
            )
        left = schedule.n_trials - journal.done
        _refuse_incomplete(found, "trials have no answer", left, asker.tally, accept_failures)
        from medassay.runner.finish import finish, write_trials

        write_trials(found, schedule, journal)
        if bench is not None:
            _judge(found, schedule.task, bench, items, asker, watch, accept_failures)
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        finish(found, schedule.task, items, asker.tally.findings, sealed_at=now)
    return open_run(found.path)


def _open(
    schedule: Schedule, banks: list[Bank], bench: Bench | None, runs: Path, *, fresh: bool
) -> Run:
    """Return the unfinished run of the same plan, or a new one."""
    identity = run_identity(schedule, banks, bench)
    plan_hash = schedule.plan.hash
    counter, last = latest(runs, plan_hash)
    if last is not None and last.sealed:
        tidy(last)
    if last is not None and not last.sealed and not fresh and _same(last, identity):
        return last
    created = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    name = f"{plan_hash}-{counter + 1}"
    manifest = {**identity, "name": schedule.plan.name, "created_at": created, **surroundings()}
    return create_run(runs, name, manifest)


def _same(run: Run, identity: Mapping[str, Any]) -> bool:
    return all(canonical(run.manifest.get(k)) == canonical(v) for k, v in identity.items())


def _answer(
    run: Run, schedule: Schedule, journal: Journal, asker: Asker, watch: Watch | None
) -> RunItems:
    """Ask what has no answer yet; return the run's items, written down meanwhile."""
    sizes: Counter[tuple[str, str]] = Counter()
    done: Counter[tuple[str, str]] = Counter()
    for cell in schedule.cells:
        numbers = range(cell.base, cell.base + schedule.size(cell))
        sizes[cell.model, cell.domain] += len(numbers)
        done[cell.model, cell.domain] += sum(map(journal.is_done, numbers))
    stop = Stop()
    with _watching(watch, "trials", sizes, done) as progress:
        engine = Engine(schedule, asker, journal, progress, stop)
        try:
            with ThreadPoolExecutor(max_workers=1) as aside:
                items = aside.submit(_keep_items, run, schedule)
                run_async(lambda: asker.during(engine.run()), stop.ask)
        finally:
            journal.close()
    _hear(stop, "trials are answered", journal.done, schedule.n_trials)
    return items.result()


def _keep_items(run: Run, schedule: Schedule) -> RunItems:
    """Write down and index the items of a run: what finishing needs, done while the models answer."""
    import medassay.runner.finish  # noqa: F401 -- numpy and the statistics

    kept = run.path / "items.jsonl"
    if not kept.exists():
        part = kept.with_suffix(".part")
        with part.open("wb") as file:
            for bank, position in schedule.items():
                file.write(canonical(bank_record(bank, position)) + b"\n")
        part.rename(kept)
    return RunItems(run.path, run.manifest["domains"])


def _judge(
    run: Run,
    task: Task,
    bench: Bench,
    items: RunItems,
    asker: Asker,
    watch: Watch | None,
    accept_failures: bool,
) -> None:
    """Ask for the verdicts that are not there yet, and write verdicts and scores."""
    from medassay.runner.finish import write_verdicts

    answers = Answers(run, items, task)
    journal = Journal(run.path / VERDICTS, len(answers) * bench.n_seats)
    journal.resume(lambda record: verdict_number(answers, bench, record))
    sizes, done = judging_sizes(answers, bench, journal)
    stop = Stop()
    before = asker.tally.failed
    with _watching(watch, "verdicts", sizes, done) as progress:
        judging = Judging(answers, bench, asker, journal, progress, stop)
        try:
            run_async(lambda: asker.during(judging.run()), stop.ask)
        finally:
            journal.close()
    total = sizes.total()
    _hear(stop, "verdicts are there", journal.done, total)
    asker.tally.failed -= before
    left = total - journal.done
    _refuse_incomplete(run, "verdicts are missing", left, asker.tally, accept_failures)
    write_verdicts(run, answers, bench, journal)


def _watching(
    watch: Watch | None,
    what: str,
    sizes: Counter[tuple[str, str]],
    done: Counter[tuple[str, str]],
) -> AbstractContextManager[Progress]:
    return watch(what, sizes, done) if watch else nullcontext(Silent())


def _hear(stop: Stop, what: str, done: int, total: int) -> None:
    if stop.soon and done < total:
        raise Interrupted(
            f"stopped: {done} of {total} {what} and kept; the same command resumes"
        )


def _refuse_incomplete(
    run: Run, what: str, left: int, tally: Tally, accept_failures: bool
) -> None:
    if not left or (accept_failures and left == tally.failed):
        return
    reasons = sorted(tally.failures.items(), key=lambda pair: -pair[1])
    shown = "; ".join(f"{count} × {reason}" for reason, count in reasons[:3])
    why = "the budget is spent" if tally.over_budget else f"{tally.failed} failed ({shown})"
    raise IncompleteError(
        f"run {run.id}: {left} {what}: {why}; the same command resumes, "
        "--accept-failures seals the run with them null and counted"
    )


@dataclass(frozen=True, kw_only=True)
class Sitting:
    """Who shall judge the answers of a finished run, and how; `task` "" is the run's own."""

    judges: Sequence[str]
    models_file: Path
    task: str = ""
    substitute: str = ""
    allow_own: bool = False


def judge_run(
    run: Run | str | Path,
    sitting: Sitting,
    *,
    secrets: Mapping[str, str],
    workspace: Path | None = None,
    watch: Watch | None = None,
    accept_failures: bool = False,
) -> Run:
    """Judge the stored answers of a sealed run, and return a new sealed run; no model is asked again.

    Parameters
    ----------
    workspace : folder of runs/ and responses/; default: that of the run

    Raises
    ------
    InputError, IncompleteError, Interrupted
        As `run` does.
    """
    source = run if isinstance(run, Run) else open_run(Path(run))
    if not source.sealed:
        raise IncompleteError(
            f"run {source.path.name}: not finished; only sealed runs are judged"
        )
    workspace = workspace or source.path.resolve().parents[1]
    manifest = {k: v for k, v in source.manifest.items() if k not in _MADE_ANEW}
    wanted = find_task(sitting.task or manifest["task"])
    specs = load_models(sitting.models_file)
    tested = {name: remembered(entry) for name, entry in manifest["models"].items()}
    plan = replace(
        Plan(banks=("",), models=("",)),
        judges=tuple(sitting.judges),
        substitute=sitting.substitute,
        allow_own=sitting.allow_own,
        models_file=sitting.models_file.name,
        seed=int(manifest["plan"]["seed"]),
    )
    rubrics = judges_of(wanted, manifest["banks"], manifest["domains"])
    bench = seat(plan, wanted, tested, specs, rubrics)
    if bench is None:
        raise InputError(f"task '{wanted.name}' has no judges; name another one with --task")
    refuse_leaving(manifest["banks"], bench.models.values())
    identity = {
        **manifest,
        "task": wanted.name,
        **bench_entry(bench),
        "methodology": short_hash([manifest["methodology"], wanted.name, bench_entry(bench)]),
        "judged_from": {"run": source.id, "root": source.seal["root"]},
    }
    found = _derived(source, identity, workspace / "runs")
    with lock_run(found), ResponseStore(workspace / "responses") as store:
        from medassay.runner.finish import copy_answers, finish, write_scores

        copy_answers(source, found)
        items = _scorable(found, wanted)
        write_scores(found, wanted, items)
        chats = {n: provide(spec, secrets) for n, spec in bench.models.items()}
        asker = Asker(bench.models, chats, store, Budget(), seed=plan.seed)
        _judge(found, wanted, bench, items, asker, watch, accept_failures)
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        finish(found, wanted, items, asker.tally.findings, sealed_at=now)
    return open_run(found.path)


def rescore(
    run: Run | str | Path,
    *,
    contradiction_penalty: float | None = None,
    workspace: Path | None = None,
) -> Run:
    """Score the stored answers and verdicts of a sealed run anew, and return a new sealed run.

    Nothing is asked; the code's scorers of today apply.

    Parameters
    ----------
    contradiction_penalty : λ of target facts, in [0, 1]; None keeps that of each bank
    workspace : folder of runs/; default: that of the run
    """
    source = run if isinstance(run, Run) else open_run(Path(run))
    if not source.sealed:
        raise IncompleteError(
            f"run {source.path.name}: not finished; only sealed runs are scored"
        )
    if contradiction_penalty is not None and not 0 <= contradiction_penalty <= 1:
        raise InputError(f"contradiction penalty {contradiction_penalty:g}; expected 0 to 1")
    workspace = workspace or source.path.resolve().parents[1]
    kept = ("schema_version", "run", "created_at", "code", "scorers", "packages", "machine")
    identity = {k: v for k, v in source.manifest.items() if k not in kept}
    if contradiction_penalty is not None:
        identity["banks"] = [
            {**bank, "contradiction_penalty": contradiction_penalty}
            for bank in identity["banks"]
        ]
    task = find_task(identity["task"])
    judges = (
        judges_of(task, identity["banks"], identity["domains"]) if "bench" in identity else {}
    )
    if judges:
        identity["rubrics"] = {domain: judge.id for domain, judge in judges.items()}
    identity["methodology"] = short_hash(
        [identity["methodology"], scorer_ids(), identity.get("rubrics"), contradiction_penalty]
    )
    identity["rescored_from"] = {"run": source.id, "root": source.seal["root"]}
    found = _derived(source, identity, workspace / "runs")
    with lock_run(found):
        from medassay.runner.finish import copy_answers, finish, rescore_verdicts, write_scores

        copy_answers(source, found)
        items = _scorable(found, task)
        write_scores(found, task, items)
        if judges:
            rescore_verdicts(source, found, items, judges)
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        finish(found, task, items, [], sealed_at=now)
    return open_run(found.path)


def _derived(source: Run, identity: dict[str, Any], runs: Path) -> Run:
    """Return the unfinished run made from `source` in this way, or a new one."""
    name = f"{source.id}-{short_hash(identity)}"
    counter, last = latest(runs, name)
    if last is not None and not last.sealed:
        return last
    created = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    made = {**identity, "created_at": created, **surroundings()}
    return create_run(runs, f"{name}-{counter + 1}", made)


def _scorable(run: Run, task: Task) -> RunItems:
    """Return the items of a run, all of forms that a task can score."""
    items = RunItems(run.path, run.manifest["domains"])
    strange = items.forms - task.readers.keys()
    if strange:
        raise InputError(
            f"run {run.id}: holds items of form {', '.join(sorted(strange))}, which task "
            f"'{task.name}' cannot score; its forms are {', '.join(sorted(task.readers))}"
        )
    return items


_MADE_ANEW = frozenset(
    [
        "schema_version",
        "run",
        "created_at",
        "code",
        "parsers",
        "scorers",
        "python",
        "packages",
        "machine",
        "judges",
        "bench",
        "rubrics",
        "judged_from",
    ]
)


def make_chats(
    schedule: Schedule, specs: Mapping[str, ModelSpec], secrets: Mapping[str, str]
) -> dict[str, Chat]:
    """Return a provider for each model; each sees only the secrets that its entry names."""
    chats: dict[str, Chat] = {}
    for name, spec in specs.items():
        chat = provide(spec, secrets)
        if isinstance(chat, Baseline) and spec.sent_name == "majority":
            chat.majority = schedule.majority()
        chats[name] = chat
    return chats


def provide(spec: ModelSpec, secrets: Mapping[str, str]) -> Chat:
    """Return the provider of one entry, which sees only the secrets that the entry names."""
    return PROVIDERS[spec.provider](spec, named_secrets(spec, secrets))


def named_secrets(spec: ModelSpec, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that an entry names and that are set."""
    names = [spec.api_key_env, *spec.headers_env.values()]
    return {name: secrets[name] for name in names if name and secrets.get(name)}


def leaderboard(run: Run | str | Path) -> Leaderboard:
    """Return the rankings of a sealed run."""
    found = run if isinstance(run, Run) else open_run(Path(run))
    if not found.sealed:
        raise IncompleteError(f"run {found.id}: not finished; run its plan again to resume it")
    statistics: dict[str, Any] = found.statistics
    return Leaderboard(run=found.id, domains=statistics["domains"])


def preview(plan: Plan | str | Path, *, workspace: Path | None = None) -> dict[str, Any]:
    """Return what a run would ask, judges among it: calls, replies already stored, upper bounds."""
    base = Path.cwd() if isinstance(plan, Plan) else Path(plan).resolve().parent
    wanted = plan if isinstance(plan, Plan) else load_plan(Path(plan))
    workspace = workspace or base
    schedule, _, bench = prepare(wanted, base, workspace)
    with ResponseStore(workspace / "responses") as store:
        rows = [preview_model(schedule, spec, store) for spec in schedule.specs.values()]
    if bench is not None:
        rows += [preview_judge(schedule, bench, spec) for spec in bench.models.values()]
    totals = {
        name: sum(row[name] for row in rows) for name in ("calls", "stored", "tokens", "money")
    }
    return {"trials": schedule.n_trials, **totals, "models": rows}


def has_prices(plan: Path) -> bool:
    """Return whether any model or judge of a plan has a price, so that a run may cost money."""
    wanted = load_plan(plan)
    specs = load_models(plan.resolve().parent / wanted.models_file)
    asked = {*wanted.models, *wanted.judges, wanted.substitute}
    prices = [specs[name].price for name in asked if name in specs]
    return any(price.input or price.output for price in prices)
