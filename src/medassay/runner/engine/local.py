"""The engine that needs nothing: one process, one event loop, as many askers as each entry
allows.
"""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from medassay.core.records.model import ModelSpec
from medassay.runner.ask import Asker, until_sure
from medassay.runner.engine.stage import R, Stage, StageJob, T
from medassay.runner.event_loop import run_async
from medassay.storage.journal import Journal, Writing

_SYNC_EVERY = 1.0  # seconds
_LOOK_EVERY = 0.1  # seconds


class LocalEngine:
    """Does the units of a stage in this process."""

    elsewhere = False

    def work(self, job: StageJob) -> None:
        """Ask until every unit is done, failed or out of budget, or until a stop is asked for."""
        asker, stop = job.asker, job.stop

        def work() -> Coroutine[Any, Any, None]:
            return asker.during(
                _work(job),
                stopping=lambda: stop.soon,
                sure=lambda: until_sure(job.in_doubt, lambda: stop.soon),
            )

        run_async(work, stop.ask)

    def spread(self, task: Callable[[T], R], parts: Iterable[T]) -> Iterator[R]:
        """Yield what a task makes of each part, in order."""
        return map(task, parts)


async def _work(job: StageJob) -> None:
    stage, journal = job.stage, job.journal
    try:
        async with asking(job.asker, journal) as group:
            for name, spec in stage.specs.items():
                waiting = waiting_units(stage, journal, name)
                for _ in range(spec.concurrency):
                    group.create_task(_ask(job, spec, waiting))
    finally:
        await stage.close()


async def _ask(job: StageJob, spec: ModelSpec, units: Iterator[int]) -> None:
    stop, asker = job.stop, job.asker
    for done, unit in enumerate(units, 1):
        while job.in_doubt() and not stop.soon:
            await asyncio.sleep(0.1)
        if stop.soon or spec.id in asker.tally.unpaid:
            return
        await job.stage.do(spec, unit)
        if done % 64 == 0:  # replays never wait; let others have their turn
            await asyncio.sleep(0)


def waiting_units(stage: Stage, journal: Journal, model: str) -> Iterator[int]:
    """Yield the units of a model that have left not all of their records yet."""
    for unit in stage.units(model):
        if not all(map(journal.is_done, stage.records(unit))):
            yield unit


class TaskGroup:
    """Tasks that ask; once a stop is asked for, each ends with its request, at the latest when the
    time of grace is over.
    """

    def __init__(self, asker: Asker, group: asyncio.TaskGroup) -> None:
        self._asker, self._group = asker, group
        self._tasks: list[asyncio.Task[None]] = []

    def create_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin a task."""
        self._tasks.append(self._group.create_task(work))

    async def end_on_stop(self) -> None:
        """Wait for a stop, then for the requests under way.

        Then end whoever still waits for a turn, a pause or a reply.
        """
        while not self._asker.stopping():
            await asyncio.sleep(_LOOK_EVERY)
        await out_of_grace(self._asker)
        for task in self._tasks:
            task.cancel()


async def out_of_grace(asker: Asker) -> None:
    """Return once no request is under way, or the time of grace is over.

    Replies that came in are kept by then.
    """
    end = time.monotonic() + asker.grace
    while asker.under_way and time.monotonic() < end:
        await asyncio.sleep(_LOOK_EVERY)
    await asyncio.sleep(_LOOK_EVERY)  # whoever has the last replies writes them down


@asynccontextmanager
async def asking(asker: Asker, *journals: Writing) -> AsyncIterator[TaskGroup]:
    """Yield a group for the tasks of a stage.

    Journals reach the disk every second and at the end.
    """
    syncing = asyncio.create_task(_sync(journals))
    gc.freeze()  # what is loaded by now stays; the collector need not look at it again
    ending: asyncio.Task[None] | None = None
    try:
        async with asyncio.TaskGroup() as tasks:
            group = TaskGroup(asker, tasks)
            ending = asyncio.create_task(group.end_on_stop())
            yield group
    except BaseExceptionGroup as many:  # every asker meets the same full disk
        raise many.exceptions[0] from None
    finally:
        gc.unfreeze()
        syncing.cancel()
        if ending is not None:
            ending.cancel()
        for journal in journals:
            journal.sync()


async def _sync(journals: tuple[Writing, ...]) -> None:
    while True:
        await asyncio.sleep(_SYNC_EVERY)
        for journal in journals:
            await asyncio.to_thread(journal.sync)
