"""`medassay runs [WORKSPACE]`."""

import sys
import time
from typing import TYPE_CHECKING

import typer

from medassay.cli.output import out
from medassay.core.table import Table
from medassay.core.wording import some_of
from medassay.errors import UsageError

if TYPE_CHECKING:
    from medassay.runner.overview import RunOverview

_EVERY = 2.0  # seconds between two looks
_NAMED = 4  # models that a row names

_PLACE = typer.Argument(
    ".",
    metavar="WORKSPACE",
    help="The folder of runs/ and responses/, or an address as s3://bucket/work.",
)
_WATCH = typer.Option(False, "--watch", help="Look again every two seconds, until Ctrl-C.")


def command(place: str = _PLACE, watch: bool = _WATCH) -> None:
    """List the runs of a workspace, the newest first: plan, state, trials, cost, size, and where
    they are published.
    """
    from medassay.runner.overview import overview

    if watch:
        if out.json or not sys.stdout.isatty():
            raise UsageError(
                "--watch draws on a terminal; elsewhere ask `medassay --json runs` again"
            )
        _watch(place)
        return
    runs = overview(place)
    out.tell(
        {"runs": runs},
        _table(runs) if runs else f"{place}: no runs yet; `medassay run plan.toml` makes one",
    )


def _watch(place: str) -> None:
    from medassay.runner.overview import overview

    while True:
        runs = overview(place)
        sys.stdout.write("\x1b[2J\x1b[H")  # an empty screen
        out.result(f"{place}, {time.strftime('%H:%M:%S')}; Ctrl-C ends")
        out.table(_table(runs))
        sys.stdout.flush()
        time.sleep(_EVERY)


def _table(runs: "list[RunOverview]") -> Table:
    rows = [
        (
            run.run,
            run.plan,
            ", ".join(filter(None, (run.state, run.made_from.partition(":")[0]))),
            some_of(run.models, _NAMED),
            run.created_at.replace("T", " ").removesuffix("Z"),
            ", ".join(run.published),
            _trials(run),
            run.spent or ("0" if run.calls == 0 else ""),
            f"{run.size / 1e6:,.1f} MB",
        )
        for run in runs
    ]
    return Table(
        rows=rows,
        text=("run", "plan", "state", "models", "begun (UTC)", "published"),
        numbers=("trials", "cost", "size"),
        notes=[f"{run.run}: {run.reason}" for run in runs if run.reason],
        unfolded=("run",),
    )


def _trials(run: "RunOverview") -> str:
    failed = f", {run.failed:,} failed" if run.failed else ""
    verdicts = f", {run.verdicts:,} verdicts" if run.verdicts else ""
    return f"{run.trials:,}{failed}{verdicts}"
