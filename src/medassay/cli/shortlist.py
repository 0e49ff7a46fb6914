"""`medassay shortlist`."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.cli.output import out
from medassay.core.table import Table
from medassay.core.wording import counted, visible
from medassay.errors import UsageError

if TYPE_CHECKING:
    from medassay.selection import Shortlist
    from medassay.selection.shortlist import ShortlistDocument


def command(
    steps: Path | None = typer.Option(
        None,
        help="A TOML file of steps; default: the published ones (18 billion, 8,000 tokens …).",
    ),
    models: Path | None = typer.Option(
        None, help="A CSV or JSON table of models; default: the one that comes with medassay."
    ),
    predictions: Path | None = typer.Option(
        None, help="A CSV of predictions by item: means get intervals, differences a test."
    ),
    to: Path | None = typer.Option(
        None,
        help=(
            "Folder to write into: a folder by the shortlist's id, with page, CSV, Markdown, JSON."
        ),
    ),
) -> None:
    """Choose candidate models in named steps, each with who goes and why."""
    from medassay.selection import SelectionSteps, load_candidates, load_steps, shortlist
    from medassay.selection.candidate import our_candidates
    from medassay.selection.discipline import load_predictions

    wanted_steps = SelectionSteps() if steps is None else load_steps(steps)
    candidates = our_candidates() if models is None else load_candidates(models)
    scores = (
        None if predictions is None else load_predictions(predictions, wanted_steps.disciplines)
    )
    result = shortlist(candidates, wanted_steps, scores)
    document = result.document()
    if to is not None:
        _write(to / document["id"], result, document)
    out.tell(document, _parts(result))


def _write(folder: Path, result: "Shortlist", document: "ShortlistDocument") -> None:
    from medassay.selection.written import files_of

    if folder.parent.exists() and not folder.parent.is_dir():
        raise UsageError(f"--to: {folder.parent} is a file")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not at all; the folder's name is the hash of the data, so what is there already says
    # the same.
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        draft = Path(temporary) / "whole"
        draft.mkdir()
        for name, content in files_of(result, document).items():
            (draft / name).write_bytes(content)
        if folder.is_symlink() or folder.is_file():
            raise UsageError(f"--to: {folder} is no folder")
        if folder.exists():
            folder.replace(Path(temporary) / "before")
        draft.replace(folder)
    out.say(f"written to {folder / 'index.html'}")


def _parts(result: "Shortlist") -> Iterator[str | Table]:
    from medassay.core.ranks import rank_range
    from medassay.selection.written import (
        cells_of,
        columns_of,
        interval,
        other_scores,
    )

    before = result.candidates
    for step in result.taken:
        yield f"{step.name:12} {before:3} → {len(step.kept):3}  {_line(step.asks)}"
        for model, reason in step.removed:
            yield f"{'':12}   − {_line(model)}: {_line(reason)}"
        for model in step.unknown:
            yield f"{'':12}   ? {_line(model)}: unknown, kept"
        before = len(step.kept)
    if not result.rows:
        yield "no model passes every step"
        return
    yield Table(
        rows=[[_line(cell) or "?" for cell in cells_of(result, row)[:-1]] for row in result.rows],
        text=[_line(heading) for heading in columns_of(result)[:-1]],
    )
    again = result.recomputed
    if again is None:
        return
    for row in again.models:
        yield (
            f"recomputed {_line(row.model)}: {interval(row)},"
            f" rank {rank_range(row.rank_lo, row.rank_hi)},"
            f" n {row.n}, {row.blank} blank"
        )
    for sentence in other_scores(again):
        yield f"differs from the table: {_line(sentence)}"
    noise = sum(pair.noise for pair in again.pairs)
    if again.pairs:
        yield (
            f"no difference is shown for {noise} of {counted(len(again.pairs), 'pair')} (all"
            " tested at once)"
        )
    if not again.models:
        yield "no model of the shortlist has predictions in the file"


def _line(text: str) -> str:
    """Return text as one line: a name with a line break would look like a step."""
    return " ".join(visible(text).split())
