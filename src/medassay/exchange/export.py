"""A sealed run as tables for other tools: one row a trial, as CSV, JSON Lines or Parquet."""

import csv
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from medassay.core.canonical import canonical
from medassay.errors import IncompleteError, InputError
from medassay.exchange.every_eval_ever import write_every_eval_ever
from medassay.report.tables import harmless
from medassay.storage.jsonl import read_jsonl
from medassay.storage.run import Run, refuse_inside

COLUMNS = (
    "run",
    "domain",
    "model",
    "setting",
    "mode",
    "item",
    "repeat",
    "outcome",
    "value",
    "reason",
    "score",
    "because",
    "scorer",
    "seconds",
    "text",
)


def export(run: Run, form: str, to: Path) -> Path:
    """Write a run in another form, whole or not at all, and return what was written.

    Parameters
    ----------
    form : of `FORMS`
    to : a file, or for every-eval-ever a folder; it must not exist

    Raises
    ------
    InputError
        When the form is unknown, or the place is taken.
    IncompleteError
        When the run is not sealed.
    """
    if form not in FORMS:
        raise InputError(f"--format '{form}': expected one of {', '.join(FORMS)}")
    if not run.sealed:
        raise IncompleteError(f"{run.path}: not finished; only sealed runs are exported")
    refuse_inside(to)
    if to.exists():
        raise InputError(f"{to}: exists; nothing is overwritten, choose another place")
    to.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{to.name}-", dir=to.parent))
    try:
        draft = folder / to.name
        FORMS[form](run, draft)
        draft.rename(to)
    finally:
        shutil.rmtree(folder)
    return to


def rows(run: Run) -> Iterator[dict[str, Any]]:
    """Yield every trial of a run with its score and its seconds."""
    files = (read_jsonl(run.path / f"{name}.jsonl") for name in ("trials", "scores", "timings"))
    for trial, score, timing in zip(*files, strict=True):
        record = {**score, **trial, **timing, "run": run.id}
        yield {name: record.get(name) for name in COLUMNS}


def _write_csv(run: Run, to: Path) -> None:
    with to.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows(run):
            writer.writerow({name: harmless(value) for name, value in row.items()})


def _write_jsonl(run: Run, to: Path) -> None:
    with to.open("wb") as file:
        for row in rows(run):
            file.write(canonical(row) + b"\n")


def _write_parquet(run: Run, to: Path) -> None:
    try:
        import duckdb
    except ImportError:
        raise InputError("--format parquet needs DuckDB: pip install 'medassay[data]'") from None
    lines = to.with_name("rows.jsonl")
    _write_jsonl(run, lines)
    types = {"repeat": "BIGINT", "score": "DOUBLE", "seconds": "DOUBLE"}
    columns = ", ".join(f"'{name}': '{types.get(name, 'VARCHAR')}'" for name in COLUMNS)
    with duckdb.connect(":memory:") as base:
        base.execute("SET autoinstall_known_extensions = false")
        base.execute(
            "COPY (SELECT * FROM read_json(?, format = 'newline_delimited', columns ="
            f" {{{columns}}}, maximum_object_size = 268435456)) TO"
            f" '{str(to).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)",
            [str(lines)],
        )
    lines.unlink()


FORMS: dict[str, Callable[[Run, Path], None]] = {
    "csv": _write_csv,
    "every-eval-ever": write_every_eval_ever,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
}
