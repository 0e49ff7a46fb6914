"""The index of a run: a database in the user's cache that says of every trial where its lines lie,
what it is filtered and sorted by, and which words its reply has.

It is made once and follows a run that is under way; whatever happens to it, it is made anew. In the
run itself nothing is written.
"""

import datetime as dt
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import platformdirs

from medassay.core.canonical import sha256_hex
from medassay.core.private import close_to_others, make_folder
from medassay.core.records.answer import OUTCOMES
from medassay.core.records.trial import TrialKey
from medassay.errors import InputError, IntegrityError, UnavailableError
from medassay.kinds.catalog import task_of_run
from medassay.storage.run import SEAL, SEALED_RECORDS, TOMBSTONES, Run, file_sha256
from medassay.viewer.entry import EntryMaker, IndexedTrial, spread_of
from medassay.viewer.sources import (
    Batch,
    IndexedVerdict,
    read_journals,
    read_sealed,
    unread_bytes,
)

T = TypeVar("T")
_REVISION = 2  # of the tables below: an older index is made anew
_AT_ONCE = 5_000  # lines a transaction
_REMEMBERED = 250_000  # names whose numbers are kept in memory
_UNUSED_DAYS = 30  # after which an index is removed
_PATIENCE = 30.0  # seconds that a transaction waits for another one
_TABLES = """
CREATE TABLE state (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE source (name TEXT PRIMARY KEY, offset INTEGER) WITHOUT ROWID;
CREATE TABLE file (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE name (id INTEGER PRIMARY KEY, kind TEXT, text TEXT, UNIQUE (kind, text));
CREATE TABLE trial (
  n INTEGER PRIMARY KEY, domain INTEGER, model INTEGER, setting INTEGER, mode INTEGER, item INTEGER,
  repeat INTEGER, outcome INTEGER, reason INTEGER, scorer INTEGER, score REAL, grade INTEGER,
  value TEXT, shape INTEGER, cut INTEGER, spread REAL, length INTEGER, seconds REAL,
  prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL, attempt INTEGER,
  file INTEGER, at INTEGER, size INTEGER, score_at INTEGER, score_size INTEGER,
  verdict_at INTEGER, verdict_size INTEGER
);
CREATE UNIQUE INDEX place ON trial (item, model, domain, setting, mode, repeat);
CREATE TABLE verdict (
  trial INTEGER, judge TEXT, outcome TEXT, score REAL, attempt INTEGER,
  file INTEGER, at INTEGER, size INTEGER, PRIMARY KEY (trial, judge)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE reply USING fts5(
  text, content='', columnsize=0, tokenize="unicode61 remove_diacritics 2"
);
"""
_N_COLUMNS = 29
NAMED = ("domain", "model", "setting", "mode", "item")  # columns that hold numbers of names
_PLACE = " AND ".join(f"{column}=?" for column in (*NAMED, "repeat"))


class IndexState(msgspec.Struct, frozen=True):
    """What an index notes of itself.

    Attributes
    ----------
    trials : how many it holds
    last : number of the last one; -1 before the first
    version : grows whenever something is added
    error : why the run could not be read on, "" where nothing is wrong
    """

    trials: int = 0
    last: int = -1
    version: int = 0
    error: str = ""


