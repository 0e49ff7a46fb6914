import copy
import json
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers

from medassay.bank import bank_records, item_record, load_bank, write_bank
from medassay.bank.check import build_item, check_record
from medassay.core.wording import is_blank
from medassay.errors import InputError

GOOD = {
    "id": "x",
    "domain": "law",
    "question": "Q?",
    "options": ["a", "b"],
    "expected": "A",
    "source": "s",
}


def criteria(*listed):
    """Return the change that makes an open item with criteria of `GOOD`."""
    return {"answer_type": "open", "criteria": list(listed)}


def bank_with(tmp_path, *items):
    return makers.write_bank(tmp_path / "nephro", items)


def open_item(**more):
    facts = [{"id": "f1", "text": "a"}]
    return {"answer_type": "open", "facts": facts, **more}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"expected": "F"}, "target 'F' is not among options A–B"),
        ({"options": ["a"]}, "1 options; expected 2 to 40"),
        ({"options": ["a", ""]}, "non-empty texts"),
        ({"question": " "}, "'question': absent or empty"),
        ({"domain": "tax"}, "'tax' is not among the card's domains (law)"),
        ({"kind": "secret"}, "expected one of public, synthetic"),
        ({"source": None}, "'source'"),
        ({"colour": "red"}, "field 'colour': unknown"),
        ({"options": None, "expected": None, "regex": "("}, "field 'expected'"),
        ({"year": "2020"}, "expected int"),
        ({"range": {"lo": 1, "hi": 2}}, "found options and range"),
        (
            criteria({"text": "a", "points": 0}),
            "criterion 1: points 0; expected a number above",
        ),
        (criteria({"text": "a", "points": True}), "criterion 1: points True"),
        (criteria({"text": "a", "points": -1}), "none has points above 0"),
        (criteria({"text": "a", "points": 1, "pointz": 2}), "criterion 1: 'pointz' is unknown"),
        (criteria({"text": "a"}), "criterion 1: points None"),
        (criteria({"points": 1}), "criterion 1: expected an object with a text"),
        (criteria({"text": ["a"], "points": 1}), "criterion 1: ['a'] is no text"),
        (criteria({"text": "a", "points": 1, "tags": "x"}), "criterion 1: tags 'x'"),
        (criteria(*[{"id": "c", "text": "a", "points": 1}] * 2), "two criteria share an id"),
        (criteria(), "'criteria': []; expected a list"),
        ({**criteria({"text": "a", "points": 1}), "facts": ["a"]}, "beside facts"),
        ({"criteria": [{"text": "a", "points": 1}]}, "'criteria': in a closed item"),
        ({"answer_type": "open"}, "'facts': absent"),
        ({"nice_to_have": ["a"]}, "of an item without target facts"),
        (open_item(nice_to_have=[]), "'nice_to_have': []; expected a list of non-empty texts"),
        (open_item(nice_to_have=["a", " "]), "expected a list of non-empty texts"),
        (open_item(nice_to_have="a"), "expected a list of non-empty texts"),
        (
            {
                "answer_type": "open",
                "facts": [{"id": "f", "text": "a"}, {"id": "f", "text": "b"}],
            },
            "share an id",
        ),
        ({"split": "train"}, "expected one of test, dev"),
    ],
)
def test_a_bad_item_is_refused_with_file_row_field_and_expectation(tmp_path, change, says):
    item = {**GOOD, **change}
    with pytest.raises(InputError, match=r"items\.jsonl row 2") as caught:
        load_bank(bank_with(tmp_path, {**GOOD, "id": "first"}, item))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("item", "says"),
    [
        ({"regex": "("}, "not a Python regular expression"),
        ({"regex": ""}, "fits every reply"),
        ({"regex": "a*|b"}, "fits every reply"),
        ({"regex": "(a+)+$"}, "is slow"),
        ({"range": {"lo": 5, "hi": 4}}, "lo 5 > hi 4"),
        ({"range": {"lo": "5", "hi": 4}}, "is not a number"),
        ({"range": {"lo": 1, "hi": 4}, "extract": "a"}, "0 groups; expected exactly one"),
        ({"range": {"lo": 1, "hi": 4}, "locale": "fr"}, "expected en or de"),
    ],
)
def test_bad_patterns_and_ranges_are_refused(tmp_path, item, says):
    base = {k: v for k, v in GOOD.items() if k not in ("options", "expected")}
    with pytest.raises(InputError) as caught:
        load_bank(bank_with(tmp_path, {**base, **item}))
    assert says in str(caught.value)
    assert "row 1" in str(caught.value)


@pytest.mark.parametrize("key", ["year", "domain", "kind", "split"])
def test_a_long_value_is_not_printed_whole(tmp_path, key):
    item = makers.law_items()[0] | {key: "x" * 3000}
    with pytest.raises(InputError, match=f"row 1: field '{key}'") as caught:
        load_bank(makers.write_bank(tmp_path / "bad", [item]))
    assert len(str(caught.value)) < 250


