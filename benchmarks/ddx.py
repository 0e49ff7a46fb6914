"""100,000 ranked lists of five: scored, and aggregated with 1,000 resamples.

    python benchmarks/ddx.py [--cases 100000]

Measures the functions that a run uses, in one process after its imports. Beside them stands what
one writes in a notebook: a loop over the rows for the scores, and for each resample the cases drawn
anew and the weighted means of both scores under the three presets (over a tenth of the resamples,
times ten, since it is slow).
"""

import argparse
import resource
import statistics
import time

import numpy as np

from medassay.core.records.diagnosis import RELATIONS, SEVERITY_MAPS
from medassay.kinds.diagnoses.aggregates import COLUMNS, Weighting, case_estimates
from medassay.kinds.diagnoses.scorer import DdxScore, score_case
from medassay.statistic.metric.reliability import PRESETS, reliability_weighted_mean, rescale
from medassay.summary.pooled import CasePool, CaseStratum

ROUNDS = 5
N_RESAMPLES = 1000
LEVELS = SEVERITY_MAPS["published"].levels


def lists(n):
    """Return (relations, severities, golden severity) of n lists of five."""
    rng = np.random.default_rng(20261121)
    relations, levels = np.array(list(RELATIONS)), np.array(list(LEVELS))
    near, severe = rng.integers(0, 5, (n, 5)), rng.integers(0, 5, (n, 6))
    return [
        (relations[a].tolist(), levels[b[:5]].tolist(), str(levels[b[5]]))
        for a, b in zip(near, severe, strict=True)
    ]


def numbers(case: DdxScore):
    tops = (float(case.top(k)) for k in (1, 3, 5))
    return (case.semantic, case.severity, case.severity_shift, *tops)


def ours(given):
    scores = [numbers(score_case(*one)) for one in given]
    clusters = np.arange(len(scores))
    stratum = CaseStratum(np.array(scores), clusters, 20261121)
    names = ("semantic", "severity", "shift", "top1", "top3", "top5")
    columns = {name: COLUMNS[name] for name in names}
    pool = CasePool([stratum], pool_seed=0, n_resamples=N_RESAMPLES, columns=columns)
    found = case_estimates(pool, Weighting(semantic_max=16.0, presets=PRESETS))
    return found["semantic", "hard"]["score"]


def notebook(given):
    semantic, severity = [], []
    for relations, severities, golden in given:
        weights = [(6 - rank) / 5 for rank in range(1, 6)]
        near = [(5 - RELATIONS[r]) ** 2 for r in relations]
        alike = [(4 - abs(LEVELS[golden] - LEVELS[s])) ** 2 for s in severities]
        for made, values in ((semantic, near), (severity, alike)):
            made.append(sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights))
    both = [rescale(values) for values in (semantic, severity)]
    rng = np.random.default_rng(1)
    started = time.perf_counter()
    for _ in range(N_RESAMPLES // 10):
        drawn = rng.integers(0, len(given), len(given))
        for values in both:
            for k, x0 in PRESETS.values():
                reliability_weighted_mean(values[drawn], k=k, x0=x0)
    extra = 9 * (time.perf_counter() - started)
    return reliability_weighted_mean(both[0], k=3, x0=0), extra


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    given = lists(parser.parse_args().cases)
    walls, cpus = [], []
    for _ in range(ROUNDS):
        started, before = time.perf_counter(), time.process_time()
        value = ours(given)
        walls.append(time.perf_counter() - started)
        cpus.append(time.process_time() - before)
    started = time.perf_counter()
    same, extra = notebook(given)
    slow = time.perf_counter() - started + extra
    if abs(value - same) > 1e-9:
        raise SystemExit(f"aggregates differ: {value}, {same}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{len(given)} lists: {statistics.median(walls):.2f} s wall, {statistics.median(cpus):.2f}"
        f" s CPU (median of {ROUNDS}), {peak:.0f} MiB; in a notebook {slow:.1f} s"
    )


if __name__ == "__main__":
    main()
