"""What a spreadsheet shows is what is read, or it is refused."""

import datetime as dt
import re
import zipfile

import openpyxl
import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from tests.bank.tables import load_table, sheet

from medassay.bank.table import read_table
from medassay.errors import InputError


def test_a_percent_of_a_spreadsheet_is_no_small_number(tmp_path):
    rows = (["Frage", "Zahl"], ["Wie viel?", 0.05])
    path = sheet(tmp_path / "f.xlsx", *rows, formats={"B2": "0%"})
    with pytest.raises(InputError, match="'5 %'; expected a number"):
        load_table(path, {}, name="n", licence="x", domain="d", language="de")


def test_numbers_of_a_spreadsheet_are_ids_options_and_answers_as_they_stand(tmp_path):
    path = sheet(
        tmp_path / "f.xlsx",
        ["Nr", "Frage", "A", "B", "Richtig", "Musterantwort", "Muster"],
        [1, "Wie viele?", 4, 5, "B", None, None],
        [2, "Wann?", None, None, None, 1928, None],
        [3, "Notruf?", None, None, None, None, 112],
        [4, "Wie viel?", None, None, 4.5, None, None],
    )
    bank = load_table(path, {}, name="n", licence="x", domain="d", language="de")
    assert [(i.id, i.form) for i in bank.items] == [
        *(("1", "choice"), ("2", "text"), ("3", "regex"), ("4", "range"))
    ]
    assert bank.items[0].options == ("4", "5")
    assert bank.items[1].reference == "1928"
    assert bank.items[3].target.lo == 4.5


def test_a_date_that_excel_made_of_an_option_is_refused(tmp_path):
    rows = (["Frage", "A", "B", "Key"], ["Wie viel?", "1-2", dt.date(2024, 4, 3), "A"])
    path = sheet(tmp_path / "f.xlsx", *rows)
    with pytest.raises(InputError, match="row 2: column 'B' holds a date, 2024-04-03"):
        load_table(path, {}, name="n", licence="x", domain="d")


def test_a_number_of_a_spreadsheet_is_that_number_in_every_language(tmp_path):
    # Excel users leave rows free above their headings.
    rows = ([], ["Frage", "Zahl", None], ["Wie viel?", 4.125, None], [None, None, None])
    path = sheet(tmp_path / "f.xlsx", *rows)
    [item] = load_table(path, {}, name="n", licence="x", domain="d", language="de").items
    assert (item.target.lo, item.target.hi) == (4.125, 4.125)


def test_what_a_sheet_hides_is_refused_by_its_cell(tmp_path):
    head = ["Frage", "Antwort", "Fach"]
    rows = [head, ["Was?", "Das.", "Innere"], ["Wer?", "Sie.", None]]
    path = sheet(tmp_path / "m.xlsx", *rows, merged="C2:C3")
    with pytest.raises(InputError, match=r"m\.xlsx: the cells C2:C3 are merged.*unmerge them"):
        read_table(path, {})
    for error in ("#REF!", "#N/A"):
        path = sheet(tmp_path / "e.xlsx", head, ["Was?", error, "Innere"])
        with pytest.raises(InputError, match=rf"row 2, column 'Antwort': holds the error {error}"):
            read_table(path, {})
    path = sheet(tmp_path / "f.xlsx", head, ["Was?", '=IF(1,"ja","nein")', "Innere"])
    with pytest.raises(InputError, match="cell B2 holds a formula without its result"):
        read_table(path, {})


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (0.9999999, "0.000000%", "99.99999 %"),
        (0.5, "0%", "50 %"),
        (1 - 0.93, "0%", "7 %"),
        (5, "#,##0.00 [$€-407]", None),
        (5, "$#,##0", None),
        (5, "[$-407]#,##0.00", "5"),
        (5, r"_-* #,##0.00\ _€_-;-* #,##0.00\ _€_-", "5"),
        (1234567, "#,##0,", None),
        (1234567, "#,##0", "1234567"),
        (12345.678, "0.0000%", "1234567.8 %"),
        (12, "00000", "00012"),
        (5, '0" "', "5"),
        (5, '#,##0;-#,##0" rote"', "5"),
        (5, '0"%"', None),
        (5, r"0\%", None),
        (5, '0" mg"', None),
    ],
)
def test_a_number_is_read_as_its_cell_shows_it_or_refused(tmp_path, value, number_format, text):
    rows = (["Frage", "A", "B", "Key"], ["Wie viel?", "nichts", value, "A"])
    path = sheet(tmp_path / "f.xlsx", *rows, formats={"C2": number_format})
    if text is None:
        told = r"row 2: the number \d+ is shown (with '(%|mg|€|\$)'|in thousands)"
        with pytest.raises(InputError, match=told):
            read_table(path, {})
        return
    [item] = load_table(path, {}, name="n", licence="x", domain="d").items
    assert item.options[1] == text


