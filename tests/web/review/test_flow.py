"""The way of a study over HTTP, on both databases: invited, trained, reviewed, settled, closed,
exported.
"""

import html
import json
import re
import threading

import pytest
from sqlalchemy import select, update
from tests.web.review.desk import GOOD, PASSWORD, Client, entry, furnish, question, signed_in
from tests.web.review.reviewing import review

from medassay.core.canonical import canonical, sha256_hex
from medassay.errors import GateError
from medassay.review.store import (
    accounts,
    frozen,
    links,
    reviews,
    sessions,
    studies,
    tickets,
    trail,
)
from medassay.review.store.database import later, now, open_database
from medassay.review.store.schema import (
    Account,
    Assignment,
    Entry,
    Failure,
    Invitation,
    Review,
    SignIn,
    Study,
    TrailLine,
)
from medassay.review.store.trail import check_trail
from medassay.review.training import training_entries
from medassay.web.request_context import SESSION

BAD = {"question": "2", "answer": "1", "path": "4"}
PERSON = {
    "name": "New Person",
    "password": "a long password",
    "qualification": "specialist",
    "specialty": "cardiology",
    "years": "12",
    "agreed": "yes",
}


def numbers(desk, study, who):
    """Return a reviewer's numbers with the entries behind them."""
    with desk.database.read() as db:
        account = accounts.account_of(db, f"{who}@example.org")
        wanted = (
            select(Assignment.number, Entry)
            .join(Entry, Entry.id == Assignment.entry_id)
            .where(Assignment.study_id == study, Assignment.account_id == account.id)
            .order_by(Assignment.number)
        )
        return [(number, found) for number, found in db.execute(wanted)]


def check(client, path, do="confirm", **fields):
    """Read a decision and confirm it, or send it back."""
    found = re.search(r'name="decision" value="(\d+)"', client.get(path).text)
    return client.post(path, do=do, decision=found[1] if found else "0", **fields)


def problems(reply):
    found = re.findall(r'<p class="problem"[^>]*>(.*?)</p>', reply.text)
    return [html.unescape(one) for one in found]


def invitation(desk, study, email, role="reviewer"):
    with desk.database.write() as db:
        return links.invite(db, email, who="tests", study=study, role=role)


# The way in.


def test_the_first_start_gives_one_link_that_makes_one_admin(tmp_path, serve):
    address = str(tmp_path / "first.sqlite")
    server = serve(address)
    path = "/invite/" + _first_link(tmp_path, server)
    client = Client(server.url)
    assert client.get(path).status == 200
    short = client.post(path, name="Root", password="short", email="root@example.org")
    assert short.status == 422
    assert "12 characters" in short.text
    assert "Root" in short.text  # nothing has to be written twice
    made = client.post(path, name="Root", password=PASSWORD, email="Root@Example.org")
    assert made.status == 303
    assert client.get("/admin/users").status == 200
    assert Client(server.url).get(path).status == 404  # once
    server.stop()
    server.start()
    assert server.said().count("nobody administers") == 1


def _first_link(tmp_path, server):
    database = open_database(str(tmp_path / "first.sqlite"))
    with database.write() as db:  # the printed one is a hash here: print another like it
        found = links.invite_first(db)
    database.close()
    return found


def test_an_invited_reviewer_says_who_they_are_and_is_trained_first(desk):
    study = desk.study(training=True, n=2, overlap=1, people={"coco": "coordinator"})
    token = invitation(desk, study, "new@example.org")
    client = Client(desk.url)
    client.get(f"/invite/{token}")
    for field, needed in (
        ("name", "Write your name"),
        ("password", "12 characters"),
        ("qualification", "Choose your qualification"),
        ("specialty", "Name your specialty"),
        ("years", "0 to 80"),
        ("agreed", "without the agreement"),
    ):
        reply = client.post(f"/invite/{token}", **{**PERSON, field: ""})
        assert reply.status == 422
        assert needed in reply.text, field
    done = client.post(f"/invite/{token}", **PERSON)
    assert done.goes_to == f"/s/{study}/"
    with desk.database.read() as db:
        account = accounts.account_of(db, "new@example.org")
        assert (account.agreement, account.years) == (accounts.AGREEMENT, 12)
        assert account.agreed_at
        assert PERSON["password"] not in account.password
    desk.client("coco").post(f"/s/{study}/progress", do="assign")
    assert client.get(f"/s/{study}/i/3").goes_to == f"/s/{study}/i/1"  # training first
    for number in (1, 2):
        sent = review(client, study, number, **BAD, comment="wrong", option="B")
        assert sent.goes_to == f"/s/{study}/i/{number}"
        assert "What we would have said" in client.get(f"/s/{study}/i/{number}").text
    assert client.get(f"/s/{study}/i/3").status == 200
    assert Client(desk.url).get(f"/invite/{token}").status == 404


