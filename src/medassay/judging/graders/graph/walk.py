"""What follows from the replies so far: the questions that can be asked now, the trace, and the
result.

Nothing is asked here. The state is which replies were told; everything else is computed from it in
the declared order, so that neither the order of replies nor the way they were got can change a
score, nor, unless a graph cancels what a 0 leaves open, the trace.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from medassay.core.canonical import sha256_hex
from medassay.core.json import storable
from medassay.core.json_schema import STRING, JsonSchema, enum_schema, object_schema
from medassay.core.records.completion import Completion
from medassay.core.records.prompt import Prompt
from medassay.core.reply.json_objects import find_objects
from medassay.core.reply.json_value import is_json_alone
from medassay.core.reply.thoughts import strip_thoughts
from medassay.judging.grader_text import GraderText
from medassay.judging.graders.graph.fault import option_key
from medassay.judging.graders.graph.graph import Graph, GraphNode
from medassay.judging.sanitize import delimit

RETRIES = 2
TEXT = GraderText("dag", ("en",))
_WORDS = {"true": "true", "yes": "true", "false": "false", "no": "false"}
Status = Literal["ok", "invalid", "error", "cancelled"]
Path = tuple[
    str, ...
]  # of node ids from the root: a node with two parents is another step in each branch


class WalkStep(msgspec.Struct, frozen=True, kw_only=True):
    """One node as it was passed: what was asked, what came back, and what was read in it.

    `branch` counts the children of the nearest fan-out above. `verdict` is `true`, `false`, the
    option chosen, or a task's text; None where no reply could be used. `score` is the worth of a
    verdict node. `attempts` is 0 where nobody was asked. `seconds` sums the time of generation.
    """

    node: str
    type: str
    parent: str | None
    branch: int
    prompt_hash: str = ""
    model: str = ""
    reply: str = ""
    verdict: str | None = None
    attempts: int = 0
    score: float | None = None
    seconds: float = 0.0
    status: Status = "ok"
    reason: str = ""


class GraphResult(msgspec.Struct, frozen=True, kw_only=True):
    """The worth of an answer, in [0, 1], with every step that led to it.

    `score` is None where a branch got no usable reply and the graph says `fail`, or every branch
    was skipped. `short_circuited` says that a 0 decided: of a verdict, or of a failed branch where
    the graph counts these as zero. `branches` are the roots with their scores; `skipped` counts
    branches left out of a mean.
    """

    score: float | None
    trace: tuple[WalkStep, ...]
    short_circuited: bool
    branches: tuple[tuple[str, float | None], ...]
    skipped: int = 0

    @property
    def status(self) -> Literal["ok", "error"]:
        """Return `error` where no score could be given."""
        return "error" if self.score is None else "ok"


class NodeQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What can be asked now: at which path, and how."""

    path: Path
    prompt: Prompt


class _StepRequest(msgspec.Struct):
    """What was told for one step."""

    prompt: Prompt | None = None  # that waits for its reply
    first: str = ""  # hash of the first prompt
    replies: list[Completion] = msgspec.field(default_factory=list)
    at: list[int] = msgspec.field(default_factory=list)  # places of replies given at the beginning
    value: str | None = None
    problem: str = ""
    failed: bool = False

    @property
    def is_open(self) -> bool:
        """Return whether a reply is still wanted."""
        return self.value is None and not self.failed and len(self.replies) <= RETRIES

    def hear(self, node: GraphNode, reply: Completion, at: int | None = None) -> None:
        """Take a reply; `at` is its place among those given at the beginning."""
        self.replies.append(reply)
        self.at += [] if at is None else [at]
        self.value, self.problem = read_verdict(node, reply.text)
        self.prompt = None


class _Outcome(msgspec.Struct, frozen=True):
    """What a branch came to: `score` None is an error once nothing is pending."""

    score: float | None
    pending: bool = False


class _Place(msgspec.Struct, frozen=True):
    """Where a node is passed: the path to it, what its ancestors stored, its branch."""

    path: Path
    stored: Mapping[str, str]
    branch: int

    def below(self, name: str) -> "_Place":
        return replace(self, path=(*self.path, name))


