"""The index of a run says what its files say, sealed or growing, and nothing is written there."""

import json
import os
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import makers
from tests.viewer.journals import journal_of

import medassay
from medassay.core.records.answer import OUTCOMES
from medassay.core.records.trial import TRIAL_KEY
from medassay.errors import IncompleteError, InputError, IntegrityError, UsageError
from medassay.storage.run import Run
from medassay.viewer.entry import GRADES
from medassay.viewer.index import RunIndex, cache_folder, remove_unused
from medassay.viewer.search import find_trials, read_filter, words_of
from medassay.viewer.trial import trial_detail, trial_rows


def files_of(folder):
    return {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def found(index, **query):
    """Return the places of all trials that a query finds, page by page."""
    places, page = [], 1
    while True:
        page_found = find_trials(index, read_filter({**query, "page": str(page)}))
        rows = trial_rows(index, page_found.numbers)
        places += [row.place for row in rows]
        if len(places) >= page_found.total or not rows:
            assert len(places) == page_found.total
            return places
        page += 1


def test_filters_find_what_the_files_hold(sealed):
    before = files_of(sealed.path)
    index = RunIndex(sealed)
    assert index.catch_up() == 80
    frame = sealed.to_pandas()
    for query, expected in (
        ({}, frame),
        ({"model": "always-b"}, frame[frame.model == "always-b"]),
        ({"model": "nobody"}, frame[:0]),
        ({"outcome": "unparsed"}, frame[frame.outcome == "unparsed"]),
        ({"outcome": "refused"}, frame[frame.outcome == "refused"]),
        ({"outcome": "failed"}, frame[frame.outcome == "failed"]),
        ({"grade": "right"}, frame[frame.score == 1]),
        (
            {"grade": "wrong", "model": "mixed"},
            frame[(frame.score == 0) & (frame.model == "mixed")],
        ),
        ({"grade": "none"}, frame[frame.score.isna()]),
        ({"value": "B"}, frame[frame.value == "B"]),
        ({"item": "law-03"}, frame[frame.item == "law-03"]),
        ({"least": "10", "most": "20"}, frame[frame.text.str.len().between(10, 20)]),
        ({"text": "appeal"}, frame[frame.text.str.contains("appeal", na=False)]),
        ({"text": "appeal -neither"}, frame[frame.model == "always-b"]),
        ({"text": '"of the appeal"'}, frame[frame.model == "always-b"]),
        ({"text": "app*"}, frame[frame.text.str.contains("appeal", na=False)]),
        ({"text": '"appeal the"'}, frame[:0]),
        ({"text": "-appeal"}, frame[~frame.text.str.contains("appeal", na=False)]),
    ):
        places = [tuple(row) for row in expected[list(TRIAL_KEY)].itertuples(index=False)]
        assert found(index, **query) == places, query
    index.close()
    assert files_of(sealed.path) == before


@pytest.mark.parametrize("sort", ["score", "length", "seconds", "tokens", "cost", "item", "spread"])
@pytest.mark.parametrize("down", ["", "yes"])
def test_sorts_order_all_and_leave_what_has_no_value_for_the_end(sealed, sort, down):
    index = RunIndex(sealed)
    index.catch_up()
    wish = read_filter({"sort": sort, "down": down})
    rows = trial_rows(index, find_trials(index, wish).numbers)
    name = {"tokens": "completion_tokens"}.get(sort, sort)
    values = [getattr(row, name) for row in rows]
    present = [value for value in values if value is not None]
    assert values == sorted(present, reverse=bool(down)) + [None] * (len(values) - len(present))
    index.close()


def test_a_row_is_the_trial(sealed):
    index = RunIndex(sealed)
    index.catch_up()
    trials = {trial.place: trial for trial in sealed.trials()}
    scores = {score.place: score for score in sealed.scores()}
    numbers = find_trials(index, read_filter({"model": "mixed"})).numbers
    for row in trial_rows(index, numbers):
        trial, score = trials[row.place], scores[row.place]
        assert OUTCOMES[row.outcome] == trial.outcome
        assert (row.value, row.score) == (trial.value, score.score)
        assert row.length == len(trial.text or "")
        grade = {1: "right", 0: "wrong"}.get(score.score)
        assert (row.grade is None and grade is None) or GRADES[row.grade] == grade
        usage = row.prompt_tokens * 1.0 + row.completion_tokens * 2.0
        assert row.cost == (None if trial.outcome == "failed" else pytest.approx(usage / 1e6))
        detail = trial_detail(index, row.number)
        assert detail.trial == trial
        assert detail.score["score"] == score.score
    index.close()


def test_a_growing_journal_is_followed_and_a_torn_line_waits(sealed, tmp_path):
    run, records = journal_of(sealed, tmp_path / "growing", lines=30)
    index = RunIndex(run)
    assert index.catch_up() == 30
    with (run.path / "journal" / "d-1.jsonl").open("ab") as file:
        file.write(records[30] + records[31][:40])
        file.flush()
        assert index.catch_up() == 1
        file.write(records[31][40:])
    (run.path / "journal" / "d-2.jsonl").write_bytes(b"".join(records[32:]))
    assert index.catch_up() == 49
    assert index.n_trials == 80
    read, size = index.progress()
    assert read == size == sum(map(len, records))
    assert sorted(found(index)) == sorted(trial.place for trial in sealed.trials())
    rows = trial_rows(index, find_trials(index, read_filter({})).numbers)
    assert rows[0].number > rows[-1].number  # of a run under way the newest come first
    index.close()


def test_of_a_trial_asked_again_the_last_attempt_counts(sealed, tmp_path):
    run, records = journal_of(sealed, tmp_path / "again", lines=0)
    failed = next(line for line in records if b'"outcome":"failed"' in line)
    document = json.loads(failed)
    document["record"] |= {"outcome": "answered", "text": "C then", "value": "C", "reason": "S1"}
    document["score"]["score"] = 1
    answered = json.dumps(document).encode() + b"\n"
    document["record"] |= {"attempt": 1, "text": "B now", "value": "B"}
    later = json.dumps(document).encode() + b"\n"
    path = run.path / "journal" / "d-1.jsonl"
    index = RunIndex(run)
    for line, value in (
        (failed, None),
        (answered, "C"),
        (failed, "C"),  # a failure counts only where nothing else is there
        (later, "B"),
        (answered, "B"),
    ):
        with path.open("ab") as file:
            file.write(line)
        assert index.catch_up() == 1
        [row] = trial_rows(index, find_trials(index, read_filter({})).numbers)
        assert (row.value, index.n_trials) == (value, 1)
    assert found(index, text="then") == []
    assert len(found(index, text="now")) == 1
    index.close()


def test_once_a_run_is_sealed_its_index_is_made_anew(tmp_path, cache):
    makers.workspace(tmp_path / "w", makers.law_items(), makers.fake("m", fail_items=["law-03"]))
    with pytest.raises(IncompleteError):
        medassay.run(tmp_path / "w" / "plan.toml", secrets={})
    [folder] = (tmp_path / "w" / "runs").iterdir()
    index = RunIndex(Run(folder))
    index.catch_up()
    assert (index.n_trials, index.is_stale) == (10, False)
    medassay.run(tmp_path / "w" / "plan.toml", secrets={}, accept_failures=True)
    assert index.is_stale
    index.close()
    after = RunIndex(Run(folder))
    after.catch_up()
    assert (after.n_trials, after.sealed) == (10, True)
    assert len(list(cache_folder(after.run).glob("*.sqlite"))) == 1
    after.close()


def test_two_processes_index_one_run_together(sealed):
    first, second = RunIndex(sealed), RunIndex(sealed)
    turns = [index.catch_up(7) for _ in range(6) for index in (first, second)]
    assert sum(turns) == 80
    assert first.n_trials == second.n_trials == 80
    assert found(first) == [trial.place for trial in sealed.trials()]
    first.close()
    second.close()


def test_a_damaged_index_is_made_anew(sealed):
    index = RunIndex(sealed)
    index.catch_up()
    index.close()
    [path] = cache_folder(sealed).glob("*.sqlite")
    path.write_bytes(b"not a database at all" * 100)
    again = RunIndex(sealed)
    assert again.catch_up() == 80
    again.close()


def test_an_index_that_nobody_uses_is_removed(sealed):
    RunIndex(sealed).close()
    [path] = cache_folder(sealed).glob("*.sqlite")
    os.utime(path, (0, 0))
    RunIndex(sealed).close()  # looked at again
    remove_unused()
    assert path.exists()
    remove_unused(days=-1)
    assert not list(cache_folder(sealed).glob("*.sqlite*"))


def test_a_damaged_run_is_told_with_file_and_byte(sealed, tmp_path):
    run, _ = journal_of(sealed, tmp_path / "damaged", lines=3)
    path = run.path / "journal" / "d-1.jsonl"
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"score":null,"record":{"domain":5}}\n')
    index = RunIndex(run)
    with pytest.raises(IntegrityError, match=rf"journal/d-1\.jsonl at byte {size}: no such record"):
        index.catch_up()
    index.note_error("told on its pages")
    assert index.error == "told on its pages"
    path.write_bytes(path.read_bytes()[:size])
    assert index.catch_up() == 0
    assert (index.n_trials, index.error) == (3, "")
    index.close()


