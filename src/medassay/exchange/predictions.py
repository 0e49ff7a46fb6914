"""Finished predictions of others → a sealed run, so that intervals, ranks and boards work on them.

The table is streamed through a scratch database, which sorts it and finds duplicates; memory does
not grow with its rows.
"""

import datetime as dt
import math
import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from medassay.bank.draft import read_csv
from medassay.core.canonical import canonical
from medassay.errors import InputError
from medassay.exchange.imported import Source, file_digest, import_manifest, new_run
from medassay.runner.finish import finish, write_scores
from medassay.storage.run import Run, create_run
from medassay.task.catalog import TASKS
from medassay.task.scoring import RunItems

REQUIRED = ("item", "model", "domain")
KNOWN = (*REQUIRED, "prediction", "key", "score", "setting", "mode", "repeat", "cluster")
_SCHEMA = """
CREATE TABLE item (domain, item, key, cluster, PRIMARY KEY (domain, item)) WITHOUT ROWID;
CREATE TABLE trial (domain, model, setting, mode, item, repeat INTEGER, prediction, score REAL,
    PRIMARY KEY (domain, model, setting, mode, item, repeat)) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class _Row:
    number: int
    cells: Mapping[str, str]

    def get(self, name: str, default: str = "") -> str:
        return (self.cells.get(name) or "").strip() or default


def import_predictions(
    table: Path, columns: Mapping[str, str], *, runs: Path | None = None, to: Path | None = None
) -> Run:
    """Return the sealed run made from a CSV table of predictions.

    Parameters
    ----------
    columns : what a column holds → its name in the table. Needed: item, model, domain, and either
        prediction and key, or score (on [0, 1]; an empty one is null). Also: setting, mode, repeat,
        cluster.
    runs : folder for the new run; `to` names the run's own folder instead

    Raises
    ------
    InputError
        Naming the file, the row, the column and what was expected; nothing is left half-written.
    """
    _check_columns(columns)
    source = Source(file=table, digest=file_digest(table), task="closed")
    return new_run(
        [source.digest, dict(columns)],
        lambda folder, name: _fill(folder, source, columns, name),
        runs=runs or Path("runs"),
        to=to,
    )


def _check_columns(columns: Mapping[str, str]) -> None:
    for name in columns:
        if name not in KNOWN:
            raise InputError(f"--columns: '{name}' is unknown; known are {', '.join(KNOWN)}")
    for name in REQUIRED:
        if name not in columns:
            raise InputError(
                f"--columns: '{name}' is missing; e.g. item=id,model=model,domain=task"
            )
    if "score" not in columns and not {"prediction", "key"} <= columns.keys():
        raise InputError("--columns: give prediction=… and key=…, or score=…")


def _rows(table: Path, columns: Mapping[str, str]) -> Iterator[_Row]:
    try:
        for number, cells in enumerate(read_csv(table), 2):
            if number == 2:
                for name, column in columns.items():
                    if column not in cells:
                        found = ", ".join(cells)
                        raise InputError(
                            f"{table.name}: no column '{column}' (for {name}); found {found}"
                        )
            yield _Row(number, {name: cells[column] for name, column in columns.items()})
    except OSError as error:
        raise InputError(f"{table}: cannot be read: {error.strerror}") from None


def _fill(folder: Path, source: Source, columns: Mapping[str, str], name: str) -> None:
    table = source.file
    scratch = folder / "scratch.sqlite"
    base = sqlite3.connect(scratch)
    try:
        base.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _SCHEMA)
        number = 0
        for row in _rows(table, columns):
            number += 1
            _take(base, row, table.name, scored="score" in columns)
        if not number:
            raise InputError(f"{table.name}: no rows below the header")
        manifest = _manifest(base, source, columns)
        with (folder / "items.jsonl").open("wb") as items:
            _write_items(base, items)
        with (
            (folder / "trials.jsonl").open("wb") as trials,
            (folder / "timings.jsonl").open("wb") as timings,
        ):
            for trial in _trials(base, scored="score" in columns):
                trials.write(canonical(trial) + b"\n")
                timings.write(b"{}\n")
    finally:
        base.close()
        scratch.unlink(missing_ok=True)
    run = create_run(folder.parent, folder.name, {**manifest, "run": name})
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    run_items = RunItems(run.path, run.manifest["domains"])
    write_scores(run, TASKS["closed"], run_items)
    finish(run, TASKS["closed"], run_items, [], sealed_at=now)


def _take(base: sqlite3.Connection, row: _Row, table: str, *, scored: bool) -> None:
    where = f"{table} row {row.number}"
    for name in REQUIRED:
        if not row.get(name):
            raise InputError(f"{where}: '{name}' is empty; expected text")
    if row.get("domain") == "overall":
        raise InputError(
            f"{where}: 'domain' is 'overall', which names the ranking over all domains"
        )
    key = None if scored else row.get("key")
    if key == "":
        raise InputError(f"{where}: 'key' is empty; expected the right answer")
    domain, item = row.get("domain"), row.get("item")
    known = base.execute(
        "SELECT key FROM item WHERE domain = ? AND item = ?", (domain, item)
    ).fetchone()
    if known is None:
        base.execute(
            "INSERT INTO item VALUES (?, ?, ?, ?)",
            (domain, item, key, row.get("cluster") or None),
        )
    elif known[0] != key:
        raise InputError(
            f"{where}: item '{item}' has key '{key}' here and '{known[0]}' in an earlier row"
        )
    place = (
        domain,
        row.get("model"),
        row.get("setting", "zero_shot"),
        row.get("mode", "solo"),
        item,
    )
    repeat = row.get("repeat", "0")
    if not re.fullmatch("[0-9]{1,9}", repeat):
        raise InputError(f"{where}: 'repeat' is '{repeat}'; expected a whole number from 0")
    score = _score(row.get("score"), where) if scored else None
    try:
        base.execute(
            "INSERT INTO trial VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*place, int(repeat), row.get("prediction"), score),
        )
    except sqlite3.IntegrityError:
        raise InputError(
            f"{where}: a second row for item '{item}', model '{row.get('model')}', domain '{domain}'; "
            "expected one, or a repeat=… column"
        ) from None


def _score(text: str, where: str) -> float | None:
    if not text:
        return None
    score = (
        float(text)
        if re.fullmatch(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?", text)
        else math.nan
    )
    if not 0 <= score <= 1:
        raise InputError(
            f"{where}: 'score' is '{text}'; expected a number from 0 to 1, or nothing"
        )
    return score


def _write_items(base: sqlite3.Connection, file: IO[bytes]) -> None:
    for domain, item, key, cluster in base.execute("SELECT * FROM item ORDER BY domain, item"):
        record = {"id": item, "domain": domain, "kind": "public", "answer_type": "closed"}
        record.update(
            {k: v for k, v in (("expected", key), ("cluster", cluster)) if v is not None}
        )
        file.write(canonical(record) + b"\n")


def _trials(base: sqlite3.Connection, *, scored: bool) -> Iterator[dict[str, Any]]:
    order = "domain, model, setting, mode, item, repeat"
    for domain, model, setting, mode, item, repeat, prediction, score in base.execute(
        f"SELECT * FROM trial ORDER BY {order}"
    ):
        value = (None if score is None else repr(score)) if scored else (prediction or None)
        missing = ("failed", "no score given") if scored else ("unparsed", "blank")
        outcome, reason = ("answered", "imported") if value is not None else missing
        yield {
            "schema_version": 1,
            "domain": domain,
            "model": model,
            "setting": setting,
            "mode": mode,
            "item": item,
            "repeat": repeat,
            "text": prediction or "",
            "finish": "stop",
            "outcome": outcome,
            "value": value,
            "reason": reason,
        }


def _manifest(
    base: sqlite3.Connection, source: Source, columns: Mapping[str, str]
) -> dict[str, Any]:
    def distinct(column: str, table: str) -> list[str]:
        found = base.execute(f"SELECT DISTINCT {column} FROM {table} ORDER BY {column}")
        return [value for (value,) in found]

    return import_manifest(
        source,
        domains=distinct("domain", "item"),
        models=distinct("model", "trial"),
        settings=distinct("setting", "trial"),
        n_items=base.execute("SELECT COUNT(*) FROM item").fetchone()[0],
        columns=dict(columns),
    )
