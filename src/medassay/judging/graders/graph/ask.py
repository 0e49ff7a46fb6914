"""Asking the questions of a graph: one after the other, or all that are ready at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from medassay.core.records.completion import Completion
from medassay.core.records.prompt import Prompt
from medassay.errors import InputError, ModelError
from medassay.judging.graders.graph.fault import INPUTS
from medassay.judging.graders.graph.graph import Graph
from medassay.judging.graders.graph.walk import GraphResult, Path, Walk

Ask = Callable[[Prompt], Completion]
AskAsync = Callable[[Prompt], Awaitable[Completion]]


def run(graph: Graph, context: Mapping[str, str], judge: Ask, *, model: str = "") -> GraphResult:
    """Return what a graph says of an answer, asking one question after the other.

    Parameters
    ----------
    graph : from `load` or `published`
    context : the texts that the graph's nodes may see: `actual_output`, `expected_output`, `input`
    judge : answers a prompt; a `ModelError` from it is an error of that node, by the graph's policy
    model : name of the judging model, for the trace

    Raises
    ------
    InputError
        When a text that the graph needs is not in the context.
    """
    walk = _begun(graph, context, model)
    while questions := walk.ready():
        question = questions[0]
        try:
            reply = judge(question.prompt)
        except ModelError as error:
            walk.fail(question.path, str(error))
        else:
            walk.tell(question.path, reply)
    return _ended(walk)


async def run_async(
    graph: Graph, context: Mapping[str, str], judge: AskAsync, *, model: str = ""
) -> GraphResult:
    """Return the score that `run` returns, with the questions of all branches asked at the same
    time.

    The trace is the same too, unless the graph says `cancel`: then questions still open when a 0
    decides are cancelled, and which these are depends on who answers first.
    """
    walk = _begun(graph, context, model)
    tasks: dict[Path, asyncio.Task[Completion]] = {}
    try:
        while questions := walk.ready():
            for question in questions:
                if question.path not in tasks:
                    tasks[question.path] = asyncio.ensure_future(_asking(judge, question.prompt))
            await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_COMPLETED)
            for path in [path for path, task in tasks.items() if task.done()]:
                task = tasks.pop(path)
                try:
                    walk.tell(path, task.result())
                except ModelError as error:
                    walk.fail(path, str(error))
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
    return _ended(walk)


async def _asking(judge: AskAsync, prompt: Prompt) -> Completion:
    return await judge(prompt)


def _begun(graph: Graph, context: Mapping[str, str], model: str) -> Walk:
    needed = {name for node in graph.nodes.values() for name in node.inputs}
    if graph.deterministic_format:
        needed.add("actual_output")
    if missing := [n for n in INPUTS if n in needed and not isinstance(context.get(n), str)]:
        raise InputError(f"graph {graph.name}: needs the text '{missing[0]}'; none was given")
    return Walk(graph, context, model)


def _ended(walk: Walk) -> GraphResult:
    result = walk.result()
    assert result is not None  # nothing is ready any more
    return result
