"""Studies that ask: any engine finds the same, nothing is asked twice, and nothing but replies stays behind."""

import json
import os
import threading
import time

import pytest
from tests import makers
from tests.driving import asked, drive, ended, until
from tests.study.test_silver import GOOD, letters

from medassay.bank.folder import load_bank
from medassay.cli.main import call
from medassay.errors import IncompleteError, Interrupted
from medassay.model.spec import load_models
from medassay.pipeline import find_bank
from medassay.runner import stages
from medassay.runner.inquiry import inquire
from medassay.runner.progress import Stop
from medassay.storage.mirror import Mirror
from medassay.study.injection import injection_study
from medassay.study.rephrase import REPHRASINGS, Rephraser
from medassay.study.silver import Commission, write_silver


def judged(folder, engine, **judge):
    folder.mkdir(exist_ok=True)
    makers.write_models(folder, {**judge, "id": "judge", "family": "x"})
    items = [i for i in find_bank("demo", folder, folder / "lock").items if i.form == "open"]
    return injection_study(
        "judge",
        folder / "models.json",
        items,
        secrets={},
        workspace=folder,
        engine=engine,
    )


def test_many_workers_find_what_one_process_finds_about_a_judge(tmp_path, crew, mock_server):
    log = tmp_path / "asked"
    judge = makers.endpoint(mock_server("--log", log, "--fail", "0.1"))
    alone = judged(tmp_path / "a", "local", **judge)
    once = asked(log)
    made = crew()
    assert judged(tmp_path / "b", "crew", **judge) == alone
    assert alone["tried"] > 0
    assert asked(log) - once == once
    assert len(made[0].hands) == 3
    assert judged(tmp_path / "b", "crew", **judge) == alone
    assert asked(log) - once == once  # from the store
    assert [path.name for path in (tmp_path / "b").iterdir() if path.name == "studies"] == []


def test_of_lost_workers_no_stored_reply_is_asked_for_again(tmp_path, crew, mock_server):
    log, lost = tmp_path / "asked", []

    def lose(name, beat):
        if beat == 4 and len(lost) < 2:
            lost.append(name)
            return True
        return False

    crew(workers=2, lose=lose)
    url = mock_server("--log", log, "--delay-ms", "20")
    makers.write_models(tmp_path, makers.endpoint(url, "m", concurrency=2))
    texts = [f"Text {n}." for n in range(40)]
    said = rephraser(tmp_path, "crew").rephrase(texts)
    assert len(lost) == 2
    assert set(said) == set(texts)
    # Only what was under way at the two losses was asked twice; `asked` counts prompts, of which each text has one.
    assert 0 <= asked(log).total() - 40 * REPHRASINGS <= 2 * 2
    assert said == rephraser(tmp_path, "local").rephrase(texts)


def rephraser(folder, engine, name="m"):
    return Rephraser(name, folder / "models.json", secrets={}, workspace=folder, engine=engine)


def silver(folder, engine, *, accept_failures=False):
    bank = letters(folder, n=12)
    script = {"reply": GOOD, "replies": {"l-2": "no"}, "fail_items": ["l-5"]}
    makers.write_models(folder, {**makers.fake("strong", **script), "family": "acme"})
    wanted = Commission(
        maker="strong",
        models_file=folder / "models.json",
        to=folder / "silver",
        accept_failures=accept_failures,
    )
    return write_silver(bank, wanted, secrets={}, workspace=folder, engine=engine)


def test_references_come_back_in_order_and_failures_with_their_reasons(tmp_path, crew):
    crew()
    found = {}
    for engine in ("local", "crew"):
        made = silver(tmp_path / engine, engine, accept_failures=True)
        assert list(made.failed) == ["l-2", "l-5"]
        assert "scripted failure" in made.failed["l-5"]
        found[engine] = list(load_bank(tmp_path / engine / "silver", lock=None).items)
    assert found["local"] == found["crew"]
    with pytest.raises(IncompleteError, match=r"2 of 11 reports got no usable record, 'l-2'"):
        silver(tmp_path / "again", "crew")
    assert not (tmp_path / "again" / "silver").exists()


