"""100,000 ranked lists of five: scored, and aggregated with 1,000 resamples.

    python benchmarks/ddx.py [--cases 100000]

Measures the two functions that do it, in one process after their imports; beside them the same by pandas and a
loop over resamples, as one would write it in a notebook (at a hundredth of the size, since it is slow).
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import numpy as np

from medassay.core.diagnosis import RELATIONS, SEVERITY_MAPS
from medassay.core.trial import Scale
from medassay.score.ddx import score_case
from medassay.statistic.interval.ratio import drawn_sums, ratio_estimate
from medassay.statistic.metric.reliability import PRESETS, relative_weights, rescale
from medassay.task.ddx import DdxCases, _Cases

ROUNDS = 5


def lists(n: int) -> list[tuple[list[str], list[str], str]]:
    """Return relations, severities and golden severity of n lists of five."""
    rng = np.random.default_rng(20261121)
    relations, levels = np.array(list(RELATIONS)), np.array(list(SEVERITY_MAPS["published"].levels))
    near, severe = rng.integers(0, 5, (n, 5)), rng.integers(0, 5, (n, 6))
    return [
        (relations[a].tolist(), levels[b[:5]].tolist(), str(levels[b[5]]))
        for a, b in zip(near, severe, strict=True)
    ]
