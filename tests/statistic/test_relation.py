"""The relation that decides ranks: the golden values, the laws of ranges, and what sentences may
say.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medassay.core.ranks import range_title, ranking_sentence
from medassay.core.scale import Scale
from medassay.statistic.draws import cluster_sums, number_clusters
from medassay.statistic.ranking.field import field_of
from medassay.statistic.ranking.pool import Options, Stratum, means_of
from medassay.statistic.ranking.relation import range_ranks, relation_of, shown_better
from medassay.statistic.ranking.simultaneous import difference_norms


def board_of(inputs):
    """Return means, draws, SE and κ of a golden board."""
    strata, weights, offset, clustered = [], [], 0, False
    for number, one in enumerate(inputs["domains"]):
        scores = np.array(one["scores"], dtype=float)
        n = scores.shape[1]
        labels = (
            np.array([hash((number, name)) for name in one["clusters"]])
            if "clusters" in one
            else np.arange(n) + offset
        )
        numbers = number_clusters(labels)
        clustered |= numbers is not None
        names = np.arange(n) if numbers is None else numbers
        strata.append(
            Stratum(name=str(number), scores=scores, clusters=names + offset, seed=one["seed"])
        )
        offset += n
        sums = scores if numbers is None else cluster_sums(scores.T, numbers)[0].T
        weights.append(sums / n)
    rows = range(len(inputs["models"]))
    masks = [np.ones(s.scores.shape[1], dtype=bool) for s in strata]
    means = means_of(strata, [*rows], masks, Options(pool_seed=0, scale=Scale()))
    kappa = 0.0 if clustered or not inputs["binary"] else 1 / offset
    return means, difference_norms(weights), kappa


def told(models, values, relation, *, graded=False):
    """Return ranges, groups, order, titles and sentence."""
    ranks, order = range_ranks(models, values, relation)
    by_score = sorted(range(len(models)), key=lambda i: (-values[i], models[i]))
    first = [models[i] for i in by_score if ranks[i].lo == 1]
    others = [models[i] for i in by_score if ranks[i].lo != 1]
    return {
        "lo": [r.lo for r in ranks],
        "hi": [r.hi for r in ranks],
        "group": [r.group for r in ranks],
        "order_of_rows": [models[i] for i in order],
        "titles": [range_title(rank.lo, rank.hi, len(models)) for rank in ranks],
        "sentence": ranking_sentence(first, others, graded=graded),
    }


def pairs_in(models, relation):
    return [[models[a], models[b]] for a, b in np.argwhere(relation)]


def test_the_golden_relations(golden):
    for case in golden("ranks")["relation"]:
        inputs, expected = case["inputs"], case["expected"]
        means, se, kappa = board_of(inputs)
        values = np.asarray(means.values)
        found = relation_of(values, means.draws, se, kappa=kappa)
        assert values == pytest.approx(expected["value"], abs=1e-11), case["name"]
        assert se == pytest.approx(np.array(expected["se"]), abs=1e-11)
        assert kappa == pytest.approx(expected["kappa"], abs=1e-12)
        assert list(found.steps) == pytest.approx(expected["c_steps"], abs=1e-9), case["name"]
        assert found.c == pytest.approx(expected["c"], abs=1e-9)
        models = inputs["models"]
        assert pairs_in(models, found.better) == expected["better"], case["name"]
        seen = told(models, values, found.better, graded=not inputs["binary"])
        assert seen == {key: expected[key] for key in seen}, case["name"]


def test_a_field_has_the_golden_relations(golden):
    """The path that runs take: κ, c, ranges and order of rows as the golden file has them."""
    for case in golden("ranks")["relation"]:
        inputs, expected = case["inputs"], case["expected"]
        strata, start = [], 0
        for number, one in enumerate(inputs["domains"]):
            scores = np.array(one["scores"], dtype=float)
            n = scores.shape[1]
            names = one.get("clusters") or [f"item {k}" for k in range(n)]
            numbers = number_clusters(names)
            own = np.arange(n) if numbers is None else numbers
            strata.append(
                Stratum(name=str(number), scores=scores, clusters=own + start, seed=one["seed"])
            )
            start += n
        rows = [(model, "s") for model in inputs["models"]]
        found = field_of(rows, strata, Options(pool_seed=0, rule="simultaneous"))
        assert found.relation.kappa == pytest.approx(expected["kappa"], abs=1e-12), case["name"]
        assert list(found.relation.steps) == pytest.approx(expected["c_steps"], abs=1e-9)
        assert found.relation.c == pytest.approx(expected["c"], abs=1e-9)
        ranks = [standing.rank for standing in found.standings]
        for key in ("lo", "hi", "group"):
            assert [getattr(one, key) for one in ranks] == expected[key], case["name"]
        assert found.graded == (not inputs["binary"])


def test_the_golden_relations_of_given_errors(golden):
    for case in golden("ranks")["relation_given"]:
        inputs, expected = case["inputs"], case["expected"]
        values, se = np.array(inputs["value"]), np.array(inputs["se"], dtype=float)
        relation = shown_better(values, se, kappa=inputs["kappa"], c=inputs["c"])
        assert pairs_in(inputs["models"], relation) == expected["better"], case["name"]
        seen = told(inputs["models"], values, relation)
        assert seen == {key: expected[key] for key in seen}, case["name"]


@st.composite
def relations(draw):
    """Draw a relation from points: SE is a norm, c and κ are anything."""
    n = draw(st.integers(1, 9))
    floats = st.floats(-1, 1, allow_nan=False)
    points = np.array([draw(st.lists(floats, min_size=3, max_size=3)) for _ in range(n)])
    se = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    values = np.array(draw(st.lists(floats, min_size=n, max_size=n)))
    c, kappa = draw(st.floats(0, 3)), draw(st.floats(0, 0.3))
    return values, shown_better(values, se, kappa=kappa, c=c)


@given(relations())
@settings(max_examples=300)
def test_the_laws_of_ranges(drawn):
    values, better = drawn
    names = [f"m{n}" for n in range(len(values))]
    ranks, _ = range_ranks(names, values, better)
    n = len(ranks)
    for a, b in np.argwhere(better):  # transitive
        assert not (better[b] & ~better[a]).any()
    for a in range(n):
        assert ranks[a].lo <= ranks[a].hi
        for b in range(n):
            if ranks[a].lo == ranks[b].lo:  # rows of equal lo are never ordered
                assert not better[a, b]
            if ranks[a].hi < ranks[b].lo:  # ranges that do not meet are ordered
                assert better[a, b]
    first = [a for a in range(n) if ranks[a].lo == 1]
    assert first
    if len(first) == 1:
        assert better[first[0]].sum() == n - 1


@given(st.integers(2, 6), st.integers(10, 40), st.integers(0, 2**32), st.floats(0.2, 0.95))
@settings(max_examples=60, deadline=None)
def test_step_down_never_orders_less_than_one_step(n, items, seed, p):
    random = np.random.default_rng(seed)
    scores = (random.random((n, items)) < p).astype(float)
    stratum = Stratum(name="d", scores=scores, clusters=np.arange(items), seed=seed)
    mask = [np.ones(items, dtype=bool)]
    means = means_of([stratum], [*range(n)], mask, Options(pool_seed=0))
    se = difference_norms([scores / items])
    found = relation_of(np.asarray(means.values), means.draws, se, kappa=1 / items)
    assert list(found.steps) == sorted(found.steps, reverse=True)
    if found.steps:
        single = shown_better(np.asarray(means.values), se, kappa=1 / items, c=found.steps[0])
        assert (found.better | ~single).all()


@pytest.mark.parametrize("rule", ["simultaneous", "leader"])
def test_ranked_rows_on_one_set_of_items_are_drawn_once_and_compared_as_if_drawn_anew(
    monkeypatch, rule
):
    scores = np.random.default_rng(3).integers(0, 2, (4, 40)).astype(float)
    rows = [(name, "zero_shot") for name in "abcd"]
    stratum = Stratum(name="x", scores=scores, clusters=np.arange(40), seed=5)
    options = Options(pool_seed=0, rule=rule)
    drawn = []

    def counted(*arguments):
        drawn.append(arguments[1])
        return means_of(*arguments)

    monkeypatch.setattr("medassay.statistic.ranking.field.means_of", counted)
    monkeypatch.setattr("medassay.statistic.ranking.pairs.means_of", counted)
    together = field_of(rows, [stratum], options)
    assert drawn == [[0, 1, 2, 3]]
    drawn.clear()
    beside = field_of(
        [*rows, ("e", "zero_shot")],
        [_with_row(stratum)],
        options,
        unranked={("e", "zero_shot"): "baseline"},
    )
    assert drawn == [[0, 1, 2, 3, 4], [0, 1, 2, 3]]
    assert beside.pairs == together.pairs
    assert [s.rank for s in beside.standings[:4]] == [s.rank for s in together.standings]


def _with_row(stratum):
    """Return a stratum with one more row."""
    more = np.vstack([stratum.scores, np.ones(stratum.scores.shape[1])])
    return replace(stratum, scores=more)
