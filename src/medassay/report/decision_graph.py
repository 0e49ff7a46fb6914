"""A decision graph as a picture for those who check it: SVG of its own, left to right, whole texts
in the boxes.

Texts come from models and files: the template escapes them, and spells out what would steer the
reading direction.
"""

import textwrap
from collections.abc import Sequence

import msgspec

from medassay.core.records.decision_graph import DecisionGraph
from medassay.report.graph_layout import layout
from medassay.report.pages.html import environment

# Pixels: width of a box, room between columns, around the picture, above it for the title.
_WIDE, _GAP, _MARGIN, _HEAD = 216, 56, 16, 58
_LINE, _PADDING, _APART = 14, 7, 12  # of a line of text, within a box, between boxes
_LETTERS, _BOLD = 30, 27  # in a line of a box, and of its name
_MOST_LINES = 9  # of a box; the whole text stands in its tooltip


class DecisionBox(msgspec.Struct, frozen=True, kw_only=True):
    """A node in its place: its lines of text, those of its name first, and what its tooltip
    says.
    """

    x: int
    y: int
    high: int
    name: Sequence[str]
    content: Sequence[str]
    says: str
    kind: str

    @property
    def lines(self) -> list[tuple[str, str, int]]:
        """Return (class, text, height of the baseline) of each line."""
        lines_of = [("name", text) for text in self.name] + [
            ("says", text) for text in self.content
        ]
        first = self.y + _PADDING + 11
        return [(kind, text, first + _LINE * at) for at, (kind, text) in enumerate(lines_of)]


def draw_decision_graph(graph: DecisionGraph, *, title: str = "") -> str:
    """Return the picture of a graph as an SVG document."""
    texts = [_wrapped(node.name, node.content) for node in graph.nodes]
    heights = [_LINE * (len(name) + len(says)) + 2 * _PADDING for name, says in texts]
    children = [node.children for node in graph.nodes]
    grid = layout(children, graph.upwards(), heights, _APART)
    boxes = [
        DecisionBox(
            x=_MARGIN + grid.columns[at] * (_WIDE + _GAP),
            y=round(_HEAD + grid.tops[at]),
            high=heights[at],
            name=texts[at][0],
            content=texts[at][1],
            says=f"{node.name}: {node.content}" if node.content else node.name,
            kind="root" if at == 0 else "inner" if node.children else "leaf",
        )
        for at, node in enumerate(graph.nodes)
    ]
    lines = [
        _line(boxes[at], boxes[child])
        for at, node in enumerate(graph.nodes)
        for child in node.children
    ]
    leaves = sum(not node.children for node in graph.nodes)
    return (
        environment()
        .get_template("decision_graph.svg")
        .render(
            title=title or graph.condition,
            says=f"{len(boxes)} boxes, {len(lines)} arrows, {leaves} ends",
            boxes=boxes,
            lines=lines,
            wide=_WIDE,
            width=max(box.x for box in boxes) + _WIDE + _MARGIN,
            height=max(box.y + box.high for box in boxes) + _MARGIN,
        )
    )


def _wrapped(name: str, content: str) -> tuple[list[str], list[str]]:
    """Return the lines of name and content, cut where a box would grow too tall."""
    first = _cut(textwrap.wrap(name, _BOLD), _MOST_LINES)
    if not content or content == name:
        return first, []
    return first, _cut(textwrap.wrap(content, _LETTERS), max(1, _MOST_LINES - len(first)))


def _cut(lines: list[str], most: int) -> list[str]:
    return lines if len(lines) <= most else [*lines[: most - 1], lines[most - 1][:-1] + "…"]


def _line(start: DecisionBox, end: DecisionBox) -> str:
    left_edge, right = start.x + _WIDE, end.x
    top, bottom = start.y + start.high / 2, end.y + end.high / 2
    bend = left_edge + _GAP * 0.6
    return (
        f"M{left_edge} {top:g}C{bend:g} {top:g} {left_edge + _GAP * 0.3:g} {bottom:g}"
        f" {left_edge + _GAP - 8} {bottom:g}H{right - 5}"
    )
