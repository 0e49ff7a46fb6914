"""The trials of a run as rows of a table: one row a trial, with its score and its seconds."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from medassay.core.canonical import sha256_hex
from medassay.core.records.item import banked_letters
from medassay.core.records.target import LETTERS
from medassay.errors import IntegrityError
from medassay.storage.jsonl import read_jsonl
from medassay.storage.parquet import (
    json_lines,
    json_texts,
    measure_lines,
    require_parquet,
    write_query,
)
from medassay.storage.run import Run

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
    "order",
)
_FILES = {  # of a run → column that comes from it → its type in DuckDB
    "trials": {
        **dict.fromkeys(("domain", "model", "setting", "mode", "item"), "VARCHAR"),
        **dict.fromkeys(("outcome", "value", "reason", "text"), "VARCHAR"),
        "repeat": "BIGINT",
        "order": "BIGINT[]",
    },
    "scores": {"score": "DOUBLE", "because": "VARCHAR", "scorer": "VARCHAR"},
    "timings": {"seconds": "DOUBLE"},
}
_EXPRESSIONS = {  # column → what it is in a query
    **{name: f'{file}."{name}"' for file, types in _FILES.items() for name in types},
    "run": "$run",
    "order": f"""array_to_string([{LETTERS!r}[place + 1] for place in trials."order"], ' ')""",
    "sha256": "sha256(texts.json)",
}


def trial_rows(run: Run) -> Iterator[dict[str, Any]]:
    """Yield every trial of a run with its score and its seconds, by the names in `COLUMNS`, and
    `sha256`, the hash of its line.

    Raises
    ------
    IntegrityError
        Naming the file and the line that is no record, or the file that has another number of lines
        than there are trials.
    """
    _longest_lines(run)
    with (run.path / "trials.jsonl").open("rb") as lines:
        digests = (sha256_hex(line.removesuffix(b"\n")) for line in lines)
        files = (read_jsonl(run.path / f"{name}.jsonl") for name in _FILES)
        for digest, trial, score, timing in zip(digests, *files, strict=True):
            record = {**score, **trial, **timing, "run": run.id}
            if "order" in trial:  # positions, which no table can hold
                record["order"] = " ".join(banked_letters(trial["order"]))
            yield {name: record.get(name) for name in COLUMNS} | {"sha256": digest}


def write_trials(run: Run, columns: Collection[str], to: Path, *, asked_by: str) -> None:
    """Write what `trial_rows` yields as a Parquet file; equal trials give equal bytes.

    DuckDB reads the files of the run itself, which takes a quarter of the time.

    Parameters
    ----------
    columns : of `COLUMNS` and `sha256`, in the order of the table
    asked_by : option that needs it, as an error names it

    Raises
    ------
    UnavailableError
        When DuckDB is not installed.
    IntegrityError
        As `trial_rows`.
    OSError
        Naming the file, when the disk takes no more of it.
    """
    require_parquet(asked_by)
    longest = _longest_lines(run)
    paths = {name: run.path / f"{name}.jsonl" for name in _FILES}
    tables = [f"{json_lines(paths[n], types, longest[n])} AS {n}" for n, types in _FILES.items()]
    tables.append(f"{json_texts(paths['trials'], longest['trials'])} AS texts")
    expressions = ", ".join(f'{_EXPRESSIONS[name]} AS "{name}"' for name in columns)
    query = f"SELECT {expressions} FROM {' POSITIONAL JOIN '.join(tables)}"
    try:
        write_query(query, to, **({"run": run.id} if "run" in columns else {}))
    except IntegrityError:  # the line that DuckDB names may be one too high
        for _ in trial_rows(run):
            pass
        raise


def _longest_lines(run: Run) -> dict[str, int]:
    """Return file → bytes of its longest line, where each file has a line for each trial: DuckDB
    would fill a shorter one with nulls.
    """
    measures = {name: measure_lines(run.path / f"{name}.jsonl") for name in _FILES}
    n_trials, _ = measures["trials"]
    for name, (n_lines, _) in measures.items():
        if n_lines != n_trials:
            raise IntegrityError(
                f"{name}.jsonl: {n_lines} lines, and trials.jsonl has {n_trials}; expected one for"
                " each trial"
            )
    return {name: longest for name, (_, longest) in measures.items()}
