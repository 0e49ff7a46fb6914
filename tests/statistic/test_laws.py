import random
from itertools import pairwise

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from medassay.core.records.estimate import Estimate, Second
from medassay.core.scale import Scale
from medassay.errors import ScaleError, StatisticError
from medassay.statistic import (
    Options,
    Stratum,
    bootstrap_mean,
    field_of,
    mcnemar,
    rank,
    wilson_interval,
)
from medassay.statistic.draws import count_rows, draw_means, number_clusters, stream
from medassay.statistic.ranking.evidence import Evidence
from medassay.statistic.ranking.shared import separated

unit = st.floats(0, 1)
scores = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=30)


@given(st.integers(0, 2**64 - 1))
def test_the_stream_is_that_of_the_standard_library(seed):
    ours = stream(seed).random_sample(5)
    theirs = random.Random(seed | 2**63)
    assert ours.tolist() == [theirs.random() for _ in range(5)]


@given(scores, st.integers(0, 2**32))
def test_the_value_lies_in_its_interval_and_the_interval_on_the_scale(x, seed):
    e = bootstrap_mean(x, seed=seed, n_resamples=100)
    assert 0 <= e.lo <= e.hi <= 1
    assert e.second is None or 0 <= e.second.lo <= e.second.hi <= 1
    assert e.value == pytest.approx(np.mean(x))


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(0, 2**32))
def test_swapping_right_and_wrong_mirrors_both_intervals(right, seed):
    a = bootstrap_mean([float(r) for r in right], seed=seed, n_resamples=200)
    b = bootstrap_mean([float(not r) for r in right], seed=seed, n_resamples=200)
    assert (a.lo, a.hi) == (pytest.approx(1 - b.hi), pytest.approx(1 - b.lo))
    assert a.second.lo == pytest.approx(1 - b.second.hi)


def test_draws_are_shared_whatever_the_block(monkeypatch):
    whole = np.concatenate(list(count_rows(7, 50, 3)))
    for cells in (1, 15, 21):
        monkeypatch.setattr("medassay.statistic.draws._CACHED", cells)
        assert np.array_equal(whole, np.concatenate(list(count_rows(7, 50, 3))))
    monkeypatch.setattr("medassay.statistic.draws._CHUNK", 21)
    blocks = list(count_rows(7, 50, 3))
    assert len(blocks) == 17
    assert np.array_equal(whole, np.concatenate(blocks))
    assert (whole.sum(axis=1) == 7).all()


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=5, max_size=20))
def test_a_model_alone_has_the_draws_it_has_among_others(x):
    column = np.array(x)[:, None]
    many = np.hstack([column, 1 - column, column])
    assert np.allclose(draw_means(column, None, 50, 9)[:, 0], draw_means(many, None, 50, 9)[:, 2])


def test_clusters_of_one_are_no_clusters():
    assert number_clusters(["a", "b", "c"]) is None
    x = [0.0, 1.0, 1.0, 0.5]
    assert bootstrap_mean(x, seed=1, clusters=list("abcd")) == bootstrap_mean(x, seed=1)


def test_scipy_agrees_on_wilson_and_mcnemar():
    for k, n in [(0, 5), (3, 9), (40, 41)]:
        theirs = scipy.stats.binomtest(k, n).proportion_ci(method="wilson")
        assert wilson_interval(k, n) == (pytest.approx(theirs.low), pytest.approx(theirs.high))
    for b, c in [(3, 9), (0, 7), (20, 20)]:
        assert mcnemar(b, c) == pytest.approx(scipy.stats.binomtest(b, b + c).pvalue)


@pytest.mark.parametrize(
    ("x", "error"),
    [
        ([], StatisticError),
        ([0.5, float("nan")], ValueError),
        ([1.1], ScaleError),
        ([-0.1], ValueError),
    ],
)
def test_no_data_and_impossible_data_are_errors(x, error):
    with pytest.raises(error):
        bootstrap_mean(x, seed=1)


