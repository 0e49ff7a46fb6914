import json

import pytest

from medassay.bank import bank_records, load_bank, write_bank
from medassay.bank.catalog import BANKS
from medassay.bank.loaders.healthbranches import read_options
from medassay.core.canonical import content_hash
from medassay.errors import InputError

REAL = {
    "aci_bench": ("aci_bench", 165, {}),
    "biored": ("biored", 1163, {}),
    "healthbranches_open": ("healthbranches", 364, {"no reference": 36}),
    "medical_abstracts": ("medical_abstracts", 2888, {}),
    "mediqa_qa2019": ("mediqa2019_qa", 75, {}),
    "mediqa_qa2019_best": ("mediqa2019_qa", 75, {}),
    "meqsum": ("meqsum", 1000, {}),
    "mts_dialog": ("mts_dialog", 902, {}),
    "mtsamples": ("mtsamples", 248, {}),
    "olaph": (
        "olaph_medlfqa",
        294,
        {"reference of fewer than 10 characters": 3, "question occurs twice": 3},
    ),
    "openi": ("openi_radiology", 343, {}),
    "headqa_en": ("head_qa", 2675, {"needs a picture": 67}),
    "headqa_es": ("head_qa", 2675, {"needs a picture": 67}),
    "grascco": ("grascco", 63, {}),
    "healthbench": ("healthbench_sample", 100, {}),
    "healthbranches": ("healthbranches", 400, {}),
    "medcalc": ("medcalc_bench", 306, {"answer is a date": 12, "limits are no numbers": 6}),
    "medmcqa": ("medmcqa", 2816, {}),
    "medqa": ("medqa", 955, {}),
    "mmlu_medical": ("mmlu_medical", 1119, {}),
    "pubmedqa": ("pubmedqa", 750, {}),
    "rarebench_hms": ("rarebench", 87, {"no disease with a name": 1}),
    "rarebench_pumch_adm": ("rarebench", 75, {}),
    "rarebench_ramedis": ("rarebench", 566, {"exact repeat": 58}),
    "slm_extraction": ("slm_extraction", 1, {}),
}


def test_every_set_verified_on_data_is_verified_here():
    assert {n for n, e in BANKS.items() if e.checked == "verified on data"} == set(REAL)


@pytest.mark.real_data
@pytest.mark.parametrize("name", REAL)
def test_the_real_files_load_with_counts_kept_and_dropped(name, data, tmp_path):
    folder, kept, dropped = REAL[name]
    bank = BANKS[name].load(data / folder)
    assert (bank.kept, bank.dropped) == (kept, dropped)
    assert len({item.id for item in bank.items}) == kept
    assert all(item.target for item in bank.items if item.form != "report")
    assert bank.content_hash == content_hash(record for _, record in bank_records(bank))
    write_bank(tmp_path / "b", bank.card, (record for _, record in bank_records(bank)))
    assert load_bank(tmp_path / "b").content_hash == bank.content_hash


@pytest.mark.real_data
def test_known_facts_of_the_real_files_hold(data):
    medqa = BANKS["medqa"].load(data / "medqa")
    first = json.loads((data / "medqa" / "test.jsonl").read_text(encoding="utf-8").splitlines()[0])
    item = next(i for i in medqa.items if i.id == f"medqa-{first['realidx']}")
    assert item.options[item.letters.index(item.target.expected)] == first["answer"]
    mmlu = BANKS["mmlu_medical"].load(data / "mmlu_medical")
    assert sum(i.split == "test" for i in mmlu.items) == 1089
    lettered = BANKS["mmlu_medical"].load(data / "mmlu_medical" / "test_all_medagents.jsonl")
    assert len(lettered.items) == 1089
    pubmed = BANKS["pubmedqa"].load(data / "pubmedqa")
    assert sum(i.split == "test" for i in pubmed.items) == 373
    assert all(
        i.target.lo <= i.target.hi for i in BANKS["medcalc"].load(data / "medcalc_bench").items
    )


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


CAREQA = {
    "exam_id": "e",
    "question": "Q?",
    "op1": "a",
    "op2": "b",
    "op3": "c",
    "op4": "d",
    "cop": 3,
    "year": 2021,
    "category": "Medicine",
    "unique_id": "u1",
}


@pytest.mark.parametrize("language", ["en", "es"])
def test_careqa_by_its_documented_fields(tmp_path, language):
    path = lines(
        tmp_path / f"CareQA_{language}.json",
        [
            CAREQA,
            {**CAREQA, "unique_id": "u2", "question": " "},
            {**CAREQA, "unique_id": "u3", "cop": 9},
        ],
    )
    bank = BANKS[f"careqa_{language}"].load(path)
    assert bank.items[0].target.expected == "C"
    assert (bank.items[0].language, bank.items[0].year, bank.items[0].domain) == (
        language,
        2021,
        "Medicine",
    )
    assert bank.dropped == {"empty question": 1, "no valid key": 1}


