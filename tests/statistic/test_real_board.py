"""A table of predictions of ten real models becomes a board, whose ranks are recomputed from the
table by code of its own.
"""

import csv
import json
import random
from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest

import medassay
from medassay.exchange.predictions import import_predictions
from medassay.publishing.publish import About
from medassay.statistic.draws import seed_of

COLUMNS = {
    "item": "realidx",
    "model": "model",
    "domain": "task",
    "prediction": "predicted_answer",
    "key": "answer_idx",
}


def read_scores(path):
    """Return domain → (items sorted, models sorted, right or wrong by model and item) of what all
    models answered.
    """
    found = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            right = float(row["predicted_answer"] == row["answer_idx"])
            found.setdefault(row["task"], {}).setdefault(row["model"], {})[row["realidx"]] = right
    return found


def resampled(scores, seed, n_draws):
    """Return means of each draw, items drawn by the standard library's stream."""
    stream = random.Random(seed)
    n = scores.shape[1]
    made = np.empty((n_draws, len(scores)))
    for draw in range(n_draws):
        index = np.array([int(stream.random() * n) for _ in range(n)])
        made[draw] = scores[:, index].mean(axis=1)
    return made


def ranges(domains, seeds, n_draws):
    """Return first and last rank of each model: R1 and R2 of the specification, pair by pair."""
    n_models, n_domains = len(domains[0]), len(domains)
    n_items = sum(d.shape[1] for d in domains)
    value = np.mean([d.mean(axis=1) for d in domains], axis=0)
    draws = np.zeros((n_draws, n_models))
    for scores, seed in zip(domains, seeds, strict=True):
        n = scores.shape[1]
        drawn = resampled(scores, seed, n_draws)
        if n_domains > 1:
            mean = scores.mean(axis=1)
            drawn = mean + np.sqrt(n / (n - 1)) * (drawn - mean)
        draws += drawn / n_domains
    pairs, se, difference = [*combinations(range(n_models), 2)], {}, {}
    for a, b in pairs:
        squares = sum(((d[a] - d[b]) ** 2).sum() / (n_domains * d.shape[1]) ** 2 for d in domains)
        se[a, b], difference[a, b] = np.sqrt(squares), value[a] - value[b]
    kappa, left, c = 1 / n_items, {p for p in pairs if se[p] > 1e-12}, 1.959964
    while left:
        highest = np.max(
            [np.abs(draws[:, a] - draws[:, b] - difference[a, b]) / se[a, b] for a, b in left],
            axis=0,
        )
        c = max(1.959964, np.quantile(highest, 0.95))
        gone = {p for p in left if abs(difference[p]) - kappa - c * se[p] > 1e-12}
        if not gone:
            break
        left -= gone
    better = np.zeros((n_models, n_models), dtype=bool)
    for a, b in pairs:
        better[a, b] = difference[a, b] - kappa - c * se[a, b] > 1e-12
        better[b, a] = -difference[a, b] - kappa - c * se[a, b] > 1e-12
    return 1 + better.sum(axis=0), n_models - better.sum(axis=1), c


@pytest.fixture(scope="module")
def path(data):
    return data / "medagents_predictions" / "zero_shot_test.csv"


@pytest.fixture(scope="module")
def run(path, tmp_path_factory):
    return import_predictions(path, COLUMNS, runs=tmp_path_factory.mktemp("runs"))


@pytest.mark.slow
@pytest.mark.real_data
def test_the_import_reproduces_the_table_exactly(path, run, tmp_path):
    board = medassay.leaderboard(run)
    correct = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            correct[row["task"], row["model"]].append(int(row["correct"]))
    for row in board.domains["medqa"]:
        expected = correct["medqa", row["model"]]
        assert row["score"] == pytest.approx(sum(expected) / len(expected))
        assert row["lo"] <= row["score"] <= row["hi"]
        assert row["rank_lo"] <= row["rank"] <= row["rank_hi"]
    rows = {row["model"]: row for row in board.domains["medmcqa"]}  # some answers are missing
    assert rows["claude-3-5-sonnet"]["coverage"] < 1
    assert {row["n"] for row in rows.values()} == {2815}
    # 500 items, all models within a few points: one group.
    assert {row["rank"] for row in board.domains["pubmedqa"]} == {1}
    # One page that reads the answers from files: a page for each of 60,508 says no more here.
    page = medassay.publish(run, tmp_path / "site", about=About(compact=True))
    assert "o3-mini" in page.read_text()
    assert json.loads((run.path / "seal.json").read_text())["count"] == 2 * 60508


@pytest.mark.slow
@pytest.mark.real_data
def test_the_ranks_of_ten_real_models_are_those_of_an_independent_computation(path, run):
    by_domain, manifest = read_scores(path), run.manifest_document
    tables, seeds = {}, {}
    for domain, by_model in by_domain.items():
        models = sorted(by_model)
        names = sorted(set.intersection(*(set(by_model[m]) for m in models)))
        ids = [item["id"] for item in _items(run) if item["domain"] == domain]
        order = [name for name in ids if name in set(names)]
        assert sorted(order) == names
        tables[domain] = np.array([[by_model[m][name] for name in order] for m in models])
        seeds[domain] = seed_of(manifest["domains"][domain], run.id, domain, "solo")
    boards = {"overall": sorted(tables), **{domain: [domain] for domain in tables}}
    for name, members in boards.items():
        first, last, c = ranges(
            [tables[d] for d in members],
            [seeds[d] for d in members],
            manifest["plan"]["n_resamples"],
        )
        rows = {row["model"]: row for row in run.statistics.document["domains"][name]}
        for at, model in enumerate(models):
            row = rows[model]
            assert (row["rank_lo"], row["rank_hi"]) == (first[at], last[at]), (name, model)
        assert run.statistics.document["fields"]["solo"][name]["c"] == pytest.approx(c, abs=1e-9), (
            name
        )
    sentence = run.statistics.document["fields"]["solo"]["pubmedqa"]["sentence"]
    assert sentence.startswith("No difference between any of the 10 models is shown. About ")
    assert medassay.verify(run.path).ok


def _items(run):
    return [json.loads(line) for line in (run.path / "items.jsonl").read_text().splitlines()]
