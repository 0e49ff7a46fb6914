import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.kinds.pattern.number import extract_number


def test_reproduces_the_golden_ranges(golden):
    for case in golden("rubric")["closed"]:
        if case["kind"] == "range":
            number, _ = extract_number(case["answer"], locale=case.get("locale", "en"))
            inside = number is not None and case["lo"] <= number <= case["hi"]
            assert inside == bool(case["score"]), case


@pytest.mark.parametrize(
    ("text", "locale", "number"),
    [
        ("1,234,567.8", "en", 1234567.8),
        ("1.234.567,8", "de", 1234567.8),
        ("1.234.567", "en", None),  # points do not group in English
        ("3-9", "en", None),
        ("about -4", "en", -4.0),
        ("2’500", "de", 2500.0),
        ("CO2 is 40", "en", 40.0),
        ("5 and 5.0", "en", 5.0),
        ("0.5e-3", "en", 0.0005),
        ("Antwort: 7 (Norm 3)", "de", None),
        (".5", "en", 0.5),
        ("-.5", "de", -0.5),
        ("p<.05", "en", 0.05),
        ("wait ...5", "en", 5.0),
        ("1. .5", "en", None),
        ("to –90 mV", "en", -90.0),  # en dash
        ("\u20115", "en", -5.0),  # hyphen that does not break
        ("－５", "en", -5.0),  # wide forms
        ("2e–3", "en", 0.002),
        ("3–9", "en", None),
        ("5 mg–9 mg", "en", None),
        ("–5, that is -5", "en", -5.0),
        ("—5", "en", 5.0),  # an em dash is punctuation
        ("CD–4", "en", 4.0),
        ("minus 5", "de", -5.0),
        ("Answer: Minus .5", "en", -0.5),
        ("Answer: 7 minus 5", "en", None),
        ("plus or minus 5", "en", 5.0),
        ("Plus or minus 5", "en", 5.0),
        ("plus/minus 5", "en", 5.0),
        ("plus-minus 5", "en", 5.0),
        ("plus oder minus 5", "de", 5.0),
        ("The answer is zero or minus 5", "en", -5.0),
        ("Correct for minus 5", "en", -5.0),
        ("+/-5", "en", 5.0),
        ("+-5", "en", 5.0),
        ("1½", "en", 1.5),
        ("1 ½ tablets", "en", 1.5),
        ("-½", "en", -0.5),
        ("1.5½", "en", None),
        ("½½", "en", None),
        ("pH7.4", "en", 7.4),
        ("pH7,4", "de", None),  # "L4,5" are two
        ("E11.9", "en", 11.9),
        ("T3,4", "de", None),
        ("1x1.5 cm", "en", None),
        ("3.5.1", "en", None),
        ("", "en", None),
    ],
)
def test_reads_numbers_as_written(text, locale, number):
    assert extract_number(text, locale=locale)[0] == number


def test_a_pattern_names_the_number():
    assert extract_number("score 3 of 15", extract=r"score (\S+)") == (3.0, "extract")
    assert extract_number("none", extract=r"score (\S+)") == (None, "no number")


@given(st.floats(min_value=-1e6, max_value=1e6, allow_nan=False).map(lambda x: round(x, 2)))
def test_reads_back_what_python_prints(x):
    if len(str(x).split(".")[1]) != 3 and "e" not in str(x):
        assert extract_number(f"It is {x} mg") == (x, "number")


@given(st.text())
def test_never_raises(text):
    for locale in ("en", "de"):
        number, reason = extract_number(text, locale=locale)
        assert reason
        assert number is None or math.isfinite(number) or "e" in text.lower()
