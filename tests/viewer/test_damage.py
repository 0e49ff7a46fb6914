"""Runs that are damaged, changed, replaced or hostile: each says what is wrong with it, and the
others are shown.
"""

import json
import os
import shutil
import signal
import time

import pytest
from tests import makers
from tests.viewer.journals import journal_of

import medassay
from medassay.errors import InputError, IntegrityError
from medassay.publishing.tombstone import forget
from medassay.storage.run import open_run
from medassay.viewer.index import RunIndex, cache_folder
from medassay.viewer.place import ViewedPlace
from medassay.viewer.prompts import SentPrompts
from medassay.viewer.search import find_trials, read_filter
from medassay.viewer.trial import trial_detail


def changed(path, old, new, count=1):
    path.chmod(0o644)
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, count))


def indexed(run):
    index = RunIndex(run)
    index.catch_up()
    return index


def test_what_was_deleted_by_law_leaves_the_cache(sealed):
    index = indexed(sealed)
    assert find_trials(index, read_filter({"text": "appeal"})).total == 40
    forget("law-03", sealed.path.parents[1], reason="request", at="2026-11-26T00:00:00Z")
    assert not list(cache_folder(sealed).glob("*"))
    assert index.is_stale
    index.close()
    after = indexed(open_run(sealed.path))
    assert find_trials(after, read_filter({"text": "appeal"})).total == 36
    for number in range(after.n_trials):
        trial_detail(after, number)
    after.close()


def test_looking_at_retrieved_passages_writes_nothing(tmp_path, cache):
    makers.write_index(tmp_path / "w")
    plan = makers.workspace(
        tmp_path / "w",
        makers.pathway_items(),
        makers.fake("m", reply="B"),
        settings=["rag"],
        retrieval={"index": "index", "k": 1},
    )
    makers.write_bank(tmp_path / "w" / "bank", makers.pathway_items(), domains=["gout", "anaemia"])
    run = medassay.run(plan, secrets={})
    [stored] = (tmp_path / "w" / "retrieved").glob("*.jsonl")
    with stored.open("ab") as file:
        file.write(b'{"key": "half a li')  # somebody is writing
    before = stored.read_bytes()
    trial = next(iter(run.trials()))
    assert SentPrompts(run).of_trial(trial, "0" * 64).messages
    assert stored.read_bytes() == before
    shutil.rmtree(tmp_path / "w" / "retrieved")
    assert not SentPrompts(run).of_trial(trial, "0" * 64).messages
    assert not (tmp_path / "w" / "retrieved").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"repeat":1', b'"repeat":9223372036854775808'),
        (b'"prompt_tokens":', b'"prompt_tokens":9223372036854775808,"x":'),
        (b'"outcome":"answered"', b'"outcome":[]'),
        (b'"item":"law-05"', b'"item":null'),
    ],
)
def test_a_line_that_no_database_holds_is_told_and_the_others_are_read(sealed, tmp_path, old, new):
    run, records = journal_of(sealed, tmp_path / "damaged", lines=0)
    at = next(n for n, line in enumerate(records) if old in line)
    bad = records[at].replace(old, new)
    journal = run.path / "journal"
    (journal / "d-1.jsonl").write_bytes(b"".join([*records[:at], bad, *records[at + 1 :]]))
    (journal / "d-2.jsonl").write_bytes(records[-1])
    index = RunIndex(run)
    with pytest.raises(IntegrityError, match=r"journal/d-1\.jsonl at byte \d+: no such record"):
        index.catch_up()
    numbers = find_trials(index, read_filter({})).numbers
    assert index.n_trials == len(numbers) >= at  # what stands before it, and the other segment
    index.close()


def test_the_reader_outlives_a_damaged_run_and_is_started_again(sealed, tmp_path):
    workspace = sealed.path.parents[1]
    bad = workspace / "runs" / "bad-1"
    shutil.copytree(sealed.path, bad)
    changed(bad / "trials.jsonl", b'"repeat":1', b'"repeat":9223372036854775808')
    place = ViewedPlace(str(workspace))
    place.start()
    try:
        place.open("bad-1")
        good = place.open(sealed.path.name)
        deadline = time.monotonic() + 60
        while good.index.n_trials < 80 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert good.index.n_trials == 80
        first = place._follower
        assert first.poll() is None
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        place.open(sealed.path.name)
        assert place._follower.poll() is None
    finally:
        place.stop()


