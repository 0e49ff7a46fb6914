"""Decisions of reviewers become revisions of banks: applied, refused, resumed."""

import json

import pytest
from msgspec.structs import replace
from sqlalchemy import select
from tests import makers
from tests.exchange.reviewed_banks import GOOD, TODAY, review_all, settle, shop_bank, study_of

from medassay.bank.folder import bank_records, load_bank
from medassay.core.canonical import canonical
from medassay.errors import GateError, InputError
from medassay.exchange.review_apply import agreed_of, apply_decisions, decisions_of
from medassay.exchange.review_workshop import bank_entries
from medassay.review.store import studies, tickets
from medassay.review.store.schema import (
    Entry,
    Study,
    Ticket,
    TrailLine,
)
from medassay.synthesis.decide import decide
from medassay.synthesis.project import open_workshop, read_workshop
from medassay.synthesis.release import release_items


@pytest.fixture
def decided(database, tmp_path):
    """Furnish a bank of four items and a study in which each of the four verdicts was decided and
    checked.
    """
    items = [
        {
            **makers.law_items()[0],
            "id": f"i{at}",
            "question": f"Question {at}?",
            "options": ["a", "b", "c"],
            "expected": "A",
            "rationale": "old",
        }
        for at in range(5)
    ]
    folder = makers.write_bank(tmp_path / "law", items)
    bank = load_bank(folder, lock=None)
    with database.write() as db:
        study, found = study_of(db, bank_entries(bank, folder), "item")
        review_all(db, study, found["ada"], lambda work: {**GOOD, "comment": "look at this"})
        settle(db, study, "i0", found, verdict="approve")
        settle(db, study, "i1", found, verdict="correct", option="B")
        settle(db, study, "i2", found, verdict="rewrite", question="Better?", option="A")
        settle(db, study, "i3", found, verdict="remove")
    return folder


def apply(database, folder, tmp_path, **more):
    with database.write() as db:
        return apply_decisions(
            db,
            db.get_one(Study, "s"),
            folder,
            **{
                "who": "Max",
                "reason": "Review.",
                "lock": tmp_path / "banks.lock",
                "today": TODAY,
                **more,
            },
        )


def test_decisions_become_revisions_of_a_bank_with_history(database, decided, tmp_path):
    version, content, counts = apply(database, decided, tmp_path)
    bank = load_bank(decided, lock=tmp_path / "banks.lock")
    assert (bank.version, bank.content_hash) == (version, content)
    assert counts == {"approve": 1, "correct": 1, "rewrite": 1, "remove": 1}
    records = {item.id: record for item, record in bank_records(bank)}
    assert set(records) == {"i0", "i1", "i2", "i4"}
    assert [records[name].get("revision", 1) for name in ("i0", "i1", "i2", "i4")] == [
        1,
        2,
        2,
        1,
    ]
    assert records["i1"]["expected"] == "B"
    assert "rationale" not in records["i1"]  # it explained another key
    assert records["i2"]["question"] == "Better?"
    for name in ("i0", "i1", "i2"):
        assert records[name]["approval"]["who"] == "Judy"
    assert "approval" not in records["i4"]
    changes = (decided / "CHANGES.md").read_text()
    assert (
        "Review 's', released by Max: i0 approved, i1 corrected, i2 rewritten, i3 removed."
        in changes
    )
    with database.read() as db:
        assert {t.state for t in db.scalars(select(Ticket))} == {"released", "open"}
        line = db.scalar(select(TrailLine).order_by(TrailLine.id.desc()).limit(1))
        assert line.record["event"] == "bank revised"
        assert line.record["content_sha256"] == content
    with pytest.raises(GateError, match="no decision is checked"):
        apply(database, decided, tmp_path)


def test_a_release_that_was_cut_off_behind_the_bank_is_finished_by_the_same_call(
    database, decided, tmp_path, monkeypatch
):
    from medassay.exchange import review_apply

    def fails(*given, **more):
        raise OSError("cut off")

    monkeypatch.setattr(review_apply.tickets, "release", fails)
    with pytest.raises(OSError, match="cut off"):
        apply(database, decided, tmp_path)
    monkeypatch.undo()
    before = load_bank(decided, lock=tmp_path / "banks.lock")
    version, content, _ = apply(database, decided, tmp_path)
    assert (version, content) == (before.version, before.content_hash)


