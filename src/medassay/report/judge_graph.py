"""A judge graph as a drawing: laid out once, with the path of each answer drawn over it.

Nothing here depends on who judged.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medassay.report.graph_layout import layout

BOX, GAP = 140, 160  # pixels: width of a box, room between columns
_HIGH, _APART = 26, 8  # height of a box, room between boxes of a column
_MARGIN = 8
_BEND = 60  # where a line has reached the row of its end: labels stand behind it
_LONGEST = 20  # characters of a name in its box


@dataclass(frozen=True, kw_only=True)
class Box:
    """One node: its place (left, top), its name cut to fit, and what stands in the tooltip."""

    node: str
    type: str
    x: int
    y: float
    label: str
    says: str


@dataclass(frozen=True, kw_only=True)
class Edge:
    """The way from a node to one below it, with the reply that leads there."""

    start: str
    end: str
    label: str
    path: str
    x: int
    y: float


@dataclass(frozen=True, kw_only=True)
class AnswerPath:
    """What an answer passed: boxes, edges, and the same in words, branch by branch."""

    boxes: Sequence[Box]
    edges: Sequence[Edge]
    says: str


@dataclass(frozen=True, kw_only=True)
class Drawing:
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
        verdicts = {step["node"]: step["verdict"] for step in trace if step.get("verdict")}
        edges = []
        for step in trace:
            edges_passed = [
                e for e in self.edges if (e.start, e.end) == (step["parent"], step["node"])
            ]
            chosen = [e for e in edges_passed if e.label == verdicts.get(step["parent"])]
            edges += (chosen or edges_passed)[:1]
        boxes = [self.boxes[step["node"]] for step in trace]
        return AnswerPath(boxes=boxes, edges=edges, says="; ".join(_branches(trace)))


def drawings(graphs: Sequence[Mapping[str, Any]]) -> dict[str, Drawing]:
    """Return a drawing of each graph that a run remembers, by name."""
    return {
        graph["name"]: _drawing(number, json.loads(graph["text"]))
        for number, graph in enumerate(graphs)
    }


def _branches(trace: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield each way from a root to its end in words."""
    words: list[str] = []
    for step in trace:
        if step["parent"] is None and words:
            yield " → ".join(words)
            words = []
        verdict = step.get("verdict")
        if step["score"] is not None:
            words.append(f"{step['score']:g}")
        else:
            status = "" if step["status"] == "ok" else f" ({step['status']})"
            words.append(step["node"] + (f": {verdict}" if verdict else "") + status)
    if words:
        yield " → ".join(words)


def _below(node: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (reply, node) of what follows a node; the reply is empty where all of them follow."""
    if node["type"] == "task":
        return [("", name) for name in node["children"]]
    if node["type"] == "binary":
        return [(word, node[word]) for word in ("true", "false")]
    return list(node.get("options", {}).items())


def _drawing(number: int, document: Mapping[str, Any]) -> Drawing:
    nodes = document["nodes"]
    names = _upwards(document)
    places = {name: place for place, name in enumerate(names)}
    children = [[places[end] for _, end in _below(nodes[name])] for name in names]
    grid = layout(children, range(len(names)), [_HIGH] * len(names), _APART)
    boxes = {
        name: Box(
            node=name,
            type=nodes[name]["type"],
            x=_MARGIN + column * (BOX + GAP),
            y=_MARGIN + top,
            label=_label(name, nodes[name]),
            says=str(nodes[name].get("instructions") or nodes[name].get("criteria") or ""),
        )
        for name, column, top in zip(names, grid.columns, grid.tops, strict=True)
    }
    edges = list(_edges(nodes, boxes))
    return Drawing(
        number=number,
        name=document["name"],
        roots=document["roots"],
        width=max(box.x for box in boxes.values()) + BOX + _MARGIN,
        height=round(max(box.y for box in boxes.values()) + _HIGH + _MARGIN),
        boxes=boxes,
        edges=edges,
    )


def _label(name: str, node: Mapping[str, Any]) -> str:
    text = f"{node['score']:g}" if node["type"] == "verdict" else name
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _upwards(document: Mapping[str, Any]) -> list[str]:
    """Return the names of the nodes that a root leads to, each after all that follow it."""
    names: dict[str, None] = {}

    def visit(name: str) -> None:
        for _, end in _below(document["nodes"][name]):
            if end not in names:
                visit(end)
        names[name] = None

    for root in document["roots"]:
        visit(root)
    return list(names)


def _edges(nodes: Mapping[str, Any], boxes: Mapping[str, Box]) -> Iterator[Edge]:
    arrived: dict[str, int] = {}
    for name, box in boxes.items():
        for label, end in _below(nodes[name]):
            other = boxes[end]
            left_edge, right = box.x + BOX, other.x
            top, bottom = box.y + _HIGH / 2, other.y + _HIGH / 2
            bend = left_edge + _BEND
            turn = f"C{left_edge + 35} {top:g} {left_edge + 25} {bottom:g} {bend} {bottom:g}"
            line = f"M{left_edge} {top:g}{turn}H{right}"
            # Where several ways lead to one node, their labels stand above each other.
            lift = 11 * arrived.get(end, 0)
            arrived[end] = arrived.get(end, 0) + 1
            yield Edge(
                start=name,
                end=end,
                label=label,
                path=line,
                x=right - 4,
                y=bottom - 4 - lift,
            )
