import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.kinds.record.medication import LISTS, medication_state

drugs = st.lists(st.fixed_dictionaries({"name": st.text(min_size=1, max_size=4)}), max_size=4)
medications = st.fixed_dictionaries({name: drugs for name in LISTS})
anything = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*LISTS, "name"]), inner, max_size=3)
    ),
)


def test_golden_records(golden):
    record = golden("health_record")
    expected = record["gold"]["structured_health_record"]["medications"]
    for case in record["outputs"]:
        found = medication_state(
            expected, case["output"]["structured_health_record"]["medications"]
        )
        wanted = case["medication_state"]
        assert (found.correct, found.total) == (wanted["correct"], wanted["total"])
        assert found.accuracy == wanted["accuracy"]
        assert list(found.stopped_as_current) == wanted["stopped_listed_as_current"]
        assert not found.invented


@given(medications)
def test_a_record_agrees_with_itself(expected):
    found = medication_state(expected, expected)
    assert found.correct == found.total
    assert found.accuracy in (1, None)
    assert (found.lost, found.invented, found.stopped_as_current) == ((), (), ())


@given(medications, anything | medications)
def test_counts_hold_together_whatever_the_reply_is(expected, actual):
    found = medication_state(expected, actual)
    assert 0 <= found.correct <= found.total - len(found.lost)
    assert set(found.stopped_as_current).isdisjoint({*found.lost, *found.invented})


def test_names_are_compared_without_case_and_blanks_and_dose():
    expected = {"current": [{"name": "Ramipril  HEXAL", "dose": "5 mg"}]}
    assert medication_state(expected, {"current": [{"name": "ramipril hexal"}]}).accuracy == 1
    assert medication_state(expected, {"current": ["Ramipril Hexal"]}).accuracy == 1


def test_a_drug_in_a_second_list_is_not_correct():
    expected = {"current": [{"name": "A"}], "discontinued": [{"name": "B"}]}
    found = medication_state(expected, {**expected, "advised": [{"name": "A"}, {"name": "C"}]})
    assert (found.correct, found.invented) == (1, ("c",))
    both = {"current": [{"name": "B"}], "discontinued": [{"name": "B"}]}
    assert medication_state(expected, both).stopped_as_current == ("b",)


def test_a_changed_dose_is_one_drug_in_two_lists():
    expected = {
        "advised": [{"name": "A", "dose": "10"}],
        "discontinued": [{"name": "A", "dose": "5"}],
    }
    assert medication_state(expected, expected).total == 1
    found = medication_state(expected, {"current": [{"name": "A"}]})
    assert (found.correct, found.stopped_as_current) == (0, ())


@pytest.mark.parametrize("actual", [None, "none", [], {"current": "A"}, {"current": [{"name": 5}]}])
def test_what_is_no_list_of_drugs_loses_them_all(actual):
    found = medication_state({"current": [{"name": "A"}]}, actual)
    assert (found.accuracy, found.lost) == (0, ("a",))