def test_what_was_decided_about_a_withdrawn_item_changes_no_bank(database, decided, tmp_path):
    with database.write() as db:
        withdrawn = db.scalar(select(Entry).where(Entry.study_id == "s", Entry.item == "i3"))
        withdrawn.withdrawn = "imported by mistake"
    apply(database, decided, tmp_path)
    assert "i3" in {item.id for item in load_bank(decided, lock=None).items}


def test_an_item_that_changed_meanwhile_is_not_overwritten(database, decided, tmp_path):
    lines = (decided / "items.jsonl").read_text().splitlines()
    changed = [
        {**json.loads(line), "revision": 7} if '"i1"' in line else json.loads(line)
        for line in lines
    ]
    (decided / "items.jsonl").write_bytes(b"".join(canonical(one) + b"\n" for one in changed))
    before = (decided / "items.jsonl").read_bytes()
    with pytest.raises(InputError, match=r"'i1' has revision 7; reviewed was 1"):
        apply(database, decided, tmp_path)
    assert (decided / "items.jsonl").read_bytes() == before
    with database.read() as db:
        assert len(decisions_of(db, db.get_one(Study, "s"))) == 4


def test_a_decision_about_a_workshops_bank_goes_through_the_workshop(database, tmp_path):
    folder, lock = shop_bank(tmp_path)
    bank = load_bank(folder, lock=lock)
    quiz = next(item for item in bank.items if item.options)
    other = next(letter for letter in quiz.letters if letter != quiz.target.expected)
    with database.write() as db:
        study, found = study_of(db, bank_entries(bank, folder), "item")
        settle(db, study, quiz.id, found, verdict="correct", option=other)
    version, _, _ = apply(database, folder, tmp_path)
    assert version != bank.version
    again = {item.id: item for item in load_bank(folder, lock=lock).items}
    assert again[quiz.id].target.expected == other
    told = [event.record["step"] for event in read_workshop(tmp_path / "shop").history(quiz.id)]
    assert told.count("decision") > 1


# What an attack and a reading found.


def test_two_decisions_about_one_item_and_another_bank_are_refused(database, tmp_path):
    items = makers.law_items()[:2]
    bank = load_bank(makers.write_bank(tmp_path / "law", items), lock=None)
    [first, _] = bank_entries(bank)
    twice = [first, replace(first, iteration="2")]
    with database.write() as db:
        study, found = study_of(db, twice, "item")
        with pytest.raises(InputError, match="already; nothing was added"):
            studies.add_entries(db, study, [first], who="tests")
        for entry in db.scalars(select(Entry).order_by(Entry.number)).all():
            tickets.decide(db, study, entry, {"verdict": "remove", "reason": "r"}, found["judy"])
            step = tickets.last_decision(db, tickets.ticket_of(db, study, entry))
            tickets.check(db, study, entry, found["jon"], decision=step.id, confirmed=True)
    with pytest.raises(InputError, match="2 decisions about item"):
        apply(database, tmp_path / "law", tmp_path)
    with database.write() as db:
        study = db.get_one(Study, "s")
        study.settings = {**study.settings, "source": {"bank": "lex"}}
    with pytest.raises(InputError, match="is the bank 'law'; reviewed was 'lex'"):
        apply(database, tmp_path / "law", tmp_path)


def test_a_removal_from_a_bank_that_never_had_the_item_is_no_removal(database, decided, tmp_path):
    other = makers.write_bank(tmp_path / "copy", [{**makers.law_items()[0], "id": "i9"}])
    with pytest.raises(InputError, match="has no item"):
        apply(database, other, tmp_path)


def test_an_item_that_was_rewritten_under_the_same_revision_is_not_approved(
    database, decided, tmp_path
):
    lines = [json.loads(line) for line in (decided / "items.jsonl").read_text().splitlines()]
    lines[0]["question"] = "Something nobody saw?"
    (decided / "items.jsonl").write_bytes(b"".join(canonical(one) + b"\n" for one in lines))
    with pytest.raises(InputError, match="is not what was reviewed, under the same revision"):
        apply(database, decided, tmp_path)


