"""A worker: does the units of its shards with the asyncio runner, keeps its lease, and reports once a beat."""

import asyncio
import contextlib
import time
from array import array
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medassay.core.model import ModelSpec
from medassay.core.plan import Budget
from medassay.core.trial import Prompt
from medassay.errors import InputError
from medassay.runner.asking import Asker, Tally
from medassay.runner.budget import Amount, Purse, most_of
from medassay.runner.engine.lease import DEAD_AFTER, Lease
from medassay.runner.engine.orders import Orders, Report, Shard
from medassay.runner.engine.stage import Portable, Stage
from medassay.runner.providing import make_chats
from medassay.storage.journal import Noted, Segment
from medassay.storage.response import ResponseStore, index_of, this_host
from medassay.storage.run import LEASES

BEAT = 0.5  # seconds that a beat waits for something to report


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a worker is told once: the stage, where the run and the replies are, and what all requests share.

    `host` is the machine of the coordinator: workers on it share its index of the replies, others keep their own, since
    a database on a network folder may break.
    """

    portable: Portable
    run: Path
    journal: str
    responses: Path
    seed: int
    fresh: bool
    host: str


class Allotment(Purse):
    """A worker's part of a budget: a call that would pass its cap waits until the next beat raises it."""

    def __init__(self) -> None:
        super().__init__(Budget())
        self._cap: Amount | None = None
        self._spent = False
        self._told = asyncio.Event()
        self.need: Amount | None = None

    def allow(self, cap: Amount | None, *, spent: bool) -> None:
        """Take over up to what may be booked from now on."""
        self._cap, self._spent = cap, spent
        if cap is not None:
            self._bounded = True
            self._budget = Budget(calls=cap.calls, tokens=cap.tokens, money=cap.money)
        self.need = None
        self._told.set()
        self._told = asyncio.Event()

    async def book(self, spec: ModelSpec, prompt: Prompt) -> Amount | None:
        """Return what was booked; None once the budget of all workers is spent."""
        while (booked := await super().book(spec, prompt)) is None and not self._spent:
            self.need = most_of(spec, prompt)
            await self._told.wait()
        return booked


class Pages:
    """Writes a worker's records into its own segment, and remembers which were not reported yet."""

    def __init__(self, folder: Path, name: str) -> None:
        self._segment = Segment(folder, name)
        self._new = self._empty()

    def _empty(self) -> Noted:
        name = self._segment.path.name
        return Noted(name, array("q"), array("q"), array("q"))

    def append(
        self, number: int | None, record: bytes, score: bytes, timing: dict[str, Any]
    ) -> None:
        """Write one record; with number None it is kept but not done (a failure)."""
        offset, length = self._segment.write(record, score, timing)
        if number is not None:
            self._new.numbers.append(number)
            self._new.offsets.append(offset)
            self._new.lengths.append(length)

    def new(self) -> tuple[Noted, ...]:
        """Return what was written since the last time."""
        found, self._new = self._new, self._empty()
        return (found,) if found.numbers else ()

    def sync(self) -> None:
        """Bring everything written so far to the disk."""
        self._segment.sync()

    def close(self) -> None:
        """Bring everything to the disk and write no more."""
        self._segment.close()