def test_a_link_ends_after_seven_days(desk):
    study = desk.study(n=1)
    token = invitation(desk, study, "late@example.org")
    with desk.database.write() as db:
        found = db.get(Invitation, sessions.digest(token))
        assert found.ends_at == later(found.made_at, days=7)
        found.ends_at = later(now(), seconds=-1)
    client = Client(desk.url)
    assert client.get(f"/invite/{token}").status == 404
    assert client.post(f"/invite/{token}", **PERSON).status == 404


def test_nobody_is_reviewer_and_adjudicator_of_one_study(desk):
    study = desk.study(n=1)
    root = desk.client("root")
    root.get("/admin/users")
    reply = root.post(
        "/admin/users", do="invite", email="ada@example.org", study=study, role="adjudicator"
    )
    assert reply.status == 422
    assert "nobody is reviewer and adjudicator" in reply.text
    reply = root.post(
        "/admin/users", do="invite", email="judy@example.org", study=study, role="reviewer"
    )
    assert reply.status == 422


def test_sign_in_slows_after_five_failures_and_says_nothing_of_who_is_there(desk):
    replies = []
    for email in ("ada@example.org", "not-there@example.org"):
        client = Client(desk.url)
        client.get("/login")
        for _ in range(5):
            reply = client.post("/login", email=email, password="wrong wrong wrong")
            assert reply.status == 401
        replies.append(re.sub(r'value="[^"]*"', "", reply.text))
        slowed = client.post("/login", email=email, password=PASSWORD)
        assert slowed.status == 429
        assert int(slowed.headers["retry-after"]) >= 1
    assert replies[0] == replies[1]
    desk.study(n=1)
    with desk.database.write() as db:
        db.execute(update(Failure).values(at=later(now(), minutes=-20)))
    assert client.post("/login", email="ben@example.org", password=PASSWORD).status == 303


def test_a_disabled_account_is_out_at_once(desk):
    study = desk.study(n=1, people={"gone": "reviewer"})
    gone, root = desk.client("gone"), desk.client("root")
    assert gone.get(f"/s/{study}/").status == 200
    root.get("/admin/users")
    root.post("/admin/users", do="disable", confirm="yes", email="gone@example.org")
    assert gone.get(f"/s/{study}/").status == 303
    last = root.post("/admin/users", do="disable", confirm="yes", email="root@example.org")
    assert last.status == 422
    assert "last admin" in last.text


def test_a_session_ends_after_twelve_idle_hours(desk):
    desk.study(n=1)
    client = desk.client("ben")
    token = sessions.digest(client.cookies[SESSION])
    with desk.database.write() as db:
        db.get(SignIn, token).seen_at = later(now(), hours=-11)
    assert client.get("/").status == 200
    with desk.database.write() as db:
        assert db.get(SignIn, token).seen_at > later(now(), minutes=-1)  # in use
        db.get(SignIn, token).seen_at = later(now(), hours=-13)
    assert client.get("/").status == 303


def test_the_cookie_is_of_this_host_only_and_no_script_reads_it(desk):
    desk.study(n=1)
    client = Client(desk.url)
    client.get("/login")
    reply = client.post("/login", email="cleo@example.org", password=PASSWORD)
    set_ = reply.headers["set-cookie"]
    assert reply.status == 303
    cookie = Client(desk.url, dict(client.cookies))
    assert cookie.get("/").status == 200
    for part in ("__Host-medassay", "HttpOnly", "Secure", "SameSite=lax", "Path=/"):
        assert part in set_, set_


# Reviewing.


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


def test_a_wrong_token_is_refused_and_the_text_is_kept(desk):
    study = desk.study(n=1)
    ada = desk.client("ada")
    page = ada.get(f"/s/{study}/i/1")
    reply = ada.post(
        f"/s/{study}/i/1",
        version=page.version,
        do="submit",
        **GOOD,
        comment="my words",
        csrf="0" * 64,
    )
    assert reply.status == 403
    assert "my words" in reply.text
    with desk.database.read() as db:
        assert db.scalar(select(Assignment.revision).where(Assignment.study_id == study)) == 0
    assert ada.post(f"/s/{study}/i/1", version=reply.version, do="submit", **GOOD).status == 303
    api = ada.ask(
        "PUT",
        f"/api/s/{study}/i/1/draft",
        {"fields": {}, "version": 0},
        headers={"x-csrf-token": "wrong"},
    )
    assert api.status == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "http://127.0.0.1:1"])
