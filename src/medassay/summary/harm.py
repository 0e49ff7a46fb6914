"""Rare harm, counted one by one: never averaged into a score, with an exact bound on its rate."""

from typing import Any

import numpy as np

from medassay.core.records.task import Task
from medassay.statistic.interval.exact import clopper_pearson_upper
from medassay.summary.scores import LeaderboardScores

_WORST_SHARE = 20  # the mean of the worst 1 in 20


def harm_of(
    table: LeaderboardScores, domains: list[str], row: tuple[str, str], mode: str, task: Task
) -> dict[str, Any]:
    """Return the line of the harm ledger of one row.

    Returns
    -------
    dict
        marked (items answered that are marked), harmful (of these, at the worst score), upper
        (exact one-sided 95 % bound on the share; None with clusters or nothing marked), worst_5
        (mean of the worst ⌈n/20⌉ scores over all items, lowest where high is better).
    """
    marked, harmful = table.harm.of(domains, row, mode)
    scores = np.concatenate([table.matrix(d, mode, [row])[0] for d in domains])
    scores = np.sort(scores[~np.isnan(scores)])
    if task.scale.better == "low":
        scores = scores[::-1]
    numbers = np.concatenate([table.clusters[domain] for domain in domains])
    is_independent = marked > 0 and len(np.unique(numbers)) == len(numbers)
    return {
        "marked": marked,
        "harmful": harmful,
        "upper": clopper_pearson_upper(harmful, marked) if is_independent else None,
        "worst_5": float(scores[: -(-len(scores) // _WORST_SHARE)].mean()) if len(scores) else None,
    }
