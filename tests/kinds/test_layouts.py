"""Ranked lists in every layout that models write: a wrong reading is worse than none, since nobody
looks for it.
"""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers
from tests.growth import growth

import medassay
from medassay.kinds.diagnoses.parser import read_list
from medassay.kinds.diagnoses.ranked_list import read_ranked_list
from medassay.kinds.diagnoses.ranked_list.entry import split_entry
from medassay.kinds.diagnoses.ranked_list.subject import subject_of

CORPUS = Path(__file__).parents[1] / "corpora" / "layouts.json"
CASE = makers.item(id="case", domain="d", question="Which five?", form="diagnoses")


def corpus():
    return json.loads(CORPUS.read_text(encoding="utf-8"))["cases"]


def read(text, finish="stop"):
    answer = medassay.read(CASE, text, finish=finish)
    names = None if answer.value is None else [e["name"] for e in json.loads(answer.value)]
    return names, answer.outcome


def test_every_golden_layout_is_read(golden):
    cases = golden("diagnosis_layouts")["cases"]
    assert len(cases) == 51
    for case in cases:
        assert read(case["reply"], case["finish"]) == (case["names"], case["outcome"]), case["id"]


@pytest.mark.parametrize("case", corpus(), ids=lambda case: case["id"])
def test_a_reply_says_what_a_physician_reads(case):
    assert read(case["reply"], case["finish"]) == (case["names"], case["outcome"])


NAMES = [
    "Marfan syndrome",
    "Lupus erythematosus, systemic",
    "Graves' disease",
    "Amyotrophic lateral sclerosis (ALS)",
    "Charcot-Marie-Tooth disease type 1A",
    "Morbus Wilson",
    "Enfermedad de Crohn",
    "Sjögren syndrome",
    "川崎病",
]
MARKS = {
    "1.": lambda n: f"{n}. ",
    "1)": lambda n: f"{n}) ",
    "(1)": lambda n: f"({n}) ",
    "[1]": lambda n: f"[{n}] ",
    "#1": lambda n: f"#{n} ",
    "1 -": lambda n: f"{n} - ",
    "1:": lambda n: f"{n}: ",
    "lazy": lambda n: "1. ",
    "a)": lambda n: f"{'abcdefg'[n - 1]}) ",
    "A.": lambda n: f"{'ABCDEFG'[n - 1]}. ",
    "roman": lambda n: f"{('I', 'II', 'III', 'IV', 'V', 'VI', 'VII')[n - 1]}. ",
    "small roman": lambda n: f"({('i', 'ii', 'iii', 'iv', 'v', 'vi', 'vii')[n - 1]}) ",
    "circled": lambda n: f"{chr(0x245F + n)} ",
    "full width": lambda n: f"{chr(0xFF10 + n)}．",
    "dunhao": lambda n: f"{n}、",
    "ordinal": lambda n: f"{n}º. ",
    "dash": lambda n: "- ",
    "star": lambda n: "* ",
    "dot": lambda n: "• ",
    "rank": lambda n: f"Rank {n}: ",
    "diagnosis": lambda n: f"Diagnosis {n}: ",
    "plus": lambda n: f"+{n}. ",
}
HEADINGS = (
    "",
    "Differential diagnosis:",
    "## Most likely diagnoses",
    "**Top 5**",
    "Based on the findings, these are the five most likely diagnoses:",
    "Differentialdiagnosen (nach Wahrscheinlichkeit):",
    "Diagnósticos más probables:",
    "Diagnostics les plus probables :",
    "可能的诊断：",
)
REASONS = {
    "none": lambda name: name,
    "colon": lambda name: f"{name}: it would fit the age",
    "dash": lambda name: f"{name} – it would fit the age",
    "bold": lambda name: f"**{name}**: it would fit the age",
    "bold dash": lambda name: f"**{name}** - it would fit the age",
    "below": lambda name: f"{name}\n   it would fit the age and the course.",
    "points": lambda name: f"**{name}**\n   - fits the age\n   - tall stature",
    "numbers": lambda name: f"{name}\n   1. fits the age\n   2. tall stature",
    "label": lambda name: f"{name}\n   Reason: it would fit the age",
    "percent": lambda name: f"{name} (40 %)",
    "likely": lambda name: f"{name} (high probability)",
    "code": lambda name: f"{name} (ICD-10: Q87.4)",
    "orpha": lambda name: f"{name} [ORPHA:558]",
}
BEFORE = (
    "",
    "Key findings:\n1. tall stature\n2. ectopia lentis\n\n",
    "<think>\n1. Something else\n2. Another thing\n</think>\n",
    "Symptoms:\n- fever\n- rash\n\n",
)
BEHIND = (
    "",
    "\n\nNext steps:\n1. Echocardiography\n2. Genetic panel",
    "\n\nRuled out:\n- Homocystinuria",
    "\n\nThis list is no substitute for an examination.",
    "\n\nRecommended tests:\n- Blood count\n- Biopsy",
)


