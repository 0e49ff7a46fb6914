"""Numbers in the cells of a table of questions."""

import pytest
from tests.bank.tables import load_table

from medassay.bank.delimited import form_of
from medassay.bank.spreadsheet import NumberCell
from medassay.bank.table import bank_of_table, read_table
from medassay.bank.table_numbers import read_number
from medassay.errors import InputError


@pytest.mark.parametrize(
    ("text", "comma", "number"),
    [
        *(("4,5", True, 4.5), ("4.5", True, 4.5), ("1.234,5", True, 1234.5), ("−3", True, -3.0)),
        *(("4.5", False, 4.5), ("4,5", False, 4.5), ("1,234.5", False, 1234.5)),
        *(("1.234.567", True, 1234567.0), (NumberCell("4.125"), True, 4.125)),
        *(("0.125", True, 0.125), ("0,125", False, 0.125), ("4,5", None, 4.5), ("4.5", None, 4.5)),
        (NumberCell(0.00001), None, 0.00001),
    ],
)
def test_numbers_are_read_as_their_language_writes_them(text, comma, number):
    assert read_number(text, "here", comma=comma) == number


@pytest.mark.parametrize(
    ("text", "comma"),
    [
        ("1.500", None),
        ("1,500", None),
        ("1.500", True),
        ("3 5", True),
        ("1e3", False),
        ("1_0", None),
    ],
)
def test_what_is_no_number_or_two_of_them_is_refused(text, comma):
    with pytest.raises(InputError):
        read_number(text, "here", comma=comma)


def test_german_headings_make_nobody_guess_how_numbers_are_written(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text("Frage;Zahl\nWie viel?;1.500\n")
    table = read_table(path, {}, form_of(path))
    more = {"name": "n", "licence": "x", "domain": "d"}
    with pytest.raises(InputError, match=r"as 1.5 and as 1500; --language says|can be read as"):
        bank_of_table(table, **more)
    [item] = bank_of_table(table, **more, language="en").items
    assert item.target.lo == 1.5


@pytest.mark.parametrize("other", ["2,5", "0,125", "2,5 - 3", "12345,6789"])
def test_a_decimal_comma_anywhere_makes_nobody_guess_what_a_point_is(tmp_path, other):
    path = tmp_path / "f.csv"
    path.write_text(f'question,number\nHow many?,1.500\nHow much?,"{other}"\n')
    more = {"name": "n", "licence": "x", "domain": "d"}
    with pytest.raises(InputError, match=r"row 2: .* '1.500' can be read as 1500 and"):
        load_table(path, {}, **more)
    with pytest.raises(InputError, match="can be read as"):
        load_table(path, {}, **more, language="de")
    path.write_text(f'question,number\nHow many?,1500\nHow much?,"{other}"\n')
    assert load_table(path, {}, **more).items[0].target.lo == 1500
    path.write_text('question,number\nHow many?,1.500\nHow much?,"1,500.5"\n')
    assert [item.target.lo for item in load_table(path, {}, **more).items] == [1.5, 1500.5]


@pytest.mark.parametrize(
    ("language", "text", "value"),
    [
        *(("es-mx", "1,500.5", 1500.5), ("es-mx", "1,500", None), ("es", "1,500", 1.5)),
        *(("es-ar", "1,500", 1.5), ("de-ch", "4,500", None), ("de-at", "4,500", 4.5)),
    ],
)
def test_commas_are_what_they_are_in_the_country_of_a_language(tmp_path, language, text, value):
    (tmp_path / "f.csv").write_text(f'question,number\nDosis?,"{text}"\n')
    options = {"name": "n", "licence": "x", "domain": "d", "language": language}
    if value is None:
        with pytest.raises(InputError, match="can be read as"):
            load_table(tmp_path / "f.csv", {}, **options)
        return
    [item] = load_table(tmp_path / "f.csv", {}, **options).items
    assert (item.target.lo, item.target.hi) == (value, value)
