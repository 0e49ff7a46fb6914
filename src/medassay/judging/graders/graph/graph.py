"""Graphs of judge questions as data: read from JSON or YAML, refused with every fault at once."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.json import without_twins
from medassay.core.records.manifest import RunGraph
from medassay.errors import InputError
from medassay.judging.graders.graph.fault import Fault, faults

NodeType = Literal["task", "binary", "choice", "verdict"]
OnError = Literal["fail", "zero", "skip_branch"]
ShortCircuit = Literal["score", "cancel"]
_LARGEST = 1_000_000  # characters of a file
_MOST_TOLD = 50  # faults in one message


@dataclass(frozen=True, kw_only=True)
class GraphNode:
    """One question, or a verdict.

    `text` are the instructions of a task or the criteria of a question; `branches` say which node
    follows which reply (`true` and `false`, or the options in the order shown). `parser` marks a
    binary question whether the output is valid JSON, which a graph with `deterministic_format` has
    decided by our parser.
    """

    id: str
    type: NodeType
    text: str = ""
    inputs: tuple[str, ...] = ()
    label: str = ""
    children: tuple[str, ...] = ()
    branches: Mapping[str, str] = field(default_factory=dict)
    score: float | None = None
    parser: bool = False


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A valid graph: every path from a root ends in a verdict.

    `on_error` says what a branch without a usable reply does to the mean: `fail` (no score),
    `zero`, or `skip_branch`. `short_circuit` says whether a verdict of 0, which decides the result,
    also ends the other branches (`cancel`). `parameters` fill `{name}` in texts.
    """

    name: str
    version: int
    roots: tuple[str, ...]
    nodes: Mapping[str, GraphNode]
    on_error: OnError = "fail"
    short_circuit: ShortCircuit = "score"
    deterministic_format: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def id(self) -> str:
        """Return `name@hash`, the hash over everything that decides a result, the order of options
        too.
        """
        nodes = [
            (n.id, n.type, n.text, n.inputs, n.label, n.children, n.parser, repr(n.score))
            for n in sorted(self.nodes.values(), key=lambda node: node.id)
        ]
        branches = [
            (name, list(node.branches.items())) for name, node in sorted(self.nodes.items())
        ]
        policy = [self.on_error, self.short_circuit, self.deterministic_format]
        parameters = sorted([name, value] for name, value in self.parameters.items())
        document = [self.name, self.version, self.roots, nodes, branches, policy, parameters]
        return f"{self.name}@{sha256_hex(canonical(document))[:12]}"

    def remembered(self) -> RunGraph:
        """Return what a run remembers of it."""
        document = {
            "name": self.name,
            "version": self.version,
            "roots": list(self.roots),
            "nodes": {name: _document(node) for name, node in self.nodes.items()},
            "on_error": self.on_error,
            "short_circuit": self.short_circuit,
            "deterministic_format": self.deterministic_format,
            "parameters": dict(self.parameters),
        }
        text = json.dumps(document, ensure_ascii=False)
        return RunGraph(name=self.name, id=self.id, roots=list(self.roots), text=text)

    def text(self, node: GraphNode) -> str:
        """Return a node's text with the parameters filled in."""
        text = node.text
        for name, value in self.parameters.items():
            text = text.replace("{" + name + "}", value)
        return text

    def with_parameters(self, **parameters: str) -> "Graph":
        """Return the graph with other values of its parameters.

        Raises
        ------
        InputError
            When the graph has no parameter of that name.
        """
        for name, value in parameters.items():
            if not isinstance(value, str):
                raise InputError(f"graph {self.name}: parameter '{name}' must be a text")
        if unknown := sorted(parameters.keys() - self.parameters.keys()):
            raise InputError(
                f"graph {self.name}: no parameter '{unknown[0]}'; it has"
                f" {', '.join(self.parameters) or 'none'}"
            )
        return replace(self, parameters={**self.parameters, **parameters})


def published(name: str) -> Graph:
    """Return one of the graphs that come with medassay.

    Examples
    --------
    >>> published("medical_extraction_quality").roots
    ('format_task', 'accuracy_task', 'completeness_task', 'terminology_task')
    """
    folder = files("medassay.judging.graders.graph") / "graphs"
    names = sorted(file.name.removesuffix(".yaml") for file in folder.iterdir())
    if name not in names:
        raise InputError(f"graph '{name}' is unknown; known are {', '.join(names)}")
    text = (folder / f"{name}.yaml").read_text(encoding="utf-8")
    return graph_from(_read_yaml(text, name), name)


def find(name: str, base: Path) -> Graph:
    """Return a graph by its name, if it comes with medassay, or by its file, relative to `base`."""
    return load(base / name) if Path(name).suffix else published(name)


