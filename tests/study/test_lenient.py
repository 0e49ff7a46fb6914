"""First readings in the form of the second one, so that the two can be compared."""

import pytest
from tests import makers

from medassay.bank.check import build_item
from medassay.study.lenient import comparable, read_leniently

RECORD = makers.record_reply(makers.health_record(0), thoughts=True)


@pytest.mark.parametrize(
    "reply", [RECORD, f"```json\n{RECORD}\n```", f"Here is the record:\n{RECORD}\nThat is all."]
)
def test_a_record_is_the_same_alone_and_within_a_whole_reply(reply):
    item = build_item(makers.record_items(1)[0])
    assert comparable(item, reply) == comparable(item, RECORD) == read_leniently(item, reply)


def test_a_whole_reply_without_a_record_has_none():
    item = build_item(makers.record_items(1)[0])
    assert comparable(item, "The patient should stop it.") is None
    assert comparable(item, "") is None
    assert comparable(item, None) is None
