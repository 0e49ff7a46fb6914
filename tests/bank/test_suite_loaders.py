"""Loaders of the suite's sets: their documented layouts, what they refuse, and what they know of
real data.
"""

import json

import pytest

from medassay.bank.catalog import BANKS
from medassay.bank.loaders.prescriptions import DURATIONS
from medassay.bank.loaders.radiology import split_report
from medassay.errors import InputError


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "file", "row", "question", "reference"),
    [
        (
            "careqa_open",
            "CareQA_en_open.json",
            {"question": "Which gene?", "answer": "HFE", "exam_id": "1", "year": 2021},
            "Which gene?",
            "HFE",
        ),
        (
            "meddialog_raw",
            "train.json",
            {
                "description": "My knee.",
                "utterances": {"utterance": ["patient: …", "doctor: Rest."]},
            },
            "My knee.",
            "doctor: Rest.",
        ),
        (
            "meddialog_qsumm",
            "icliniq_test.jsonl",
            {"id": 4, "src": "A long question", "tgt": "Short?"},
            "A long question",
            "Short?",
        ),
        (
            "medtext",
            "train.jsonl",
            {"Prompt": "A 50-year-old man …", "Completion": "Gout."},
            "A 50-year-old man …",
            "Gout.",
        ),
        (
            "mimic_repsum",
            "test.jsonl",
            {"extractive_notes_summ": "FINDINGS: Clear lungs.     IMPRESSION: No pneumonia.     X"},
            "FINDINGS: Clear lungs.",
            "IMPRESSION: No pneumonia.",
        ),
    ],
)
def test_open_sets_by_their_documented_fields(tmp_path, name, file, row, question, reference):
    lines(tmp_path / file, [row])
    [item] = BANKS[name].load(tmp_path).items
    assert (item.form, item.question, item.reference) == ("text", question, reference)


def test_an_empty_question_or_reference_is_counted_and_never_replaced(tmp_path):
    rows = [{"question": " ", "answer": "a"}, {"question": "Q", "answer": ""}]
    lines(tmp_path / "CareQA_en_open.json", [*rows, {"question": "Q", "answer": "a"}])
    assert BANKS["careqa_open"].load(tmp_path).dropped == {
        "empty question": 1,
        "no reference": 1,
    }


def test_a_dialogue_without_a_reply_is_counted(tmp_path):
    rows = [
        {"description": "d", "utterances": {"utterance": turns}} for turns in (["p"], ["p", "d"])
    ]
    lines(tmp_path / "train.json", rows)
    assert BANKS["meddialog_raw"].load(tmp_path).dropped == {"no reply of a doctor": 1}


def test_other_columns_are_refused_with_those_expected(tmp_path):
    lines(tmp_path / "CareQA_en_open.json", [{"frage": "x"}])
    with pytest.raises(InputError, match=r"expected \{answer, question\}"):
        BANKS["careqa_open"].load(tmp_path)


def test_credentialed_data_is_refused_with_how_to_get_it(tmp_path):
    with pytest.raises(InputError, match=r"credentialed users.*bank openi, which is free"):
        BANKS["mimic_repsum"].load(tmp_path)


def test_credentialed_data_may_not_leave(tmp_path):
    note = "FINDINGS: Clear lungs.     IMPRESSION: No pneumonia."
    lines(tmp_path / "test.jsonl", [{"extractive_notes_summ": note}])
    bank = BANKS["mimic_repsum"].load(tmp_path)
    assert bank.may_leave is False
    assert bank.card["may_leave"] is False


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("no headings at all", ("", "")),
        ("Clear.     IMPRESSION: Well.", ("Clear.", "IMPRESSION: Well.")),
        (
            "IMPRESSION: Well.     FINDINGS: Clear.     Dr.",
            ("FINDINGS: Clear.", "IMPRESSION: Well."),
        ),
        (
            "FINDINGS: Opacity.\nIMPRESSION: Pneumonia.",
            ("FINDINGS: Opacity.", "IMPRESSION: Pneumonia."),
        ),
    ],
)
def test_a_note_is_split_into_findings_and_impression(note, expected):
    assert split_report(note) == expected


def prescription(complaint, *medicines):
    return {
        "results": repr(
            {
                "procedure": {"chief_complaints_diagnosis": complaint},
                "medicine_details": [
                    {"medicine_name": n, "medicine_frequency": f, "course_duration": d}
                    for n, f, d in medicines
                ],
            }
        )
    }


