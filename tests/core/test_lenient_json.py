"""JSON as models write it: what was whole is read, what was wrong is named, nothing is guessed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import growth

from medassay.core.reply.lenient_json import read_lenient

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(VALUES, max_size=4) | st.dictionaries(st.text(max_size=8), VALUES, max_size=4))
def test_what_is_json_is_read_as_json(value):
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=2)):
        read = read_lenient(text, 0)
        assert (read.value, read.end, read.faults) == (value, len(text), ())


@pytest.mark.parametrize(
    ("text", "value", "fault"),
    [
        ("['a', 'b']", ["a", "b"], "quotes"),
        ('{"a": 1,}', {"a": 1}, "trailing comma"),
        ('{"a": 1 // one\n, "b": 2}', {"a": 1, "b": 2}, "remark"),
        ('{"a": /* one */ 1}', {"a": 1}, "remark"),
        ("{'a': None, 'b': True}", {"a": None, "b": True}, "word"),
        ('{"a": NaN}', {"a": None}, "word"),
        ("{a: 1}", {"a": 1}, "key without quotes"),
        ('{"a": "Behçet"s disease"}', {"a": 'Behçet"s disease'}, "quotes"),
        ('{"a": [1, 2}', {"a": [1, 2]}, "bracket"),
        ("“x”", None, ""),
        ('{"a": "x', {}, "cut off"),
        ('["a", "b', ["a"], "open text"),
        ('[{"a": "x", "b": ["y"]}, {"a": "z', [{"a": "x", "b": ["y"]}], "cut off"),
        ('{"a": "x"', {"a": "x"}, "cut off"),
        ('{"u": "\\u00e9\\n"}', {"u": "é\n"}, ""),
    ],
)
def test_what_is_wrong_is_read_and_named(text, value, fault):
    read = read_lenient(text, 0)
    if value is None:
        assert read is None
        return
    assert read.value == value
    assert fault in read.faults if fault else not read.faults


@pytest.mark.parametrize(
    "text", ["[see above]", "{curly} braces", "(1)", "", "[1] and more text {", "x"]
)
def test_prose_in_brackets_is_no_value(text):
    read = read_lenient(text, 0)
    assert read is None or read.value == [1]


@given(st.text(alphabet=st.sampled_from(list("{}[]\"':,\\ /*#ab1\n")), max_size=120))
def test_never_raises_and_never_reads_beyond_the_text(text):
    read = read_lenient("{" + text, 0)
    assert read is None or 0 < read.end <= len(text) + 1


@pytest.mark.parametrize("piece", ["[", '{"a":', '["', '"x', "'", "\\", '"a" ', "//\n", "/*"])
def test_hostile_text_costs_no_more_than_its_length(piece):
    assert growth(lambda text: read_lenient("[" + text, 0), piece, 2_000) < 24
