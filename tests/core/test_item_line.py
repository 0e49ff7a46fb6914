"""Items as reviews and workshops read them."""

import pytest

from medassay.core.records.item_line import item_line
from medassay.errors import InputError

ITEM = {"id": "a", "domain": "d", "question": "Q?", "options": ["x", "y"], "expected": "B"}


def test_what_a_maker_notes_may_be_anything():
    for note in (None, 7, True, ["A", "B"], {"name": "A"}):
        line = item_line({**ITEM, "meta": {"question": note, "own": 1}, "approval": {"who": note}})
        assert (line.meta.question, line.approval.who) == (note, note)


def test_the_right_text_is_that_of_the_key_else_the_reference():
    assert item_line(ITEM).right_text == "y"
    assert item_line({"id": "a", "reference": "R"}).right_text == "R"
    assert item_line({"id": "a"}).right_text == ""


def test_a_field_of_another_type_is_named_with_its_item():
    with pytest.raises(
        InputError, match=r"item 'a': Expected `array`, got `str` - at `\$.options`"
    ):
        item_line({**ITEM, "options": "x, y"})
