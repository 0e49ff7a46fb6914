"""A judge graph as a drawing: laid out once, with the path of each answer drawn over it.

Nothing here depends on who judged.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from medassay.core.json import record_as
from medassay.core.records.manifest import RunGraph
from medassay.errors import IntegrityError
from medassay.report.graph_layout import layout

BOX, GAP = 140, 160  # pixels: width of a box, room between columns
_HIGH, _APART = 26, 8  # height of a box, room between boxes of a column
_MARGIN = 8
_BEND = 60  # where a line has reached the row of its end: labels stand behind it
_LONGEST = 20  # characters of a name in its box


class GraphNodeText(msgspec.Struct, frozen=True, kw_only=True):
    """A node as the text of a graph has it; which fields it has depends on its type."""

    type: str
    instructions: str = ""
    criteria: str = ""
    children: list[str] = []
    if_true: str = msgspec.field(name="true", default="")
    if_false: str = msgspec.field(name="false", default="")
    options: dict[str, str] = {}
    score: float = 0.0

    def branches(self) -> list[tuple[str, str]]:
        """Return (reply, node) of what follows; the reply is empty where all of them follow."""
        if self.type == "task":
            return [("", name) for name in self.children]
        if self.type == "binary":
            return [("true", self.if_true), ("false", self.if_false)]
        return list(self.options.items())

    def label(self, name: str) -> str:
        """Return what stands in its box: the score of a verdict, else its name, cut to fit."""
        text = f"{self.score:g}" if self.type == "verdict" else name
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class GraphText(msgspec.Struct, frozen=True, kw_only=True):
    """A judge graph as a run remembers it."""

    name: str
    roots: list[str]
    nodes: dict[str, GraphNodeText]


class PassedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A step of an answer's trace: a node, and the verdict or score that was reached there."""

    node: str
    parent: str | None
    verdict: str | None = None
    score: float | None
    status: str

    def __str__(self) -> str:
        if self.score is not None:
            return f"{self.score:g}"
        status = "" if self.status == "ok" else f" ({self.status})"
        return self.node + (f": {self.verdict}" if self.verdict else "") + status


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """One node: its place (left, top), its name cut to fit, and what stands in the tooltip."""

    type: str
    x: int
    y: float
    label: str
    says: str


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """The way from a node to one below it, with the reply that leads there."""

    start: str
    end: str
    label: str
    path: str
    x: int
    y: float


class AnswerPath(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer passed: boxes, edges, and the same in words, branch by branch."""

    boxes: Sequence[Box]
    edges: Sequence[Edge]
    says: str


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """A graph ready to be drawn.

    `number` makes its id on the page, `wide` is the width of a box.
    """

    number: int
    name: str
    roots: Sequence[str]
    wide: int = BOX
    width: int
    height: int
    boxes: Mapping[str, Box]
    edges: Sequence[Edge]

    def passed(self, trace: Sequence[Mapping[str, Any]]) -> AnswerPath:
        """Return the path of one answer, from its trace."""
        steps = record_as(trace, list[PassedNode], "verdicts.jsonl: a trace")
        verdicts = {step.node: step.verdict for step in steps if step.verdict}
        edges = []
        for step in steps:
            edges_passed = [e for e in self.edges if (e.start, e.end) == (step.parent, step.node)]
            chosen = [e for e in edges_passed if e.label == verdicts.get(step.parent or "")]
            edges += (chosen or edges_passed)[:1]
        boxes = [self.boxes[step.node] for step in steps]
        return AnswerPath(boxes=boxes, edges=edges, says="; ".join(_branches(steps)))


def drawings(graphs: Sequence[RunGraph]) -> dict[str, Drawing]:
    """Return a drawing of each graph that a run remembers, by name.

    Raises
    ------
    IntegrityError
        When the text of one is no graph.
    """
    return {graph.name: _drawing(number, _graph(graph)) for number, graph in enumerate(graphs)}


def _graph(graph: RunGraph) -> GraphText:
    try:
        return msgspec.json.decode(graph.text, type=GraphText)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise IntegrityError(f"manifest.json: graph '{graph.name}': {error}") from None


def _branches(steps: Sequence[PassedNode]) -> Iterator[str]:
    """Yield each way from a root to its end in words."""
    words: list[str] = []
    for step in steps:
        if step.parent is None and words:
            yield " → ".join(words)
            words = []
        words.append(str(step))
    if words:
        yield " → ".join(words)


def _drawing(number: int, graph: GraphText) -> Drawing:
    names = _upwards(graph)
    places = {name: place for place, name in enumerate(names)}
    children = [[places[end] for _, end in graph.nodes[name].branches()] for name in names]
    grid = layout(children, range(len(names)), [_HIGH] * len(names), _APART)
    boxes = {
        name: _box(name, graph.nodes[name], column, top)
        for name, column, top in zip(names, grid.columns, grid.tops, strict=True)
    }
    return Drawing(
        number=number,
        name=graph.name,
        roots=graph.roots,
        width=max(box.x for box in boxes.values()) + BOX + _MARGIN,
        height=round(max(box.y for box in boxes.values()) + _HIGH + _MARGIN),
        boxes=boxes,
        edges=list(_edges(graph, boxes)),
    )


def _box(name: str, node: GraphNodeText, column: int, top: float) -> Box:
    return Box(
        type=node.type,
        x=_MARGIN + column * (BOX + GAP),
        y=_MARGIN + top,
        label=node.label(name),
        says=node.instructions or node.criteria,
    )


def _upwards(graph: GraphText) -> list[str]:
    """Return the names of the nodes that a root leads to, each after all that follow it."""
    names: dict[str, None] = {}

    def visit(name: str) -> None:
        for _, end in graph.nodes[name].branches():
            if end not in names:
                visit(end)
        names[name] = None

    for root in graph.roots:
        visit(root)
    return list(names)


def _edges(graph: GraphText, boxes: Mapping[str, Box]) -> Iterator[Edge]:
    arrived: dict[str, int] = {}
    for name, box in boxes.items():
        for label, end in graph.nodes[name].branches():
            other = boxes[end]
            left_edge, right = box.x + BOX, other.x
            top, bottom = box.y + _HIGH / 2, other.y + _HIGH / 2
            bend = left_edge + _BEND
            turn = f"C{left_edge + 35} {top:g} {left_edge + 25} {bottom:g} {bend} {bottom:g}"
            # Where several ways lead to one node, their labels stand above each other.
            lift = 11 * arrived.get(end, 0)
            arrived[end] = arrived.get(end, 0) + 1
            yield Edge(
                start=name,
                end=end,
                label=label,
                path=f"M{left_edge} {top:g}{turn}H{right}",
                x=right - 4,
                y=bottom - 4 - lift,
            )
