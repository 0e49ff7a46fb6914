import numpy as np
import pytest

from medassay.core.records.estimate import Estimate
from medassay.statistic import (
    bootstrap_mean,
    clopper_pearson_upper,
    holm,
    mcnemar,
    oracle,
    paired_difference,
    rank,
    wilson_interval,
    worst_five_percent_mean,
)
from medassay.statistic.draws import cluster_sums, draw_means, number_clusters, stream
from medassay.statistic.interval.bootstrap import bca, percentile
from medassay.statistic.interval.cluster import linearised_se
from medassay.statistic.ranking.pool import stretch
from medassay.statistic.ranking.shared import rank_sets
from medassay.statistic.ranking.simultaneous import difference_norms, simultaneous_order
from medassay.statistic.test.margin import difference_bounds
from medassay.statistic.test.paired import bootstrap_p
from medassay.statistic.test.planner import exact_power, items_exact, items_graded


@pytest.fixture(scope="module")
def main(golden):
    return golden("statistics")


@pytest.fixture(scope="module")
def extra(golden):
    return golden("statistics_extra")


def near(x, tolerance=1e-9):
    return pytest.approx(x, abs=tolerance)


def test_the_stream(main):
    check = main["rng_check"]
    found = (stream(check["seed"]).random_sample(20) * check["n"]).astype(int)
    assert found.tolist() == check["first_20_indices"]


def test_bootstrap(main):
    for case in main["bootstrap"]:
        found = bootstrap_mean(case["x"], seed=int(case["seed"]), n_resamples=case["B"])
        assert (found.value, found.lo, found.hi) == (
            near(case["mean"]),
            near(case["lo"]),
            near(case["hi"]),
        )


def test_paired(main, extra):
    for case in main["paired"]:
        found = paired_difference(case["x"], case["y"], seed=case["seed"])
        assert (found.value, found.lo, found.hi) == (
            near(case["diff"]),
            near(case["lo"]),
            near(case["hi"]),
        )
        assert (found.p_bootstrap, found.different) == (near(case["p"]), case["different"])
    few = extra["paired_small_counts"]
    d = np.array(few["inputs"]["differences"])
    found = paired_difference(d, np.zeros_like(d), seed=few["inputs"]["seed"])
    want = few["expected"]
    assert (found.lo, found.hi, found.p) == (
        near(want["lo"]),
        near(want["hi"]),
        near(want["p_mcnemar"]),
    )
    assert (found.p_bootstrap, found.different) == (near(want["p_bootstrap"]), False)


def test_exact_bootstrap_moments(main):
    case = main["exact_bootstrap"]
    x = np.array(case["x"])
    means = np.array([x[list(i)].mean() for i in np.ndindex(3, 3, 3)])
    assert (means.mean(), means.var()) == (near(case["mean"]), near(case["var"]))
    drawn = draw_means(x[:, None], None, 20_000, 7)
    assert drawn.var() == pytest.approx(case["var"], rel=0.05)


def estimates(models):
    return {
        m["id"]: Estimate(value=m["mean"], lo=m["lo"], hi=m["hi"], n=99, n_clusters=99)
        for m in models
    }


def test_tie_ranks(main):
    for case in main["tie_ranks"]:
        found = rank(estimates(case["models"]))
        for want in case["expect"]:
            one = found[want["id"]]
            assert (one.rank, one.lo, one.hi) == (
                want["rank"],
                want["rank_best"],
                want["rank_worst"],
            )
            assert {n for n, r in found.items() if r.group == one.group} == set(want["group"])


def test_rank_rules(extra):
    for case in extra["rank_rules"]["cases"]:
        given, want = estimates(case["models"]), case["expected"]
        for rule, name in (
            ("leader", "group_all_mutually_tied"),
            ("arena", "arena"),
            ("closure", "closure"),
        ):
            if name in want:
                assert {n: r.rank for n, r in rank(given, rule=rule).items()} == want[name]
        if "rank_best" in want:
            assert {n: r.lo for n, r in rank(given).items()} == want["rank_best"]
            assert {n: r.hi for n, r in rank(given).items()} == want["rank_worst"]