def test_raised_digits_stay_raised_and_durations_and_hidden_rows_are_refused(tmp_path):
    book = openpyxl.Workbook()
    for row in (["Frage", "A", "B", "Key"], ["Wie viel?", "1", "ten", "A"]):
        book.active.append(row)
    book.save(tmp_path / "f.xlsx")
    with zipfile.ZipFile(tmp_path / "f.xlsx") as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    # As Excel writes it, in a part of its own; openpyxl writes texts into the sheet itself.
    runs = '<r><t xml:space="preserve">150 × 10</t></r><r><rPr><vertAlign val="superscript"/></rPr>'
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    runs = f'<sst xmlns="{main}"><si>{runs}<t>9</t></r><r><t>/l</t></r></si></sst>'
    parts["xl/sharedStrings.xml"] = runs.encode()
    link = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
    for name, old, new in (
        (
            "xl/worksheets/sheet1.xml",
            '<c r="C2" t="inlineStr"><is><t>ten</t></is></c>',
            '<c r="C2" t="s"><v>0</v></c>',
        ),
        (
            "xl/_rels/workbook.xml.rels",
            "</Relationships>",
            f'<Relationship Id="s" Type="{link}" Target="sharedStrings.xml"/></Relationships>',
        ),
        (
            "[Content_Types].xml",
            "</Types>",
            '<Override PartName="/xl/sharedStrings.xml" ContentType="application/'
            'vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/></Types>',
        ),
    ):
        assert old.encode() in parts[name]
        parts[name] = parts[name].replace(old.encode(), new.encode())
    with zipfile.ZipFile(tmp_path / "f.xlsx", "w") as archive:
        for part, data in parts.items():
            archive.writestr(part, data)
    [item] = load_table(tmp_path / "f.xlsx", {}, name="n", licence="x", domain="d").items
    assert item.options[1] == "150 × 10⁹/l"
    inside = CellRichText("10", TextBlock(InlineFont(vertAlign="superscript"), "9"))
    book.active["C2"].value = inside
    book.save(tmp_path / "i.xlsx")
    with pytest.raises(InputError, match="raised or lowered characters that are not read"):
        read_table(tmp_path / "i.xlsx", {})
    book.active["C2"].value = "2"
    book.active.row_dimensions[2].hidden = True
    book.save(tmp_path / "h.xlsx")
    with pytest.raises(InputError, match=r"h\.xlsx: row 2 is hidden, and would be read"):
        read_table(tmp_path / "h.xlsx", {})
    book.active.row_dimensions[2].hidden = False
    book.active.row_dimensions[50].hidden = True  # below the table
    book.save(tmp_path / "h.xlsx")
    read_table(tmp_path / "h.xlsx", {})
    book.active.column_dimensions["B"].hidden = True
    book.save(tmp_path / "c.xlsx")
    with pytest.raises(InputError, match=r"c\.xlsx: column 'A' is hidden, and would be read"):
        read_table(tmp_path / "c.xlsx", {})
    book.active.column_dimensions["B"].hidden = False
    book.active["C2"].value = dt.timedelta(hours=36)
    book.save(tmp_path / "d.xlsx")
    with pytest.raises(InputError, match="row 2: column 'B' holds a date, 1 day, 12:00:00"):
        load_table(tmp_path / "d.xlsx", {}, name="n", licence="x", domain="d")


def test_a_formula_with_an_empty_text_as_its_result_is_an_empty_cell(tmp_path):
    path = sheet(tmp_path / "f.xlsx", ["Frage", "Antwort", "Fach"], ["Was?", "Das.", "=A9"])
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    never = rb'<c r="C2"><f>A9</f><v ?(?:/>|></v>)</c>'
    always = b'<c r="C2" t="str"><f>A9</f><v></v></c>'
    parts[name], n_replaced = re.subn(never, always, parts[name])
    assert n_replaced == 1
    with zipfile.ZipFile(path, "w") as archive:
        for part, data in parts.items():
            archive.writestr(part, data)
    [item] = load_table(path, {}, name="n", licence="x", domain="d").items
    assert (item.domain, item.reference) == ("d", "Das.")


def test_a_line_break_of_windows_is_no_text(tmp_path):
    path = sheet(tmp_path / "q.xlsx", ["question", "reference"], ["One_x000D_\nTwo?", "a_b"])
    [item] = load_table(path, {}, name="n", licence="x", domain="d").items
    assert (item.question, item.reference) == ("One\nTwo?", "a_b")


def test_rows_and_options_beyond_the_range_that_a_file_states_are_read(tmp_path):
    rows = (
        ["id", "question", "key", "A", "B", "C"],
        *([f"q{n}", f"{n}?", "C", *"abc"] for n in "12"),
    )
    path, small = sheet(tmp_path / "q.xlsx", *rows), tmp_path / "small.xlsx"
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(small, "w") as written:
        for name in whole.namelist():
            part = whole.read(name)
            assert b'ref="A1:F3"' in part or not name.endswith("sheet1.xml")
            written.writestr(name, part.replace(b'ref="A1:F3"', b'ref="A1:E2"'))
    bank = load_table(small, {}, name="n", licence="x", domain="d")
    assert [(item.id, item.options) for item in bank.items] == [
        *(("q1", ("a", "b", "c")), ("q2", ("a", "b", "c")))
    ]
