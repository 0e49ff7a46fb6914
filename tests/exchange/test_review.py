"""What goes into reviews and what comes out: banks, runs and workshops in.

Labels, votes and revised banks out.
"""

import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import select
from tests import makers
from tests.exchange.reviewed_banks import GOOD, TODAY, exported, review_all, shop_bank, study_of
from tests.publishing.private_items import make_run, private_item
from tests.runner.judged_plans import workspace
from tests.synthesis.shops import replies, write_shop

import medassay
from medassay.bank.find import find_bank
from medassay.bank.folder import load_bank
from medassay.bank.reviews import ReviewedBank, note_reviews
from medassay.errors import GateError, InputError, IntegrityError
from medassay.exchange import review_export
from medassay.exchange.review_apply import decisions_of
from medassay.exchange.review_entries import (
    entries_of_records,
    pair_entries,
    private_run,
    run_entries,
    sampled,
)
from medassay.exchange.review_workshop import bank_entries, workshop_entries
from medassay.review.exported import ExportedStudy
from medassay.review.store import frozen, reviews, tickets
from medassay.review.store.schema import (
    Assignment,
    Entry,
    Review,
    Study,
)
from medassay.study.item_check import read_answers
from medassay.study.judges import compare_with_people
from medassay.synthesis.decide import decide
from medassay.synthesis.project import open_workshop, read_workshop
from medassay.synthesis.release import release_items
from medassay.synthesis.synthesize import synthesize
from medassay.synthesis.votes import acceptance, read_ballot

# In.


def test_items_of_a_bank_come_with_their_keys_and_categories():
    bank = find_bank("demo", Path.cwd(), Path("banks.lock"))
    found = bank_entries(bank)
    assert len(found) == len(bank.items)
    closed = next(one for one in found if one.content["options"])
    assert closed.content["expected"] in [option["letter"] for option in closed.content["options"]]
    assert all(one.category for one in found)
    picked = sampled(found, 60, "7")
    assert len(picked) == 60
    assert {one.category for one in picked} == {one.category for one in found}
    assert picked == sampled(found, 60, "7") != sampled(found, 60, "8")


def test_items_of_a_workshop_come_with_graph_and_source(tmp_path):
    plan = write_shop(tmp_path)
    synthesize(plan, tmp_path / "shop", secrets={}, workspace=tmp_path)
    with open_workshop(tmp_path / "shop") as shop:
        decide(shop, "accept", ["all"], who="Owner")
        folder, _, _ = release_items(
            shop, reason="first", lock=tmp_path / "banks.lock", today=TODAY
        )
    found = bank_entries(load_bank(folder, lock=None), folder)
    assert found
    for one in found:
        assert one.content["graph"]["node"]
        assert one.content["source_text"].startswith("About ")
        assert one.content["path"]


def test_refined_pathways_come_as_pairs(tmp_path):
    given = {
        key: text.replace("->", "-> then", 1) if key.startswith("make_path") else text
        for key, text in replies().items()
    }
    plan = write_shop(tmp_path, given)
    synthesize(plan, tmp_path / "shop", secrets={}, workspace=tmp_path)
    found = workshop_entries(read_workshop(tmp_path / "shop"))
    assert {one.content["what"] for one in found} == {"path"}
    for one in found:
        [before], [after] = one.content["original"], one.content["derived"]
        assert after["text"] == before["text"].replace("->", "-> then", 1)


@pytest.mark.parametrize("question", ["gout/3", 3, ["gout", 3]])
def test_a_quiz_and_the_open_form_of_its_question_are_one_entry(question):
    meta = {"question": question}
    common = {"domain": "d", "question": "Which?", "meta": meta}
    quiz = {**common, "id": "a", "options": ["x", "y"], "expected": "B"}
    opened = {**common, "id": "b", "answer_type": "open", "reference": "y", "revision": 2}
    other = {**opened, "id": "c", "meta": {"question": "gout/4"}}
    entries = entries_of_records([opened, other, quiz])
    assert [entry.item for entry in entries] == ["a", "c"]
    assert entries[0].hidden["forms"] == {"b": 2}


