"""`DecisionGraph`: what to ask, find and do about a condition, from its root to the ends.

Nodes are told apart by their place, not by their name: in guidelines several boxes are called
"Yes", and joining them would join branches that have nothing to do with each other
(docs/decisions/0015).
"""

from collections.abc import Mapping, Sequence, Set
from typing import Any, Required, TypedDict

import msgspec

from medassay.core.json import storable
from medassay.errors import InputError

MOST_NODES, MOST_LEVELS = 2000, 40  # of a graph that a model wrote
_DEEPEST_TREE = 100  # levels of objects within objects
_KEYS = frozenset(("node", "content", "children"))


class DecisionTree(TypedDict, total=False):
    """A box of a decision graph with those that follow it, as JSON."""

    node: Required[str]
    content: Required[str]
    children: list["DecisionTree"]


class BoxObject(TypedDict):
    """A box of a decision graph with the places of those that follow it."""

    node: str
    content: str
    children: list[int]


class DecisionBoxes(TypedDict):
    """A decision graph that is no tree of bearable size, as JSON."""

    boxes: list[BoxObject]


class DecisionNode(msgspec.Struct, frozen=True, kw_only=True):
    """One box: its name, what it says besides, and the places of the boxes that follow it."""

    name: str
    content: str = ""
    children: tuple[int, ...] = ()


class DecisionGraph(msgspec.Struct, frozen=True):
    """Boxes without a cycle; the first is the root. A box may follow several others."""

    nodes: tuple[DecisionNode, ...]

    @property
    def condition(self) -> str:
        """Return the root's name."""
        return self.nodes[0].name

    def upwards(self) -> list[int]:
        """Return the places of all boxes, each after all that follow it.

        Raises
        ------
        InputError
            Naming the boxes of a cycle.
        """
        order: list[int] = []
        state = bytearray(len(self.nodes))  # 0 not seen, 1 on the way, 2 done
        for start in range(len(self.nodes)):
            way, iterators = [start], [iter(self.nodes[start].children)]
            if state[start]:
                continue
            state[start] = 1
            while way:
                child = next(iterators[-1], None)
                if child is None:
                    state[way[-1]] = 2
                    order.append(way.pop())
                    iterators.pop()
                elif state[child] == 1:
                    names = [self.nodes[at].name for at in (*way[way.index(child) :], child)]
                    names_shown = names if len(names) < 8 else [*names[:3], "…", *names[-3:]]
                    raise InputError(
                        f"decision graph: cycle {' -> '.join(names_shown)}; expected ways that end"
                    )
                elif not state[child]:
                    state[child] = 1
                    way.append(child)
                    iterators.append(iter(self.nodes[child].children))
        return order

    def to_tree(self) -> DecisionTree:
        """Return the tree of the specification as plain JSON.

        A box that follows several stands under each.

        Raises
        ------
        InputError
            When that tree has more boxes than a graph may have.
        """
        trees: dict[int, DecisionTree] = {}
        sizes: dict[int, int] = {}
        for at in self.upwards():
            node = self.nodes[at]
            sizes[at] = 1 + sum(sizes[child] for child in node.children)
            trees[at] = {"node": node.name, "content": node.content}
            if node.children:
                trees[at]["children"] = [trees[child] for child in node.children]
        if sizes[0] > MOST_NODES:
            raise InputError(
                f"decision graph '{self.condition}': as a tree it has {sizes[0]:,} nodes; at most "
                f"{MOST_NODES:,} are written"
            )
        return trees[0]

    @property
    def levels(self) -> int:
        """Return how many boxes the longest way has."""
        below = [1] * len(self.nodes)
        for at in self.upwards():
            below[at] += max((below[child] for child in self.nodes[at].children), default=0)
        return below[0]

    def to_json(self) -> DecisionTree | DecisionBoxes:
        """Return the tree; of a graph that is no tree of bearable size its boxes, each with the
        places of those that follow.
        """
        try:
            if self.levels > _DEEPEST_TREE:
                raise InputError("deeper than JSON is written")
            return self.to_tree()
        except InputError:
            boxes: list[BoxObject] = [
                {"node": node.name, "content": node.content, "children": list(node.children)}
                for node in self.nodes
            ]
            return {"boxes": boxes}


