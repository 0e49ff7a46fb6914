"""A worker: does the units of its shards with the asyncio runner, keeps its lease, and reports once
a beat.
"""

import asyncio
import contextlib
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path

import msgspec

from medassay.core.amount import Amount
from medassay.core.catch import caught
from medassay.core.private import access, make_folder
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import BudgetRules
from medassay.core.records.sealed_object import TimingObject
from medassay.errors import InputError, MedassayError
from medassay.model.chats import make_chats
from medassay.runner.ask import Asker, AskSettings, Tally, wait_while_in_doubt
from medassay.runner.breaker import Relay
from medassay.runner.budget import SPENT, Budget
from medassay.runner.concurrency import ask_in_turn, wait_for_grace_period
from medassay.runner.engine.lease import DEAD_AFTER, Lease
from medassay.runner.engine.orders import Shard, WorkMessage, WorkReport
from medassay.runner.engine.stage import Stage, StageJob, StageSpec
from medassay.storage.journal import RecordPlaces, Segment
from medassay.storage.object_store import Mirror, mirror_of
from medassay.storage.response import ResponseStore, growing_name, index_of, this_host
from medassay.storage.run import JOURNALS
from medassay.storage.spend import SPEND, SpendingLimits, SpendJournal, bounds_of

BEAT = 0.5  # seconds that a beat waits for something to report