def test_oracle(main):
    case = main["oracle"]
    found = oracle(np.array(case["scores"], dtype=float), seed=1)
    assert found.estimate.value == near(case["oracle"])
    assert (found.best_single, found.headroom) == (
        near(case["best_single"]),
        near(case["headroom"]),
    )
    assert list(found.wins) == near(case["wins"])
    n = len(case["scores"][0])
    for wins, (lo, hi) in zip(found.wins, found.win_ends, strict=True):
        assert 0 <= lo <= wins / n <= hi <= 1
    assert found.unsolved_share == near(case["unsolved_share"])


def test_a_share_of_wins_has_wilsons_interval_where_every_item_has_one_winner():
    scores = np.array([[1.0] * 3 + [0.0] * 9, [0.0] * 3 + [1.0] * 9])
    found = oracle(scores, seed=1)
    assert found.win_ends[0] == pytest.approx(wilson_interval(3, 12))
    related = oracle(np.repeat(scores, 4, axis=1), seed=1, clusters=np.repeat(np.arange(12), 4))
    lo, hi = related.win_ends[0]
    assert lo < wilson_interval(12, 48)[0]  # four items of a cluster say hardly more than one
    assert hi > wilson_interval(12, 48)[1]


def test_simultaneous_order(extra):
    block = extra["paired_simultaneous_order"]
    names = block["inputs"]["models"]
    scores = np.array(block["inputs"]["scores_items_by_models"]).T
    counts = np.array(block["inputs"]["counts_draws_by_items"], dtype=float)
    n = scores.shape[1]
    want = block["expected"]["rms"]
    se = difference_norms([scores / n])
    assert se == near(np.array(want["se"]))
    found = simultaneous_order(scores.mean(axis=1), counts @ scores.T / n, se)
    assert found.c == near(want["c"])
    order = [[a, b] for i, a in enumerate(names) for j, b in enumerate(names) if found.above[i, j]]
    assert sorted(order) == sorted(want["order"])
    best, worst = rank_sets(found.above)
    assert {m: [best[i], worst[i]] for i, m in enumerate(names)} == want["rank_sets"]
    for pair, p in want["p_max_t"].items():
        a, b = (names.index(m) for m in pair.split("|"))
        assert found.p_max_t[a, b] == near(p)


def test_wilson(extra):
    for case in extra["wilson"]["cases"]:
        assert wilson_interval(case["k"], case["n"]) == (near(case["lo"]), near(case["hi"]))
    graded = extra["wilson"]["graded"]
    assert wilson_interval(sum(graded["scores"]), len(graded["scores"])) == (
        near(graded["lo"]),
        near(graded["hi"]),
    )


def test_bca(extra):
    for case in extra["bca"]["cases"]:
        scores = np.array(case["scores"])
        draws = draw_means(scores[:, None], None, case["n_resamples"], case["seed"])[:, 0]
        assert list(percentile(draws)) == near(case["percentile"])
        assert bca(scores, draws) == (
            near(case["expected"]["lo"]),
            near(case["expected"]["hi"]),
        )
    for case in extra["bca"]["null_cases"]:
        scores = np.array(case["scores"], dtype=float)
        assert bca(scores, draw_means(scores[:, None], None, 200, 1)[:, 0]) is None


def test_cluster_bootstrap(extra):
    block = extra["cluster_bootstrap"]
    names = [c or f"own {i}" for i, c in enumerate(block["inputs"]["clusters"])]
    numbers = number_clusters(names)
    scores = np.array(block["inputs"]["scores"], dtype=float)
    want = block["expected"]
    sums, sizes = cluster_sums(scores[:, None], numbers)
    assert sums[:, 0].tolist() == near(want["cluster_sums"])
    assert sizes.tolist() == want["cluster_sizes"]
    drawn = np.array(block["inputs"]["draws_of_cluster_numbers"])
    means = sums[drawn, 0].sum(axis=1) / sizes[drawn].sum(axis=1)
    assert means.tolist() == near(want["means"])
    lo, hi = percentile(means)
    assert (lo, hi) == (near(want["lo"]), near(want["hi"]))
    assert linearised_se(scores, numbers) == near(want["linearised_se"])


