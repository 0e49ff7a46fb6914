"""What models were shown and looked up: how often a search found the item's own source, and how
tools were used.

Source: specification of tasks and prompts, 14.2 and 14.4.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.records.context_config import MOST_UNAVAILABLE
from medassay.core.records.estimate import Estimate
from medassay.core.records.manifest import Manifest
from medassay.core.records.score import TrialScore
from medassay.core.records.trial import CellKey, RowKey, Trial
from medassay.core.scale import Scale
from medassay.statistic.ranking.shared import Bools
from medassay.summary.item_matrix import ItemMatrix
from medassay.summary.pooled import CasePool, pooled_means

UNAVAILABLE = "unavailable"  # the mark of a row that looked up too much in vain


class Lookups:
    """Collects as a stream what trials say of passages and tools."""

    key = "lookups"

    def __init__(self, items: RunItems, manifest: Manifest) -> None:
        self._manifest = manifest
        # As many calls as the plan allows: the scale of calls an answer.
        most = (manifest.tools or {}).get("rules", {}).get("max_calls", 1)
        columns = {"own_source": Scale(), "calls": Scale(hi=float(most))}
        self._table = ItemMatrix(items, manifest, columns)
        self._used: dict[CellKey, Counter[str]] = {}

    def add(self, trial: Trial, score: TrialScore) -> None:
        """Take one trial; a failed one tells nothing."""
        cell = trial.cell
        values: dict[str, float | None] = {}
        if trial.own_source is not None:
            values["own_source"] = float(trial.own_source)
        if trial.tool_use is not None:
            use = trial.tool_use
            values["calls"] = float(use["calls"])
            counter = self._used.setdefault(cell, Counter())
            counter.update(use)
            counter.update(answers=1, with_calls=int(use["calls"] > 0))
        if values:
            self._table.add(cell, trial.item, values)

    def row(self, domains: Sequence[str], row: RowKey, mode: str, used: Bools) -> dict[str, Any]:
        """Return `own_source` (share of items whose own source was found) and `tool_use`, where
        there are any.
        """
        pool = self._table.pool(domains, row, mode)
        means = pooled_means(pool)
        columns: dict[str, Any] = {}
        if pool.known("own_source").any():
            columns["own_source"] = self._estimate(pool, means, "own_source")
        counted = self._use_counts(domains, row, mode)
        if counted["answers"]:
            columns["tool_use"] = {
                **{name: counted[name] for name in ("answers", "with_calls", *_CALLS)},
                "unavailable_share": _share(counted),
                "calls_an_answer": self._estimate(pool, means, "calls"),
            }
        return columns

    @staticmethod
    def _estimate(pool: CasePool, means: Mapping[str, Estimate], name: str) -> dict[str, Any]:
        values = pool.column(name)[pool.known(name)]
        plain = means[name].to_dict() if name in means else {"score": float(np.mean(values))}
        return {**{key: plain.get(key) for key in ("score", "lo", "hi")}, "n": len(values)}

    def _use_counts(self, domains: Sequence[str], row: RowKey, mode: str) -> Counter[str]:
        total: Counter[str] = Counter()
        for domain in domains:
            total.update(self._used.get((domain, *row, mode), Counter()))
        return total

    def flags(self, row: Mapping[str, Any]) -> list[str]:
        """Return the mark of rows whose calls were too often in vain."""
        share = row.get("tool_use", {}).get("unavailable_share") or 0.0
        return [UNAVAILABLE] if share > MOST_UNAVAILABLE else []

    def document(self, used: Mapping[str, Mapping[RowKey, Bools]]) -> dict[str, Any]:
        """Return the numbers of calls over the whole run, and what was searched."""
        total: Counter[str] = Counter()
        for counter in self._used.values():
            total.update(counter)
        return {
            "calls": {name: total[name] for name in _CALLS} if self._used else None,
            "unavailable_share": _share(total),
            "retrieval": self._manifest.retrieval,
        }


_CALLS = ("calls", "failed", "unavailable")


def _share(counted: Mapping[str, int]) -> float | None:
    """Return the share of calls that were unavailable, None where there were no calls."""
    return counted["unavailable"] / counted["calls"] if counted["calls"] else None


def lookups_of(items: RunItems, manifest: Manifest) -> list[Lookups]:
    """Return what collects lookups, for runs that know of any."""
    if manifest.retrieval is None and manifest.tools is None:
        return []
    return [Lookups(items, manifest)]