def test_flags():
    assert "small_n" in bootstrap_mean([0, 1, 1], seed=1).flags
    assert "degenerate" in bootstrap_mean([1] * 12, seed=1).flags
    assert "intervals_differ" in bootstrap_mean([1] * 12, seed=1).flags
    assert bootstrap_mean([0, 1] * 200, seed=1).flags == ()


bands = st.lists(st.tuples(unit, st.floats(0, 0.3), st.floats(0, 0.3)), min_size=1, max_size=9)


def estimates(drawn):
    return {
        f"m{i}": Estimate(
            value=v,
            lo=v - a,
            hi=v + a,
            n=50,
            n_clusters=50,
            second=Second(method="x", lo=v - b, hi=v + b),
        )
        for i, (v, a, b) in enumerate(drawn)
    }


@given(bands, st.sampled_from(["leader", "arena", "closure"]), st.sampled_from(["high", "low"]))
def test_a_rank_lies_in_its_range_and_no_separated_pair_shares_one(drawn, rule, better):
    given_ = estimates(drawn)
    found = rank(given_, rule=rule, better=better)
    above = separated(list(given_.values()), better=better)
    ranks = list(found.values())
    for i, one in enumerate(ranks):
        if rule != "closure":
            assert one.lo <= one.rank <= one.hi
        for j, other in enumerate(ranks):
            if above[i, j]:
                assert one.rank < other.rank or (rule == "closure" and one.rank <= other.rank)
    assert min(one.rank for one in ranks) == 1


@given(bands)
def test_turning_the_scale_over_turns_nothing_else(drawn):
    given_ = estimates(drawn)
    turned = {
        n: Estimate(
            value=-e.value,
            lo=-e.hi,
            hi=-e.lo,
            n=50,
            n_clusters=50,
            second=Second(method="x", lo=-e.second.hi, hi=-e.second.lo),
        )
        for n, e in given_.items()
    }
    assert rank(given_, better="high") == rank(turned, better="low")


def test_too_few_items_are_not_ranked():
    few = {"a": bootstrap_mean([1, 0, 1], seed=1), "b": bootstrap_mean([1, 0] * 10, seed=1)}
    assert rank(few)["a"].reason == "too_few_items"
    assert rank(few)["b"].rank == 1


def field(matrix, *, clusters=None, splits=None, **more):
    matrix = np.array(matrix, dtype=float)
    n = matrix.shape[1]
    numbers = np.array(clusters if clusters is not None else range(-n, 0))
    edges = [0, *(splits or []), n]
    strata = [
        Stratum(name=f"d{k}", scores=matrix[:, a:b], clusters=numbers[a:b], seed=k + 1)
        for k, (a, b) in enumerate(pairwise(edges))
    ]
    rows = [(f"m{i}", "s") for i in range(len(matrix))]
    return field_of(rows, strata, Options(pool_seed=99, n_resamples=200), **more)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 7), st.integers(10, 25), st.integers(0, 2**32), st.booleans(), st.booleans())
