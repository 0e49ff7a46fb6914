"""What a command prints: a record as JSON, or its lines and tables."""

import json

import pytest

from medassay.cli.output import out
from medassay.core.table import Table


def never():
    raise AssertionError("lines for people were made for --json")
    yield ""


@pytest.fixture(autouse=True)
def as_text(monkeypatch):
    for flag in ("json", "quiet"):  # another test's command may have set them
        monkeypatch.setattr(out, flag, False)


@pytest.fixture
def as_json(as_text, monkeypatch):
    monkeypatch.setattr(out, "json", True)


def test_lines_are_not_even_made_for_json(as_json, capsys):
    out.tell({"n": 1}, "one", never())
    assert json.loads(capsys.readouterr().out) == {"schema_version": 1, "n": 1}


def test_lines_and_tables_come_in_their_order_and_a_table_without_rows_shows_its_heads(capsys):
    parts = ["first", Table(text=("model",), numbers=("score",), title="nothing", notes=["so"])]
    out.tell({}, "zeroth", iter(parts), "last")
    shown = capsys.readouterr().out
    places = [shown.index(word) for word in ("zeroth", "first", "nothing", "model", "so", "last")]
    assert places == sorted(places)
