import json
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.core.canonical import canonical
from medassay.core.json import parse_json, parse_record, refuse_twins
from medassay.errors import InputError

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values)
def test_reads_what_the_standard_library_reads(value):
    written = json.dumps(value)
    assert parse_json(written.encode("utf-8", "surrogatepass"), "here") == json.loads(written)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.floats(1e15, 1e22)))
def test_what_we_wrote_comes_back_and_is_written_again(numbers):
    written = canonical({"some": numbers})
    found = parse_record(written, "here")
    assert found == {"some": numbers}
    assert canonical(found) == written


def _object(pairs, gap):
    """Return an object in JSON with its pairs as they are, one key twice among them or not."""
    return "{" + f",{gap}".join(f'"{key}"{gap}:{gap}{value}' for key, value in pairs) + "}"


keys = st.sampled_from(["a", "b", r"\":", ": ", r"\\"])
texts = st.sampled_from(["1", "null", '"x"', r'"\":"', r'"a\" :"', "[]"])
objects = st.recursive(
    texts,
    lambda inner: st.builds(
        _object, st.lists(st.tuples(keys, inner), max_size=4), st.sampled_from(["", " ", "\n\t"])
    ),
    max_leaves=8,
)


@given(objects)
def test_a_key_that_stands_twice_is_found_as_the_standard_library_finds_it(text):
    twice = False

    def unique(pairs):
        nonlocal twice
        twice = twice or len({key for key, _ in pairs}) < len(pairs)
        return dict(pairs)

    value = json.loads(text, object_pairs_hook=unique)
    with pytest.raises(InputError, match="stands twice") if twice else nullcontext():
        refuse_twins(text.encode(), value, "here")


def test_a_number_beyond_reason_is_told():
    with pytest.raises(InputError, match="here: "):
        parse_record(b"9" * 400, "here")


def test_a_byte_order_mark_is_no_error():
    assert parse_json(b'\xef\xbb\xbf{"a": 1}', "here") == {"a": 1}


@pytest.mark.parametrize(
    "broken",
    [b"", b"{", b"NaN", b"-Infinity", b"1e999", b"\xff", b'"\\ud800"', b"[" * 9999, b"[1,]"],
)
def test_one_error_says_where_whatever_is_broken(broken):
    with pytest.raises(InputError, match="here: not valid JSON"):
        parse_json(broken, "here")
