"""Tables as Parquet, by DuckDB."""

import errno
import glob
import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from medassay.core.files import write_lines
from medassay.errors import IntegrityError, UnavailableError

if TYPE_CHECKING:
    import duckdb

_ROWS_AT_ONCE = 20_480  # in memory; a sixth of DuckDB's usual number, as texts may be long
_LEAST_LIMIT = 1 << 20  # bytes of the longest line, as DuckDB is told


def has_parquet() -> bool:
    """Return whether Parquet can be written: whether the extra `data` is installed."""
    try:
        return find_spec("duckdb") is not None
    except ValueError:  # it was taken out of this process
        return False


def require_parquet(asked_by: str) -> None:
    """Refuse where Parquet cannot be written.

    Parameters
    ----------
    asked_by : option that needs it, as the error names it

    Raises
    ------
    UnavailableError
        When DuckDB is not installed.
    """
    if not has_parquet():
        raise UnavailableError(f"{asked_by} needs DuckDB: pip install 'medassay[data]'")


def write_parquet(
    rows: Iterable[Mapping[str, Any]], types: Mapping[str, str], to: Path, *, asked_by: str
) -> None:
    """Write rows as a Parquet file; equal rows give equal bytes.

    Parameters
    ----------
    types : column → type of DuckDB; columns of rows that are not among them are left out
    asked_by : option that needs it, as an error names it

    Raises
    ------
    UnavailableError
        When DuckDB is not installed.
    OSError
        Naming the file, when the disk takes no more of it.
    """
    require_parquet(asked_by)
    with TemporaryDirectory(dir=to.parent, prefix=f".{to.name}-") as folder:
        lines = Path(folder) / "rows"
        write_lines(lines, ({name: row.get(name) for name in types} for row in rows))
        _, longest = measure_lines(lines)
        write_query(f"SELECT * FROM {json_lines(lines, types, longest)}", to)


def write_query(query: str, to: Path, **values: Any) -> None:
    """Write what a query of DuckDB gives as a Parquet file.

    Parameters
    ----------
    values : of the parameters in the query, which stand there as `$name`

    Raises
    ------
    IntegrityError
        When a file of `json_lines` holds a line that is none of the table's; its number may be one
        too high.
    OSError
        Naming the file, when the disk takes no more of it.
    """
    import duckdb

    form = f"FORMAT parquet, ROW_GROUP_SIZE {_ROWS_AT_ONCE}"
    with _database().cursor() as base:
        try:
            base.execute(f"COPY ({query}) TO {_quoted(str(to))} ({form})", values)
        except duckdb.InvalidInputException as error:
            raise IntegrityError(str(error).partition("\n")[0]) from None
        except duckdb.IOException as error:  # which has no number of its own
            full = os.strerror(errno.ENOSPC)
            if full in str(error):
                raise OSError(errno.ENOSPC, full, str(to)) from None
            raise OSError(errno.EIO, str(error).partition("\n")[0], str(to)) from None


def measure_lines(path: Path) -> tuple[int, int]:
    """Return how many lines a file of JSON objects has, and the bytes of the longest.

    Raises
    ------
    IntegrityError
        Naming the first line that is blank or no object: DuckDB would pass over the one, and make a
        row of nulls of another.
    """
    n_lines = longest = 0
    with path.open("rb") as file:
        for n_lines, line in enumerate(file, 1):
            if not (line.startswith(b"{") and line.endswith((b"}\n", b"}"))):
                raise IntegrityError(f"{path.name} line {n_lines}: not a JSON object")
            longest = max(longest, len(line))
    return n_lines, longest


def json_lines(path: Path, types: Mapping[str, str], longest: int) -> str:
    """Return the table in a file of JSON objects, one a line, as a query names it.

    Parameters
    ----------
    types : column → type of DuckDB; keys that are not among them are left out
    longest : bytes of the longest line
    """
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in types.items())
    return f"read_json({_source(path, longest)}, columns = {{{columns}}}, records = true)"


def json_texts(path: Path, longest: int) -> str:
    """Return the lines of such a file as texts, in the column `json`, as a query names it."""
    return f"read_json_objects({_source(path, longest)})"


def _source(path: Path, longest: int) -> str:
    """Return a file of lines as the functions that read it take it.

    They take a path for a pattern and `name=value` in it for a column, unless told otherwise, and
    set aside memory for twice the longest line.
    """
    size = max(longest, _LEAST_LIMIT)
    return (
        f"{_quoted(glob.escape(str(path)))}, format = 'newline_delimited',"
        f" maximum_object_size = {size}, hive_partitioning = false"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@cache
def _database() -> "duckdb.DuckDBPyConnection":
    """Return an empty database in memory: to start one takes ten times as long as a small table."""
    import duckdb

    base = duckdb.connect(":memory:")
    base.execute("SET autoinstall_known_extensions = false")
    base.execute("SET threads = 1")  # the order of rows, and so the bytes, depend on no timing
    return base
