"""Sheets in a terminal, and as a folder of files."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from medassay.cli.output import out
from medassay.core.table import Table
from medassay.errors import InputError

if TYPE_CHECKING:
    from medassay.report.document import ReportDocument


def refuse_taken(to: Path | None) -> None:
    """Refuse a folder that may not be written, before any work is done."""
    from medassay.storage.run import refuse_inside

    if to is not None:
        refuse_inside(to)
        if to.exists():
            raise InputError(f"{to}: exists; nothing is overwritten")


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        draft = Path(temporary) / "whole"
        draft.mkdir()
        for name, content in files.items():
            (draft / name).parent.mkdir(exist_ok=True)
            (draft / name).write_bytes(content)
        draft.rename(folder)


def tell_sheet(
    sheet: "ReportDocument", to: Path | None, more: Mapping[str, bytes] | None = None
) -> None:
    """Print a sheet, or its data as JSON, and write its files where a folder is named."""
    if to is not None:
        write_folder(to, {**sheet.files(), **(more or {})})
    page = {} if to is None else {"page": str(to / "index.html")}
    out.tell({**sheet.data, **page}, _parts(sheet), *(f"page {path}" for path in page.values()))


def _parts(sheet: "ReportDocument") -> Iterator[str | Table]:
    yield sheet.title
    yield sheet.reading
    yield from (f"- {note}" for note in sheet.notes)
    for section in sheet.sections:
        if section.text:
            yield f"\n{section.title}: {section.text}"
        for grid in section.grids:
            yield Table(
                rows=grid.rows,
                text=grid.heads[: grid.names],
                numbers=grid.heads[grid.names :],
                title=grid.caption or section.title,
            )
