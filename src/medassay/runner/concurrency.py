"""Asking about many subjects at once: the loop that each task runs, a group of tasks that obeys a
stop, and both together where there is no stage.
"""

import asyncio
import gc
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from medassay.core.records.model import ModelSpec
from medassay.errors import ModelError, NotAsked, OverBudget
from medassay.runner.ask import Asker
from medassay.runner.event_loop import run_async
from medassay.runner.progress import ProgressFactory, Stop, raise_if_interrupted, watching
from medassay.storage.journal import RecordWriter

U = TypeVar("U")
_SYNC_EVERY = 1.0  # seconds
_LOOK_EVERY = 0.1  # seconds
# To connect, a task waits for the next turn of the event loop. If all 256 tasks of a model were
# created in one turn, the first request would be sent when the last is prepared, 80 ms later.
_TASKS_PER_TURN = 8
_YIELD_EVERY = 64  # units; replays never wait, so other tasks get their turn here
Advance = Callable[[str, str, str], None]  # of a progress: model, what was asked, outcome


async def ask_in_turn(
    units: AsyncIterator[U],
    do: Callable[[U], Awaitable[None]],
    *,
    stopped: Callable[[], bool],
    in_doubt: Callable[[], bool] = lambda: False,
) -> None:
    """Ask about one unit after the other, until there are no more or `stopped` says so.

    Parameters
    ----------
    in_doubt : whether somebody else may have taken the work over: nothing is begun meanwhile
    """
    done = 0
    async for unit in units:
        while in_doubt() and not stopped():
            await asyncio.sleep(_LOOK_EVERY)
        if stopped():
            return
        await do(unit)
        done += 1
        if done % _YIELD_EVERY == 0:
            await asyncio.sleep(0)


async def each(units: Iterable[U]) -> AsyncIterator[U]:
    """Yield units that are there without waiting; several tasks may share one iterator."""
    for unit in units:
        yield unit


class TaskGroup:
    """Tasks that ask; once a stop is asked for, each ends with its request, at the latest when the
    time of grace is over.
    """

    def __init__(self, asker: Asker, group: asyncio.TaskGroup) -> None:
        self._asker, self._group = asker, group
        self._tasks: list[asyncio.Task[None]] = []

    async def create_tasks(
        self, number: int, make: Callable[[], Coroutine[None, None, None]]
    ) -> None:
        """Begin so many tasks, a few at a time."""
        for n_created in range(1, number + 1):
            self._tasks.append(self._group.create_task(make()))
            if n_created % _TASKS_PER_TURN == 0:
                await asyncio.sleep(0)

    async def end_on_stop(self) -> None:
        """Wait for a stop, then for the requests under way.

        Then end whoever still waits for a turn, a pause or a reply.
        """
        while not self._asker.stopping():
            await asyncio.sleep(_LOOK_EVERY)
        await wait_for_grace_period(self._asker)
        for task in self._tasks:
            task.cancel()


async def wait_for_grace_period(asker: Asker) -> None:
    """Return once no request is under way, or the time of grace is over.

    Replies that came in are kept by then.
    """
    end = time.monotonic() + asker.grace
    while asker.under_way and time.monotonic() < end:
        await asyncio.sleep(_LOOK_EVERY)
    await asyncio.sleep(_LOOK_EVERY)  # whoever has the last replies writes them down


@asynccontextmanager
async def asking(asker: Asker, *journals: RecordWriter) -> AsyncIterator[TaskGroup]:
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
    except BaseExceptionGroup as many:  # all tasks fail for one reason, a full disk say
        raise many.exceptions[0] from None
    finally:
        gc.unfreeze()
        syncing.cancel()
        if ending is not None:
            ending.cancel()
        for journal in journals:
            journal.sync()


async def _sync(journals: tuple[RecordWriter, ...]) -> None:
    while True:
        await asyncio.sleep(_SYNC_EVERY)
        for journal in journals:
            await asyncio.to_thread(journal.sync)


def map_concurrently(
    what: str,
    subjects: Sequence[str],
    do: Callable[[str], Awaitable[None]],
    *,
    asker: Asker,
    spec: ModelSpec,
    watch: ProgressFactory | None,
    close: Callable[[], Awaitable[None]] | None = None,
) -> dict[str, str]:
    """Call `do`, which asks a model, for every subject, several at once.

    Return those whose asking failed, with the reason.

    Parameters
    ----------
    what : the plural of what is made, for progress
    close : closes what was opened besides the model, within the same event loop

    Raises
    ------
    Interrupted
        When the user stopped; replies that were under way are kept.
    """
    sizes = Counter((spec.id, what) for _ in subjects)
    waiting = iter(subjects)
    failed: dict[str, str] = {}
    done = 0
    stop = Stop()

    async def ask_one(subject: str, advance: Advance) -> None:
        nonlocal done
        try:
            await do(subject)
            advance(spec.id, what, "answered")
        except ModelError as error:
            if isinstance(error, OverBudget) or (isinstance(error, NotAsked) and stop.soon):
                return  # every task sees the stop, or the end of the budget, before its next
            failed[subject] = str(error)
            advance(spec.id, what, "failed")
        done += 1

    async def ask_all(advance: Advance) -> None:
        try:
            async with asking(asker) as group:
                await group.create_tasks(
                    min(spec.concurrency, len(subjects)),
                    lambda: ask_in_turn(
                        each(waiting),
                        lambda subject: ask_one(subject, advance),
                        stopped=lambda: stop.soon or bool(asker.tally.over_budget),
                    ),
                )
        finally:
            if close is not None:
                await close()

    with watching(watch, what, sizes, Counter()) as progress:
        run_async(
            lambda: asker.during(ask_all(progress.advance), stopping=lambda: stop.soon), stop.ask
        )
    raise_if_interrupted(stop, f"{what} are done", done, len(subjects))
    return failed
