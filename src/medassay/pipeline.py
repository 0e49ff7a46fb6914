"""The path, left to right. Read this first.

    bank → prompt → model → answer → score → statistic → publication

`prepare` turns a plan into numbered trials, `run` asks and seals, `leaderboard` reads a sealed
run. Publication lies above, in `audit`, since it joins finished runs.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from medassay.bank.catalog import BANKS
from medassay.bank.folder import bank_record, load_bank
from medassay.bank.lock import register
from medassay.core.canonical import canonical
from medassay.core.item import Bank
from medassay.core.leaderboard import Leaderboard
from medassay.core.model import Chat, ModelSpec
from medassay.core.plan import Plan, load_plan
from medassay.errors import IncompleteError, InputError, Interrupted, ModelError
from medassay.model.baseline import Baseline
from medassay.model.catalog import PROVIDERS
from medassay.model.spec import load_models
from medassay.runner.bridge import run_async
from medassay.runner.engine import Engine, Tally
from medassay.runner.manifest import run_identity, surroundings
from medassay.runner.preview import preview_model
from medassay.runner.progress import Progress, Silent
from medassay.runner.schedule import Schedule
from medassay.storage.journal import Journal
from medassay.storage.response import ResponseStore
from medassay.storage.run import Run, create_run, latest, lock_run, open_run, tidy
from medassay.task.catalog import TASKS
from medassay.task.scoring import RunItems

Watch = Callable[[Schedule, Journal], AbstractContextManager[Progress]]


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


def prepare(plan: Plan, base: Path, workspace: Path) -> tuple[Schedule, list[Bank]]:
    """Return the schedule of a plan: banks loaded, models checked, trials numbered."""
    banks = [find_bank(name, base, workspace / "banks.lock") for name in plan.banks]
    specs = load_models(base / plan.models_file)
    schedule = Schedule(plan, banks, specs, TASKS["closed"])
    for bank in banks:
        for spec in schedule.specs.values():
            if not bank.may_leave and spec.location == "external" and spec.url:
                raise InputError(
                    f"bank '{bank.name}' may not leave this place (may_leave = false), but model "
                    f"'{spec.id}' is at an external endpoint; no call was made"
                )
    return schedule, banks


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
        When trials failed or the budget ended: the run stays unsealed and resumes.
    ModelError
        When no model can be reached at all.
    Interrupted
        After Ctrl-C; everything answered is kept.
    """
    base = Path.cwd() if isinstance(plan, Plan) else Path(plan).resolve().parent
    wanted = plan if isinstance(plan, Plan) else load_plan(Path(plan))
    workspace = workspace or base
    schedule, banks = prepare(wanted, base, workspace)
    found = _open(schedule, banks, workspace / "runs", fresh=fresh)
    for bank in banks:
        register(workspace / "banks.lock", bank.version, bank.content_hash)
    with lock_run(found):
        if found.sealed:  # by another process, between finding the run and locking it
            tidy(found)
            return found
        journal = Journal(found.path / "journal", schedule.n_trials)
        journal.resume(schedule.number_of)
        tally, items = _ask(found, schedule, journal, workspace, secrets, watch, fresh=fresh)
        left = schedule.n_trials - journal.done
        if not journal.done and tally.dead.keys() == schedule.specs.keys():
            raise ModelError(
                f"run {found.id}: no model answers: {'; '.join(tally.dead.values())}"
            )
        if left and not (accept_failures and left == tally.failed):
            raise IncompleteError(_what_is_left(found, left, tally))
        from medassay.runner.finish import finish, write_trials

        write_trials(found, schedule, journal)
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        finish(found, schedule.task, items, tally.findings, sealed_at=now)
    return open_run(found.path)


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


def _open(schedule: Schedule, banks: list[Bank], runs: Path, *, fresh: bool) -> Run:
    """Return the unfinished run of the same plan, or a new one."""
    identity = run_identity(schedule, banks)
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


def _ask(
    run: Run,
    schedule: Schedule,
    journal: Journal,
    workspace: Path,
    secrets: Mapping[str, str],
    watch: Watch | None,
    *,
    fresh: bool,
) -> tuple[Tally, RunItems]:
    watching: AbstractContextManager[Progress] = (
        watch(schedule, journal) if watch else nullcontext(Silent())
    )
    with ResponseStore(workspace / "responses") as store, watching as progress:
        chats = make_chats(schedule, secrets)
        engine = Engine(schedule, chats, store, journal, progress, fresh=fresh)

        def stop() -> None:
            engine.stop.soon = True

        try:
            with ThreadPoolExecutor(max_workers=1) as aside:
                items = aside.submit(_keep_items, run, schedule)
                tally = run_async(engine.run, stop)
        finally:
            journal.close()
    if engine.stop.soon and journal.done < schedule.n_trials:
        raise Interrupted(
            f"stopped: {journal.done} of {schedule.n_trials} trials are answered and kept; "
            "the same command resumes"
        )
    return tally, items.result()


def make_chats(schedule: Schedule, secrets: Mapping[str, str]) -> dict[str, Chat]:
    """Return a provider for each model; each sees only the secrets that its entry names."""
    chats: dict[str, Chat] = {}
    for name, spec in schedule.specs.items():
        chat = PROVIDERS[spec.provider](spec, named_secrets(spec, secrets))
        if isinstance(chat, Baseline) and spec.sent_name == "majority":
            chat.majority = schedule.majority()
        chats[name] = chat
    return chats


def named_secrets(spec: ModelSpec, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that an entry names and that are set."""
    names = [spec.api_key_env, *spec.headers_env.values()]
    return {name: secrets[name] for name in names if name and secrets.get(name)}


def _what_is_left(run: Run, left: int, tally: Tally) -> str:
    reasons = sorted(tally.failures.items(), key=lambda pair: -pair[1])
    shown = "; ".join(f"{count} × {reason}" for reason, count in reasons[:3])
    why = "the budget is spent" if tally.over_budget else f"{tally.failed} failed ({shown})"
    return (
        f"run {run.id}: {left} trials have no answer: {why}; the same command resumes, "
        "--accept-failures seals the run with them null and counted"
    )


def leaderboard(run: Run | str | Path) -> Leaderboard:
    """Return the rankings of a sealed run."""
    found = run if isinstance(run, Run) else open_run(Path(run))
    if not found.sealed:
        raise IncompleteError(f"run {found.id}: not finished; run its plan again to resume it")
    statistics: dict[str, Any] = found.statistics
    return Leaderboard(run=found.id, domains=statistics["domains"])


def preview(plan: Plan | str | Path, *, workspace: Path | None = None) -> dict[str, Any]:
    """Return what a run would ask: calls, replies already stored, upper bounds of tokens and money."""
    base = Path.cwd() if isinstance(plan, Plan) else Path(plan).resolve().parent
    wanted = plan if isinstance(plan, Plan) else load_plan(Path(plan))
    workspace = workspace or base
    schedule, _ = prepare(wanted, base, workspace)
    with ResponseStore(workspace / "responses") as store:
        rows = [preview_model(schedule, spec, store) for spec in schedule.specs.values()]
    totals = {
        name: sum(row[name] for row in rows) for name in ("calls", "stored", "tokens", "money")
    }
    return {"trials": schedule.n_trials, **totals, "models": rows}


def has_prices(plan: Path) -> bool:
    """Return whether any model of a plan has a price, so that a run may cost money."""
    wanted = load_plan(plan)
    specs = load_models(plan.resolve().parent / wanted.models_file)
    prices = [specs[name].price for name in wanted.models if name in specs]
    return any(price.input or price.output for price in prices)
