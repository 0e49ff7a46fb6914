"""Dose, unit, route and schedule agree or not as numbers.

A stopped drug that goes on is found however it is named.
"""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.kinds.record.dose import read_amounts, read_units
from medassay.kinds.record.drug_name import drug_key, is_perhaps
from medassay.kinds.record.medication import medication_details, medication_state
from medassay.kinds.record.schedule import read_route, read_schedule, schedules_agree

SAME_DOSES = [
    ("5mg", "5 mg"),
    ("0,5 g", "500 mg"),
    ("0.5 g", "500 mg"),
    ("1 g", "1000 mg"),
    ("100 µg", "0,1 mg"),
    ("100 mcg", "100 μg"),
    ("100 ug", "100 µg"),
    ("1.000 mg", "1 g"),
    ("1000 IE", "1.000 I.E."),
    ("1000 IU", "1000 IE"),
    ("20 E", "20 IE"),
    ("2 Hübe", "2 puffs"),
    ("30 Tropfen", "30 gtt"),
    ("1 Tbl.", "1 Tablette"),
    ("24/26 mg", "24 mg/26 mg"),
    ("10 ml", "1 cl"),
    ("1 mmol", "1000 µmol"),
    ("40 mval", "40 mEq"),
    ("0,5 Mio. IE", "500.000 IE"),
    ("5 MG", "5 mg"),
    ("0,5 %", "0.5 %"),
]


@pytest.mark.parametrize(("one", "other"), SAME_DOSES)
def test_one_dose_in_two_spellings(one, other):
    assert read_amounts(one, "de") == read_amounts(other, "de") != ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 mg", "50 mg"),
        ("5 mg", "5 µg"),
        ("5 mg", "5 g"),
        ("24/26 mg", "24 mg"),
        ("5 mg", "5 ml"),
        ("100 IE", "100 mg"),
        ("2 Hübe", "2 Tropfen"),
        ("5 mg/kg", "5 mg"),
        ("25 µg/h", "25 µg"),
        ("1.000 mg", "1 mg"),
    ],
)
def test_two_doses_that_differ(one, other):
    assert read_amounts(one, "de") != read_amounts(other, "de")


def test_thousands_are_those_of_the_language():
    assert read_amounts("1.000 mg", "de") == read_amounts("1 g")
    assert read_amounts("1.000 mg", "en") == read_amounts("1 mg")
    assert read_amounts("1,000 mg", "en") == read_amounts("1 g")
    assert read_amounts("2,5 mg", "en") == read_amounts("2.5 mg", "de")


@given(st.text(max_size=60))
def test_any_text_is_read_without_an_error(text):
    for language in ("de", "en"):
        assert read_units(text, language) is not None
        amounts = read_amounts(text, language)
        assert amounts == tuple(sorted(amounts))
    drug_key(text)
    assert schedules_agree(text, text)
    read_route(text)


@given(
    st.integers(1, 9999),
    st.sampled_from(["mg", "g", "µg", "ml", "IE", "Hub", "Tropfen"]),
    st.sampled_from(["", " ", "  "]),
)
def test_a_dose_is_the_same_with_or_without_blanks_and_another_tenfold(n, unit, blank):
    plain = read_amounts(f"{n} {unit}", "de")
    assert read_amounts(f"{n}{blank}{unit}", "de") == plain != ()
    assert read_amounts(f"{10 * n} {unit}", "de") != plain
    assert read_units(f"{10 * n} {unit}", "de") == read_units(f"{n} {unit}", "de")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1-0-1", "1-0-1-0", True),
        ("1-0-1", "1 – 0 – 1", True),
        ("1-0-1", "morgens und abends", True),
        ("1-0-1", "2x täglich", True),
        ("1-0-1", "zweimal täglich", True),
        ("1-0-1", "twice daily", True),
        ("1-0-1", "b.i.d.", True),
        ("1-1-1", "alle 8 Stunden", True),
        ("1-1-1", "every 8 hours", True),
        ("1-0-0", "0-0-1", False),
        ("1-0-0", "1-0-1", False),
        ("1-0-0", "einmal wöchentlich", False),
        ("1× wöchentlich", "once weekly", True),
        ("1× wöchentlich (mittwochs)", "1x pro Woche", True),
        ("1x täglich", "1x wöchentlich", False),
        ("½-0-0", "0,5-0-0", True),
        ("b. B.", "bei Bedarf", True),
        ("bei Bedarf", "as needed", True),
        ("1-0-0", "1-0-0 bei Bedarf", False),
        ("0-0-1", "abends", True),
        ("0-0-0-1", "zur Nacht", True),
        ("nach Schema", "Nach  Schema", True),
        ("nach Schema", "nach Plan", False),
    ],
)
def test_schedules(one, other, same):
    assert schedules_agree(one, other) is same
    assert schedules_agree(other, one) is same


