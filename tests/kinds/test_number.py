import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import growth

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
        ("1x1.5 cm", "en", None),
        ("3.5.1", "en", None),
        ("", "en", None),
    ],
)
def test_reads_numbers_as_written(text, locale, number):
    assert extract_number(text, locale=locale)[0] == number


AS_MEANT = {
    0.5: (
        ".5",
        "p<.5",
        "(.5)",
        "$.50",
        "½",
        "½ tablet",
        "Answer: ½",
        "take ½ tablet",
        "(½)",
        "\\boxed{½}",
    ),
    -0.5: ("-.5", "–.5", "Answer: minus .5", "-½"),
    1.5: ("1½", "1 ½ tablets"),
    7.4: ("pH7.4", "pH7,4", "pH 7.4"),
    40.0: ("CO2 is 40", "CO2,40", "Answer (mg).40"),
    # En dash, figure dash, hyphens, minus sign, wide forms, also in Markdown, JSON, LaTeX, tables.
    -5.0: (
        *(
            "–5",
            "\u20125",
            "\u20105",
            "\u20115",
            "−5",
            "－５",
            "to –5 mV",
            "BE/-5",
            "BE,-5",
            "BE=-5",
        ),
        *("BE = − 5 mmol/L", "BE: −\u00a05", "≈-5", "(–5)", "[-5]", "| –5 |", '"value":-5', "`-5`"),
        *(
            "**–5**",
            "BE: **-5**",
            "is **–5**",
            "\\boxed{-5}",
            "$-5$",
            "-5/-5",
            "-5e0",
            "−5 (or minus 5)",
        ),
        *(
            "minus 5",
            "Minus 5",
            "**minus 5**",
            "minus **5**",
            "The base excess is minus 5",
            "(minus 5)",
        ),
        *("Antwort: minus 5", "liegt bei minus 5", "etwa minus 5 Grad", "zero or minus 5"),
    ),
    # A dash behind a word or a number, and what stands on both sides of a value, is no sign.
    5.0: (
        *(
            "CD–5",
            "IL-5",
            "**Dose**–5 mg",
            "Dose (oral)–5 mg",
            "`Dose`–5 mg",
            "K+–5.0 mmol/L",
            "—5",
        ),
        *("Na⁺–5 mmol/L", "[K+]–5.0", "HCO₃⁻–5", "(MELD)\u20115", "5%–5%", "wait ...5", "±5"),
        *("+/-5", "+-5", "+–5", "+/ -5", "x+/-5", "plus/minus 5", "plus-minus 5", "plus minus 5"),
        *("plus or minus 5", "PLUS OR MINUS 5", "plus or  minus 5", "plus or\nminus 5"),
        *("plus oder minus 5", "plus-or-minus 5", "measured minus 5", "pros and minus\n5 mg"),
    ),
    36.0: (
        *("t½ = 36 h", "t(½) = 36 h", "t ½ = 36 h", "$t_{½}$ = 36 h", "**t**½ = 36"),
        *("t<sub>½</sub> = 36 h", "½-life is 36 h", "½NS 36 mL/h", "Temperature in F minus 36"),
    ),
    None: (
        *("3-9", "3–9", "3 – 9", "5 mg–9 mg", "7 minus 5", "Answer: 7 minus 5", "7 − 5", "5 ± 0.5"),
        *("CO2", "_7.4_", "5 − 5", "1.5½", "½½", "120/80", "1. .5", "E11.9: 9"),
    ),
}


@pytest.mark.parametrize("number", AS_MEANT)
def test_signs_and_fractions_are_read_as_they_are_meant(number):
    read = {text: extract_number(text)[0] for text in AS_MEANT[number]}
    assert read == dict.fromkeys(AS_MEANT[number], number)


@pytest.mark.parametrize(
    "part", ["1", " ", ".", "-", "minus ", "1 ", "plus ", "1.1", "½", "a1", "*"]
)
def test_a_long_reply_is_read_at_once(part):
    assert growth(extract_number, part, 20_000 // len(part)) < 24


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
