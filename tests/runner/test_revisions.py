"""Methods are known by revisions: what earlier code named by hashes of its source goes on as
revision 1.
"""

import json

import pytest
from msgspec.structs import replace
from tests import makers

import medassay
from medassay.core.canonical import canonical
from medassay.core.parser import Reading
from medassay.core.records.manifest import JudgingRules, RunBank
from medassay.core.records.plan import load_plan
from medassay.judging.grader_text import before_revisions, hashed_id
from medassay.judging.graders.prometheus import Prometheus
from medassay.kinds.catalog import GRADERS, PARSERS, TASKS
from medassay.kinds.criteria.grader import CriteriaGrader
from medassay.kinds.diagnoses.grader import DiagnosesGrader
from medassay.kinds.facts.grader import FactGrader
from medassay.publishing import recompute
from medassay.runner import revisions as catalog
from medassay.runner.manifest import methodology
from medassay.runner.prepare import prepare
from medassay.runner.rescore import rescore
from medassay.storage.jsonl import read_jsonl
from medassay.storage.records import read_trials
from medassay.storage.run import SEAL, SUMS

BANK = RunBank(name="b", version="b-2026.1", content_sha256="")


@pytest.mark.parametrize(
    ("judge", "name"),
    [
        (FactGrader(), "facts@52f53f93c33a"),
        (CriteriaGrader(), "criteria@21b6ec7076c8"),
        (Prometheus(), "prometheus@7eb8f9959e07"),
        (DiagnosesGrader(), "ddx@93aa74510753"),
        (DiagnosesGrader(asks=False), "ddx_names@93aa74510753"),
        (GRADERS["g_eval"](BANK, JudgingRules()), "g_eval@e2e4430e5d22"),
    ],
)
def test_a_grader_at_revision_1_has_the_hash_that_it_had(judge, name):
    """Runs that were sealed before name graders so, and methodologies, which seed draws, are made
    of it.
    """
    assert hashed_id(judge) == name
    assert judge.id == f"{name.partition('@')[0]}/1"


@pytest.fixture
def judged(tmp_path):
    items = makers.open_items(6)
    makers.write_bank(tmp_path / "bank", items)
    texts = {i["id"]: i["facts"][0]["text"] for i in items}
    makers.write_models(tmp_path, makers.fake(replies=texts), *makers.judges())
    names = [judge["id"] for judge in makers.judges()]
    return makers.write_plan(tmp_path, models=["m"], judges=names, task="open")


def as_before_revisions(run):
    """Give an unsealed run the manifest that the last code with hashes would have written."""
    for name in (SEAL, SUMS, "statistics.json", "scores.jsonl"):
        (run.path / name).unlink()
    manifest = dict(run.manifest_document)
    del manifest["revisions"], manifest["judge_prompts"]
    last = before_revisions()
    manifest |= {"parsers": last["parsers"], "scorers": last["scorers"]}
    manifest["rubrics"] = dict.fromkeys(manifest["rubrics"], "facts@52f53f93c33a")
    (run.path / "manifest.json").chmod(0o644)
    (run.path / "manifest.json").write_bytes(canonical(manifest) + b"\n")


def test_a_run_that_was_begun_before_there_were_revisions_is_finished_and_verifies(judged):
    first = medassay.run(judged, secrets={})
    statistics = first.statistics.document
    as_before_revisions(first)
    second = medassay.run(judged, secrets={})
    assert second.id == first.id
    assert "revisions" not in second.manifest_document
    assert second.statistics.document == statistics
    report = medassay.verify(second.path)
    assert report.ok, report.first_mismatch
    assert report.checks[-1]["detail"] == "intervals, ranks and pairs recomputed; scores recomputed"
    assert medassay.run(judged, secrets={}).id == first.id  # finished: nothing is asked again
    again = rescore(second)
    assert medassay.verify(again.path).ok
    assert again.manifest_document["rubrics"] == {"law": "facts/1"}
    assert not {"parsers", "scorers"} & again.manifest_document.keys()


