import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import growth

from medassay.score.json_similarity import _Alignment, json_similarity, path_text

texts = st.text(max_size=6)
scalars = st.none() | st.booleans() | st.integers(-99, 99) | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
).filter(lambda value: isinstance(value, dict | list))


def as_golden(found):
    return {
        "parsed": found.parsed,
        "overall": pytest.approx(found.overall, abs=1e-9),
        "leaf_scores": {k: pytest.approx(v, abs=1e-9) for k, v in found.leaf_scores.items()},
        "missing": list(found.missing),
        "extra": list(found.extra),
        "sub_scores": {k: pytest.approx(v, abs=1e-9) for k, v in found.by_section.items()},
        "duplicate_keys": list(found.duplicate_keys),
    }


def test_golden_leaves(golden):
    for case in golden("json_similarity")["leaf"]:
        assert _Alignment().similarity(case["a"], case["b"]) == pytest.approx(
            case["similarity"], abs=1e-9
        )


def test_golden_comparisons(golden):
    for case in golden("json_similarity")["compare"]:
        options = dict(case["options"])
        strict = not options.pop("absent_null", True)
        found = json_similarity(case["gold"], case["response"], strict=strict, **options)
        assert as_golden(found) == case["expect"], case["name"]


def test_golden_health_records(golden):
    record = golden("health_record")
    for case in record["outputs"]:
        found = json_similarity(record["gold"], case["output"], exclude=["internal_monologue"])
        expected = case["json_similarity"]
        assert found.overall == pytest.approx(expected["overall"], abs=1e-9)
        assert dict(found.by_section) == pytest.approx(expected["sub_scores"], abs=1e-9)
        assert list(found.missing) == expected["missing"]
        assert list(found.extra) == expected["extra"]


def leaves(value):
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return sum(leaves(part) for part in parts)
    return 1


@given(values)
def test_a_record_agrees_with_itself(value):
    found = json_similarity(value, json.dumps(value))
    assert found.no_expected_paths == (leaves(value) == 0)
    assert found.overall == (0 if found.no_expected_paths else 1)
    assert not found.missing
    assert not found.extra


@given(values, values)
def test_every_leaf_is_scored_once_and_found_or_missing_or_extra(expected, actual):
    found = json_similarity(expected, actual)
    assert len(found.leaf_scores) == leaves(expected)
    assert all(0 <= score <= 1 for score in found.leaf_scores.values())
    assert set(found.missing) <= set(found.leaf_scores)
    assert all(found.leaf_scores[path] == 0 for path in found.missing)
    assert len(found.extra) <= leaves(actual)
    assert json_similarity(expected, actual, strict=True).overall <= found.overall


@given(st.lists(st.text(min_size=1, max_size=5), unique=True, max_size=6), st.randoms())
def test_the_order_of_an_array_does_not_matter_where_all_is_found(texts, random):
    mixed = list(texts)
    random.shuffle(mixed)
    # A partner that is equal scores 1, and none scores more: greed is harmless here.
    assert json_similarity({"a": texts}, {"a": mixed}).overall == (1 if texts else 0)


def test_a_place_that_holds_another_shape():
    found = json_similarity({"a": {"b": None}}, {"a": "x"})
    assert (found.overall, found.missing, found.extra) == (0, ("a.b",), ("a",))
    found = json_similarity({"a": None}, {"a": {"b": "x"}})
    assert (found.overall, found.missing, found.extra) == (0, (), ("a.b",))
    found = json_similarity({"a": {"b": "x", "c": None}}, {"a": None})
    assert (found.overall, found.missing, found.extra) == (0.5, ("a.b",), ())
    assert json_similarity({"a": {"c": None}}, {"a": None}, strict=True).missing == ("a.c",)


def test_nulls():
    assert (
        json_similarity(
            {"a": None, "b": {"c": None}}, {"a": None, "b": {"c": None}}, strict=True
        ).overall
        == 1
    )
    assert json_similarity({"a": "x"}, {"a": "x", "b": None}).extra == ("b",)


def test_paths_are_excluded_on_both_sides():
    gold = {"m": [{"n": "x", "dose": "1"}, {"n": "y", "dose": "2"}], "k.l": "z"}
    reply = {"m": [{"n": "y"}, {"n": "x", "dose": "9"}], "k.l": "?"}
    found = json_similarity(gold, reply, exclude=["m[*].dose", '["k.l"]'])
    assert (found.overall, found.extra) == (1, ())
    assert list(json_similarity(gold, reply, exclude=["m[0]", '["k.l"]']).leaf_scores) == [
        "m[1].n",
        "m[1].dose",
    ]
    for wrong in ("", "a..b", "a[x]", "a]"):
        with pytest.raises(ValueError, match="is no path"):
            json_similarity(gold, reply, exclude=[wrong])


def test_sections_by_a_depth_given():
    gold = {"r": {"a": "x", "b": {"c": "y", "d": "z"}}}
    reply = {"r": {"a": "x", "b": {"c": "y"}}}
    assert json_similarity(gold, reply, group_depth=0).by_section == {"r": pytest.approx(2 / 3)}
    assert json_similarity(gold, reply, group_depth=2).by_section == {
        "r.b.c": 1.0,
        "r.b.d": 0.0,
    }


@pytest.mark.parametrize("expected", ["no json", '"text"', 5, None, "[" * 5000, 1.5])
def test_what_is_expected_must_be_json(expected):
    with pytest.raises(ValueError, match="expected"):
        json_similarity(expected, "{}")


