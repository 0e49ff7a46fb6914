"""Correlations and their tree: the golden matrix, SciPy, and what is undefined."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optional import scipy_stats

from medassay.statistic.metric.correlation import pearson, tree


def test_the_golden_values(golden):
    wanted = golden("statistics")["correlation"]
    found = pearson(np.column_stack([wanted["x"], wanted["y"]]))
    assert found.values[0][1] == pytest.approx(wanted["pearson"], abs=1e-9)


def test_the_golden_clusters_of_metrics(golden):
    wanted = golden("statistics")["metric_clusters"]
    found = pearson(wanted["values"])
    assert np.allclose(np.array(found.values, dtype=float), wanted["pearson"], atol=1e-9)
    joined = tree(found.values)
    named = [[wanted["metrics"][at] for at in cluster] for cluster in joined.clusters]
    assert sorted(map(sorted, named)) == sorted(map(sorted, wanted["clusters"]))
    assert sorted(joined.order) == list(range(len(wanted["metrics"])))
    assert [at for cluster in joined.clusters for at in cluster] == list(joined.order)


@given(st.lists(st.tuples(*[st.integers(-50, 50)] * 2), min_size=3, max_size=30))
def test_r_is_that_of_scipy(rows):
    table = np.array(rows, dtype=float)
    found = pearson(table).values[0][1]
    if min(np.ptp(table, axis=0)) == 0:
        assert found is None
    else:
        assert found == pytest.approx(scipy_stats.pearsonr(*table.T).statistic, abs=1e-9)


def test_only_complete_pairs_count():
    nan = float("nan")
    found = pearson([[1, 2, 5], [2, nan, 5], [3, 6, nan], [4, 8, 5], [nan, 1, 5]])
    assert found.n[0][1] == 3
    assert found.values[0][1] == pytest.approx(1.0)
    assert found.n[0][2] == 3
    assert found.values[0][2] is None  # the third does not vary


def test_fewer_than_three_pairs_say_nothing():
    assert pearson([[1, 2], [2, 4]]).values[0][1] is None


def test_an_undefined_r_is_far_from_everything():
    joined = tree([[1.0, 0.9, None], [0.9, 1.0, None], [None, None, 1.0]])
    assert sorted(map(sorted, joined.clusters)) == [[0, 1], [2]]
    assert joined.merges[-1][2] == pytest.approx(1.0)


def test_what_falls_together_is_as_near_as_what_rises_together():
    joined = tree([[1.0, -0.95], [-0.95, 1.0]])
    assert sorted(joined.clusters[0]) == [0, 1]


@pytest.mark.parametrize("k", [0, 1])
def test_a_tree_of_one_is_itself(k):
    assert tree([[1.0]] * k).order == tuple(range(k))
