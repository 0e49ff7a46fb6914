"""Results as a long table: one number for each data set, metric and model.

Correlations are computed from it.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from medassay.bank.builder import numbered_csv
from medassay.errors import InputError

_DATASETS = ("title", "dataset", "benchmark", "task")
_BETTER = {"up": "high", "high": "high", "down": "low", "low": "low", "": "high"}


class LongRow(msgspec.Struct, frozen=True, kw_only=True):
    """One number; `better` says which end is, `n` is the number of test items and `task` the group
    of benchmarks, where known.
    """

    dataset: str
    metric: str
    model: str
    value: float
    better: str = "high"
    n: int | None = None
    task: str = ""


class External(msgspec.Struct, frozen=True, kw_only=True):
    """A score of a model that comes from elsewhere, with its source and date."""

    name: str
    model: str
    value: float
    source: str
    date: str


class _LongCells(msgspec.Struct, frozen=True, kw_only=True):
    """The cells of a row that are read, as text."""

    metric: str
    model: str
    value: str
    setting: str = ""
    direction: str = ""
    better: str = ""
    n: str = ""
    task: str = ""
    group: str = ""

    @property
    def row_name(self) -> str:
        """Return the model, with its setting where that is not the usual one."""
        if self.setting in ("", "zero_shot"):
            return self.model
        return f"{self.model}, {self.setting}"


def read_long(path: Path) -> list[LongRow]:
    """Return the numbers in a CSV file with the columns dataset (or title, benchmark, task),
    metric, model and value.

    `direction` (up, down) or `better` (high, low), `n`, and `task` beside another name of the data
    set are read where they are there; rows without a value are left out.

    Raises
    ------
    InputError
        Naming the file, the row and what was expected.
    """
    rows: list[LongRow] = []
    directions: dict[str, str] = {}
    for number, cells_by_heading in numbered_csv(path):
        row = {str(k).strip().lower(): cell.strip() for k, cell in cells_by_heading.items()}
        if len(row) < len(cells_by_heading):
            raise InputError(
                f"{path.name}: two headings differ by capitals or blanks alone; expected one column"
                " for each"
            )
        named = next((name for name in _DATASETS if row.get(name)), None)
        missing = [name for name in ("metric", "model", "value") if name not in row]
        if named is None or missing:
            lacking = ", ".join([*missing, *([] if named else ["dataset"])])
            raise InputError(
                f"{path.name} row {number}: lacks {lacking}; expected columns dataset, metric,"
                " model, value, and direction (up or down) where lower is better"
            )
        cells = msgspec.convert(row, _LongCells)
        if cells.value.lower() in ("", "-", "nan", "none"):
            continue
        for name in ("metric", "model"):
            if not row[name]:
                raise InputError(f"{path.name} row {number}: {name} is empty; expected a name")
        better = _BETTER.get((cells.direction or cells.better).lower())
        if better is None:
            raise InputError(f"{path.name} row {number}: direction; expected up or down")
        if directions.setdefault(cells.metric, better) != better:
            raise InputError(
                f"{path.name} row {number}: '{cells.metric}' is better {better} here and"
                f" {directions[cells.metric]} in an earlier row; expected one direction a metric"
            )
        rows.append(
            LongRow(
                dataset=row[named],
                metric=cells.metric,
                model=cells.row_name,
                value=number_of(cells.value, f"{path.name} row {number}: value"),
                better=better,
                n=_count(cells.n, f"{path.name} row {number}: n") if cells.n else None,
                task="" if named == "task" else (cells.task or cells.group),
            )
        )
    if not rows:
        raise InputError(f"{path.name}: holds no number")
    return rows


def read_external(path: Path) -> list[External]:
    """Return scores from elsewhere: a CSV file with model, name, value, source and date, all of
    them needed.
    """
    rows = []
    for number, row in numbered_csv(path):
        where = f"{path.name} row {number}"
        for key in ("model", "name", "value", "source", "date"):
            if not (row.get(key) or "").strip():
                raise InputError(
                    f"{where}: {key} is absent; expected columns model, name, value, source, date"
                )
        value = number_of(row.get("value", ""), f"{where}: value")
        rows.append(msgspec.convert({**row, "value": value}, External))
    return rows


def _count(text: str, where: str) -> int:
    value = number_of(text, where)
    if value < 1 or not value.is_integer():
        raise InputError(f"{where}: '{text}'; expected a whole number from 1")
    return int(value)


def number_of(text: str, where: str, expected: str = "a number") -> float:
    """Return the finite number in a cell, or say what was expected there."""
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: '{text}'; expected {expected}")
    return value


def chosen(
    rows: Sequence[LongRow], datasets: Sequence[str], metrics: Sequence[str]
) -> list[LongRow]:
    """Return the rows of some data sets and metrics, all where none is named.

    Raises
    ------
    InputError
        When a name is not there.
    """
    for option, values_wanted, values in (
        ("--dataset", datasets, {row.dataset for row in rows}),
        ("--metric", metrics, {row.metric for row in rows}),
    ):
        for name in values_wanted:
            if name not in values:
                raise InputError(
                    f"{option}: '{name}' is not here; known are {', '.join(sorted(values))}"
                )
    return [
        row
        for row in rows
        if (not datasets or row.dataset in datasets) and (not metrics or row.metric in metrics)
    ]