def test_replies_that_cannot_be_scored_say_why():
    gold = {"a": "x"}
    deep = []
    deep.append(deep)
    cases = {
        "no JSON": None,
        "no complete JSON": "I cannot help",
        "deeper than 200": {"a": deep},
        "more than 1,000 values": {"a": ["x"] * 1_000},
        "more than 100,000 characters": {"a": "x" * 100_001},
        "no JSON object or array": 5,
    }
    for reason, reply in cases.items():
        found = json_similarity(gold, reply)
        assert (found.parsed, found.overall, found.missing) == (False, 0, ("a",)), reason
        assert reason in found.reason
        assert not found.by_section
    with pytest.raises(ValueError, match="deeper than 200"):
        json_similarity({"a": deep}, "{}")


def test_half_a_surrogate_pair_is_a_character_like_others():
    found = json_similarity({"a": "ab\ud800"}, '{"a": "ab\\ud800"}')
    assert found.overall == 1
    assert json_similarity({"a": "abc"}, '{"a": "ab\\ud800"}').overall == pytest.approx(2 / 3)


def test_many_elements_cost_no_more_than_their_number(golden):
    gold = {"a": ["y" * 30] * 20, "b": ["z" * 20] * 1_000}

    def compare(text):
        assert json_similarity(gold, json.dumps({"a": text.split(";")})).parsed

    assert growth(compare, "x" * 40 + ";", 1_200) < 24


def test_nested_arrays_are_aligned_once():
    deep = "[" * 150 + '"a"' + "]" * 150
    assert json_similarity(deep, deep).overall == 1
    wide = {"a": [{"b": [{"c": [{"d": 5}, {"d": 8}]}] * 3}] * 3}
    assert json_similarity(wide, wide).overall == 1


def test_a_tag_within_a_value_loses_nothing():
    record = {"a": "use </think> tag", "b": "x"}
    assert json_similarity(record, json.dumps(record)).overall == 1
    for thought in ("<think>{}</think> no", "<think>{}", "<think>{} no"):
        assert not json_similarity(record, thought.format(json.dumps({"a": "x"}))).parsed


def test_junk_after_a_good_value_does_not_lose_it():
    assert json_similarity({"a": "x"}, '{"a": "x"}\n' + "[x]" * 300_000).overall == 1


def test_options_that_are_none_are_refused():
    for options in (
        {"exclude": "a"},
        {"exclude": [5]},
        {"group_depth": -1},
        {"group_depth": "x"},
    ):
        with pytest.raises(ValueError, match=r"exclude|group_depth"):
            json_similarity({"a": "x"}, "{}", **options)
    with pytest.raises(ValueError, match="NaN"):
        json_similarity('{"a": NaN}', "{}")
    assert json_similarity({"a": ["x"]}, {"a": ["y"]}, exclude=["a.*"]).leaf_scores == {"a[0]": 0.0}


def test_paths_are_printed_unambiguously():
    assert path_text(("a", 0, "b")) == "a[0].b"
    assert path_text((0, "a")) == "[0].a"
    assert path_text(("a", "", "x[0]", 'q"')) == 'a[""]["x[0]"]["q\\""]'


def test_a_sequence_is_an_array():
    gold = {"a": ("x", "y", ("p", "q"))}
    assert json_similarity(gold, {"a": ["y", "x", ["q", "p"]]}).overall == 1.0
    assert json_similarity({"a": ["x", "y"]}, {"a": ("y", "z")}).overall == 0.5
    assert json_similarity(("x", "y"), ["x"]).overall == 0.5
    assert json_similarity({"a": "xy"}, {"a": ("x", "y")}).overall == 0.0


def _words(n, length, seed=1):
    digits = random.Random(seed).randbytes(n * length // 2).hex()
    return [digits[at : at + length] for at in range(0, len(digits), length)]


@pytest.mark.parametrize(
    ("gold", "found", "says"),
    [
        ({"m": "A" * 900_000}, {"m": "B" * 900_000}, "too large to compare: more than 400,000"),
        (_words(4_000, 6), _words(4_000, 6, 2), "too large to compare: more than 400,000"),
        (_words(3_000, 60), _words(16_000, 60, 2), "too large to compare: more than 400,000"),
        ([{"a": 1}] * 4_000, [{"b": 1}] * 4_000, "too large to compare: more than 400,000"),
        ({"a": [1] * 3_000}, {"k" * 400_000: [1] * 900}, "characters of paths"),
        ({"a": "x"}, [1] * 60_000, "more than 1,000 values"),
        ([0] * 4_000, [1] * 60_000, "more than 50,000 values"),
    ],
)
def test_what_would_take_minutes_is_refused_with_the_reason(gold, found, says):
    result = json_similarity(gold, found)
    assert says in result.reason
    assert (result.parsed, result.overall) == (False, 0.0)
    assert len(result.missing) == len(result.leaf_scores) > 0
    assert json_similarity({"m": "A" * 900_000}, {"m": "A" * 900_000}).overall == 1.0


@pytest.mark.parametrize(
    "gold", [[1] * 50_001, {"k" * 400_000: [1] * 40_000}], ids=["values", "paths"]
)
def test_an_expected_document_that_is_too_large_is_refused(gold):
    with pytest.raises(ValueError, match="expected: more than"):
        json_similarity(gold, "{}")