def test_mcnemar_holm_and_exact_bounds(extra):
    for case in extra["mcnemar"]["cases"]:
        assert mcnemar(case["b"], case["c"]) == near(case["p"])
    for case in extra["holm"]["cases"]:
        assert holm(case["p"]) == near(case["expected"], 1e-12)
    for case in extra["clopper_pearson"]["cases"]:
        assert clopper_pearson_upper(case["k"], case["n"]) == near(case["upper"])
    for case in extra["worst_five_percent_mean"]["cases"]:
        assert worst_five_percent_mean(case["scores"]) == near(case["expected"])


def test_stretched_strata(extra):
    block = extra["stratified_pooled"]
    domains = [np.array(d, dtype=float) for d in block["inputs"]["domains"]]
    macro, micro, stretched = [], [], []
    for draw in block["inputs"]["draws_of_item_numbers"]:
        means = [d[i].mean() for d, i in zip(domains, draw, strict=True)]
        macro.append(np.mean(means))
        micro.append(np.concatenate([d[i] for d, i in zip(domains, draw, strict=True)]).mean())
        stretched.append(
            np.mean(
                [
                    stretch(np.array(m), d.mean(), len(d))
                    for m, d in zip(means, domains, strict=True)
                ]
            )
        )
    want = block["expected"]
    assert macro == near(want["macro_draws"])
    assert micro == near(want["micro_draws"])
    assert stretched == near(want["macro_rescaled_draws"])


def test_rounding_ties(extra):
    block = extra["rounding_ties"]
    a, b = (np.array(block["inputs"][k]) for k in "ab")
    draws = draw_means(
        (a - b)[:, None], None, block["inputs"]["n_resamples"], block["inputs"]["seed"]
    )[:, 0]
    assert np.count_nonzero(np.abs(draws) <= 1e-12) == block["expected"]["n_eq_0"]
    assert bootstrap_p(draws) == block["expected"]["p"]


def test_equivalence(extra):
    block = extra["tost"]
    a, b = (np.array(block["graded"][name]) for name in "ab")
    found = difference_bounds([a], [b], [None])
    assert (found.lo, found.hi) == (
        near(block["graded"]["lo"], 1e-7),
        near(block["graded"]["hi"], 1e-7),
    )
    for case in block["graded"]["cases"]:
        assert found.equivalent(case["margin"]) is case["equivalent"]
        assert found.non_inferior(case["margin"]) is case["non_inferior"]
    for case in block["binary"]:
        same = case["n"] - case["b"] - case["c"]
        one = np.array([1.0] * case["b"] + [0.0] * case["c"] + [1.0] * same)
        other = np.array([0.0] * case["b"] + [1.0] * case["c"] + [1.0] * same)
        found = difference_bounds([one], [other], [None])
        assert found.method == "tango"
        assert (found.lo, found.hi) == (near(case["lo"], 1e-7), near(case["hi"], 1e-7))
        assert found.equivalent(case["margin"]) is case["equivalent"]
        assert found.non_inferior(case["margin"]) is case["non_inferior"]


def test_planner(extra):
    block = extra["planner"]
    for case in block["binary"]:
        found = items_exact(case["psi"], case["delta"])
        assert found.n_asymptotic == case["n_asymptotic"]
        assert found.n_exact == case["n_exact_first"]
        assert found.power == near(case["exact_power_there"], 1e-6)
        power = exact_power(case["n_asymptotic"], case["psi"], case["delta"])
        assert power == near(case["exact_power_at_n_asymptotic"], 1e-6)
    for case in block["graded"]:
        assert items_graded(case["sd_d"], case["delta"]) == case["n"]
    for case in block["errors"]:
        with pytest.raises(ValueError, match="disagree"):
            items_exact(case["psi"], case["delta"])
    assert items_exact(0.2, 0.0) is None
    assert items_graded(0.2, 0.0) is None
