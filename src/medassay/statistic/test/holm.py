"""Holm's step-down adjustment of a family of p values."""

from collections.abc import Sequence

REVISION = 1


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the adjusted p values in the order given.

    References
    ----------
    Holm (1979), Scand. J. Stat. 6:65-70.

    Examples
    --------
    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03, 0.005])]
    [0.03, 0.06, 0.06, 0.02]
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for k, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (len(p_values) - k) * p_values[index]))
        adjusted[index] = highest
    return adjusted
