import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.core.scale import Scale
from medassay.errors import StatisticError
from medassay.kinds.diagnoses.scorer import score_case
from medassay.statistic import bootstrap_mean, reliability_weighted_mean, rescale
from medassay.statistic.interval.ratio import (
    DrawnStratum,
    Strata,
    linearised,
    ratio_estimate,
    ratio_p,
)
from medassay.statistic.metric.reliability import PRESETS, reliability_weights

NEAR = 1e-9
UNIT = Scale(lo=-1.0, hi=1.0)


def near(x):
    return pytest.approx(x, abs=NEAR)


def test_golden_aggregates(golden):
    for scenario in golden("ddx")["aggregation"]:
        scores = scenario["scores"]
        assert np.mean(scores) == near(scenario["simple_mean"])
        for name, preset in scenario["presets"].items():
            k, x0 = PRESETS[name]
            assert (k, x0) == (preset["k"], preset["x0"])
            weights = reliability_weights(scores, k=k, x0=x0)
            assert weights.tolist() == near(preset["weights"])
            assert (weights * scores).tolist() == near(preset["contributions"])
            found = reliability_weighted_mean(scores, k=k, x0=x0)
            assert found == near(preset["aggregated"])
            if preset["source_ok"]:
                assert found == pytest.approx(preset["printed_in_source"], abs=6e-4)


def test_golden_weights(golden):
    document = golden("ddx")
    [weights] = [v for v in document.values() if isinstance(v, list) and "rescaled" in v[0]]
    assert len(weights) > 10
    for one in weights:
        found = reliability_weights([one["rescaled"]], k=one["k"], x0=one["x0"])
        assert found[0] == near(one["weight"])


def test_golden_data_set(golden):
    document = golden("ddx")
    example = document["dataset_example"]
    cases = {case["id"]: case for case in document["cases"]}
    chosen = [cases[name] for name in ("P31", "P54", "P20", "P3")]
    scores = [score_case(c["rel"], c["sev"], c["golden"]) for c in chosen]
    both = {
        "semantic": rescale([s.semantic for s in scores]),
        "severity": rescale([s.severity for s in scores]),
    }
    for name, values in both.items():
        assert values.tolist() == near(example[f"{name}_rescaled"])
        for preset, wanted in example["aggregated"].items():
            k, x0 = PRESETS[preset]
            assert reliability_weighted_mean(values, k=k, x0=x0) == near(wanted[name])
    for k in (1, 3, 5):
        assert np.mean([s.hit is not None and s.hit <= k for s in scores]) == example[f"top{k}"]
    assert float(rescale(document["published_semantic_max"], "published")) == near(1.0)


finite = st.lists(st.floats(-1, 1.6, allow_subnormal=False), min_size=1, max_size=30)


@given(finite, st.floats(0.01, 2000), st.floats(-1, 1))
def test_the_weighted_mean_lies_below_the_plain_one_and_within_the_scores(scores, k, x0):
    found = reliability_weighted_mean(scores, k=k, x0=x0)
    assert min(scores) - NEAR <= found <= np.mean(scores) + NEAR


@given(finite, st.floats(0.1, 10))
def test_the_weighted_mean_is_the_formula(scores, k):
    weights = [1 / (1 + math.exp(k * min(max(s, -1), 1))) for s in scores]
    wanted = math.fsum(w * s for w, s in zip(weights, scores, strict=True)) / math.fsum(weights)
    assert reliability_weighted_mean(scores, k=k, x0=0) == near(wanted)


@pytest.mark.parametrize("k", [0, -1, math.nan, math.inf])
def test_a_steepness_that_is_none_is_refused(k):
    with pytest.raises(ValueError, match="expected k above 0"):
        reliability_weighted_mean([0.5], k=k, x0=0)


def test_no_cases_is_no_score_of_zero():
    with pytest.raises(StatisticError, match="no data"):
        reliability_weighted_mean([], k=3, x0=0)
    with pytest.raises(ValueError, match="NaN"):
        reliability_weighted_mean([math.nan], k=3, x0=0)
    for wrong in (0, -3, "theirs", math.nan):
        with pytest.raises(ValueError, match="score_max"):
            rescale(3, wrong)


def weighted(scores, preset="hard"):
    weights = reliability_weights(scores, k=PRESETS[preset][0], x0=PRESETS[preset][1])
    return np.asarray(scores) * weights, weights


def one_domain(n, seed=7, clusters=None):
    return Strata(
        [DrawnStratum(np.arange(n) if clusters is None else clusters, seed)],
        pool_seed=1,
        n_resamples=1000,
    )


def drawn(numerators, denominators, strata, scale=UNIT):
    sums = strata.sums(np.column_stack([numerators, denominators]))
    return ratio_estimate(numerators, denominators, sums[:, 0] / sums[:, 1], strata, scale=scale)


def estimate(scores, seed=7, clusters=None, preset="hard"):
    return drawn(*weighted(scores, preset), one_domain(len(scores), seed, clusters))


def test_draws_are_those_of_every_other_mean():
    scores = np.linspace(0, 1, 23) ** 2
    plain = bootstrap_mean(scores, seed=99)
    found = drawn(scores, np.ones(23), one_domain(23, 99), Scale())
    assert (found.value, found.lo, found.hi) == (
        near(plain.value),
        near(plain.lo),
        near(plain.hi),
    )
    assert found.second == plain.second


