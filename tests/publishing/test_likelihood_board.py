"""Boards of likelihoods: every number with its interval, where a statement became likely, and no
withheld text.
"""

import json
import re

import msgspec
import pytest
from tests import makers
from tests.runner.likelihood_plans import RELAXED, lines, open_items, tiny, workspace

import medassay
from medassay.core.records.relaxed import RelaxedSetting, StoredCompletions
from medassay.core.records.trial import Trial
from medassay.kinds.likelihood.board import likelihood_view
from medassay.publishing.verify import verify

TABLE = ", ".join(f"{key} = {value}" for key, value in RELAXED.items())


@pytest.fixture(scope="module")
def closed(weights, tmp_path_factory):
    folder = tmp_path_factory.mktemp("closed")
    plan = workspace(folder, tiny(weights), makers.fake("talker", reply="A"), scoring="likelihood")
    with pytest.warns(UserWarning, match="model 'talker' is asked for replies"):
        run = medassay.run(plan, secrets={})
    return run, medassay.publish(run, folder / "site")


@pytest.fixture(scope="module")
def relaxed(weights, tmp_path_factory):
    folder = tmp_path_factory.mktemp("relaxed")
    items = open_items(12)
    for item in items[6:]:
        item["kind"] = "synthetic"
        item["question"] = f"Quokkas {item['question']}"
    plan = workspace(folder, tiny(weights), items=items, task="open")
    plan.write_text(plan.read_text() + f"relaxed_perplexity = {{{TABLE}}}\n")
    run = medassay.run(plan, secrets={})
    return run, medassay.publish(run, folder / "site")


def page(board, *parts):
    return board.parent.joinpath(*parts, "index.html").read_text(encoding="utf-8")


def text(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_every_metric_of_the_statistics_is_on_the_page(closed, relaxed):
    for run, board in (closed, relaxed):
        shown = page(board, "likelihood")
        for row in run.statistics.document["domains"]["overall"]:
            for name, one in row["likelihood"]["metrics"].items():
                cell = re.search(f'data-metric="{re.escape(name)}".*?</tr>', shown, re.DOTALL)[0]
                assert float(re.search('data-score="([^"]+)"', cell)[1]) == pytest.approx(
                    one["score"], abs=1e-4
                )


def test_models_asked_for_replies_are_named_with_the_reason(closed):
    for place in (("likelihood",), ("methodology",)):
        shown = text(page(closed[1], *place))
        assert "closed_gen" in shown
        assert "provider &#39;fake&#39; tells no likelihood" in shown


def test_the_setting_is_told(relaxed):
    name = RelaxedSetting(**RELAXED).name("sum")
    told = name[name.index("[") :]
    assert told in page(relaxed[1], "likelihood")
    assert name in text(page(relaxed[1]))


def test_a_cell_shows_each_option(closed):
    run, board = closed
    cells = list((board.parent / "cell").rglob("zero-shot-solo/index.html"))
    shown = next(p for p in cells if "tiny" in str(p)).read_text()
    for trial in lines(run, "trials.jsonl"):
        if trial["model"] == "tiny":
            for one in trial["likelihoods"]:
                assert f"{one['total']:.2f}".replace("-", "−") in shown
    assert shown.count("(likeliest)") == len(makers.law_items())


def test_a_cell_shows_where_a_statement_became_likely(relaxed):
    run, board = relaxed
    [cell] = (board.parent / "cell").rglob("index.html")
    shown = cell.read_text()
    public = [t for t in lines(run, "trials.jsonl") if t["item"] < "open-006"]
    items = {item["id"]: item for item in open_items(6)}
    for trial in public:
        found = likelihood_view(items[trial["item"]], msgspec.convert(trial, Trial))
        assert [t["role"] for t in found["targets"]] == ["must"] * 3 + ["nice"] * 2
        for target in found["targets"]:
            values = [one["value"] for one in target["log_p"]]
            assert target["best"]["value"] == max(values)
            assert target["best"]["at"] == 4 * values.index(max(values))
            for completion, kept in zip(target["completions"], trial["drawn"]["kept"], strict=True):
                assert "".join(piece["text"] for piece in completion["pieces"]) == kept["text"]
            assert f"{target['best']['value']:.2f}".replace("-", "−") in shown
    assert shown.count('<svg class="curve"') == 5 * len(public)


def test_a_value_of_minus_infinity_is_shown_as_such():
    drawn = {
        "samples": 1,
        "distinct": 1,
        "kept": [
            {"text": "ab", "n_tokens": 2, "logprob": -1.0, "ends": [0, 2], "prefixes": [0, 0]}
        ],
        "targets": [{"n_tokens": 1, "positions": [[0, [[0.0, None]]], [2, [[-1.0, -3.0]]]]}],
    }
    item = {"id": "q1", "domain": "law", "answer_type": "open", "reference": "x"}
    trial = makers.trial(drawn=msgspec.convert(drawn, StoredCompletions))
    [target] = likelihood_view(item, trial)["targets"]
    assert target["value"] is None
    assert target["reason"] == "the target is impossible at a position"
    assert [one["value"] for one in target["log_p"]] == [None, -3.0]
    assert (target["best"]["at"], target["best"]["behind"]) == (2, "ab")
    assert target["curve"] is None


def test_of_synthetic_items_no_text_is_published_and_all_numbers_are_checked(relaxed):
    run, board = relaxed
    assert verify(board.parent.parent.parent).ok
    secret = [
        one["text"]
        for trial in lines(run, "trials.jsonl")
        if trial["item"] >= "open-006"
        for one in trial["drawn"]["kept"]
        if len(one["text"]) > 6
    ]
    assert secret
    published = next(board.parent.rglob("scores.jsonl")).read_text().splitlines()
    for score in map(json.loads, published):
        assert ("targets" in score["parts"]) == (score["item"] < "open-006")
        assert score["parts"]["must"].keys() == {"sum", "mean", "weighted", "conditional"}
    for path in board.parent.rglob("*"):
        if path.is_file():
            found = path.read_bytes()
            assert b"Quokkas" not in found, path
            for one in secret:
                assert one.encode() not in found, path
                assert json.dumps(one, ensure_ascii=False)[1:-1].encode() not in found, path


def test_the_figure_of_positions_is_drawn(relaxed, closed, cli, tmp_path):
    code, _, _ = cli("report", relaxed[0].path, "--figure", "positions", "--to", "p.svg")
    assert code == 0
    assert (tmp_path / "p.svg").read_text().startswith("<svg")
    code, _, err = cli("report", closed[0].path, "--figure", "positions", "--to", "q.svg")
    assert code == 3
    assert "nothing to draw" in err