def test_one_run_that_cannot_be_read_does_not_hide_the_others(sealed):
    runs = sealed.path.parent
    for name, old, new in (
        ("task-1", b'"task":"closed"', b'"task":"future_task"'),
        ("statistics-1", b'"domains"', b'"domain"'),
    ):
        shutil.copytree(sealed.path, runs / name)
        file = "manifest.json" if name == "task-1" else "statistics.json"
        changed(runs / name / file, old, new, -1)
    open_one, _ = journal_of(open_run(runs / "task-1"), sealed.path.parents[1] / "open", lines=3)
    shutil.move(open_one.path, runs / "open-1")
    (runs / "ünï cöde").mkdir()
    (runs / "ünï cöde" / "manifest.json").write_text("{")
    place = ViewedPlace(str(sealed.path.parents[1]))
    summaries = {summary.name: summary for summary in place.summaries()}
    assert summaries[sealed.path.name].state == "sealed"
    assert summaries["open-1"].state == "unfinished"
    assert "future_task" in summaries["open-1"].reason
    assert summaries["statistics-1"].state == "unreadable"
    assert summaries["ünï cöde"].state == "unreadable"
    place.stop()


def test_the_folder_that_was_named_is_the_one_that_is_shown(sealed, tmp_path):
    own = tmp_path / "elsewhere" / "mine"
    shutil.copytree(sealed.path, own)
    other, _ = journal_of(sealed, tmp_path / "other", lines=2)
    shutil.copytree(other.path, tmp_path / "elsewhere" / "runs" / "mine")
    place = ViewedPlace(str(own))
    assert place.open("mine").run.path == own.resolve()
    place.stop()


def test_a_run_made_anew_under_its_name_is_not_taken_for_the_old_one(sealed, tmp_path):
    place = ViewedPlace(str(sealed.path.parents[1]))
    name = sealed.path.name
    place.open(name).index.catch_up()
    assert place.summary(name).trials == 80
    shutil.rmtree(sealed.path)
    another = medassay.run(
        makers.workspace(tmp_path / "again", makers.law_items(), makers.fake("m", reply="A")),
        secrets={},
    )
    fresh, _ = journal_of(another, tmp_path / "fresh", lines=5)
    shutil.copytree(fresh.path, sealed.path)
    summary = place.summary(name)
    assert (summary.state, summary.trials, summary.models) == ("unfinished", 5, ["m"])
    place.stop()


def test_an_index_that_was_removed_is_made_anew_while_it_is_looked_at(sealed):
    place = ViewedPlace(str(sealed.path))
    viewed = place.open(place.only)
    viewed.index.catch_up()
    shutil.rmtree(cache_folder(sealed))
    again = place.open(place.only)
    assert again is not viewed
    again.index.catch_up()
    assert again.index.n_trials == 80
    place.stop()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("scores.jsonl", lambda lines: [*lines[:10], *lines[11:]], "not the score of the trial"),
        ("scores.jsonl", lambda lines: lines[:-1], "not the score of the trial"),
        ("scores.jsonl", None, "scores.jsonl: missing"),
        ("trials.jsonl", None, "trials.jsonl: missing"),
        ("trials.jsonl", os.mkfifo, "no plain file"),
        ("scores.jsonl", os.mkdir, "no plain file"),
    ],
)
def test_files_that_do_not_belong_together_are_told(sealed, name, change, message):
    path = sealed.path / name
    lines = path.read_bytes().splitlines(keepends=True)
    path.unlink()
    if change in (os.mkfifo, os.mkdir):
        change(path)
    elif change is not None:
        path.write_bytes(b"".join(change(lines)))
    index = RunIndex(sealed)
    with pytest.raises(IntegrityError, match=message):
        while index.catch_up(5):
            pass
    index.close()


def test_a_verdict_on_no_trial_is_told(tmp_path, cache):
    makers.workspace(
        tmp_path / "w", makers.open_items(3), makers.fake("m", reply="Rule."), *makers.judges()
    )
    names = ["judge-alpha", "judge-beta", "judge-gamma"]
    plan = makers.write_plan(tmp_path / "w", models=["m"], judges=names, task="open")
    run = medassay.run(plan, secrets={})
    path = run.path / "verdicts.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    stray = json.loads(lines[0]) | {"item": "open-000x"}
    path.chmod(0o644)
    path.write_bytes(b"".join([*lines[:3], json.dumps(stray).encode() + b"\n", *lines[3:]]))
    index = RunIndex(run)
    with pytest.raises(IntegrityError, match=r"verdicts\.jsonl at byte \d+: a verdict on no trial"):
        while index.catch_up(5):
            pass
    index.close()


def test_a_page_beyond_the_last_is_the_last(sealed):
    index = indexed(sealed)
    found = find_trials(index, read_filter({"page": "99"}))
    assert (found.page, found.n_pages, len(found.numbers)) == (2, 2, 30)
    index.close()


def test_a_path_of_any_name_is_followed(sealed, tmp_path):
    odd = tmp_path / "line\nend and \udcff byte"
    shutil.copytree(sealed.path.parents[1], odd)
    place = ViewedPlace(str(odd))
    place.start()
    viewed = place.open(sealed.path.name)
    deadline = time.monotonic() + 60
    while viewed.index.n_trials < 80 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert viewed.index.n_trials == 80
    place.stop()
    with pytest.raises(InputError):
        ViewedPlace(str(tmp_path / "no\udcffthing"))
