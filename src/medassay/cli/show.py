"""`medassay show ID`: an item of a run with every answer, or one trial by its hash."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from medassay.cli import location
from medassay.cli.output import out
from medassay.errors import IncompleteError, InputError, UsageError

if TYPE_CHECKING:
    from medassay.core.records.trial import Trial
    from medassay.storage.run import Run
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
    from medassay.bank.run_items import RunItems
    from medassay.storage.run import open_run

    others: list[str] = []
    if run is not None:
        opened = open_run(run)
        if not opened.sealed:
            raise IncompleteError(f"run {opened.id}: not finished; run its plan again to resume it")
        hits = _hits(opened, name)
        if not hits:
            raise InputError(
                f"run {opened.id}: no item '{name}', and no trial whose hash starts so"
            )
    else:
        opened, hits, others = _search(name)
    items = RunItems(opened.path, opened.manifest.domains)
    item = items.get(hits[0].trial.domain, hits[0].trial.item)
    out.tell(
        {
            "run": opened.id,
            "item": {"id": item.id, "question": item.question, "target": item.target_text},
            "trials": [hit.document for hit in hits],
        },
        f"{item.id} · {item.domain} · target {item.target_text}",
        *filter(None, (item.context, item.question)),
        *(
            f"  {letter}. {option}"
            for letter, option in zip(item.letters, item.options, strict=True)
        ),
        _trial_lines(hits),
    )
    if others:
        out.say(f"of run {opened.id}; {name} is in {', '.join(others)}, too: name one with --run")


def _trial_lines(hits: "Sequence[_Hit]") -> Iterator[str]:
    from medassay.core.records.item import shuffle_text

    for hit in hits:
        trial = hit.trial
        name_of_trial = f"{trial.model} · {trial.setting} · {trial.mode} · repeat {trial.repeat}"
        if trial.tombstone:
            yield (
                f"{name_of_trial}: the reply was deleted ({trial.outcome}, score {hit.score});"
                f" what it was has SHA-256 {trial.tombstone[:16]}"
            )
            continue
        shuffled = f"; {shuffle_text(trial.order)}" if trial.order else ""
        yield (
            f"{name_of_trial}: {trial.text or ''!r} → {trial.value} ({trial.outcome},"
            f" {trial.reason}{shuffled}), score {hit.score}{hit.why_none}, sha256 {hit.sha256[:16]}"
        )


@dataclass(frozen=True, kw_only=True)
class _Hit:
    """A trial that was looked for, with its score; `document` is what --json prints of it."""

    sha256: str
    trial: "Trial"
    document: dict[str, Any]

    @property
    def why_none(self) -> str:
        """Return why there is no score, "" where there is one."""
        because = self.document.get("because")
        return f" ({because})" if self.score is None and because else ""

    @property
    def score(self) -> int | float | None:
        """Return the score as the file has it: 1, not 1.0."""
        score: int | float | None = self.document["score"]
        return score


def _hits(run: "Run", name: str) -> list[_Hit]:
    """Return the trials of an item, or the one whose hash starts so, with their scores."""
    from medassay.core.canonical import sha256_hex
    from medassay.core.json import parse_record
    from medassay.storage.records import read_stored_trials

    hits = []
    for stored in read_stored_trials(run.path):
        line, score = stored.trial_line.removesuffix(b"\n"), stored.score_record
        digest = sha256_hex(line)
        if stored.trial.item == name or (len(name) >= 8 and digest.startswith(name.lower())):
            document = {
                "sha256": digest,
                "trial": parse_record(line, "trials.jsonl"),
                "score": score["score"],
                "because": score.get("because", ""),
            }
            hits.append(_Hit(sha256=digest, trial=stored.trial, document=document))
    return hits


def _search(name: str) -> tuple["Run", list[_Hit], list[str]]:
    """Return the newest finished run in runs/ that holds an item or trial, its trials, and the
    other runs that do.
    """
    from medassay.storage.run import open_run

    folders = [p.parent for p in Path("runs").glob("*/seal.json")]
    if not folders:
        raise InputError("runs/: no finished run here; name one with --run")
    folders.sort(key=lambda p: (p / "seal.json").stat().st_mtime, reverse=True)
    held = [(run, hits) for run in map(open_run, folders) if (hits := _hits(run, name))]
    if not held:
        raise InputError(
            f"runs/: none of the {len(folders)} finished runs here has an item '{name}', or a trial"
            " whose hash starts so"
        )
    return *held[0], [run.id for run, _ in held[1:]]


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
