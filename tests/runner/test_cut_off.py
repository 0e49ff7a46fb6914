"""Replies that end at their token limit: counted, marked, told, and barred from ranks.

And how long a reply may be.
"""

import json

import pytest
from tests import makers

import medassay
from medassay import pipeline
from medassay.core.records.model import ModelSpec
from medassay.kinds.catalog import TASKS


def place(folder, *models, items=None, **plan):
    makers.write_bank(folder / "bank", items or makers.many_items(20))
    makers.write_models(folder, *models)
    return makers.write_plan(folder, models=[one["id"] for one in models], **plan)


@pytest.mark.parametrize(
    ("task", "more", "tokens"),
    [
        ("closed", {}, 128),
        ("text", {}, 1024),
        ("g_eval", {}, 1024),
        ("record", {}, 2048),
        ("closed", {"think_tags": True}, 4096),
        ("text", {"capabilities": ["chat", "reasoning"]}, 4096),
        ("record", {"max_tokens": 77}, 77),
        ("closed", {"think_tags": True, "max_tokens": 9}, 9),
    ],
)
def test_a_reply_may_have_as_many_tokens_as_its_task_gives(task, more, tokens):
    from medassay.runner.schedule import _entry_for

    spec = ModelSpec(
        id="m",
        provider="fake",
        **{k: tuple(v) if isinstance(v, list) else v for k, v in more.items()},
    )
    assert _entry_for(spec, TASKS[task]).reply_tokens == tokens


def test_items_of_ones_own_have_no_stop_text_and_suites_keep_theirs():
    from medassay.runner.schedule import _entry_for

    spec = ModelSpec(id="m", provider="openai_compatible", url="http://x/v1")
    for name in ("text", "text_chat", "closed", "open", "g_eval"):
        assert _entry_for(spec, TASKS[name]).stop == (), name
    assert _entry_for(spec, TASKS["olaph"]).stop == ("\n\n",)
    own = ModelSpec(id="m", provider="openai_compatible", url="http://x/v1", stop=("@@",))
    assert _entry_for(own, TASKS["olaph"]).stop == ("@@",)  # in place of the task's


def test_an_answer_of_several_paragraphs_is_scored_whole(tmp_path):
    items = [
        {
            "id": f"o{n}",
            "domain": "law",
            "answer_type": "open",
            "question": f"Say {n}.",
            "reference": "Warning signs are:\n\n1. face\n\n2. arm",
            "source": "written for a test",
        }
        for n in range(12)
    ]
    reply = "Warning signs are:\n\n1. face\n\n2. arm"
    none = ["bertscore=none", "moverscore=none", "bleurt=none"]
    plan = place(tmp_path, makers.fake(reply=reply), items=items, task="text", metrics=none)
    run = pipeline.run(plan, secrets={})
    assert run.statistics.document["domains"]["overall"][0]["score"] == 1.0
    trial = json.loads((run.path / "trials.jsonl").read_text().splitlines()[0])
    assert trial["value"] == reply
    assert "stop" not in run.manifest_document["sampling"]["m"]
    assert medassay.verify(run.path).ok


@pytest.mark.parametrize(("n", "ranked"), [(2, True), (3, False)])
def test_more_than_a_tenth_cut_off_bars_a_rank(tmp_path, mock_server, n, ranked):
    """Two models of 20 items: of one, n replies use just as many tokens as they may have."""
    url = mock_server("--cut", n)
    plan = place(
        tmp_path,
        makers.endpoint(url, "cut", max_tokens=16),
        makers.endpoint(mock_server(), "whole"),
    )
    run = pipeline.run(plan, secrets={})
    rows = {row["model"]: row for row in run.statistics.document["domains"]["overall"]}
    assert rows["cut"]["cut_off"] == n
    assert "cut_off" in rows["cut"]["flags"]
    assert ("not_ranked:cut_off" not in rows["cut"]["flags"]) is ranked
    assert rows["whole"]["cut_off"] == 0
    assert rows["whole"]["rank"] == 1
    assert medassay.verify(run.path).ok


