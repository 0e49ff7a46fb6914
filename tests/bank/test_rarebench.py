import ast
import csv
import json

import pytest

from medassay.bank.catalog import BANKS
from medassay.errors import InputError

NAMES = {"HP:1": "Fever", "HP:2": "Rash"}
DISEASES = {"OMIM:1": "Gout/Podagra", "ORPHA:2": "Lupus"}


def rows(*cases):
    return "".join(
        json.dumps({"Phenotype": p, "RareDisease": d, "Department": None}) + "\n" for p, d in cases
    )


def write(folder, name="MME", *cases, mapping=True):
    (folder / f"{name}.jsonl").write_text(rows(*cases))
    if mapping:
        (folder / "mapping").mkdir(exist_ok=True)
        (folder / "mapping" / "phenotype_mapping.json").write_text(json.dumps(NAMES))
        (folder / "mapping" / "disease_mapping.json").write_text(json.dumps(DISEASES))
    return folder


@pytest.mark.parametrize("name", ["mme", "lirical"])
def test_sets_that_could_not_be_had_load_by_the_form_of_the_others(tmp_path, name):
    cases = [
        (["HP:1", "HP:9", "HP:2"], ["OMIM:1", "ORPHA:2"]),
        (["HP:1"], ["OMIM:1"]),
        (["HP:1"], ["OMIM:1"]),
        (["HP:9"], ["OMIM:1"]),
        (["HP:2"], ["OMIM:9"]),
    ]
    bank = BANKS[f"rarebench_{name}"].load(write(tmp_path, name.upper(), *cases))
    assert bank.dropped == {
        "exact repeat": 1,
        "no phenotype with a name": 1,
        "no disease with a name": 1,
    }
    first = bank.items[0]
    assert first.question == "Phenotypes of the patient: Fever, Rash."
    assert first.target.diagnoses == ("Gout", "Podagra")
    assert first.rationale == "Also recorded: Lupus."  # another disease is no name of the first
    assert (first.target.severity, first.form, first.answer_type) == ("rare", "diagnoses", "open")


def test_what_is_wrong_is_told(tmp_path):
    with pytest.raises(InputError, match="no folder mapping"):
        BANKS["rarebench_mme"].load(write(tmp_path, "MME", (["HP:1"], ["OMIM:1"]), mapping=False))
    write(tmp_path, "MME", (["HP:1"], "OMIM:1"))
    with pytest.raises(InputError, match="record 1: 'RareDisease': expected a list"):
        BANKS["rarebench_mme"].load(tmp_path)


@pytest.mark.real_data
def test_golden_diagnoses_are_those_of_the_published_replies(data):
    """The order of the cases is that of the published files of replies.

    GT begins with the same disease.
    """
    bank = BANKS["rarebench_pumch_adm"].load(data / "rarebench")
    path = data / "kernel29_pumch_adm" / "diagnoses_PUMCH_ADM_c3opus.csv"
    with path.open(newline="", encoding="utf-8") as file:
        golden = [ast.literal_eval(row["GT"]) for row in csv.DictReader(file)]
    named = [(item, names) for item, names in zip(bank.items, golden, strict=True) if names]
    assert len(named) == 72
    for item, names in named:
        assert item.target.diagnoses[0] == names[0]
        for name in names[1:]:
            assert name in item.target.diagnoses or name in item.rationale


def test_cases_from_ones_own_table(tmp_path):
    from medassay.bank.table import bank_of_table, read_table

    path = tmp_path / "cases.csv"
    path.write_text("text,dx,level\nA swollen toe.,Gout|Podagra,moderate\nA rash.,Lupus,\n")
    columns = {"question": "text", "diagnoses": "dx", "severity": "level"}
    bank = bank_of_table(read_table(path, columns), name="own", licence="CC0-1.0", domain="d")
    assert [i.target.diagnoses for i in bank.items] == [("Gout", "Podagra"), ("Lupus",)]
    assert [i.target.severity for i in bank.items] == ["moderate", None]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"diagnoses": []}, "absent or empty"),
        ({"diagnoses": "Gout"}, "absent or empty"),
        ({"diagnoses": ["Gout", " "]}, "not empty"),
        ({"severity": "awful"}, "expected one of"),
        ({"facts": ["x"]}, "one of the two"),
        ({"answer_type": "closed"}, "in a closed item"),
    ],
)
def test_a_case_that_is_none_is_refused(change, says):
    from medassay.bank.check import check_record

    record = {
        "id": "c",
        "domain": "d",
        "answer_type": "open",
        "question": "q",
        "diagnoses": ["Gout"],
        "severity": "moderate",
        "source": "s",
    }
    check_record(record, "row 1", {"d"})
    with pytest.raises(InputError, match=says):
        check_record(record | change, "row 1", {"d"})