def test_routes_and_slots():
    assert read_route("s.c. einmal wöchentlich") == read_route("subkutan") == "subcutaneous"
    assert read_route("i.v.") == read_route("intravenously") == "intravenous"
    assert read_route("2 Hübe inhalativ") == read_route("inhaled") == "inhaled"
    assert read_route("1-0-1") is None
    assert read_schedule("1-0-1").slots == (1, 0, 1, 0)


SYNONYMS = {"ASS": ["Acetylsalicylsäure", "Aspirin"], "Metoprolol": ["Beloc-Zok"]}
EIGHT = [
    ("ASS", "ass"),
    ("ASS", "ASS 100 mg"),
    ("ASS", "ASS."),
    ("ASS", "Acetylsalicylsäure"),
    ("ASS", unicodedata.normalize("NFD", "Acetylsalicylsäure")),
    ("Metoprolol", "Metoprololsuccinat 47,5 mg"),
    ("Metoprolol", "Beloc-Zok®"),
    ("Sacubitril/Valsartan", "Valsartan / Sacubitril 24/26 mg"),
]


@pytest.mark.parametrize(("name", "said"), EIGHT)
def test_a_stopped_drug_is_found_in_eight_spellings(name, said):
    expected = {"discontinued": [{"name": name, "dose": "1 mg", "schedule": None}]}
    actual = {"current": [{"name": said, "dose": None, "schedule": None}]}
    found = medication_details(expected, actual, synonyms=SYNONYMS)
    assert found.as_current == (name,)
    assert (found.matched, found.stopped, found.perhaps) == (1, 1, ())


def test_what_is_perhaps_the_same_is_counted_apart():
    expected = {"discontinued": [{"name": "Ramipril"}]}
    found = medication_details(expected, {"current": [{"name": "Ramipril comp."}]})
    assert (found.as_current, found.perhaps, found.matched) == ((), ("Ramipril",), 0)
    assert is_perhaps("ramipril", "ramipril comp")
    assert not is_perhaps("ass", "assam")


def test_the_old_dose_beside_the_new_one_is_told():
    expected = {
        "advised": [{"name": "Ramipril", "dose": "10 mg", "schedule": "1-0-0"}],
        "discontinued": [{"name": "Ramipril", "dose": "5 mg", "schedule": "1-0-0"}],
    }
    actual = {
        "current": [{"name": "Ramipril", "dose": "5mg", "schedule": "1-0-0"}],
        "advised": [{"name": "Ramipril", "dose": "10 mg", "schedule": "1-0-0"}],
    }
    assert medication_state(expected, actual).stopped_as_current == ()
    assert medication_details(expected, actual).old_dose == ("Ramipril",)
    swapped = {"advised": expected["discontinued"], "discontinued": expected["advised"]}
    found = medication_details(expected, swapped)
    assert (found.agree["dose"], found.compared["dose"]) == (0, 2)
    assert {wrong.place for wrong in found.wrong} == {"advised", "discontinued"}


@pytest.mark.parametrize(
    "actual", [None, [], "x", {"current": "x"}, {"current": [None, 3, {"name": 4}]}]
)
def test_a_reply_in_any_shape_compares_nothing(actual):
    expected = {"current": [{"name": "A", "dose": "1 mg", "schedule": "1-0-0"}]}
    found = medication_details(expected, actual)
    assert set(found.compared.values()) == {0}


def test_a_record_agrees_with_itself_in_every_detail():
    expected = {
        "current": [{"name": "A", "dose": "1 mg s.c.", "schedule": "1-0-0"}],
        "advised": [{"name": "B 5 mg", "dose": None, "schedule": "2 Hübe b. B."}],
    }
    found = medication_details(expected, expected)
    assert found.agree == found.compared == {"dose": 2, "unit": 2, "route": 1, "schedule": 2}
    assert found.wrong == ()
