import openpyxl
import pytest

from medassay.bank.table import load_table
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
    book = openpyxl.Workbook()
    for row in [HEAD.strip().split(","), ["Was?", "eins", "zwei", "drei", "b", "Innere"]]:
        book.active.append(row)
    book.save(tmp_path / "f.xlsx")
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
        ("Was?,eins,zwei,drei,,I\n", COLUMNS, "target 'None'"),
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
