"""The files of a publication beside its pages: tables, their dictionary, Parquet, citations, and
one archive of all.
"""

import csv
import io
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from medassay.kinds.catalog import presentations_of
from medassay.report.board import Board
from medassay.report.citation import citation_files
from medassay.report.dictionary import COLUMNS, PARQUET, dictionary_csv
from medassay.report.tables import (
    categories_csv,
    leaderboard_csv,
    pairs_csv,
    plain,
    times_csv,
)
from medassay.storage.parquet import has_parquet, write_parquet
from medassay.storage.run import Run, file_sha256
from medassay.storage.trial_rows import COLUMNS as OF_TRIALS
from medassay.storage.trial_rows import write_trials

DICTIONARY = "dictionary.csv"
ARCHIVE_SUMS = "SHA256SUMS"
_READ: Mapping[str, Callable[[str], Any]] = {  # of cells that hold no text
    "number": float,
    "count": lambda cell: int(float(cell)),
    "yes or no": lambda cell: cell == "True",
}
_LEVEL = 2  # of zlib: 9 % larger than at 6, in 40 % of the time


def write_data(data: Path, board: Board, run: Run) -> None:
    """Write what stands beside the run's own files in the data folder of a publication."""
    tables = {
        "leaderboard": leaderboard_csv(board),
        "pairs": pairs_csv(board),
        "times": times_csv(board),
    }
    if board.by_category:
        tables["categories"] = categories_csv(board)
    for part in board.by_metric:
        for presentation in presentations_of(part.statistics.document).values():
            for file, data_file in presentation.files.items():
                tables[file.removesuffix(".csv")] = data_file.text(part)
    for name, text in tables.items():
        (data / f"{name}.csv").write_text(text, encoding="utf-8")
    columns = {name: next(csv.reader([text.partition("\n")[0]])) for name, text in tables.items()}
    of_answers = [name for name in OF_TRIALS if name != "run"] + ["sha256"]
    if has_parquet():
        for name, text in tables.items():
            rows = _typed_rows(text)
            write_parquet(rows, _types(columns[name]), data / f"{name}.parquet", asked_by="Parquet")
        write_trials(run, of_answers, data / "answers.parquet", asked_by="Parquet")
        columns["answers"] = of_answers
    (data / DICTIONARY).write_text(dictionary_csv(columns), encoding="utf-8")
    for file, text in citation_files(board).items():
        (data / file).write_text(text, encoding="utf-8")


def write_archive(data: Path, publication: str) -> None:
    """Pack the data folder of a publication into one file in it, with the sums of what it packs."""
    files = sorted(path for path in data.rglob("*") if path.is_file())
    names = [f"{publication}/{path.relative_to(data).as_posix()}" for path in files]
    sums = []
    place = data / f"{publication}.zip"
    with zipfile.ZipFile(place, "x", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for path, name in zip(files, names, strict=True):
            with path.open("rb") as source, archive.open(name, "w", force_zip64=True) as target:
                shutil.copyfileobj(source, target, 1 << 20)
            sums.append(f"{file_sha256(path)}  {path.relative_to(data).as_posix()}\n")
        with archive.open(f"{publication}/{ARCHIVE_SUMS}", "w") as target:
            target.write("".join(sums).encode())
        for entry in archive.infolist():
            entry.external_attr = 0o644 << 16  # everybody may read what is unpacked


def _types(columns: list[str]) -> dict[str, str]:
    return {name: PARQUET[COLUMNS[name].kind] for name in columns}


def _typed_rows(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a table with its numbers as numbers, and empty cells as none."""
    for row in csv.DictReader(io.StringIO(text, newline="")):
        yield {name: _typed(name, cell) for name, cell in row.items()}


def _typed(name: str, cell: str) -> Any:
    if (read := _READ.get(COLUMNS[name].kind)) is None:
        return plain(cell)
    return None if cell == "" else read(cell)
