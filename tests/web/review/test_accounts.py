"""Who gets in, and what a session keeps: links, sign-in, cookies, expired pages, on both databases."""

import html
import json
import re
import threading

import pytest
from sqlalchemy import select, update
from tests.web.review.desk import GOOD, PASSWORD, Client
from tests.web.review.desk_actions import (
    BAD,
    PERSON,
    invitation,
)
from tests.web.review.reviewing import review

from medassay.core.clock import now
from medassay.errors import InputError
from medassay.review.store import (
    accounts,
    frozen,
    links,
    sessions,
)
from medassay.review.store.database import later, open_database
from medassay.review.store.schema import (
    Assignment,
    Failure,
    Invitation,
    SignIn,
    Study,
)
from medassay.web.request_context import SESSION


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


def test_who_reviews_audits_no_open_study(desk):
    study = desk.study(n=1)
    with desk.database.write() as db:
        ada, aud = (accounts.account_of(db, f"{name}@example.org") for name in ("ada", "aud"))
        for account, role in ((ada, "auditor"), (aud, "reviewer")):
            with pytest.raises(InputError, match="reviewer and auditor of one study while it is"):
                accounts.grant(db, account, study, role, who="tests")
        frozen.close(db, db.get_one(Study, study), who="tests")
        accounts.grant(db, ada, study, "auditor", who="tests")


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


def test_a_version_of_thousands_of_digits_is_none(desk):
    study = desk.study(n=1)
    kept = json.dumps({"version": "9" * 5000, "comment": "x"})
    client = Client(desk.url)
    client.get("/login")
    back = client.post(
        "/login", email="ada@example.org", password=PASSWORD, next=f"/s/{study}/i/1", kept=kept
    )
    assert back.status == 303


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


def test_an_older_link_to_a_password_ends_with_the_newer_one(desk):
    desk.study(n=1, people={"pat": "reviewer"})
    with desk.database.write() as db:
        tokens = [links.invite(db, "pat@example.org", who="tests") for _ in range(2)]
    client = Client(desk.url)
    client.get(f"/invite/{tokens[1]}")
    assert client.post(f"/invite/{tokens[1]}", password=PASSWORD).status == 303
    assert client.get(f"/invite/{tokens[0]}").status == 404
    assert client.post(f"/invite/{tokens[0]}", password=PASSWORD[::-1]).status == 404


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