def test_duplicate_ids_are_refused_in_any_order(tmp_path):
    for ids in (["a", "b", "a"], ["a", "a"], ["b", "a", "b"]):
        with pytest.raises(InputError, match="occurs twice"):
            load_bank(bank_with(tmp_path, *({**GOOD, "id": i} for i in ids)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no items"),
        ("[1]\n", "expected a JSON object"),
        ('{"id": NaN}\n', "not valid JSON"),
        ("{\n", "not valid JSON"),
        ("[" * 100_000 + "\n", "not valid JSON"),
    ],
)
def test_broken_files_are_refused_with_the_row(tmp_path, text, says):
    folder = bank_with(tmp_path, GOOD)
    (folder / "items.jsonl").write_text(text)
    with pytest.raises(InputError, match=r"items\.jsonl") as caught:
        load_bank(folder)
    assert says in str(caught.value)


def test_invalid_utf8_is_refused(tmp_path):
    folder = bank_with(tmp_path, GOOD)
    (folder / "items.jsonl").write_bytes(b'{"id": "\xff"}\n')
    with pytest.raises(InputError, match="row 1: not valid JSON"):
        load_bank(folder)


@pytest.mark.parametrize(
    ("card", "says"),
    [
        ({"licence": ""}, "'licence': absent"),
        ({"question_bank_version": "law-1"}, "expected law-<year>.<n>"),
        ({"domains": []}, "'domains'"),
        ({"domains": ["overall"]}, "'overall' names the ranking"),
        ({"may_leave": "no"}, "'may_leave'"),
        ({"owner": "x"}, "'owner': unknown"),
    ],
)
def test_a_bad_card_is_refused(tmp_path, card, says):
    folder = makers.write_bank(tmp_path / "nephro", [GOOD], **card)
    with pytest.raises(InputError, match=r"nephro/bank\.toml") as caught:
        load_bank(folder)
    assert says in str(caught.value)


def test_an_item_changed_after_its_release_is_refused(tmp_path):
    bank = load_bank(bank_with(tmp_path, GOOD))
    folder = makers.write_bank(
        tmp_path / "nephro", [{**GOOD, "expected": "B"}], content_sha256=bank.content_hash
    )
    with pytest.raises(InputError, match="items of a released version never change"):
        load_bank(folder)
    (tmp_path / "banks.lock").write_text(json.dumps({"banks": {"law-2026.1": bank.content_hash}}))
    folder = makers.write_bank(tmp_path / "nephro", [{**GOOD, "expected": "B"}])
    with pytest.raises(InputError, match=r"banks\.lock registers"):
        load_bank(folder, lock=tmp_path / "banks.lock")


def test_the_hash_does_not_depend_on_the_order_of_rows(tmp_path):
    items = makers.law_items()
    first = load_bank(makers.write_bank(tmp_path / "a", items))
    second = load_bank(makers.write_bank(tmp_path / "b", reversed(items)))
    assert first.content_hash == second.content_hash


def test_what_is_written_is_what_is_read(tmp_path):
    bank = load_bank(makers.write_bank(tmp_path / "a", makers.law_items()))
    content = write_bank(tmp_path / "b", {**bank.card}, (r for _, r in bank_records(bank)))
    again = load_bank(tmp_path / "b")
    assert content == again.content_hash == bank.content_hash
    assert list(again.items) == list(bank.items)
    with pytest.raises(InputError, match="exists"):
        write_bank(tmp_path / "b", bank.card, [])


def test_a_refused_bank_leaves_nothing_behind(tmp_path):
    card = {
        "name": "law",
        "question_bank_version": "law-2026.1",
        "licence": "CC0-1.0",
        "domains": ["law"],
    }
    with pytest.raises(InputError):
        write_bank(tmp_path / "new", card, [{**GOOD, "expected": "Z"}])
    assert list(tmp_path.iterdir()) == []


texts = st.text(min_size=1).filter(lambda text: not is_blank(text))


@given(
    st.lists(texts, min_size=2, max_size=6),
    texts,
    st.sampled_from(["en", "de", "xx"]),
    st.data(),
)
def test_an_item_survives_the_way_to_its_record_and_back(options, question, language, data):
    key = data.draw(st.sampled_from("ABCDEF"[: len(options)]))
    record = {
        **GOOD,
        "options": options,
        "question": question,
        "language": language,
        "expected": key,
    }
    check_record(record, "here", {"law"})
    item = build_item(record)
    assert build_item(item_record(item)) == item


def test_reading_one_item_reads_that_row(tmp_path):
    bank = load_bank(makers.write_bank(tmp_path / "a", makers.law_items()))
    assert bank.items[3].id == "law-03"
    assert bank.items[-1].id == "law-09"
    assert [i.id for i in bank.items[2:4]] == ["law-02", "law-03"]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda bank: pickle.loads(pickle.dumps(bank))])