def test_a_request_from_another_site_is_refused(desk, origin):
    desk.study(n=1)
    ada = desk.client("ada")
    reply = ada.ask("POST", "/logout", headers={"origin": origin})
    assert reply.status == 403
    assert ada.get("/").status == 200


def test_what_was_written_survives_the_end_of_the_session(desk):
    study = desk.study(n=1, people={"lou": "reviewer"})
    lou = desk.client("lou")
    page = lou.get(f"/s/{study}/i/1")
    with desk.database.write() as db:
        db.delete(db.get(SignIn, sessions.digest(lou.cookies[SESSION])))
    fields = {**GOOD, "comment": "<b>kept & safe</b>"}
    reply = lou.post(f"/s/{study}/i/1", version=page.version, do="submit", **fields)
    assert reply.status == 401
    kept = html.unescape(re.search(r'name="kept" value="([^"]*)"', reply.text)[1])
    assert json.loads(kept)["comment"] == fields["comment"]
    back = lou.post(
        "/login", email="lou@example.org", password=PASSWORD, next=f"/s/{study}/i/1", kept=kept
    )
    assert back.goes_to == f"/s/{study}/i/1"
    shown = lou.get(f"/s/{study}/i/1").text
    assert "&lt;b&gt;kept &amp; safe&lt;/b&gt;" in shown
    assert 'name="question" value="5" checked' in shown


@pytest.mark.parametrize(
    "path", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x"]
)
def test_sign_in_leads_to_pages_of_this_server_only(desk, path):
    desk.study(n=1)
    client = Client(desk.url)
    client.get("/login")
    reply = client.post("/login", email="ben@example.org", password=PASSWORD, next=path)
    assert reply.goes_to == "/"
    assert client.get(f"/language/de?next={path}").goes_to == "/"


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


# Blindness.


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


# Settling.


def _ticket(desk, study, who="ada"):
    """Let a reviewer give feedback on their first item; return the entry's number."""
    assert review(desk.client(who), study, 1, **BAD, option="B", comment="B is right").status == 303
    return numbers(desk, study, who)[0][1].number


def test_feedback_is_decided_checked_by_a_second_person_and_told_to_the_reviewer(desk):
    study = desk.study()
    number = _ticket(desk, study)
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
    number = _ticket(desk, study)
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


# Closing.


def test_closing_freezes_and_the_hash_of_the_export_is_in_the_trail(desk):
    study = desk.study()
    number = _ticket(desk, study)
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
        assert len(frozen.frozen_document(db, db.get_one(Study, study))["reviews"]) == 1


def test_scripts_are_trained_first_too(desk):
    study = desk.study(training=True, n=1)
    ada = desk.client("ada")
    for method, path, body in (
        ("GET", "", None),
        ("POST", "/review", {"fields": GOOD, "version": 0}),
    ):
        reply = ada.ask(method, f"/api/s/{study}/i/3{path}", body)
        assert reply.status == 403
        assert "training" in reply.json["error"]["message"]
    assert ada.get(f"/api/s/{study}/i/1").status == 200


