"""What records need is counted before anything is asked: by max_tokens, and by the window."""

import json

import pytest
from tests import makers
from werkzeug import Response

import medassay
from medassay import pipeline
from medassay.errors import IncompleteError
from medassay.runner.preview import preview

N = 4


def served(url, **more):
    return makers.endpoint(url, name="m", location="local", **more)


def workspace(folder, model, **plan):
    items = makers.record_items(N)
    makers.write_bank(folder / "bank", items, name="records", domains=["records"])
    makers.write_models(folder, model)
    return makers.write_plan(folder, task="record", models=["m"], **plan)


def limits(folder, **more):
    return preview(workspace(folder, served("http://127.0.0.1:9/v1", **more))).limits


def test_a_limit_below_the_median_reference_is_told_with_its_number(tmp_path):
    [line] = limits(tmp_path, max_tokens=64)
    assert "max_tokens is 64" in line
    assert "estimated, 3 characters each" in line
    assert "models file" in line


def test_room_enough_says_nothing(tmp_path):
    assert limits(tmp_path, max_tokens=2048) == []
    assert limits(tmp_path / "window", max_tokens=2048, context=100_000) == []


def test_max_tokens_is_lowered_to_what_the_window_leaves(tmp_path):
    # Prompts have about 600 tokens by the estimate, the median record about 150.
    [line] = limits(tmp_path, max_tokens=2048, context=1500)
    assert "window of 1,500 tokens" in line
    assert "lowered from 2,048 to" in line
    assert f"{N} items" in line


def test_an_item_that_leaves_no_room_is_refused_by_name_before_any_call(tmp_path):
    plan = workspace(tmp_path, served("http://127.0.0.1:9/v1", max_tokens=512, context=300))
    told = preview(plan)
    [line] = told.limits
    assert f"{N} items will not be asked" in line
    assert "r-00 (prompt of " in line
    assert told.calls == 0
    lines = []
    with pytest.raises(IncompleteError):
        pipeline.run(plan, secrets={}, tell=lines.append)
    assert lines == [line]
    [folder] = (tmp_path / "runs").iterdir()
    journal = next((folder / "journal").glob("*.jsonl")).read_text(encoding="utf-8")
    assert "item 'r-00' is not asked: its prompt of" in journal


def test_the_lowered_limit_is_what_is_sent_and_stands_in_the_trial(tmp_path, httpserver):
    sent = []

    def reply(request):
        sent.append(request.json["max_tokens"])
        choice = {"message": {"content": "{}"}, "finish_reason": "stop"}
        return Response(json.dumps({"choices": [choice]}), content_type="application/json")

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(reply)
    model = served(httpserver.url_for("/v1"), max_tokens=2048, context=1500)
    run = pipeline.run(workspace(tmp_path, model), secrets={}, tell=lambda line: None)
    trials = [json.loads(line) for line in (run.path / "trials.jsonl").read_text().splitlines()]
    assert sorted(sent) == sorted(trial["max_tokens"] for trial in trials)
    assert all(0 < limit < 1500 for limit in sent)
    assert medassay.verify(run.path).ok


def test_other_tasks_know_no_such_limit(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(tmp_path, served("http://127.0.0.1:9/v1", max_tokens=16, context=64))
    assert not preview(makers.write_plan(tmp_path, models=["m"])).limits
