"""Numbers with their uncertainty."""

from dataclasses import dataclass
from typing import Any


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
    `worst` bound the value when scores are missing. `interval` names how lo and hi were made where
    that is not by percentiles of draws.
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
    interval: str = ""

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} [{100 * self.lo:.1f}, {100 * self.hi:.1f}] n={self.n}"

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as plain JSON values."""
        second = self.second
        return {
            "score": self.value,
            "lo": self.lo,
            "hi": self.hi,
            "second": (
                None
                if second is None
                else {"method": second.method, "lo": second.lo, "hi": second.hi}
            ),
            "level": self.level,
            "n": self.n,
            "n_clusters": self.n_clusters,
            "coverage": self.coverage,
            "worst": self.worst,
            "best": self.best,
            "flags": list(self.flags),
            **({"interval": self.interval} if self.interval else {}),
        }