def test_derived_banks_are_paired_with_their_originals(tmp_path):
    items = makers.law_items()
    first = load_bank(makers.write_bank(tmp_path / "law", items), lock=None)
    german = [{**items[0], "id": "x-de", "meta": {"of": items[0]["id"]}, "language": "de"}]
    other = load_bank(makers.write_bank(tmp_path / "de", german, name="lex"), lock=None)
    [pair] = pair_entries(other, first)
    assert pair.content["original"][0]["text"] == items[0]["question"]
    assert pair.content["derived_language"] == "de"
    strange = [{**items[0], "id": "other"}]
    alone = load_bank(makers.write_bank(tmp_path / "alone", strange, name="alone"), lock=None)
    with pytest.raises(InputError, match=r"no item of alone-2026\.1 was made from one of"):
        pair_entries(alone, first)


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judged")
    items = makers.open_items(40)
    told = {
        i["id"]: " ".join(f["text"] for f in i["facts"][: 1 + n % 3]) for n, i in enumerate(items)
    }
    students = [makers.fake(replies=told), makers.fake("n", replies=told)]
    return medassay.run(workspace(folder, items, students, makers.judges()), secrets={})


def test_who_answered_and_who_judged_is_hidden(judged):
    for form, count in (("answer", 80), ("preference", 40), ("judge", 240)):
        found = run_entries(judged, form)
        assert len(found) == count
        for one in found[:5]:
            shown = json.dumps(one.content)
            assert "judge-" not in shown
            assert '"model"' not in shown
            assert one.hidden["run"] == judged.id
    pair = run_entries(judged, "preference")[0]
    assert {pair.hidden["first"]["model"], pair.hidden["second"]["model"]} == {"m", "n"}
    with pytest.raises(InputError, match="expected item, answer, preference, judge"):
        run_entries(judged, "pair")


# Out.


def test_peoples_labels_correct_the_judge(judged, database, tmp_path):
    with database.write() as db:
        study, found = study_of(db, sampled(run_entries(judged, "answer"), 40, "7"), "answer")
        for name in ("ada", "ben", "cleo"):

            def says(work, name=name):
                # Two say what stands in the answer; the third always says everything is there.
                text = work.content["shown_answer"]
                facts = {
                    f"fact-{fact['id']}": (
                        "entail" if name == "cleo" or fact["text"] in text else "missing"
                    )
                    for fact in work.content["facts"]
                }
                return {**facts, "overall": "4"}

            review_all(db, study, found[name], says)
    document = exported(database)
    path = tmp_path / "labels.csv"
    rows = review_export.label_rows(msgspec.convert(document, ExportedStudy))
    assert review_export.write_rows(path, rows) == len(rows) == 40 * 3
    assert {row["verdict"] for row in rows} == {
        "entail",
        "missing",
    }  # the majority, not the third
    compared = makers.plain(compare_with_people(judged, "judge-alpha", path))
    assert compared["labelled"] == 40
    assert compared["corrected"]["n_unlabelled"] == 40
    assert (
        compared["corrected"]["lo"] < compared["corrected"]["value"] < compared["corrected"]["hi"]
    )
    with pytest.raises(InputError, match="nothing was overwritten"):
        review_export.write_rows(path, rows)
    answers = tmp_path / "answers.csv"
    review_export.write_rows(
        answers, review_export.answer_rows(msgspec.convert(document, ExportedStudy))
    )
    read = read_answers(answers, {}, ["people"], None)
    assert len(read) == 40


def test_what_an_adjudicator_settled_is_the_label(judged, database):
    with database.write() as db:
        study, found = study_of(db, run_entries(judged, "answer")[:3], "answer")
        for name in ("ada", "ben", "cleo"):
            review_all(
                db,
                study,
                found[name],
                lambda work: {
                    **{f"fact-{f['id']}": "entail" for f in work.content["facts"]},
                    "overall": "5",
                },
            )
        entry = db.scalar(select(Entry).order_by(Entry.number))
        final = {f"fact-{f['id']}": "missing" for f in entry.content["facts"]}
        tickets.decide(
            db, study, entry, {**final, "overall": "1", "reason": "none is said"}, found["judy"]
        )
    rows = review_export.label_rows(msgspec.convert(exported(database), ExportedStudy))
    assert [row["verdict"] for row in rows] == ["missing"] * 3 + ["entail"] * 6


