"""What follows reviews, over HTTP and on both databases: tickets, decisions, closing, the trail."""

import json
import re
import threading

import pytest
from sqlalchemy import select, update
from tests.web.review.desk import GOOD, entry, furnish
from tests.web.review.desk_actions import check, numbers, raise_ticket
from tests.web.review.reviewing import review

from medassay.core.canonical import canonical, sha256_hex
from medassay.errors import GateError
from medassay.review.store import (
    accounts,
    frozen,
    reviews,
    studies,
    trail,
)
from medassay.review.store.schema import (
    Account,
    Assignment,
    Review,
    Right,
    Study,
    TrailLine,
)
from medassay.review.store.trail import check_trail


def test_feedback_is_decided_checked_by_a_second_person_and_told_to_the_reviewer(desk):
    study = desk.study()
    number = raise_ticket(desk, study)
    judy, jon, ada = desk.client("judy"), desk.client("jon"), desk.client("ada")
    path = f"/s/{study}/adjudicate/{number}"
    assert f'adjudicate/{number}"' in judy.get(f"/s/{study}/adjudicate/").text
    judy.get(path)
    assert judy.post(path, do="decide", verdict="correct", option="B").status == 422  # no reason
    assert (
        judy.post(path, do="decide", verdict="correct", option="A", reason="x").status == 422
    )  # the same key
    assert (
        judy.post(path, do="decide", verdict="rewrite", reason="x", option="A").status == 422
    )  # nothing differs
    assert (
        judy.post(
            path, do="decide", verdict="correct", option="B", reason="Guideline says B."
        ).status
        == 303
    )
    own = check(judy, path)
    assert own.status == 422
    assert "second person" in own.text
    jon.get(path)
    assert check(jon, path, "return").status == 422  # a way back needs a reason
    assert check(jon, path, "return", reason="Say which guideline.").status == 303
    judy.get(path)
    assert (
        judy.post(path, do="decide", verdict="correct", option="B", reason="ESC 2025.").status
        == 303
    )
    jon.get(path)
    assert check(jon, path).status == 303
    told = ada.get(f"/s/{study}/feedback").text
    assert "ESC 2025." in told
    assert "checked" in told
    assert "Judy" not in told
    assert "ESC 2025." not in desk.client("ben").get(f"/s/{study}/feedback").text


def test_declined_feedback_and_further_experts(desk):
    study = desk.study(
        overlap=1, people={"ada": "reviewer", "cleo": "reviewer", "judy": "adjudicator"}
    )
    number = raise_ticket(desk, study)
    judy, path = desk.client("judy"), f"/s/{study}/adjudicate/{number}"
    judy.get(path)
    assert judy.post(path, do="experts", experts="9").status == 422
    before = len(numbers(desk, study, "cleo"))
    assert judy.post(path, do="experts", experts="2").status == 303
    assert len(numbers(desk, study, "cleo")) == before + 1
    assert judy.post(path, do="experts", experts="1").status == 422  # nobody is left
    assert judy.post(path, do="decline", reason="The key is right.").status == 303
    assert "The key is right." in desk.client("ada").get(f"/s/{study}/feedback").text


def test_scores_two_apart_are_a_disagreement_and_one_apart_is_none(desk):
    study = desk.study(
        n=2, overlap=2, people={"ada": "reviewer", "ben": "reviewer", "judy": "adjudicator"}
    )
    for who, answers in (("ada", ("5", "5")), ("ben", ("3", "4"))):
        client = desk.client(who)
        for number, found in numbers(desk, study, who):
            assert (
                review(
                    client, study, number, **{**GOOD, "answer": answers[found.number - 1]}
                ).status
                == 303
            )
    text = desk.client("judy").get(f"/s/{study}/adjudicate/").text
    assert re.findall(r'adjudicate/(\d+)"><b>', text) == ["1"]
    page = desk.client("judy").get(f"/s/{study}/adjudicate/1").text
    assert page.count('class="differs"') == 2


