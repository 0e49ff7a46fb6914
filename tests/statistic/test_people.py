import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.errors import StatisticError
from medassay.statistic import krippendorff_alpha
from medassay.statistic.agreement.people import (
    cohen_kappa,
    kappa_interval,
    prediction_powered_mean,
    score_agreement,
    variance_components,
)


def test_reproduces_the_golden_prediction_powered_means(golden):
    case = golden("statistics_extra")["prediction_powered_mean"]
    given = [case["inputs"][k] for k in ("human", "judge_on_labelled", "judge_on_unlabelled")]
    for expected in case["expected"]:
        lam = expected["lam"] if expected["tuning"] == "fixed" else None
        found = prediction_powered_mean(*given, lam=lam, least=1)
        assert found.lam == pytest.approx(expected["lam"], abs=1e-9)
        for name, key in (("value", "estimate"), ("se", "se"), ("lo", "lo"), ("hi", "hi")):
            assert getattr(found, name) == pytest.approx(expected[key], abs=1e-6), name


def test_reproduces_the_golden_variance_components(golden):
    case = golden("statistics_extra")["variance_components"]
    found = variance_components(case["inputs"]["scores_items_by_judges"])
    expected = case["expected"]
    assert found.item == pytest.approx(expected["var_item"], abs=1e-9)
    assert found.judge == pytest.approx(expected["var_judge"], abs=1e-9)
    assert found.residual == pytest.approx(expected["var_residual"], abs=1e-9)
    n, j = found.n_items, found.n_judges
    assert found.of_mean(n, j) == pytest.approx(expected["var_of_mean_fixed_judges"], abs=1e-9)
    assert found.of_mean(n, j, fixed=False) == pytest.approx(
        expected["var_of_mean_random_judges"], abs=1e-9
    )


def test_the_corrected_interval_covers_and_a_biased_judge_is_corrected():
    rng = np.random.default_rng(20261120)
    covered, widths, plain = 0, [], []
    for _ in range(400):
        truth = rng.beta(4, 2, 500)
        judge = np.clip(truth + 0.15 + rng.normal(0, 0.05, 500), 0, 1)  # lenient
        chosen = rng.permutation(500)[:60]
        rest = np.setdiff1d(np.arange(500), chosen)
        found = prediction_powered_mean(truth[chosen], judge[chosen], judge[rest])
        covered += found.lo <= 4 / 6 <= found.hi
        widths.append(found.hi - found.lo)
        plain.append(2 * 1.96 * truth[chosen].std() / 60**0.5)
    assert 0.91 <= covered / 400 <= 0.98
    assert np.median(widths) < 0.6 * np.median(plain)


def test_few_labels_give_none_and_no_unlabelled_gives_the_human_mean():
    scores = np.linspace(0, 1, 29)
    assert prediction_powered_mean(scores, scores, scores) is None
    scores = np.linspace(0, 1, 30)
    found = prediction_powered_mean(scores, scores, [])
    assert (found.value, found.lam) == (pytest.approx(0.5), 0)
    with pytest.raises(StatisticError, match="one each"):
        prediction_powered_mean(scores, scores[:3], scores)
    with pytest.raises(StatisticError, match="NaN"):
        prediction_powered_mean([np.nan] * 30, scores, scores)


def test_kappa_has_its_known_values_and_an_interval_around_it():
    rng = np.random.default_rng(1)
    first = rng.integers(0, 3, 300)
    second = np.where(rng.random(300) < 0.7, first, rng.integers(0, 3, 300))
    kappa = cohen_kappa(first, second)
    lo, hi = kappa_interval(first, second, np.arange(300), seed=1)
    assert lo < kappa < hi
    assert cohen_kappa([1, 1], [1, 1]) is None
    assert cohen_kappa([0, 1, 0, 1], [1, 0, 1, 0]) == -1