def test_a_copy_of_a_bank_reads_the_file_for_itself(tmp_path, copied):
    folder = makers.write_bank(tmp_path / "a", makers.law_items())
    bank = load_bank(folder)
    twin = copied(bank)
    assert twin.items[3] == bank.items[3]
    del twin
    # A file that takes the number of one that was closed too early would be read instead.
    with (tmp_path / "other.jsonl").open("w+b") as other:
        other.write((folder / "items.jsonl").read_bytes().replace(b"law-", b"xxx-"))
        other.flush()
        assert bank.items[3].id == "law-03"


def test_a_copy_of_a_bank_whose_file_changed_is_refused(tmp_path):
    folder = makers.write_bank(tmp_path / "a", makers.law_items())
    stored = pickle.dumps(load_bank(folder))
    (folder / "items.jsonl").write_text("\n")
    with pytest.raises(InputError, match=r"items\.jsonl: was changed since this bank was read"):
        pickle.loads(stored)
    (folder / "items.jsonl").unlink()
    with pytest.raises(InputError, match=r"items\.jsonl: No such file"):
        pickle.loads(stored)


def test_criteria_survive_the_way_to_their_record_and_back():
    given = [{"text": "a", "points": 2}, {"id": "z", "text": "b", "points": -1, "tags": ["t"]}]
    record = {**GOOD, **criteria(*given)}
    assert check_record(record, "here", {"law"}) == "rubric"
    item = build_item(record)
    assert item.target_text == "+2 a; -1 b"
    assert item.answer_type == "open"
    assert build_item(item_record(item)) == item


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"options": 5}, "field 'options': expected a list of non-empty texts"),
        ({"range": "x"}, "field 'range': 'x'; expected"),
        ({"lowest": -1}, "field 'lowest': in a bank"),
        ({"severity": "mild"}, "field 'severity': on an item of open; expected on ranked diag"),
    ],
)
def test_keys_of_other_targets_are_checked_too(change, says):
    """Exports and pages show them."""
    record = {key: value for key, value in GOOD.items() if key not in ("options", "expected")}
    record |= {"answer_type": "open", "facts": ["a fact"], **change}
    with pytest.raises(InputError, match=re.escape(says)):
        check_record(record, "here", {"law"})


def test_what_is_withheld_keeps_its_lowest_score_and_severity_on_the_way_to_its_record_and_back():
    record = {"id": "a", "domain": "law", "kind": "synthetic", "answer_type": "open"}
    record |= {"commitment": "0" * 64, "lowest": -2.0, "severity": "rare"}
    check_record(record, "here", {"law"}, of_run=True)
    item = build_item(record)
    assert item.target.lowest == -2.0
    assert build_item(item_record(item)) == item
    with pytest.raises(InputError, match="field 'lowest'"):
        check_record({**record, "lowest": -(10**400)}, "here", {"law"}, of_run=True)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("id", "q1\n", "expected one line"),
        ("id", "q\u0000", "expected one line"),
        ("question", "\u200b \u2060", "absent or empty"),
        ("options", ["a", "\u200b", "c", "d"], "option 2 has nothing that can be seen"),
    ],
)
def test_what_nobody_can_see_is_refused(tmp_path, key, value, told):
    items = [makers.law_items()[0] | {key: value}]
    with pytest.raises(InputError, match=rf"row 1: field '{key}': .*{told}"):
        load_bank(makers.write_bank(tmp_path / "bank", items))


def test_options_that_read_alike_are_told(tmp_path, cli):
    items = makers.law_items()[:3]
    items[1]["options"][:2] = ["caf\u00e9", "cafe\u0301 "]
    folder = makers.write_bank(tmp_path / "bank", items)
    code, shown, told = cli("--json", "bank", "validate", folder)
    assert (code, json.loads(shown)["twin_options"]) == (0, [items[1]["id"]])
    code, _, told = cli("bank", "validate", folder)
    assert "1 item with two options that read alike, which no answer can tell apart" in told
    assert items[1]["id"] in told


def test_a_key_that_stands_twice_in_an_item_is_refused(tmp_path):
    folder = makers.write_bank(tmp_path / "bank", makers.law_items())
    path = folder / "items.jsonl"
    text = path.read_text()
    path.write_text(text.replace('"expected": ', '"expected": "A", "expected": ', 1))
    with pytest.raises(InputError, match=r"items\.jsonl row 1: the key 'expected' stands twice"):
        load_bank(folder)


@pytest.mark.parametrize(
    ("ids", "row"),
    [
        (("q\u00e9", "qe\u0301"), 2),
        (("qe\u0301", "q\u00e9"), 2),
        (("q\u00f6", "q\u00f6\u200b"), 2),
        (("q1", "q1\u200b"), 2),
        (("q\u200b1", "q1"), 1),
    ],
)
def test_ids_that_look_the_same_are_refused(tmp_path, ids, row):
    items = [{**makers.law_items()[0], "id": name} for name in ids]
    with pytest.raises(InputError, match=rf"row {row}: field 'id': 'q.*' looks like an"):
        load_bank(makers.write_bank(tmp_path / "bank", items))