def read_decision_graph(value: Any) -> DecisionGraph:
    """Return the graph in parsed JSON.

    Either the tree of the specification, `{"node", "content", "children"}`, whose boxes need not
    have a content, nor a name where they have one; or `{"edges": {name: [names]}, "root": name}`;
    or a list of pairs of names.

    Raises
    ------
    InputError
        Naming the box and what was expected; also for a cycle, and for a root without children.
    """
    if isinstance(value, Mapping) and "edges" in value:
        graph = _from_edges(value["edges"], value.get("root"))
    elif isinstance(value, list | tuple):
        graph = _from_edges(value, None)
    else:
        graph = _from_tree(value)
    if not graph.nodes[0].children:
        raise InputError(
            f"decision graph: nothing follows its root '{graph.nodes[0].name}'; expected at least"
            " one child: a graph of one box decides nothing"
        )
    return graph


def _from_tree(value: Any) -> DecisionGraph:
    # Objects that are one in memory are one box, so that a graph may be given as shared objects.
    places: dict[int, int] = {}
    names: list[tuple[str, str]] = []
    below: list[list[Any]] = []

    def place_of(box: Any, where: str) -> int:
        existing = places.get(id(box))
        if existing is None:
            name, content, children = _box(box, where)
            existing = places[id(box)] = len(names)
            names.append((name, content))
            below.append(children)
        return existing

    place_of(value, "its root")
    nodes: list[DecisionNode] = []
    for at, (name, content) in enumerate(names):  # grows while it is read
        where = f"a child of '{name}'"
        children = dict.fromkeys(place_of(child, where) for child in below[at])
        nodes.append(DecisionNode(name=name, content=content, children=tuple(children)))
    graph = DecisionGraph(tuple(nodes))
    graph.upwards()
    return graph


def _box(box: Any, where: str) -> tuple[str, str, list[Any]]:
    if not isinstance(box, Mapping):
        raise InputError(
            f"decision graph: {where} is {type(box).__name__}; expected an object with node,"
            " content, children"
        )
    for key in box:
        if key not in _KEYS:
            raise InputError(
                f"decision graph: {where} has the key '{key}'; expected node, content, children"
            )
    name, content, children = (box.get(key) for key in ("node", "content", "children"))
    for key, text in (("node", name), ("content", content)):
        if text is not None and not isinstance(text, str):
            raise InputError(f"decision graph: {where}: {key} is {text!r:.40}; expected text")
    called = _one_line(name or "") or _one_line(content or "")
    if not called:
        raise InputError(f"decision graph: {where} has no name; expected text in 'node'")
    if children is not None and not isinstance(children, list | tuple):
        raise InputError(
            f"decision graph: children of '{called}': {children!r:.40}; expected a list"
        )
    return called, _one_line(content or ""), list(children or ())


def _from_edges(edges: Any, root: Any) -> DecisionGraph:
    """Read edges by name, or as pairs.

    What is equal is checked once, so that millions of edges take a second.
    """
    below: dict[Any, dict[Any, None]] = {}
    try:
        if isinstance(edges, Mapping):
            for name, ends in edges.items():
                if not isinstance(ends, list | tuple):
                    raise InputError(
                        f"decision graph: edges of '{name}': {ends!r:.40}; expected a list of names"
                    )
                below[name] = dict.fromkeys(ends)
        elif isinstance(edges, list | tuple):
            for edge in edges:
                if not isinstance(edge, list | tuple) or len(edge) != 2:
                    raise InputError(f"decision graph: edge {edge!r:.40}; expected two names")
                below.setdefault(edge[0], {})[edge[1]] = None
        else:
            raise InputError(f"decision graph: edges are {edges!r:.40}; expected names or pairs")
        names = set(below).union(*below.values())
    except TypeError:
        raise InputError("decision graph: an end of an edge is no text; expected a name") from None
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"decision graph: an edge has the end {name!r:.40}; expected a name")
    if not any(below.values()):
        raise InputError("decision graph: no edges; expected at least one pair of names")
    if root is not None and not isinstance(root, str):
        raise InputError(f"decision graph: root {root!r:.40}; expected a name")
    return _graph_of(below, root, {})


