import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.growth import growth

from medassay.core.reply.json_value import (
    MOST_CHARACTERS,
    MOST_LEVELS,
    is_json_alone,
    read_json_reply,
)
from medassay.core.reply.thoughts import strip_thoughts

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
).filter(lambda value: isinstance(value, dict | list))


def test_golden_replies(golden):
    for case in golden("json_similarity")["extraction"]:
        read = read_json_reply(case["text"])
        assert (read.value is not None) == case["parsed"], case["name"]
        assert read.value == case["value"], case["name"]
        assert list(read.duplicate_keys) == case["duplicate_keys"], case["name"]
        assert bool(read.reason) != case["parsed"], case["name"]


@given(values)
def test_what_is_written_as_json_is_read_back(value):
    text = f"Here it is, in {{short}}:\n```json\n{json.dumps(value, indent=1)}\n```\nDone."
    assume(strip_thoughts(text) == (text, False))  # a text in it may be the mark of a thought
    assert read_json_reply(text).value == value


pieces = st.lists(
    st.sampled_from(
        [
            "{",
            "}",
            "[",
            "]",
            '"',
            "\\",
            ",",
            ":",
            "1",
            '"a":',
            "x",
            " ",
            "\n",
            "```",
            "{}",
            "null",
        ]
    ),
    max_size=40,
).map("".join)


def partner(text, start):
    """Return the place after the bracket's partner, by a stack that knows strings and escapes."""
    stack, position, inside = [], start, False
    while position < len(text):
        char = text[position]
        if inside:
            position += char == "\\"
            inside = char != '"'
        elif char == '"':
            inside = True
        elif char in "{[":
            stack.append(char)
        elif char in "}]":
            if stack.pop() + char not in ("{}", "[]"):
                return None
            if not stack:
                return position + 1
        position += 1
    return None


def by_definition(text):
    """Return the longest span by the words of the specification, each step as slow as it is
    plain.
    """
    best, position = None, 0
    while position < len(text):
        end = partner(text, position) if text[position] in "{[" else None
        try:
            value = json.loads(text[position:end]) if end else None
        except ValueError:
            value = None
        if value is None:
            position += 1
            continue
        if best is None or end - position > best[0]:
            best = end - position, value
        position = end
    return best and best[1]


@given(pieces.filter(lambda text: "```" not in text))
@settings(max_examples=500, deadline=None)
def test_hostile_brackets_are_read_as_by_definition(text):
    assert read_json_reply(text).value == by_definition(text)


@given(st.text() | pieces)
def test_reading_never_raises(text):
    read = read_json_reply(text)
    assert (read.value is None) == bool(read.reason)


MILLION = MOST_CHARACTERS
HOSTILE = {
    "deep and closed": "[" * 100_000 + "]" * 100_000,
    "one key a hundred thousand times": "{" + ",".join(['"a":1'] * 100_000) + "}",
    "every key twice": "{" + ",".join(f'"{i}":1,"{i}":2' for i in range(30_000)) + "}",
    "ten megabytes": '{"a":"' + "x" * 10_000_000 + '"}',
}
# Before, repeated, after, and how often: eight times as much must not cost much more than eight
# times the time.
REPEATED = {
    "deep": ("", "[", "", 15_000),
    "deep objects": ("", '{"a":', "", 15_000),
    "pairs": ("", "[]", "", 8_000),
    "pairs in unclosed lists": ("[" * 199, "[]", "", 8_000),
    "a broken end under many levels": ("[" * 199, "1,", "x" + "]" * 199, 50_000),
    "objects that are none": ("", "{x}", "", 8_000),
    "strings that begin in strings": ("", '{"\\"', "", 8_000),
    "an endless string": ('{"a":"', '\\"', '"}', 50_000),
    "fences": ("", "```\n", "", 15_000),
    "blanks": ("", "\n" + " " * 1000, "", 100),
    "thoughts": ("", "<think>", "", 15_000),
    "half a fence": ("```", " ", "!", 15_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_replies_are_read_or_say_why_not(name):
    read = read_json_reply(HOSTILE[name])
    assert (read.value is None) == bool(read.reason)


@pytest.mark.parametrize("name", REPEATED)
def test_hostile_replies_cost_no_more_than_their_length(name):
    before, piece, after, n = REPEATED[name]
    assert growth(lambda text: read_json_reply(before + text + after), piece, n) < 24


@pytest.mark.parametrize("half", ["\ud800", "\\ud800"], ids=["as it is", "escaped"])
def test_half_a_surrogate_pair_loses_nothing_else(half):
    assert read_json_reply('{"a": "' + half + '", "b": 1}').value == {"a": "\ud800", "b": 1}


@pytest.mark.parametrize(
    "value", ["9" * 5000, "Infinity", "-Infinity", '"\n"', "01"], ids=["5,000 digits", *"1234"]
)
def test_what_is_no_strict_json_is_not_read(value):
    text = '{"a": ' + value + "}"
    assert read_json_reply(text).reason == "no complete JSON object or array"


def test_the_first_of_equally_long_values_counts():
    assert read_json_reply('{"a": 1} or {"a": 2}').value == {"a": 1}


def test_what_an_earlier_bracket_learned_serves_one_that_began_in_its_string():
    text = '[" {"x\\"y": [1]}'
    assert read_json_reply(text).value == by_definition(text) == {'x"y': [1]}


def test_json_alone_is_the_whole_reply():
    assert is_json_alone('<think>[</think>```json\n{"a": 1}\n```\n')
    for text in (
        "",
        "5",
        '{"a": 1} so',
        "see [1]",
        '{"a": [1',
        "[NaN]",
        "[" * 9999,
        " " * 2_000_000,
    ):
        assert not is_json_alone(text), text[:20]


def test_limits_are_named():
    assert "longer than 1,000,000" in read_json_reply("x" * (MILLION + 1)).reason
    levels = MOST_LEVELS
    assert read_json_reply("[" * levels + "]" * levels).value is not None
    assert "deeper than 200" in read_json_reply("[" * (levels + 1) + "]" * (levels + 1)).reason
    assert "too many brackets" in read_json_reply("{x}" * 300_000).reason
