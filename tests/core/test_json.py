import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.core.canonical import canonical
from medassay.core.json import parse_json, parse_record
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
