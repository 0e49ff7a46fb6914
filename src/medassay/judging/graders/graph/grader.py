"""Graphs as the judge of a run: the first one's score counts, the others stand beside it.

What is asked next follows from the replies so far, so that a run resumes and a reader can follow
every step.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypedDict

import msgspec
from msgspec import UNSET, UnsetType

from medassay.core.records.completion import Completion
from medassay.core.records.health_record import reference_text, required_keys
from medassay.core.records.item import Item
from medassay.core.records.prompt import Prompt
from medassay.core.records.target import Facts, Record
from medassay.core.records.verdict import Case, Verdict, VerdictBody
from medassay.core.revision import revision_id
from medassay.core.scale import Scale
from medassay.judging.graders.graph.graph import Graph, GraphNode
from medassay.judging.graders.graph.walk import TEXT, Status, Walk

REQUIRED_KEYS = (  # parameter of graphs on records: which top-level keys were asked for
    "required_keys"
)


class GraphParts(TypedDict):
    """The score of one answer by a graph, and that of each branch."""

    score: float | None
    branches: dict[str, float | None]


class GraphStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a graph as a verdict keeps it: replies, seconds and judge stand in the verdict
    once, and the text of a task is its reply.

    `replies` are places among those of the verdict; `by` says that our own parser decided.
    """

    node: str
    type: str
    parent: str | None
    branch: int
    prompt_hash: str
    verdict: str | UnsetType | None = UNSET
    attempts: int
    score: float | None
    status: Status
    reason: str
    by: str | UnsetType = UNSET
    replies: list[int]


class GraphVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one graph, as in `GraphResult`."""

    graph: str
    score: float | None
    short_circuited: bool
    branches: dict[str, float | None]
    skipped: int
    trace: list[GraphStep]


class GraphsBody(VerdictBody, frozen=True, kw_only=True):
    """The results of all graphs; that of the first one counts."""

    graphs: list[GraphVerdict]


@dataclass(frozen=True, kw_only=True)
class GraphGrader:
    """Judges one answer at a time, each graph after the other."""

    name: ClassVar[str] = "graph"
    body_type: ClassVar[type[VerdictBody]] = GraphsBody
    revision: ClassVar[int] = 1
    graphs: tuple[Graph, ...]
    batch: int = 1
    alternatives: int = 0
    spot_check: None = None
    scale: Scale = Scale()

    @property
    def id(self) -> str:
        """Return `name/revision`."""
        return revision_id(self.name, self.revision)

    @property
    def prompts(self) -> tuple[str, ...]:
        """Return the ids of the texts that are asked."""
        return (TEXT.id, *(graph.id for graph in self.graphs))

    @property
    def texts(self) -> tuple[bytes, ...]:
        """Return all that makes two such graders differ."""
        return (TEXT.texts, *(graph.id.encode() for graph in self.graphs))

    def step(self, cases: Sequence[Case], replies: Sequence[Completion]) -> Prompt | list[Verdict]:
        """Return the next question, or the verdict when every graph has its result."""
        [case] = cases
        replies_left = list(replies)
        results: list[GraphVerdict] = []
        for graph in self.graphs:
            walk = _begun(graph, case, replies_left)
            if (question := walk.first()) is not None:
                return question.prompt
            results.append(
                _graph_verdict(graph, case, replies_left, at=len(replies) - len(replies_left))
            )
            replies_left = replies_left[len(replies_left) - walk.unheard :]
        body = GraphsBody(graphs=results)
        if replies_left:
            return [Verdict(valid=False, reason="more replies than questions", body=body)]
        if results[0].score is None:
            failed = next(step for step in results[0].trace if step.status != "ok")
            reason = f"no usable reply at node '{failed.node}': {failed.reason}"
            return [Verdict(valid=False, reason=reason, body=body)]
        return [Verdict(valid=True, body=body)]

    def opening(self, cases: Sequence[Case]) -> list[Prompt]:
        """Return what is asked if every question gets its first option, and every task a text as
        long as the answer.
        """
        [case] = cases
        return [prompt for graph in self.graphs for prompt in _rehearsed(graph, case)]

    def score(self, item: Item, verdict: Verdict) -> float | None:
        """Return the score of the first graph, in [0, 1]; None unless the verdict is valid."""
        return verdict.body_as(GraphsBody).graphs[0].score if verdict.valid else None

    def parts(self, item: Item, verdict: Verdict) -> dict[str, dict[str, GraphParts]]:
        """Return the score and the branches of every graph, by its name."""
        return {
            "graphs": {
                result.graph: {"score": result.score, "branches": result.branches}
                for result in verdict.body_as(GraphsBody).graphs
            }
        }

    def fits(self, case: Case, verdict: Verdict) -> bool:
        """Return whether a verdict that came with an import speaks of these graphs."""
        names = [result.graph for result in verdict.body_as(GraphsBody).graphs]
        return names == [graph.name for graph in self.graphs]


def context_of(case: Case) -> dict[str, str]:
    """Return the texts that a graph may see of an answer: the answer, the reference, the document
    asked about.
    """
    item = case.item
    if isinstance(item.target, Record):
        expected = reference_text(item.target.record)
    else:
        facts = item.target.facts if isinstance(item.target, Facts) else ()
        listed = "\n".join(f"- {fact.text}" for fact in facts)
        expected = "\n\n".join(filter(None, (item.reference, listed)))
    question = "\n\n".join(filter(None, (item.context, item.question)))
    return {"actual_output": case.text, "expected_output": expected, "input": question}


def _begun(
    graph: Graph, case: Case, replies: Sequence[Completion], *, hashing: bool = False
) -> Walk:
    if REQUIRED_KEYS in graph.parameters and isinstance(case.item.target, Record):
        graph = graph.with_parameters(**{REQUIRED_KEYS: required_keys(case.template)})
    return Walk(graph, context_of(case), replies=replies, hashing=hashing)


def _graph_verdict(
    graph: Graph, case: Case, replies: Sequence[Completion], *, at: int
) -> GraphVerdict:
    """Return a result as a verdict keeps it.

    Of replies the places among all of the verdict, `at` before these.
    """
    walk = _begun(graph, case, replies, hashing=True)
    result = walk.result()
    assert result is not None  # nothing is open any more
    return GraphVerdict(
        graph=graph.name,
        score=result.score,
        short_circuited=result.short_circuited,
        branches=dict(result.branches),
        skipped=result.skipped,
        trace=[
            GraphStep(
                node=step.node,
                type=step.type,
                parent=step.parent,
                branch=step.branch,
                prompt_hash=step.prompt_hash,
                verdict=UNSET if step.type == "task" else step.verdict,
                attempts=step.attempts,
                score=step.score,
                status=step.status,
                reason=step.reason,
                by="parser" if step.model == "parser" else UNSET,
                replies=[at + place for place in walk.heard(path)],
            )
            for step, path in zip(result.trace, walk.paths, strict=True)
        ],
    )


def _rehearsed(graph: Graph, case: Case) -> Iterator[Prompt]:
    walk = _begun(graph, case, ())
    while (question := walk.first()) is not None:
        yield question.prompt
        walk.tell(question.path, Completion(text=_stand_in(graph.nodes[question.path[-1]], case)))


def _stand_in(node: GraphNode, case: Case) -> str:
    if node.type == "task":
        return case.text.strip() or "–"
    return json.dumps({"verdict": next(iter(node.branches)), "reason": ""})
