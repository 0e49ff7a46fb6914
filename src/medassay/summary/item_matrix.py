"""Numbers of answers gathered cell by cell, item by item, and drawn as pools."""

from collections.abc import Iterable, Sequence

import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.records.manifest import Manifest
from medassay.core.records.trial import CellKey, RowKey
from medassay.statistic.draws import Floats, seed_of
from medassay.summary.pooled import CasePool, CaseStratum
from medassay.summary.provenance import seed_label


class ItemMatrix:
    """Sums and counts of some numbers by cell: one row an item, one column a number, repeats
    averaged.
    """

    def __init__(self, items: RunItems, manifest: Manifest, numbers: Sequence[str]) -> None:
        self._items = items
        self._manifest = manifest
        self._numbers = tuple(numbers)
        self._columns = {name: at for at, name in enumerate(self._numbers)}
        self.clusters = {d: np.array(clusters) for d, clusters in sorted(items.clusters.items())}
        self._sums: dict[CellKey, Floats] = {}
        self._counts: dict[CellKey, Floats] = {}

    @property
    def domains(self) -> list[str]:
        """Return the domains, sorted."""
        return list(self.clusters)

    def add(self, cell: CellKey, item: str, values: Iterable[tuple[str, float | None]]) -> int:
        """Take the numbers of one answer, None for what is unknown.

        Return the item's place in its domain.
        """
        if cell not in self._sums:
            shape = (len(self.clusters[cell[0]]), len(self._numbers))
            self._sums[cell], self._counts[cell] = np.zeros(shape), np.zeros(shape)
        place = self._items.place(cell[0], item)
        for name, value in values:
            if value is not None:
                self._sums[cell][place, self._columns[name]] += value
                self._counts[cell][place, self._columns[name]] += 1
        return place

    def pool(self, domains: Sequence[str], row: RowKey, mode: str) -> CasePool:
        """Return the items of some domains as one row has them, drawn as the run's rankings draw
        them.
        """
        run, versions = seed_label(self._manifest), self._manifest.domains
        strata = []
        for domain in domains:
            clusters, cell = self.clusters[domain], (domain, *row, mode)
            values = np.full((len(clusters), len(self._numbers)), np.nan)
            if cell in self._sums:
                counts = self._counts[cell]
                np.divide(self._sums[cell], counts, out=values, where=counts > 0)
            seed = seed_of(versions[domain], run, domain, mode)
            strata.append(CaseStratum(values, clusters, seed))
        joined = "+".join(sorted(set(versions.values())))
        return CasePool(
            strata,
            numbers=self._numbers,
            pool_seed=seed_of(joined, run, "overall", mode),
            n_resamples=self._manifest.plan.n_resamples,
        )