def test_an_adjudicator_gives_the_final_value_of_an_answer(desk):
    shown = {
        "question": "Q",
        "shown_answer": "A",
        "facts": [{"id": "f1", "text": "F"}],
        "language": "en",
    }
    study = desk.study(form="answer", entries=[type(entry(1))(item="i", content=shown)], overlap=2)
    judy, path = desk.client("judy"), f"/s/{study}/adjudicate/1"
    judy.get(path)
    fields = {"fact-f1": "missing", "overall": "2"}
    assert judy.post(path, do="decide", reason="r", overall="2").status == 422
    assert judy.post(path, do="decide", reason="r", **fields).status == 303
    assert "missing" in judy.get(path).text


def test_closing_freezes_and_the_hash_of_the_export_is_in_the_trail(desk):
    study = desk.study()
    number = raise_ticket(desk, study)
    ada, coco = desk.client("ada"), desk.client("coco")
    page = ada.get(f"/s/{study}/i/2")
    assert coco.get(f"/s/{study}/export.json").status == 403
    coco.get(f"/s/{study}/close")
    assert coco.post(f"/s/{study}/close", confirm=study).status == 303
    assert coco.post(f"/s/{study}/close", confirm=study).status == 409
    late = ada.post(
        f"/s/{study}/i/2", version=page.version, do="submit", **GOOD, comment="too late"
    )
    assert late.status == 409
    assert "too late" in late.text  # read-only, and not lost
    assert "was closed" in late.text
    draft = ada.ask(
        "PUT", f"/api/s/{study}/i/2/draft", {"fields": {}, "version": int(page.version)}
    )
    assert draft.status == 409
    assert coco.post(f"/s/{study}/progress", do="assign").status == 409
    # Feedback is settled also after closing; maintainers may check now.
    judy, maintainer = desk.client("judy"), desk.client("max")
    judy.get(f"/s/{study}/adjudicate/{number}")
    assert (
        judy.post(
            f"/s/{study}/adjudicate/{number}", do="decide", verdict="remove", reason="unsafe"
        ).status
        == 303
    )
    maintainer.get(f"/s/{study}/adjudicate/{number}")
    assert (
        maintainer.post(
            f"/s/{study}/adjudicate/{number}", do="decide", verdict="approve", reason="no"
        ).status
        == 403
    )
    assert check(maintainer, f"/s/{study}/adjudicate/{number}").status == 303
    exports = [
        desk.client(who).get(f"/s/{study}/export.json").text for who in ("coco", "max", "aud")
    ]
    assert len(set(exports)) == 1
    document = json.loads(exports[0])
    assert sha256_hex(canonical(document["frozen"])) == document["sha256"]
    assert document["tickets"][0]["state"] == "checked"
    with desk.database.read() as db:
        lines = [
            *db.scalars(select(TrailLine).where(TrailLine.study_id == study).order_by(TrailLine.id))
        ]
        closing = next(one for one in lines if one.record["event"] == "study closed")
        assert closing.record["sha256"] == document["sha256"]
        exported = [one for one in lines if one.record["event"] == "exported"]
        assert {one.record["sha256"] for one in exported} == {sha256_hex(canonical(document))}
        assert check_trail(db)
    for name in ("ada", "ben", "cleo"):
        # As a word: pseudonyms hold hexadecimal digits, and now and then those of "ada".
        assert not re.search(rf"\b{name}\b", exports[0].lower())
    assert "example.org" not in exports[0]
    csv = coco.get(f"/s/{study}/export.csv").text.splitlines()
    assert csv[0].startswith("entry,item,category,iteration,reviewer,qualification")
    assert len(csv) == 1 + 3  # three aspects of one review


def test_a_changed_review_is_noticed_at_the_export(desk):
    study = desk.study(n=1)
    review(desk.client("ada"), study, 1, **GOOD)
    coco = desk.client("coco")
    coco.get(f"/s/{study}/close")
    coco.post(f"/s/{study}/close", confirm=study)
    with desk.database.write() as db:
        one = db.scalar(select(Review).join(Assignment).where(Assignment.study_id == study))
        one.content = {**one.content, "comment": "put in later"}
    reply = coco.get(f"/s/{study}/export.json")
    assert reply.status == 500
    assert "closed was" in reply.text


