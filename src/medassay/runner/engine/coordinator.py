"""The coordinator: cuts a stage into shards, leases them to workers, and keeps the one view of
progress, limits and budget.

It speaks with every worker once a beat. A worker that is silent is given up: once its lease is
dead, what it journalled is read from its segment, and the rest of its shards goes back to be leased
anew.
"""

import asyncio
import contextlib
import time
from array import array
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Protocol

import msgspec

from medassay.core.amount import Amount
from medassay.core.log import log
from medassay.errors import IncompleteError
from medassay.runner.ask import Asker
from medassay.runner.budget import SPENT
from medassay.runner.engine.lease import DEAD_AFTER, LeaseWatcher
from medassay.runner.engine.local import waiting_units
from medassay.runner.engine.orders import Shard, WorkMessage, WorkReport
from medassay.runner.engine.shares import BudgetShare, EndpointLimits
from medassay.runner.engine.stage import Stage
from medassay.runner.progress import Progress, Stop
from medassay.storage.journal import Journal, NumberOf

_FEWEST = 16  # units of a shard near the end
_MOST_DEATHS = 20
_SILENT = 3  # deaths of a lease, after which a worker that says nothing is lost
_PROGRESS_INTERVAL = 30.0  # seconds
NO_WORKER_ARRIVED = 900.0  # seconds: clusters that grow by themselves take minutes


class LostError(Exception):
    """Say that a worker is no longer there."""


class WorkerHandle(Protocol):
    """A worker as its coordinator sees it."""

    name: str
    models: frozenset[str]

    def ready(self) -> Awaitable[None]:
        """Return when the worker has opened everything."""

    def beat(self, orders: WorkMessage) -> Awaitable[WorkReport]:
        """Hand over orders, return the report; raise `LostError` if the worker is gone."""

    def leave(self) -> Awaitable[WorkReport]:
        """Let the worker finish what is under way, and end it."""

    def end(self) -> None:
        """End the worker's process without a word."""


class WorkerPool(Protocol):
    """Where workers come from."""

    def start(self) -> Sequence[WorkerHandle]:
        """Return the workers, which may not be ready yet."""

    def replace(self, worker: WorkerHandle) -> WorkerHandle:
        """Return a new worker in the place of one that is lost."""


class _State(msgspec.Struct):
    """What the coordinator knows of one worker."""

    shards: dict[int, Shard] = msgspec.field(default_factory=dict)
    waiting: dict[str, int] = msgspec.field(default_factory=dict)  # model → units not begun
    read_to: int = 0  # bytes of its segment that are noted
    did: Counter[str] = msgspec.field(default_factory=Counter)  # model → records in the last beat
    busy: int = 0
    under_way: int = 0  # requests that are booked, and not settled yet
    need: Amount | None = None


