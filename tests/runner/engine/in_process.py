"""Workers in this process, which a test can lose at a chosen beat: the coordinator and the workers
are the real ones.
"""

import asyncio
import contextlib
import itertools
import os
import pickle

from medassay.runner.engine.coordinator import Coordinator, LostError
from medassay.runner.engine.lease import LeaseWatcher
from medassay.runner.engine.local import waiting_units
from medassay.runner.engine.worker import Worker, WorkerJob
from medassay.runner.event_loop import run_async

_names = itertools.count()


class InProcess:
    """An engine of workers that share one loop.

    `lose` says whether a worker dies: name, beat → bool.
    """

    elsewhere = True

    def __init__(self, rules, responses, secrets, *, workers=3, lose=lambda name, beat: False):
        self.rules, self.responses, self.secrets = rules, responses, secrets
        self.workers, self.lose = workers, lose
        self.handles = []

    def work(self, stage_job):
        self.stage_job = stage_job
        job = WorkerJob.of(stage_job, self.responses)
        self.job = pickle.dumps(job)
        coordinator = Coordinator(
            stage_job.stage,
            stage_job.journal,
            stage_job.asker,
            stage_job.progress,
            stage_job.stop,
            number_of=stage_job.number_of,
            units={
                n: sum(1 for _ in waiting_units(stage_job.stage, stage_job.journal, n))
                for n in stage_job.stage.specs
            },
            leases=LeaseWatcher(stage_job.run),
            fetch=job.fetch,
            shard=self.rules.shard,
        )
        run_async(lambda: self.lead(coordinator), stage_job.stop.ask)

    async def lead(self, coordinator):
        try:
            await coordinator.run(self)
        finally:
            for handle in self.handles:
                handle.end()
                await handle.hang_up()

    spread_parts = 0

    def spread(self, task, parts):
        """Send the task and each part through a pickle, as to another process."""
        task = pickle.loads(pickle.dumps(task))
        for part in parts:
            self.spread_parts += 1
            yield task(pickle.loads(pickle.dumps(part)))

    def start(self):
        return [self.add_worker() for _ in range(self.workers)]

    def replace(self, handle):
        return self.add_worker()

    def add_worker(self):
        handle = InProcessWorker(self, f"w{next(_names):03}")
        self.handles.append(handle)
        return handle


class InProcessWorker:
    def __init__(self, engine, name):
        self.engine, self.name = engine, name
        self.models = frozenset(engine.stage_job.stage.specs)
        self.beats = 0
        self.dead = False

    async def ready(self):
        job = pickle.loads(self.engine.job)
        self.worker = Worker(self.name, job, sorted(self.models))
        await self.worker.start(self.engine.secrets)

    async def beat(self, orders):
        self.beats += 1
        if self.engine.lose(self.name, self.beats):
            await self.die()
        if self.dead:
            raise LostError(self.name)
        return await self.worker.beat(orders)

    async def leave(self):
        if self.engine.lose(self.name, "leave"):
            await self.die()
        if self.dead:
            raise LostError(self.name)
        return await self.worker.leave()

    async def die(self):
        """Stop at once, as kill -9 does: nothing is told, synced or given up."""
        self.dead = True
        tasks = list(self.worker._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if (active := self.worker._store._active) is not None:
            os.close(active)  # with a process its locks go
        await self.hang_up()

    async def hang_up(self):
        """Close the connections, as the system does for a process that ends."""
        with contextlib.suppress(AttributeError):  # never got so far
            for chat in self.worker._chats.values():
                await chat.close()

    def end(self):
        with contextlib.suppress(AttributeError):  # never got ready
            for task in self.worker._tasks:
                task.cancel()