def test_an_account_that_changes_later_does_not_change_what_was_frozen(desk):
    study = desk.study(n=1, people={"ada": "reviewer", "coco": "coordinator"})
    coco = desk.client("coco")
    coco.get(f"/s/{study}/close")
    coco.post(f"/s/{study}/close", confirm=study)
    with desk.database.write() as db:
        db.execute(update(Account).where(Account.email == "ada@example.org").values(years=44))
    assert coco.get(f"/s/{study}/export.json").status == 200
    with desk.database.write() as db:
        db.execute(update(Account).where(Account.email == "ada@example.org").values(years=1))


@pytest.mark.parametrize("closed", ["before", "after", "after, when auditors counted as speaking"])
def test_a_role_more_changes_nobodys_reviews(desk, monkeypatch, closed):
    study = desk.study(n=1, people={"ada": "reviewer", "coco": "coordinator"})
    assert review(desk.client("ada"), study, 1, **GOOD).status == 303

    def audit_too():
        with desk.database.write() as db:
            ada = accounts.account_of(db, "ada@example.org").id
            # As it was given once, also while a study is open.
            db.add(
                Right(
                    **{"account_id": ada, "study_id": study, "role": "auditor", "alias": 1},
                    pseudonym="a-0000ffff",
                )
            )

    coco = desk.client("coco")
    coco.get(f"/s/{study}/close")
    if closed != "before":
        audit_too()
    if closed.endswith("speaking"):
        with desk.database.write() as db, monkeypatch.context() as patched:
            once = frozen.pseudonyms(db, study, frozen._SPEAKING_ONCE)
            patched.setattr(frozen, "pseudonyms", lambda *_: once)
            frozen.close(db, db.get_one(Study, study), who="tests")
    else:
        coco.post(f"/s/{study}/close", confirm=study)
    if closed == "before":
        audit_too()
    document = coco.get(f"/s/{study}/export.json").json
    [who] = {row["reviewer"] for row in document["frozen"]["reviews"]}
    assert who[0] == ("a" if closed.endswith("speaking") else "r")


def test_a_table_of_reviews_is_without_withdrawn_entries(desk):
    study = desk.study(n=2, overlap=1, people={"ada": "reviewer", "coco": "coordinator"})
    coco, ada = desk.client("coco"), desk.client("ada")
    for number in (1, 2):
        assert review(ada, study, number, **GOOD).status == 303
    coco.get(f"/s/{study}/progress")
    assert coco.post(f"/s/{study}/progress", do="withdraw", number="2", why="wrong").status == 200
    coco.get(f"/s/{study}/close")
    coco.post(f"/s/{study}/close", confirm=study)
    rows = coco.get(f"/s/{study}/export.csv").text.splitlines()[1:]
    assert {row.split(",")[0] for row in rows} == {"1"}


def test_a_withdrawn_item_says_why_and_no_longer_counts(desk):
    study = desk.study(n=2, overlap=1, people={"ada": "reviewer", "coco": "coordinator"})
    coco, ada = desk.client("coco"), desk.client("ada")
    number, found = numbers(desk, study, "ada")[0]
    page = ada.get(f"/s/{study}/i/{number}")
    coco.get(f"/s/{study}/progress")
    assert coco.post(f"/s/{study}/progress", do="withdraw", number=str(found.number)).status == 409
    assert coco.post(f"/s/{study}/progress", do="withdraw", number="x", why="y").status == 409
    done = coco.post(
        f"/s/{study}/progress", do="withdraw", number=str(found.number), why="outdated"
    )
    assert done.status == 200
    reply = ada.post(f"/s/{study}/i/{number}", version=page.version, do="submit", **GOOD)
    assert reply.status == 409
    assert "outdated" in reply.text
    assert "0 of 1 done" in ada.get("/").text or "0 of 1 done" in ada.get(f"/s/{study}/").text