def test_a_plan_may_allow_it_and_says_so(tmp_path, mock_server):
    entry = makers.endpoint(mock_server("--cut", 20), "cut", max_tokens=16)
    run = pipeline.run(place(tmp_path, entry, max_cut_off=1.0), secrets={})
    [row] = run.statistics.document["domains"]["overall"]
    assert (row["cut_off"], row["rank"]) == (20, 1)
    assert run.manifest_document["plan"]["max_cut_off"] == 1.0


def test_terminal_and_board_tell_how_many_were_cut(tmp_path, mock_server, cli):
    entry = makers.endpoint(mock_server("--cut", 7), "cut", max_tokens=16)
    plan = place(tmp_path, entry)
    code, out, _ = cli("run", plan, "--yes")
    assert code == 0
    assert "cut off" in out
    assert "7 of 20" in out
    assert "cut: 7 of 20 replies were cut at max_tokens = 16" in out
    [run] = [p for p in (tmp_path / "runs").iterdir() if (p / "seal.json").exists()]
    page = medassay.publish(run, tmp_path / "site").read_text()
    assert "7 of 20 replies cut off" in page
    assert "Not ranked: too many replies cut off" in page
    assert medassay.verify(tmp_path / "site").ok


def test_plan_tells_what_is_sent(tmp_path, cli):
    plan = place(tmp_path, makers.fake(reply="A"))
    code, out, _ = cli("run", plan, "--plan")
    assert code == 0
    assert "max_tokens 128, no stop text" in out
    makers.write_plan(tmp_path, max_cut_off=1.5)
    code, _, errors = cli("run", plan, "--plan")
    assert (code, errors.count("\n")) == (3, 1)
    assert "'max_cut_off' is 1.5" in errors


def test_withheld_answers_are_counted_in_public_too(tmp_path, mock_server):
    items = [{**one, "kind": "synthetic"} for one in makers.many_items(20)]
    entry = makers.endpoint(mock_server("--cut", 1), "cut", max_tokens=16)
    run = pipeline.run(place(tmp_path, entry, items=items), secrets={})
    medassay.publish(run, tmp_path / "site")
    assert medassay.verify(tmp_path / "site").ok
    [public] = (tmp_path / "site/p").glob("*/data/run/trials.jsonl")
    assert (
        sum(json.loads(line).get("cut_off", False) for line in public.read_text().splitlines()) == 1
    )


def test_a_bank_of_which_nothing_can_be_asked_is_refused_by_name(tmp_path, cli):
    plan = place(tmp_path, makers.fake(reply="A"), banks=["bank", "offen"], task="closed")
    texts = [
        {
            "id": "t",
            "domain": "open",
            "answer_type": "open",
            "question": "Why?",
            "reference": "x",
            "source": "t",
        }
    ]
    makers.write_bank(tmp_path / "offen", texts, name="offen", domains=("open",))
    for arguments in (("run", plan), ("run", plan, "--plan")):
        code, _, errors = cli(*arguments)
        assert (code, errors.count("\n")) == (3, 1)
        assert "cannot ask the one item of bank 'offen' (1 text); it asks those of law" in errors
        assert "with task text" in errors


def test_items_that_a_task_does_not_take_are_told(tmp_path, cli):
    more = {
        "id": "t",
        "domain": "law",
        "answer_type": "open",
        "question": "Why?",
        "reference": "x",
        "source": "t",
    }
    items = [*makers.many_items(12), more]
    plan = place(tmp_path, makers.fake(reply="A"), items=items, task="closed")
    told = "bank 'law': 1 item is not asked, task 'closed' does not take it (1 text)"
    assert told in cli("run", plan, "--plan")[1]
    code, _, errors = cli("run", plan)
    assert code == 0
    assert told in errors


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.1, "more than 10.0 % were cut off is not ranked"),
        (1.0, "none is left out of the ranks"),
    ],
)
def test_the_methodology_says_what_cut_off_means(tmp_path, mock_server, share, said):
    plan = place(tmp_path, makers.endpoint(mock_server(), "m"), max_cut_off=share)
    page = medassay.publish(pipeline.run(plan, secrets={}), tmp_path / "site")
    assert said in (page.parent / "methodology/index.html").read_text()
