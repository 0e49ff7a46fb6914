"""The engine that needs nothing: one process, one event loop, as many askers as each entry
allows.
"""

from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial

from medassay.core.records.model import ModelSpec
from medassay.runner.ask import wait_while_in_doubt
from medassay.runner.concurrency import ask_in_turn, asking, each
from medassay.runner.engine.stage import R, Stage, StageJob, T
from medassay.runner.event_loop import run_async
from medassay.storage.journal import Journal


class LocalEngine:
    """Does the units of a stage in this process."""

    elsewhere = False

    def work(self, job: StageJob) -> None:
        """Ask until every unit is done, failed or out of budget, or until a stop is asked for."""
        asker, stop = job.asker, job.stop

        def work() -> Coroutine[None, None, None]:
            return asker.during(
                _work(job),
                stopping=lambda: stop.soon,
                before_call=lambda: wait_while_in_doubt(job.in_doubt, lambda: stop.soon),
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
                await group.create_tasks(spec.concurrency, partial(_ask, job, spec, waiting))
    finally:
        await stage.close()


def _ask(job: StageJob, spec: ModelSpec, units: Iterator[int]) -> Coroutine[None, None, None]:
    """Return one of the tasks that ask a model about units which they share."""
    return ask_in_turn(
        each(units),
        lambda unit: job.stage.do(spec, unit),
        stopped=lambda: job.stop.soon or spec.id in job.asker.tally.models_over_budget,
        in_doubt=job.in_doubt,
    )


def waiting_units(stage: Stage, journal: Journal, model: str) -> Iterator[int]:
    """Yield the units of a model that have left not all of their records yet."""
    for unit in stage.units(model):
        if not all(map(journal.is_done, stage.records(unit))):
            yield unit