PRESCRIPTIONS = [
    prescription("fever", ("Paracetamol", "TDS", "3 days"), ("Zinc", "OD", "10 days")),
    prescription("cough", ("Ambroxol", "BD", "5 days"), ("Salbutamol", "SOS", "NA")),
    prescription("gout", ("Allopurinol", "OD", "1 month")),
    prescription("NA", ("Ibuprofen", "OD", "1 month")),
    prescription("pain"),
    {"results": "__import__('os').system('false')"},
]


@pytest.mark.parametrize("name", ["med_prescriptions_easy", "med_prescriptions_hard"])
def test_prescriptions_draw_their_wrong_options_once(tmp_path, name):
    path = lines(tmp_path / "train.jsonl", PRESCRIPTIONS)
    first, again = (BANKS[name].load(path) for _ in range(2))
    assert first.content_hash == again.content_hash
    assert first.dropped == {"no complaint": 2, "no medicine": 1}
    for item in first.items:
        assert len(set(item.options)) == 4
        assert "na" not in item.target_text.split(", ")


def test_hard_prescriptions_are_the_same_medicines_taken_otherwise(tmp_path):
    bank = BANKS["med_prescriptions_hard"].load(lines(tmp_path / "train.jsonl", PRESCRIPTIONS))
    item = next(i for i in bank.items if "fever" in i.question)
    right = item.options[item.letters.index(item.target.expected)]
    wrong = [option for option in item.options if option != right]
    assert not {"Paracetamol, tds, 3 days", "Zinc, od, 10 days"} & set(wrong)
    assert {option.partition(",")[0] for option in wrong} <= {"Paracetamol", "Zinc"}
    assert all(option.rpartition(", ")[2] in DURATIONS for option in wrong)


def test_a_train_file_of_abstracts_gives_its_first_tenth_with_a_warning(tmp_path):
    rows = "".join(f'{n % 5 + 1},"Text {n}"\n' for n in range(40))
    (tmp_path / "medical_tc_train.csv").write_text("condition_label,medical_abstract\n" + rows)
    bank = BANKS["medical_abstracts"].load(tmp_path)
    assert len(bank.items) == 4
    assert "train split" in bank.limits


def test_the_hub_file_of_olaph_gives_its_first_tenth(tmp_path):
    row = {"Free_form_answer": "A long enough answer.", "Must_have": ["m"], "Nice_to_have": []}
    lines(tmp_path / "test.jsonl", [{"Question": f"Q{n}", **row} for n in range(30)])
    assert len(BANKS["olaph"].load(tmp_path).items) == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><x/>", "document type"),
        ("<x", "not readable as XML"),
        ("<x/>", "no element 'Question'"),
    ],
)
def test_hostile_or_other_xml_is_refused(tmp_path, text, says):
    (tmp_path / "test.xml").write_text(text)
    with pytest.raises(InputError, match=says):
        BANKS["mediqa_qa2019"].load(tmp_path)


def test_a_line_that_is_no_pubtator_is_named(tmp_path):
    (tmp_path / "Test.PubTator").write_text("1|t|A title\n1|a|A text\n1\tonly\tthree\n")
    with pytest.raises(InputError, match="row 3"):
        BANKS["biored"].load(tmp_path)


@pytest.mark.real_data
def test_known_facts_of_the_real_files(data):
    biored = BANKS["biored"].load(data / "biored")
    keys = [item.options[item.letters.index(item.target.expected)] for item in biored.items]
    counts = {name: keys.count(name) for name in ("Association", "Positive Correlation")}
    assert counts == {"Association": 635, "Positive Correlation": 325}
    abstracts = BANKS["medical_abstracts"].load(data / "medical_abstracts")
    assert sum(item.target.expected == "E" for item in abstracts.items) == 961
    assert len(abstracts.items) - len({item.cluster for item in abstracts.items}) >= 118
    mtsamples = BANKS["mtsamples"].load(data / "mtsamples")
    assert {len(item.options) for item in mtsamples.items} == {40}
    olaph = BANKS["olaph"].load(data / "olaph_medlfqa")
    assert all(item.form == "open" and item.reference and item.target.facts for item in olaph.items)
    assert any(item.nice_to_have for item in olaph.items)
    assert sum(i.split == "test" for i in BANKS["aci_bench"].load(data / "aci_bench").items) == 100
    mediqa = BANKS["mediqa_qa2019"].load(data / "mediqa2019_qa")
    assert "graded 17 of 75" in mediqa.limits
