"""Numbers of answers gathered cell by cell, item by item, and drawn as pools."""

from collections.abc import Mapping, Sequence

import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.records.manifest import Manifest
from medassay.core.records.trial import CellKey, RowKey
from medassay.core.scale import Scale
from medassay.statistic.draws import Floats, seed_of
from medassay.summary.pooled import CasePool, CaseStratum


class ItemMatrix:
    """Collects columns of numbers as a stream: of each cell one row an item, repeats averaged.

    `columns` gives the scale of each number. Memory is two doubles for an item, cell and column,
    whatever the repeats.
    """

    def __init__(self, items: RunItems, manifest: Manifest, columns: Mapping[str, Scale]) -> None:
        self._items = items
        self._manifest = manifest
        self.columns = dict(columns)
        self._places = {name: at for at, name in enumerate(self.columns)}
        self.clusters = {d: np.array(numbers) for d, numbers in sorted(items.clusters.items())}
        self._sums: dict[CellKey, Floats] = {}
        self._counts: dict[CellKey, Floats] = {}

    @property
    def domains(self) -> list[str]:
        """Return the domains, sorted."""
        return list(self.clusters)

    @property
    def modes(self) -> set[str]:
        """Return the modes of the cells that have an answer."""
        return {mode for *_, mode in self._sums}

    def rows(self, mode: str) -> list[RowKey]:
        """Return the (model, setting) rows of a mode, sorted."""
        return sorted({(m, s) for _, m, s, cell_mode in self._sums if cell_mode == mode})

    def add(self, cell: CellKey, item: str, values: Mapping[str, float | None]) -> int:
        """Take numbers of one answer by column, None for what is unknown.

        Return the item's place in its domain.
        """
        if cell not in self._sums:
            shape = (len(self.clusters[cell[0]]), len(self.columns))
            self._sums[cell], self._counts[cell] = np.zeros(shape), np.zeros(shape)
        place = self._items.place(cell[0], item)
        for name, value in values.items():
            if value is not None:
                self._sums[cell][place, self._places[name]] += value
                self._counts[cell][place, self._places[name]] += 1
        return place

    def _means(self, cell: CellKey) -> Floats:
        """Return the numbers of a cell, shape (n_items, n_columns), NaN where unknown."""
        means = np.full((len(self.clusters[cell[0]]), len(self.columns)), np.nan)
        if cell in self._sums:
            counts = self._counts[cell]
            np.divide(self._sums[cell], counts, out=means, where=counts > 0)
        return means

    def values(self, column: str, domain: str, mode: str, rows: Sequence[RowKey]) -> Floats:
        """Return one number of some rows, shape (n_rows, n_items), NaN where unknown."""
        at = self._places[column]
        values = np.full((len(rows), len(self.clusters[domain])), np.nan)
        for place, row in enumerate(rows):
            values[place] = self._means((domain, *row, mode))[:, at]
        return values

    def pool(self, domains: Sequence[str], row: RowKey, mode: str) -> CasePool:
        """Return the items of some domains as one row has them, drawn as the run's rankings draw
        them.
        """
        run, versions = self._manifest.seed_label, self._manifest.domains
        strata = [
            CaseStratum(
                self._means((domain, *row, mode)),
                self.clusters[domain],
                seed_of(versions[domain], run, domain, mode),
            )
            for domain in domains
        ]
        joined = "+".join(sorted(set(versions.values())))
        return CasePool(
            strata,
            columns=self.columns,
            pool_seed=seed_of(joined, run, "overall", mode),
            n_resamples=self._manifest.plan.n_resamples,
        )
