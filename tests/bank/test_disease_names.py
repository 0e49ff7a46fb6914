import json

import pytest

from medassay.bank.disease_names import load_disease_names, split_names
from medassay.errors import InputError

RAREBENCH = {
    "OMIM:1": "Gout/Podagra",
    "ORPHA:2": "多系统萎缩/Register name; MSA/Multiple system atrophy",
}
SYNONYMS = {"CCRD:1": ["Gout", "Podagra; arthritis urica"]}
ORPHANET = {
    "JDBOR": [
        {
            "DisorderList": [
                {
                    "Disorder": [
                        {
                            "OrphaCode": "905",
                            "Name": [{"lang": "en", "label": "Wilson disease"}],
                            "SynonymList": [
                                {"Synonym": [{"label": "Hepatolenticular degeneration"}]}
                            ],
                        }
                    ]
                }
            ]
        }
    ]
}
MONDO = {
    "graphs": [
        {
            "nodes": [
                {
                    "id": "http://purl.obolibrary.org/obo/MONDO_0010200",
                    "lbl": "Wilson disease",
                    "meta": {
                        "synonyms": [
                            {"pred": "hasExactSynonym", "val": "hepatolenticular degeneration"},
                            {"pred": "hasBroadSynonym", "val": "copper storage disease"},
                        ]
                    },
                },
                {"id": "x", "lbl": "obsolete gout", "meta": {"deprecated": True}},
                {"id": "y"},
            ]
        }
    ]
}


def write(folder, document):
    path = folder / "names.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("document", "form", "names"),
    [
        (RAREBENCH, "rarebench", ("Gout", "Podagra")),
        (SYNONYMS, "rarebench", ("Gout", "Podagra", "arthritis urica")),
        (ORPHANET, "orphanet", ("Wilson disease", "Hepatolenticular degeneration")),
        (MONDO, "mondo", ("Wilson disease", "hepatolenticular degeneration")),
    ],
)
def test_every_form_is_known_by_its_content(tmp_path, document, form, names):
    loaded = load_disease_names(write(tmp_path, document))
    assert loaded.form == form
    assert next(iter(loaded.names.values())) == names
    assert loaded.file == "names.json"


def test_the_usual_name_comes_first():
    assert split_names(RAREBENCH["ORPHA:2"]) == [
        "Multiple system atrophy",
        "Register name",
        "MSA",
        "多系统萎缩",
    ]
    assert split_names("瓜氨酸血症/Citrullinemia") == ["Citrullinemia", "瓜氨酸血症"]


def test_synonyms_are_of_the_entries_that_have_one_of_the_names(tmp_path):
    loaded = load_disease_names(write(tmp_path, RAREBENCH))
    found = loaded.synonyms(["PODAGRA", "Unknown", "MSA"])
    assert found["podagra"] == ["Gout", "Podagra"]
    assert found["unknown"] == []
    assert "Multiple system atrophy" in found["msa"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "Familial/Idiopathic dilated cardiomyopathy",
            ["Familial/Idiopathic dilated cardiomyopathy"],
        ),
        ("Ectodermal dysplasia 10B, hypohidrotic/hair/tooth type", None),
        (
            "Muscular dystrophy (Duchenne/Becker type)/Duchenne",
            ["Muscular dystrophy (Duchenne/Becker type)", "Duchenne"],
        ),
        (
            "Citrullinemia type I/Citrullinemia, classic",
            ["Citrullinemia type I", "Citrullinemia, classic"],
        ),
    ],
)
def test_a_slash_within_a_name_does_not_split_it(text, names):
    assert split_names(text) == (names or [text])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "no disease names"),
        ("[1]", "no disease names"),
        ('{"a": 1}', "no disease names"),
        ('{"a": [1]}', "no disease names"),
        ("{", "not valid JSON"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, text, says):
    path = tmp_path / "names.json"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        load_disease_names(path)
    with pytest.raises(InputError, match="cannot be read"):
        load_disease_names(tmp_path / "absent.json")


def test_a_name_that_is_none_is_left_out(tmp_path):
    odd = json.loads(json.dumps(ORPHANET))
    disorder = odd["JDBOR"][0]["DisorderList"][0]["Disorder"][0]
    disorder["SynonymList"][0]["Synonym"].append({"label": None})
    assert "None" not in str(load_disease_names(write(tmp_path, odd)).names)


@pytest.mark.real_data
def test_the_published_mapping_names_the_golden_diagnoses(data):
    loaded = load_disease_names(data / "rarebench" / "mapping" / "disease_mapping.json")
    assert len(loaded.names) == 11150
    found = loaded.synonyms(["Wilson disease"])
    assert "Hepatolenticular degeneration" in found["wilson disease"]