class Walk:
    """One evaluation of one answer.

    Parameters
    ----------
    graph : valid
    context : texts by input: `actual_output`, `expected_output`, `input`
    model : name of the judging model, for the trace
    replies : those that came to the first open question each, one after the other; what is left
        over is `unheard`
    hashing : whether the trace shall hold the hashes of prompts although nothing was asked here
    """

    def __init__(
        self,
        graph: Graph,
        context: Mapping[str, str],
        model: str = "",
        *,
        replies: Sequence[Completion] = (),
        hashing: bool = False,
    ) -> None:
        self._graph = graph
        self._waiting = deque(enumerate(replies))
        self._hashing = hashing
        self._context = {name: storable(text) for name, text in context.items()}
        self._model = model
        self._asked: dict[Path, _StepRequest] = {}
        self._is_json = graph.deterministic_format and is_json_alone(self._context["actual_output"])
        self._evaluate()

    def ready(self) -> list[NodeQuestion]:
        """Return the questions that wait for a reply, in the declared order; none when the result
        stands.
        """
        return [self._question(*opened) for opened in self._opened]

    def first(self) -> NodeQuestion | None:
        """Return the first of the questions that wait for a reply, or None."""
        return self._question(*self._opened[0]) if self._opened else None

    @property
    def unheard(self) -> int:
        """Return how many of the replies given at the beginning no question was open for."""
        return len(self._waiting)

    def heard(self, path: Path) -> list[int]:
        """Return which of the replies given at the beginning came to one step, oldest first."""
        request = self._asked.get(path)
        return [] if request is None else list(request.at)

    def tell(self, path: Path, reply: Completion) -> None:
        """Take a reply to a question that is ready."""
        self._asked[path].hear(self._graph.nodes[path[-1]], reply)
        self._evaluate()

    def fail(self, path: Path, reason: str) -> None:
        """Take that a question got no reply and will get none."""
        request = self._asked[path]
        request.failed, request.problem, request.prompt = True, reason, None
        self._evaluate()

    def result(self) -> GraphResult | None:
        """Return the result, or None while a question is open."""
        return None if self._opened else self._result

    def _evaluate(self) -> None:
        self._opened: list[tuple[_Place, GraphNode, _StepRequest]] = []
        self._trace: list[WalkStep] = []
        self._zero = False
        self._skipped = 0
        self.paths: list[Path] = []  # of each step of the trace
        roots = self._fan_out(self._graph.roots, _Place((), {}, 0))
        total = self._combined([outcome for _, outcome in roots])
        if self._zero and self._graph.short_circuit == "cancel":
            self._cancel()
            total = _Outcome(0.0)
        self._result = GraphResult(
            score=total.score,
            trace=tuple(self._trace),
            short_circuited=total.score is not None and self._zero,
            branches=tuple((name, outcome.score) for name, outcome in roots),
            skipped=self._skipped,
        )

    def _cancel(self) -> None:
        """Leave open questions open: a verdict of 0 decides already."""
        waiting = {place.path for place, _, _ in self._opened}
        self._opened = []
        self._trace = [
            replace(step, status="cancelled") if path in waiting else step
            for path, step in zip(self.paths, self._trace, strict=True)
        ]

    def _fan_out(self, names: Sequence[str], place: _Place) -> list[tuple[str, _Outcome]]:
        several = len(names) > 1
        return [
            (
                name,
                self._visit(replace(place.below(name), branch=i if several else place.branch)),
            )
            for i, name in enumerate(names)
        ]

    def _combined(self, outcomes: Sequence[_Outcome]) -> _Outcome:
        """Return the mean of branches: 0 where one is 0, and by the graph's policy where one has no
        score.
        """
        pending = any(outcome.pending for outcome in outcomes)
        scores = [outcome.score for outcome in outcomes if outcome.score is not None]
        errors = sum(outcome.score is None and not outcome.pending for outcome in outcomes)
        if errors and self._graph.on_error == "zero":
            self._zero = True
            scores.append(0.0)
        if 0.0 in scores:
            return _Outcome(0.0, pending)
        if pending:
            return _Outcome(None, pending=True)
        if not scores or (errors and self._graph.on_error == "fail"):
            return _Outcome(None)
        self._skipped += errors
        return _Outcome(math.fsum(scores) / len(scores))

    def _visit(self, place: _Place) -> _Outcome:
        node = self._graph.nodes[place.path[-1]]
        if node.type == "verdict":
            self._note(place, node, score=node.score)
            self._zero = self._zero or node.score == 0
            return _Outcome(node.score)
        if node.parser and self._graph.deterministic_format:
            value = "true" if self._is_json else "false"
            self._note(place, node, verdict=value, model="parser")
            return self._visit(place.below(node.branches[value]))
        request = self._asked.setdefault(place.path, _StepRequest())
        while self._waiting and request.is_open:
            at, reply = self._waiting.popleft()
            request.hear(node, reply, at)
        if request.value is None:
            return self._open(place, node, request)
        self._note_step(place, node, request)
        if node.type == "task":
            stored = {**place.stored, node.label: request.value}
            outcomes = self._fan_out(node.children, replace(place, stored=stored))
            return self._combined([outcome for _, outcome in outcomes])
        return self._visit(place.below(node.branches[request.value]))

    def _open(self, place: _Place, node: GraphNode, request: _StepRequest) -> _Outcome:
        """Ask, or ask again; after the last retry the branch has no score."""
        if not request.is_open:
            status: Status = "error" if request.failed else "invalid"
            self._note_step(place, node, request, status=status, reason=request.problem)
            return _Outcome(None)
        self._note_step(place, node, request)
        self._opened.append((place, node, request))
        return _Outcome(None, pending=True)

    def _question(self, place: _Place, node: GraphNode, request: _StepRequest) -> NodeQuestion:
        """Return an open question with its prompt, which is made once."""
        if request.prompt is None:
            request.prompt = self._prompt(place, node, request.problem)
            request.first = request.first or sha256_hex(request.prompt.asked)
        return NodeQuestion(path=place.path, prompt=request.prompt)

    def _note_step(
        self, place: _Place, node: GraphNode, request: _StepRequest, **more: Any
    ) -> None:
        if self._hashing and not request.first:
            request.first = sha256_hex(self._prompt(place, node, "").asked)
        self._note(
            place,
            node,
            prompt_hash=request.first,
            model=self._model,
            reply=request.replies[-1].text if request.replies else "",
            verdict=request.value,
            attempts=len(request.replies) + request.failed,
            seconds=math.fsum(reply.seconds for reply in request.replies),
            **more,
        )

    def _note(self, place: _Place, node: GraphNode, **fields: Any) -> None:
        parent = place.path[-2] if len(place.path) > 1 else None
        step = WalkStep(node=node.id, type=node.type, parent=parent, branch=place.branch, **fields)
        self._trace.append(step)
        self.paths.append(place.path)

    def _prompt(self, place: _Place, node: GraphNode, problem: str) -> Prompt:
        documents = [
            (name, delimit(self._context.get(name, ""), name.replace("_", " ")))
            for name in node.inputs
        ]
        reports = [(label, delimit(text, label)) for label, text in place.stored.items()]
        return TEXT.prompt(
            "/".join(place.path),
            "en",
            schema=None if node.type == "task" else _schema(node),
            kind=node.type,
            text=self._graph.text(node),
            documents=documents,
            reports=reports,
            options=list(node.branches),
            problem=problem,
        )


