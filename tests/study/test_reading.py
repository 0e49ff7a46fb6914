"""How replies were read: rules and outcomes by row, unread replies by shape, second readings, and
people's labels.
"""

import csv
import json

import pytest
from tests import makers

import medassay
from medassay import pipeline
from medassay.cli.main import call
from medassay.errors import InputError
from medassay.statistic.interval.wilson import wilson_interval
from medassay.study.reading import KEY, LABELS, labels_csv, reading_study, shape
from medassay.study.reading_sheet import reading_sheet

N = 60


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reading")
    items = makers.many_items(N)
    makers.write_bank(folder / "bank", items)
    names = [item["id"] for item in items]
    models = [
        makers.fake("plain", reply="The answer is A."),
        makers.fake("glued", replies={n: "CThe context says so" for n in names}),
        makers.fake(
            "odd",
            replies={
                n: (
                    "To determine the cause we look"
                    if i % 3 == 0
                    else "I cannot help with that."
                    if i % 3 == 1
                    else "B"
                )
                for i, n in enumerate(names)
            },
        ),
        makers.fake("unlike", replies={n: "A is first, but the answer is B" for n in names}),
    ]
    makers.write_models(folder, *models)
    plan = makers.write_plan(folder, models=[m["id"] for m in models])
    return pipeline.run(plan, secrets={})


@pytest.fixture(scope="module")
def study(run):
    return reading_study([run])[0]


def row(study, model):
    [found] = [one for one in study.rows if one.model == model]
    return found


def test_each_row_tells_its_rules_and_outcomes(study):
    assert row(study, "plain").rules == {"S2": N}
    assert row(study, "glued").rules == {"S9": N}
    odd = row(study, "odd")
    assert odd.rules == {
        "S1": N // 3,
        "unparsed: no option found": N // 3,
        "refused: said": N // 3,
    }
    assert (odd.outcomes["unparsed"], odd.outcomes["refused"]) == (N // 3, N // 3)


def test_a_row_with_more_unread_replies_than_chance_is_named(study):
    odd = row(study, "odd")
    assert odd.differs
    assert odd.unread == pytest.approx(2 / 3)
    assert (odd.lo, odd.hi) == pytest.approx(wilson_interval(2 * N // 3, N))
    assert odd.others == 0
    assert "odd, zero_shot (66.7 %, others 0.0 %)" in reading_sheet(study).reading


def test_rows_alike_do_not_differ(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.many_items(20))
    models = [makers.fake("a", reply="A"), makers.fake("b", reply="B")]
    makers.write_models(tmp_path, *models)
    found, _ = reading_study(
        [pipeline.run(makers.write_plan(tmp_path, models=["a", "b"]), secrets={})]
    )
    assert not any(one.differs for one in found.rows)
    assert "No row's unread share differs" in reading_sheet(found).reading
    assert found.clusters == found.disagreements == []


def test_replies_on_which_a_second_reading_disagrees_are_listed(study):
    assert row(study, "unlike").disagreements == N
    assert row(study, "plain").disagreements == row(study, "glued").disagreements == 0
    one = next(one for one in study.disagreements if one.model == "unlike")
    assert (one.first, one.second) == ("B", "A")


def test_unread_replies_are_grouped_by_their_shape(study):
    shapes = {(one.shape, one.outcome): one.n for one in study.clusters}
    assert shapes == {("W w…", "unparsed"): N // 3, ("L w…", "refused"): N // 3}
    assert study.clusters[0].rows == {"odd, zero_shot": N // 3}


@pytest.mark.parametrize(
    ("text", "like"),
    [
        ("F(Note: While option F is not", "L(W: W w…"),
        ("G", "L"),
        ("", ""),
        ("12 mg\nor so", "9 w⏎w…"),
    ],
)
def test_a_shape_is_how_a_reply_begins(text, like):
    assert shape(text) == like


def label(run, path, wrong):
    _, sample = reading_study([run], sample=40)
    rows = list(csv.DictReader(labels_csv(sample).splitlines()))
    for at, one in enumerate(rows):
        one["right"] = "no" if at < wrong else "yes"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return rows


def test_the_error_rate_of_what_people_checked_has_its_interval(run, tmp_path):
    label(run, tmp_path / "l.csv", 3)
    found = reading_study([run], labels=tmp_path / "l.csv")[0].labels
    assert (found.n, found.wrong, found.error) == (40, 3, 3 / 40)
    assert (found.lo, found.hi) == pytest.approx(wilson_interval(3, 40))
    assert sum(one.n for one in found.rows) == 40


def test_the_sample_is_the_same_each_time_and_has_every_row(run):
    first, second = (reading_study([run], sample=80)[1] for _ in range(2))
    assert first == second
    assert {dict(zip(KEY, one.key, strict=True))["model"] for one in first} == {
        "plain",
        "glued",
        "odd",
        "unlike",
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"right": "perhaps"}, "row 2, column right: 'perhaps'; expected yes or no"),
        ({"item": "other"}, "no reply of these runs"),
        ({"right": ""}, None),
    ],
)
def test_wrong_labels_are_refused_with_row_and_column(run, tmp_path, change, said):
    rows = label(run, tmp_path / "l.csv", 0)
    rows[0] |= change
    with (tmp_path / "l.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    if said is None:  # a reply that nobody labelled
        assert reading_study([run], labels=tmp_path / "l.csv")[0].labels.n == 39
        return
    with pytest.raises(InputError, match=said):
        reading_study([run], labels=tmp_path / "l.csv")


def test_the_command_writes_page_tables_and_the_sample(run, tmp_path, capsys):
    assert call(["study", "reading", str(run.path), "--to", str(tmp_path / "out")]) == 0
    assert "How replies were read" in capsys.readouterr().out
    assert {"index.html", "reading.csv", "reading.json", LABELS} <= {
        p.name for p in (tmp_path / "out").iterdir()
    }
    told = json.loads((tmp_path / "out" / "reading.json").read_text())
    assert told["runs"] == [run.id]


def test_a_pair_whose_unread_shares_differ_by_more_than_its_scores_carries_a_mark(run, tmp_path):
    from medassay.exchange.compare import compare

    pairs = compare([run], only=["plain", "odd"]).pairs
    [pair] = [one for one in pairs if one.domain == pairs[0].domain]
    assert pair.unread == (0.0, pytest.approx(2 / 3))
    assert pair.unread_outweighs == (abs(pair.diff) < 2 / 3)
    assert medassay.verify(run.path).ok