def test_the_simultaneous_order_is_transitive(models, items, seed, clustered, pooled):
    rng = np.random.default_rng(seed)
    matrix = (rng.random((models, items)) < rng.random((models, 1))).astype(float)
    clusters = [i // 2 for i in range(items)] if clustered else None
    found = field(matrix, clusters=clusters, splits=[4, 6] if pooled and not clustered else None)
    above = {(p.first, p.second) for p in found.pairs if p.ordered and p.difference.value > 0}
    above |= {(p.second, p.first) for p in found.pairs if p.ordered and p.difference.value < 0}
    for a, b in above:
        for c, d in above:
            if b == c:
                assert (a, d) in above


def test_complete_cases(golden):
    case = golden("statistics_extra")["complete_cases"]
    names = list(case["inputs"]["scores"])
    matrix = [[np.nan if x is None else x for x in case["inputs"]["scores"][m]] for m in names]
    found = field(matrix)
    want = case["expected"]
    by_name = dict(zip(names, found.standings, strict=True))
    for name, standing in by_name.items():
        assert standing.coverage == pytest.approx(want["coverage"][name])
        assert standing.estimate.value == pytest.approx(want["published"]["means"].get(name, 0.6))
        bounds = want["mean_worst_best"][name]
        assert (standing.estimate.worst, standing.estimate.best) == (
            pytest.approx(bounds["worst"]),
            pytest.approx(bounds["best"]),
        )
    assert found.not_common
    assert found.common_share == pytest.approx(want["common_share"])
    assert by_name["c"].rank.reason == "coverage"


def test_common_items_are_used_when_they_are_nearly_all():
    matrix = np.tile([1.0, 0.0], (3, 20))
    matrix[1, 3] = np.nan
    found = field(matrix)
    assert not found.not_common
    assert found.n_common == 39
    assert {s.estimate.n for s in found.standings} == {39}


def test_equal_models_are_never_different():
    found = field(np.tile([1.0, 0.0, 1.0], (3, 8)))
    assert all(
        not p.difference.different and not p.ordered and not p.separated for p in found.pairs
    )
    assert [s.rank.rank for s in found.standings] == [1, 1, 1]


def test_a_domain_with_one_item_gives_no_pooled_interval():
    found = field(np.tile([1.0, 0.0], (2, 8)), splits=[1])
    assert found.standings[0].estimate is None
    assert found.standings[0].rank.reason == "no_interval"


@pytest.mark.parametrize(
    ("clusters", "spans"),
    [([[0, 1], [2, 3]], False), ([[0, 0], [1, 2]], False), ([[0, 1], [1, 2]], True)],
)
def test_domains_that_share_a_cluster_are_not_independent(clusters, spans):
    scores = np.array([[1.0, 0.0], [0.0, 0.0]])
    strata = [
        Stratum(name=f"d{n}", scores=scores, clusters=np.array(labels), seed=n)
        for n, labels in enumerate(clusters)
    ]
    evidence = Evidence.of(strata, [np.ones(2, dtype=bool)] * 2, 0, 1)
    assert evidence.spans is spans
    alone = len({*clusters[0], *clusters[1]}) == 4
    assert (evidence.discordant == (2, 0)) is alone


def test_a_cluster_that_spans_domains_is_drawn_whole():
    clusters = [0, *range(1, 10), 0, *range(11, 20)]
    found = field(np.random.default_rng(1).integers(0, 2, (2, 20)), clusters=clusters, splits=[10])
    assert found.standings[0].estimate.n_clusters == 19
    assert found.standings[0].estimate.lo < found.standings[0].estimate.hi


def test_references_never_rank_and_do_not_shrink_the_common_items():
    matrix = np.tile([1.0, 0.0], (3, 10))
    matrix[2, :15] = np.nan
    found = field(matrix, unranked={("m2", "s"): "baseline"})
    assert found.standings[2].rank.reason == "baseline"
    assert found.n_common == 20


def test_bounds_flag_a_leader_that_missing_scores_could_unseat():
    matrix = np.vstack([[1.0] * 20 + [0.0] * 20, [1.0] * 19 + [0.0] * 21])
    assert not field(matrix).leader_changes_with_nulls
    matrix[0, :2] = np.nan
    assert field(matrix).leader_changes_with_nulls


def test_other_scales_are_not_clipped():
    low = Scale(lo=0, hi=float("inf"), better="low")
    e = bootstrap_mean([1.0, 5.0, 30.0, 2.0] * 5, seed=3, scale=low)
    assert e.second.method == "bca"
    assert e.second.hi > 1


def test_no_end_of_a_pooled_interval_leaves_the_scale():
    """One low score in each of two small domains: stretched draws fall below 0."""
    rare = np.zeros((2, 12))
    rare[0, [0, 6]] = 0.1
    rare[1] = 1 - rare[0]
    low, high = (standing.estimate for standing in field(rare, splits=[6]).standings)
    assert (low.lo, high.hi) == (0, 1)
    assert 0 <= low.lo <= low.value <= low.hi <= 1
