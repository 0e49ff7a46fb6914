"""What is known of a model that may be shortlisted: a row of a table that anyone can edit."""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import dropwhile
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from medassay.bank.delimited import is_header, separator_of
from medassay.core.json import parse_json, refuse_twins
from medassay.core.keyed import KeyedRecord
from medassay.errors import InputError

COLUMNS = (
    "model",
    "qualifier",
    "parameters_b",
    "open_weights",
    "context_tokens",
    "licence",
    "predictions",
    "source",
)
_WORDS = {"true": True, "yes": True, "false": False, "no": False}
_WINDOW = re.compile(r"(\d{1,9})([km]?)", re.IGNORECASE)
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}


class Candidate(KeyedRecord, msgspec.Struct, frozen=True, kw_only=True):
    """One model; None is what nobody has stated.

    `parameters_b` in billions, `context_tokens` in tokens, `scores` in [0, 1] by discipline.
    `predictions` names the model's column in a table of predictions.
    """

    KEYS: ClassVar = (*COLUMNS, "scores")

    model: str
    qualifier: str | None = None
    parameters_b: float | None = None
    open_weights: bool | None = None
    context_tokens: int | None = None
    licence: str | None = None
    predictions: str | None = None
    source: str | None = None
    scores: Mapping[str, float] = msgspec.field(default_factory=dict)

    def mean(self, disciplines: tuple[str, ...]) -> float | None:
        """Return the arithmetic mean of the disciplines; None when one is not known."""
        known_scores = [self.scores[name] for name in disciplines if name in self.scores]
        return (
            math.fsum(known_scores) / len(known_scores)
            if len(known_scores) == len(disciplines)
            else None
        )


def our_candidates() -> list[Candidate]:
    """Return the models of the table that comes with medassay."""
    text = (files("medassay.selection") / "models.csv").read_text(encoding="utf-8")
    return _candidates(_csv_rows(text, "models.csv"), "models.csv")


def load_candidates(path: Path) -> list[Candidate]:
    """Return the models of a CSV file, or of a JSON file with a list of objects.

    Columns are those of `COLUMNS`; every other column holds the scores of a discipline. A blank
    cell is unknown. A window may be written `128k` (128,000) or `1M` (1,000,000).

    Raises
    ------
    InputError
        Naming file, row, column and what was expected; for a model that stands twice too.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text: {error}") from None
    if path.suffix.lower() != ".json":
        return _candidates(_csv_rows(text, path.name), path.name)
    rows = parse_json(text.encode(), path.name)
    refuse_twins(text.encode(), rows, path.name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path.name}: expected a list of objects, one for each model")
    numbered = [(f"{path.name} entry {number}", row) for number, row in enumerate(rows, 1)]
    return _candidates(numbered, path.name)


def _csv_rows(text: str, name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the rows of a table, each with its place."""
    n_notes, table = split_notes(io.StringIO(text, newline=""))
    reader = csv.DictReader(table, delimiter=separator_of("".join(table)), strict=True)
    try:
        check_header(reader.fieldnames or (), name)
        return [
            (
                f"{name} line {n_notes + reader.reader.line_num}",
                {key and key.strip(): cell for key, cell in row.items()},
            )
            for row in reader
        ]
    except csv.Error as error:
        line = n_notes + reader.reader.line_num
        raise InputError(f"{name}: not valid CSV in line {line}: {error}") from None


def split_notes(lines: Iterable[str]) -> tuple[int, list[str]]:
    """Return how many lines stand above the heading of a table, and the lines from there on.

    Above it may stand notes, which begin with #, blank lines, and Excel's `sep=;`.
    """
    all_lines = [*lines]
    table = [*dropwhile(lambda line: line.startswith("#") or not is_header([line]), all_lines)]
    return len(all_lines) - len(table), table


def check_header(names: Sequence[str], where: str) -> None:
    """Refuse a table in which a column stands twice: the last would silently count."""
    for name, n in Counter(name.strip() for name in names).items():
        if not name:
            raise InputError(f"{where}: a column has no name")
        if n > 1:
            raise InputError(f"{where}: the column '{name}' stands {n} times")


def _candidates(rows: Sequence[tuple[str, dict[str, Any]]], name: str) -> list[Candidate]:
    if not rows:
        raise InputError(f"{name}: no models in it; expected a row for each, with a column 'model'")
    candidates: dict[str, Candidate] = {}
    for where, row in rows:
        if None in row or (None in row.values() and not name.endswith(".json")):
            raise InputError(f"{where}: not as many cells as columns")
        if any(isinstance(cell, dict | list) for cell in row.values()):
            raise InputError(f"{where}: a cell is a list or an object; expected text or number")
        candidate = _candidate(row, where)
        if candidate.model in candidates:
            raise InputError(f"{where}: the model '{candidate.model}' stands twice")
        candidates[candidate.model] = candidate
    return list(candidates.values())


def _candidate(row: Mapping[str, Any], where: str) -> Candidate:
    values = {
        key: str(cell).strip()
        for key, cell in row.items()
        if cell is not None and str(cell).strip()
    }
    if "model" not in values:
        raise InputError(f"{where}: column 'model' is missing or blank")
    texts = {key: values.get(key) for key in ("qualifier", "licence", "predictions", "source")}
    size = _number(values.get("parameters_b"), f"{where}, parameters_b", share=False)
    scores = {
        key: _number(text, f"{where}, {key}", share=True)
        for key, text in values.items()
        if key not in COLUMNS
    }
    return Candidate(
        model=values["model"],
        parameters_b=size,
        open_weights=_truth(values.get("open_weights"), f"{where}, open_weights"),
        context_tokens=_window(values.get("context_tokens"), f"{where}, context_tokens"),
        scores={key: value for key, value in scores.items() if value is not None},
        **texts,
    )


def _number(text: str | None, where: str, *, share: bool) -> float | None:
    """Return a share from 0 to 1, or a number above 0."""
    if text is None:
        return None
    try:
        value = float(text.replace("_", "?"))  # Python reads 0_1 as 1
    except ValueError:
        value = math.nan
    if not (0 <= value <= 1 if share else 0 < value < math.inf):
        expected = "share from 0 to 1" if share else "number above 0"
        raise InputError(f"{where}: '{text[:40]}' is no {expected}")
    return value


def _truth(text: str | None, where: str) -> bool | None:
    if text is None:
        return None
    if text.casefold() not in _WORDS:
        raise InputError(f"{where}: '{text[:40]}' is neither true nor false")
    return _WORDS[text.casefold()]


def _window(text: str | None, where: str) -> int | None:
    if text is None:
        return None
    match = _WINDOW.fullmatch(text)
    if match is None or not int(match[1]):
        raise InputError(f"{where}: '{text[:40]}' is no number of tokens such as 8192, 128k or 1M")
    return int(match[1]) * _TIMES[match[2].casefold()]