class Coordinator:
    """One pass over a stage with many workers.

    Parameters
    ----------
    units : model → how many units wait to be done
    """

    def __init__(  # noqa: PLR0913 -- each is a part of the run
        self,
        stage: Stage,
        journal: Journal,
        asker: Asker,
        progress: Progress,
        stop: Stop,
        *,
        number_of: NumberOf,
        units: Mapping[str, int],
        leases: LeaseWatcher,
        shard: int,
        fetch: Callable[[str], None] = lambda worker: None,
    ) -> None:
        self._stage, self._journal, self._asker = stage, journal, asker
        self._progress, self._stop, self._number_of = progress, stop, number_of
        self._leases, self._shard = leases, shard
        # What other machines journalled, and what a lost worker heard, to this one.
        self._fetch = fetch
        self._budget_shares = BudgetShare(asker.budget.budget, asker.budget.booked)
        self._limits = EndpointLimits(stage.specs)
        self._waiting = {n: waiting_units(stage, journal, n) for n in stage.specs}
        self._unfinished = dict(units)
        self._again: dict[str, deque[int]] = {n: deque() for n in stage.specs}
        self._states: dict[str, _State] = {}
        self._over = asyncio.Event()
        self._next = 0
        self._broken: Exception | None = None
        self._cpu: dict[str, float] = {}
        self._gone: list[str] = []  # workers that were lost
        self._fruitful: set[str] = set()  # workers of which something was journalled

    async def run(self, pool: WorkerPool) -> None:
        """Lease until every unit is done, failed or out of budget, or until a stop is asked for."""
        while True:
            self._over.clear()
            leading = [asyncio.create_task(self._lead(worker, pool)) for worker in pool.start()]
            leading.append(asyncio.create_task(self._guard()))
            try:
                await asyncio.wait(leading, return_when=asyncio.FIRST_EXCEPTION)
                self._over.set()  # where one failed for good, the others finish what is under way
                results = await asyncio.gather(*leading, return_exceptions=True)
            finally:
                for task in leading:
                    task.cancel()
                self._asker.budget.booked = self._budget_shares.spent
                if self._asker.tally.over_budget == SPENT:
                    self._asker.tally.over_budget = self._asker.budget.spent_bound
            await asyncio.to_thread(self._fetch, "")
            for error in (*results, self._broken):
                if isinstance(error, BaseException):
                    raise error
            if self._is_over():  # not where the last worker was lost when the others had left
                return

    async def _guard(self) -> None:
        """Hear a stop while no worker is ready yet, and give up where none ever is.

        Raises
        ------
        IncompleteError
            When units wait for workers that do not come.
        """
        began = last_told = time.monotonic()
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), 0.25)
            if self._is_over():
                self._over.set()
            if self._states:
                began = last_told = time.monotonic()
            elif time.monotonic() - last_told > _PROGRESS_INTERVAL:
                last_told = time.monotonic()
                log.warn("waiting_for_workers", seconds=round(last_told - began))
                log.say(
                    "no worker is ready yet; each takes one processor (`ray status` shows them)"
                )
            if time.monotonic() - began > NO_WORKER_ARRIVED:
                raise IncompleteError(
                    f"no worker was ready within {NO_WORKER_ARRIVED:.0f} s: each takes one"
                    " processor, a replica its gpus too; `ray status` shows what the cluster has;"
                    " the same command resumes"
                )

    async def _lead(self, worker: WorkerHandle, pool: WorkerPool) -> None:
        """Lead one worker, and whoever takes its place, to the end."""
        deaths = 0  # in a row, of workers that did nothing
        while True:
            try:
                if not await self._until_over(worker.ready()):
                    worker.end()
                    return
                self._states[worker.name] = _State()
                log.tell("worker_ready", worker=worker.name, models=sorted(worker.models))
                await self._beats(worker)
                report = await self._farewell(worker)
                self._budget_shares.take_back(worker.name, report.booked)
                self._hear(worker, report)
                log.tell("worker_left", worker=worker.name, cpu=round(self._cpu[worker.name], 3))
                del self._states[worker.name]
                return
            except LostError as error:
                worker.end()
                log.warn("worker_lost", worker=worker.name, why=str(error))
                await self._take_back(worker)
                if self._over.is_set():
                    return
                deaths = 0 if worker.name in self._fruitful else deaths + 1
                if deaths > _MOST_DEATHS:
                    raise IncompleteError(
                        f"{deaths} workers were lost one after the other without an answer (last:"
                        f" {error}); their logs are Ray's; the same command resumes"
                    ) from None
                worker = pool.replace(worker)

    async def _until_over(self, work: Awaitable[None]) -> bool:
        """Return whether work ended before the pass was over."""
        task, over = asyncio.ensure_future(work), asyncio.create_task(self._over.wait())
        try:
            await asyncio.wait({task, over}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
                return True
            return False
        finally:
            over.cancel()
            task.cancel()

    async def _beats(self, worker: WorkerHandle) -> None:
        while not self._over.is_set() and not self._is_needless(worker):
            orders = self._orders(worker)
            try:
                report = await asyncio.wait_for(worker.beat(orders), DEAD_AFTER * _SILENT)
            except TimeoutError:
                message = f"{worker.name}: no word for {DEAD_AFTER * _SILENT:.0f} s"
                raise LostError(message) from None
            self._budget_shares.note_cap(worker.name, orders.cap, report.booked)
            self._hear(worker, report)
            if self._is_over():
                self._over.set()

    async def _farewell(self, worker: WorkerHandle) -> WorkReport:
        """Return the last report of a worker, however long it carries replies over: meanwhile it
        keeps its lease.
        """
        leaving = asyncio.ensure_future(worker.leave())
        gone = asyncio.create_task(self._leases.gone(worker.name))
        try:
            await asyncio.wait({leaving, gone}, return_when=asyncio.FIRST_COMPLETED)
            # Who gives the lease up reports at once.
            return await asyncio.wait_for(leaving, DEAD_AFTER * _SILENT)
        except TimeoutError:
            raise LostError(f"{worker.name}: no word when it was to leave") from None
        finally:
            gone.cancel()
            leaving.cancel()
            await asyncio.gather(gone, leaving, return_exceptions=True)

    def _is_needless(self, worker: WorkerHandle) -> bool:
        """Return whether no unit of a worker's models is left, so that others may have its
        processor or device.
        """
        held = {shard.model for state in self._states.values() for shard in state.shards.values()}
        return not any(model in held or self._peek(model) for model in worker.models)

    def _orders(self, worker: WorkerHandle) -> WorkMessage:
        state = self._states[worker.name]
        stop = self._stop.soon or self._is_spent()
        shards = () if stop else tuple(self._leased(worker, state))
        working = {
            name: {shard.model for shard in state_.shards.values()}
            for name, state_ in self._states.items()
            if state_.busy or any(state_.waiting.values()) or name == worker.name
        }
        need = state.need
        under_way = sum(state.under_way for state in self._states.values())
        return WorkMessage(
            shards=shards,
            stop=stop,
            cap=self._budget_shares.cap(worker.name, need, len(self._states)),
            # Those under way mostly come to less than they are booked at.
            spent=not under_way and self._budget_shares.is_spent(need),
            shares=self._limits.shares(worker.name, working),
            given_up=dict(self._asker.tally.given_up),
            lost=tuple(self._gone),
        )

    def _leased(self, worker: WorkerHandle, state: _State) -> Iterator[Shard]:
        """Yield further shards for a worker, so that it has enough for some beats and no more.

        Shards get smaller towards the end, so that workers end together.
        """
        for model in sorted(worker.models - self._asker.tally.models_over_budget):
            held = state.waiting.get(model, 0)
            # Some beats' worth, but never more than an equal part of what is left.
            even = self._unfinished[model] // max(1, len(self._states))
            lease_size = max(1, min(even, max(self._shard // 2, 3 * state.did[model])))
            while held < lease_size:
                spec = self._stage.specs[model]
                size = min(self._shard, max(even // 2, _FEWEST, spec.concurrency))
                units = self._next_units(model, size)
                if not units:
                    break
                self._next += 1
                shard = Shard(self._next, model, units)
                state.shards[shard.number] = shard
                held += len(units)
                state.waiting[model] = held
                yield shard

    def _next_units(self, model: str, size: int) -> "array[int]":
        """Return the next units of a model: first those that were taken back."""
        again, units = self._again[model], array("q")
        while again and len(units) < size:
            units.append(again.popleft())
        units.extend(islice(self._waiting[model], size - len(units)))
        return units

    def _hear(self, worker: WorkerHandle, report: WorkReport) -> None:
        if report.broken is not None:  # everyone finishes what is under way, then it is raised
            self._broken = self._broken or report.broken
            self._over.set()
        state = self._states[worker.name]
        for noted in report.noted:
            self._journal.note(noted)
            self._fruitful.add(worker.name)
            state.read_to = noted.offsets[-1] + noted.lengths[-1]
        for (model, domain, outcome), times in report.advanced.items():
            self._progress.advance(model, domain, outcome, times)
        for number in report.finished:
            shard = state.shards.pop(number)
            self._unfinished[shard.model] -= len(shard.units)
        state.waiting, state.busy, state.need = dict(report.waiting), report.busy, report.need
        state.under_way = report.under_way
        state.did = Counter()
        for (model, _, _), times in report.advanced.items():
            state.did[model] += times
        self._cpu[worker.name] = report.cpu
        self._limits.hear(report.endpoints)
        for model, row in report.rows.items():
            self._asker.hear(model, row)
        self._asker.tally.add(report.tally)

    def _is_over(self) -> bool:
        states = self._states.values()
        if self._stop.soon or self._is_spent():
            return not any(state.busy for state in states)
        if any(state.shards for state in states):
            return False
        return not any(self._peek(model) for model in self._waiting)

    def _is_spent(self) -> bool:
        """Return whether the budget forbids to ask every model of which something is left."""
        models_over_budget = self._asker.tally.models_over_budget
        held = {shard.model for state in self._states.values() for shard in state.shards.values()}
        others = set(self._waiting) - models_over_budget
        return bool(models_over_budget) and not any(
            model in held or self._peek(model) for model in others
        )

    def _peek(self, model: str) -> bool:
        """Return whether a unit of this model waits to be leased."""
        if not self._again[model]:
            self._again[model].extend(islice(self._waiting[model], 1))
        return bool(self._again[model])

    async def _take_back(self, worker: WorkerHandle) -> None:
        """Take back what a lost worker held, once it can no longer be at work on it."""
        # First of all: nobody knows what it has under way, and meanwhile others book.
        self._budget_shares.write_off(worker.name)
        # Before its lease is dead it may still write: what it does then would be asked twice.
        await self._leases.gone(worker.name)
        state = self._states.get(worker.name)
        if state is None:
            return
        # Its replies before its records: a unit that was answered and not journalled is replayed by
        # the next worker instead of being paid again.
        await asyncio.to_thread(self._fetch, worker.name)
        await asyncio.to_thread(self._asker.adopt)
        segment = f"{worker.name}.jsonl"
        if (self._journal.folder / segment).exists():
            self._journal.read(segment, self._number_of, offset=state.read_to)
        again = 0
        for shard in state.shards.values():
            for unit in shard.units:
                if not all(map(self._journal.is_done, self._stage.records(unit))):
                    self._again[shard.model].append(unit)
                    again += 1
                else:
                    self._unfinished[shard.model] -= 1
        self._gone.append(worker.name)
        del self._states[worker.name]  # not before: while it holds shards the pass is not over
        log.tell("shards_taken_back", worker=worker.name, units=again)
