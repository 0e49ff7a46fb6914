"""A clock that jumps by years, both ways: nothing is asked twice, nothing hangs, what is sealed
verifies.
"""

import ast
import datetime as real
import itertools
from types import SimpleNamespace

import pytest

import medassay
from medassay.core import clock
from medassay.publishing import history
from tests import makers
from tests.attack.servers import says
from tests.conftest import ROOT

YEARS = itertools.cycle([2031, 1999, 2026, 1970, 2099])


class Jumping(real.datetime):
    @classmethod
    def now(cls, tz=None):
        return real.datetime(next(YEARS), 5, 17, 3, 4, 5, tzinfo=tz)


def test_runs_and_sites_made_while_the_clock_jumps_verify(tmp_path, hostile, monkeypatch):
    jumping = SimpleNamespace(**{**vars(real), "datetime": Jumping})
    monkeypatch.setattr(clock, "dt", jumping)
    server = hostile(lambda path, headers, body: (200, {}, says("A")))
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(tmp_path, makers.endpoint(f"{server.url}/v1"))
    plan = makers.write_plan(tmp_path)
    run = medassay.run(plan, secrets={})
    asked = len(server.requests)
    medassay.run(plan, secrets={})  # the same answers, from the store
    assert len(server.requests) == asked
    for name in ("one", "two", "three"):
        medassay.publish(run, tmp_path / "site", publication=name)
    history.set_status(tmp_path / "site", "one", "retracted", reason="clock")
    report = medassay.verify(tmp_path / "site")
    assert report.ok, report.first_mismatch
    log = (tmp_path / "site" / "log.jsonl").read_text()
    assert len({year for year in ("2031", "1999", "1970", "2099") if f'"at":"{year}' in log}) >= 2


@pytest.fixture
def desk_clock(tmp_path, monkeypatch):
    """Return a new review database with one account, and how to set the clock that the app
    reads.
    """
    pytest.importorskip("sqlalchemy", reason="the extra [web] is not installed")
    from medassay.review.store import database, links, sessions
    from tests.web.review.desk import add_account

    def to(time):
        for module in (database, links, sessions):
            monkeypatch.setattr(module, "now", lambda: time)

    to("2026-05-17T08:00:00Z")
    opened = database.open_database(str(tmp_path / "review.sqlite"))
    with opened.write() as db:
        add_account(db, "ada")
    yield opened, to
    opened.close()


def test_failures_noted_by_a_clock_that_ran_ahead_lock_nobody_out(desk_clock):
    from medassay.review.store import sessions

    database, to = desk_clock
    to("2031-05-17T08:00:00Z")
    with database.write() as db:
        for _ in range(5):
            assert sessions.begin_try(db, "ada@example.org", "10.0.0.1")[0] == 0
        wait, _ = sessions.begin_try(db, "ada@example.org", "10.0.0.1")
        assert 0 < wait <= 60
    to("2026-05-17T08:10:00Z")
    with database.write() as db:
        assert sessions.begin_try(db, "ada@example.org", "10.0.0.1")[0] == 0


def test_a_step_back_of_a_minute_does_not_lengthen_a_wait(desk_clock):
    from medassay.review.store import sessions

    database, to = desk_clock
    with database.write() as db:
        for _ in range(5):
            sessions.begin_try(db, "ada@example.org", "10.0.0.1")
        to("2026-05-17T07:58:00Z")
        assert 0 < sessions.wait_of(db, "ada@example.org", "10.0.0.1") <= 2


def test_sessions_and_links_of_a_clock_that_ran_ahead_are_over(desk_clock):
    from medassay.review.store import links, sessions
    from medassay.review.store.accounts import account_of

    database, to = desk_clock
    opened = {}
    with database.write() as db:
        for year in (2026, 2031):
            to(f"{year}-05-17T08:00:00Z")
            cookie = sessions.open_session(db, account_of(db, "ada@example.org"))
            opened[year] = cookie, links.invite(db, "ben@example.org", who="ada", role="admin")
            assert sessions.session_of(db, cookie) is not None
    to("2026-05-17T09:00:00Z")
    with database.read() as db:
        assert sessions.session_of(db, opened[2031][0]) is None
        assert links.invitation(db, opened[2031][1]) is None
        assert links.invitation(db, opened[2026][1]) is not None


def test_no_duration_is_measured_by_the_clock_on_the_wall():
    for path in sorted((ROOT / "src" / "medassay").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            wall = (
                isinstance(node, ast.Attribute)
                and node.attr == "time"
                and isinstance(node.value, ast.Name)
                and node.value.id == "time"
            )
            assert not wall, path
