"""The engine that needs nothing: one process, one event loop, as many askers as each entry allows."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager

from medassay.core.model import ModelSpec
from medassay.runner.asking import until_sure
from medassay.runner.bridge import run_async
from medassay.runner.engine.stage import Pass, R, Stage, T
from medassay.storage.journal import Journal, Writing

_SYNC_EVERY = 1.0  # seconds


class Local:
    """Does the units of a stage in this process."""

    elsewhere = False

    def work(self, todo: Pass) -> None:
        """Ask until every unit is done, failed or out of budget, or until a stop is asked for."""
        todo.asker.sure = lambda: until_sure(todo.in_doubt, lambda: todo.stop.soon)
        run_async(lambda: todo.asker.during(_work(todo)), todo.stop.ask)

    def spread(self, task: Callable[[T], R], parts: Iterable[T]) -> Iterator[R]:
        """Yield what a task makes of each part, in order."""
        return map(task, parts)


async def _work(todo: Pass) -> None:
    stage, journal = todo.stage, todo.journal
    try:
        async with asking(journal) as group:
            for name, spec in stage.specs.items():
                waiting = waiting_units(stage, journal, name)
                for _ in range(spec.concurrency):
                    group.create_task(_ask(todo, spec, waiting))
    finally:
        await stage.close()


async def _ask(todo: Pass, spec: ModelSpec, units: Iterator[int]) -> None:
    stop, asker = todo.stop, todo.asker
    for done, unit in enumerate(units, 1):
        while todo.in_doubt() and not stop.soon:
            await asyncio.sleep(0.1)
        if stop.soon or asker.tally.over_budget:
            return
        await todo.stage.do(spec, unit)
        if done % 64 == 0:  # replays never wait; let others have their turn
            await asyncio.sleep(0)


def waiting_units(stage: Stage, journal: Journal, model: str) -> Iterator[int]:
    """Yield the units of a model that have left not all of their records yet."""
    for unit in stage.units(model):
        if not all(map(journal.is_done, stage.records(unit))):
            yield unit


@asynccontextmanager
async def asking(*journals: Writing) -> AsyncIterator[asyncio.TaskGroup]:
    """Yield a group for the askers of a stage; journals reach the disk every second and at the end."""
    syncing = asyncio.create_task(_sync(journals))
    gc.freeze()  # what is loaded by now stays; the collector need not look at it again
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as many:  # every asker meets the same full disk
        raise many.exceptions[0] from None
    finally:
        gc.unfreeze()
        syncing.cancel()
        for journal in journals:
            journal.sync()


async def _sync(journals: tuple[Writing, ...]) -> None:
    while True:
        await asyncio.sleep(_SYNC_EVERY)
        for journal in journals:
            await asyncio.to_thread(journal.sync)
