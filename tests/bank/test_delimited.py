"""Tables and texts as Excel and Windows write them."""

import json
import os
import threading

import pytest

from medassay.bank.builder import numbered_csv
from medassay.bank.delimited import TableForm, encoding_of, form_of
from medassay.errors import InputError

GERMAN = "Nr;Frage;A;B;Lösung\n1;Größe, ungefähr?;klein;groß;B\n2;Übelkeit?;ja;nein;A\n"
COLUMNS = "id=Nr,question=Frage,A=A,B=B,expected=Lösung"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("separator", [";", ",", "\t"])
def test_encoding_and_separator_are_found(tmp_path, encoding, separator):
    path = tmp_path / "t.csv"
    text = GERMAN.replace("Größe, ungefähr?", '"Größe, ungefähr?"').replace(";", separator)
    path.write_bytes(text.encode(encoding))
    wanted = "utf-8-sig" if encoding.startswith("utf-8") else encoding
    assert form_of(path) == TableForm(encoding=wanted, separator=separator)


def test_a_comma_in_cells_of_a_german_table_does_not_win(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Frage;Antwort, kurz\nWas, wo?;dort, da\nWer?;niemand\n")
    assert form_of(path).separator == ";"


@pytest.mark.parametrize("separator", [";", ",", "\t"])
def test_tables_of_people_are_read_whatever_separates_their_columns(tmp_path, separator):
    path = tmp_path / "votes.csv"
    path.write_text('item,evaluator,vote\nq1,a,1\n"q,2;x",b,0\n'.replace(",", separator))
    assert [row["vote"] for _, row in numbered_csv(path)] == ["1", "0"]


@pytest.mark.parametrize("above", ["\n", "sep=;\n", ";;\n\n", "SEP=;\r\n\r\n"])
def test_blank_lines_and_a_hint_for_excel_may_stand_above_the_header(tmp_path, above):
    path = tmp_path / "votes.csv"
    path.write_bytes(f"{above}item;vote\nq1;1\n".encode())
    assert form_of(path).separator == ";"
    n_above = above.count("\n")
    assert [*numbered_csv(path)] == [(n_above + 2, {"item": "q1", "vote": "1"})]


def test_a_table_from_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "votes.csv"
    os.mkfifo(pipe)

    def send(content):
        threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True).start()

    send(b"item,vote\nq1,1\n")
    assert [row["vote"] for _, row in numbered_csv(pipe)] == ["1"]
    send(b"item,vote\nq1,\xff\n")
    with pytest.raises(InputError, match="not readable as CSV in UTF-8"):
        list(numbered_csv(pipe))


def test_a_spreadsheet_under_the_name_of_a_table_is_called_one(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_bytes(b"PK\x03\x04\x14\x00\x06\x00\x08\x00\xff\x81")
    for read in (lambda: list(numbered_csv(path)), lambda: form_of(path)):
        with pytest.raises(InputError, match=r"votes\.csv: a spreadsheet .* save the sheet as CSV"):
            read()


def test_a_byte_beyond_the_first_block_decides(tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes(b"a" * 2_000_000 + "ä".encode("cp1252"))
    assert encoding_of(path) == "cp1252"
    path.write_bytes(b"\x81\x8d")  # bytes that Windows-1252 has not
    with pytest.raises(InputError, match="neither UTF-8 nor Windows-1252"):
        encoding_of(path)


def test_a_sheet_of_excel_becomes_a_bank_in_its_language(tmp_path, cli):
    (tmp_path / "fragen.csv").write_bytes(GERMAN.encode("cp1252"))
    code, _, errors = cli(
        *("bank", "import", "csv", "fragen.csv", "--columns", COLUMNS, "--language", "de")
    )
    assert code == 0, errors
    assert "Windows-1252 (it is no UTF-8), columns separated by semicolon" in errors
    items = [
        json.loads(line)
        for line in (tmp_path / "fragen/items.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [one["language"] for one in items] == ["de", "de"]
    assert [one["question"] for one in items] == ["Größe, ungefähr?", "Übelkeit?"]
    code, out, _ = cli("bank", "stats", "fragen")
    assert code == 0
    assert "de 2" in out
    code, _, errors = cli(
        "bank",
        "import",
        "csv",
        "fragen.csv",
        "--columns",
        COLUMNS,
        "--to",
        "x",
        "--encoding",
        "latin-9x",
    )
    assert (code, errors.count("\n")) == (3, 1)
    assert "--encoding: 'latin-9x' is unknown" in errors


def test_a_language_that_nobody_would_read_is_refused(tmp_path, cli):
    code, _, errors = cli("bank", "import", "medqa", tmp_path, "--language", "de")
    assert (code, errors.count("\n")) == (2, 1)
    assert "--language is for csv, xlsx and reports" in errors


def test_a_folder_of_reports_tells_which_were_no_utf_8(tmp_path, cli):
    folder = tmp_path / "letters"
    folder.mkdir()
    (folder / "a.txt").write_bytes("Verlauf: Übelkeit.".encode("cp1252"))
    (folder / "b.txt").write_text("Verlauf: Größe.", encoding="utf-8")
    code, _, errors = cli("bank", "import", "reports", folder, "--to", "bank", "--language", "de")
    assert code == 0, errors
    assert "read as Windows-1252 (it is no UTF-8): a.txt" in errors
    items = [
        json.loads(line)
        for line in (tmp_path / "bank/items.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [one["question"] for one in items] == ["Verlauf: Übelkeit.", "Verlauf: Größe."]


def test_predictions_of_a_german_table_are_imported(tmp_path, cli):
    rows = "\n".join(f"q{n};m;Fach;{n % 2}" for n in range(12))
    (tmp_path / "t.csv").write_bytes(f"Nr;Modell;Gebiet;Wert\n{rows}\n".encode("cp1252"))
    code, _, errors = cli(
        "import", "csv", "t.csv", "--columns", "item=Nr,model=Modell,domain=Gebiet,score=Wert"
    )
    assert code == 0, errors
