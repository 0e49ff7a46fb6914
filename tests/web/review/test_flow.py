"""Reviews of a study over HTTP, on both databases: filled in, sent, revised, kept."""

import html
import re
import threading

import pytest
from sqlalchemy import select
from tests.web.review.desk import GOOD, Client, entry, furnish, question, signed_in
from tests.web.review.desk_actions import (
    BAD,
    numbers,
    problems,
)
from tests.web.review.reviewing import review

from medassay.core.canonical import canonical, sha256_hex
from medassay.review.store import (
    frozen,
    tickets,
)
from medassay.review.store.database import open_database
from medassay.review.store.schema import (
    Assignment,
    Entry,
    Review,
    Study,
)
from medassay.review.training import training_entries


def test_a_text_that_is_too_long_is_refused_and_kept_on_the_page(desk):
    study = desk.study(n=1)
    ada = desk.client("ada")
    place, whole = f"/s/{study}/i/1", "word " * 20_000 + "."
    version = ada.get(place).version
    for do in ("draft", "submit"):
        reply = ada.post(place, version=version, do=do, **GOOD, comment=whole)
        assert reply.status == 409
        says = "field 'comment': 100,001 characters; at most 100,000 are kept, shorten it"
        assert says in html.unescape(reply.text)
        assert whole in reply.text
    assert ada.get(place).version == version  # nothing was kept
    assert review(ada, study, 1, **GOOD, comment="word").status == 303


def test_scores_are_summed_and_low_ones_need_words(desk):
    study = desk.study()
    ada = desk.client("ada")
    reply = review(ada, study, 1, **BAD)
    assert reply.status == 422
    assert problems(reply) == [
        "The answer has less than 3: choose the right option or write the right answer.",
        "A score is below 3: say what is wrong.",
    ]
    assert 'name="answer" value="1" checked' in reply.text  # nothing is lost
    reply = review(ada, study, 1, **{**BAD, "option": "Z"}, comment="no")
    assert problems(reply) == ["Choose one of the options of the item."]
    assert review(ada, study, 1, **BAD, comment="no", text="drug Q").status == 303
    reply = review(ada, study, 2, question="3", answer="3", path="0")
    assert problems(reply) == ["Say why you cannot judge this."]
    fields = {"question": "3", "answer": "3", "path": "0", "why-path": "not my field"}
    assert review(ada, study, 2, **fields).status == 303  # at 3 a comment is welcome, not needed
    reply = review(ada, study, 3, **GOOD, harm="yes")
    assert problems(reply) == ["Say how severe the harm could be."]
    with desk.database.read() as db:
        kept = [
            one.content for one in db.scalars(select(Review).order_by(Review.id.desc()).limit(2))
        ]
    assert kept[1]["scores"] == {"question": 2, "answer": 1, "path": 4}
    assert kept[1]["correction"] == {"text": "drug Q"}
    assert kept[0]["scores"]["path"] is None
    assert kept[0]["cannot"] == {"path": "not my field"}


@pytest.mark.parametrize("value", ["6", "-1", "4.5", "x", "", "0 "])
def test_other_scores_than_one_to_five_are_refused(desk, value):
    study = desk.study(n=1)
    reply = review(desk.client("ada"), study, 1, **{**GOOD, "answer": value})
    assert reply.status == 422


def test_a_field_that_the_form_does_not_have_is_refused(desk):
    study = desk.study(n=1)
    ada = desk.client("ada")
    reply = review(ada, study, 1, **GOOD, total="15")
    assert reply.status == 409
    assert "no field" in reply.text
    with desk.database.read() as db:
        assert db.scalar(select(Assignment.revision).where(Assignment.study_id == study)) == 0


def test_the_same_submission_sent_twice_is_kept_once(desk):
    study = desk.study()
    ada = desk.client("ada")
    page = ada.get(f"/s/{study}/i/1")
    sent = [
        ada.post(f"/s/{study}/i/1", version=page.version, do="submit", **GOOD, comment="once")
        for _ in range(3)
    ]
    assert {one.status for one in sent} == {303}
    with desk.database.read() as db:
        found = db.scalars(select(Review).join(Assignment).where(Assignment.study_id == study))
        assert [one.content["comment"] for one in found] == ["once"]


