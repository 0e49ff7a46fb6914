"""The page of a model: its place, of whom no difference is shown, its trend, where it fails."""

import json
import re

import pytest
from tests import makers

import medassay
from medassay.publishing.board import board_of
from medassay.report.undecided import undecided_pairs
from medassay.storage.run import PUBLISHED_RUN, Run
from medassay.summary.breakdown import breakdown

N = 40


def letters(rights):
    """Return replies: the key where `rights` says so, else another letter."""
    return {
        f"q{i:05}": "ABCD"[i % 4] if right else "ABCD"[(i + 1) % 4]
        for i, right in enumerate(rights)
    }


def items():
    groups = ["drugs", "signs"]
    made = makers.many_items(N)
    for i, item in enumerate(made):
        item["category"] = groups[i % 2]
        item["harm"] = i == 5
    made[7]["question"] = "Is <b>this</b> right?"
    return made


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    models = {
        "strong": [True] * N,
        "middle": [i not in (5, 7, 9, 30) for i in range(N)],
        "close": [i not in (5, 7, 11, 12, 13) for i in range(N)],
        "weak": [i % 3 == 0 for i in range(N)],
    }
    plan = makers.workspace(
        folder / "w",
        items(),
        *(makers.fake(name, replies=letters(rights)) for name, rights in models.items()),
        demonstration=True,
    )
    run = medassay.run(plan, secrets={})
    for name in ("one", "two"):
        medassay.publish(run, folder / "site", publication=name)
    return folder / "site"


def page(site, model, publication="two"):
    return (site / "p" / publication / f"model/{model}/index.html").read_text()


def test_it_names_those_of_whom_no_difference_is_shown_with_items_needed(site):
    statistics = json.loads((site / "p/two" / PUBLISHED_RUN / "statistics.json").read_text())
    pairs = statistics["fields"]["solo"]["overall"]["pairs"]
    for model in ("strong", "middle", "close", "weak"):
        expected = {
            other
            for pair in pairs
            if pair["better"] == "" and model in (pair["first"][0], pair["second"][0])
            for other in (pair["first"][0], pair["second"][0])
            if other != model
        }
        assert set(re.findall('data-undecided="([^"]*)"', page(site, model))) == expected
    assert 'data-undecided="close"' in page(site, "middle")
    board = board_of(Run(site / "p/two" / PUBLISHED_RUN), "two")
    partners = undecided_pairs(board, "overall", "solo")
    for row, undecided in partners.items():
        for one in undecided:
            assert one.pair.first == row
            assert one.pair.second == one.other
            mirrored = next(o for o in partners[one.other] if o.other == row)
            assert (mirrored.items, mirrored.pair.difference) == (one.items, -one.pair.difference)
    told = next(one for one in partners["middle", "zero_shot"] if one.other[0] == "close")
    assert told.items > N  # they differ by one item of 40
    assert f"{told.items:,}" in page(site, "middle")


def test_the_sentence_says_how_many_are_shown_to_be_better_and_worse(site):
    text = page(site, "weak")
    assert "rank 4 of 4." in text
    assert "3 models are shown to be better." in text or "3 models are shown to be better," in text


def test_categories_are_those_of_report_by_category(site):
    run = Run(site / "p/two" / PUBLISHED_RUN)
    from medassay.kinds.catalog import task_of_run

    groups = breakdown(run, ["category"], task_of_run(run.manifest).scale)["category"]
    text = page(site, "middle")
    for group in (one for one in groups if one.model == "middle"):
        shown = re.search(
            f'data-category="{group.value}".*?data-label="Score">(.*?) .*?interval">(.*?)</span>',
            text,
        )
        assert shown[1] == f"{100 * group.estimate.value:.1f}"
        assert shown[2] == f"[{100 * group.estimate.lo:.1f}, {100 * group.estimate.hi:.1f}]"


def test_the_lowest_answers_begin_where_a_wrong_one_could_harm(site):
    text = page(site, "close")
    worst = re.findall('data-worst="([^"]*)"', text)
    assert worst[0] == "q00005"  # harm first
    # Then what the others answer best: 11, 12 and 13 are wrong with fewer than 7.
    assert len(worst) == 5
    assert worst[-1] == "q00007"
    assert "could harm" in text
    assert "&lt;b&gt;this&lt;/b&gt;" in text
    link = re.search('data-worst="q00005".*?href="([^"]*)"', text)[1]
    place, _, anchor = link.partition("#")
    target = (site / "p/two/model/close" / place).resolve()
    assert f'id="{anchor}"' in target.read_text()
    assert "data-worst" not in page(site, "strong")


def test_the_trend_has_every_publication(site):
    assert page(site, "middle").count('<td role="cell" data-label="Series">') == 2
    assert "Trend</h2>" not in page(site, "middle", "one")


def test_withheld_questions_stay_withheld(tmp_path):
    made = [dict(item, kind="synthetic") for item in items()]
    plan = makers.workspace(
        tmp_path / "w", made, makers.fake("m", reply="A"), makers.fake("n", reply="B")
    )
    medassay.publish(medassay.run(plan, secrets={}), tmp_path / "site", publication="one")
    text = (tmp_path / "site/p/one/model/m/index.html").read_text()
    assert "data-worst" in text
    assert "Question number" not in text
    assert '<td role="cell" data-label="Question" dir="auto">withheld</td>' in text


def test_an_answer_on_a_later_page_of_its_cell_is_linked_there(tmp_path):
    plan = makers.workspace(
        tmp_path / "w",
        makers.many_items(260),
        makers.fake("m", replies={f"q{i:05}": "ABCD"[i % 4] for i in range(255)}, reply="no"),
    )
    medassay.publish(medassay.run(plan, secrets={}), tmp_path / "site", publication="one")
    place = tmp_path / "site/p/one/model/m/index.html"
    links = re.findall('data-worst="[^"]*".*?href="([^"]*)"', place.read_text())
    assert len(links) == 5
    for link in links:
        page_of_cell, _, anchor = link.partition("#")
        assert "page-2/" in page_of_cell
        assert f'id="{anchor}"' in (place.parent / page_of_cell).resolve().read_text()