def graph_of_edges(
    edges: Sequence[tuple[str, str]], *, boxes: Mapping[str, tuple[str, str]]
) -> DecisionGraph:
    """Return the graph of some edges between ids, in their order; one given twice counts once.

    Parameters
    ----------
    boxes : id → name and content; an id that is not among them is its own name

    Raises
    ------
    InputError
        When there is no single root, an id is not reached from it, or there is a cycle.
    """
    below: dict[str, dict[str, None]] = {}
    for start, end in edges:
        below.setdefault(start, {})[end] = None
    return _graph_of(below, None, boxes)


def _graph_of(
    below: Mapping[str, Mapping[str, None]],
    root: str | None,
    boxes: Mapping[str, tuple[str, str]],
) -> DecisionGraph:
    ends = set().union(*below.values())
    if root is not None and root not in below and root not in ends:
        raise InputError(f"decision graph: root {root!r:.60} is on no edge")
    begins = _root(below, ends) if root is None else root
    order = [begins]
    places = {begins: 0}
    for name in order:  # grows while it is read
        for end in below.get(name, ()):
            if end not in places:
                places[end] = len(order)
                order.append(end)
    if apart := [name for name in (*below, *ends) if name not in places]:
        raise InputError(
            f"decision graph: '{apart[0]}' is not reached from the root '{begins}'; expected one"
            " graph"
        )
    nodes = []
    for node in order:
        name, content = boxes.get(node, (node, ""))
        children = tuple(map(places.__getitem__, below.get(node, ())))
        nodes.append(
            DecisionNode(name=_one_line(name), content=_one_line(content), children=children)
        )
    graph = DecisionGraph(tuple(nodes))
    graph.upwards()
    return graph


def _root(below: Mapping[str, Mapping[str, None]], ends: Set[str]) -> str:
    roots = [name for name in below if name not in ends]
    if len(roots) == 1:
        return roots[0]
    if not roots:
        raise InputError("decision graph: every node follows another, a cycle; expected a root")
    raise InputError(
        f"decision graph: {len(roots)} nodes follow none ({', '.join(roots[:4])}); expected one"
        " root"
    )


def _one_line(text: str) -> str:
    """Return a text on one line, without characters that steer a terminal or the direction of
    reading.
    """
    joined = " ".join(storable(text).split())
    return joined if joined.isprintable() else "".join(c for c in joined if c.isprintable())


def contract_problem(value: Any) -> str | None:
    """Return what is wrong with a tree that a model wrote, None if nothing is.

    The contract is strict: keys exactly node, content, children; names not blank, and none again on
    its own way; no control characters; a child at the root; at most 2000 boxes in 40 levels.
    """
    if not isinstance(value, dict):
        return "expected one JSON object with node, content, children"
    count = 0
    waiting: list[tuple[Any, tuple[str, ...]]] = [(value, ())]
    while waiting:
        box, way = waiting.pop()
        count += 1
        if count > MOST_NODES:
            return f"more than {MOST_NODES:,} nodes"
        if len(way) >= MOST_LEVELS:
            return f"deeper than {MOST_LEVELS} levels"
        if (problem := _box_problem(box, way)) is not None:
            return problem
        children = box.get("children") or []
        if not way and not children:
            return "the root has no child"
        waiting += ((child, (*way, _same(box["node"]))) for child in children)
    return None


def _box_problem(box: Any, way: Sequence[str]) -> str | None:
    if not isinstance(box, dict):
        return f"a child is {type(box).__name__}; expected an object"
    if not {"node", "content"} <= box.keys() <= _KEYS:
        keys_shown = ", ".join(repr(key)[:40] for key in box) or "none"
        return f"keys {keys_shown}; expected node, content, children"
    for key in ("node", "content"):
        text = box[key]
        if not isinstance(text, str):
            return f"{key} is {text!r:.40}; expected text"
        if not text.isprintable():
            return f"{key} {text!r:.40} holds a control character"
    name, children = box["node"], box.get("children", [])
    checks = {
        "a node's name is blank": not name.strip(),
        f"children of {name!r:.40} are no list": not isinstance(children, list),
        f"node {name!r:.40} is repeated on its own path": _same(name) in way,
    }
    return next((problem for problem, wrong in checks.items() if wrong), None)


def _same(name: str) -> str:
    return " ".join(name.casefold().split())