def test_a_judge_that_does_not_answer_is_told_and_what_it_said_is_kept(tmp_path, crew):
    crew()
    with pytest.raises(IncompleteError, match=r"verdicts have no answer: .*scripted overload"):
        judged(tmp_path, "crew", **makers.fake("judge", fail_every=1))


@pytest.mark.parametrize("engine", ["local", "crew"])
def test_ctrl_c_keeps_what_was_said_and_the_same_call_goes_on(
    tmp_path, crew, mock_server, engine, monkeypatch
):
    crew()
    log = tmp_path / "asked"
    url = mock_server("--log", log, "--delay-ms", "20")
    makers.write_models(tmp_path, makers.endpoint(url, "m", concurrency=2))
    texts = [f"Text {n}." for n in range(30)]
    stops = []
    monkeypatch.setattr(stages, "Stop", lambda: stops.append(Stop()) or stops[-1])

    def interrupt():
        until(log, 20)
        stops[0].ask()

    threading.Thread(target=interrupt).start()
    with pytest.raises(Interrupted, match=r"\d+ of 30 rephrasings are made and kept"):
        rephraser(tmp_path, engine).rephrase(texts)
    assert asked(log).total() < 30 * REPHRASINGS
    assert not (tmp_path / "studies").exists()
    rephraser(tmp_path, engine).rephrase(texts)
    assert asked(log).total() == 30 * REPHRASINGS


def test_what_a_killed_study_left_is_removed_a_day_later(tmp_path, mock_server):
    log = tmp_path / "asked"
    url = mock_server("--log", log, "--delay-ms", "20")
    judge = makers.endpoint(url, "judge", family="x", concurrency=1)
    makers.write_models(tmp_path, judge, makers.fake("m", reply="Said."))
    models = ("--models", tmp_path / "models.json", "--workspace", tmp_path)
    process = drive("study", "injection", "--judge", "judge", *models)
    until(log, 5, process)
    process.kill()
    process.communicate()
    [left] = (tmp_path / "studies").iterdir()
    assert list(left.glob("journal/*.jsonl"))
    rephraser(tmp_path, "local").rephrase(["one"])
    assert left.exists()  # it may be at work
    long_ago = time.time() - 2 * 24 * 3600
    for path in (left, *left.rglob("*")):
        os.utime(path, (long_ago, long_ago))
    rephraser(tmp_path, "local").rephrase(["one"])
    assert not (tmp_path / "studies").exists()
    code, out, errors = ended(
        drive("--json", "study", "injection", "--judge", "judge", *models)
    )
    assert code == 0, errors
    resumed = asked(log)
    whole = judged(tmp_path / "other", "local", **judge)
    assert json.loads(out) == {"schema_version": 1, **whole}
    assert (resumed - (asked(log) - resumed)).total() <= 1  # what was under way at the kill


def test_replies_to_a_study_live_in_an_object_store(tmp_path, crew, machine, mock_server):
    crew()
    log, address = tmp_path / "asked", f"{machine.bucket}/shop"
    makers.write_models(
        tmp_path, makers.endpoint(mock_server("--log", log), "judge", family="x")
    )
    command = ["study", "injection", "--judge", "judge", "--workspace", address]
    command += ["--models", str(tmp_path / "models.json"), "--engine", "crew"]
    assert call(command) == 0
    once = asked(log)
    names = Mirror(address).listed()
    assert names
    assert all(name.startswith("responses/") and "@" not in name for name in names)
    machine("two")
    assert call(command) == 0
    assert asked(log) == once


def test_nobody_is_asked_about_nothing(tmp_path):
    makers.write_models(tmp_path, makers.fake("m", reply="Said."))
    spec = load_models(tmp_path / "models.json")["m"]
    assert inquire("things", (), spec, secrets={}, workspace=tmp_path) == []
