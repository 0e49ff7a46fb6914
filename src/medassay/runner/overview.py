"""The runs of a workspace at a glance: what was wanted, how far it is, what it cost, where it is
published.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from medassay.core.ledger import LEDGER, publications_in
from medassay.errors import IntegrityError
from medassay.runner.spending import spent_in_all
from medassay.storage.journal import JOURNAL, VERDICTS
from medassay.storage.ledger import read_ledger
from medassay.storage.leftover import at_work
from medassay.storage.run import Run
from medassay.storage.spend import Sum, summed
from medassay.storage.unfinished import journal_outcomes

State = Literal["sealed", "at work", "unfinished", "unreadable"]


class RunOverview(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a workspace.

    Attributes
    ----------
    plan : name of its plan
    state : `at work` where a process of this or another machine holds it; `unreadable` where its
        manifest is damaged, `reason` says how
    made_from : how it came out of another run, and which
    trials, failed : answered by now, and those that failed; of a sealed run all
    verdicts : of judges, by now
    calls, spent : requests, and what they cost as people read it
    size : bytes of its folder
    published : publications that hold it, as site/p/ID
    """

    run: str
    path: str
    plan: str = ""
    task: str = ""
    models: list[str] = []
    created_at: str = ""
    state: State
    reason: str = ""
    made_from: str = ""
    trials: int = 0
    failed: int = 0
    verdicts: int = 0
    calls: int = 0
    spent: str = ""
    size: int = 0
    published: list[str] = []


def overview(place: str) -> list[RunOverview]:
    """Return the runs of a workspace, the newest first.

    Parameters
    ----------
    place : a folder, or an address in an object store

    Raises
    ------
    InputError
        When there is no workspace at the place.
    """
    spendings, folder = spent_in_all(place)
    costs: dict[str, list[Sum]] = {}
    for row in summed(spendings, "run"):
        costs.setdefault(row.name, []).append(row)
    published = _published(folder)
    runs = [
        _run(path.parent, folder, costs, published)
        for path in (folder / "runs").glob("*/manifest.json")
    ]
    return sorted(runs, key=lambda run: (run.created_at, run.run), reverse=True)


def _run(
    path: Path,
    workspace: Path,
    costs: Mapping[str, list[Sum]],
    published: Mapping[str, list[str]],
) -> RunOverview:
    files = [file for file in path.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    shown: dict[str, Any] = {"path": path.relative_to(workspace).as_posix(), "size": size}
    run = Run(path)
    try:
        manifest, counts, n_verdicts = run.manifest, trial_outcomes(run), _verdicts(run)
    except IntegrityError as error:
        return RunOverview(run=path.name, state="unreadable", reason=str(error), **shown)
    sums = costs.get(run.id, [])
    working: State = "at work" if at_work(path) else "unfinished"
    return RunOverview(
        run=run.id,
        plan=manifest.name,
        task=", ".join(sorted(manifest.task_names)),
        models=sorted(manifest.models),
        created_at=manifest.created_at,
        state="sealed" if run.sealed else working,
        made_from=next((f"{act}: {name}" for act, name in manifest.sources.items()), ""),
        trials=counts.total() - counts["failed"],
        failed=counts["failed"],
        verdicts=n_verdicts,
        calls=sum(row.amount.calls for row in sums),
        spent=" and ".join(filter(None, (row.spent_text for row in sums))),
        published=published.get(run.id, []),
        **shown,
    )


def trial_outcomes(run: Run) -> Counter[str]:
    """Return the number of trials by outcome; a finished run has "done" and "failed" only."""
    if not (run.path / "trials.jsonl").exists():
        return journal_outcomes(run.path / JOURNAL)
    counts: Counter[str] = Counter()
    with (run.path / "trials.jsonl").open("rb") as file:
        for line in file:  # which outcome but this one needs no decoding
            counts["failed" if b'"outcome":"failed"' in line else "done"] += 1
    return counts


def _verdicts(run: Run) -> int:
    path = run.path / f"{VERDICTS}.jsonl"
    if not path.exists():
        return journal_outcomes(run.path / VERDICTS).total()
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _published(workspace: Path) -> dict[str, list[str]]:
    """Return id of a run → the publications that hold it, of all sites in a workspace."""
    places: dict[str, list[str]] = {}
    for ledger in sorted(workspace.rglob(LEDGER)):
        site = ledger.parent
        try:
            events = publications_in(read_ledger(site))
        except IntegrityError:  # `verify` says what is wrong with a site
            continue
        for event in events:
            place = f"{site.relative_to(workspace).as_posix()}/p/{event.publication}"
            for run in (event.run, *event.joined):
                places.setdefault(run, []).append(place)
    return places
