"""The database of the review app: SQLite in one file unless an address of PostgreSQL is given."""

import datetime as dt
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from medassay.core.clock import now
from medassay.core.private import close_to_others
from medassay.core.secret import secrets
from medassay.errors import InputError, UnavailableError

DEFAULT = "review.sqlite"
_BUSY_S = 30  # a writer waits for another one at most so long
_WRITES = "writes"


class Database:
    """An open database. Every piece of work is one transaction.

    `write` is all or nothing, and done when it ends.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._writer = engine.execution_options(**{_WRITES: True})
        # SQLite has one writer at a time, and lets those who wait sleep and guess: in one process a
        # lock is fairer.
        local = engine.dialect.name == "sqlite"
        self._turn: AbstractContextManager[Any] = Lock() if local else nullcontext()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Give a session for reading."""
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Give a session whose changes are on the disk when the block is left."""
        with (
            self._turn,
            Session(self._writer, expire_on_commit=False) as session,
            session.begin(),
        ):
            yield session

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def open_database(address: str = "", *, make: bool = True) -> Database:
    """Return the database at an address, brought to the present tables where need be.

    Parameters
    ----------
    address : `postgresql://…`, or the path of an SQLite file; default: `review.sqlite` here
    make : whether an SQLite file that is not there is made

    Raises
    ------
    InputError
        When it cannot be reached, or is of a later version of medassay.
    """
    place = address.removeprefix("sqlite:///") or DEFAULT
    if not make and "://" not in place and not Path(place).exists():
        raise InputError(
            f"database {place}: is not there; `medassay review import` or `serve` makes one,"
            " --database names another"
        )
    engine = _engine(place)
    try:
        _migrate(engine)
    except DBAPIError as error:
        reason = str(error.orig).strip().split("\n")[0]
        if not isinstance(error, OperationalError):
            reason += "; expected one of the review app, or none yet"
        raise InputError(f"database {_address(engine)}: {reason}") from None
    return Database(engine)


def _engine(address: str) -> Engine:
    address = address.removeprefix("sqlite:///")  # as others write the path of an SQLite file
    if "://" not in address:
        path = Path(address)
        if not path.absolute().parent.is_dir():
            raise InputError(f"database {path}: its folder does not exist; make it first")
        with suppress(OSError):  # SQLite tells what is wrong with it
            close_to_others(path)
        return _sqlite(path)
    try:
        url = make_url(address)
        secrets.learn([url.password or ""])
        if url.get_backend_name() != "postgresql":
            raise InputError(
                f"database: {url.get_backend_name()} is not known; expected postgresql://… or a"
                " path"
            )
        # Of many at once, most wait for a model or a person: twenty connections serve hundreds.
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_size=10,
            max_overflow=10,
            pool_pre_ping=True,
            isolation_level="READ COMMITTED",
        )
    except ImportError:
        raise UnavailableError(
            "PostgreSQL needs the extra [postgres]: pip install 'medassay[postgres]'"
        ) from None
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise InputError(
            "database: not an address; expected postgresql://user@host/name or a path"
        ) from None
    return engine


def _sqlite(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)), connect_args={"timeout": _BUSY_S}
    )

    @event.listens_for(engine, "connect")
    def _connected(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # transactions begin below, not by the driver
        for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {setting}")

    @event.listens_for(engine, "begin")
    def _begun(connection: Connection) -> None:
        # A writer takes its turn at the start: nobody is told "busy" half-way through.
        writes = connection.get_execution_options().get(_WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _migrate(engine: Engine) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    scripts = ScriptDirectory.from_config(config)
    with engine.connect() as connection:
        present = MigrationContext.configure(connection).get_current_revision()
        tables = set(inspect(connection).get_table_names())
    if (present is None and tables) or (present is not None and "study" not in tables):
        raise InputError(
            f"database {_address(engine)}: holds other tables; expected one of the review app, or"
            " none yet"
        )
    if present == scripts.get_current_head():
        return
    if present is not None and present not in {s.revision for s in scripts.walk_revisions()}:
        raise InputError(
            f"database {_address(engine)}: made by a later version of medassay ({present}); install"
            " that one"
        )
    config.attributes["engine"] = engine.execution_options(**{_WRITES: True})
    command.upgrade(config, "head")


def _address(engine: Engine) -> str:
    """Return the database's address without its password."""
    url = engine.url.set(query={})  # which may hold a password too
    return url.render_as_string(hide_password=True).removeprefix("sqlite:///")


def later(time: str, **by: float) -> str:
    """Return a time some days, hours or seconds after another one.

    Examples
    --------
    >>> later("2026-02-27T10:00:00Z", days=2)
    '2026-03-01T10:00:00Z'
    """
    at = dt.datetime.strptime(time, "%Y-%m-%dT%H:%M:%S%z")
    return (at + dt.timedelta(**by)).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_of_wrong_clock(time: str) -> bool:
    """Return whether a time that was noted before lies ahead: the clock was wrong then, or is now.

    Five minutes are not counted, for servers that share a database.
    """
    return time > later(now(), minutes=5)
