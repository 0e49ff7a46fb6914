"""`medassay show ID`: an item of a run with every answer, or one trial by its hash."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from medassay.cli import location
from medassay.cli.output import out
from medassay.errors import InputError, UsageError

if TYPE_CHECKING:
    from medassay.synthesis.project import Event


_NAME = typer.Argument(
    ..., metavar="ID", help="An item's id, or the first digits of a trial's SHA-256."
)
_RUN = typer.Option(
    None,
    parser=location.read,
    metavar="PATH",
    help="The run's folder; default: the newest in runs/ that has it.",
)
_HISTORY = typer.Option(
    False,
    "--history",
    help="How the item was made: from the source's page to the released revision.",
)
_WORKSHOP = typer.Option(
    None, help="--history: the workshop; default: the one here that made the item."
)


def command(
    name: str = _NAME,
    run: Path | None = _RUN,
    history: bool = _HISTORY,
    workshop: Path | None = _WORKSHOP,
) -> None:
    """Print an item's answers, one trial, or how an item was made."""
    if history:
        _tell_history(name, workshop)
        return
    if workshop is not None:
        raise UsageError("--workshop goes with --history")
    from medassay.storage.run import open_run
    from medassay.storage.shown_item import newest_with, shown_item

    shown = newest_with(name, Path("runs")) if run is None else shown_item(open_run(run), name)
    item = shown.item
    out.tell(
        {
            "run": shown.run.id,
            "item": {"id": item.id, "question": item.question, "target": item.target_text},
            "trials": [trial.document for trial in shown.trials],
        },
        *shown.lines,
    )
    if shown.other_runs:
        also = ", ".join(shown.other_runs)
        out.say(f"of run {shown.run.id}; {name} is in {also}, too: name one with --run")


def _tell_history(name: str, folder: Path | None) -> None:
    from medassay.synthesis.project import JOURNAL, read_workshop

    if folder is None:
        places = [
            p.parent
            for depth in (JOURNAL, f"*/{JOURNAL}", f"*/*/{JOURNAL}")
            for p in Path().glob(depth)
        ]
        holding = [place for place in places if _knows(place, name)]
        if len(holding) != 1:
            numbers = ", ".join(map(str, holding)) or "none"
            raise InputError(
                f"workshops here that know '{name}': {numbers}; name one with --workshop"
            )
        folder = holding[0]
    events = read_workshop(folder).history(name)
    out.tell(
        {
            "workshop": str(folder),
            "item": name,
            "history": [{"line": e.number, "hash": e.hash, **e.record} for e in events],
        },
        _history_lines(events),
    )


def _history_lines(events: "Sequence[Event]") -> Iterator[str]:
    for event in events:
        line, calls = event.line, len(event.line.calls)
        times = f", asked {calls} times" if calls > 1 else ""
        note = f": {event.note}" if event.note else ""
        yield (
            f"{line.at}  {line.step:9} {line.subject}  {line.status} by {line.by.name}{times}{note}"
        )
        yield from (f"    {result_line}" for result_line in _result_lines(event.result))


def _knows(folder: Path, name: str) -> bool:
    """Return whether a folder is a workshop that knows an item.

    Other programs, too, write journals.
    """
    from medassay.errors import IntegrityError
    from medassay.synthesis.project import read_workshop

    try:
        return any(event.place[1] == name for event in read_workshop(folder).events)
    except IntegrityError:
        out.say(f"{folder}/journal.jsonl is no journal of a workshop, or damaged; left out")
        return False


def _result_lines(result: Any) -> list[str]:
    """Return what a step made in a few lines; long texts cut."""
    if isinstance(result, dict):
        lines = [
            f"{k}: {v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)}"
            for k, v in result.items()
            if v not in ("", None) and k != "revisions"
        ]
    elif isinstance(result, list):
        lines = (
            [" -> ".join(map(str, result))]
            if all(isinstance(r, str) for r in result)
            else [str(r) for r in result]
        )
    else:
        lines = [] if result is None else [str(result)]
    return [
        line if len(line) <= 300 else f"{line[:299]}…"
        for line in (" ".join(t.split()) for t in lines)
    ]
