"""A spreadsheet that unpacks to gigabytes is refused before it is unpacked."""

import io
import subprocess
import sys
import zipfile

import pytest

from tests.conftest import absent

HEAD = (
    '<?xml version="1.0"?><worksheet'
    ' xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
)
TAIL = "</sheetData></worksheet>"
COLUMNS = "question=Q,A=A,B=B,expected=K"


def row(number, *cells):
    """Return one row of a sheet."""
    told = "".join(
        f'<c r="{"ABCD"[at]}{number}" t="inlineStr"><is><t>{cell}</t></is></c>'
        for at, cell in enumerate(cells)
    )
    return f'<row r="{number}">{told}</row>'


@pytest.fixture
def plain(tmp_path):
    """Return a spreadsheet's parts but for its sheet."""
    try:
        import openpyxl
    except ImportError:
        absent("the extra [data] is not installed")
    made = io.BytesIO()
    openpyxl.Workbook().save(made)
    with zipfile.ZipFile(made) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, plain, sheet):
    """Write a spreadsheet whose sheet comes in pieces."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in plain.items():
            if name != "xl/worksheets/sheet1.xml":
                archive.writestr(name, data)
        with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as file:
            for piece in sheet:
                file.write(piece.encode())
    return path


def imported(path):
    """Import a spreadsheet in a process of at most two gigabytes, code included.

    Return code and errors.
    """
    arguments = ["bank", "import", "xlsx", str(path), "--columns", COLUMNS, "--name", "x"]
    arguments += ["--licence", "CC0-1.0", "--domain", "d", "--to", str(path.parent / "bank")]
    limited = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))"
    code = f"{limited}; from medassay.cli.main import main; main({arguments!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    return done.returncode, done.stderr


def rows_of(n, cell):
    yield HEAD + row(1, "Q", "A", "B", "K")
    for number in range(2, n + 2):
        yield row(number, f"Q{number} " + cell, "a", "b", "A")
    yield TAIL


BOMBS = {
    "very many cells of a mebibyte": (lambda: rows_of(140, "a" * 2**20), "unpacks to"),
    "one cell of a quarter of a gigabyte": (lambda: rows_of(1, "a" * 2**28), "unpacks to"),
    "a part that swells": (lambda: rows_of(60, "a" * 2**20), "times its size"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_by_what_it_would_unpack_to(tmp_path, plain, bomb):
    sheet, said = BOMBS[bomb]
    path = write(tmp_path / "b.xlsx", plain, sheet())
    assert path.stat().st_size < 4 << 20
    code, errors = imported(path)
    assert code == 3, errors
    assert said in errors
    assert len(errors.splitlines()) == 1
    assert not (tmp_path / "bank").exists()


def test_a_part_that_says_less_than_it_holds_is_refused(tmp_path, plain):
    path = write(tmp_path / "b.xlsx", plain, rows_of(60, "a" * 2**20))
    data = bytearray(path.read_bytes())
    size = sum(len(p) for p in rows_of(60, "a" * 2**20))
    told = size.to_bytes(4, "little")
    assert told in data
    path.write_bytes(bytes(data).replace(told, (1000).to_bytes(4, "little")))
    code, errors = imported(path)
    assert code == 3, errors
    assert "not readable as a spreadsheet" in errors


def test_more_rows_than_excel_holds_are_refused(tmp_path, plain, monkeypatch):
    from medassay.bank import spreadsheet
    from medassay.errors import InputError

    monkeypatch.setattr(spreadsheet, "_MOST_ROWS", 50)
    path = write(tmp_path / "b.xlsx", plain, rows_of(60, "x"))
    with pytest.raises(InputError, match="more than 50 rows"):
        list(spreadsheet.read_rows(path))


def test_a_usual_sheet_is_read(tmp_path, plain):
    path = write(tmp_path / "b.xlsx", plain, rows_of(3000, "Which drug lowers the pressure?"))
    code, errors = imported(path)
    assert code == 0, errors