@given(
    names=st.lists(st.sampled_from(NAMES), min_size=3, max_size=6, unique=True),
    mark=st.sampled_from(sorted(MARKS)),
    heading=st.sampled_from(HEADINGS),
    reason=st.sampled_from(sorted(REASONS)),
    before=st.sampled_from(BEFORE),
    behind=st.sampled_from(BEHIND),
    between=st.sampled_from(("\n", "\n\n")),
)
def test_marks_headings_and_reasons_combine_freely(
    names, mark, heading, reason, before, behind, between
):
    if not heading and (before.startswith(("Key", "Symptoms")) or mark in ("dash", "star", "dot")):
        heading = "Differential diagnosis:"  # without a word nobody could say which list is meant
    entries = [MARKS[mark](n) + REASONS[reason](name) for n, name in enumerate(names, 1)]
    reply = f"{before}{heading}\n{between.join(entries)}{behind}"
    assert read(reply) == (names, "answered")


@given(
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True),
    key=st.sampled_from(
        ("diagnoses", "differential_diagnosis", "ddx", "differentials", "possible_diagnoses")
    ),
    name_key=st.sampled_from(("name", "diagnosis", "disease", "condition")),
    form=st.sampled_from(("texts", "objects", "bare", "lines", "numbers")),
    fence=st.booleans(),
    broken=st.sampled_from(("", "comma", "remark", "quotes")),
)
def test_json_is_read_in_every_form(names, key, name_key, form, fence, broken):
    objects = [
        {"rank": n, name_key: name, "symptoms_in_common": ["fever", "rash"], "icd10": "Q87.4"}
        for n, name in enumerate(names, 1)
    ]
    value = {
        "texts": {"findings": ["fever"], key: names},
        "objects": {key: objects, "tests": ["blood count"]},
        "bare": objects,
        "lines": None,
        "numbers": {str(n): name for n, name in enumerate(names, 1)},
    }[form]
    if value is None:
        text = "\n".join(json.dumps(one, ensure_ascii=False) for one in objects)
    else:
        text = json.dumps(value, ensure_ascii=False, indent=1)
    if broken == "comma":
        text = text.replace('"\n', '",\n').replace(",,", ",")
    elif broken == "remark":
        text = text.replace("\n", " // as asked\n", 1)
    elif broken == "quotes" and "'" not in text:
        text = text.replace('"', "'")
    text = f"Here it is:\n```json\n{text}\n```\nI hope this helps." if fence else text
    found, outcome = read(text)
    assert (found, outcome) == (names, "answered")


@given(
    names=st.lists(st.sampled_from(NAMES), min_size=2, max_size=5, unique=True),
    at=st.integers(min_value=1, max_value=400),
    as_json=st.booleans(),
)
def test_a_cut_reply_keeps_whole_names_only(names, at, as_json):
    if as_json:
        whole = json.dumps(
            {"diagnoses": [{"name": name, "why": "fits"} for name in names]}, ensure_ascii=False
        )
    else:
        whole = "\n".join(f"{n}. {name}" for n, name in enumerate(names, 1))
    found, outcome = read(whole[:at], "length")
    assert outcome in ("truncated", "answered")
    assert (found or []) == names[: len(found or [])]
    assert outcome == ("answered" if len(found or []) >= 5 else "truncated")


@given(
    st.text(
        alphabet=st.sampled_from(list("1a.)-*#|{}[]:,\"'\n \\<>/+（）、一·Diagnosis")),
        max_size=400,
    )
)
def test_any_text_has_one_outcome_and_distinct_ranks(text):
    answer = medassay.read(CASE, text)
    assert answer.outcome in ("answered", "unparsed", "truncated", "refused")
    if answer.value is not None:
        entries = json.loads(answer.value)
        assert len({e["rank"] for e in entries}) == len(entries)
        assert all(e["rank"] >= 1 and e["name"].strip() for e in entries)
        assert len(answer.codes) == len(entries) or not entries


_KINDS = [
    CASE,
    makers.item(id="r", domain="d", question="?", form="record"),
    makers.item(id="c", domain="d", question="?", form="choice", options=("one", "two")),
    makers.item(id="o", domain="d", question="?", form="open"),
]
_OUTCOMES = ("answered", "unparsed", "truncated", "refused")


@given(st.sampled_from(_KINDS), st.binary(max_size=400), st.sampled_from(["stop", "length"]))
def test_any_bytes_have_one_outcome(item, data, finish):
    answer = medassay.read(item, data.decode("utf-8", "replace"), finish=finish)
    assert answer.outcome in _OUTCOMES
    assert answer.reason
    if answer.outcome == "answered":
        assert answer.value is not None
    elif answer.outcome != "truncated":
        assert answer.value is None


