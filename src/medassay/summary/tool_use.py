"""What models were shown and looked up: how often a search found the item's own source, and how
tools were used.

Source: specification of tasks and prompts, 14.2 and 14.4.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.protocols import RowAddition
from medassay.core.records.context_config import MOST_UNAVAILABLE
from medassay.core.records.estimate import Estimate
from medassay.core.records.manifest import Manifest
from medassay.core.records.score import TrialScore
from medassay.core.records.statistics_object import EstimateObject
from medassay.core.records.trial import CellKey, RowKey, ToolCalls, Trial
from medassay.core.scale import Scale
from medassay.statistic.ranking.shared import Bools
from medassay.summary.item_matrix import ItemMatrix
from medassay.summary.pooled import CasePool, pooled_means

UNAVAILABLE = "unavailable"  # the mark of a row that looked up too much in vain


class _UseCounts(msgspec.Struct):
    """How many answers of a cell there are in the mode `tools`, how many of them called a tool,
    and the calls.
    """

    answers: int = 0
    with_calls: int = 0
    calls: ToolCalls = msgspec.field(default_factory=ToolCalls)


class Lookups:
    """Collects as a stream what trials say of passages and tools."""

    key = "lookups"

    def __init__(self, items: RunItems, manifest: Manifest) -> None:
        self._manifest = manifest
        # As many calls as the plan allows: the scale of calls an answer.
        most = (manifest.tools or {}).get("rules", {}).get("max_calls", 1)
        columns = {"own_source": Scale(), "calls": Scale(hi=float(most))}
        self._table = ItemMatrix(items, manifest, columns)
        self._used: dict[CellKey, _UseCounts] = {}

    def add(self, trial: Trial, score: TrialScore) -> None:
        """Take one trial; a failed one tells nothing."""
        cell = trial.cell
        values: dict[str, float | None] = {}
        if trial.own_source is not None:
            values |= {"own_source": float(trial.own_source)}
        if (use := trial.tool_use) is not None:
            values |= {"calls": float(use.calls)}
            counts = self._used.setdefault(cell, _UseCounts())
            counts.answers += 1
            counts.with_calls += use.calls > 0
            counts.calls += use
        if values:
            self._table.add(cell, trial.item, values)

    def row(self, domains: Sequence[str], row: RowKey, mode: str, used: Bools) -> RowAddition:
        """Return `own_source` (share of items whose own source was found) and `tool_use`, where
        there are any; marked where calls were too often in vain.
        """
        pool = self._table.pool(domains, row, mode)
        means = pooled_means(pool)
        counts = _total(
            use for domain in domains if (use := self._used.get((domain, *row, mode))) is not None
        )
        own_source, tool_use = {}, {}
        if pool.known("own_source").any():
            own_source = {"own_source": self._estimate(pool, means, "own_source")}
        if counts.answers:
            columns = {
                "answers": counts.answers,
                "with_calls": counts.with_calls,
                **msgspec.structs.asdict(counts.calls),
                "unavailable_share": counts.calls.unavailable_share,
                "calls_an_answer": self._estimate(pool, means, "calls"),
            }
            tool_use = {"tool_use": columns}
        too_many = (counts.calls.unavailable_share or 0.0) > MOST_UNAVAILABLE
        return RowAddition(columns=own_source | tool_use, flags=[UNAVAILABLE] if too_many else [])

    @staticmethod
    def _estimate(pool: CasePool, means: Mapping[str, Estimate], name: str) -> EstimateObject:
        values = pool.column(name)[pool.known(name)]
        if name not in means:
            return {"score": float(np.mean(values)), "lo": None, "hi": None, "n": len(values)}
        mean = means[name]
        return {"score": mean.value, "lo": mean.lo, "hi": mean.hi, "n": len(values)}

    def document(self, used: Mapping[str, Mapping[RowKey, Bools]]) -> dict[str, Any]:
        """Return the numbers of calls over the whole run, and what was searched."""
        calls = _total(self._used.values()).calls
        return {
            "calls": msgspec.structs.asdict(calls) if self._used else None,
            "unavailable_share": calls.unavailable_share,
            "retrieval": self._manifest.retrieval,
        }


def _total(counts: Iterable[_UseCounts]) -> _UseCounts:
    total = _UseCounts()
    for use in counts:
        total.answers += use.answers
        total.with_calls += use.with_calls
        total.calls += use.calls
    return total


def lookups_of(items: RunItems, manifest: Manifest) -> list[Lookups]:
    """Return what collects lookups, for runs that know of any."""
    if manifest.retrieval is None and manifest.tools is None:
        return []
    return [Lookups(items, manifest)]
