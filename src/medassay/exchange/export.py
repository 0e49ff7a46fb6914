"""A sealed run as tables for other tools: one row a trial, as CSV, JSON Lines or Parquet."""

import csv
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from medassay.core.files import write_lines
from medassay.errors import IncompleteError, InputError
from medassay.exchange.every_eval_ever import write_every_eval_ever
from medassay.report.tables import harmless
from medassay.storage.run import Run, refuse_inside
from medassay.storage.trial_rows import COLUMNS, trial_rows, write_trials


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


def _write_csv(run: Run, to: Path) -> None:
    with to.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in trial_rows(run):
            writer.writerow({name: harmless(row[name]) for name in COLUMNS})


def _write_jsonl(run: Run, to: Path) -> None:
    write_lines(to, ({name: row[name] for name in COLUMNS} for row in trial_rows(run)))


def _write_parquet(run: Run, to: Path) -> None:
    write_trials(run, COLUMNS, to, asked_by="--format parquet")


FORMS: dict[str, Callable[[Run, Path], None]] = {
    "csv": _write_csv,
    "every-eval-ever": write_every_eval_ever,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
}
