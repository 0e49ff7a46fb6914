"""Corrections change scores of all closed items, with options or without."""

import pytest
from tests import makers

from medassay import pipeline
from medassay.study.corrections import corrections_sheet, corrections_study


def test_numbers_without_options_count_and_their_corrected_keys_are_changes(tmp_path):
    made = []
    for version in (1, 2):
        quiz = makers.many_items(20)
        numbers = [
            {
                "id": f"n{i:02}",
                "kind": "public",
                "domain": "law",
                "source": "a code of laws",
                "answer_type": "closed",
                "question": f"How many days has the notice of contract number {i}?",
                "range": {"lo": 10, "hi": 20} if version == 1 or i >= 5 else {"lo": 1, "hi": 9},
            }
            for i in range(10)
        ]
        folder = tmp_path / str(version)
        makers.write_bank(
            folder / "bank", [*quiz, *numbers], question_bank_version=f"law-2026.{version}"
        )
        replies = {item["id"]: "A" for item in quiz} | {n["id"]: "15" for n in numbers}
        makers.write_models(folder, makers.fake("m", replies=replies))
        made.append(pipeline.run(makers.write_plan(folder), secrets={}))
    study = corrections_study([made[0]], [made[1]])
    [row] = study.rows
    board = made[0].statistics.document["domains"]["law"][0]
    assert row.n_before == board["n"] == 30
    assert row.before == pytest.approx(100 * board["score"])
    assert study.changed == ["n00", "n01", "n02", "n03", "n04"]
    assert (row.n_changed, row.before_changed, row.after_changed) == (5, 100.0, 0.0)
    assert row.difference == pytest.approx(-100 * 5 / 30)
    assert row.lo < row.difference < row.hi
    for value, lo, hi in (
        (row.before, row.before_lo, row.before_hi),
        (row.after, row.after_lo, row.after_hi),
    ):
        assert lo < value < hi
    assert "5 items were changed, 0 removed." in corrections_sheet(study).markdown()