@pytest.mark.parametrize(
    ("reference", "corrected"), [("a", "b"), ("A.", "b."), ("B.", "B."), ("c", None)]
)
def test_a_corrected_key_corrects_the_open_form_of_the_question(
    database, tmp_path, reference, corrected
):
    closed = {
        **makers.law_items()[0],
        "id": "q-quiz",
        "question": "Q?",
        "options": ["a", "b"],
        "expected": "A",
        "meta": {"question": "q"},
    }
    opened = {
        "id": "q-open",
        "domain": "law",
        "question": "Q?",
        "answer_type": "open",
        "reference": reference,
        "source": "written for a test",
        "meta": {"question": "q"},
    }
    bank = load_bank(makers.write_bank(tmp_path / "law", [closed, opened]), lock=None)
    with database.write() as db:
        study, found = study_of(
            db, [one for one in bank_entries(bank) if one.item == "q-quiz"], "item"
        )
        settle(db, study, "q-quiz", found, verdict="correct", option="B")
    if corrected is None:
        with pytest.raises(InputError, match="'c', that contradicts the new key"):
            apply(database, tmp_path / "law", tmp_path)
        return
    apply(database, tmp_path / "law", tmp_path)
    records = {
        item.id: record for item, record in bank_records(load_bank(tmp_path / "law", lock=None))
    }
    assert (records["q-quiz"]["expected"], records["q-open"]["reference"]) == ("B", corrected)
    # What holds the new answer by now stays as it is.
    assert records["q-quiz"]["revision"] == 2
    assert records["q-open"].get("revision", 1) == (1 if reference == corrected else 2)


def test_what_all_found_right_is_approved_in_one_action_and_counts_as_reviewed(
    database, tmp_path, cli
):
    folder, lock = shop_bank(tmp_path)
    before = load_bank(folder, lock=lock)
    assert "Of 8 items 0 (0 %) were reviewed or decided by people one by one" in before.limits
    low = bank_entries(before, folder)[0].item
    with database.write() as db:
        study, found = study_of(db, bank_entries(before, folder), "item")
        for name in ("ada", "ben", "cleo"):
            review_all(
                db,
                study,
                found[name],
                lambda work, name=name: {
                    **GOOD,
                    "path": "4",
                    **(
                        {"answer": "2", "comment": "The key is wrong.", "option": "B"}
                        if (name, work.entry.item) == ("ada", low)
                        else {}
                    ),
                },
            )
        right = {one.item for one in agreed_of(db, study)}
    others = {one.item for one in bank_entries(before, folder)} - {low}
    assert right == others
    with database.write() as db, pytest.raises(GateError, match="no decision is checked"):
        apply_decisions(
            db, db.get_one(Study, "s"), folder, who="Owner", reason="r", lock=lock, today=TODAY
        )
    place = ("--bank", folder, "--by", "Owner", "--reason", "reviewed", "--lock", lock)
    where = ("--approve-right", "--database", tmp_path / "review.sqlite")
    code, said, _ = cli("review", "apply", "s", *place, *where, "--plan", "--json")
    assert {one["item"] for one in json.loads(said)["decisions"]} == others
    code, said, err = cli("review", "apply", "s", *place, *where)
    assert code == 0, err
    assert "3 approve" in said
    after = load_bank(folder, lock=lock)
    # Both forms of each question, none of the one that somebody found wrong; no item changed.
    share = (
        f"Of 8 items {2 * len(others)} ({200 * len(others) / 8:.0f} %) were reviewed or decided by"
        " people one by one"
    )
    assert share in after.limits
    records = {item.id: record for item, record in bank_records(after)}
    by = {name: record["approval"]["who"] for name, record in records.items()}
    assert sum(who == "3 of 3 reviewers of 's'" for who in by.values()) == 2 * len(others)
    assert by[low] == "Owner"
    assert {record.get("revision", 1) for record in records.values()} == {1}
    assert "3 items approved that all reviewers found right" in (folder / "CHANGES.md").read_text()
    code, _, err = cli("review", "apply", "s", *place, *where)
    assert code == 1
    assert "by now; nothing to do" in err


def test_an_open_form_that_changed_since_is_reviewed_again(database, tmp_path):
    folder, lock = shop_bank(tmp_path)
    bank = load_bank(folder, lock=lock)
    entries = bank_entries(bank, folder)
    [name] = entries[0].hidden["forms"]
    with database.write() as db:
        study, found = study_of(db, entries, "item")
        settle(db, study, entries[0].item, found, verdict="approve")
    with open_workshop(tmp_path / "shop") as shop:
        record = next(record for item, record in bank_records(bank) if item.id == name)
        other = {k: v for k, v in record.items() if k not in ("approval", "revision")}
        decide(shop, "change", [name], who="Owner", change={**other, "reference": "Another."})
        release_items(shop, reason="second", lock=lock, today=TODAY)
    with pytest.raises(InputError, match="another form of"):
        apply(database, folder, tmp_path)
