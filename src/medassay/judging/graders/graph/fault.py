"""What can be wrong with a graph, all of it said at once, before anybody is asked."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Self

import msgspec

from medassay.core.json import unchecked

INPUTS = ("actual_output", "expected_output", "input")
MOST_NODES = 500
MOST_LEVELS = 50
MOST_QUESTIONS = 1000  # in one evaluation; a few diamonds after one another would ask millions
_FIELDS: dict[str, tuple[str, ...]] = {
    "task": ("instructions", "output_label", "children", "inputs"),
    "binary": ("criteria", "true", "false", "inputs", "parser"),
    "choice": ("criteria", "options", "inputs"),
    "verdict": ("score",),
}
_EDGES = frozenset(
    [
        "cycle",
        "missing_branch",
        "missing_children",
        "no_roots",
        "too_few_options",
        "unknown_node",
        "unknown_type",
        "wrong_value",
    ]
)
_TEXTS = ("instructions", "criteria", "output_label")
_TOP = ("name", "version", "roots", "nodes")
_POLICY: dict[str, tuple[Any, ...]] = {
    "on_error": ("fail", "zero", "skip_branch"),
    "short_circuit": ("score", "cancel"),
    "deterministic_format": (True, False),
}


class Fault(msgspec.Struct, frozen=True):
    """One fault of a graph: its code, the node it is in (empty for the graph itself), and what to
    know.
    """

    code: str
    node: str
    text: str

    def __str__(self) -> str:
        """Return the line that is shown."""
        place = f"node '{self.node}': " if self.node else ""
        return f"{place}{self.text} ({self.code})"


class _NodeValues(msgspec.Struct, frozen=True, rename={"yes": "true", "no": "false"}):
    """What stands under the keys of a node; nothing of it is checked yet."""

    type: Any = None
    instructions: Any = None
    criteria: Any = None
    output_label: Any = None
    children: Any = None
    yes: Any = None
    no: Any = None
    options: Any = None
    inputs: Any = []
    parser: Any = False
    score: Any = None

    @classmethod
    def of(cls, node: Any) -> Self:
        """Return the values of a node as parsed; none of what is no object."""
        if not isinstance(node, Mapping):
            return cls()
        return unchecked(node, cls)


def faults(document: Any) -> list[Fault]:
    """Return every fault of a graph as parsed, in the order of the document; none when it is valid.

    Codes: cycle, unknown_node, score_range, missing_branch, too_few_options, duplicate_option,
    missing_children, unknown_type, unknown_field, unknown_input, no_roots, unreachable, and beyond
    the specification missing_field, wrong_value, too_large.
    """
    if not isinstance(document, Mapping):
        return [Fault("wrong_value", "", "a graph is an object with name, version, roots, nodes")]
    nodes = document.get("nodes")
    if not isinstance(nodes, Mapping) or not nodes:
        return [Fault("missing_field", "", "'nodes' must name at least one node")]
    values = {name: _NodeValues.of(node) for name, node in nodes.items()}
    faults_found = [
        *_of_graph(document),
        *(f for name in nodes for f in _of_node(name, nodes[name], values[name])),
    ]
    edges = {name: _next(node) for name, node in values.items()}
    roots = _names(document.get("roots"))
    for name, after in [("", roots), *edges.items()]:
        faults_found += [
            Fault("unknown_node", name, f"there is no node '{n}'") for n in after if n not in nodes
        ]
    faults_found += [Fault("cycle", path[0], " → ".join(path)) for path in _cycles(roots, edges)]
    # Where an edge is broken, what hangs below it is not a second fault.
    if not {fault.code for fault in faults_found} & _EDGES:
        reached = _reached(roots, edges)
        faults_found += [
            Fault("unreachable", n, "no root leads here") for n in nodes if n not in reached
        ]
    if not faults_found:
        faults_found += _size(roots, edges, values)
    return faults_found


def _of_graph(document: Mapping[str, Any]) -> Iterator[Fault]:
    name, version, roots = (document.get(key) for key in ("name", "version", "roots"))
    if not isinstance(name, str) or not name.strip():
        yield Fault("missing_field", "", "'name' must be a text")
    if isinstance(version, bool) or not isinstance(version, int):
        yield Fault("missing_field", "", "'version' must be a whole number")
    if not _names(roots):
        yield Fault("no_roots", "", "'roots' must list at least one node")
    elif isinstance(roots, list) and len(_names(roots)) < len(roots):
        yield Fault("wrong_value", "", "'roots' must be names of nodes")
    elif len(set(_names(roots))) < len(_names(roots)):
        yield Fault("wrong_value", "", "a root stands twice")
    for key, allowed in _POLICY.items():
        value = document.get(key, allowed[0])
        if not any(
            value == allowed_value and type(value) is type(allowed_value)
            for allowed_value in allowed
        ):
            expected = " or ".join(str(allowed_value).lower() for allowed_value in allowed)
            yield Fault("wrong_value", "", f"'{key}' must be {expected}")
    parameters = document.get("parameters", {})
    if not isinstance(parameters, Mapping) or not all(
        isinstance(value, str) for value in parameters.values()
    ):
        yield Fault("wrong_value", "", "'parameters' must be texts by name")
    if len(document["nodes"]) > MOST_NODES:
        yield Fault("too_large", "", f"more than {MOST_NODES} nodes")
    for key in document:
        if key not in (*_TOP, *_POLICY, "parameters"):
            yield Fault("unknown_field", "", f"'{key}' is no field of a graph")


def _of_node(name: str, node: Any, values: _NodeValues) -> Iterator[Fault]:
    if not isinstance(name, str) or not name.strip():
        yield Fault("missing_field", str(name), "an id must not be empty")
    kind = values.type
    if not isinstance(kind, str) or kind not in _FIELDS:
        yield Fault("unknown_type", name, f"type must be one of {', '.join(_FIELDS)}")
        return
    for key in node:
        if key not in ("type", *_FIELDS[kind]):
            yield Fault("unknown_field", name, f"'{key}' is no field of a {kind} node")
    for key in _TEXTS:
        if key not in _FIELDS[kind]:
            continue
        text = getattr(values, key)
        if not isinstance(text, str) or not text.strip():
            yield Fault("missing_field", name, f"'{key}' must be a text")
    yield from _of_inputs(name, values)
    yield from {"task": _task, "binary": _binary, "choice": _choice, "verdict": _verdict}[kind](
        name, values
    )


def _of_inputs(name: str, node: _NodeValues) -> Iterator[Fault]:
    inputs = node.inputs
    if not isinstance(inputs, list):
        yield Fault("wrong_value", name, "'inputs' must be a list")
        return
    if len(inputs) > len({str(input_name) for input_name in inputs}):
        yield Fault("wrong_value", name, "an input stands twice")
    for input_name in inputs:
        if input_name not in INPUTS:
            yield Fault("unknown_input", name, f"'{input_name}' is none of {', '.join(INPUTS)}")


def _task(name: str, node: _NodeValues) -> Iterator[Fault]:
    children = node.children
    if not isinstance(children, list) or not children:
        yield Fault("missing_children", name, "'children' must list at least one node")
    elif any(not isinstance(child, str) for child in children):
        yield Fault("wrong_value", name, "'children' must be names of nodes")
    elif len(set(children)) < len(children):
        yield Fault("wrong_value", name, "a child stands twice")


def _binary(name: str, node: _NodeValues) -> Iterator[Fault]:
    for key, after in (("true", node.yes), ("false", node.no)):
        if not isinstance(after, str):
            yield Fault("missing_branch", name, f"'{key}' must name the node that follows")
    if not isinstance(node.parser, bool):
        yield Fault("wrong_value", name, "'parser' must be true or false")


def _choice(name: str, node: _NodeValues) -> Iterator[Fault]:
    options = node.options
    if not isinstance(options, Mapping) or len(options) < 2:
        yield Fault("too_few_options", name, "'options' must name at least two")
        return
    if any(not isinstance(after, str) for after in options.values()):
        yield Fault("missing_branch", name, "each option must name the node that follows")
    for key, n in Counter(option_key(str(option)) for option in options).items():
        if n > 1:
            yield Fault("duplicate_option", name, f"'{key}' stands for {n} options")
        if not key:
            yield Fault("wrong_value", name, "an option must not be empty")


def _verdict(name: str, node: _NodeValues) -> Iterator[Fault]:
    score = node.score
    number = isinstance(score, int | float) and not isinstance(score, bool)
    if score is None or not number or not 0 <= score <= 1:
        yield Fault("score_range", name, f"score {str(score)[:20]} is no number from 0 to 1")


def option_key(text: str) -> str:
    """Return an option as compared: case, spaces, hyphens and underscores do not matter.

    Examples
    --------
    >>> option_key("Minor-Issues")
    'minor_issues'
    """
    return "_".join(text.replace("-", " ").replace("_", " ").split()).casefold()


def _names(value: Any) -> list[str]:
    return (
        [element for element in value if isinstance(element, str)]
        if isinstance(value, list)
        else []
    )


def _next(node: _NodeValues) -> list[str]:
    """Return the nodes that a node leads to, as far as they can be read."""
    if node.type == "verdict":
        return []
    named = list(node.options.values()) if isinstance(node.options, Mapping) else []
    return _names([*_names(node.children), node.yes, node.no, *named])


def _reached(roots: list[str], edges: Mapping[str, list[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += edges.get(name, [])
    return reached


def _cycles(roots: list[str], edges: Mapping[str, list[str]]) -> Iterator[list[str]]:
    """Yield one path for each edge that closes a cycle: depth first, with colours."""
    done: set[str] = set()
    for start in [*roots, *edges]:
        path: list[str] = []
        on_path: dict[str, int] = {}
        stack: list[tuple[str, bool]] = [(start, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                done.add(path.pop())
                del on_path[name]
            elif name in on_path:
                yield [*path[on_path[name] :], name]
            elif name not in done:
                on_path[name] = len(path)
                path.append(name)
                stack.append((name, True))
                stack += [(after, False) for after in reversed(edges.get(name, []))]


def _size(
    roots: list[str], edges: Mapping[str, list[str]], values: Mapping[str, _NodeValues]
) -> Iterator[Fault]:
    """Yield what is too deep, or would ask too much; the graph has no cycle."""
    sizes: dict[str, int] = {}
    levels: dict[str, int] = {}

    def measure(name: str) -> None:
        for after in edges[name]:
            if after not in sizes:
                measure(after)
        following = [sizes[after] for after in edges[name]]
        total = sum(following) if values[name].type == "task" else max(following, default=0)
        sizes[name] = total + (values[name].type != "verdict")
        levels[name] = 1 + max((levels[after] for after in edges[name]), default=0)

    for root in roots:
        if root not in sizes:
            measure(root)
    if max(levels[root] for root in roots) > MOST_LEVELS:
        yield Fault("too_large", "", f"more than {MOST_LEVELS} nodes one after the other")
    if (total := sum(sizes[root] for root in roots)) > MOST_QUESTIONS:
        yield Fault("too_large", "", f"may ask {total:,} questions; {MOST_QUESTIONS:,} at most")