def test_a_run_names_the_parts_of_its_own_task_only(judged):
    named = medassay.run(judged, secrets={}).manifest_document["revisions"]
    assert named["parser"] == ["text/1"]
    assert named["grader"] == ["facts/1"]
    assert named["sanitizer"] == ["fence/1", "mask/1"]
    assert "scorer" not in named


def methodology_of(plan):
    prepared = prepare(load_plan(plan), plan.parent, plan.parent)
    schedule, assignment = prepared.schedule, prepared.assignment
    return methodology(schedule, assignment)


def test_why_a_metric_is_unavailable_begins_no_series(judged):
    prepared = prepare(load_plan(judged), judged.parent, judged.parent)
    hashes = {
        methodology(prepared.schedule, None, {"bertscore": {"unavailable": why}})
        for why in ("bertscore: pip install 'medassay[metrics]'", "its model is not here")
    }
    assert len(hashes) == 1
    assert hashes != {methodology(prepared.schedule, None, {})}


def test_a_revision_that_is_raised_begins_a_series_of_the_tasks_that_use_it(judged, monkeypatch):
    before = methodology_of(judged)
    monkeypatch.setitem(PARSERS, "choice", replace(PARSERS["choice"], revision=2))
    assert methodology_of(judged) == before
    monkeypatch.setitem(PARSERS, "text", replace(PARSERS["text"], revision=2))
    assert methodology_of(judged) != before


def numbers(n):
    """Return items that ask for a number."""
    return [
        {"id": f"n{i}", "domain": "dose", "answer_type": "closed", "source": "a table"}
        | {"question": f"How many mg are {i} tablets of 5 mg?", "range": {"lo": 5 * i, "hi": 5 * i}}
        for i in range(n)
    ]


@pytest.fixture
def letters(tmp_path):
    """Return the plan of questions with options."""
    return makers.workspace(tmp_path / "letters", makers.many_items(12), makers.fake(reply="B"))


@pytest.fixture
def doses(tmp_path):
    """Return the plan of questions for a number."""
    folder = tmp_path / "doses"
    plan = makers.workspace(folder, [], makers.fake(reply="5"))
    makers.write_bank(folder / "bank", numbers(12), domains=("dose",))
    return plan


def last_check(run):
    return medassay.verify(run.path).checks[-1]["detail"]


def test_a_run_names_what_its_items_need(letters, doses):
    named = medassay.run(letters, secrets={}).manifest_document["revisions"]
    assert (named["parser"], named["scorer"]) == (["choice/1"], ["choice/1"])
    named = medassay.run(doses, secrets={}).manifest_document["revisions"]
    assert (named["parser"], named["scorer"]) == (["number/2"], ["range/1"])


def test_another_reading_of_numbers_changes_nothing_for_questions_with_options(
    letters, doses, monkeypatch
):
    run, dose_run = (medassay.run(plan, secrets={}) for plan in (letters, doses))
    methods = methodology_of(letters), methodology_of(doses)
    again = rescore(dose_run).manifest_document
    monkeypatch.setitem(PARSERS, "number", replace(PARSERS["number"], revision=3))
    later = {**run.manifest_document["code"], "commit": "0" * 40}
    monkeypatch.setattr(recompute, "code_of_today", lambda: later)
    assert methodology_of(letters) == methods[0]
    assert methodology_of(doses) != methods[1]
    assert last_check(run).endswith("scores recomputed")
    said = "scores not recomputed: parser number/2, here number/3"
    assert last_check(dose_run).endswith(said)
    # Its answers stay as they were read, so that scoring them again is the same method as before.
    later_again = rescore(dose_run).manifest_document
    assert later_again["revisions"]["parser"] == ["number/2"]
    assert later_again["methodology"] == again["methodology"]


def test_what_a_sample_leaves_out_is_no_part_of_the_method(tmp_path):
    """As its derived runs, which know the items of the run alone."""
    items = [*makers.many_items(40), {**numbers(1)[0], "domain": "law"}]
    plan = makers.workspace(tmp_path / "one", items, makers.fake(reply="B"), sample=12)
    run = medassay.run(plan, secrets={})
    assert [item["id"] for item in read_jsonl(run.path / "items.jsonl") if "range" in item] == []
    assert run.manifest_document["revisions"]["parser"] == ["choice/1"]
    assert rescore(run).manifest_document["revisions"]["parser"] == ["choice/1"]
    whole = makers.workspace(tmp_path / "two", items, makers.fake(reply="B"))
    assert methodology_of(whole) != run.manifest_document["methodology"]


