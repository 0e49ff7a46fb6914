"""Decision pathways: the ways through a decision graph from its root to its ends.

Of every leaf the first ways are kept, so that an end to which many ways lead does not crowd out the
others. A part of the graph is left as soon as all its leaves are full: graphs with more ways than
atoms take milliseconds.

Source: specification of bank synthesis, 10.1.
"""

import unicodedata
from collections.abc import Iterator
from typing import Any

import msgspec

from medassay.core.canonical import sha256_hex
from medassay.core.records.decision_graph import DecisionGraph, read_decision_graph
from medassay.errors import InputError

ARROW = " -> "
MOST_PER_LEAF = 2
# Ways that read alike are one way, but each must be walked to be known; nobody draws so many.
_MOST_ALIKE = 1_000_000


class Path(msgspec.Struct, frozen=True):
    """One way through a decision graph: the names of its nodes, and what each of them says
    besides.
    """

    steps: tuple[str, ...]
    contents: tuple[str, ...]

    @property
    def leaf(self) -> str:
        """Return the name of the end."""
        return self.steps[-1]

    @property
    def text(self) -> str:
        """Return the names joined by arrows.

        Examples
        --------
        >>> Path(("Dyspnoea", "Acute?"), ("", "")).text
        'Dyspnoea -> Acute?'
        """
        return ARROW.join(self.steps)

    @property
    def full_text(self) -> str:
        """Return names with what they say besides, joined by arrows: what a model is shown."""
        return ARROW.join(self.steps_with_contents)

    @property
    def steps_with_contents(self) -> tuple[str, ...]:
        """Return each step with what it says besides."""
        pairs = zip(self.steps, self.contents, strict=True)
        return tuple(
            name if not more or more == name else f"{name} ({more})" for name, more in pairs
        )


def paths(graph: Any, max_per_leaf: int = MOST_PER_LEAF) -> list[Path]:
    """Return the ways from root to leaf, depth first in the order of the children.

    Parameters
    ----------
    graph : parsed JSON as `read_decision_graph` of `core.records.decision_graph` takes it, or what
        that returns
    max_per_leaf : at most so many ways to one leaf are kept, those found first. Leaves of one name,
        but for case and blanks, are one leaf; two ways are one where all their names and contents
        are equal

    Raises
    ------
    InputError
        For a graph with a cycle, or that is none.

    Examples
    --------
    >>> [path.text for path in paths({"edges": {"A": ["B", "C"], "B": ["D"], "C": ["D"]},
    ...     "root": "A"}, 1)]
    ['A -> B -> D']
    """
    if max_per_leaf < 1:
        raise InputError(f"max_per_leaf is {max_per_leaf}; at least 1 is needed")
    graph_read = graph if isinstance(graph, DecisionGraph) else read_decision_graph(graph)
    return list(_walk(graph_read, max_per_leaf))


def _walk(graph: DecisionGraph, most: int) -> Iterator[Path]:
    nodes = graph.nodes
    leaves, reached = _reached(graph)
    paths_kept: dict[int, set[Path]] = {leaf: set() for leaf in leaves.values()}
    unfilled = (1 << len(paths_kept)) - 1
    alike = 0
    way, iterators = [0], [iter(nodes[0].children)]
    while way:
        at = way[-1]
        if not nodes[at].children and reached[at] & unfilled:
            path = Path(
                tuple(nodes[place].name for place in way),
                tuple(nodes[place].content for place in way),
            )
            ways = paths_kept[leaves[at]]
            if path in ways:
                alike += 1
                if alike > _MOST_ALIKE:
                    raise InputError(
                        f"decision graph '{graph.condition}': over {_MOST_ALIKE:,} ways read alike,"
                        f" as '{path.leaf}'; expected nodes whose names or contents differ"
                    )
            else:
                ways.add(path)
                yield path
            if len(ways) == most:
                unfilled &= ~(1 << leaves[at])
        child = next((place for place in iterators[-1] if reached[place] & unfilled), None)
        if child is None:
            way.pop()
            iterators.pop()
        else:
            way.append(child)
            iterators.append(iter(nodes[child].children))


def _reached(graph: DecisionGraph) -> tuple[dict[int, int], list[int]]:
    """Return (node → number of its leaf, node → bits of the leaves that it leads to)."""
    numbers: dict[str, int] = {}
    leaves: dict[int, int] = {}
    reached = [0] * len(graph.nodes)
    for at in graph.upwards():
        node = graph.nodes[at]
        if node.children:
            for child in node.children:
                reached[at] |= reached[child]
        else:
            leaves[at] = numbers.setdefault(same_leaf(node.name), len(numbers))
            reached[at] = 1 << leaves[at]
    return leaves, reached


def subject_of(document: str, path: Path) -> str:
    """Return how the journal names a way of a document: it stays the same while the way does."""
    return f"{document}/{sha256_hex(path.full_text.encode())[:12]}"


def same_leaf(name: str) -> str:
    """Return what tells leaves apart: the name without case and doubled blanks.

    Examples
    --------
    >>> same_leaf("  Iron  LOSS ")
    'iron loss'
    """
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


class PathCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What a graph holds: its nodes, its leaves by name, its ways in all (counted, not walked) and
    those kept.
    """

    nodes: int
    leaves: int
    ways: int
    kept: int


def count_paths(graph: DecisionGraph, max_per_leaf: int = MOST_PER_LEAF) -> PathCounts:
    """Return the counts of a graph; the number of all ways may be astronomic."""
    ways = [0] * len(graph.nodes)
    for at in graph.upwards():
        children = graph.nodes[at].children
        ways[at] = sum(ways[child] for child in children) if children else 1
    names = {same_leaf(node.name) for node in graph.nodes if not node.children}
    return PathCounts(
        nodes=len(graph.nodes),
        leaves=len(names),
        ways=ways[0],
        kept=len(paths(graph, max_per_leaf)),
    )


def count_text(count: int) -> str:
    """Return a number of ways as text; one of more than thirty digits by its size.

    Examples
    --------
    >>> count_text(1234), count_text(8**251)
    ('1234', 'about 10^226')
    """
    if count.bit_length() <= 100:
        return str(count)
    return f"about 10^{int((count.bit_length() - 1) * 0.30103)}"
