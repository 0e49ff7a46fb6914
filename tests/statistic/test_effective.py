"""The printed interval: the golden values, its limits, and its laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.core.scale import Scale
from medassay.statistic.draws import number_clusters
from medassay.statistic.interval.effective import (
    effective_interval,
    effective_number,
    spread_of,
)
from medassay.statistic.interval.wilson import wilson_interval


def given_domains(inputs):
    """Return domains, and the clusters of all items where one spans domains, from the golden
    inputs.
    """
    domains, names = [], []
    for number, one in enumerate(inputs["domains"]):
        labels = one.get("clusters") or [f"{number}.{n}" for n in range(len(one["scores"]))]
        names += labels
        domains.append((np.array(one["scores"], dtype=float), number_clusters(labels)))
    spans = inputs["clusters_span_domains"]
    return domains, number_clusters(names) if spans else None


def test_the_golden_intervals(golden):
    for case in golden("ranks")["intervals"]:
        inputs, expected = case["inputs"], case["expected"]
        domains, spanning = given_domains(inputs)
        lo, hi = inputs["scale"]
        found = effective_interval(
            domains, scale=Scale(lo=lo, hi=hi), weights=inputs["weights"], spanning=spanning
        )
        assert found.method == expected["method"], case["name"]
        told = (found.mean, *found.ends, found.n_star, found.quantile)
        wanted = (expected[k] for k in ("mean", "lo", "hi", "n_star", "quantile"))
        assert told == pytest.approx(tuple(wanted), abs=1e-9), case["name"]
        if "f" in expected and spanning is None:
            fs = [spread_of(*domain).f for domain in domains]
            assert fs == pytest.approx(expected["f"], rel=1e-9), case["name"]


def test_the_golden_effective_numbers(golden):
    for case in golden("ranks")["ranked_or_not"]:
        if "sizes" in case:
            assert effective_number([case["sizes"]]) == pytest.approx(case["effective"])
        elif "domains" in case and "effective" in case:
            sizes = [[1] * n for n in case["domains"]]
            assert effective_number(sizes) == pytest.approx(case["effective"])


@given(st.integers(1, 200), st.data())
def test_one_domain_of_right_and_wrong_is_wilson(n, data):
    right = data.draw(st.integers(0, n))
    scores = np.array([1.0] * right + [0.0] * (n - right))
    found = effective_interval([(scores, None)], scale=Scale())
    assert found.ends == pytest.approx(wilson_interval(right, n), abs=1e-12)


@given(
    st.lists(
        st.tuples(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.lists(st.integers(0, 5))),
        min_size=1,
        max_size=4,
    )
)
def test_the_interval_holds_the_mean_and_has_width(given_scores):
    domains = [
        (
            np.array(scores),
            number_clusters([names[n % len(names)] if names else n for n in range(len(scores))]),
        )
        for scores, names in given_scores
    ]
    found = effective_interval(domains, scale=Scale())
    lo, hi = found.ends
    assert 0 <= lo <= found.mean + 1e-12
    assert found.mean - 1e-12 <= hi <= 1
    assert hi - lo > 0


@given(st.lists(st.floats(1, 5), min_size=2, max_size=30))
def test_a_longer_scale_is_the_same_interval_stretched(scores):
    plain = effective_interval([((np.array(scores) - 1) / 4, None)], scale=Scale())
    wide = effective_interval([(np.array(scores), None)], scale=Scale(lo=1.0, hi=5.0))
    assert wide.ends == pytest.approx([1 + 4 * end for end in plain.ends], abs=1e-9)


def test_scores_beyond_their_scale_get_a_t_interval_and_none_without_spread():
    scale = Scale(lo=0.0, hi=1.0)
    assert (
        effective_interval([(np.array([0.5, 1.5, 1.0]), None)], scale=scale).method == "t_effective"
    )
    assert effective_interval([(np.array([1.5, 1.5]), None)], scale=scale).ends is None