class Counting:
    """Counts what a stage finished, until it is reported."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, str]] = Counter()

    def advance(self, model: str, domain: str, outcome: str, times: int = 1) -> None:
        """Count."""
        self.counts[model, domain, outcome] += times

    def new(self) -> Counter[tuple[str, str, str]]:
        """Return the counts since the last time."""
        found, self.counts = self.counts, Counter()
        return found


class Feed:
    """The units of one model that wait in a worker; askers wait here for more."""

    def __init__(self) -> None:
        self._units: deque[tuple[Shard, int]] = deque()
        self._more = asyncio.Event()
        self._ended = False

    def __len__(self) -> int:
        return len(self._units)

    def put(self, shard: Shard, units: list[int]) -> None:
        """Add the units of a shard, in this order."""
        self._units.extend((shard, unit) for unit in units)
        self._more.set()

    def end(self) -> None:
        """Give out nothing more."""
        self._units.clear()
        self._ended = True
        self._more.set()

    async def next(self) -> tuple[Shard, int] | None:
        """Return the next unit, None when there will be no more."""
        while not self._units:
            if self._ended:
                return None
            self._more.clear()
            await self._more.wait()
        return self._units.popleft()


class Worker:
    """One process's part of a pass."""

    def __init__(self, name: str, job: Job, models: Sequence[str]) -> None:
        if not (job.run / "items.jsonl").is_file():
            raise InputError(
                f"worker {name} sees no run at {job.run}: every machine must see the same workspace at the same place; "
                "put it on a shared folder, or give an object store by --workspace"
            )
        self._name, self._job = name, job
        self._specs = {model: job.portable.specs[model] for model in models}
        self._pages = Pages(job.run / job.journal, name)
        self._counting = Counting()
        self._feeds: dict[str, Feed] = {}
        self._left: dict[int, int] = {}  # shard → units not done
        self._finished: list[int] = []
        self._busy = 0
        self._stop = False
        self._heard_at = time.monotonic()
        self._broken: Exception | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Event()
        self._lease = Lease(job.run / LEASES, name)
        self._tally = Tally()

    async def start(self, secrets: Mapping[str, str]) -> None:
        """Open everything; from here on the worker holds a lease."""
        job = self._job
        chats = make_chats(self._specs, secrets, job.portable.majority)
        await asyncio.to_thread(self._lease.renew)
        self._spawn(self._lease.keep())
        self._spawn(self._sync())
        index = None if job.host == this_host() else index_of(job.responses)
        self._store = await asyncio.to_thread(ResponseStore, job.responses, index=index)
        self._purse = Allotment()
        self._asker = Asker(
            self._specs,
            chats,
            self._store,
            Budget(),
            seed=job.seed,
            fresh=job.fresh,
            purse=self._purse,
        )
        self._chats = chats
        self._stage: Stage = job.portable.open(
            job.run, self._asker, self._pages, self._counting, secrets
        )

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def beat(self, orders: Orders) -> Report:
        """Take orders, and report when something is worth it, at the latest after `BEAT` seconds."""
        self._heard_at = time.monotonic()
        self._purse.allow(orders.cap, spent=orders.spent)
        self._asker.tally.dead.update(orders.dead)
        for endpoint, share in orders.shares.items():
            self._asker.gate(endpoint).steer(share)
        for shard in orders.shards:
            self._take(shard)
        if orders.stop and not self._stop:
            self._stop = True
            for feed in self._feeds.values():
                feed.end()
        self._turn.clear()
        if self._broken is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._turn.wait(), BEAT)
        return self._report()

    def _take(self, shard: Shard) -> None:
        if self._stop:
            return
        spec = self._specs[shard.model]
        if shard.model not in self._feeds:
            feed = self._feeds[shard.model] = Feed()
            for _ in range(spec.concurrency):
                self._spawn(self._ask(spec, feed))
        units = list(shard.units)
        if spec.in_process:  # like lengths share a batch, so little is spent on padding
            units.sort(key=self._stage.length, reverse=True)
        self._left[shard.number] = len(units)
        self._feeds[shard.model].put(shard, units)

    async def _ask(self, spec: ModelSpec, feed: Feed) -> None:
        done = 0
        while (found := await feed.next()) is not None:
            shard, unit = found
            await self._sure()
            if self._stop or self._asker.tally.over_budget:
                return
            self._busy += 1
            try:
                await self._stage.do(spec, unit)
            except Exception as error:  # noqa: BLE001 -- a full disk, say: told to the coordinator, who stops everyone
                self._broken = self._broken or error
                self._stop = True
                self._turn.set()
                return
            finally:
                self._busy -= 1
            self._left[shard.number] -= 1
            if not self._left[shard.number]:
                del self._left[shard.number]
                self._finished.append(shard.number)
                self._turn.set()
            done += 1
            if done % 64 == 0:  # replays never wait; let others have their turn
                await asyncio.sleep(0)

    async def _sure(self) -> None:
        """Wait while nobody is heard or the lease is in doubt: another worker may have taken this work over."""
        while not self._stop and (
            self._lease.doubtful or time.monotonic() - self._heard_at > DEAD_AFTER / 2
        ):
            await asyncio.sleep(0.1)

    async def _sync(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            await asyncio.to_thread(self._pages.sync)

    def _report(self) -> Report:
        tally, self._asker.tally = self._asker.tally, Tally(dead=self._asker.tally.dead)
        self._asker.tally.over_budget = tally.over_budget
        return Report(
            noted=self._pages.new(),
            advanced=self._counting.new(),
            finished=tuple(self._finished_now()),
            left={model: len(feed) for model, feed in self._feeds.items()},
            busy=self._busy,
            tally=tally,
            booked=self._purse.booked,
            need=self._purse.need,
            heard={name: gate.heard() for name, gate in self._asker.gates.items()},
            cpu=time.process_time(),
            broken=self._broken,
        )

    def _finished_now(self) -> list[int]:
        found, self._finished = self._finished, []
        return found

    async def leave(self) -> Report:
        """Finish what is under way, bring everything to the disk, free everything, and report once more."""
        self._stop = True
        for feed in self._feeds.values():
            feed.end()
        while self._busy:
            await asyncio.sleep(0.01)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            await self._stage.close()
            for chat in self._chats.values():
                await chat.close()
            self._pages.close()
            self._store.close()
        except OSError as error:
            self._broken = self._broken or error
        self._lease.give_up()
        return self._report()