def test_clinicians_and_the_jury_of_medhelm_are_compared(data):
    path = data / "medhelm" / "human_and_jury_scores_pseudonymised.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    people = np.array([(float(r["accuracy"]) - 1) / 4 for r in rows])
    jury = np.array([(float(r["llm_accuracy"]) - 1) / 4 for r in rows])
    chosen = np.random.default_rng(1).permutation(len(rows))[:60]
    rest = np.setdiff1d(np.arange(len(rows)), chosen)
    found = prediction_powered_mean(people[chosen], jury[chosen], jury[rest])
    assert 0 <= found.lam <= 1
    assert found.lo < people.mean() < found.hi
    units = {}
    for row in rows:
        units.setdefault((row["instance_id"], row["dataset_name"], row["model_key"]), []).append(
            float(row["accuracy"])
        )
    twice = np.array([u[:2] for u in units.values() if len(u) > 1]).T
    assert twice.shape[1] == 58
    assert -1 <= krippendorff_alpha(twice, "ordinal") <= 1


def test_people_and_a_metric_of_mts_dialog_summaries_are_compared(data):
    path = data / "mts_dialog/correlation_study"
    with (path / "MTS-Dialog-Manual-Scores4CorrelationStudy.csv").open(
        newline="", encoding="utf-8-sig"
    ) as file:
        scores = list(csv.DictReader(file))
    human = np.array([float(row["FactualF1"]) for row in scores])
    omission = np.array([1 - float(row["OmissionRate"]) for row in scores])
    chosen = np.random.default_rng(2).permutation(len(human))[:80]
    rest = np.setdiff1d(np.arange(len(human)), chosen)
    found = prediction_powered_mean(human[chosen], omission[chosen], omission[rest])
    assert found.lo < human.mean() < found.hi
    assert found.n_unlabelled == 320


scores = st.integers(0, 10).map(lambda n: n / 4)


@given(st.lists(st.tuples(scores, scores), min_size=2, max_size=30))
def test_agreement_of_scores_is_alpha_at_interval_level(pairs):
    """Oracle: the general computation over coincidences."""
    first, second = zip(*pairs, strict=True)
    found = score_agreement(first, second, range(len(pairs)), seed=1, n_resamples=100)
    expected = krippendorff_alpha([first, second], "interval")
    assert found.alpha == (None if expected is None else pytest.approx(expected, abs=1e-9))


def test_the_interval_of_agreement_resamples_items_whole():
    random = np.random.default_rng(5)
    truth = random.random(200)
    other = truth + random.normal(0, 0.15, 200)
    own = score_agreement(truth, other, range(200), seed=1)
    assert own.lo < own.alpha < own.hi
    doubled = score_agreement([*truth, *truth], [*other, *other], [*range(200)] * 2, seed=1)
    assert doubled.alpha == pytest.approx(own.alpha, abs=0.01)
    assert doubled.hi - doubled.lo == pytest.approx(own.hi - own.lo, rel=0.1)
    alone = score_agreement([1, 2], [1, 2], ["a", "a"], seed=1)
    assert (alone.alpha, alone.lo) == (1, None)


def test_answers_of_one_cluster_lengthen_the_corrected_interval():
    """Every answer twice says no more than once; singletons are the plain formula."""
    random = np.random.default_rng(3)
    truth = random.random(120)
    judge = np.clip(truth + random.normal(0, 0.1, 120), 0, 1)
    given = (truth[:40], judge[:40], judge[40:])
    plain = prediction_powered_mean(*given, lam=0.5)
    alone = prediction_powered_mean(*given, lam=0.5, clusters=(range(40), range(40, 120)))
    assert alone == plain
    twice = [np.concatenate([a, a]) for a in given]
    groups = ([*range(40)] * 2, [*range(40, 120)] * 2)
    doubled = prediction_powered_mean(*twice, lam=0.5, clusters=groups)
    assert doubled.se == pytest.approx(plain.se)
    assert prediction_powered_mean(*twice, lam=0.5).se == pytest.approx(plain.se / 2**0.5)


def test_both_ends_of_an_interval_lie_on_the_scale():
    people = np.r_[np.ones(20), np.full(20, 0.9)]
    judge = np.r_[np.ones(20), np.full(20, 0.5)]
    found = prediction_powered_mean(people, judge, np.ones(300))
    assert 0 <= found.lo <= found.hi <= 1