class RunIndex:
    """The index of one run, for one process or several, and for any thread.

    Attributes
    ----------
    run : what it is of
    sealed : whether it is of the sealed run; once a run is sealed another index is made
    """

    def __init__(self, run: Run, folder: Path | None = None) -> None:
        self.run = run
        self.sealed = run.sealed
        self._state = run_state(run)
        self._folder = cache_folder(run) if folder is None else folder
        self._lock = threading.RLock()
        self._numbers: dict[tuple[str, str], int] = {}
        self._files: dict[str, int] = {}
        self._maker: EntryMaker | None = None
        self._db = self._open()

    def _open(self) -> sqlite3.Connection:
        make_folder(self._folder)
        path = self._folder / f"{self._state}.sqlite"
        for other in self._folder.glob("*.sqlite*"):  # of the run before it was sealed, say
            if not other.name.startswith(path.name):
                other.unlink(missing_ok=True)
        self._path = path
        try:
            return self._connect()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and "fts5" in str(error):
                raise UnavailableError(
                    "medassay view needs SQLite with full-text search (FTS5), which this Python"
                    " was built without; use another Python, such as one of python.org or conda"
                ) from None
            for damaged in self._folder.glob(f"{path.name}*"):
                damaged.unlink(missing_ok=True)
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        db = _connected(self._path)
        self._path.touch()  # in use: what is only read would look old to `remove_unused`
        self._inode = self._path.stat().st_ino
        return db

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._lock:
            return self._db.execute(query, values).fetchall()

    @property
    def n_trials(self) -> int:
        """Return how many trials are indexed."""
        return self.state().trials

    @property
    def version(self) -> int:
        """Return a number that grows whenever something is added."""
        return self.state().version

    def state(self) -> IndexState:
        """Return what the index notes of itself."""
        return msgspec.convert(dict(self.rows("SELECT name, value FROM state")), IndexState)

    def progress(self) -> tuple[int, int]:
        """Return how many bytes of trials are read, and how many the run has by now."""
        positions = dict(self.rows("SELECT name, offset FROM source"))
        return unread_bytes(self.run.path, positions, sealed=self.sealed)

    @property
    def error(self) -> str:
        """Return why a run could not be read on, "" where nothing is wrong."""
        return self.state().error

    def note_error(self, message: str) -> None:
        """Note why the run could not be read on, "" where it could."""
        if message != self.error:
            with self._lock, self._changing():
                self._db.execute("INSERT OR REPLACE INTO state VALUES ('error', ?)", (message,))

    @property
    def is_stale(self) -> bool:
        """Return whether another index is due: the run was sealed since, or changed by a legal
        request for deletion, or is another one of this name, or the index was removed.
        """
        try:
            inode = self._path.stat().st_ino
        except OSError:
            return True
        return inode != self._inode or run_state(Run(self.run.path)) != self._state

    def catch_up(self, limit: int | None = None) -> int:
        """Read on, at most about `limit` lines, and return how many were read.

        Raises
        ------
        IntegrityError
            Naming the file and the byte at which a run is damaged.
        """
        n_read = 0
        while limit is None or n_read < limit:
            at_once = _AT_ONCE if limit is None else min(_AT_ONCE, limit - n_read)
            n = self._read_batch(at_once)
            n_read += n
            if n == 0:
                break
        return n_read

    def _read_batch(self, limit: int) -> int:
        read = read_sealed if self.sealed else read_journals
        with self._lock, self._changing():
            positions = dict(self._db.execute("SELECT name, offset FROM source").fetchall())
            batch = read(self.run.path, positions, self._file_number, self.maker, limit)
            n = len(batch.trials) + len(batch.verdicts)
            if n:
                self._take(batch)
        if not n:
            self.note_error("")  # of a file that was whole again
        return n

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            self._numbers.clear()
            self._files.clear()
            raise
        self._db.execute("COMMIT")

    @property
    def maker(self) -> EntryMaker:
        """Return what makes rows of the lines of this run."""
        if self._maker is None:
            try:
                task = task_of_run(self.run.manifest)
                self._maker = EntryMaker(self.run, task)
            except (LookupError, TypeError, ValueError) as error:
                raise IntegrityError(
                    f"manifest.json: made by another version, or damaged: {error} is not known"
                ) from None
        return self._maker

    def _take(self, batch: Batch) -> None:
        state = self.state()
        first, n_trials = state.last + 1, state.trials
        if self._insert_new(first, batch.trials):
            n_trials += len(batch.trials)
        else:
            for number, entry in enumerate(batch.trials, first):
                n_trials += self._replace(number, entry)
        for verdict in batch.verdicts:
            self._take_verdict(verdict)
        self._db.executemany(
            "INSERT OR REPLACE INTO source VALUES (?, ?)", list(batch.positions.items())
        )
        changes = {
            "last": first + len(batch.trials) - 1,
            "trials": n_trials,
            "version": state.version + 1,
            "error": "",
        }
        self._db.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", list(changes.items()))

    def _insert_new(self, first: int, entries: Sequence[IndexedTrial]) -> bool:
        """Take trials at once, and return whether all were new; if not, none is taken."""
        self._db.execute("SAVEPOINT trials")
        try:
            self._insert(first, entries)
        except sqlite3.IntegrityError:  # one was asked again
            self._db.execute("ROLLBACK TO trials")
            self._numbers.clear()  # of names that came with them
            return False
        finally:
            self._db.execute("RELEASE trials")
        return True

    def _replace(self, number: int, entry: IndexedTrial) -> int:
        """Take a trial that may have been read before, and return how many more there are now."""
        row = self._db.execute(
            f"SELECT n, outcome, attempt FROM trial WHERE {_PLACE}",
            self._place_numbers(entry.place),
        ).fetchone()
        if row is not None:
            if rank(row[1], row[2]) > rank(entry.outcome, entry.attempt):
                return 0
            # Its words stay: they lead to a number that is there no longer.
            self._db.execute("DELETE FROM trial WHERE n = ?", (row[0],))
            self._db.execute("DELETE FROM verdict WHERE trial = ?", (row[0],))
        self._insert(number, [entry])
        return 1 if row is None else 0

    def _insert(self, first: int, entries: Sequence[IndexedTrial]) -> None:
        marks = ",".join("?" * _N_COLUMNS)
        self._db.executemany(
            f"INSERT INTO trial VALUES ({marks})",
            [self._row(number, entry) for number, entry in enumerate(entries, first)],
        )
        self._db.executemany(
            "INSERT INTO reply (rowid, text) VALUES (?, ?)",
            [(number, entry.text) for number, entry in enumerate(entries, first)],
        )

    def _row(self, number: int, entry: IndexedTrial) -> tuple[Any, ...]:
        return (
            number,
            *self._place_numbers(entry.place),
            entry.outcome,
            self._number("reason", entry.reason),
            self._number("scorer", entry.scorer),
            entry.score,
            entry.grade,
            entry.value,
            None if entry.shape is None else self._number("shape", entry.shape),
            entry.cut,
            entry.spread,
            entry.length,
            entry.seconds,
            entry.prompt_tokens,
            entry.completion_tokens,
            entry.cost,
            entry.attempt,
            *entry.trial,
            *entry.score_extent[1:],
            *entry.verdicts[1:],
        )

    def _take_verdict(self, verdict: IndexedVerdict) -> None:
        head = verdict.head
        row = self._db.execute(
            f"SELECT n, scorer FROM trial WHERE {_PLACE}",
            self._place_numbers(head.place),
        ).fetchone()
        if row is None:  # its trial was asked again since, and this is of the answer before
            return
        number = row[0]
        before = self._db.execute(
            "SELECT outcome, attempt FROM verdict WHERE trial = ? AND judge = ?",
            (number, head.judge),
        ).fetchone()
        is_new = (head.outcome != "failed", head.attempt)
        if before is not None and (before[0] != "failed", before[1]) > is_new:
            return
        self._db.execute(
            "INSERT OR REPLACE INTO verdict VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (number, head.judge, head.outcome, head.score, head.attempt, *verdict.extent),
        )
        scores = dict(
            self._db.execute("SELECT judge, score FROM verdict WHERE trial = ?", (number,))
        )
        [scorer] = self._db.execute("SELECT text FROM name WHERE id = ?", (row[1],)).fetchone()
        scale = self.maker.scale_of(scorer)
        self._db.execute(
            "UPDATE trial SET spread = ? WHERE n = ?", (spread_of(scores, scale), number)
        )

    def _place_numbers(self, place: TrialKey) -> tuple[int, ...]:
        names = zip(NAMED, place[:5], strict=True)
        return (*(self._number(kind, str(text)) for kind, text in names), place[5])

    def _number(self, kind: str, text: str) -> int:
        """Return the number of a name, which gets one if it is new."""
        key = kind, text
        if (number := self._numbers.get(key)) is None:
            if len(self._numbers) >= _REMEMBERED:
                self._numbers.clear()
            self._db.execute("INSERT OR IGNORE INTO name (kind, text) VALUES (?, ?)", key)
            [number] = self._db.execute(
                "SELECT id FROM name WHERE kind = ? AND text = ?", key
            ).fetchone()
            self._numbers[key] = number
        return number

    def _file_number(self, name: str) -> int:
        if (number := self._files.get(name)) is None:
            self._db.execute("INSERT OR IGNORE INTO file (name) VALUES (?)", (name,))
            [number] = self._db.execute("SELECT id FROM file WHERE name = ?", (name,)).fetchone()
            self._files[name] = number
        return number

    def number_of_name(self, kind: str, text: str) -> int | None:
        """Return the number of a name, None where no trial has it."""
        rows = self.rows("SELECT id FROM name WHERE kind = ? AND text = ?", kind, text)
        return rows[0][0] if rows else None

    def names(self, kind: str) -> list[str]:
        """Return the names of a kind, sorted."""
        rows = self.rows("SELECT text FROM name WHERE kind = ? ORDER BY text", kind)
        return [text for (text,) in rows]

    def number_at(self, place: TrialKey) -> int:
        """Return the number of the trial at a place.

        Raises
        ------
        InputError
            When no trial there is indexed by now.
        """
        numbers = [
            self.number_of_name(kind, str(text))
            for kind, text in zip(NAMED, place[:5], strict=True)
        ]
        # A name that is not there has no number, and NULL equals nothing.
        rows = self.rows(f"SELECT n FROM trial WHERE {_PLACE}", *numbers, place[5])
        if not rows:
            raise InputError(
                f"run {self.run.id}: no answer of '{place[1]}' ({place[2]}, {place[3]}) to item"
                f" '{place[4]}' of {place[0]}, repeat {place[5]}, is there by now"
            )
        return int(rows[0][0])


