import json

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from medassay.core.canonical import canonical, content_hash, sha256_hex
from medassay.errors import InputError

texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | texts
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
)


@example(2.0**53)
@example(9999999999999998.0)
@given(values)
def test_equals_the_reference_implementation(value):
    assert canonical(value) == rfc8785.dumps(value)


def has_large_float(value):
    if isinstance(value, dict):
        return any(map(has_large_float, value.values()))
    if isinstance(value, list):
        return any(map(has_large_float, value))
    return isinstance(value, float) and abs(value) >= 2**53


def test_reproduces_the_golden_records(golden):
    for case in golden("bank_versioning")["canonical"]:
        assert canonical(case["value"]).decode() == case["bytes_utf8"]
        assert sha256_hex(canonical(case["value"])) == case["sha256"]


def test_reproduces_the_golden_bank_hash(golden):
    bank = golden("bank_versioning")["bank"]
    assert content_hash(bank["items"]) == bank["content_sha256"]
    assert content_hash(reversed(bank["items"])) == bank["content_sha256"]


@pytest.mark.parametrize(
    "bad", [float("nan"), float("inf"), 2**53, "\ud800", {"a": [float("nan")]}]
)
def test_refuses_what_has_no_canonical_form(bad):
    with pytest.raises(InputError, match="canonical JSON"):
        canonical(bad)


@given(values.filter(lambda value: not has_large_float(value)))
def test_what_is_read_back_has_the_same_canonical_form(value):
    # Numbers within a double's exact integers come back: whole floats come back as integers of the
    # same canonical form.
    assert canonical(json.loads(canonical(value))) == canonical(value)
