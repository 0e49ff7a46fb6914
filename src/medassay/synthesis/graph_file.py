"""Decision graphs in files: JSON (tree or edges), a table of edges, GraphML, Mermaid flowcharts.

What stands at an arrow ("yes", "below 30") becomes a box of its own between the two: a pathway must
say it.
"""

import csv
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from medassay.core.json import parse_json
from medassay.core.records.decision_graph import (
    DecisionGraph,
    graph_of_edges,
    read_decision_graph,
)
from medassay.errors import InputError

_MOST_BYTES = 20_000_000


def load_graph(path: Path) -> DecisionGraph:
    """Return the decision graph in a file; its ending says how it is written.

    Raises
    ------
    InputError
        Naming the file, the place in it and what was expected.
    """
    read = READERS.get(path.suffix.lower())
    if read is None:
        raise InputError(f"{path}: unknown ending; expected one of {', '.join(READERS)}")
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: over {_MOST_BYTES:,} bytes; expected a decision graph")
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; expected a decision graph") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a decision graph") from None
    try:
        return read(data)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


class _Drawn(msgspec.Struct):
    """Boxes and arrows as they are read; an arrow's label becomes a box between its ends."""

    boxes: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    edges: list[tuple[str, str]] = msgspec.field(default_factory=list)

    def arrow(self, start: str, end: str, label: str = "") -> None:
        """Add an arrow."""
        if not label.strip():
            self.edges.append((start, end))
            return
        between = f"{start}\x1f{label}\x1f{end}"
        self.boxes[between] = (label, "")
        self.edges += [(start, between), (between, end)]

    def graph(self) -> DecisionGraph:
        """Return the whole."""
        if not self.edges:
            raise InputError("no arrows; expected at least one from a box to another")
        return graph_of_edges(self.edges, boxes=self.boxes)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text: {error}") from None


_ARROW = re.compile("->|→")


def _edge_table(data: bytes) -> DecisionGraph:
    """Read lines of names joined by arrows, or columns source, target and perhaps label."""
    text = _text(data)
    rows = [line.strip() for line in text.splitlines() if line.strip()]
    drawing = _Drawn()
    if rows and all(_ARROW.search(row) for row in rows):
        for row in rows:
            names = [name.strip() for name in _ARROW.split(row)]
            if not all(names):
                raise InputError(f"line '{row[:60]}': an arrow without a name at its end")
            for start, end in pairwise(names):
                drawing.arrow(start, end)
        return drawing.graph()
    mark = "\t" if rows and "\t" in rows[0] else ","
    try:
        table = [*csv.reader(rows, delimiter=mark, skipinitialspace=True, strict=True)]
    except csv.Error as error:
        raise InputError(f"not readable as a table of edges: {error}") from None
    for number, cells in enumerate(table, 1):
        names = [cell.strip() for cell in cells]
        if number == 1 and names[:2] in (["source", "target"], ["from", "to"]):
            continue
        if not 2 <= len(names) <= 3 or not all(names[:2]):
            raise InputError(
                f"row {number}: {', '.join(names)!r:.60}; expected source, target and perhaps a"
                " label"
            )
        drawing.arrow(*names)
    return drawing.graph()


_NAMES = ("label", "name", "node", "text")
_CONTENTS = ("content", "description", "note")


def _graphml(data: bytes) -> DecisionGraph:
    from xml.etree import ElementTree

    import networkx

    # Definitions of entities grow without bound when they are read; no editor writes them.
    if re.search(rb"<!\s*(DOCTYPE|ENTITY)", data, re.IGNORECASE) or b"\x00" in data:
        raise InputError(
            "GraphML with a DOCTYPE or entities, or not in UTF-8; expected plain GraphML"
        )
    try:
        read = networkx.parse_graphml(data.decode("utf-8-sig"), node_type=str)
    except (
        networkx.NetworkXError,
        ElementTree.ParseError,
        ValueError,
        KeyError,
        TypeError,
    ) as error:
        raise InputError(f"not readable as GraphML: {error}") from None
    if "None" in read and b'id="None"' not in data:
        raise InputError("GraphML with an edge that lacks its source or target")
    if not read.is_directed():
        raise InputError('GraphML of an undirected graph; expected edgedefault="directed"')
    drawing = _Drawn()
    for name, keys in read.nodes(data=True):
        content = _first(keys, _CONTENTS)
        drawing.boxes[name] = (_first(keys, _NAMES) or content or name, content)
    for start, end, keys in read.edges(data=True):
        drawing.arrow(start, end, _first(keys, _NAMES))
    return drawing.graph()


def _first(keys: dict[str, object], names: Sequence[str]) -> str:
    return next((str(keys[name]) for name in names if str(keys.get(name, "")).strip()), "")


