import csv
import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.core.records.diagnosis import plain_name
from medassay.kinds.diagnoses.parser import read_diagnoses, read_list
from medassay.kinds.diagnoses.ranked_list import MOST


def names(text):
    listed, _ = read_list(text)
    return None if listed is None else {one["rank"]: one["name"] for one in listed}


FORMS = {
    '{"diagnoses": [{"rank": 1, "name": "Gout"}, {"rank": 2, "name": "Lupus"}]}': {
        1: "Gout",
        2: "Lupus",
    },
    '```json\n{"diagnoses": ["Gout", "Lupus"]}\n```': {1: "Gout", 2: "Lupus"},
    '{"diagnoses": ["Gout", "  ", "Lupus"]}': {
        1: "Gout",
        2: "Lupus",
    },  # blank names are dropped first
    '{"diagnoses": [{"rank": 2, "name": "Lupus"}, {"rank": 4, "name": "Gout"}]}': {
        2: "Lupus",
        4: "Gout",
    },
    '{"diagnoses": [{"rank": 1, "name": "Gout"}, {"rank": 1, "name": "Lupus"}]}': {
        1: "Gout",
        2: "Lupus",
    },
    '{"diagnoses": [{"rank": 1, "name": "Gout"}, {"rank": 2, "name": "Lup': {1: "Gout"},
    '{"differential_diagnosis": [{"diagnosis": "Gout"}]}': {1: "Gout"},
    '[{"rank": 1, "name": "Gout"}]': {1: "Gout"},
    '{"diagnoses": "gout"}': {1: "gout"},
    '["Gout", "Lupus"]': {1: "Gout", 2: "Lupus"},
    'First {"diagnoses": ["Sepsis"]}, then {"diagnoses": ["Gout"]}': {1: "Gout"},
    '{"diagnoses": []}': {},
    '<think>{"diagnoses": ["Sepsis"]}</think>{"diagnoses": ["Gout"]}': {1: "Gout"},
    "+1. Gout: swollen joints\nIn common: pain\n\n+2. Lupus (SLE): a rash": {
        1: "Gout",
        2: "Lupus (SLE)",
    },
    "+1 Gout:\n+2 Lupus:": {1: "Gout", 2: "Lupus"},
    "\\n\\n+1. Gout:\ntext\n\\n\\n+2. Lupus: text": {1: "Gout", 2: "Lupus"},
    "1. +Gout: text\n2. +Lupus: text": {1: "Gout", 2: "Lupus"},
    "1. \\n\\n+Gout: text\n2. \\n\\n+Lupus: text": {1: "Gout", 2: "Lupus"},
    "+1. **Gout:** text\n+2.  **Lupus**: text": {1: "Gout", 2: "Lupus"},
    "'+1 Gout:\ntext\n'+2' Lupus:": {1: "Gout", 2: "Lupus"},
    "'+1 Gout (podagra):'\n'+2 Lupus (SLE)':": {1: "Gout (podagra)", 2: "Lupus (SLE)"},
    "**1. Gout** - joints\n**2. Lupus** - skin": {1: "Gout", 2: "Lupus"},
    "### 1. Gout\ntext\n### 2. Lupus": {1: "Gout", 2: "Lupus"},
    "1) Gout – joints\n2) Non-alcoholic fatty liver disease": {
        1: "Gout",
        2: "Non-alcoholic fatty liver disease",
    },
    "+Gout: joints\n+Lupus: skin": {1: "Gout", 2: "Lupus"},
    "Causes:\n1. fever\n\n+1. Gout: x\n+3. Lupus: y": {1: "Gout", 3: "Lupus"},
    "1. Gout\n2. Lupus\n\nTests:\n1. Urate\n2. ANA": {1: "Gout", 2: "Lupus"},
    'Symptoms ["fever", "rash"]\n1. Gout': {1: "Gout"},
    "Findings:\n1. Fever\n2. Rash\n\nDifferential diagnosis:\n1. Measles\n2. Rubella": {
        1: "Measles",
        2: "Rubella",
    },
    "(1) Gout\n(2) Lupus": {1: "Gout", 2: "Lupus"},
    "#1 Gout\n#2 Lupus": {1: "Gout", 2: "Lupus"},
    "1 - Gout\n2 - Lupus": {1: "Gout", 2: "Lupus"},
    "0. Gout\n1. Lupus": {1: "Gout", 2: "Lupus"},
    '{"diagnoses": ["X"]} {"diagnoses": ["Y"]} {"diagnoses": ["X"]}': {1: "X"},
    '{"diagnoses": ["Gout"]}\nForm: {"diagnoses": [{"rank": 1, "name": "…"}]}': {1: "Gout"},
}