def test_readers_of_verdicts_are_part_of_the_method_by_which_answers_are_judged_again(
    judged, letters, monkeypatch
):
    run, closed = medassay.run(judged, secrets={}), medassay.run(letters, secrets={})
    method = rescore(run).manifest_document["methodology"]
    closed_method = rescore(closed).manifest_document["methodology"]
    monkeypatch.setitem(catalog.READERS, "thoughts", 2)
    assert rescore(run).manifest_document["methodology"] != method
    assert rescore(closed).manifest_document["methodology"] == closed_method


@pytest.mark.parametrize(
    ("table", "name", "says"),
    [
        ("SANITIZERS", "mask", "verdicts not read again: sanitizer mask/1, here mask/2"),
        ("PANEL", "mean", "verdicts not read again: panel mean/1, here mean/2"),
        ("READERS", "thoughts", "scores not recomputed: reader thoughts/1, here thoughts/2"),
        ("BOARD_STATISTICS", "bootstrap", "statistic bootstrap/1, here bootstrap/2"),
    ],
)
def test_what_another_revision_made_is_not_recomputed_and_no_mismatch(
    judged, monkeypatch, table, name, says
):
    run = medassay.run(judged, secrets={})
    # Another commit: what this very one made must have its own revisions.
    later = {**run.manifest_document["code"], "commit": "0" * 40}
    monkeypatch.setattr(recompute, "code_of_today", lambda: later)
    monkeypatch.setitem(getattr(catalog, table), name, 2)
    report = medassay.verify(run.path)
    assert report.ok
    assert says in report.checks[-1]["detail"]
    not_read = ("verdicts not read again" in says) or ("scores not recomputed" in says)
    assert ("verdicts" in report.checks[-1]["detail"]) == not_read
    if table != "BOARD_STATISTICS":
        monkeypatch.setattr(FactGrader, "revision", 2)
        assert "grader facts/1, here facts/2" in medassay.verify(run.path).checks[-1]["detail"]


def test_answers_that_are_scored_again_stay_as_their_parser_read_them(tmp_path, monkeypatch):
    """A later parser reads them otherwise; the run made from them must not claim it."""
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    makers.write_models(tmp_path, makers.fake(reply="B"))
    run = medassay.run(makers.write_plan(tmp_path, models=["m"]), secrets={})
    nothing = replace(PARSERS["choice"], revision=2, read=lambda *_, **__: Reading(None, "none"))
    monkeypatch.setitem(PARSERS, "choice", nothing)
    again = rescore(run)
    assert (
        again.manifest_document["revisions"]["parser"]
        == run.manifest_document["revisions"]["parser"]
    )
    report = medassay.verify(again.path)
    assert report.ok
    assert "parser choice/1, here choice/2" in report.checks[-1]["detail"]


def test_a_mended_parser_reads_stored_replies_in_a_new_run_and_asks_nobody(
    tmp_path, monkeypatch, mock_server
):
    log = tmp_path / "asked"
    model = makers.endpoint(mock_server("--text", "B", "--log", log))
    plan = makers.workspace(tmp_path, makers.many_items(12), model)
    sealed = medassay.run(plan, secrets={})
    mended = replace(PARSERS["choice"], revision=2, read=lambda *_, **__: Reading("C", "mended"))
    monkeypatch.setitem(PARSERS, "choice", mended)
    later = medassay.run(plan, secrets={})
    read = [{trial.value for trial in read_trials(run.path)} for run in (sealed, later)]
    assert (later.id == sealed.id, read) == (False, [{"B"}, {"C"}])
    assert len(log.read_text().split()) == 12


def test_every_task_can_name_its_parts():
    for task in TASKS.values():
        named = catalog.revision_ids(catalog.revisions(task))
        later = {part for ids in named.values() for part in ids if not part.endswith("/1")}
        assert later in (set(), {"number/2"})
        assert json.dumps(named)