def test_what_the_address_asks_for_is_checked():
    with pytest.raises(UsageError, match="has no word to search for"):
        words_of(" %* ")
    for query, message in (
        ({"least": "many"}, "least 'many'; expected a whole number from 0"),
        ({"page": "-1"}, "page '-1'"),
        ({"outcome": "won"}, "outcome 'won'; expected one of answered"),
        ({"grade": "best"}, "Invalid enum value 'best'"),
        ({"sort": "name; DROP TABLE trial"}, "Invalid enum value"),
    ):
        with pytest.raises(UsageError, match=message.replace("(", r"\(")):
            read_filter(query)
    assert read_filter({"unknown": "x", "page": "3"}).number == 3


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
def test_whatever_is_typed_is_searched_for_as_words(text):
    db = sqlite3.connect(":memory:")
    db.execute('CREATE VIRTUAL TABLE reply USING fts5(text, tokenize="unicode61")')
    db.execute("INSERT INTO reply VALUES ('the answer is A')")
    try:
        queries = words_of(text)
    except UsageError:
        queries = ()
        assert not any(character.isalnum() for character in text)
    for words in filter(None, queries):
        db.execute("SELECT rowid FROM reply WHERE reply MATCH ?", (words,)).fetchall()
    db.close()


def test_a_trial_that_is_not_there_is_named(sealed):
    index = RunIndex(sealed)
    index.catch_up()
    place = ("law", "mixed", "zero_shot", "solo", "law-99", 0)
    with pytest.raises(
        InputError, match=r"no answer of 'mixed' .* to item 'law-99' of law, repeat 0"
    ):
        index.number_at(place)
    index.close()


