"""The messages that the viewer shows are those that were sent, or it says why not."""

import shutil

from tests import makers

import medassay
from medassay.core.json import parse_record, record_as
from medassay.core.records.verdict import StoredVerdict
from medassay.storage.jsonl import read_jsonl
from medassay.storage.records import decode_trial
from medassay.storage.run_records import trial_lines
from medassay.viewer.prompts import SentPrompts


def sent(run):
    prompts = SentPrompts(run)
    for line in trial_lines(run.path):
        trial = decode_trial(line, "trials.jsonl", 1)
        document = parse_record(line, "trials.jsonl")
        yield prompts.of_trial(trial, document.get("prompt_sha256", ""))


def few_shot_run(folder):
    items = makers.law_items()
    dev = [{**item, "id": f"dev-{n}", "split": "dev"} for n, item in enumerate(items[:4])]
    plan = makers.workspace(
        folder,
        items + dev,
        {**makers.fake("m", reply="B"), "system_line": "You are careful."},
        settings=["zero_shot", "few_shot"],
        shuffle_options=True,
        sample=6,
        seed=20261126,
    )
    return medassay.run(plan, secrets={})


def test_prompts_with_examples_and_shuffled_options_are_made_again_exactly(tmp_path):
    shown = list(sent(few_shot_run(tmp_path / "w")))
    assert len(shown) == 12
    assert all(messages.exact for messages in shown)
    # System line and question; three examples are six messages more.
    assert {len(messages.messages) for messages in shown} == {2, 8}


def test_without_the_bank_that_has_the_examples_the_reason_is_told(tmp_path):
    run = few_shot_run(tmp_path / "w")
    shutil.rmtree(tmp_path / "w" / "bank")
    reasons = {messages.reason for messages in sent(run)}
    [reason] = reasons
    assert "the examples are in bank 'bank'" in reason


def test_another_bank_of_that_name_is_not_taken(tmp_path):
    run = few_shot_run(tmp_path / "w")
    makers.write_bank(tmp_path / "w" / "bank", makers.many_items(20))
    assert not any(messages.exact for messages in sent(run))


def test_retrieved_passages_and_paths_are_shown_as_they_were_sent(tmp_path):
    makers.write_index(tmp_path / "w")
    plan = makers.workspace(
        tmp_path / "w",
        makers.pathway_items(),
        makers.fake("m", reply="B"),
        settings=["rag", "topline_path", "topline_text"],
        retrieval={"index": "index", "k": 1},
    )
    makers.write_bank(tmp_path / "w" / "bank", makers.pathway_items(), domains=["gout", "anaemia"])
    run = medassay.run(plan, secrets={})
    shown = list(sent(run))
    assert len(shown) == 12
    assert all(messages.exact for messages in shown), {m.reason for m in shown}
    assert any("urate" in str(messages.messages[-1]["content"]).lower() for messages in shown)


def test_what_was_asked_of_judges_is_made_again_exactly(tmp_path):
    makers.workspace(
        tmp_path / "w",
        makers.open_items(3),
        makers.fake("winston", reply="I am winston. Rule 1 binds courts."),
        *makers.judges(),
    )
    names = ["judge-alpha", "judge-beta", "judge-gamma"]
    plan = makers.write_plan(tmp_path / "w", models=["winston"], judges=names, task="open")
    run = medassay.run(plan, secrets={})
    trials = {trial.place: trial for trial in run.trials()}
    prompts = SentPrompts(run)
    n = 0
    for document in read_jsonl(run.path / "verdicts.jsonl"):
        verdict = record_as(document, StoredVerdict, "verdicts.jsonl")
        for messages in prompts.of_judge(verdict, document["prompt_sha256"], trials.__getitem__):
            n += 1
            assert messages.exact
            assert "winston" not in str(messages.messages)  # the judge was not told who answered
    assert n >= 9


def test_a_reply_that_was_imported_has_no_request(tmp_path):
    run = few_shot_run(tmp_path / "w")
    trial = next(iter(run.trials()))
    assert SentPrompts(run).of_trial(trial, "").reason.startswith("no request")
    other = SentPrompts(run).of_trial(trial, "0" * 64)
    assert (other.exact, "another hash" in other.reason) == (False, True)
