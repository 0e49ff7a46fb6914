"""The declared range of a score."""

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Scale:
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
    def worst(self) -> float:
        """Return the end that a missing answer gets."""
        return self.lo if self.better == "high" else self.hi

    @property
    def ends(self) -> list[float | None]:
        """Return both ends as JSON holds them: None where there is no end."""
        return [end if math.isfinite(end) else None for end in (self.lo, self.hi)]


PERPLEXITY = Scale(hi=math.inf, better="low")