def test_a_draw_recomputes_weights_and_sums():
    """The slow way: draw the cases themselves and take the weighted mean anew."""
    from medassay.statistic.draws import stream

    scores = np.array([1, -0.5, 0.25, -1, 0.7, 0.1, -0.3])
    index = (stream(7).random_sample((1000, 7)) * 7).astype(int)
    slow = [reliability_weighted_mean(scores[row], k=3, x0=0) for row in index]
    found = estimate(scores)
    lo, hi = np.quantile(slow, [0.025, 0.975])
    assert (found.lo, found.hi) == (near(lo), near(hi))
    assert found.value == near(reliability_weighted_mean(scores, k=3, x0=0))


def test_linearised_values_have_the_ratio_as_their_mean():
    numerators, denominators = weighted([1, -0.5, 0.25, -1])
    values = linearised(numerators, denominators)
    assert values.mean() == near(numerators.sum() / denominators.sum())


def test_second_interval_with_clusters_is_wider_when_cases_repeat():
    scores = np.tile(np.linspace(-0.9, 0.9, 15), 4)
    alone = estimate(scores)
    joined = estimate(scores, clusters=np.tile(np.arange(15), 4))
    assert (joined.second.method, alone.second.method) == ("cluster_t", "bca")
    assert joined.n_clusters == 15
    assert joined.second.hi - joined.second.lo > 1.5 * (alone.second.hi - alone.second.lo)


def test_the_weighted_mean_is_covered_as_often_as_it_says():
    rng = np.random.default_rng(20261121)
    population = rescale(rng.beta(2, 3, 200_000) * 16)
    truth = reliability_weighted_mean(population, k=3, x0=0)
    hits = []
    for seed in range(400):
        found = estimate(rng.choice(population, 80), seed=seed)
        hits.append((found.lo <= truth <= found.hi, found.second.lo <= truth <= found.second.hi))
    first, second = np.mean(hits, axis=0)
    assert first == pytest.approx(0.95, abs=0.035)
    assert second == pytest.approx(0.95, abs=0.035)


def domains(*sizes, clusters=None):
    """Return some domains whose clusters are the cases, or given over all of them."""
    numbers = np.arange(sum(sizes)) if clusters is None else np.array(clusters)
    parts = np.split(numbers, np.cumsum(sizes)[:-1])
    strata = [DrawnStratum(part, 100 + n) for n, part in enumerate(parts)]
    return Strata(strata, pool_seed=5, n_resamples=1000)


def test_a_pool_stretches_each_domain_about_its_sums():
    """The slow way: each domain drawn alone by its own seed, stretched by √(n / (n − 1))."""
    from medassay.statistic.draws import count_rows

    values, strata = np.arange(9.0), domains(3, 6)
    slow = np.zeros(1000)
    for part, seed in ((values[:3], 100), (values[3:], 101)):
        counts = np.concatenate(list(count_rows(len(part), 1000, seed)))
        n = len(part)
        slow += part.sum() + math.sqrt(n / (n - 1)) * (counts @ part - part.sum())
    assert strata.sums(values[:, None])[:, 0].tolist() == near(slow.tolist())
    assert strata.stratified


def test_a_domain_of_one_case_leaves_the_pool_without_an_interval():
    assert not domains(1, 5).has_interval
    assert domains(5).has_interval
    with pytest.raises(StatisticError, match="single item"):
        domains(1, 5).sums(np.ones((6, 1)))


def test_clusters_that_span_domains_are_drawn_over_all_of_them():
    clusters = [0, 1, 2, 0, 1, 2]
    strata = domains(3, 3, clusters=clusters)
    whole = Strata([DrawnStratum(np.array(clusters), 5)], pool_seed=0, n_resamples=1000)
    columns = np.arange(6.0)[:, None]
    assert not strata.stratified
    assert strata.sums(columns).tolist() == whole.sums(columns).tolist()


def test_a_pool_covers_as_often_as_it_says():
    rng = np.random.default_rng(20261122)
    populations = [rescale(rng.beta(2 + h % 3, 3, 50_000) * 16) for h in range(10)]
    truth = reliability_weighted_mean(np.concatenate(populations), k=3, x0=0)
    hits = []
    for _ in range(300):
        scores = np.concatenate([rng.choice(p, 6) for p in populations])
        found = drawn(*weighted(scores), domains(*[6] * 10))
        assert found.second.method == "stratified_t"
        hits.append((found.lo <= truth <= found.hi, found.second.lo <= truth <= found.second.hi))
    first, second = np.mean(hits, axis=0)
    assert first == pytest.approx(0.95, abs=0.05)
    assert second == pytest.approx(0.95, abs=0.04)


def test_the_steepest_weights_still_have_an_interval():
    scores = [1.0] * 20 + [-1.0]
    found = drawn(*weighted_by(scores, 100.0), one_domain(21))
    assert found.value == near(-1.0)
    assert found.lo <= found.value <= found.hi


def weighted_by(scores, k):
    from medassay.statistic.metric.reliability import relative_weights

    weights = relative_weights(scores, k=k, x0=0)
    return np.asarray(scores) * weights, weights


def test_p_of_a_pair_is_the_paired_t_test_where_there_is_one_domain():
    from scipy.stats import ttest_1samp

    differences = np.array([0.3, -0.1, 0.4, 0.2, 0.05, -0.2, 0.6])
    found = ratio_p(differences, one_domain(7))
    assert found == pytest.approx(ttest_1samp(differences, 0).pvalue, abs=1e-12)
    assert ratio_p(np.zeros(7), one_domain(7)) == 1.0