def test_verdicts_are_there_while_judges_judge(tmp_path, cache):
    makers.write_bank(tmp_path / "bank", makers.open_items(4))
    judges = [{**makers.fake(f"j{n}", judge=0.3 + n / 5), "family": f"f{n}"} for n in range(3)]
    makers.write_models(tmp_path, makers.fake("m", reply="Rule 1 binds courts."), *judges)
    names = ["j0", "j1", "j2"]
    plan = makers.write_plan(
        tmp_path, models=["m"], judges=names, task="open", budget={"calls": 12}
    )
    with pytest.raises(IncompleteError):
        medassay.run(plan, secrets={})
    [folder] = (tmp_path / "runs").iterdir()
    run = Run(folder)
    index = RunIndex(run)
    index.catch_up()
    stored = list(run.verdicts())
    assert len(stored) == 8
    details = [trial_detail(index, row[0]) for row in index.rows("SELECT n FROM trial")]
    assert sum(len(detail.verdicts) for detail in details) == 8
    for detail in details:
        own = {v.judge: v.score for v in stored if v.place == detail.trial.place}
        assert {v["judge"]: v["score"] for v in detail.verdicts} == own
        scores = [score for score in own.values() if score is not None]
        expected = max(scores) - min(scores) if len(scores) > 1 else None
        assert detail.row.spread == pytest.approx(expected)
        assert detail.row.score is None  # that comes once all of them have judged
    assert index.catch_up() == 0
    index.close()
    makers.write_plan(tmp_path, models=["m"], judges=names, task="open")
    sealed = medassay.run(plan, secrets={})
    index = RunIndex(sealed)
    index.catch_up()
    assert index.n_trials == 4
    for row in trial_rows(index, find_trials(index, read_filter({})).numbers):
        detail = trial_detail(index, row.number)
        assert len(detail.verdicts) == 3
        scores = [v["score"] for v in detail.verdicts]
        assert row.spread == pytest.approx(max(scores) - min(scores))
    index.close()
