"""Tables as Parquet, by DuckDB."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medassay.core.files import write_lines
from medassay.errors import IntegrityError, UnavailableError

if TYPE_CHECKING:
    import duckdb

_ROWS_AT_ONCE = 20_480  # in memory; a sixth of DuckDB's usual number, as texts may be long
_SMALLEST = 1 << 20  # bytes of a line


def has_parquet() -> bool:
    """Return whether Parquet can be written: whether the extra `data` is installed."""
    try:
        return find_spec("duckdb") is not None
    except ValueError:  # it was taken out of this process
        return False


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
    """
    lines = to.with_suffix(".rows")
    write_lines(lines, ({name: row.get(name) for name in types} for row in rows))
    write_query(f"SELECT * FROM {json_lines(lines, types)}", to, asked_by=asked_by)
    lines.unlink()


def write_query(query: str, to: Path, *, asked_by: str, **values: Any) -> None:
    """Write what a query of DuckDB gives as a Parquet file.

    Parameters
    ----------
    values : of the parameters in the query, which stand there as `$name`

    Raises
    ------
    UnavailableError
        When DuckDB is not installed.
    IntegrityError
        When a file of `json_lines` holds a line that is none of the table's.
    """
    if not has_parquet():
        raise UnavailableError(f"{asked_by} needs DuckDB: pip install 'medassay[data]'")
    import duckdb

    with _database().cursor() as base:
        try:
            form = f"FORMAT parquet, ROW_GROUP_SIZE {_ROWS_AT_ONCE}"
            base.execute(f"COPY ({query}) TO {_quoted(to)} ({form})", values)
        except duckdb.InvalidInputException as error:
            raise IntegrityError(str(error).partition("\n")[0]) from None


def json_lines(path: Path, types: Mapping[str, str]) -> str:
    """Return the table in a file of JSON objects, one a line, as a query names it.

    Parameters
    ----------
    types : column → type of DuckDB; keys that are not among them are left out
    """
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in types.items())
    return f"read_json({_file(path)}, columns = {{{columns}}}, records = true)"


def json_texts(path: Path) -> str:
    """Return the lines of such a file as texts, in the column `json`, as a query names it."""
    return f"read_json_objects({_file(path)})"


def _file(path: Path) -> str:
    """Return a file of lines as the functions that read it take it; they set aside twice the room
    of the longest line.
    """
    with path.open("rb") as lines:
        longest = max(map(len, lines), default=0)
    size = max(longest, _SMALLEST)
    return f"{_quoted(path)}, format = 'newline_delimited', maximum_object_size = {size}"


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


@cache
def _database() -> "duckdb.DuckDBPyConnection":
    """Return an empty database in memory: to start one takes ten times as long as a small table."""
    import duckdb

    base = duckdb.connect(":memory:")
    base.execute("SET autoinstall_known_extensions = false")
    base.execute("SET threads = 1")  # the order of rows, and so the bytes, depend on no timing
    return base