def remembered(make: Callable[[RunIndex], T]) -> Callable[[RunIndex], T]:
    """Return a function that computes its result once for each version of an index."""

    @lru_cache(maxsize=32)
    def of_version(index: RunIndex, version: int) -> T:
        return make(index)

    return wraps(make)(lambda index: of_version(index, index.version))


def rank(outcome: int, attempt: int) -> tuple[bool, int]:
    """Return what decides between two lines of one trial: a failure counts where nothing else is
    there, and of the others the last attempt.
    """
    return outcome != OUTCOMES.index("failed"), attempt


def cache_folder(run: Run) -> Path:
    """Return where the index of a run lies: in the user's cache, by the run's folder."""
    place = str(run.path.resolve()).encode("utf-8", "surrogateescape")
    return index_folder() / sha256_hex(place)[:20]


def index_folder() -> Path:
    """Return the folder of all indexes."""
    return platformdirs.user_cache_path("medassay") / "views"


def run_state(run: Run) -> str:
    """Return what names the index of a run as it is now.

    Another run in the same folder, the same one once it is sealed, and one of which something was
    deleted by law, has an index of its own.
    """
    sealed = run.sealed
    names = ("manifest.json", *((SEAL, TOMBSTONES) if sealed else ()))
    basis: list[Any] = [(name, file_sha256(path)) for name, path in _present(run.path, names)]
    if sealed:  # these change by deletion alone
        for name, path in _present(run.path, SEALED_RECORDS):
            status = path.stat()
            basis.append((name, status.st_size, status.st_mtime_ns))
    return f"{_REVISION}-{sha256_hex(repr(basis).encode())[:16]}"


