"""Criteria with positive and negative points: what was met over what could be met."""

from collections.abc import Iterable, Mapping, Sequence

from medassay.errors import ScaleError


def rubric_points(criteria: Sequence[Mapping[str, float]], met: Sequence[bool]) -> float:
    """Return the sum of the points of the criteria met, over the sum of all positive points.

    At most 1; below 0 where harmful criteria outweigh (only means are clipped, as HealthBench
    does).

    Parameters
    ----------
    criteria : objects with `points`, positive for what should and negative for what should not be
    met : whether each criterion is met, in the same order

    Raises
    ------
    ScaleError
        If no criterion has positive points, or the lengths differ.

    Examples
    --------
    >>> rubric_points([{"points": 5}, {"points": 3}, {"points": -4}], [True, False, True])
    0.125
    """
    if len(criteria) != len(met):
        raise ScaleError(f"{len(criteria)} criteria, {len(met)} verdicts; expected one each")
    best = sum(c["points"] for c in criteria if c["points"] > 0)
    if best <= 0:
        raise ScaleError("no criterion has positive points; nothing can be reached")
    return float(sum(c["points"] for c, yes in zip(criteria, met, strict=True) if yes) / best)


def lowest_points(points: Iterable[float]) -> float:
    """Return the lowest score that criteria allow: that of doing all harm and no good.

    Examples
    --------
    >>> lowest_points([5, 3, -4]), lowest_points([])
    (-0.5, 0.0)
    """
    values = list(points)
    best = sum(p for p in values if p > 0)
    return sum(p for p in values if p < 0) / best if best else 0.0
