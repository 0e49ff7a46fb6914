import json
import re

import openpyxl
import pytest
from tests.bank.tables import load_table, sheet

from medassay.bank.delimited import form_of
from medassay.bank.folder import load_bank
from medassay.bank.table import read_table
from medassay.bank.table_columns import columns_of, key_of
from medassay.errors import InputError

HEAD = "Frage,a,b,c,key,Fach\n"
COLUMNS = {
    "question": "Frage",
    "A": "a",
    "B": "b",
    "C": "c",
    "expected": "key",
    "domain": "Fach",
}


def load(path, columns=COLUMNS):
    return load_table(path, columns, name="eigene", licence="CC0-1.0", domain="allgemein")


def test_a_csv_becomes_a_bank(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text(
        HEAD + "Was?,eins,zwei,drei,b,Innere\nWer?,x,y,,x,Innere\n", encoding="utf-8-sig"
    )
    bank = load(path)
    assert [(i.target.expected, len(i.options)) for i in bank.items] == [("B", 3), ("A", 2)]
    assert bank.domains == ("Innere",)


def test_a_spreadsheet_becomes_the_same_bank(tmp_path):
    row = ["Was?", "eins", "zwei", "drei", "b", "Innere"]
    sheet(tmp_path / "f.xlsx", HEAD.strip().split(","), row)
    (tmp_path / "f.csv").write_text(HEAD + "Was?,eins,zwei,drei,b,Innere\n")
    first, second = load(tmp_path / "f.xlsx"), load(tmp_path / "f.csv")
    assert [i.options for i in first.items] == [i.options for i in second.items]


def test_ranges_and_patterns(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("q,lo,hi,pattern\nHow much?,1.5,2,\nWhich?,,,(?i)aspirin\n")
    bank = load(path, {"question": "q", "lo": "lo", "hi": "hi", "regex": "pattern"})
    assert [i.form for i in bank.items] == ["range", "regex"]


@pytest.mark.parametrize(
    ("rows", "columns", "says"),
    [
        ("Was?,eins,zwei,drei,z,I\n", COLUMNS, "row 2"),
        ("Was?,eins,zwei,drei,,I\n", COLUMNS, "row 2: the key is empty (column 'key')"),
        ("Was?,eins,zwei,drei,b,I\n", {**COLUMNS, "year": "Jahr"}, "no column 'Jahr'"),
        ("Was?,eins,zwei,drei,b,I\n", {"A": "a"}, "'question' is needed"),
        ("Was?,eins,zwei,drei,b,I\n", {**COLUMNS, "wat": "a"}, "unknown key 'wat'"),
    ],
)
def test_bad_tables_are_refused_by_row_and_column(tmp_path, rows, columns, says):
    path = tmp_path / "f.csv"
    path.write_text(HEAD + rows)
    with pytest.raises(InputError) as caught:
        load(path, columns)
    assert says in str(caught.value)


def test_a_file_that_is_no_spreadsheet_is_refused(tmp_path):
    (tmp_path / "f.xlsx").write_bytes(b"PK not a zip")
    with pytest.raises(InputError, match="not readable as a spreadsheet"):
        load(tmp_path / "f.xlsx")


def test_a_question_with_a_reference_alone_is_open(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("q,a\nWhat is it?,It is gout.\n")
    [item] = load(path, {"question": "q", "reference": "a"}).items
    assert (item.form, item.reference) == ("text", "It is gout.")


GERMAN = {
    "id": "Nr",
    "question": "Frage",
    **dict(zip("ABCD", "ABCD", strict=True)),
    "expected": "Richtig",
    "reference": "Musterantwort",
}


def german_sheet(path):
    """Write the sheet of a newcomer as Excel does in Germany: 24 choice questions, 16 open ones."""
    rows = ["Nr;Frage;A;B;C;D;Richtig;Musterantwort"]
    rows += [f"{n};Welche Größe {n}?;rot;grün;blau;weiß;{'ABCD'[n % 4]};" for n in range(24)]
    rows += [
        f'{n};Wie behandelt man Fall {n}?;;;;;;"Mit Ruhe; und Zeit {n}."' for n in range(24, 40)
    ]
    path.write_bytes(("\r\n".join(rows) + "\r\n;;;;;;;\r\n").encode("cp1252"))
    return path


def test_one_german_sheet_makes_one_bank_of_both_kinds(tmp_path, cli):
    sheet = german_sheet(tmp_path / "fragen.csv")
    columns = ",".join(f"{key}={column}" for key, column in GERMAN.items())
    code, out, errors = cli(
        *("--json", "bank", "import", "csv", sheet, "--name", "station", "--language", "de"),
        *("--columns", columns),
    )
    assert code == 0, errors
    assert json.loads(out)["kinds"] == {"choice": 24, "text": 16}
    assert json.loads(out)["columns"]["Musterantwort"] == "reference"
    bank = load_bank(tmp_path / "station", lock=None)
    forms = {item.id: item.form for item in bank.items}
    assert (forms["0"], forms["39"]) == ("choice", "text")
    item = next(item for item in bank.items if item.id == "30")
    assert item.question == "Wie behandelt man Fall 30?"
    assert (item.reference, item.language) == ("Mit Ruhe; und Zeit 30.", "de")


def test_headings_are_understood_and_told_before_anything_is_written(tmp_path, cli):
    sheet = german_sheet(tmp_path / "fragen.csv")
    code, _, errors = cli("bank", "import", "csv", sheet, "--name", "station")
    assert code == 0, errors
    assert "Nr → id (40 filled, as '0')" in errors
    assert "Richtig → expected (24 filled, as 'A')" in errors
    assert "is it --language de?" in errors
    assert "questions: 24 choice, 16 open (model answer)" in errors
    (tmp_path / "bad.csv").write_text("Frage;A;B;Notiz\nWas?;x;y;z\n")
    code, _, errors = cli("bank", "import", "csv", tmp_path / "bad.csv", "--name", "bad")
    assert code == 3
    assert "Notiz → not used (1 filled, as 'z')" in errors  # also where it is refused then
    assert not (tmp_path / "bad").exists()


def test_a_word_of_the_user_overrides_every_heading(tmp_path, cli):
    (tmp_path / "f.csv").write_text("Frage,Stem,Musterantwort\nold,new,yes\n")
    named = "question=Stem,reference=Musterantwort"
    code, _, errors = cli("bank", "import", "csv", "f.csv", "--name", "b", "--columns", named)
    assert code == 0, errors
    assert "Frage → not used" in errors
    [item] = load_bank(tmp_path / "b", lock=None).items
    assert item.question == "new"
    code, _, errors = cli("bank", "import", "csv", "f.csv", "--name", "c")
    assert (code, errors.count("\n")) == (3, 1)
    assert "columns 'Frage' and 'Stem' both look like question" in errors


@pytest.mark.parametrize(
    ("heading", "key"),
    [
        *(("Nr.", "id"), ("Number", "number"), ("Item", "id")),
        *(("Question", "question"), ("Fragestellung", "question")),
        *(("Antwort C", "C"), ("Option 2", "B"), ("b)", "B"), ("Lösung", "expected")),
        *(("correct_answer", "expected"), ("Musterlösung", "reference"), ("Fakt 3", "fact3")),
        *(("Min", "lo"), ("bis", "hi"), ("Zahl", "number"), ("Muster", "regex")),
        *(("Fachgebiet", "domain"), ("Kommentar", ""), ("7", ""), ("Option 99", "")),
    ],
)
def test_what_a_heading_means(heading, key):
    assert key_of(heading) == key


def test_answer_is_a_key_beside_options_and_a_model_answer_without():
    assert columns_of(["Frage", "A", "B", "Antwort"], {}, "f")["expected"] == "Antwort"
    assert columns_of(["Frage", "Antwort"], {}, "f")["reference"] == "Antwort"


def test_all_kinds_stand_in_one_table(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text(
        "q;A;B;key;model;f1;f2;number;pattern;harm\n"
        "Which?;x;y;B;;;;;;ja\n"
        "Why?;;;;Because.;;;;;\n"
        "What must be said?;;;;;First thing;Second thing;;;nein\n"
        "How much?;;;;;;;3,5 - 5,1;;\n"
        "How many?;;;7;;;;;;\n"
        "About?;;;;;;;4,5 ± 0,2;;\n"
        "Name it.;;;;;;;;(?i)aspirin;\n"
    )
    columns = {
        **{"question": "q", "A": "A", "B": "B", "expected": "key", "reference": "model"},
        **{"fact1": "f1", "fact2": "f2", "number": "number", "regex": "pattern", "harm": "harm"},
    }
    bank = load_table(
        *(path, columns),
        **{"name": "n", "licence": "x", "domain": "d", "language": "de"},
        form=form_of(path),
    )
    assert [i.form for i in bank.items] == [
        *("choice", "text", "open", "range", "range", "range", "regex")
    ]
    ranges = [(i.target.lo, i.target.hi) for i in bank.items if i.form == "range"]
    assert ranges == [(3.5, 5.1), (7.0, 7.0), (4.3, 4.7)]
    assert all(i.target.locale == "de" for i in bank.items if i.form == "range")
    assert [fact.text for fact in bank.items[2].target.facts] == ["First thing", "Second thing"]
    assert [i.harm for i in bank.items] == [True] + [False] * 6


def test_a_gap_before_options_that_a_row_leaves_out_is_refused_too(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("Frage,A,B,C,D,Key\nZwei?,x,y,,,B\nDrei?,x,,z,,C\n")
    with pytest.raises(InputError, match="row 3: option B"):
        load_table(path, {}, name="n", licence="x", domain="d")


def test_headings_that_differ_by_blanks_alone_are_refused(tmp_path):
    (tmp_path / "f.csv").write_text("Frage,A,A ,key\nWas?,x,y,A\n")
    with pytest.raises(InputError, match="column 'A' occurs twice"):
        read_table(tmp_path / "f.csv", {})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Frage,A,B,Key\nWas?,x,x,A\n", "option B is 'x', as an option before it"),
        ("Frage,A,B,Rihctig\nWas?,x,y,A\n", "no column holds the key; --columns …,expected="),
        ("Nr,Frage,Antwort\n1,Was?,Das.\n1,Wer?,Der.\n", "row 3: id '1' stands in row 2, too"),
        ("Frage,A,B,Key\n", "no rows below the headings"),
        (
            "Frage,Zahl,Sprache\nWie viel?,12,Deutsch\n",
            "field 'language': 'Deutsch'; expected a code",
        ),
        ("Frage,Zahl,Sprache\nWie viel?,1.500,DE\n", "as 1500 and as 1,500"),
        ("Frage,Zahl,Sprache\nWie viel?,1.500,da\n", "as 1500 and as 1,500"),
        ("Frage,Zahl,Sprache\nWie viel?,1.500,sw\n", "'1.500' can be read as"),
        ("Frage,A,B,options,Key\nWas?,a,b,x|y,A\n", "'options' and columns of options A, B … are"),
        ("Frage,A,B,,,Key\nWas?,a,b,lost,,A\n", "row 2: 'lost' stands in a column without a head"),
        ("Frage,1,2,3,Key\nWas?,2,3,4,2\n", "'2' names option B and is the text of option A"),
        ('Frage,options,Key\nWas?,"[1,2]",1\n', "expected a list of non-empty texts"),
        ("Frage,options,Key\nWas?,a | b | a,a\n", "option C is 'a', as an option before it"),
        ("Frage,regex,Key\nWas?,^7,5\n", "fields 'regex' and 'expected' are both filled"),
        ("Frage,A,B,Key,year\nWas?,a,b,A,2_024\n", "'2_024'; expected a whole number"),
    ],
)
def test_what_is_wrong_with_a_sheet_is_named_by_its_place(tmp_path, text, says):
    (tmp_path / "f.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        load_table(tmp_path / "f.csv", {}, name="n", licence="x", domain="d")
    assert says in str(caught.value)


def test_columns_with_numbers_for_names_are_options_and_keys_name_them(tmp_path):
    for heads in ("1,2,3,4", "Option 1,Option 2,Option 3,Option 4"):
        (tmp_path / "f.csv").write_text(f"Frage,{heads},Richtig\nWas?,a,b,c,d,2\nWo?,e,f,g,h,D\n")
        bank = load_table(tmp_path / "f.csv", {}, name="n", licence="x", domain="d")
        assert [item.target.expected for item in bank.items] == ["B", "D"]
        assert bank.items[1].options == ("e", "f", "g", "h")


@pytest.mark.parametrize("heads", ["0,1,2", "Option 0,Option 1,Option 2"])
def test_options_counted_from_zero_are_not_shifted_by_one(tmp_path, heads):
    (tmp_path / "f.csv").write_text(f"Frage,{heads},Richtig\nWas?,a,b,c,B\n")
    with pytest.raises(InputError, match=r"options are counted from 1, and option 0 would be lost"):
        load_table(tmp_path / "f.csv", {}, name="n", licence="x", domain="d")


def test_a_number_in_a_heading_that_is_not_its_place_names_no_option(tmp_path):
    (tmp_path / "f.csv").write_text("Frage,S2,S3,Key\nWas?,a,b,2\n")
    columns = {"question": "Frage", "A": "S2", "B": "S3", "expected": "Key"}
    with pytest.raises(InputError, match="'2' is neither a letter of its 2 options"):
        load_table(tmp_path / "f.csv", columns, name="n", licence="x", domain="d")


def test_sheets_that_are_not_read_are_named(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book = openpyxl.Workbook()
    for page in (book.active, book.create_sheet("Two")):
        for row in (["Frage", "Antwort"], ["Was?", "Das."]):
            page.append(row)
    book.save("f.xlsx")
    code, _, said = cli("bank", "import", "xlsx", "f.xlsx", "--name", "f")
    assert (code, f"sheet '{book.active.title}' is read; not read: Two" in said) == (0, True), said
    book.active.sheet_state = "hidden"
    book.save("g.xlsx")
    code, _, said = cli("bank", "import", "xlsx", "g.xlsx", "--name", "g")
    assert (code, "sheet 'Two' is read; not read: Sheet" in said) == (0, True), said


def test_two_headings_of_one_meaning_are_told_with_the_command_that_settles_it(tmp_path, cli):
    (tmp_path / "f.csv").write_text("Nr,Frage,Fragestellung,Antwort\n1,Kurz?,Lang?,Das.\n")
    code, _, errors = cli("bank", "import", "csv", "f.csv", "--name", "b")
    assert code == 3
    [named] = re.findall(r"--columns '([^']+)'", errors)
    assert cli("bank", "import", "csv", "f.csv", "--name", "b", "--columns", named)[0] == 0


def test_a_key_and_a_model_answer_may_stand_beside_each_other():
    columns = columns_of(["Frage", "A", "B", "Richtig", "Antwort"], {}, "f")
    assert (columns["expected"], columns["reference"]) == ("Richtig", "Antwort")


def test_a_file_of_another_kind_is_told_by_what_it_is(tmp_path, cli):
    sheet(tmp_path / "f.xlsx", ["Frage", "Antwort"])
    (tmp_path / "f.csv").write_text("Frage,Antwort\nWas?,Das.\n")
    code, _, errors = cli("bank", "import", "csv", "f.xlsx", "--name", "b")
    assert (code, errors.count("\n")) == (3, 1)
    assert "an Excel workbook; `medassay bank import xlsx" in errors
    code, _, errors = cli("bank", "import", "xlsx", "f.csv", "--name", "b")
    assert "no workbook; `medassay bank import csv" in errors
    code, _, errors = cli("bank", "import", "csv", "f.csv", "--name", "b", "--language", "deutsch")
    assert code == 2
    assert "--language: 'deutsch'; expected a code, as de or en" in errors


def test_a_key_may_be_an_option_in_other_capitals(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("Frage,a,b,key\nWas?,Ja,Nein,ja\n")
    columns = {"question": "Frage", "A": "a", "B": "b", "expected": "key"}
    [item] = load_table(path, columns, name="n", licence="x", domain="d").items
    assert item.target.expected == "A"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("Was?,eins,,drei,A,,", "row 2: option B (column 'b') is empty, and one behind it is not"),
        ("Was?,,,,foo,,", "'foo', and the row has no options; expected a number"),
        ("Was?,,,,,,", "row 2: nothing says what counts as right"),
        ("Was?,B,A,drei,A,,", "'A' names option A and is the text of option B"),
        ("Was?,,,,,1.500,", "'1.500' can be read as 1500 and as 1,500; write one of these"),
        ("Was?,,,,,1e5,", "'1e5'; expected a number"),
        ("Was?,,,,,9007199254740992,", "row 2: 9.0072e+15 is too large; expected numbers below"),
        ("Was?,,,,,viel,", "'viel'; expected a number, two with a dash"),
        ("Was?,x,y,,A,,vielleicht", "field 'harm': 'vielleicht'; expected yes or no"),
    ],
)
def test_a_cell_that_could_mean_two_things_is_refused(tmp_path, row, says):
    path = tmp_path / "f.csv"
    path.write_text(f"Frage,a,b,c,key,Zahl,Schaden\n{row}\n")
    named = {"A": "a", "B": "b", "C": "c", "question": "Frage", "expected": "key"}
    columns = {**named, "number": "Zahl", "harm": "Schaden"}
    with pytest.raises(InputError) as caught:
        load_table(path, columns, name="n", licence="x", domain="d", language="de")
    assert says in str(caught.value)


def test_a_text_without_a_heading_is_refused(tmp_path):
    path = sheet(tmp_path / "f.xlsx", ["Frage", "Antwort"], ["Was?", "Das.", "und mehr"])
    with pytest.raises(InputError, match="row 2: 'und mehr' stands in a column without a"):
        load_table(path, {}, name="n", licence="x", domain="d")


@pytest.mark.parametrize("cell", ['"5 cm', '"The "Kussmaul" sign"'])
def test_a_quote_that_does_not_close_swallows_no_rows(tmp_path, cell):
    path = tmp_path / "q.csv"
    path.write_text(
        f"id,question,A,B,expected,source\n1,Q,x,y,A,b\n2,Q2,x,y,A,{cell}\n3,Q3,x,y,B,c\n"
    )
    with pytest.raises(InputError, match=r"q\.csv line [34]: .*a quote does not close"):
        read_table(path, {})


def test_a_number_in_json_that_not_every_program_reads_alike_is_refused_with_its_row(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text('id,question,gold_json\nr1,Read it.,"{""weight"": 9007199254740993}"\n')
    with pytest.raises(InputError, match=r"row 2: column 'gold_json': .*integers up to 2\^53-1"):
        load_table(path, {}, name="n", licence="x", domain="d", language="en")
