"""A clock that jumps by years, both ways: nothing is asked twice, nothing hangs, what is sealed verifies."""

import ast
import datetime as real
import itertools
from types import SimpleNamespace

import medassay
from medassay import pipeline
from medassay.audit import history
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
    monkeypatch.setattr(pipeline, "dt", jumping)
    monkeypatch.setattr(history, "dt", jumping)
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
    assert (
        len({year for year in ("2031", "1999", "1970", "2099") if f'"at":"{year}' in log}) >= 2
    )


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
