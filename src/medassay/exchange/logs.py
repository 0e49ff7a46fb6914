"""Logs of another harness → one sealed run.

Predictions are streamed through a scratch database, which sorts them and finds duplicates; memory
does not grow with their number.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.files import write_lines
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.target import Given, Key
from medassay.errors import InputError
from medassay.exchange.imported import (
    import_manifest,
    imported_trial,
    limits_with_grades,
    new_run,
    refuse_alike,
    seal_import,
    write_trials,
)
from medassay.exchange.prediction import Prediction, PredictionFile
from medassay.kinds.catalog import TASKS
from medassay.storage.run import Run

_LONGEST = 2**20  # characters of one answer or question; more is no answer
UNSAFE = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"  # a scratch database is made anew
TRIAL_TABLE = """
CREATE TABLE trial (domain, model, setting, mode, item, repeat INTEGER, prediction, score REAL,
    PRIMARY KEY (domain, model, setting, mode, item, repeat)) WITHOUT ROWID;
"""
_ITEM_TABLE = """
CREATE TABLE item (domain, item, key, cluster, question, reference, identity, log INTEGER,
    PRIMARY KEY (domain, item)) WITHOUT ROWID;
CREATE INDEX by_identity ON item (domain, identity);
"""


def run_of(
    logs: Sequence[PredictionFile],
    *,
    left_out: Sequence[Mapping[str, str]] = (),
    runs: Path | None = None,
    to: Path | None = None,
) -> Run:
    """Return the sealed run of the predictions of one log or several.

    What fails leaves nothing behind.

    Items of different logs are the same where their content is, whatever each log calls them; the
    run has the names of the first log.

    Parameters
    ----------
    left_out : logs beside these that are not taken: file and reason, which the run remembers
    runs : folder for the new run; `to` names the run's own folder instead

    Raises
    ------
    InputError
        Naming the file, the place and what was expected.
    """
    joined = _join_files(logs, left_out)
    return new_run(
        [joined.source.digest, dict(joined.remembered)],
        lambda folder, name: _fill(folder, logs, joined, name),
        runs=runs,
        to=to,
    )


def _join_files(
    logs: Sequence[PredictionFile], left_out: Sequence[Mapping[str, str]]
) -> PredictionFile:
    """Return several logs as one, whose source is all of them."""
    first, more = logs[0], {"left_out": [dict(entry) for entry in left_out]} if left_out else {}
    if len(logs) == 1:
        return replace(first, remembered={**first.remembered, **more})
    digests = sorted(log.source.digest for log in logs)
    return PredictionFile(
        source=replace(
            first.source,
            digest=sha256_hex("".join(digests).encode()),
            title=f"{first.source.name} and {len(logs) - 1} more",
        ),
        predictions=first.predictions,
        scored=first.scored,
        remembered={
            "logs": [
                {"file": log.source.file.name, "sha256": log.source.digest, **log.remembered}
                for log in logs
            ],
            **more,
        },
    )


def _fill(
    folder: Path, logs: Sequence[PredictionFile], prediction_file: PredictionFile, name: str
) -> None:
    scratch = folder / "scratch.sqlite"
    base = sqlite3.connect(scratch)
    try:
        base.executescript(f"{UNSAFE}{_ITEM_TABLE}{TRIAL_TABLE}")
        for number, log in enumerate(logs):
            names = _Names(base, number, logs)
            with closing(log.predictions) as predictions:
                n_taken = sum(_take(base, prediction, names) for prediction in predictions)
            if not n_taken:
                raise InputError(f"{log.source.file.name}: holds no predictions")
        manifest = _manifest(base, prediction_file)
        write_lines(folder / "items.jsonl", _items(base))
        write_trials(folder, _trials(base, scored=prediction_file.scored))
    finally:
        base.close()
        scratch.unlink(missing_ok=True)
    seal_import(folder, name, manifest, TASKS["closed"])


class _Names:
    """What the items of one log are called in the run: as in the logs before it, where the content
    is the same.

    `number` is the place of the log among all.
    """

    def __init__(
        self, base: sqlite3.Connection, number: int, logs: Sequence[PredictionFile]
    ) -> None:
        self._base, self.number, self._logs = base, number, logs
        self._known: dict[tuple[str, str], str] = {}
        self._taken: set[tuple[str, str]] = set()

    def of(self, prediction: Prediction) -> str:
        """Return the name of an item in the run.

        Raises
        ------
        InputError
            When an earlier log asks something else under this name, and this question nowhere.
        """
        place = (prediction.domain, prediction.item)
        if not self.number:
            return prediction.item
        if place not in self._known:
            self._known[place] = self._find(prediction)
            self._taken.add((prediction.domain, self._known[place]))
        return self._known[place]

    def _find(self, prediction: Prediction) -> str:
        identity = prediction.identity
        same_name = self._base.execute(
            "SELECT identity, log FROM item WHERE domain = ? AND item = ?",
            (prediction.domain, prediction.item),
        ).fetchone()
        if identity is None or (same_name and same_name[0] in (None, identity)):
            return prediction.item
        for (name,) in self._base.execute(
            "SELECT item FROM item WHERE domain = ? AND identity = ? AND log < ? ORDER BY item",
            (prediction.domain, identity, self.number),
        ):
            if (prediction.domain, name) not in self._taken:
                return str(name)
        if same_name and same_name[1] < self.number:
            raise InputError(
                f"{prediction.where}: item '{prediction.item}' of '{prediction.domain}' asks"
                f" something else here than in {self._logs[same_name[1]].source.file}; logs of one"
                " benchmark make a run, import others apart"
            )
        return prediction.item


def check_prediction(prediction: Prediction) -> None:
    """Refuse a prediction whose fields are empty, too long, broken or out of range."""
    for name in ("item", "model", "domain"):
        if not getattr(prediction, name):
            raise InputError(f"{prediction.where}: '{name}' is empty; expected text")
    if prediction.domain == "overall":
        raise InputError(
            f"{prediction.where}: 'domain' is 'overall', which names the ranking over all domains"
        )
    for text in (prediction.text, prediction.question or "", prediction.reference or ""):
        if len(text) > _LONGEST:
            raise InputError(
                f"{prediction.where}: {len(text)} characters; expected at most {_LONGEST}"
            )
    try:
        "".join(
            (
                prediction.item,
                prediction.model,
                prediction.domain,
                prediction.text,
                prediction.question or "",
            )
        ).encode()
    except UnicodeEncodeError:
        raise InputError(f"{prediction.where}: holds broken Unicode; expected text") from None
    if not 0 <= prediction.repeat < 2**31:
        raise InputError(
            f"{prediction.where}: repeat {prediction.repeat}; expected a whole number from 0"
        )
    if prediction.score is not None and not 0 <= prediction.score <= 1:
        raise InputError(
            f"{prediction.where}: score {prediction.score:g}; expected a number from 0 to 1, or"
            " none"
        )


def _take(base: sqlite3.Connection, prediction: Prediction, names: _Names) -> int:
    """Put one prediction into the database; return 1."""
    check_prediction(prediction)
    item = names.of(prediction)
    existing = base.execute(
        "SELECT key, cluster FROM item WHERE domain = ? AND item = ?", (prediction.domain, item)
    ).fetchone()
    if existing is None:
        values = (
            prediction.key,
            prediction.cluster,
            prediction.question,
            prediction.reference,
            prediction.identity,
            names.number,
        )
        base.execute(
            "INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (prediction.domain, item, *values),
        )
    elif existing[0] != prediction.key:
        raise InputError(
            f"{prediction.where}: item '{prediction.item}' has key '{prediction.key}' here and"
            f" '{existing[0]}' in an earlier row"
        )
    elif existing[1] != prediction.cluster:
        raise InputError(
            f"{prediction.where}: item '{prediction.item}' is in cluster '{prediction.cluster}'"
            f" here and in '{existing[1]}' in an earlier row; all rows of an item need the same"
        )
    add_trial(base, prediction, item)
    return 1


def add_trial(base: sqlite3.Connection, prediction: Prediction, item: str) -> None:
    """Put the answer to an item into the database.

    Raises
    ------
    InputError
        When the same answer stands there already.
    """
    place = (prediction.domain, prediction.model, prediction.setting, prediction.mode, item)
    try:
        base.execute(
            "INSERT INTO trial VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*place, prediction.repeat, prediction.text, prediction.score),
        )
    except sqlite3.IntegrityError:
        raise InputError(
            f"{prediction.where}: a second row for item '{prediction.item}', model"
            f" '{prediction.model}', domain '{prediction.domain}'; expected one, or repeats that"
            " are told apart (of two logs of a model leave one out; `import lm-eval --model` names"
            " models apart)"
        ) from None


def _items(base: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    rows = base.execute(
        "SELECT domain, item, key, cluster, question, reference FROM item ORDER BY domain, item"
    )
    for domain, item, *more in rows:
        record = {"id": item, "domain": domain, "kind": "public", "answer_type": "closed"}
        names = ("expected", "cluster", "question", "reference")
        record.update({k: v for k, v in zip(names, more, strict=True) if v is not None})
        yield record


def _trials(base: sqlite3.Connection, *, scored: bool) -> Iterator[dict[str, Any]]:
    order = "domain, model, setting, mode, item, repeat"
    for domain, model, setting, mode, item, repeat, prediction, score in base.execute(
        f"SELECT * FROM trial ORDER BY {order}"
    ):
        value = (None if score is None else repr(score)) if scored else (prediction or None)
        missing = ("failed", "no score given") if scored else ("unparsed", "blank")
        outcome, reason = ("answered", "imported") if value is not None else missing
        place = (domain, model, setting, mode, item, repeat)
        yield imported_trial(place, prediction or "", outcome, value, reason)


def distinct(base: sqlite3.Connection, column: str, table: str = "trial") -> list[str]:
    """Return the values of a column, sorted."""
    rows = base.execute(f"SELECT DISTINCT {column} FROM {table} ORDER BY {column}")
    return [value for (value,) in rows]


def _manifest(base: sqlite3.Connection, log: PredictionFile) -> ManifestObject:
    refuse_alike(distinct(base, "item", "item"), "items")
    refuse_alike(distinct(base, "mode"), "modes")
    limits = limits_with_grades(log.source.limits, base)
    return import_manifest(
        replace(log.source, limits=limits, forms=(Given.form, Key.form)),
        domains=distinct(base, "domain", "item"),
        models=distinct(base, "model"),
        settings=distinct(base, "setting"),
        n_items=base.execute("SELECT COUNT(*) FROM item").fetchone()[0],
        content=_content(base),
        entries=log.entries,
        **log.remembered,
    )


def _content(base: sqlite3.Connection) -> str | None:
    """Return the SHA-256 of all items by their content.

    None where the content of one is not known.
    """
    digest = sha256()
    for domain, item, identity in base.execute(
        "SELECT domain, item, identity FROM item ORDER BY domain, item"
    ):
        if identity is None:
            return None
        digest.update(canonical([domain, item, identity]) + b"\n")
    return digest.hexdigest()
