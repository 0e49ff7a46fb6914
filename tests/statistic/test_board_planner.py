"""How many items a board needs: the golden numbers, and what simulated boards show."""

import numpy as np
import pytest

from medassay.statistic.test.planner import (
    critical_value,
    difference_shown,
    items_to_show,
    power_graded,
    power_right_wrong,
)


@pytest.fixture
def planner(golden):
    return golden("ranks")["planner"]


def test_the_golden_critical_values(planner):
    for models, c in planner["c"].items():
        assert critical_value(int(models)) == pytest.approx(c, abs=1e-6)


def test_the_golden_items(planner):
    for case in planner["items_right_wrong"]:
        found = items_to_show(case["delta"], models=case["models"], discordance=case["psi"])
        assert found == case["n"], case
        c = critical_value(case["models"])
        power = power_right_wrong(found, case["psi"], case["delta"], c)
        assert power == pytest.approx(case["power"], abs=1e-6)
    for case in planner["items_graded"]:
        found = items_to_show(case["delta"], models=case["models"], deviation=case["sd"])
        assert found == case["n"], case
        c = critical_value(case["models"])
        power = power_graded(found, case["sd"], case["delta"], c)
        assert power == pytest.approx(case["power"], abs=1e-6)


def test_the_golden_differences(planner):
    for key, name in (("shown_right_wrong", "psi"), ("shown_graded", "sd")):
        for case in planner[key]:
            given = {"discordance" if name == "psi" else "deviation": case[name]}
            found = difference_shown(case["n"], models=case["models"], **given)
            if case["delta"] is None:
                assert found is None, case
            else:
                assert found == pytest.approx(case["delta"], abs=2e-5), case


@pytest.mark.parametrize(("psi", "delta"), [(0.2, 0.1), (0.4, 0.2), (0.1, 0.05)])
def test_boards_of_two_show_what_was_planned(psi, delta):
    n, boards, c = items_to_show(delta, discordance=psi), 4000, critical_value(2)
    random = np.random.default_rng(29)
    first = random.multinomial(
        n, [(psi + delta) / 2, (psi - delta) / 2, 1 - psi], size=boards
    ).astype(float)
    difference = (first[:, 0] - first[:, 1]) / n
    se = np.sqrt(first[:, 0] + first[:, 1]) / n
    shown = (difference - 1 / n - c * se > 1e-12).mean()
    assert shown == pytest.approx(power_right_wrong(n, psi, delta, c), abs=0.03)