def load(path: Path | str) -> Graph:
    """Return the graph of a `.json`, `.yaml` or `.yml` file.

    Raises
    ------
    InputError
        Naming what is wrong: the file, its syntax, a key that stands twice; or all of
        `fault.faults`, each with its node.
    """
    path = Path(path)
    readers = {".json": _read_json, ".yaml": _read_yaml, ".yml": _read_yaml}
    if (read := readers.get(path.suffix.lower())) is None:
        raise InputError(f"{path}: a graph is a .json, .yaml or .yml file")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text: {error}") from None
    if len(text) > _LARGEST:
        raise InputError(f"{path}: longer than {_LARGEST:,} characters; no graph is")
    return graph_from(read(text, str(path)), str(path))


def recalled(remembered: RunGraph) -> Graph:
    """Return the graph that a run remembers.

    Raises
    ------
    InputError
        When its text is not the graph of the name, id and roots beside it.
    """
    where = f"graph {remembered.name}"
    graph = graph_from(_read_json(remembered.text, where), where)
    if graph.remembered() != remembered:
        raise InputError(f"{where}: its text is not the graph that the run says it was judged by")
    return graph


def graph_from(document: Any, where: str) -> Graph:
    """Return the graph of a parsed document; `where` is named in errors."""
    try:
        problems = faults(document)
    except ValueError as error:  # a number of more digits than can be shown
        raise InputError(f"{where}: {error}") from None
    if problems:
        raise InputError(_faults_text(where, problems))
    options = {
        key: document[key]
        for key in ("on_error", "short_circuit", "deterministic_format", "parameters")
        if key in document
    }
    try:
        canonical(document)
        file = msgspec.convert(document, _GraphFile)
    except (InputError, ValueError) as error:  # half a surrogate pair, a version of 20 digits
        raise InputError(f"{where}: {error}") from None
    return Graph(
        name=file.name,
        version=file.version,
        roots=tuple(file.roots),
        nodes={name: node.named(name) for name, node in file.nodes.items()},
        **options,
    )


class _NodeFile(msgspec.Struct, frozen=True, kw_only=True, rename={"yes": "true", "no": "false"}):
    """A node as a file has it; each type has some of the fields."""

    type: NodeType
    instructions: str = ""
    criteria: str = ""
    inputs: list[str] = []
    output_label: str = ""
    children: list[str] = []
    options: dict[str, str] | None = None
    yes: str | None = None
    no: str | None = None
    score: float | None = None
    parser: bool = False

    def named(self, name: str) -> GraphNode:
        """Return the node under its name in the graph."""
        binary = {"true": self.yes, "false": self.no}
        ways = {way: node for way, node in binary.items() if node is not None}
        return GraphNode(
            id=name,
            type=self.type,
            text=self.instructions or self.criteria,
            inputs=tuple(self.inputs),
            label=self.output_label,
            children=tuple(self.children),
            branches=ways if self.options is None else self.options,
            score=self.score,
            parser=self.parser,
        )


class _GraphFile(msgspec.Struct, frozen=True, kw_only=True):
    """A graph as a file has it, once nothing was found wrong with it."""

    name: str
    version: int
    roots: list[str]
    nodes: dict[str, _NodeFile]


def _document(node: GraphNode) -> dict[str, Any]:
    """Return a node as it stands in a file."""
    if node.type == "verdict":
        return {"type": node.type, "score": node.score}
    node_document: dict[str, Any] = {"type": node.type, "inputs": list(node.inputs)}
    if node.type == "task":
        verdict_document = {"output_label": node.label, "children": list(node.children)}
        return node_document | {"instructions": node.text} | verdict_document
    node_document |= {"criteria": node.text}
    if node.type == "choice":
        return node_document | {"options": dict(node.branches)}
    return node_document | dict(node.branches) | ({"parser": True} if node.parser else {})


def _faults_text(where: str, faults_found: Iterable[Fault]) -> str:
    lines = [str(fault) for fault in faults_found]
    if len(lines) == 1:
        return f"{where}: {lines[0]}"
    more = [f"and {len(lines) - _MOST_TOLD} more"] if len(lines) > _MOST_TOLD else []
    lines_shown = "\n".join(f"  {line[:300]}" for line in [*lines[:_MOST_TOLD], *more])
    return f"{where}: {len(lines)} faults\n{lines_shown}"


def _read_json(text: str, where: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=without_twins)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON: {error}") from None


def _read_yaml(text: str, where: str) -> Any:
    from medassay.judging.graders.graph.yaml_text import read_yaml

    return read_yaml(text, where)
