"""Where the boxes of a graph stand, from left to right."""

from collections.abc import Sequence

import msgspec


class GraphLayout(msgspec.Struct, frozen=True):
    """The column of each box, and where it begins from above, in the order of the boxes."""

    columns: list[int]
    tops: list[float]


def layout(
    children: Sequence[Sequence[int]],
    upwards: Sequence[int],
    heights: Sequence[float],
    gap: float,
) -> GraphLayout:
    """Return where the boxes of a graph without cycles stand so that none covers another.

    The column of a box is the longest way to it from a root. Ends stand below each other in the
    order of `upwards`, every other box midway between the first and the last of its children; where
    it would cover a box of its column it moves down.

    Parameters
    ----------
    children : for each box the places of those that follow it
    upwards : all places, each after those that follow it
    heights : of the boxes, in the unit of the result
    gap : room between two boxes of a column, in the same unit

    Examples
    --------
    >>> layout([[1, 2], [], []], upwards=[1, 2, 0], heights=[2, 2, 2], gap=1)
    GraphLayout(columns=[0, 1, 1], tops=[1.5, 0.0, 3.0])
    """
    columns = [0] * len(children)
    for at in reversed(upwards):
        for child in children[at]:
            columns[child] = max(columns[child], columns[at] + 1)
    centres = [0.0] * len(children)
    lowest = 0.0
    for at in upwards:
        if children[at]:
            ends = [centres[child] for child in children[at]]
            centres[at] = (min(ends) + max(ends)) / 2
        else:
            centres[at] = lowest + heights[at] / 2
            lowest += heights[at] + gap
    tops = [0.0] * len(children)
    free: dict[int, float] = {}  # column → where its next box may begin
    for at in sorted(upwards, key=lambda place: (columns[place], centres[place], place)):
        top = centres[at] - heights[at] / 2
        tops[at] = max(top, free.get(columns[at], 0.0))
        free[columns[at]] = tops[at] + heights[at] + gap
    return GraphLayout(columns, tops)