def test_votes_come_out_as_bank_votes_reads_them(database, tmp_path):
    items = makers.many_items(5)
    bank = load_bank(makers.write_bank(tmp_path / "law", items), lock=None)
    with database.write() as db:
        study, found = study_of(db, bank_entries(bank), "item")
        for name, low in (("ada", "5"), ("ben", "5"), ("cleo", "2")):
            review_all(
                db,
                study,
                found[name],
                lambda work, low=low: {**GOOD, "question": low, "comment": "c"},
            )
    path = tmp_path / "votes.csv"
    review_export.write_rows(
        path, review_export.vote_rows(msgspec.convert(exported(database), ExportedStudy))
    )
    ballot = read_ballot(path)
    assert {len(votes) for votes in ballot.values()} == {3}
    table = acceptance(ballot).to_dict()
    assert (table["at_least_2"]["share"], table["at_least_3"]["share"], table["accepted"]) == (
        1,
        0,
        False,
    )


def test_only_second_persons_check_and_nothing_unchecked_is_applied(database, tmp_path):
    bank = load_bank(makers.write_bank(tmp_path / "law", makers.law_items()), lock=None)
    with database.write() as db:
        study, found = study_of(db, bank_entries(bank), "item")
        entry = db.scalar(select(Entry).order_by(Entry.number))
        tickets.decide(db, study, entry, {"verdict": "remove", "reason": "r"}, found["judy"])
        with pytest.raises(GateError, match="by a second person"):
            step = tickets.last_decision(db, tickets.ticket_of(db, study, entry))
            tickets.check(db, study, entry, found["judy"], decision=step.id, confirmed=True)
        assert decisions_of(db, study) == []


# Private items.


def test_private_items_are_opened_against_their_commitments(tmp_path, database):
    run = make_run(tmp_path, *[private_item(f"law-s{n}", f"A private case {n}.") for n in range(2)])
    assert private_run(run)
    assert not private_run(make_run(tmp_path / "open"))


def test_reviews_are_only_ever_added(database, tmp_path):
    bank = load_bank(makers.write_bank(tmp_path / "law", makers.law_items()[:1]), lock=None)
    with database.write() as db:
        study, found = study_of(db, bank_entries(bank), "item")
        review_all(db, study, found["ada"], lambda work: GOOD)
        work = reviews.work_at(db, study, found["ada"].id, 1)
        fields = {**GOOD, "answer": "4"}
        reviews.submit(db, study, work, fields, version=work.version, reason="again")
        kept = [*db.scalars(select(Review).join(Assignment).order_by(Review.revision))]
        assert [one.content["scores"]["answer"] for one in kept] == [5, 4]
    with database.write() as db:
        db.scalar(select(Review).order_by(Review.id)).content = {"scores": {}}
    with database.write() as db, pytest.raises(IntegrityError, match="closed was"):
        study = db.get_one(Study, "s")
        frozen.close(db, study, who="t")
        db.scalar(select(Review).order_by(Review.id)).content = {"scores": {}, "comment": "x"}
        db.flush()
        frozen.export_document(db, study, who="t")
        assert all(re.match("[ra]-[0-9a-f]{8}", one) for one in frozen.pseudonyms(db, "s").values())


