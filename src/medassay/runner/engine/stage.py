"""What an engine does: a stage that asks, as numbered units that may be done in any order and
anywhere.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from medassay.core.records.model import ModelSpec
from medassay.runner.ask import Asker
from medassay.runner.progress import Progress, Stop
from medassay.storage.journal import Journal, NumberOf, RecordWriter

T = TypeVar("T")
R = TypeVar("R")


class Stage(Protocol):
    """A stage of a run: who is asked, in which units, and what a unit leaves in the journal."""

    @property
    def specs(self) -> Mapping[str, ModelSpec]:
        """Return who is asked."""

    def units(self, model: str) -> Iterator[int]:
        """Yield the numbers of a model's units, done or not."""

    def records(self, unit: int) -> tuple[int, ...]:
        """Return the numbers of the records that a unit leaves in the journal."""

    def length(self, unit: int) -> int:
        """Return how long what a unit sends is, roughly: like lengths are batched together."""

    async def do(self, spec: ModelSpec, unit: int) -> None:
        """Ask what a unit asks and journal it; a failure is journalled, too."""

    async def close(self) -> None:
        """Free what the stage opened."""


class StageSpec(Protocol):
    """A stage that can be sent to another process, where it is opened beside the files of the run.

    `majority` is what the baseline of that name answers, by the letters of an item.
    """

    @property
    def specs(self) -> Mapping[str, ModelSpec]:
        """Return who is asked."""

    @property
    def secret_names(self) -> Sequence[str]:
        """Return the names of secrets that the stage needs besides those of its models."""

    @property
    def majority(self) -> Mapping[str, str]:
        """Return what baselines know of the whole bank."""

    def open(
        self,
        run: Path,
        asker: Asker,
        journal: RecordWriter,
        progress: Progress,
        secrets: Mapping[str, str],
    ) -> Stage:
        """Return the stage; `secrets` are those that its tools name."""


class StageJob(msgspec.Struct, frozen=True):
    """One pass over a stage: the stage here, the same to be sent away, and what it fills and obeys.

    Parameters
    ----------
    run : the folder of the run
    number_of : gives the number of a journalled record, None if it is not wanted
    in_doubt : whether somebody else may have taken the run over, so that no further call may begin
    """

    stage: Stage
    stage_spec: StageSpec
    journal: Journal
    asker: Asker
    progress: Progress
    stop: Stop
    run: Path
    number_of: NumberOf
    in_doubt: Callable[[], bool] = lambda: False


class Engine(Protocol):
    """Does the units of a pass that have not left all their records yet."""

    elsewhere: bool  # whether it works in other processes, which read the files of the run

    def work(self, job: StageJob) -> None:
        """Ask until every unit is done, failed or out of budget, or until a stop is asked for."""

    def spread(self, task: Callable[[T], R], parts: Iterable[T]) -> Iterator[R]:
        """Yield what a task makes of each part, in order: work that asks nobody, and may be done
        again.

        Parameters
        ----------
        task : can be sent to another process, with all that it needs
        """
