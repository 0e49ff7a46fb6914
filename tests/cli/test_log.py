"""Events for whoever operates runs: off unless asked for, one JSON object a line, nothing of
patients or keys in them.
"""

import json

import pytest
from tests import makers
from tests.commands import result_of, start_command
from tests.runner.engine.scripted_workers import workspace

SAID = "Rule binds courts, says somebody."
KEY = "sk-" + "b2" * 20


@pytest.fixture
def plan(tmp_path, monkeypatch, mock_server):
    monkeypatch.setenv("LOG_TEST_KEY", KEY)
    tested = [
        makers.fake("m1", reply=SAID),
        makers.endpoint(mock_server(), "m2", api_key_env="LOG_TEST_KEY"),
    ]
    options = {"task": "open", "judges": [j["id"] for j in makers.judges()]}
    return workspace(tmp_path, makers.open_items(6), *tested, *makers.judges(), **options)


def test_events_are_off_by_default(plan, tmp_path, cli, monkeypatch):
    monkeypatch.delenv("MEDASSAY_LOG", raising=False)
    code, out, errors = cli("run", plan)
    assert code == 0
    assert "stage_began" not in out + errors
    assert not [path for path in tmp_path.rglob("*") if "event" in path.name]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["option", "variable", "stderr"])
def test_events_tell_what_each_stage_did_and_nothing_that_was_said(
    plan, tmp_path, how, monkeypatch
):
    place = tmp_path / "events"
    options = {"option": ["--log", place], "variable": [], "stderr": ["--log=-", "--quiet"]}[how]
    if how == "variable":
        monkeypatch.setenv("MEDASSAY_LOG", str(place))
    code, out, errors = result_of(start_command("run", plan, *options))
    assert code == 0, errors
    text = errors if how == "stderr" else place.read_text()
    events = [json.loads(line) for line in text.splitlines()]
    assert all({"event", "level", "timestamp", "process"} <= event.keys() for event in events)
    stages = [event for event in events if event["event"] == "stage_ended"]
    assert [(one["stage"], one["done"], one["called"]) for one in stages] == [
        ("trials", 12, 12),
        ("verdicts", 36, 36),
    ]
    assert [event["event"] for event in events][-1] == "run_sealed"
    for secret in (SAID, KEY, "Explain rule"):
        assert secret not in text + out


def test_a_log_that_cannot_be_written_is_told_before_anything_is_asked(plan, tmp_path):
    code, _, errors = result_of(start_command("run", plan, "--log", tmp_path / "absent" / "events"))
    assert code in {2, 3}
    assert errors.count("\n") == 1
    assert "absent" in errors
    assert not (tmp_path / "runs").exists()