PIECES = (
    *(
        "[",
        "{",
        '{"a":',
        '["',
        "1. Gout\n",
        "- x\n",
        "| a | b |\n",
        "<li>",
        "<ol><li>a</li>",
        "**",
        "Diagnosis: ",
    ),
    *(
        "(1) ",
        "+1. ",
        "**Diagnosis 1",
        "(ICD-10: Q87.4) ",
        '[{"name":"a"},',
        "I cannot ",
        "```\n",
        "# ",
        "a,b\n",
    ),
)


@pytest.mark.parametrize("piece", PIECES)
def test_hostile_replies_cost_no_more_than_their_length(piece):
    assert growth(lambda text: read_ranked_list(text, cut=True), piece, 1_500) < 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("piece", "item"),
    [
        *((piece, item) for piece in ("[", "a ", "1. Gout\n") for item in _KINDS),
        ("<think>", _KINDS[0]),  # thoughts are taken off in one place, before any kind reads
    ],
)
def test_eight_megabytes_have_an_outcome(piece, item):
    text = piece * (8_000_000 // len(piece))
    assert medassay.read(item, text).outcome in _OUTCOMES


def test_codes_stand_beside_the_names():
    answer = medassay.read(
        CASE, "1. Marfan syndrome (MFS, ICD-10: Q87.4; ORPHA:558)\n2. Gout OMIM #138900"
    )
    assert json.loads(answer.value) == [
        {"rank": 1, "name": "Marfan syndrome (MFS)", "codes": ["ICD-10:Q87.4", "ORPHA:558"]},
        {"rank": 2, "name": "Gout", "codes": ["OMIM:138900"]},
    ]
    assert answer.codes == (("ICD-10:Q87.4", "ORPHA:558"), ("OMIM:138900",))


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("Gout (ICD-11: FA25)", ("ICD-11:FA25",)),
        ("Gicht (CIM-10 M10.9)", ("ICD-10:M10.9",)),
        ("Gout (M10.9)", ("ICD-10:M10.9",)),
        ("Fabry disease [Orphanet: 324]", ("ORPHA:324",)),
        ("Trisomy 21", ()),
        ("Factor V Leiden (F5)", ()),
        ("Vitamin B12 deficiency", ()),
        ("Diabetes mellitus type 2 (T2D)", ()),
    ],
)
def test_a_code_is_one_only_where_it_looks_like_one(text, codes):
    assert split_entry(text).codes == codes


@pytest.mark.parametrize(
    ("heading", "subject"),
    [
        ("Differential diagnoses to rule out:", "diagnoses"),
        ("Diagnoses that were ruled out", "excluded"),
        ("Findings in favour of the diagnosis", "other"),
        ("Based on these symptoms, the most likely causes are:", "diagnoses"),
        ("Initial differential diagnosis", "initial diagnoses"),
        ("Other possible diagnoses", "further diagnoses"),
        ("Weiteres Vorgehen", "other"),
        ("Diagnósticos descartados", "excluded"),
        ("Examens complémentaires", "other"),
        ("鉴别诊断", "diagnoses"),
        ("诊断依据", "other"),
        ("Marfan syndrome", ""),
    ],
)
def test_a_heading_says_what_its_list_is_of(heading, subject):
    assert subject_of(heading).value == subject


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("1. Gout\n2. Gout\n3. Lupus", {"Gout": 1, "Lupus": 2}),
        (
            "1. Gout\n2. GOUT\n4. Lupus\n5. gout\n6. Scurvy",
            {"Gout": 1, "Lupus": 3, "Scurvy": 4},
        ),
        ("1. Gout\n3. Lupus", {"Gout": 1, "Lupus": 3}),
        ("1. Gout\n1. Lupus", {"Gout": 1, "Lupus": 2}),
    ],
)
def test_a_repeated_name_counts_once_and_ranks_of_the_reply_stay(text, ranks):
    assert {one["name"]: one["rank"] for one in read_list(text)[0]} == ranks


@pytest.mark.parametrize(
    "text",
    [
        "The story is unclear.\n- Sarcoidosis in the family",
        "A. Smith wrote this note.",
        "I. The patient is stable and tired",
        "3 months of fever",
    ],
)
def test_one_mark_alone_is_no_list(text):
    assert read_list(text)[0] is None


_DECLINES = "I'm sorry, but I can't provide a diagnosis"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"{_DECLINES}. Words for your doctor:\n1. Fever\n2. Night sweats\n3. Thirst", None),
        (f"{_DECLINES}. Words for your doctor:\n- Fever\n- Night sweats\n- Thirst", None),
        (f"{_DECLINES}, but this may be:\n1. Gout\n2. Lupus", ["Gout", "Lupus"]),
        (f"{_DECLINES}. Possible diagnoses:\n1. Gout\n2. Lupus", ["Gout", "Lupus"]),
        (f"1. Gout\n2. Lupus\n\n{_DECLINES} for sure.", ["Gout", "Lupus"]),
    ],
)
def test_a_list_behind_a_refusal_is_advice_unless_the_reply_turns_to_an_answer(text, names):
    listed, _ = read_list(text)
    assert (listed and [one["name"] for one in listed]) == names
