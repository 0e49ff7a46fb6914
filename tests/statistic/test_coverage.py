"""A small seeded part of `benchmarks/coverage.py`: printed intervals hold the truth, boards say few
false things.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

_PATH = Path(__file__).parents[2] / "benchmarks" / "coverage.py"


@pytest.fixture(scope="module")
def simulation():
    import sys

    spec = importlib.util.spec_from_file_location("simulated_coverage", _PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["simulated_coverage"] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("p", [0.7, 0.95])
@pytest.mark.parametrize("kind", ["clusters", "pool", "small pool"])
def test_intervals_of_right_and_wrong_hold_the_truth(simulation, kind, p):
    labels = simulation.labels_of(12, (1, 2, 5, 20))

    def draw(random):
        if kind == "clusters":
            return [(simulation.clustered(random, labels, p)[0], labels)], p
        sizes = (3, 3, 3, 200, 200) if kind == "pool" else (2, 100)
        return [((random.random(n) < p).astype(float), None) for n in sizes], p

    assert simulation.covered(draw, f"{kind} {p}", 400) >= 90


@pytest.mark.parametrize("shape", ["normal", "skewed", "rare zeros"])
def test_intervals_of_graded_scores_hold_the_truth(simulation, shape):
    def draw(random):
        scores, truth = simulation.graded(random, shape, (20,))
        return [(scores, None)], truth

    assert simulation.covered(draw, shape, 400) >= 90


@pytest.mark.parametrize(("models", "items", "p"), [(2, 33, 0.5), (10, 100, 0.9), (10, 33, 0.7)])
def test_boards_of_equal_models_say_few_false_things(simulation, models, items, p):
    random = simulation.generator(f"{models} {items} {p}")
    board, levels = (
        simulation.Board(simulation.Design("small", (items,)), 3),
        np.full(models, p),
    )
    false = sum(
        bool(board.relation([simulation.answers(random, items, levels)], binary=True).any())
        for _ in range(200)
    )
    assert false <= 16  # 5 % of 200, and chance
