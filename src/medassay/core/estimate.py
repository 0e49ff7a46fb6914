"""Numbers with their uncertainty: `Estimate`, and `Matrix`, the scores they are made from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medassay.core.trial import Scale


@dataclass(frozen=True, kw_only=True)
class Second:
    """A second interval by another method, which covers better where the first is too short."""

    method: str
    lo: float
    hi: float


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number, its interval, how it was made and from how much.

    `value`, `lo`, `hi` are on the metric's scale (shares in [0, 1], never percentages). `best` and
    `worst` bound the value when scores are missing.
    """

    value: float
    lo: float
    hi: float
    n: int
    n_clusters: int
    level: float = 0.95
    second: Second | None = None
    coverage: float = 1.0
    worst: float | None = None
    best: float | None = None
    flags: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} [{100 * self.lo:.1f}, {100 * self.hi:.1f}] n={self.n}"

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as plain JSON values."""
        second = self.second
        return {
            "score": self.value,
            "lo": self.lo,
            "hi": self.hi,
            "second": None
            if second is None
            else {"method": second.method, "lo": second.lo, "hi": second.hi},
            "level": self.level,
            "n": self.n,
            "n_clusters": self.n_clusters,
            "coverage": self.coverage,
            "worst": self.worst,
            "best": self.best,
            "flags": list(self.flags),
        }


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Scores of one domain and mode: rows are (model, setting), columns are items sorted by id.

    `scores` has shape (n_rows, n_items), NaN where a score is null; `clusters` names the cluster of
    each item (an item without one is its own).
    """

    rows: tuple[tuple[str, str], ...]
    items: tuple[str, ...]
    scores: NDArray[np.float64]
    clusters: tuple[str, ...]
    scale: Scale = Scale()
