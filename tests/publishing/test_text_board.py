"""Boards of texts: every metric with its interval, what is unavailable, and nothing of a withheld
answer but numbers.
"""

import json
import re

import pytest
from tests import makers
from tests.runner.text_plans import GOOD, POOR, fake, items

import medassay


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    given = items()
    for item in given[6:]:
        item |= {
            "kind": "synthetic",
            "question": f"Quokkas? {item['question']}",
            "reference": f"{item['reference']} Quokkas.",
        }
    makers.write_bank(folder / "bank", given)
    makers.write_models(folder, fake("good", GOOD), fake("poor", POOR))
    plan = makers.write_plan(folder, models=["good", "poor"], task="medtext")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(folder / "none"))
        patch.setenv("XDG_DATA_HOME", str(folder / "none"))
        run = medassay.run(plan, secrets={})
    return run, medassay.publish(run, folder / "site")


def page(board, *parts):
    return board.parent.joinpath(*parts, "index.html").read_text(encoding="utf-8")


def test_every_metric_of_the_statistics_is_on_the_page(board):
    run, place = board
    shown = page(place, "texts")
    told = re.findall(r'data-metric="(\w+)".*?data-score="([^"]+)" data-lo="([^"]+)"', shown)
    rows = run.statistics.document["domains"]["overall"]
    wanted = [
        (name, one["score"])
        for row in rows
        for name, one in row["text"]["metrics"].items()
        if one is not None
    ]
    assert len(told) == len(wanted)
    scores = sorted((name, round(float(score), 4)) for name, score, _ in told)
    assert scores == sorted((name, round(score, 4)) for name, score in wanted)


def test_what_was_unavailable_is_told_with_the_reason_and_no_path_of_the_machine(board, tmp_path):
    _, place = board
    shown = page(place, "texts")
    assert shown.count(">unavailable<") >= 2
    assert "metrics install legacy" in shown
    assert "/none" not in shown
    assert "texts" in page(place, "methodology")


def test_blank_answers_are_told(board):
    assert "2 answers blank or too short" in page(board[1], "texts")


def test_a_withheld_answer_publishes_numbers_alone_and_the_board_verifies(board):
    run, place = board
    assert medassay.verify(place.parents[2]).ok
    assert medassay.verify(run.path).ok
    published = b"".join(p.read_bytes() for p in place.parent.rglob("*") if p.is_file())
    assert b"Quokkas" not in published
    scores = next(place.parent.rglob("scores.jsonl"))
    records = [json.loads(line) for line in scores.read_text().splitlines()]
    secret = [r for r in records if r["item"] in {f"t{i:02}" for i in range(6, 12)}]
    assert secret
    for record in secret:
        assert all(isinstance(v, float | int) for v in record["parts"]["text"].values())