_CLOSING = {"[": "]", "(": ")", "{": "}", "/": "/", "\\": "\\", ">": "]"}
_IDENTIFIER = re.compile(r"[^\W_](?:[\w.]|-(?![-.>]))*|_[\w.]+")
# An arrow with a text in it, "-- yes -->"; or one without, which "|yes|" may follow.
_LABELLED = re.compile(
    r"\s*[<ox]?(?:--(?![->])|==(?![=>])|-\.(?![->.]))\s*(?P<label>[^|\n]+?)\s*(?:--+[->xo]?|"
    r"==+[=>]?|\.+->?)(?=[\s\w\"])"
)
_PLAIN = re.compile(r"\s*[<ox]?(?:--+[->xo]|==+[=>]|-\.+->?|~~~)\s*(?:\|(?P<label>[^|]*)\|)?")
_SKIPPED = re.compile(
    r"(?:%%|classDef\b|class\b|style\b|linkStyle\b|click\b|subgraph\b|end\b|direction\b|"
    r"accTitle\b|accDescr\b|---\s*$|title:)"
)
_HEADER = re.compile(r"(?:flowchart|graph)(?:\s+(?:TB|TD|BT|RL|LR))?\s*(?:;|$)")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def _mermaid(data: bytes) -> DecisionGraph:
    lines = [line.strip().rstrip(";") for line in _text(data).splitlines()]
    body = iter(enumerate(lines, 1))
    if not any(_HEADER.match(line) for _, line in body):
        raise InputError("no line 'flowchart' or 'graph'; expected a Mermaid flowchart")
    drawing = _Drawn()
    for number, line in body:
        for part in line.split(";") if '"' not in line else [line]:
            if part.strip() and not _SKIPPED.match(part.strip()):
                _Statement(part.strip(), f"line {number}", drawing).read()
    return drawing.graph()


class _Statement:
    """One line of a flowchart: groups of boxes with arrows between them."""

    def __init__(self, text: str, where: str, drawing: _Drawn) -> None:
        self._text, self._where, self._drawn = text, where, drawing
        self._at = 0

    def read(self) -> None:
        """Add the boxes and arrows of the line."""
        before = self._group()
        while self._at < len(self._text):
            label = self._link()
            after = self._group()
            for start in before:
                for end in after:
                    self._drawn.arrow(start, end, label)
            before = after

    def _refuse(self, expected: str) -> InputError:
        rest = self._text[self._at : self._at + 40]
        return InputError(f"{self._where}: at '{rest}'; expected {expected}")

    def _group(self) -> list[str]:
        names = [self._box()]
        while (mark := re.compile(r"\s*&\s*").match(self._text, self._at)) is not None:
            self._at = mark.end()
            names.append(self._box())
        return names

    def _box(self) -> str:
        self._at = len(self._text) - len(self._text[self._at :].lstrip())
        match = _IDENTIFIER.match(self._text, self._at)
        if match is None:
            raise self._refuse("a box, as A[Fever?]")
        name, self._at = match[0], match.end()
        label = self._shape()
        if label is not None or name not in self._drawn.boxes:
            self._drawn.boxes[name] = (label or name, "")
        if (mark := re.compile(r":::\w+").match(self._text, self._at)) is not None:
            self._at = mark.end()
        return name

    def _shape(self) -> str | None:
        """Return the text between the marks of a shape, None where there is none."""
        start = self._at
        while (
            self._at < len(self._text)
            and self._text[self._at] in "[({/\\>"
            and self._at - start < 3
        ):
            if self._text[self._at] in "/\\>" and self._at > start and self._text[start] != "[":
                break
            self._at += 1
        opening = self._text[start : self._at]
        if not opening:
            return None
        closing = "".join(_CLOSING[mark] for mark in reversed(opening))
        if self._text[self._at : self._at + 1] == '"':
            end = self._text.find('"', self._at + 1)
            after = end + 1
            text = self._text[self._at + 1 : end]
        else:
            end = after = self._text.find(closing, self._at)
            text = self._text[self._at : end]
        # The two slants of a parallelogram and of a trapezoid may be of either kind.
        either = (closing, closing.translate({47: 92, 92: 47}))
        if end < 0 or not self._text.startswith(either, after):
            self._at = start
            raise self._refuse(f"a text that ends in '{closing}' (quote texts that hold brackets)")
        self._at = after + len(closing)
        return _BREAK.sub(" ", text).replace("`", "").strip() or None

    def _link(self) -> str:
        for pattern in (_PLAIN, _LABELLED):
            if (match := pattern.match(self._text, self._at)) is not None:
                self._at = match.end()
                return _BREAK.sub(" ", (match["label"] or "").strip().strip('"'))
        raise self._refuse("an arrow, as -->")


READERS: dict[str, Callable[[bytes], DecisionGraph]] = {
    ".csv": _edge_table,
    ".graphml": _graphml,
    ".json": lambda data: read_decision_graph(parse_json(data, "decision graph")),
    ".mermaid": _mermaid,
    ".mmd": _mermaid,
    ".tsv": _edge_table,
    ".txt": _edge_table,
}