def read_verdict(node: GraphNode, text: str) -> tuple[str | None, str]:
    """Return what a reply says to a node's question, or None and what is wrong with it.

    Examples
    --------
    >>> node = GraphNode(id="a", type="binary", branches={"true": "b", "false": "c"})
    >>> read_verdict(node, '{"verdict": "Yes", "reason": "it is"}')
    ('true', '')
    """
    return _read(node.type, tuple(node.branches), text)


@lru_cache(maxsize=2048)  # a judge that is asked step by step reads earlier replies again and again
def _read(kind: str, options: tuple[str, ...], text: str) -> tuple[str | None, str]:
    if kind == "task":
        answer_text = storable(strip_thoughts(text)[0].strip())
        return (answer_text, "") if answer_text else (None, "it was blank")
    verdicts = [json_object.value["verdict"] for json_object in find_objects(text, "verdict")]
    if not verdicts:
        return None, 'it held no JSON object with the key "verdict"'
    read = {_option(kind, options, value) for value in verdicts}
    if len(read) > 1:
        return None, "it held two verdicts"
    [value] = read
    if value is None:
        return None, f"its verdict is none of {', '.join(options)}"
    return value, ""


def _option(kind: str, options: Sequence[str], value: Any) -> str | None:
    if kind == "binary":
        word = ("true" if value else "false") if isinstance(value, bool) else value
        return _WORDS.get(word.strip().casefold()) if isinstance(word, str) else None
    if not isinstance(value, str):
        return None
    return next((o for o in options if option_key(o) == option_key(value)), None)


def _schema(node: GraphNode) -> JsonSchema:
    binary = node.type == "binary"
    verdict: JsonSchema = {"type": "boolean"} if binary else enum_schema(list(node.branches))
    return object_schema({"reason": STRING, "verdict": verdict})