def test_options_go_by_their_letters_in_whatever_order_a_file_has_them(tmp_path):
    row = {"question": "Q?", "options": dict(zip("BADC", "badc", strict=True)), "answer_idx": "B"}
    [item] = BANKS["medqa"].load(lines(tmp_path / "test.jsonl", [row])).items
    assert (item.options, item.target.expected) == (("a", "b", "c", "d"), "B")
    row["options"] = {"A": "a", "C": "c"}
    with pytest.raises(InputError, match="record 1: options A, C; expected A, B"):
        BANKS["medqa"].load(lines(tmp_path / "test.jsonl", [row]))


def test_medqa_of_the_hub_layout(tmp_path):
    row = {
        "id": "7",
        "sent1": "Q?",
        "sent2": "",
        "ending0": "a",
        "ending1": "b",
        "ending2": "c",
        "ending3": "d",
        "label": 1,
    }
    assert (
        BANKS["medqa"].load(lines(tmp_path / "test.jsonl", [row])).items[0].target.expected == "B"
    )


@pytest.mark.parametrize(("first", "keys"), [(1, [1, 4]), (0, [0, 3])])
def test_medmcqa_finds_out_where_its_counting_starts(tmp_path, first, keys):
    rows = [
        {
            "id": f"i{k}",
            "question": "Q?",
            "opa": "a",
            "opb": "b",
            "opc": "c",
            "opd": "d",
            "cop": k,
            "choice_type": "single",
        }
        for k in keys
    ]
    bank = BANKS["medmcqa"].load(lines(tmp_path / "dev.json", rows))
    assert [i.target.expected for i in bank.items] == ["A", "D"]


def test_medmcqa_refuses_when_the_counting_cannot_be_known(tmp_path):
    rows = [{"id": "1", "question": "Q?", "opa": "a", "opb": "b", "opc": "c", "opd": "d", "cop": 2}]
    with pytest.raises(InputError, match="cop"):
        BANKS["medmcqa"].load(lines(tmp_path / "dev.json", rows))


def test_original_mmlu_without_a_header(tmp_path):
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "anatomy_test.csv").write_text('"Q, one?",a,b,c,d,C\n')
    assert BANKS["mmlu_medical"].load(tmp_path).items[0].target.expected == "C"


@pytest.mark.parametrize("name", sorted(n for n, e in BANKS.items() if e.checked != "shipped"))
def test_a_wrong_folder_or_file_is_one_clear_line(name, tmp_path):
    with pytest.raises(InputError):
        BANKS[name].load(tmp_path / "nowhere")
    with pytest.raises(InputError):
        BANKS[name].load(tmp_path)
    for suffix in ("json", "jsonl", "csv"):
        (tmp_path / f"wrong.{suffix}").write_text(
            '[{"colour": "red"}]' if suffix != "csv" else "colour\nred\n"
        )
        with pytest.raises(InputError):
            BANKS[name].load(tmp_path / f"wrong.{suffix}")


WRONG_VALUES = {
    "medqa": ({"question": "Q?", "options": ["a", "b"], "answer_idx": "A"}, r"\$\.options"),
    "medmcqa": (
        {"question": ["Q?"], "opa": "a", "opb": "b", "opc": "c", "opd": "d", "cop": 1},
        r"\$\.question",
    ),
    "healthbench": (
        {"prompt": [{"role": "user", "content": 5}], "prompt_id": "p", "rubrics": []}
        | {"example_tags": []},
        r"\$\.prompt\[0\]\.content",
    ),
    "olaph": (
        {"Question": "Q?", "Free_form_answer": "A", "Must_have": "none", "Nice_to_have": []},
        r"\$\.Must_have",
    ),
}


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_a_value_of_a_wrong_type_is_told_with_its_record_and_column(name, tmp_path):
    row, column = WRONG_VALUES[name]
    path = lines(tmp_path / "MedLFQA_test.jsonl", [row])
    with pytest.raises(InputError, match=rf"MedLFQA_test.jsonl record 1: Expected .*{column}"):
        BANKS[name].load(path)


def test_options_with_unescaped_apostrophes_are_recovered():
    assert read_options("['a', 'the patient's history', \"b, c\"]") == [
        "a",
        "the patient's history",
        "b, c",
    ]
    assert read_options("") == []
