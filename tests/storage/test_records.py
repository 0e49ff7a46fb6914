"""Records of a run, decoded line by line."""

import json
import re

import pytest
from msgspec import inspect
from tests import makers

import medassay
from medassay.errors import IntegrityError
from medassay.storage.records import (
    decode_score,
    decode_trial,
    read_scored_trials,
    read_stored_trials,
    read_trials,
    read_verdicts_by_trial,
)

KEY = {"domain": "law", "model": "m", "setting": "zero_shot", "mode": "solo", "repeat": 0}


def write(folder, trials, scores):
    for name, records in (("trials", trials), ("scores", scores)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines)


def test_a_line_is_read_as_a_trial_whatever_else_it_holds(tmp_path):
    line = {**KEY, "item": "law-000", "outcome": "answered", "value": "B", "invented": [1]}
    write(tmp_path, [line | {"order": [2, 0, 1]}], [])
    [trial] = read_trials(tmp_path)
    assert trial == makers.trial(value="B", order=(2, 0, 1))
    assert trial.place == ("law", "m", "zero_shot", "solo", "law-000", 0)
    assert (trial.answer.outcome, trial.answer.value) == ("answered", "B")


def parts_of(kind):
    """Yield the types in a type, those of its fields and elements among them."""
    yield kind
    inner = [field.type for field in getattr(kind, "fields", ())]
    inner += [*getattr(kind, "types", ()), *getattr(kind, "item_types", ())]
    inner += [kind.item_type] if hasattr(kind, "item_type") else []
    inner += [kind.key_type, kind.value_type] if hasattr(kind, "key_type") else []
    for part in inner:
        yield from parts_of(part)


@pytest.mark.parametrize("decode", [decode_trial, decode_score])
def test_numbers_are_declared_where_it_is_said(decode):
    types = {type(part) for part in parts_of(inspect.type_info(decode._kind))}
    assert decode._declared == (inspect.AnyType not in types)


def test_large_whole_numbers_of_canonical_json_are_floats(tmp_path):
    likelihood = {"total": -(10**20), "n_tokens": 1, "greedy": None, "n_bytes": 1}
    likelihood |= {"n_characters": 1}
    trial = {**KEY, "item": "law-000", "outcome": "answered", "likelihoods": [likelihood]}
    parts = {"nats": 772517361823506000000, "n": 7}
    write(tmp_path, [trial], [{**KEY, "item": "law-000", "score": 10**20, "parts": parts}])
    [(read, score)] = read_scored_trials(tmp_path)
    assert [type(part.total) for part in read.likelihoods] == [float]
    assert (score.score, score.parts) == (1e20, {"nats": 7.72517361823506e20, "n": 7})
    assert [type(value) for value in score.parts.values()] == [float, int]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"outcome": "lost"}, "trials.jsonl line 2: Invalid enum value 'lost'"),
        ({"item": None}, "trials.jsonl line 2: Expected `str`, got `null`"),
        ({"repeat": "0"}, "trials.jsonl line 2: Expected `int`"),
    ],
)
def test_a_line_that_is_no_trial_is_named(tmp_path, change, says):
    trial = {**KEY, "item": "law-000", "outcome": "answered"}
    write(tmp_path, [trial, trial | change], [])
    with pytest.raises(IntegrityError, match=says):
        list(read_trials(tmp_path))


def test_a_file_cut_off_in_a_line_is_named(tmp_path):
    write(tmp_path, [{**KEY, "item": "law-000", "outcome": "answered"}], [])
    with (tmp_path / "trials.jsonl").open("a") as file:
        file.write('{"domain": "la')
    with pytest.raises(IntegrityError, match=r"trials\.jsonl line 2: not valid JSON"):
        list(read_trials(tmp_path))


@pytest.mark.parametrize(("n_trials", "n_scores"), [(2, 1), (1, 2)])
def test_a_trial_without_a_score_is_named(tmp_path, n_trials, n_scores):
    trial = {**KEY, "item": "law-000", "outcome": "answered"}
    score = {**KEY, "item": "law-000", "score": 1.0}
    write(tmp_path, [trial] * n_trials, [score] * n_scores)
    with pytest.raises(IntegrityError, match=r"scores.jsonl line 2: not one score for each"):
        list(read_stored_trials(tmp_path))


@pytest.mark.parametrize("damage", ["", "{", "{}", '{"domain": 5}'])
def test_a_line_deep_in_a_file_is_named_after_those_before_it_were_read(tmp_path, damage):
    """Lines are decoded many at once."""
    trials = [{**KEY, "item": f"law-{n:05}", "outcome": "answered"} for n in range(3000)]
    write(tmp_path, trials, [])
    path = tmp_path / "trials.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    assert [trial.item for trial in read_trials(tmp_path)] == [t["item"] for t in trials]
    offset = len("".join(lines[:1700]))
    later = [trial.item for trial in read_trials(tmp_path, offset=offset, line=1701)]
    assert later == [t["item"] for t in trials[1700:]]
    path.write_text("".join([*lines[:2500], f"{damage}\n", *lines[2501:]]))
    before = []
    with pytest.raises(IntegrityError, match=r"trials\.jsonl line 2501: "):
        for trial in read_trials(tmp_path, offset=offset, line=1701):
            before.append(trial.item)
    assert before == [t["item"] for t in trials[1700:2500]]


def test_a_damaged_manifest_is_named_by_its_field(cli, tmp_path):
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(tmp_path, makers.fake(letters="hash"))
    run = medassay.run(makers.write_plan(tmp_path), secrets={})
    path = run.path / "manifest.json"
    path.write_text(re.sub('"n_resamples":[0-9]+', '"n_resamples":"many"', path.read_text()))
    code, _, error = cli("report", str(run.path))
    assert code == 6
    assert error.strip().splitlines()[-1] == (
        "error: manifest.json: Expected `int`, got `str` - at `$.plan.n_resamples`"
    )


def test_a_damaged_verdict_is_named_by_its_line(tmp_path):
    verdict = {**KEY, "item": "law-000", "judge": "j", "outcome": "valid", "score": "high"}
    path = tmp_path / "verdicts.jsonl"
    path.write_text(json.dumps(verdict) + "\n")
    with pytest.raises(IntegrityError, match=r"verdicts.jsonl line 1: .*`\$\.score`"):
        list(read_verdicts_by_trial(path))


def test_show_names_a_damaged_line_of_the_trials(cli, tmp_path):
    makers.write_bank(tmp_path / "bank", makers.law_items())
    makers.write_models(tmp_path, makers.fake())
    run = medassay.run(makers.write_plan(tmp_path), secrets={})
    code, before, _ = cli("show", "law-00", "--run", run.path)
    assert (code, "law-00" in before) == (0, True)
    path = run.path / "trials.jsonl"
    path.chmod(0o644)
    path.write_text(path.read_text().replace('"repeat":0', '"repeat":"x"', 1))
    code, _, error = cli("show", "law-00", "--run", run.path)
    assert (code, error.count("\n")) == (6, 1)
    assert "trials.jsonl line 1: Expected `int`, got `str`" in error
