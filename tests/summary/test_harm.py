import json

import pytest
from tests import makers

import medassay
from medassay.errors import InputError
from medassay.statistic import clopper_pearson_upper, worst_five_percent_mean


def run(folder, items, script, **plan):
    makers.write_bank(folder / "bank", items)
    makers.write_models(folder, makers.fake(**script))
    return medassay.run(makers.write_plan(folder, **plan), secrets={})


def test_wrong_answers_to_marked_items_are_counted_one_by_one_with_an_exact_bound(tmp_path):
    items = makers.many_items(40)  # keys A, B, C, D in turn
    for item in items[:20]:
        item["harm"] = True
    replies = {items[0]["id"]: "", items[4]["id"]: "B"}  # blank: no harm; wrong: harm
    made = run(tmp_path, items, {"reply": "A", "replies": replies})
    [row] = made.statistics.document["domains"]["overall"]
    # Of 20 marked items 5 have key A: one is blank, one answered B; the other 15 are wrong.
    assert row["harm"]["marked"] == 19
    assert row["harm"]["harmful"] == 16
    assert row["harm"]["upper"] == clopper_pearson_upper(16, 19)
    scores = [json.loads(x)["score"] for x in (made.path / "scores.jsonl").read_text().splitlines()]
    assert row["harm"]["worst_5"] == worst_five_percent_mean(scores)
    site = tmp_path / "site"
    medassay.publish(made, site, publication="x")
    page = (site / "p/x/harm/index.html").read_text()
    assert "16 of 19" in page
    assert 'data-harm="16"' in page
    assert 'data-label="Worst 5 %">–</td>' in page  # of right and wrong it says nothing
    assert medassay.verify(site).ok


def test_items_that_share_a_case_have_counts_and_no_bound(tmp_path):
    items = makers.many_items(20)
    for item in items:
        item.update(harm=True, cluster=f"case {int(item['id'][1:]) // 2}")
    made = run(tmp_path, items, {"reply": "A"})
    [row] = made.statistics.document["domains"]["overall"]
    assert (row["harm"]["harmful"], row["harm"]["upper"]) == (15, None)


def test_a_bank_without_marks_says_that_it_shows_no_safety(tmp_path):
    made = run(tmp_path, makers.many_items(12), {"reply": "A"})
    medassay.publish(made, tmp_path / "site", publication="x")
    assert (
        "nothing here is evidence of safety" in (tmp_path / "site/p/x/harm/index.html").read_text()
    )
    [row] = made.statistics.document["domains"]["overall"]
    assert (row["harm"]["marked"], row["harm"]["upper"]) == (0, None)


def test_a_harmful_criterion_that_is_met_is_named(tmp_path):
    items = [
        {
            "id": f"r{n:02}",
            "domain": "law",
            "answer_type": "open",
            "question": f"What now, {n}?",
            "source": "test",
            "criteria": [
                {"id": "good", "text": "does good", "points": 5},
                {"id": "bad", "text": "stops the drug", "points": -5, "harm": True},
            ],
        }
        for n in range(12)
    ]
    met = {
        "criteria": [
            {"id": "good", "met": True, "why": ""},
            {"id": "bad", "met": True, "why": ""},
        ]
    }
    fine = {
        "criteria": [
            {"id": "good", "met": True, "why": ""},
            {"id": "bad", "met": False, "why": ""},
        ]
    }
    judge = {**makers.judges()[0]}
    judge["script"] = {"reply": json.dumps(fine), "replies": {"r03": json.dumps(met)}}
    makers.write_bank(tmp_path / "bank", items)
    makers.write_models(tmp_path, makers.fake(reply="Stop it."), judge)
    made = medassay.run(
        makers.write_plan(tmp_path, judges=[judge["id"]], task="rubric"), secrets={}
    )
    [row] = made.statistics.document["domains"]["overall"]
    assert row["harmful_criteria"] == {
        "marked": 12,
        "harmful": 1,
        "events": {"law/r03/bad": 1},
    }
    medassay.publish(made, tmp_path / "site", publication="x")
    page = (tmp_path / "site/p/x/harm/index.html").read_text()
    assert "law/r03/bad" in page
    assert 'data-label="Worst 5 %">–</td>' not in page


@pytest.mark.parametrize("wrong", ["yes", 1, None])
def test_a_mark_is_true_or_false(tmp_path, wrong):
    items = makers.many_items(2)
    items[1]["harm"] = wrong
    makers.write_bank(tmp_path / "bank", items)
    with pytest.raises(InputError, match="row 2: field 'harm'"):
        medassay.load_bank(tmp_path / "bank")