@pytest.mark.parametrize("text", FORMS)
def test_every_form_of_list_is_read(text):
    assert names(text) == FORMS[text]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "I think of gout.",
        "1.5 mg of colchicine",
        "{",
        "10 days ago",
    ],
)
def test_what_holds_no_list_has_none(text):
    assert names(text) is None


@pytest.mark.parametrize("text", ["<diagnosis_output>[]</diagnosis_output>", '{"diagnoses": []}'])
def test_an_empty_list_is_an_answer(text):
    assert names(text) == {}


@given(st.text(alphabet=st.sampled_from(list("+1.2)*\"{}[]:, \n\\abG-_#'<>/")), max_size=300))
def test_never_raises_and_ranks_are_distinct_from_1(text):
    reading = read_diagnoses(None, None, text, "standard")
    value, reason = reading.value, reading.reason
    assert reason
    if value is not None:
        ranks = [one["rank"] for one in json.loads(value)]
        assert len(set(ranks)) == len(ranks) <= MOST
        assert all(rank >= 1 for rank in ranks)
        assert all(one["name"].strip() == one["name"] != "" for one in json.loads(value))


@given(st.text(max_size=200))
def test_any_text_is_read_or_not_without_an_error(text):
    reading = read_diagnoses(None, None, text, "standard")
    value, reason = reading.value, reading.reason
    assert reason
    assert value is None or json.loads(value)


@given(st.lists(st.from_regex(r"[A-Z][a-z]{2,9}( [a-z]{2,9})?", fullmatch=True), max_size=8))
def test_names_in_json_come_back_in_order(given_names):
    value = read_diagnoses(None, None, json.dumps({"diagnoses": given_names}), "standard").value
    distinct = {plain_name(name): name for name in reversed(given_names)}
    kept = [name for name in dict.fromkeys(given_names) if distinct[plain_name(name)] == name]
    assert [one["name"] for one in json.loads(value)] == kept


def outputs(data):
    folder = data / "kernel29_pumch_adm"
    for file in sorted(folder.glob("diagnoses_*.csv")):
        with file.open(newline="", encoding="utf-8") as rows:
            yield file.stem, [row["Diagnosis 1"] for row in csv.DictReader(rows)]


def test_the_raw_outputs_of_ten_models(data):
    """Every reply is read; 22 rows hold the word ERROR and no reply at all, all of one model."""
    unread, failed, n = [], Counter(), 0
    for name, replies in outputs(data):
        n += len(replies)
        for row, reply in enumerate(replies):
            if reply == "ERROR":
                failed[name] += 1
            elif not names(reply):
                unread.append((name, row))
    assert n == 750
    assert failed == {"diagnoses_PUMCH_ADM_llama3_70b": 22}
    assert unread == []


def test_the_lists_that_the_authors_read_themselves(data):
    folder = data / "kernel29_pumch_adm"
    with (folder / "judged" / "patient_id_to_csv_row.csv").open(newline="") as file:
        row_of = {row["patient_id"]: int(row["csv_row"]) for row in csv.DictReader(file)}
    wanted = {}
    with (folder / "judged" / "judge_labels.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            listed = wanted.setdefault(row["patient_id"], {})
            listed[int(row["rank"])] = row["differential_diagnosis"]
    replies = dict(outputs(data))["diagnoses_PUMCH_ADM_c3opus"]
    assert len(wanted) == 74
    for patient, listed in wanted.items():
        assert names(replies[row_of[patient]]) == listed
