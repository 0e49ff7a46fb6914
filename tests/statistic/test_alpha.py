"""Alpha: golden panels, and the textbook's definition computed by brute force."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.errors import StatisticError
from medassay.statistic import alpha_estimate, krippendorff_alpha
from medassay.statistic.agreement.alpha import alpha_draws

CODES = {"contradict": 0.0, "missing": 1.0, "entail": 2.0, None: np.nan}


def test_reproduces_the_golden_panels(golden):
    for panel in golden("rubric")["panels"]:
        ratings = [[CODES[v] for v in judge] for judge in panel["verdicts_by_judge"]]
        for level in ("nominal", "ordinal"):
            expected = panel[f"alpha_{level}"]
            found = krippendorff_alpha(ratings, level)
            assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))


def brute_force(ratings, level):
    """Alpha from pairs of values, as the definition says, without matrices."""
    units = [[v for v in unit if not np.isnan(v)] for unit in np.asarray(ratings).T]
    units = [unit for unit in units if len(unit) > 1]
    values = [v for unit in units for v in unit]
    counts = {v: values.count(v) for v in values}

    def distance(a, b):
        if level == "nominal":
            return float(a != b)
        if level == "interval":
            return (a - b) ** 2
        lo, hi = min(a, b), max(a, b)
        between = sum(n for v, n in counts.items() if lo <= v <= hi)
        return (between - (counts[lo] + counts[hi]) / 2) ** 2 if lo != hi else 0.0

    if len(units) < 2:
        return None
    observed = sum(
        distance(a, b) / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2)
    ) / len(values)
    expected = sum(distance(a, b) for a, b in permutations(values, 2)) / (
        len(values) * (len(values) - 1)
    )
    return None if expected == 0 else 1 - observed / expected


ratings = st.integers(2, 5).flatmap(
    lambda raters: st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0, np.nan]), min_size=raters, max_size=raters),
        min_size=1,
        max_size=12,
    )
)


@given(ratings, st.sampled_from(["nominal", "ordinal", "interval"]))
def test_equals_brute_force_with_missing_ratings(units, level):
    array = np.array(units).T
    expected = brute_force(array, level)
    found = krippendorff_alpha(array, level)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))


@given(ratings, st.randoms(use_true_random=False))
def test_raters_and_units_have_no_order(units, random):
    shuffled = [random.sample(unit, len(unit)) for unit in units]
    random.shuffle(shuffled)
    first, second = (krippendorff_alpha(np.array(u).T) for u in (units, shuffled))
    assert first == (None if second is None else pytest.approx(second, abs=1e-9))


def as_table(rows):
    return np.array([[np.nan if v is None else float(v) for v in row] for row in rows])


def test_reproduces_the_published_example_and_its_neighbours(golden):
    for case in golden("statistics_extra")["krippendorff_alpha"]["cases"]:
        for level, expected in case["expected"].items():
            found = krippendorff_alpha(as_table(case["ratings_by_rater"]), level)
            assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))


def test_reproduces_the_golden_draws(golden):
    case = golden("statistics_extra")["krippendorff_alpha"]["item_bootstrap"]
    counts = np.array(case["counts_draws_by_items"], dtype=float)
    for level, expected in case["expected"].items():
        drawn = alpha_draws(
            as_table(case["ratings_by_rater"]), np.array(case["item_of_unit"]), [counts], level
        )
        assert drawn == pytest.approx(expected["draws"], abs=1e-9)


def test_an_interval_resamples_items_whole():
    random = np.random.default_rng(3)
    truth = random.integers(0, 3, 240)
    noisy = [np.where(random.random(240) < 0.85, truth, random.integers(0, 3, 240)) for _ in "abc"]
    items = np.repeat(np.arange(60), 4)
    found = alpha_estimate(noisy, items, seed=1)
    assert found.lo < found.value < found.hi
    assert (found.n, found.n_clusters, found.flags) == (240, 60, ())
    assert alpha_estimate(noisy, np.arange(240), seed=1).n_clusters == 240
    few = alpha_estimate([row[:40] for row in noisy], items[:40], seed=1)
    assert few.flags == ("approximate",)


def test_an_interval_is_left_out_when_many_draws_have_one_category():
    ratings = np.zeros((3, 12))
    ratings[0, 0] = 1
    assert krippendorff_alpha(ratings) is not None
    assert alpha_estimate(ratings, np.arange(12), seed=1) is None


@pytest.mark.parametrize("bad", [[], [[]], [1, 2], [[np.inf, 1]]])
def test_refuses_what_is_no_table_of_ratings(bad):
    with pytest.raises(StatisticError):
        krippendorff_alpha(bad)


def test_many_units_are_summed_whole():
    """Oracle: the closed form for two raters and two values; more units than are held at once."""
    random = np.random.default_rng(7)
    first = random.integers(0, 2, 9001)
    second = np.where(random.random(9001) < 0.8, first, 1 - first)
    n, apart = 2 * 9001, 2 * int((first != second).sum())
    ones = int(first.sum() + second.sum())
    expected = 1 - (n - 1) * apart / (2 * ones * (n - ones))
    assert krippendorff_alpha([first, second]) == pytest.approx(expected, abs=1e-12)
