"""A domain of few items in a pool: marked by name and weight, or its rows are taken out of the
overall ranking.
"""

import numpy as np
import pytest

from medassay.core.ranks import small_domain_text
from medassay.statistic.ranking.field import field_of
from medassay.statistic.ranking.pool import Options, Stratum


def field(sizes, *, clusters=None, graded=False, **options):
    random, strata, start = np.random.default_rng(1), [], 0
    for number, n in enumerate(sizes):
        drawn = random.random((2, n))
        scores = drawn if graded else (drawn < 0.7).astype(float)
        own = np.arange(n) if clusters is None else np.repeat(np.arange(len(clusters)), clusters)
        strata.append(Stratum(name=f"d{number}", scores=scores, clusters=own + start, seed=number))
        start += n
    made = Options(pool_seed=1, rule="simultaneous", n_resamples=200, **options)
    return field_of([("a", "s"), ("b", "s")], strata, made)


def told(found):
    """Return whether rows are ranked, why not, and their marks."""
    [one, other] = found.standings
    assert one.rank.reason == other.rank.reason
    return one.rank.rank is not None, one.rank.reason, set(one.marks)


def test_the_golden_cases(golden):
    for case in golden("ranks")["ranked_or_not"]:
        if "sizes" in case:
            found = field([sum(case["sizes"])], clusters=case["sizes"])
        elif "domains" in case:
            small = {"pooled_small": case["pooled_small"]} if "pooled_small" in case else {}
            found = field(case["domains"], **small)
        elif case["clusters" if "clusters" in case else "items"] < case["items"]:
            sizes = np.diff(np.linspace(0, case["items"], case["clusters"] + 1).astype(int))
            found = field([case["items"]], clusters=sizes)
        else:
            found = field([case["items"]], graded=case.get("graded", False))
        ranked, reason, marks = told(found)
        assert ranked == case["ranked"], case["name"]
        if not ranked:
            assert reason == case["reason"], case["name"]
        elif "mark" in case:
            assert case["mark"] in marks, case["name"]


def test_a_domain_of_few_clusters_is_named_with_both_numbers():
    found = field([30, 30], clusters=[6] * 5)
    assert found.small_domains == {"d0": (30, 5), "d1": (30, 5)}
    assert small_domain_text("d0", 30, 5, 0.5) == "d0: 30 items in 5 clusters, 50.0 % of the mean"


@pytest.mark.parametrize("size", [1, 2])
def test_two_items_no_longer_outvote_two_thousand(size):
    found = field([size, 200])
    assert found.small_domains == {"d0": (size, size)}
    for standing in found.standings:
        assert standing.estimate.hi - standing.estimate.lo > 0.3
        assert "small_domain" in standing.marks
