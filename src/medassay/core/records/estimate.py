"""Numbers with their uncertainty."""

from collections.abc import Sequence
from typing import ClassVar, cast

import msgspec

from medassay.core.keyed import KeyedRecord, keyed
from medassay.core.records.statistics_object import EstimateObject
from medassay.core.scale import units

Ends = tuple[float | None, float | None]  # None where there is no end
# Keys of an estimate in files, between its value and its flags.
_KEYS = ("lo", "hi", "second", "level", "n", "n_clusters", "coverage", "worst", "best")


class Second(KeyedRecord, msgspec.Struct, frozen=True, kw_only=True):
    """A second interval by another method, which covers better where the first is too short."""

    KEYS: ClassVar = ("method", "lo", "hi")
    method: str
    lo: float
    hi: float


class Estimate(msgspec.Struct, frozen=True, kw_only=True, rename={"value": "score"}):
    """A number, its interval, how it was made and from how much; files call the value `score`.

    Attributes
    ----------
    value, lo, hi : on the metric's scale: shares in [0, 1], never percentages
    second : an interval by another method, which covers better where the first is too short
    level : of both intervals
    n, n_clusters : items, and vignettes that they come from
    coverage : share of the items that have a score, in [0, 1]
    worst, best : the value if every missing score were the worst, or the best
    flags : `degenerate` (no width), `small_n` (fewer than 10 items or clusters),
        `intervals_differ`
    interval : how lo and hi were made, where not by percentiles of draws

    Examples
    --------
    >>> from medassay import Estimate
    >>> estimate = Estimate(value=0.612, lo=0.579, hi=0.644, n=330, n_clusters=330)
    >>> print(estimate)
    61.2 [57.9, 64.4] n=330
    """

    value: float
    lo: float
    hi: float
    second: Second | None = None
    level: float = 0.95
    n: int
    n_clusters: int
    coverage: float = 1.0
    worst: float | None = None
    best: float | None = None
    flags: tuple[str, ...] = ()
    interval: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def ends(self) -> tuple[float, float]:
        """Return the interval to show: the second one where the first has no width.

        None of 24 answers is no proof of none at all; the bootstrap cannot say so, Wilson's
        interval can.
        """
        if "degenerate" in self.flags and self.second is not None:
            return self.second.lo, self.second.hi
        return self.lo, self.hi

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} [{100 * self.lo:.1f}, {100 * self.hi:.1f}] n={self.n}"

    @property
    def percent(self) -> str:
        """Return a share in percent with the interval to show: `61.2 [57.9, 64.4]`."""
        return "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * n for n in (self.value, *self.ends)))

    def to_dict(self) -> EstimateObject:
        """Return the estimate as plain JSON values."""
        plain = {"score": self.value, **keyed(self, *_KEYS), "flags": list(self.flags)}
        if self.interval:
            plain |= {"interval": self.interval}
        return cast(EstimateObject, plain)


class RowEstimate(msgspec.Struct, frozen=True, kw_only=True, rename={"value": "score"}):
    """An estimate beside the score of a row; what its kind does not tell is None.

    Other than an `Estimate` it may have no interval: where nothing varies.

    Attributes
    ----------
    value, lo, hi : on `scale`; files call the value `score`
    second : an interval by another method, where the first may be too short
    nulls : items without a value
    """

    value: float | None
    lo: float | None = None
    hi: float | None = None
    second: Second | None = None
    n: int | None = None
    flags: list[str] | None = None
    scale: Ends = (0.0, 1.0)
    se: float | None = None
    median: float | None = None
    nulls: int = 0

    @property
    def ends(self) -> Ends:
        """Return the interval to show: the second one where the first has no width.

        None of 24 answers is no proof of none at all; the bootstrap cannot say so, Wilson's
        interval can.
        """
        if self.second is not None and "degenerate" in (self.flags or ()):
            return self.second.lo, self.second.hi
        return self.lo, self.hi

    def text(self, form: str, factor: float = 1.0) -> str:
        """Return value and interval, each number in a form such as ".1f".

        Examples
        --------
        >>> RowEstimate(value=0.612, lo=0.579, hi=0.644).text(".1f", 100)
        '61.2 [57.9, 64.4]'
        """
        numbers = (self.value, *self.ends)
        value, lo, hi = ("–" if n is None else format(factor * n, form) for n in numbers)
        return f"{value} [{lo}, {hi}]"

    def on(self, scale: Sequence[float | None]) -> str:
        """Return value and interval in the units of a scale: percent on 0 to 1."""
        value, lo, hi = (units(n, scale) for n in (self.value, *self.ends))
        return f"{value} [{lo}, {hi}]"


def percent_text(estimate: Estimate | None) -> str:
    """Return a share in percent with its interval, a dash where nothing is known."""
    return "–" if estimate is None else estimate.percent
