"""Each fault of a health record moves its own number on the shipped bank by more than chance:
scripted models with one fault each.
"""

import copy
import json
import re
import unicodedata

import pytest
from tests import makers

import medassay
from medassay import pipeline
from medassay.bank.loaders import demo
from medassay.core.records.health_record import RECORD

BANK = demo.load(demo.SHIPPED / "health_record_de")
LISTS = ("current", "advised", "discontinued")
SALTS = {"Metoprolol": "Metoprololsuccinat", "Ramipril": "Ramipril-Natrium"}


def each(change):
    """Return a change of a record that changes every entry of its drugs."""

    def changed(record, item):
        for place in LISTS:
            for drug in record["medications"][place]:
                change(drug)

    return changed


def tenfold(drug):
    if drug["dose"]:
        drug["dose"] = re.sub(r"\d+", lambda m: f"{m[0]}0", drug["dose"], count=1)


def other_unit(drug):
    if drug["dose"]:
        drug["dose"] = re.sub(
            r"mg|µg|\bg\b|IE|%",
            lambda m: {"mg": "g", "µg": "mg", "g": "mg"}.get(m[0], "mg"),
            drug["dose"],
        )


def once_more(drug):
    if drug["schedule"]:
        drug["schedule"] = "4x täglich"


def otherwise(name, item, at):
    """Return a drug's name in the at-th of eight spellings."""
    others = item.target.drug_names.get(name, [name])
    return (
        name.upper(),
        f"{name} 100 mg",
        f"{name}.",
        others[0],
        unicodedata.normalize("NFD", others[0]),
        f"{name}-HCl",
        f"{name} (Tablette)",
        " ".join(f"{name} 5mg".split()),
    )[at % 8]


def goes_on(record, item):
    """List every stopped drug as current, named otherwise."""
    drugs = record["medications"]
    for at, drug in enumerate(drugs["discontinued"]):
        spelling = int(item.id[3:6]) + at
        drugs["current"].append({**drug, "name": otherwise(drug["name"], item, spelling)})
    drugs["discontinued"] = []


def invents(record, item):
    record["diagnosis"] += [f"Erfundene Diagnose {n}" for n in range(10)]


def swaps(record, item):
    """Exchange the old and the new dose of each drug whose dose was changed."""
    drugs = record["medications"]
    for old in drugs["discontinued"]:
        for new in drugs["advised"]:
            if new["name"] == old["name"]:
                old["dose"], new["dose"] = new["dose"], old["dose"]


def loses(record, item):
    record["diagnosis"] = record["diagnosis"][:1]
    record["relevant_metrics"] = record["relevant_metrics"][:1]


def other_route(drug):
    if drug["schedule"]:
        drug["schedule"] = re.sub(
            r"s\.c\.|i\.v\.|inhalativ|inhaled|lokal|bds\.|in both eyes",
            "p.o.",
            drug["schedule"],
        )


# Model → (what it does to each record, the number that tells of it).
FAULTS = {
    "tenfold": (each(tenfold), "dose"),
    "unit": (each(other_unit), "unit"),
    "schedule": (each(once_more), "schedule"),
    "route": (each(other_route), "route"),
    "stopped": (goes_on, "going_on"),
    "swapped": (swaps, "dose"),
    "invents": (invents, "invented_leaves"),
    "loses": (loses, "lost_leaves"),
    "perfect": (lambda record, item: None, ""),
}


def reply(item, change):
    record = copy.deepcopy(dict(item.target.record))
    change(record, item)
    return json.dumps({RECORD: record}, ensure_ascii=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    models = [
        makers.fake(name, replies={item.id: reply(item, change) for item in BANK.items})
        for name, (change, _) in FAULTS.items()
    ]
    models.append(makers.fake("refuses", reply="Das kann ich nicht; siehe [1]."))
    whole = {item.id: reply(item, FAULTS["perfect"][0]) for item in BANK.items}
    half = {name: text[: len(text) // 2] for name, text in whole.items()}
    models.append(makers.fake("cut", replies=half, finish="length"))
    makers.write_models(folder, *models)
    plan = makers.write_plan(
        folder,
        banks=["health_record_de"],
        models=[model["id"] for model in models],
        task="record",
        templates=["health_record_direct"],
    )
    return pipeline.run(plan, secrets={})


@pytest.fixture(scope="module")
def rows(run):
    return {row["model"]: row for row in run.statistics.document["domains"]["overall"]}


def number(row, name):
    record = row["record"]
    return record["drugs"].get(name) or record[name]


@pytest.mark.parametrize("model", [name for name in FAULTS if name != "perfect"])
def test_each_fault_moves_its_own_number_by_more_than_its_interval(rows, model):
    own = FAULTS[model][1]
    right, wrong = number(rows["perfect"], own), number(rows[model], own)
    half = max((one["hi"] - one["lo"]) / 2 for one in (right, wrong))
    moved = abs(right["score"] - wrong["score"])
    # Six doses are changed in the bank: the page says that these are too few.
    assert moved > half or (model == "swapped" and 0.1 < moved < half < 0.14)


def test_a_fault_moves_no_number_that_is_not_its_own(rows):
    for name in ("dose", "unit", "schedule", "route"):
        assert number(rows["perfect"], name)["score"] == 1
        assert number(rows["invents"], name)["score"] == 1
    assert number(rows["tenfold"], "unit")["score"] == 1
    assert number(rows["tenfold"], "schedule")["score"] == 1
    assert number(rows["tenfold"], "going_on")["score"] == 0
    assert (
        rows["tenfold"]["record"]["medication"]["score"] == 1
    )  # the published number does not see it
    assert rows["invents"]["record"]["similarity"]["score"] == 1
    assert rows["invents"]["record"]["precision"]["score"] < 0.9


def test_all_stopped_drugs_are_found_in_eight_spellings(rows):
    counted = rows["stopped"]["record"]["drugs"]["counted"]
    assert (counted["stopped"], counted["changed"]) == (18, 6)
    assert counted["as_current"] + counted["perhaps"] == 18
    assert counted["as_current"] >= 16
    assert counted["old_dose"] >= 4
    assert rows["stopped"]["record"]["counted"]["stopped_as_current"] < 6  # names as written


def test_cut_off_and_refused_replies_have_their_own_columns(rows):
    assert rows["cut"]["outcomes"]["truncated"] == 20
    assert rows["cut"]["record"]["similarity"]["score"] == 0
    assert rows["refuses"]["record"]["read"]["score"] == 0
    assert rows["perfect"]["record"]["read"]["score"] == 1


@pytest.mark.slow
def test_pages_name_what_is_wrong_and_the_board_verifies(run, tmp_path, cli):
    page = medassay.publish(run, tmp_path / "site").parent
    assert medassay.verify(tmp_path / "site").ok
    shown = (page / "record/index.html").read_text()
    assert "Too few in these reports to show an error: changed dose (6)." in shown
    for heading in (
        "Lost and invented",
        "Dose, unit, route and schedule",
        "Share that goes on",
    ):
        assert heading in shown
    assert "of 18 matched" in shown
    cell = next((page / "cell/tenfold").rglob("index.html")).read_text()
    assert "Ramipril, discontinued: dose “50 mg” for “5 mg”" in cell
    table = (page / "data/records.csv").read_text()
    for name in ("precision", "invented_leaves", "dose of drugs", "going_on of drugs"):
        assert name in table
    printed = " ".join(cli("report", run.path)[1].split())
    assert "leaves lost and invented" in printed
