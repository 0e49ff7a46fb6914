"""The bank of clinical reports: records that hold to the reports they come from, and refusals."""

import json
from collections import Counter

import pytest
from tests import makers

from medassay.bank.folder import bank_record, load_bank
from medassay.bank.loaders import demo
from medassay.bank.serialize import item_record
from medassay.core.records.health_record import record_from
from medassay.errors import InputError

BANK = demo.load(demo.SHIPPED / "health_record_de")


def test_fifteen_german_reports_five_of_them_in_english_too():
    assert Counter(item.language for item in BANK.items) == {"de": 15, "en": 5}
    german = {item.cluster for item in BANK.items if item.language == "de"}
    assert len(german) == 15
    assert {item.cluster for item in BANK.items} == german
    assert {item.target.origin.standing for item in BANK.items} == {"gold"}


@pytest.mark.parametrize("item", BANK.items, ids=lambda item: item.id)
def test_what_a_record_quotes_stands_in_its_report(item):
    record, report = record_from(item.target.record), item.question.casefold()
    quoted = [m.value for m in record.relevant_metrics]
    quoted += [m.unit for m in record.relevant_metrics if m.unit]
    for drugs in (
        record.medications.current,
        record.medications.advised,
        record.medications.discontinued,
    ):
        quoted += [drug.name for drug in drugs] + [drug.dose for drug in drugs if drug.dose]
    assert not [text for text in quoted if text.casefold() not in report]


def test_it_holds_what_the_study_is_about():
    records = [item.target.record for item in BANK.items if item.language == "de"]
    lists = [r["medications"] for r in records]
    assert all(any(one[name] for one in lists) for name in lists[0])
    assert any(not one["current"] for one in lists)
    assert any(not one["discontinued"] for one in lists)
    changed = [
        {d["name"] for d in one["advised"]} & {d["name"] for d in one["discontinued"]}
        for one in lists
    ]
    assert sum(map(bool, changed)) >= 3
    assert any(r["date_and_source"]["date"] is None for r in records)
    text = json.dumps(records, ensure_ascii=False)
    for mark in ("ü", "0,9", "1-0-1", "b. B.", "Z. n."):
        assert mark in text, mark


def test_an_item_and_its_record_are_the_same():
    for position, item in enumerate(BANK.items):
        stored = bank_record(BANK, position)
        stored.pop("approval")
        assert {"language": "en", **item_record(item)} == stored


def report(**more):
    return {
        "id": "r1",
        "domain": "law",
        "answer_type": "open",
        "question": "Bericht",
        "source": "test",
        "record": BANK.items[0].target.record,
        "origin": {"standing": "gold", "maker": "us"},
        **more,
    }


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"record": {}}, "field 'record': categories: Field required"),
        ({"origin": {}}, "field 'origin': standing: Field required"),
        ({"record": None}, "field 'origin': of no record"),
        ({"answer_type": "closed"}, "field 'record': in a closed item"),
        ({"facts": ["a"]}, "beside record"),
    ],
)
def test_a_wrong_record_is_refused_by_field(tmp_path, change, says):
    folder = makers.write_bank(tmp_path / "bank", [report(**change)])
    with pytest.raises(InputError, match=f"items.jsonl row 1: .*{says}"):
        load_bank(folder, lock=None)


def test_an_origin_is_needed(tmp_path):
    item = report()
    del item["origin"]
    with pytest.raises(InputError, match="who made the record"):
        load_bank(makers.write_bank(tmp_path / "bank", [item]), lock=None)


def test_a_report_without_a_record_is_a_report(tmp_path):
    item = report(record=None)
    del item["origin"]
    bank = load_bank(makers.write_bank(tmp_path / "bank", [item]), lock=None)
    assert bank.items[0].form == "report"
