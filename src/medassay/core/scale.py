"""The declared range of a score."""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The declared range of a score and which end is better.

    Where `floor` is given, one score may lie below `lo`, down to `floor`; a mean is clipped to
    `lo`..`hi`.
    """

    lo: float = 0.0
    hi: float = 1.0
    better: Literal["high", "low"] = "high"
    floor: float | None = None

    @property
    def unit(self) -> bool:
        """Return whether scores are shares, 0 to 1."""
        return self.lo == 0 and self.hi == 1 and self.floor is None

    @property
    def least(self) -> float:
        """Return the lowest that one score may be."""
        return self.lo if self.floor is None else self.floor

    @property
    def best(self) -> float:
        """Return the end that no answer can be better than."""
        return self.hi if self.better == "high" else self.lo

    @property
    def worst(self) -> float:
        """Return the end that a missing answer gets."""
        return self.lo if self.better == "high" else self.hi

    @property
    def ends(self) -> list[float | None]:
        """Return both ends as JSON holds them: None where there is no end."""
        return [end if math.isfinite(end) else None for end in (self.lo, self.hi)]


PERPLEXITY = Scale(hi=math.inf, better="low")


def units(value: float | None, scale: Sequence[float | None]) -> str:
    """Return a score as people read it: in percent on the scale 0 to 1, else in its own units.

    Examples
    --------
    >>> units(0.612, [0, 1]), units(7.25, [0, 10]), units(None, [0, 1]), units(1.23456, [0, None])
    ('61.2', '7.25', '–', '1.235')
    >>> units(-0.0001, [0, 1])
    '0.0'
    """
    if value is None:
        return "–"
    if None in scale:
        return f"{value:z.4g}"
    return f"{100 * value:z.1f}" if list(scale) == [0, 1] else f"{value:z.2f}"


def scale_text(scale: Sequence[float | None], better: str = "high") -> str:
    """Return a scale as people read it.

    Examples
    --------
    >>> scale_text([0, 1]), scale_text([0, 10]), scale_text([0, None], "low")
    ('%', '0 to 10', 'from 0, lower is better')
    """
    lo, hi = scale
    if (lo, hi) == (0, 1):
        return "%"
    reach = f"from {lo:g}" if hi is None else f"{lo:g} to {hi:g}"
    return f"{reach}, lower is better" if better == "low" else reach
