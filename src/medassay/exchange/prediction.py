"""`Prediction`, one finished answer of another harness, and the run that many of them make.

Predictions are streamed through a scratch database, which sorts them and finds duplicates; memory does
not grow with their number.
"""

import datetime as dt
import json
import math
import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from medassay.core.canonical import canonical
from medassay.core.jsontext import storable
from medassay.errors import InputError
from medassay.exchange.imported import Source, import_manifest, new_run
from medassay.runner.finish import finish, write_scores
from medassay.storage.run import Run, create_run
from medassay.task.catalog import TASKS
from medassay.task.scoring import RunItems

_LONGEST = 2**20  # characters of one answer or question; more is no answer
_SCHEMA = """
CREATE TABLE item (domain, item, key, cluster, question, reference, PRIMARY KEY (domain, item))
    WITHOUT ROWID;
CREATE TABLE trial (domain, model, setting, mode, item, repeat INTEGER, prediction, score REAL,
    PRIMARY KEY (domain, model, setting, mode, item, repeat)) WITHOUT ROWID;
"""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """One answer with its score, or with the key that it is held against.

    `where` names its place in the file, for messages. A `score` of None is unknown, not wrong.
    """

    where: str
    domain: str
    model: str
    item: str
    text: str = ""
    score: float | None = None
    key: str | None = None
    setting: str = "zero_shot"
    mode: str = "solo"
    repeat: int = 0
    cluster: str | None = None
    question: str | None = None
    reference: str | None = None


@dataclass(frozen=True, kw_only=True)
class Log:
    """A file of predictions to be made a run: where it is from, and how it is read."""

    source: Source
    predictions: Generator[Prediction, None, None]
    scored: bool = True
    remembered: Mapping[str, Any] = field(default_factory=dict)


def run_of(log: Log, *, runs: Path | None = None, to: Path | None = None) -> Run:
    """Return the sealed run of a log's predictions; what fails leaves nothing behind.

    Parameters
    ----------
    runs : folder for the new run; `to` names the run's own folder instead

    Raises
    ------
    InputError
        Naming the file, the place and what was expected.
    """
    return new_run(
        [log.source.digest, dict(log.remembered)],
        lambda folder, name: _fill(folder, log, name),
        runs=runs or Path("runs"),
        to=to,
    )


def _fill(folder: Path, log: Log, name: str) -> None:
    scratch = folder / "scratch.sqlite"
    base = sqlite3.connect(scratch)
    try:
        base.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + _SCHEMA)
        with closing(log.predictions) as predictions:
            taken = sum(_take(base, one) for one in predictions)
        if not taken:
            raise InputError(f"{log.source.file.name}: holds no predictions")
        manifest = _manifest(base, log)
        with (folder / "items.jsonl").open("wb") as items:
            _write_items(base, items)
        with (
            (folder / "trials.jsonl").open("wb") as trials,
            (folder / "timings.jsonl").open("wb") as timings,
        ):
            for trial in _trials(base, scored=log.scored):
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


def _take(base: sqlite3.Connection, one: Prediction) -> int:
    """Put one prediction into the database; return 1."""
    for name in ("item", "model", "domain"):
        if not getattr(one, name):
            raise InputError(f"{one.where}: '{name}' is empty; expected text")
    if one.domain == "overall":
        raise InputError(
            f"{one.where}: 'domain' is 'overall', which names the ranking over all domains"
        )
    for text in (one.text, one.question or "", one.reference or ""):
        if len(text) > _LONGEST:
            raise InputError(
                f"{one.where}: {len(text)} characters; expected at most {_LONGEST}"
            )
    try:
        "".join((one.item, one.model, one.domain, one.text, one.question or "")).encode()
    except UnicodeEncodeError:
        raise InputError(f"{one.where}: holds broken Unicode; expected text") from None
    if not 0 <= one.repeat < 2**31:
        raise InputError(f"{one.where}: repeat {one.repeat}; expected a whole number from 0")
    if one.score is not None and not 0 <= one.score <= 1:
        raise InputError(
            f"{one.where}: score {one.score:g}; expected a number from 0 to 1, or none"
        )
    known = base.execute(
        "SELECT key FROM item WHERE domain = ? AND item = ?", (one.domain, one.item)
    ).fetchone()
    if known is None:
        base.execute(
            "INSERT INTO item VALUES (?, ?, ?, ?, ?, ?)",
            (one.domain, one.item, one.key, one.cluster, one.question, one.reference),
        )
    elif known[0] != one.key:
        raise InputError(
            f"{one.where}: item '{one.item}' has key '{one.key}' here and '{known[0]}' in an earlier row"
        )
    place = (one.domain, one.model, one.setting, one.mode, one.item)
    try:
        base.execute(
            "INSERT INTO trial VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*place, one.repeat, one.text, one.score),
        )
    except sqlite3.IntegrityError:
        raise InputError(
            f"{one.where}: a second row for item '{one.item}', model '{one.model}', domain "
            f"'{one.domain}'; expected one, or repeats that are told apart"
        ) from None
    return 1


def _write_items(base: sqlite3.Connection, file: IO[bytes]) -> None:
    rows = base.execute("SELECT * FROM item ORDER BY domain, item")
    for domain, item, *more in rows:
        record = {"id": item, "domain": domain, "kind": "public", "answer_type": "closed"}
        names = ("expected", "cluster", "question", "reference")
        record.update({k: v for k, v in zip(names, more, strict=True) if v is not None})
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


def _manifest(base: sqlite3.Connection, log: Log) -> dict[str, Any]:
    def distinct(column: str, table: str) -> list[str]:
        found = base.execute(f"SELECT DISTINCT {column} FROM {table} ORDER BY {column}")
        return [value for (value,) in found]

    return import_manifest(
        log.source,
        domains=distinct("domain", "item"),
        models=distinct("model", "trial"),
        settings=distinct("setting", "trial"),
        n_items=base.execute("SELECT COUNT(*) FROM item").fetchone()[0],
        **log.remembered,
    )


def lenient_json(data: bytes, where: str) -> Any:
    """Return parsed JSON that may hold NaN and infinities, as Python writes them; lone surrogates become "?".

    Raises
    ------
    InputError
        When it is no JSON.
    """
    try:
        found = json.loads(data)
        return _storable(found) if b"\\ud" in data.lower() else found
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON: {error}") from None


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable(inner) for inner in value]
    if isinstance(value, dict):
        return {storable(key): _storable(inner) for key, inner in value.items()}
    return value


def number_or_none(value: Any, where: str) -> float | None:
    """Return a score as a float; None and NaN are no score.

    Raises
    ------
    InputError
        When it is neither a number nor nothing.
    """
    if value is None:
        return None
    if not isinstance(value, int | float):
        raise InputError(f"{where}: score {value!r:.60}; expected a number")
    return None if math.isnan(value) else float(value)