def _present(folder: Path, names: Iterable[str]) -> list[tuple[str, Path]]:
    return [(name, folder / name) for name in names if (folder / name).is_file()]


def remove_index(run: Run) -> None:
    """Remove the index of a run: its words are those of replies."""
    for path in cache_folder(run).glob("*.sqlite*"):
        path.unlink(missing_ok=True)


def remove_unused(days: float = _UNUSED_DAYS) -> None:
    """Remove indexes that nobody used for so many days."""
    oldest = dt.datetime.now(dt.UTC).timestamp() - days * 86_400
    for path in index_folder().glob("*/*.sqlite"):
        if path.stat().st_mtime < oldest:
            for part in path.parent.glob(f"{path.name}*"):
                part.unlink(missing_ok=True)


def _connected(path: Path) -> sqlite3.Connection:
    close_to_others(path)
    db = sqlite3.connect(path, check_same_thread=False, timeout=_PATIENCE, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=OFF")  # it can be made anew
        db.execute("PRAGMA cache_size=-16384")
        db.execute("BEGIN IMMEDIATE")
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'state'").fetchone():
            for statement in _TABLES.split(";\n"):
                db.execute(statement)
            # Words are gathered in memory and written in large pieces.
            db.execute("INSERT INTO reply (reply, rank) VALUES ('hashsize', 16777216)")
        db.execute("COMMIT")
        db.execute("SELECT count(*) FROM state").fetchone()
    except BaseException:
        db.close()
        raise
    return db
