"""A judge as a graph of small questions: each reply decides which question comes next, verdicts are
scores.

A graph is data (`graph`), what follows from replies is computed without asking anybody (`walk`),
and asking is apart from both (`ask`). So one after the other, at the same time or from stored
replies, the score is the same.

Source: specification of the judge DAG.
"""

from medassay.judging.graders.graph.ask import run, run_async
from medassay.judging.graders.graph.graph import Graph, GraphNode, load, published
from medassay.judging.graders.graph.walk import GraphResult, WalkStep

__all__ = [
    "Graph",
    "GraphNode",
    "GraphResult",
    "WalkStep",
    "load",
    "published",
    "run",
    "run_async",
]