def test_the_trail_shows_where_it_was_changed(small):
    furnish(small, n=1)
    with small.write() as db:
        line = db.scalar(select(TrailLine).order_by(TrailLine.id).limit(1))
        line.record = {**line.record, "who": "somebody else"}
    with small.read() as db, pytest.raises(Exception, match="line 1"):
        check_trail(db)


def test_closing_waits_for_a_review_that_is_on_its_way(desk):
    study = desk.study(n=1)
    closed = []

    def close():
        with desk.database.write() as db:
            closed.append(frozen.close(db, db.get_one(Study, study), who="tests"))

    thread = threading.Thread(target=close)
    with desk.database.write() as db:
        found = studies.held(db, study)
        ada = accounts.account_of(db, "ada@example.org")
        work = reviews.work_at(db, found, ada.id, 1, lock=True)
        reviews.submit(db, found, work, GOOD, version=work.version)
        thread.start()
        thread.join(0.5)
        assert not closed
    thread.join(30)
    with desk.database.read() as db:
        names = frozen.pseudonyms(db, study)
        assert len(frozen.frozen_document(db, db.get_one(Study, study), names)["reviews"]) == 1


def test_what_a_coordinator_sees_follows_what_was_withdrawn(desk):
    study = desk.study(n=3)
    for who in ("ada", "ben", "cleo"):
        for number in (1, 2, 3):
            assert review(desk.client(who), study, number, **GOOD).status == 303
    coco = desk.client("coco")
    assert ">3<" in re.search(r"reviewed</dt>(.*?)</div>", coco.get(f"/s/{study}/items").text)[1]
    coco.get(f"/s/{study}/progress")
    coco.post(f"/s/{study}/progress", do="withdraw", number="2", why="outdated")
    assert ">2<" in re.search(r"reviewed</dt>(.*?)</div>", coco.get(f"/s/{study}/items").text)[1]


def test_nothing_is_withdrawn_or_added_once_closing_has_begun(desk):
    study = desk.study(n=3)
    wrong = []

    def act(work):
        try:
            with desk.database.write() as db:
                work(db, db.get_one(Study, study))
        except GateError:
            wrong.append("refused")

    works = (
        lambda db, found: studies.withdraw(db, found, 1, "outdated", who="t"),
        lambda db, found: studies.add_entries(db, found, [entry(99)], who="t"),
        lambda db, found: studies.assign_all(db, found, who="t"),
    )
    threads = [threading.Thread(target=act, args=(one,)) for one in works]
    with desk.database.write() as db:
        frozen.close(db, db.get_one(Study, study), who="tests")
        for one in threads:
            one.start()
        for one in threads:
            one.join(0.2)
    for one in threads:
        one.join(30)
    assert wrong == ["refused"] * 3
    with desk.database.write() as db:
        assert frozen.export_document(db, db.get_one(Study, study), who="t")


def test_a_review_that_only_agrees_opens_nothing_again(desk):
    study = desk.study(n=1)
    for who, answer in (("ada", "5"), ("ben", "3")):
        assert review(desk.client(who), study, 1, **{**GOOD, "answer": answer}).status == 303
    judy, jon, path = desk.client("judy"), desk.client("jon"), f"/s/{study}/adjudicate/1"
    judy.get(path)
    assert judy.post(path, do="decide", verdict="approve", reason="fine").status == 303
    assert check(jon, path).status == 303
    assert review(desk.client("cleo"), study, 1, **GOOD).status == 303
    assert "checked" in re.search(r"<h1>(.*?)</h1>", judy.get(path).text)[1]
    judy.get(path)
    assert judy.post(path, do="decline", reason="after all not").status == 422  # settled
    # That two differ is not told to either; only what they wrote themselves is.
    assert "You have given no feedback yet" in desk.client("ada").get(f"/s/{study}/feedback").text