class WorkerJob(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is told once: the stage, where the run and the replies are, and what all
    requests share.

    `run` and `responses` are folders that every machine sees, or names below an `address` in an
    object store. `host` is the machine of the coordinator: workers on it share its index of the
    replies, others keep their own, since a database on a network folder may break.
    """

    stage_spec: StageSpec
    run: Path
    journal: str
    responses: Path
    address: str
    seed: int
    fresh: bool
    grace: float
    account: str
    bounds: SpendingLimits
    shared: bool
    host: str

    @classmethod
    def of(cls, job: StageJob, responses: Path) -> "WorkerJob":
        """Return what workers are told of a pass.

        `responses` is the folder of replies on this machine.
        """
        mirror = mirror_of(job.run)
        run, replies = job.run.resolve(), responses.resolve()
        if mirror is not None:  # each machine has a folder of its own for the address
            run, replies = Path(mirror.name(job.run)), Path(mirror.name(responses))
        return cls(
            stage_spec=job.stage_spec,
            run=run,
            journal=job.journal.folder.name,
            responses=replies,
            address="" if mirror is None else mirror.address,
            seed=job.asker.seed,
            fresh=job.asker.fresh,
            grace=job.asker.grace,
            account=job.asker.budget.account,
            bounds=bounds_of(responses.parent),
            shared=access.shared,
            host=this_host(),
        )

    def fetch(self, worker: str = "") -> None:
        """Bring what workers on other machines journalled to this one, where the run is in an
        object store.

        Of a worker that was lost also the replies that it heard.
        """
        if not self.address:
            return
        mirror = Mirror(self.address)
        mirror.pull(f"{self.run}/{self.journal}")
        if worker:
            self.fetch_replies(mirror, worker)

    def fetch_replies(self, mirror: Mirror, worker: str) -> None:
        """Bring the replies that a lost worker heard to this machine."""
        own_segment = f"{self.responses}/{growing_name(worker)}"
        mirror.pull(str(self.responses), accepts=lambda name: name.startswith(own_segment))


class WorkerBudget(Budget):
    """A worker's part of a budget: a call that would pass its cap waits until the next beat raises
    it.
    """

    def __init__(self, journal: SpendJournal) -> None:
        super().__init__(BudgetRules(), journal)
        self._spent = False
        self.need: Amount | None = None

    def allow(self, cap: Amount | None, *, spent: bool) -> None:
        """Take over up to what may be booked from now on."""
        self._spent = spent
        if cap is not None:
            self._bounded = True
            self.budget = BudgetRules(calls=cap.calls, tokens=cap.tokens, money=cap.money)
        self.need = None
        self._wake()

    def end(self) -> None:
        """Give no more: who waits hears that the budget is spent."""
        self._spent = True
        self._wake()

    async def _more(self, amount: Amount) -> bool:
        """Wait until a booking of this worker has ended, or the next beat raises its cap.

        False once the budget of all is spent.
        """
        refused = self.journal is not None and bool(self.journal.refused)
        if self._spent or (refused and not self.under_way):
            return False
        self.need = None if refused else amount
        await self._wait_for_room()
        return True

    @property
    def spent_bound(self) -> str:
        """Return which bound is spent; of the run's, the coordinator knows the figures."""
        refused = "" if self.journal is None else self.journal.refused
        return refused or SPENT


class SegmentWriter(Segment):
    """Writes a worker's records into its own segment, and remembers which were not reported yet."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name)
        self._new = RecordPlaces(self.path.name, array("q"), array("q"), array("q"))

    def append(self, number: int | None, record: bytes, score: bytes, timing: TimingObject) -> None:
        """Write one record; with number None it is kept but not done (a failure)."""
        offset, length = self.write(record, score, timing)
        if number is not None:
            self._new.numbers.append(number)
            self._new.offsets.append(offset)
            self._new.lengths.append(length)

    def new(self, safe: int) -> tuple[RecordPlaces, ...]:
        """Return what was written since the last time.

        Only lines that end within the first `safe` bytes.
        """
        noted, at = self._new, len(self._new.numbers)
        while at and noted.offsets[at - 1] + noted.lengths[at - 1] > safe:
            at -= 1
        numbers, offsets, lengths = noted.numbers, noted.offsets, noted.lengths
        self._new = RecordPlaces(noted.segment, numbers[at:], offsets[at:], lengths[at:])
        noted_part = RecordPlaces(noted.segment, numbers[:at], offsets[:at], lengths[:at])
        return (noted_part,) if at else ()


class StageCounts:
    """Counts what a stage finished, until it is reported."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self.money: Callable[[], float] = lambda: 0.0

    def advance(self, model: str, domain: str, outcome: str, times: int = 1) -> None:
        """Count."""
        self.counts[model, domain, outcome] += times

    def new(self) -> Counter[tuple[str, str, str]]:
        """Return the counts since the last time."""
        counts, self.counts = self.counts, Counter()
        return counts


class Feed:
    """The units of one model that wait in a worker; askers wait here for more."""

    def __init__(self) -> None:
        # Shards as they came: a tuple for each unit would be looked at by every collection of
        # garbage.
        self._shards: deque[tuple[Shard, Sequence[int]]] = deque()
        self._at = 0  # in the first one
        self._waiting = 0
        self._more = asyncio.Event()
        self._ended = False

    def __len__(self) -> int:
        return self._waiting

    def put(self, shard: Shard, units: Sequence[int]) -> None:
        """Add the units of a shard, in this order; there is at least one."""
        self._shards.append((shard, units))
        self._waiting += len(units)
        self._more.set()

    def end(self) -> None:
        """Give out nothing more."""
        self._shards.clear()
        self._waiting = 0
        self._ended = True
        self._more.set()

    def __aiter__(self) -> "Feed":
        return self

    async def __anext__(self) -> tuple[Shard, int]:
        """Return the next unit as soon as there is one."""
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._more.clear()
            await self._more.wait()
        shard, units = self._shards[0]
        unit = units[self._at]
        self._at += 1
        self._waiting -= 1
        if self._at == len(units):
            self._shards.popleft()
            self._at = 0
        return shard, unit


class Worker:
    """One process's part of a pass."""

    def __init__(self, name: str, job: WorkerJob, models: Sequence[str]) -> None:
        self._name, self._job = name, job
        self._specs = {model: job.stage_spec.specs[model] for model in models}
        self._counting = StageCounts()
        self._feeds: dict[str, Feed] = {}
        self._left: dict[int, int] = {}  # shard → units not done
        self._finished: list[tuple[int, int]] = []  # end of its records in the segment, shard
        self._busy = 0
        self._stop = False
        self._heard_at = time.monotonic()
        self._broken: Exception | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Event()
        self._mirror: Mirror | None = None
        self._safe = 0  # bytes of the segment that are on the disk, in an object store: in it
        self._leaving = False
        self._lost: set[str] = set()  # workers whose replies are known

    async def start(self, secrets: Mapping[str, str]) -> None:
        """Open everything; from here on the worker holds a lease."""
        job = self._job
        chats = make_chats(self._specs, secrets, job.stage_spec.majority)
        access.shared = job.shared
        self._run, responses = await asyncio.to_thread(self._arrive)
        self._lease = Lease(self._run, self._name)
        await asyncio.to_thread(self._lease.renew)
        self._keeping = self._spawn(self._lease.keep())
        make_folder(self._run / job.journal)
        self._segment = SegmentWriter(self._run / job.journal, self._name)
        beside = self._mirror is not None or job.host == this_host()
        index = None if beside else index_of(responses)
        self._store = await asyncio.to_thread(
            ResponseStore, responses, name=self._name, index=index
        )
        self._spawn(self._sync())
        self._spend = SpendJournal(
            responses.parent,
            job.account,
            self._specs,
            name=self._name,
            bounds=job.bounds,
            fresh=job.fresh,
        )
        self._budget = WorkerBudget(self._spend)
        self._relays = {name: Relay() for name in self._specs}
        self._asker = Asker(
            self._specs,
            chats,
            self._store,
            self._budget,
            AskSettings(
                seed=job.seed,
                fresh=job.fresh,
                grace=job.grace,
                relays=self._relays,
                stopping=lambda: self._stop,
                before_call=lambda: wait_while_in_doubt(self._in_doubt, lambda: self._stop),
            ),
        )
        self._chats = chats
        self._stage: Stage = job.stage_spec.open(
            self._run, self._asker, self._segment, self._counting, secrets
        )
        if self._mirror is not None:
            self._mirror.follow(lambda: self._budget.growing)
            self._mirror.follow(lambda: self._store.growing)
            self._mirror.follow(lambda: self._segment.path)

    def _arrive(self) -> tuple[Path, Path]:
        """Return where this machine has the run and the replies.

        From an object store they are fetched.
        """
        job = self._job
        run, responses = job.run, job.responses
        if job.address:
            self._mirror = Mirror(job.address)
            journals = tuple(f"{run}/{name}/" for name in JOURNALS)
            self._mirror.pull(str(run), accepts=lambda name: not name.startswith(journals))
            self._mirror.pull(str(responses))
            if job.bounds:
                self._mirror.pull(SPEND)
            run, responses = self._mirror.folder / run, self._mirror.folder / responses
        if not (run / "manifest.json").is_file():
            raise InputError(
                f"worker {self._name} sees no run at {run}: every machine must see the same"
                " workspace at the same place; put it on a shared folder, or give an object store"
                " by --workspace"
            )
        return run, responses

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Record the error of a task that fails."""
        self._tasks.discard(task)
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self._broken = self._broken or error
            self._stop = True
            self._turn.set()

    async def beat(self, orders: WorkMessage) -> WorkReport:
        """Take orders, and report when something is worth it, at the latest after `BEAT`
        seconds.
        """
        self._heard_at = time.monotonic()
        self._budget.allow(orders.cap, spent=orders.spent)
        self._asker.tally.given_up.update(orders.given_up)
        for endpoint, share in orders.shares.items():
            self._asker.gate(endpoint).steer(share)
        for name in orders.lost:
            if name not in self._lost:
                self._lost.add(name)
                try:
                    await asyncio.to_thread(self._learn, name)
                except (OSError, MedassayError) as error:
                    self._broken = self._broken or error
                    self._halt()
        for shard in orders.shards:
            self._take(shard)
        if orders.stop and not self._stop:
            self._halt()
        if self._broken is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._turn.wait(), BEAT)
        self._turn.clear()
        return self._report()

    def _learn(self, worker: str) -> None:
        """Learn what was said to a worker that was lost: units of it may come here."""
        if self._mirror is not None:
            self._job.fetch_replies(self._mirror, worker)
        self._store.adopt()

    def _halt(self) -> None:
        """Begin nothing more; whoever waits before a gate or for a budget gets through or gives
        up.
        """
        self._stop = True
        for feed in self._feeds.values():
            feed.end()
        for gate in self._asker.gates.values():
            gate.loosen()
        self._budget.end()

    def _take(self, shard: Shard) -> None:
        if self._stop:
            return
        spec = self._specs[shard.model]
        if shard.model not in self._feeds:
            feed = self._feeds[shard.model] = Feed()
            for _ in range(spec.concurrency):
                self._spawn(self._ask(spec, feed))
        units: Sequence[int] = shard.units
        if spec.in_process:  # like lengths share a batch, so little is spent on padding
            units = sorted(units, key=self._stage.length, reverse=True)
        self._left[shard.number] = len(units)
        self._feeds[shard.model].put(shard, units)

    def _ask(self, spec: ModelSpec, feed: Feed) -> Coroutine[None, None, None]:
        """Return one of the tasks that ask a model about what comes in its feed."""
        return ask_in_turn(
            feed,
            lambda place: self._do(spec, *place),
            stopped=lambda: self._stop or spec.id in self._asker.tally.models_over_budget,
            in_doubt=self._in_doubt,
        )

    async def _do(self, spec: ModelSpec, shard: Shard, unit: int) -> None:
        self._busy += 1
        try:
            with caught() as errors:
                await self._stage.do(spec, unit)
        finally:
            self._busy -= 1
        if errors:  # a full disk, say: told to the coordinator, who stops everyone
            self._broken = self._broken or errors[0]
            self._halt()
            self._turn.set()
            return
        self._left[shard.number] -= 1
        if not self._left[shard.number]:
            del self._left[shard.number]
            self._finished.append((self._segment.end, shard.number))
            self._turn.set()

    def _in_doubt(self) -> bool:
        """Return whether nobody is heard, or the lease may be held for dead: others may have taken
        this work over.
        """
        deaf = time.monotonic() - self._heard_at > DEAD_AFTER / 2
        return self._lease.doubtful or (deaf and not self._leaving)

    async def _sync(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            await asyncio.to_thread(self._keep_safe)

    def _keep_safe(self) -> None:
        """Bring what was written to the disk.

        To an object store replies first, then what is said of them.
        """
        end = self._segment.end  # before syncing: what is written meanwhile is safe the next time
        self._segment.sync()
        self._safe = end
        if self._mirror is not None:
            self._mirror.flush()
            self._safe = self._mirror.carried(self._segment.path)

    def _report(self) -> WorkReport:
        tally, self._asker.tally = self._asker.tally, Tally(given_up=self._asker.tally.given_up)
        self._asker.tally.over_budget = tally.over_budget
        self._asker.tally.models_over_budget = set(tally.models_over_budget)
        return WorkReport(
            noted=self._segment.new(self._safe),
            advanced=self._counting.new(),
            finished=tuple(self._finished_by(self._safe)),
            waiting={model: len(feed) for model, feed in self._feeds.items()},
            busy=self._busy,
            tally=tally,
            booked=self._budget.booked,
            under_way=self._budget.under_way,
            need=self._budget.need,
            endpoints={name: gate.heard() for name, gate in self._asker.gates.items()},
            rows={name: relay.new() for name, relay in self._relays.items()},
            cpu=time.process_time(),
            broken=self._broken or self._asker.broken,
        )

    def _finished_by(self, safe: int) -> list[int]:
        """Return the shards that are finished, all records of which are safe."""
        numbers = [number for end, number in self._finished if end <= safe]
        self._finished = [
            finished_unit for finished_unit in self._finished if finished_unit[1] not in numbers
        ]
        return numbers

    async def leave(self) -> WorkReport:
        """Finish what is under way, bring everything to the disk, free everything, and report once
        more.
        """
        self._leaving = True
        self._halt()
        if self._busy:
            await wait_for_grace_period(self._asker)
        await _cancelled(self._tasks - {self._keeping})
        try:
            await self._stage.close()
            for chat in self._chats.values():
                await chat.close()
            await asyncio.to_thread(self._keep_safe)
            self._segment.close()
            self._spend.close()
            await asyncio.to_thread(self._bring_home)
        except (OSError, MedassayError) as error:
            self._broken = self._broken or error
        report = self._report()
        await _cancelled({self._keeping})  # not before: carrying replies over may take minutes
        await asyncio.to_thread(self._lease.give_up)
        return report

    def _bring_home(self) -> None:
        """Close the segment of replies, and carry everything over that is not yet."""
        active = self._store.growing
        if self._mirror is not None:
            self._mirror.flush()
        self._store.close()
        if self._mirror is not None:
            self._mirror.carry_whole(self._spend.path)
            self._mirror.push_new(str(self._job.responses))
            if active is not None:
                self._mirror.settle(active)


async def _cancelled(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