def test_two_tabs_notice_each_other_and_both_versions_are_shown(desk):
    study = desk.study()
    ada = desk.client("ada")
    path = f"/s/{study}/i/1"
    first = ada.get(path).version
    saved = ada.ask(
        "PUT", f"/api{path}/draft", {"fields": {"comment": "tab one"}, "version": int(first)}
    )
    assert saved.status == 200
    late = ada.ask(
        "PUT", f"/api{path}/draft", {"fields": {"comment": "tab two"}, "version": int(first)}
    )
    assert late.status == 409
    assert late.json["error"]["theirs"] == {"comment": "tab one"}
    reply = ada.post(path, version=first, do="submit", **GOOD, comment="tab two")
    assert reply.status == 409
    assert "tab one" in reply.text
    assert "tab two" in reply.text
    assert "The other version" in reply.text
    again = ada.post(path, version=reply.version, do="submit", **GOOD, comment="tab two")
    assert again.status == 303


def test_skipped_items_come_last_with_what_was_filled_in(desk):
    study = desk.study(overlap=3)
    ada = desk.client("ada")
    page = ada.get(f"/s/{study}/i/1")
    reply = ada.post(f"/s/{study}/i/1", version=page.version, do="skip", comment="later")
    assert reply.goes_to == f"/s/{study}/i/2"
    assert "later" in ada.get(f"/s/{study}/i/1").text
    order = [2, 3, 4, 5, 6]
    for number, following in zip(order, [*order[1:], 1], strict=True):
        assert review(ada, study, number, **GOOD).goes_to == f"/s/{study}/i/{following}"
    assert review(ada, study, 1, **GOOD).goes_to == f"/s/{study}/done"


def test_reviewers_meet_items_in_orders_of_their_own(desk):
    study = desk.study(n=12, overlap=3)
    orders = {
        who: [found.item for _, found in numbers(desk, study, who)]
        for who in ("ada", "ben", "cleo")
    }
    assert len({tuple(order) for order in orders.values()}) == 3
    assert len({tuple(sorted(order)) for order in orders.values()}) == 1


def test_nothing_hidden_is_on_a_page_of_a_reviewer(desk):
    trial = {
        "domain": "d",
        "model": "secret-model",
        "setting": "s",
        "mode": "solo",
        "item": "i",
        "repeat": 0,
    }
    hidden = {
        "run": "secret-run",
        "trial": trial,
        "judge": "secret-judge",
        "first": trial,
        "second": trial,
    }
    verdict = {
        "score": 0.25,
        "lo": 0,
        "hi": 1,
        "body": {"facts": [{"id": "f1", "verdict": "missing", "evidence": "secret-quote"}]},
    }
    facts = {"facts": [{"id": "f1", "text": "Say it."}]}
    shown = {
        "question": "Which?",
        "shown_answer": "This one.",
        "answers": ["one", "two"],
        "language": "en",
        **facts,
    }
    for form in ("answer", "preference", "judge"):
        new = entry(1)
        made = type(new)(item="secret-item", content=shown, hidden={**hidden, "verdict": verdict})
        study = desk.study(form=form, entries=[made], overlap=3)
        ada = desk.client("ada")
        for path in (f"/s/{study}/i/1", f"/api/s/{study}/i/1", f"/s/{study}/"):
            assert "secret" not in ada.get(path).text, (form, path)
    # The judge's verdict comes once one's own rating is in, which then stays as it is.
    own = {"fact-f1": "entail", "overall": "4"}
    assert review(ada, study, 1, agree="yes", **own).goes_to == f"/s/{study}/i/1"
    after = ada.get(f"/s/{study}/i/1").text
    assert "secret-quote" in after
    assert "secret-judge" not in after
    assert 'name="overall"' not in after
    assert problems(review(ada, study, 1, agree="no")) == ["Say what the judge got wrong."]
    assert review(ada, study, 1, agree="no", comment="it is said", overall="1").goes_to.endswith(
        "done"
    )
    with desk.database.read() as db:
        kept = [
            *db.scalars(
                select(Review)
                .join(Assignment)
                .where(Assignment.study_id == study)
                .order_by(Review.revision)
            )
        ]
    assert [one.complete for one in kept] == [False, True]
    assert kept[1].content["own"]["scores"] == {"fact-f1": "entail", "overall": 4}
    assert kept[1].content["scores"] == {"agree": "no"}


def test_the_sides_of_a_preference_are_drawn_and_stored_as_the_answer_not_the_side(desk):
    shown = {"question": "Which?", "answers": ["answer ONE", "answer TWO"], "language": "en"}
    made = [type(entry(1))(item=f"p{at}", content=shown) for at in range(12)]
    study = desk.study(form="preference", entries=made, overlap=1, people={"ada": "reviewer"})
    ada = desk.client("ada")
    sides = set()
    for number in range(1, 13):
        text = ada.get(f"/s/{study}/i/{number}").text
        one_left = text.index("answer ONE") < text.index("answer TWO")
        sides.add(one_left)
        left = re.search(r'name="better" value="(\w+)"', text)[
            1
        ]  # the first button is the left one
        assert left == ("first" if one_left else "second")
        assert review(ada, study, number, better="first").status == 303
    assert sides == {True, False}


