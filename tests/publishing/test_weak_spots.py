"""The lowest answers of each row: those that a sort of all answers puts first."""

from collections import Counter, defaultdict
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from tests import makers

import medassay
from medassay.bank.run_items import RunItems
from medassay.publishing import weak_spots
from medassay.publishing.weak_spots import worst_answers

N = 60


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a run of two models and a baseline, asked twice, with items that could harm."""
    items = makers.many_items(N)
    for number, item in enumerate(items):
        item["harm"] = number % 19 == 7
    right = {item["id"]: item["expected"] for item in items}
    wrong = {name: "C" if key != "C" else "B" for name, key in right.items()}
    some = {name: key if n % 3 else wrong[name] for n, (name, key) in enumerate(right.items())}
    plan = makers.workspace(
        tmp_path_factory.mktemp("w"),
        items,
        makers.fake("wrong", replies=wrong),
        makers.fake("some", replies=some),
        makers.fake("right", replies=right),
        {"id": "random", "provider": "baseline", "model": "random"},
        repeats=2,
    )
    return medassay.run(plan, secrets={})


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Return imported scores in quarters, one item answered by one model alone."""
    folder = tmp_path_factory.mktemp("graded")
    lines = ["item,model,domain,score"]
    for n in range(N):
        for m in range(3):
            lines.append(f"q{n:03},m{m},d,{((n * 7 + m * 3) % 5) / 4}")
    lines.append("q999,m0,d,0.25")
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    columns = {name: name for name in lines[0].split(",")}
    return medassay.import_predictions(folder / "t.csv", columns, runs=folder)


def expected(run, better="high"):
    """Return model → its ten lowest answers, found by sorting all."""
    baselines = run.manifest.baselines
    harm = {item.id: item.harm for item in run.items()}
    by_item, answers, positions = defaultdict(list), defaultdict(list), Counter()
    scores = [line for line in run.scores() if line.model not in baselines]
    for line in scores:
        by_item[line.item].append(line.score)
    for line in scores:
        others, n_others = sum(by_item[line.item]) - line.score, len(by_item[line.item]) - 1
        mean = others / n_others if n_others else None
        sign = 1 if better == "high" else -1
        order = (sign * line.score, not harm[line.item], -sign * (mean or 0), line.item)
        answer = (line.item, line.repeat, positions[line.model], line.score, mean, harm[line.item])
        positions[line.model] += 1
        if line.score != (1 if better == "high" else 0):
            answers[line.model].append((order, answer[1], answer))
    return {model: [entry[2] for entry in sorted(own)[:10]] for model, own in answers.items()}


def lowest(run):
    return {
        model: [(a.item, a.repeat, a.position, a.score, a.others, a.harm) for a in answers]
        for (model, _, _), answers in worst_answers(
            run, RunItems(run.path, run.manifest.domains)
        ).items()
    }


def test_the_lowest_answers_are_the_first_of_all_in_order(run):
    found = lowest(run)
    assert found == expected(run)
    assert found.keys() == {"wrong", "some"}
    assert {len(answers) for answers in found.values()} == {10}
    assert {answer[-1] for answers in found.values() for answer in answers} == {True, False}


@pytest.mark.parametrize("better", ["high", "low"])
def test_scores_decide_first_whichever_end_is_better(graded, monkeypatch, better):
    def parts_of(items, manifest, task):
        scale = replace(task.scale, better=better)
        return [SimpleNamespace(items=items, task=SimpleNamespace(scale=scale))]

    monkeypatch.setattr(weak_spots, "parts_of", parts_of)
    found = lowest(graded)
    assert found == expected(graded, better)
    assert {answer[3] for answer in found["m0"]} == {0.0 if better == "high" else 1.0}


def test_an_item_that_nobody_else_answered_has_no_others(graded, monkeypatch):
    monkeypatch.setattr(weak_spots, "_SHOWN", 100)
    alone = {answer[0]: answer[4] for answer in lowest(graded)["m0"]}
    assert alone.pop("q999") is None
    assert None not in alone.values()
