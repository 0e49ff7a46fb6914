"""The numbers that measures tell besides the score, as rows show them: means with intervals."""

from collections.abc import Mapping, Sequence
from typing import Any

from medassay.bank.run_items import RunItems
from medassay.core.protocols import RowAddition
from medassay.core.records.manifest import Manifest
from medassay.core.records.score import TrialScore
from medassay.core.records.trial import RowKey, Trial
from medassay.core.scale import Scale
from medassay.statistic.ranking.shared import Bools
from medassay.summary.item_matrix import ItemMatrix
from medassay.summary.pooled import pooled_means


class ColumnSummary:
    """Collects columns of measures as a stream: the parts of scores that bear their names.

    Estimates are over the items that a row is ranked on, repeats averaged first.
    """

    def __init__(
        self, key: str, items: RunItems, manifest: Manifest, columns: Mapping[str, Scale]
    ) -> None:
        self.key = key
        self._table = ItemMatrix(items, manifest, columns)

    def add(self, trial: Trial, score: TrialScore) -> None:
        """Take one trial with its score record; a failed trial tells nothing."""
        parts = score.parts or {}
        self._table.add(
            trial.cell, trial.item, {name: parts.get(name) for name in self._table.columns}
        )

    def row(self, domains: Sequence[str], row: RowKey, mode: str, used: Bools) -> RowAddition:
        """Return under the key of the summary: column → estimate with its scale, where there is
        one.
        """
        pool = self._table.pool(domains, row, mode).only(used)
        estimates = {
            name: estimate.to_dict() | {"scale": self._table.columns[name].ends}
            for name, estimate in pooled_means(pool).items()
        }
        columns = {name: estimates.get(name) for name in self._table.columns}
        return RowAddition(columns={self.key: columns})

    def document(self, used: Mapping[str, Mapping[RowKey, Bools]]) -> dict[str, Any]:
        """Return the scales of the columns."""
        return {"columns": {name: scale.ends for name, scale in self._table.columns.items()}}
