"""Tables as Parquet, by DuckDB."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medassay.core.files import write_lines
from medassay.errors import UnavailableError

if TYPE_CHECKING:
    import duckdb


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
    if not has_parquet():
        raise UnavailableError(f"{asked_by} needs DuckDB: pip install 'medassay[data]'")
    lines = to.with_suffix(".rows")
    write_lines(lines, ({name: row.get(name) for name in types} for row in rows))
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in types.items())
    target = str(to).replace("'", "''")
    with _database().cursor() as base:
        base.execute(
            "COPY (SELECT * FROM read_json(?, format = 'newline_delimited', columns ="
            f" {{{columns}}}, maximum_object_size = 268435456)) TO '{target}' (FORMAT parquet)",
            [str(lines)],
        )
    lines.unlink()


@cache
def _database() -> "duckdb.DuckDBPyConnection":
    """Return an empty database in memory: to start one takes ten times as long as a small table."""
    import duckdb

    base = duckdb.connect(":memory:")
    base.execute("SET autoinstall_known_extensions = false")
    base.execute("SET threads = 1")  # the order of rows, and so the bytes, depend on no timing
    return base
