"""The two stages of a run that ask: answers, then verdicts; each resumes where it was cut off."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medassay.bank.folder import bank_record
from medassay.core.canonical import canonical
from medassay.core.lookup import ToolRules
from medassay.core.model import Chat, ModelSpec
from medassay.errors import IncompleteError, InputError, Interrupted
from medassay.model.catalog import PROVIDERS
from medassay.runner.asking import Asker, Tally
from medassay.runner.bridge import run_async
from medassay.runner.engine import Engine
from medassay.runner.judging import Answers, Bench, Docket, Judging, dockets
from medassay.runner.looking import Looking
from medassay.runner.progress import Progress, Silent, Stop
from medassay.runner.schedule import Schedule
from medassay.storage.journal import Journal
from medassay.storage.run import Run
from medassay.task.scoring import RunItems
from medassay.task.task import Task

if TYPE_CHECKING:
    from medassay.solver.tools.toolbox import Toolbox

# What is counted ("trials", "verdicts"), how many there are and how many are done, by model and domain.
Watch = Callable[
    [str, Counter[tuple[str, str]], Counter[tuple[str, str]]], AbstractContextManager[Progress]
]


def answer(
    run: Run,
    schedule: Schedule,
    journal: Journal,
    asker: Asker,
    watch: Watch | None,
    *,
    toolbox: "Toolbox | None" = None,
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
        looking = None if toolbox is None else Looking(toolbox, asker)
        engine = Engine(schedule, asker, journal, progress, stop, looking=looking)
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


def judge(
    run: Run,
    task: Task,
    bench: Bench,
    items: RunItems,
    asker: Asker,
    watch: Watch | None,
    accept_failures: bool,
) -> None:
    """Ask for the verdicts that are not there yet, and write verdicts and scores."""
    from medassay.runner.finish import write_judged_scores, write_verdicts

    answers = Answers(run, items, task)
    for docket in dockets(answers, bench):
        journal = _give(docket, asker, watch, accept_failures)
        write_verdicts(docket, journal)
    write_judged_scores(run, answers, bench.judges, bench.n_seats)


def _give(docket: Docket, asker: Asker, watch: Watch | None, accept_failures: bool) -> Journal:
    """Ask for the verdicts of a docket that are not there yet; return their journal."""
    run, n_seats = docket.answers.run, docket.bench.n_seats
    journal = Journal(run.path / docket.name, len(docket.answers) * n_seats)
    journal.resume(docket.place_of)
    sizes, done = docket.sizes(journal)
    stop = Stop()
    before = asker.tally.failed
    with _watching(watch, docket.name, sizes, done) as progress:
        judging = Judging(docket, asker, journal, progress, stop)
        try:
            run_async(lambda: asker.during(judging.run()), stop.ask)
        finally:
            journal.close()
    total = sizes.total()
    _hear(stop, "verdicts are there", journal.done, total)
    asker.tally.failed -= before
    left = total - journal.done
    refuse_incomplete(run, "verdicts are missing", left, asker.tally, accept_failures)
    return journal


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


def refuse_incomplete(
    run: Run, what: str, left: int, tally: Tally, accept_failures: bool
) -> None:
    """Raise `IncompleteError`, saying what is left and why, unless failures are accepted."""
    if not left or (accept_failures and left == tally.failed):
        return
    reasons = sorted(tally.failures.items(), key=lambda pair: -pair[1])
    shown = "; ".join(f"{count} × {reason}" for reason, count in reasons[:3])
    why = "the budget is spent" if tally.over_budget else f"{tally.failed} failed ({shown})"
    raise IncompleteError(
        f"run {run.id}: {left} {what}: {why}; the same command resumes, "
        "--accept-failures seals the run with them null and counted"
    )


def refuse_leaving(
    banks: Sequence[Mapping[str, Any]],
    asked: Iterable[ModelSpec],
    tools: ToolRules | None = None,
) -> None:
    """Refuse to send a bank that may not leave to an external endpoint or into a search, before any call."""
    asked = list(asked)
    looking = [name for name in (tools.use if tools else ()) if name != "doc_retrieval"]
    for bank in banks:
        if looking and not bank["may_leave"]:
            raise InputError(
                f"bank '{bank['name']}' may not leave this place (may_leave = false), but what a model looks up by "
                f"{', '.join(looking)} does; leave these out of 'tools.use', no call was made"
            )
        for spec in asked:
            if bank["may_leave"] or spec.location != "external" or spec.is_scripted:
                continue
            raise InputError(
                f"bank '{bank['name']}' may not leave this place (may_leave = false), but model "
                f"'{spec.id}' is at an external endpoint; no call was made"
            )


def open_toolbox(
    schedule: Schedule, models_file: Path, secrets: Mapping[str, str]
) -> "Toolbox | None":
    """Return the tools of a plan with the keys that it names, None for a plan without the mode `tools`."""
    rules, contexts = schedule.plan.tools, schedule.contexts
    if rules is None:
        return None
    from medassay.solver.tools.toolbox import Toolbox

    searched = "doc_retrieval" in rules.use and contexts is not None
    wanted = schedule.plan.retrieval
    return Toolbox(
        rules,
        secrets={
            n: secrets[n] for n in (rules.search_key_env, rules.pubmed_key_env) if n in secrets
        },
        index=contexts.index if searched and contexts is not None else None,
        use=lambda index: index.use(models_file, secrets),
        query_prefix="" if wanted is None else wanted.query_prefix,
    )


def provide(spec: ModelSpec, secrets: Mapping[str, str]) -> Chat:
    """Return the provider of one entry, which sees only the secrets that the entry names."""
    return PROVIDERS[spec.provider](spec, named_secrets(spec, secrets))


def named_secrets(spec: ModelSpec, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that an entry names and that are set."""
    names = [spec.api_key_env, *spec.headers_env.values()]
    return {name: secrets[name] for name in names if name and secrets.get(name)}