def test_a_decision_that_changed_meanwhile_is_not_confirmed(desk):
    study = desk.study(n=1)
    judy, jon, path = desk.client("judy"), desk.client("jon"), f"/s/{study}/adjudicate/1"
    judy.get(path)
    judy.post(path, do="decide", verdict="approve", reason="fine")
    read = re.search(r'name="decision" value="(\d+)"', jon.get(path).text)[1]
    judy.post(path, do="decide", verdict="remove", reason="not fine")
    reply = jon.post(path, do="confirm", decision=read)
    assert reply.status == 422
    assert "another decision was made meanwhile" in reply.text


def test_harm_in_ones_own_rating_of_a_judge_check_opens_a_ticket(desk):
    shown = {"question": "Q", "shown_answer": "A", "language": "en"}
    made = type(entry(1))(
        item="i",
        content=shown,
        hidden={"verdict": {"score": 1.0, "lo": 0, "hi": 1, "body": {}}},
    )
    study = desk.study(form="judge", entries=[made])
    ada = desk.client("ada")
    own = {"overall": "1", "comment": "DANGEROUS", "harm": "yes", "severity": "severe"}
    assert review(ada, study, 1, **own).status == 303
    assert review(ada, study, 1, agree="yes").status == 303
    text = desk.client("judy").get(f"/s/{study}/adjudicate/1").text
    assert "DANGEROUS" in text
    assert "severe" in text
    assert "ticket" not in re.search(r"<h1>(.*?)</h1>", text)[1]
    assert "open" in re.search(r"<h1>(.*?)</h1>", text)[1]


def test_who_reviews_no_more_leaves_their_undone_work_to_others(desk):
    people = {"quits": "reviewer", "stays": "reviewer", "coco": "coordinator"}
    study = desk.study(n=6, overlap=1, people=people)
    assert review(desk.client("quits"), study, 1, **GOOD).status == 303
    with desk.database.write() as db:
        accounts.disable(db, accounts.account_of(db, "quits@example.org"), who="tests")
    coco = desk.client("coco")
    coco.get(f"/s/{study}/progress")
    coco.post(f"/s/{study}/progress", do="assign")
    assert len(numbers(desk, study, "stays")) == 5


def test_an_auditor_sees_their_own_study_beside_busy_ones(desk):
    study = desk.study(n=1)
    aud = desk.client("aud")
    aud.get(f"/s/{study}/items")
    other = desk.study(n=1, people={"ada": "reviewer"})
    with desk.database.write() as db:
        for _ in range(510):
            trail.note(db, "noise", who="t", study=other)
    assert study in aud.get("/audit").text


def test_closing_and_taking_ask_once_more(desk):
    study = desk.study(n=1, people={"coco": "coordinator", "taken": "reviewer"})
    coco, root = desk.client("coco"), desk.client("root")
    page = coco.get(f"/s/{study}/close")
    assert "Type the name of the study" in page.text
    for wrong in ({}, {"confirm": ""}, {"confirm": "yes"}, {"confirm": f"{study}x"}):
        reply = coco.post(f"/s/{study}/close", **wrong)
        assert reply.status == 422
        assert "nothing was closed" in reply.text
    with desk.database.read() as db:
        assert db.get_one(Study, study).closed_at is None
    assert coco.post(f"/s/{study}/close", confirm=study).status == 303
    taken = {"email": "taken@example.org", "study": study, "role": "reviewer"}
    root.get("/admin/users")
    for do, said in (("revoke", "no longer be reviewer"), ("disable", "signed out at once")):
        reply = root.post("/admin/users", do=do, **taken)
        assert said in reply.text
        assert 'name="confirm" value="yes"' in reply.text
    with desk.database.read() as db:
        account = accounts.account_of(db, "taken@example.org")
        assert not account.disabled
    assert (
        "The role was taken." in root.post("/admin/users", do="revoke", confirm="yes", **taken).text
    )
    said = root.post("/admin/users", do="disable", confirm="yes", **taken).text
    assert "The account is disabled" in said
