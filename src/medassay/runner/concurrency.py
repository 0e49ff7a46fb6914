"""Asking a model about each of some subjects, as many at once as its entry allows, with progress
and a way to stop.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from medassay.core.records.model import ModelSpec
from medassay.errors import Interrupted, ModelError, NotAsked, OverBudget
from medassay.runner.ask import Asker
from medassay.runner.engine.local import asking
from medassay.runner.event_loop import run_async
from medassay.runner.progress import ProgressFactory, Stop, watching


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
    """Do something that asks a model for every subject.

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

    async def work(advance: Any) -> None:
        nonlocal done
        for subject in waiting:
            if stop.soon or asker.tally.over_budget:
                return
            try:
                await do(subject)
                advance(spec.id, what, "answered")
            except ModelError as error:
                if isinstance(error, OverBudget) or (isinstance(error, NotAsked) and stop.soon):
                    return
                failed[subject] = str(error)
                advance(spec.id, what, "failed")
            done += 1

    async def all_of(advance: Any) -> None:
        try:
            async with asking(asker) as group:
                for _ in range(min(spec.concurrency, len(subjects))):
                    group.create_task(work(advance))
        finally:
            if close is not None:
                await close()

    with watching(watch, what, sizes, Counter()) as progress:
        run_async(
            lambda: asker.during(all_of(progress.advance), stopping=lambda: stop.soon), stop.ask
        )
    if stop.soon and done < len(subjects):
        raise Interrupted(
            f"stopped: {done} of {len(subjects)} {what} are done and kept; the same command resumes"
        )
    return failed
