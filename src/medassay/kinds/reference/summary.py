"""What tasks that compare texts tell besides the score: every metric with its interval, what was
unavailable, what was empty.

An answer that is missing, blank or too short scores the worst of a metric's scale where there is
one, else it is null and counted. `as_published` leaves such answers out of every mean, as the
published suite does, and says how many. Estimates are over the items that a row is ranked on,
repeats averaged first.

Source: specification of text metrics, "Common rules"; statistics 7.3.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from medassay.bank.run_items import RunItems
from medassay.core.protocols import RowAddition
from medassay.core.records.estimate import Estimate
from medassay.core.records.manifest import Manifest
from medassay.core.records.score import TrialScore
from medassay.core.records.statistics_object import EstimateObject
from medassay.core.records.task import Task
from medassay.core.records.trial import RowKey, Trial
from medassay.core.scale import Scale
from medassay.score.text import LEXICAL
from medassay.statistic.ranking.shared import Bools
from medassay.summary.item_matrix import ItemMatrix
from medassay.summary.pooled import CasePool, pooled_means

_PUBLISHED = " as published"
_SHARE = Scale()
_ANY = Scale(lo=-math.inf, hi=math.inf)


class TextScores:
    """Collects the metrics of answers as a stream, and computes what a report says of them."""

    key = "text"

    def __init__(self, items: RunItems, manifest: Manifest, task: Task) -> None:
        self._metric_entries = manifest.metrics
        columns = {name: _SHARE for name in task.metrics if name in LEXICAL}
        for entry in self._metric_entries.values():
            columns |= {
                name: _SHARE if ends == (0, 1) else _ANY for name, ends in entry.columns.items()
            }
        self._scales = columns
        as_published = {name + _PUBLISHED: scale for name, scale in columns.items()}
        self._table = ItemMatrix(items, manifest, columns | as_published)
        self._left_out: dict[tuple[str, str, str, str], int] = {}

    def add(self, trial: Trial, score: TrialScore) -> None:
        """Take one trial with its score record; a failed trial tells nothing."""
        if trial.outcome == "failed":
            return
        cell = trial.cell
        text_values = {**(score.parts or {}).get("text", {}), **score.measured}
        answered = trial.outcome == "answered" or bool(text_values)
        worst = {name: s.worst for name, s in self._scales.items() if math.isfinite(s.worst)}
        values: dict[str, float | None] = {}
        for name in self._scales:
            values[name] = text_values.get(name) if answered else worst.get(name)
            values[name + _PUBLISHED] = text_values.get(name) if answered else None
        self._table.add(cell, trial.item, values)
        self._left_out[cell] = self._left_out.get(cell, 0) + (not answered)

    def row(self, domains: Sequence[str], row: RowKey, mode: str, used: Bools) -> RowAddition:
        """Return what a row of a ranking says besides its rank, under the key `text`.

        What is unavailable is so for every row: it stands in the document and is no mark.
        """
        pool = self._table.pool(domains, row, mode).only(used)
        estimates = pooled_means(pool)
        text = {
            "metrics": {n: self._estimate(pool, estimates, n) for n in self._scales},
            "as_published": {
                name: self._estimate(pool, estimates, name + _PUBLISHED) for name in self._scales
            },
            "left_out": sum(self._left_out.get((d, *row, mode), 0) for d in domains),
        }
        return RowAddition(columns={"text": text})

    def _estimate(
        self, pool: CasePool, estimates: Mapping[str, Estimate], name: str
    ) -> EstimateObject | None:
        """Return the mean of a metric with interval, standard error and nulls.

        None where no item has it.
        """
        values = pool.column(name)[pool.known(name)]
        if not len(values):
            return None
        several = len(values) > 1
        plain: EstimateObject = {"score": float(values.mean())}
        if name in estimates:
            plain = estimates[name].to_dict()
        columns = {key: plain.get(key) for key in ("score", "lo", "hi", "second", "flags")}
        return {
            **cast(EstimateObject, columns),
            "se": float(values.std(ddof=1) / math.sqrt(len(values))) if several else None,
            "n": len(values),
            "nulls": len(pool.values) - len(values),
        }

    def document(self, used: Mapping[str, Mapping[RowKey, Bools]]) -> dict[str, Any]:
        """Return the metrics with their ids and scales, and those that are unavailable with the
        reason.
        """
        lexical = {
            name: {"id": name, "scale": scale.ends}
            for name, scale in self._scales.items()
            if name in LEXICAL
        }
        measured = {
            column: {"id": entry.id, "scale": ends}
            for entry in self._metric_entries.values()
            for column, ends in entry.columns.items()
        }
        absent = {
            name: entry.unavailable
            for name, entry in self._metric_entries.items()
            if entry.unavailable is not None
        }
        return {"metrics": {**lexical, **measured}, "unavailable": absent}