def test_aggregates_reach_the_bank_and_its_page(database, tmp_path):
    folder = makers.write_bank(tmp_path / "law", makers.law_items())
    bank = load_bank(folder, lock=None)
    before = bank.content_hash
    entries = bank_entries(bank, folder)
    for one in entries:
        one.content["path"] = "a -> b"
    with database.write() as db:
        study, found = study_of(db, entries, "item")
        study.settings = {**study.settings, "source": {"bank": "law", "version": bank.version}}
        for name, answer in (("ada", "5"), ("ben", "3")):
            review_all(
                db,
                study,
                found[name],
                lambda work, answer=answer: {**GOOD, "answer": answer, "path": "4"},
            )
        with pytest.raises(GateError, match="close it first"):
            review_export.bank_reviews(db, study)
        frozen.close(db, study, who="tests")
        note_reviews(folder, review_export.bank_reviews(db, study))
        note_reviews(
            folder, review_export.bank_reviews(db, study)
        )  # the same study again: one entry
    bank = load_bank(folder, lock=None)
    assert bank.content_hash == before
    [noted] = bank.reviews
    assert (noted["items"], noted["any_low"], noted["groups"][-1]["total"]) == (
        len(entries),
        len(entries),
        13,
    )
    makers.write_models(tmp_path, makers.fake())
    run = medassay.run(makers.write_plan(tmp_path, banks=["law"]), secrets={})
    medassay.publish(run, tmp_path / "site", publication="one")
    page = next((tmp_path / "site").glob("p/one/bank/*/index.html")).read_text()
    assert "Reviewed by people: s" in page
    assert "13.00" in page
    assert "No reviews by physicians" not in page
    too_large = replace(ReviewedBank(**noted | {"groups": ()}), study="another", items=2**60)
    with pytest.raises(InputError, match="integers up to 2"):
        note_reviews(folder, too_large)
    assert not (folder / "REVIEWS.json.part").exists()
    (folder / "REVIEWS.json").write_text('{"reviews": [{"study": 1}]}')
    with pytest.raises(InputError, match=r"REVIEWS\.json: expected what"):
        load_bank(folder, lock=None)


def test_forged_and_unsealed_runs_are_not_reviewed(judged, tmp_path, cli):
    forged = tmp_path / "forged"
    shutil.copytree(judged.path, forged)
    for file in forged.iterdir():
        file.chmod(0o644)
    text = (forged / "trials.jsonl").read_text()
    (forged / "trials.jsonl").write_text(text.replace('"model":"m"', '"model":"n"', 1))
    code, _, says = cli("review", "import", forged, "--study", "s")
    assert code == 6, says
    (forged / "seal.json").unlink()
    code, _, says = cli("review", "import", forged, "--study", "s")
    assert code == 3
    assert "is not sealed" in says
    code, told, says = cli("review", "import", judged.path, "--study", "s", "--n", "20", "--json")
    assert (code, json.loads(told)["entries"]) == (0, 20), says


def test_several_judges_of_one_answer_give_one_label(judged, database):
    entries = [
        one
        for one in run_entries(judged, "judge")
        if one.item == run_entries(judged, "judge")[0].item
    ]
    entries = [one for one in entries if one.hidden["trial"]["model"] == "m"]
    assert len(entries) == 3  # three judges
    with database.write() as db:
        study, found = study_of(db, entries, "judge")
        for _ in range(2):  # one's own rating, then what the judge said
            review_all(
                db,
                study,
                found["ada"],
                lambda work: (
                    {"agree": "yes"}
                    if work.second
                    else {
                        **{f"fact-{f['id']}": "entail" for f in work.content["facts"]},
                        "overall": "5",
                    }
                ),
            )
    rows = review_export.label_rows(msgspec.convert(exported(database), ExportedStudy))
    assert len(rows) == len({(row["model"], row["item"], row["fact"]) for row in rows}) == 3


# What all found right, and questions in two forms.


def test_a_question_in_two_forms_is_one_entry_that_shows_both(tmp_path, database):
    folder, _ = shop_bank(tmp_path)
    bank = load_bank(folder, lock=None)
    found = bank_entries(bank, folder)
    quizzes = [item.id for item in bank.items if item.options]
    assert [one.item for one in found] == quizzes
    assert 2 * len(found) == len(bank.items)
    for one in found:
        [name] = one.hidden["forms"]
        opened = next(item for item in bank.items if item.id == name)
        assert not opened.options
        assert one.content["other_forms"][0].get("reference", opened.reference) == opened.reference
    # A sample of n entries has n different questions.
    picked = sampled(found, 3, "1")
    assert len({one.content["question"] for one in picked}) == 3


def test_items_without_a_second_form_stay_as_they_are():
    bank = find_bank("demo", Path.cwd(), Path("banks.lock"))
    assert not [one for one in bank_entries(bank) if "forms" in one.hidden]
