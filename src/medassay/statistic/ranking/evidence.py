"""The paired scores of two rows, and what follows from them: tests and bounds."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from medassay.statistic.draws import Floats, count_clusters, number_clusters
from medassay.statistic.ranking.pool import Stratum
from medassay.statistic.ranking.shared import Bools
from medassay.statistic.test.margin import DifferenceInterval, difference_bounds
from medassay.statistic.test.mcnemar import mcnemar


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Two rows' scores on the same items, per domain.

    `spans` says whether a cluster has items in several domains: these are not independent then.
    """

    first: list[Floats]
    second: list[Floats]
    clusters: list[NDArray[np.int64] | None]
    groups: int
    spans: bool

    @classmethod
    def of(cls, strata: Sequence[Stratum], masks: Sequence[Bools], a: int, b: int) -> "Evidence":
        """Return the evidence on rows `a` and `b` over the items that `masks` keep."""
        pairs = [(s, m) for s, m in zip(strata, masks, strict=True) if m.any()]
        labels = [s.clusters[m] for s, m in pairs]
        groups = count_clusters(np.concatenate(labels))
        return cls(
            first=[s.scores[a][m] for s, m in pairs],
            second=[s.scores[b][m] for s, m in pairs],
            clusters=[number_clusters(label_array) for label_array in labels],
            groups=groups,
            spans=groups < sum(map(count_clusters, labels)),
        )

    @property
    def differences(self) -> Floats:
        """Return first minus second of every item, domains one after another."""
        return np.concatenate([a - b for a, b in zip(self.first, self.second, strict=True)])

    @property
    def discordant(self) -> tuple[int, int] | None:
        """Return the items that only the first, only the second has right; None for other scores.

        None also where items are clustered: McNemar's test takes every item for independent.
        """
        scores = (*self.first, *self.second)
        if not all(np.isin(values, (0.0, 1.0)).all() for values in scores):
            return None
        if self.spans or any(numbers is not None for numbers in self.clusters):
            return None
        differences = self.differences
        return int((differences > 0).sum()), int((differences < 0).sum())

    @property
    def mcnemar_p(self) -> float | None:
        """Return McNemar's exact p over all items, None where the test does not apply."""
        return None if self.discordant is None else mcnemar(*self.discordant)

    @property
    def bounds(self) -> DifferenceInterval | None:
        """Return the 90 % interval that a margin is held against; None if clusters span domains."""
        if self.spans:
            return None
        return difference_bounds(self.first, self.second, self.clusters)
