"""Scoring, metrics and checks in parts, done by other processes: the same bytes, the same
findings.
"""

import json

import pytest
from tests import makers
from tests.runner.engine.scripted_workers import workspace

import medassay
from medassay.core.scale import Scale
from medassay.publishing import recompute
from medassay.runner import measure as measuring
from medassay.runner import write
from medassay.runner.rescore import rescore
from medassay.score.catalog import TEXT_MEASURES
from medassay.storage.jsonl import line_parts, read_jsonl


class Overlap:
    """A metric that needs no model but depends on all references, as idf weights do."""

    id = "overlap@1"

    def __init__(self, place=""):
        self.columns = {"overlap": Scale()}
        self.context = ""

    def prepare(self, references):
        self.context = str(len(set(references)))

    def score(self, pairs):
        return [
            (len(set(a.split()) & set(b.split())) / int(self.context),) if a else (None,)
            for a, b in pairs
        ]

    def close(self):
        pass


def test_metrics_are_computed_in_parts_by_others_and_kept_once(tmp_path, in_process, monkeypatch):
    engines = in_process()
    monkeypatch.setitem(TEXT_MEASURES, "overlap", Overlap)
    monkeypatch.setattr(measuring, "_BATCH", 7)
    items = [
        {
            "id": f"t{n:02}",
            "domain": "law",
            "answer_type": "open",
            "question": f"Question {n}?",
            "reference": f"The court holds that rule {n} binds.",
            "source": "written for a test",
        }
        for n in range(30)
    ]
    replies = {item["id"]: f"Rule {n} binds the court." for n, item in enumerate(items)}
    options = {"task": "text", "metrics": ["overlap"]}
    found = []
    for engine in ("local", "in_process"):
        plan = workspace(tmp_path / engine, items, makers.fake(replies=replies), **options)
        found.append(medassay.run(plan, secrets={}, engine=engine))
    one, many = ((run.path / "scores.jsonl").read_bytes() for run in found)
    assert one == many
    assert b'"measured":{"overlap":0.' in one
    assert engines[0].spread_parts == 5
    assert medassay.verify(found[1].path).ok


def test_answers_are_scored_again_in_parts_by_others_to_the_same_bytes(
    tmp_path, in_process, monkeypatch
):
    engines = in_process()
    monkeypatch.setattr(write, "_PART", 9)
    plan = workspace(tmp_path, makers.many_items(50), makers.fake(letters="hash"))
    run = medassay.run(plan, secrets={})
    again = rescore(run, engine="in_process")
    assert (again.path / "scores.jsonl").read_bytes() == (run.path / "scores.jsonl").read_bytes()
    assert engines[0].spread_parts == 6
    assert medassay.verify(again.path).ok


def test_parts_of_a_file_are_all_of_it(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps({"n": n, "x": "é" * n}) + "\n" for n in range(25)))
    parts = list(line_parts(path, 10))
    assert [lines for _, lines in parts] == [10, 10, 5]
    for first, (offset, _) in enumerate(parts):
        assert next(read_jsonl(path, offset=offset))["n"] == 10 * first


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [0, 23, 59])
def test_other_processes_find_the_same_mismatch_in_a_large_run(tmp_path, monkeypatch, damaged):
    """The score is wrong, and all hashes are made to fit: only recomputing tells."""
    plan = workspace(tmp_path, makers.many_items(60), makers.fake(letters="hash"))
    run = medassay.run(plan, secrets={})
    monkeypatch.setattr(recompute, "_MANY", 10)
    monkeypatch.setattr(recompute, "_PART", 8)
    assert (
        not recompute._may_help()
    )  # a script, as pytest is one, would be run again by each helper
    monkeypatch.setattr(recompute, "_may_help", lambda: True)
    assert medassay.verify(run.path).ok
    path = run.path / "scores.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    record = json.loads(lines[damaged])
    record["score"] = 1 - record["score"]
    lines[damaged] = json.dumps(record, sort_keys=True, separators=(",", ":")) + "\n"
    path.chmod(0o644)
    path.write_text("".join(lines))
    found = []
    for many in (10, 10**9):
        monkeypatch.setattr(recompute, "_MANY", many)
        with pytest.raises(recompute.Mismatch) as raised:
            recompute._check_content(run.path)
        found.append(str(raised.value))
    assert found[0] == found[1]
    assert found[0].startswith(f"scores.jsonl line {damaged + 1}: ")