def test_hostile_text_is_shown_and_never_runs(desk):
    evil = "<script>x</script><img src=x onerror=x>\u202eabc javascript:x"
    made = type(entry(1))(
        item="<script>x</script>",
        content=question(1, question=evil, source_text=evil),
        category="<img src=x onerror=x>",
    )
    study = desk.study(entries=[made])
    ada = desk.client("ada")
    assert review(ada, study, 1, **BAD, option="B", comment=evil, source=evil).status == 303
    pages = [ada.get(f"/s/{study}/i/1")]
    pages += [desk.client("judy").get(f"/s/{study}/adjudicate/{path}") for path in ("", "1")]
    pages += [
        desk.client("aud").get(f"/s/{study}/{path}")
        for path in ("items?show=all", "items/1", "log")
    ]
    for page in pages:
        assert page.status == 200
        for bad in ("<script>x", "<img src=x", "\u202e"):
            assert bad not in page.text
    assert all("U+202E" in pages[at].text for at in (0, 2, 4))


def test_a_review_is_revised_with_a_reason_and_the_earlier_one_stays(desk):
    study = desk.study(n=1)
    ada = desk.client("ada")
    assert review(ada, study, 1, **GOOD).status == 303
    reply = review(ada, study, 1, **{**GOOD, "answer": "3"})
    assert problems(reply) == ["Say why you change your review."]
    page = ada.get(f"/s/{study}/i/1")
    assert (
        ada.post(
            f"/s/{study}/i/1",
            version=page.version,
            do="submit",
            reason="looked it up",
            **{**GOOD, "answer": "3"},
        ).status
        == 303
    )
    own = ada.get(f"/s/{study}/mine.json").json["reviews"]
    assert [(one["revision"], one["review"]["scores"]["answer"], one["reason"]) for one in own] == [
        (1, 4, ""),
        (2, 3, "looked it up"),
    ]
    assert "looked it up" in ada.get(f"/s/{study}/i/1").text
    # A hash over what is hidden could be tried out until it fits.
    with desk.database.read() as db:
        shown = db.scalar(select(Entry).where(Entry.study_id == study))
        assert {one["entry_sha256"] for one in own} == {sha256_hex(canonical(shown.content))}


def test_another_ones_review_is_out_of_reach_while_the_study_is_open(desk):
    study = desk.study(overlap=3)
    ada = desk.client("ada")
    for number in range(1, 7):
        assert review(ada, study, number, **GOOD, comment="only-mine-to-read").status == 303
    tried = {
        "ben": (
            "",
            "i/1",
            "done",
            "feedback",
            "mine.json",
            "mine.csv",
            "items",
            "items/1",
            "export.json",
            "agreement",
            "adjudicate/1",
            "log",
        ),
        "coco": (
            "",
            "progress",
            "agreement",
            "items",
            "items?show=all",
            "items/1",
            "trends",
            "export.json",
            "export.csv",
            "log",
            "close",
            "adjudicate/1",
            "i/1",
        ),
        "max": (
            "",
            "progress",
            "items",
            "items/1",
            "export.json",
            "adjudicate/",
            "adjudicate/1",
        ),
        "root": ("", "items/1", "export.json", "progress"),
    }
    for who, paths in tried.items():
        client = desk.client(who)
        for path in paths:
            reply = client.get(f"/s/{study}/{path}")
            assert "only-mine-to-read" not in reply.text, (who, path)
            assert "Ada" not in reply.text or who == "coco", (who, path)
        assert client.get(f"/s/{study}/items/1").status == 403
        assert client.get(f"/s/{study}/export.json").status == 403
    # Adjudicators read them under letters, auditors without names.
    for who, path in (("judy", "adjudicate/1"), ("aud", "items/1")):
        text = desk.client(who).get(f"/s/{study}/{path}").text
        assert "only-mine-to-read" in text
        assert "Ada" not in text
    assert "Reviewer A" in desk.client("judy").get(f"/s/{study}/adjudicate/1").text


def test_reviews_of_many_at_once_are_all_there_once(desk):
    people = {f"crowd{at}": "reviewer" for at in range(20)}
    study = desk.study(n=4, overlap=20, people=people)
    sent, wrong = [], []

    def work(who):
        client = desk.client(who)
        for number in range(1, 5):
            reply = review(client, study, number, **GOOD, comment=f"{who} {number}")
            (sent if reply.status == 303 else wrong).append(f"{who} {number}")

    threads = [threading.Thread(target=work, args=(who,)) for who in people]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    with desk.database.read() as db:
        found = [
            one.content["comment"]
            for one in db.scalars(
                select(Review).join(Assignment).where(Assignment.study_id == study)
            )
        ]
    assert not wrong
    assert sorted(found) == sorted(sent)
    assert len(found) == 80


