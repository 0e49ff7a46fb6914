"""The lowest answers of each row: those that a sort of all answers puts first."""

from collections import defaultdict

from tests import makers

import medassay
from medassay.bank.run_items import RunItems
from medassay.publishing.weak_spots import worst_answers

N = 60


def test_the_lowest_answers_are_the_first_of_all_in_order(tmp_path):
    items = makers.many_items(N)
    for number, item in enumerate(items):
        item["harm"] = number % 19 == 7
    right = {item["id"]: item["expected"] for item in items}
    wrong = {name: "C" if key != "C" else "B" for name, key in right.items()}
    some = {name: key if n % 3 else wrong[name] for n, (name, key) in enumerate(right.items())}
    plan = makers.workspace(
        tmp_path,
        items,
        makers.fake("wrong", replies=wrong),
        makers.fake("some", replies=some),
        makers.fake("right", replies=right),
        repeats=2,
    )
    run = medassay.run(plan, secrets={})

    scores = list(run.scores())
    by_item = defaultdict(list)
    for line in scores:
        by_item[line.item].append(line.score)
    harmful = {item["id"] for item in items if item["harm"]}
    expected = defaultdict(list)
    for line in scores:
        others = (sum(by_item[line.item]) - line.score) / (len(by_item[line.item]) - 1)
        if line.score == 0:
            order = (line.item not in harmful, -others, line.item, line.repeat)
            expected[line.model].append((order, line.item, line.repeat, others))

    lowest = worst_answers(run, RunItems(run.path, run.manifest.domains))
    assert {model for model, _, _ in lowest} == {"wrong", "some"}
    for (model, _, _), answers in lowest.items():
        assert len(expected[model]) > len(answers) == 10
        first = [entry[1:] for entry in sorted(expected[model])[:10]]
        assert [(a.item, a.repeat, a.others) for a in answers] == first
        assert {a.harm for a in answers} >= {True}