def test_many_tries_at_once_are_slowed_like_one_after_the_other(desk):
    codes = []

    def guess():
        client = Client(desk.url)
        client.get("/login")
        codes.append(
            client.post("/login", email="guessed@example.org", password="wrong wrong wr").status
        )

    threads = [threading.Thread(target=guess) for _ in range(16)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    with desk.database.write() as db:
        db.execute(update(Failure).values(at=later(now(), minutes=-20)))
    assert set(codes) == {401, 429}
    assert codes.count(401) <= 12  # five, and what PostgreSQL lets pass at the very same moment


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


# What an attack and a reading found.


def test_a_link_that_gives_a_role_takes_no_account_over(desk):
    study = desk.study(n=1)
    with desk.database.write() as db:
        token = links.invite(db, "root@example.org", who="tests", study=study, role="reviewer")
    thief = Client(desk.url)
    assert "sign in, then open the link again" in thief.get(f"/invite/{token}").text
    assert thief.post(f"/invite/{token}", **PERSON).status == 422
    assert thief.get("/admin/users").status == 303
    with desk.database.read() as db:
        assert sessions.is_password(accounts.account_of(db, "root@example.org"), PASSWORD)
    root = desk.client("root")
    root.get(f"/invite/{token}")
    assert root.post(f"/invite/{token}").goes_to == f"/s/{study}/"  # whom it names, signed in
    coco = desk.client("coco")
    coco.get(f"/s/{study}/progress")
    given = coco.post(f"/s/{study}/progress", do="invite", email="nobody@example.org")
    assert "/invite/" not in given.text.replace("hearts", "")  # who has an account needs no link
    assert "The role was given." in given.text


def test_a_second_first_link_makes_no_second_admin(small):
    with small.write() as db:
        tokens = [links.invite_first(db) for _ in range(2)]
        profile = accounts.Profile(name="Root", password=PASSWORD, email="root@example.org")
        links.accept(db, tokens[0], profile)
        other = accounts.Profile(name="Thief", password=PASSWORD, email="thief@example.org")
        with pytest.raises(accounts.ProfileError, match="has an admin by now"):
            links.accept(db, tokens[1], other)


def test_what_one_wrote_reaches_no_other_who_signs_in_behind_them(desk):
    study = desk.study(n=2)
    ada, ben = desk.client("ada"), desk.client("ben")
    own = ben.get(f"/s/{study}/i/1").version
    ben.ask(
        "PUT",
        f"/api/s/{study}/i/1/draft",
        {"fields": {"comment": "of Ben"}, "version": int(own)},
    )
    page = ada.get(f"/s/{study}/i/1")
    owner = re.search(r'name="owner" value="(\d+)"', page.text)[1]
    ada.cookies[SESSION] = "ended"
    reply = ada.post(f"/s/{study}/i/1", version=page.version, owner=owner, comment="SECRET of Ada")
    kept = html.unescape(re.search(r'name="kept" value="([^"]*)"', reply.text)[1])
    fields = {"password": PASSWORD, "next": f"/s/{study}/i/1", "kept": kept}
    back = ada.post("/login", email="ben@example.org", **fields)
    assert back.goes_to == f"/s/{study}/i/1"
    assert "SECRET" not in ada.get(f"/s/{study}/i/1").text
    assert "of Ben" in ada.get(f"/s/{study}/i/1").text


def test_a_newer_draft_is_not_overwritten_by_what_an_ended_session_held(desk):
    study = desk.study(n=1)
    ada, other = desk.client("ada"), desk.client("ada")
    page = ada.get(f"/s/{study}/i/1")
    ada.cookies[SESSION] = "ended"
    reply = ada.post(f"/s/{study}/i/1", version=page.version, comment="old words")
    kept = html.unescape(re.search(r'name="kept" value="([^"]*)"', reply.text)[1])
    other.get("/me")
    other.ask(
        "PUT", f"/api/s/{study}/i/1/draft", {"fields": {"comment": "newer words"}, "version": 0}
    )
    back = ada.post(
        "/login", email="ada@example.org", password=PASSWORD, next=f"/s/{study}/i/1", kept=kept
    )
    assert back.status == 200
    assert "old words" in back.text  # to be sent again, or not
    assert "newer words" in other.get(f"/s/{study}/i/1").text


def test_what_an_adjudicator_wrote_survives_an_expired_page_and_an_ended_session(desk):
    study = desk.study(n=1)
    judy, path = desk.client("judy"), f"/s/{study}/adjudicate/1"
    judy.get(path)
    judy.token, good = "0" * 64, judy.token
    reply = judy.post(path, do="decline", reason="long thought about")
    assert reply.status == 403
    assert "long thought about" in reply.text
    assert (
        judy.post(path, do="decline", reason="long thought about").status == 303
    )  # with the page's new token
    assert judy.token == good
    judy.cookies[SESSION] = "ended"
    reply = judy.post(path, do="decline", reason="thought about again")
    kept = html.unescape(re.search(r'name="kept" value="([^"]*)"', reply.text)[1])
    back = judy.post("/login", email="judy@example.org", password=PASSWORD, next=path, kept=kept)
    assert "thought about again" in back.text
    assert f'action="{path}"' in back.text


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


def test_an_auditor_sees_their_own_study_beside_busy_ones(desk):
    study = desk.study(n=1)
    aud = desk.client("aud")
    aud.get(f"/s/{study}/items")
    other = desk.study(n=1, people={"ada": "reviewer"})
    with desk.database.write() as db:
        for _ in range(510):
            trail.note(db, "noise", who="t", study=other)
    assert study in aud.get("/audit").text


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


def test_closing_and_taking_ask_once_more(desk):
    study = desk.study(n=1)
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
    taken = {"email": "ada@example.org", "study": study, "role": "reviewer"}
    root.get("/admin/users")
    for do, said in (("revoke", "no longer be reviewer"), ("disable", "signed out at once")):
        reply = root.post("/admin/users", do=do, **taken)
        assert said in reply.text
        assert 'name="confirm" value="yes"' in reply.text
    with desk.database.read() as db:
        account = accounts.account_of(db, "ada@example.org")
        assert not account.disabled
    assert (
        "The role was taken." in root.post("/admin/users", do="revoke", confirm="yes", **taken).text
    )
    said = root.post("/admin/users", do="disable", confirm="yes", **taken).text
    assert "The account is disabled" in said