@pytest.mark.slow
def test_kill_nine_loses_no_review_that_was_acknowledged(address, serve):
    database = open_database(address)
    study = furnish(database, name="killed", n=40, overlap=1, people={"ada": "reviewer"})
    server = serve(address)
    sent = []

    def work():
        client = signed_in(server.url, database, "ada")
        try:
            for number in range(1, 41):
                if review(client, study, number, **GOOD, comment=str(number)).status == 303:
                    sent.append(str(number))
        except (OSError, TypeError):
            pass  # the server is gone

    thread = threading.Thread(target=work)
    thread.start()
    while len(sent) < 12:
        pass
    server.kill()
    thread.join()
    server.start()
    with database.read() as db:
        found = [
            one.content["comment"]
            for one in db.scalars(
                select(Review).join(Assignment).where(Assignment.study_id == study)
            )
        ]
    assert set(sent) <= set(found)
    assert len(found) == len(set(found)) <= len(sent) + 1
    client = signed_in(server.url, database, "ada")
    assert client.get(f"/s/{study}/done").status == 200
    database.close()


def test_training_items_of_every_form_can_be_answered_and_are_explained(desk):
    for form in ("item", "pair", "answer", "preference", "judge"):
        made = training_entries(form)
        study = desk.study(form=form, entries=made, people={"ada": "reviewer"})
        ada = desk.client("ada")
        for number, one in enumerate(made, 1):
            expected = {k: str(v) for k, v in one.hidden["training"]["expected"].items()}
            more = (
                {"comment": "because", "option": "B"} if form == "item" else {"comment": "because"}
            )
            found = {entry.item: n for n, entry in numbers(desk, study, "ada")}[one.item]
            first = {k: v for k, v in expected.items() if k != "agree"}
            assert review(ada, study, found, **first, **more).status == 303, (form, number)
            if form == "judge":
                assert (
                    review(ada, study, found, agree=expected["agree"], comment="so").status == 303
                )
            text = html.unescape(ada.get(f"/s/{study}/i/{found}").text)
            assert one.hidden["training"]["why"] in text
    with desk.database.read() as db:
        assert db.get(Study, study).frozen_sha256 is None
        assert tickets.latest_of(db, db.scalar(select(Entry).where(Entry.study_id == study)))
        assert set(frozen.pseudonyms(db, study).values()) != {"Ada"}


def test_skipping_with_an_old_page_throws_no_word_away(desk):
    study = desk.study(n=2)
    ada, path = desk.client("ada"), f"/s/{study}/i/1"
    page = ada.get(path)
    ada.ask(
        "PUT",
        f"/api{path}/draft",
        {"fields": {"comment": "tab one"}, "version": int(page.version)},
    )
    reply = ada.post(path, version=page.version, do="skip", comment="tab two")
    assert reply.status == 409
    assert "tab one" in reply.text
    assert "tab two" in reply.text


@pytest.mark.parametrize("body", [b"email=a%00b&password=x", b"email=%ff%fe", b"csrf=%00"])
def test_posted_bytes_of_any_kind_break_nothing(desk, body):
    client = Client(desk.url)
    kinds = (
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=XX; charset=utf-7",
    )
    for kind in kinds:
        reply = client.ask("POST", "/login", body, headers={"content-type": kind})
        assert reply.status in (400, 401, 403, 429), (kind, reply.status)
    ada = desk.client("ada") if desk.study(n=1) else None
    assert ada.get("/s/a%00b/").status == 403
    assert desk.client("maker").get("/studies/new?margin=1e-300&population=10").status == 200


def test_letters_are_drawn_anew_for_every_item_so_that_nobody_learns_who_is_a(desk):
    study = desk.study(n=12)
    for who in ("ada", "ben", "cleo"):
        client = desk.client(who)
        for number in range(1, 13):
            assert review(client, study, number, **GOOD, comment=f"said by {who}").status == 303
    judy, firsts = desk.client("judy"), set()
    for number in range(1, 13):
        text = judy.get(f"/s/{study}/adjudicate/{number}").text
        firsts.add(re.search(r'data-review="A".*?said by (\w+)', text, re.DOTALL)[1])
    assert len(firsts) > 1  # all twelve the same by chance: once in 200,000 draws
