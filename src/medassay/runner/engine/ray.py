"""The engine for many processes and machines: Ray starts the workers and carries what they and the
coordinator say.

Workers are actors that Ray never restarts by itself: what a lost one held is leased anew by the
coordinator, which knows what was journalled. Endpoints are asked by as many workers as there are
processors; weights that are loaded where the asking happens get replicas of their own, each with
its devices.
"""

import asyncio
import gc
import logging
import math
import os
import secrets
import signal
import socket
import threading
from collections import deque
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import EngineRules
from medassay.core.secret import secrets as known_secrets
from medassay.errors import IncompleteError, InputError, UnavailableError
from medassay.model.chats import all_named_secrets
from medassay.runner.engine.coordinator import Coordinator, LostError, WorkerHandle
from medassay.runner.engine.lease import LeaseWatcher
from medassay.runner.engine.local import waiting_units
from medassay.runner.engine.orders import WorkMessage, WorkReport
from medassay.runner.engine.stage import R, StageJob, T
from medassay.runner.engine.worker import Worker, WorkerJob
from medassay.runner.event_loop import run_async


class RayEngine:
    """Does the units of a pass with workers of a Ray cluster: that of RAY_ADDRESS, or one on this
    machine for this command.
    """

    elsewhere = True

    def __init__(self, rules: EngineRules, responses: Path, secrets: Mapping[str, str]) -> None:
        self._rules, self._responses, self._secrets = rules, responses, secrets

    def work(self, job: StageJob) -> None:
        """Ask until every unit is done, failed or out of budget, or until a stop is asked for."""
        named = all_named_secrets(
            job.stage.specs.values(), self._secrets, job.stage_spec.secret_names
        )
        ray = connect(hidden=self._secrets)
        run_async(lambda: self._lead(ray, job, named), job.stop.ask)

    def spread(self, task: Callable[[T], R], parts: Iterable[T]) -> Iterator[R]:
        """Yield what a task makes of each part, in order.

        A part whose worker is lost is done again.
        """
        ray = connect(hidden=self._secrets)
        task_reference = ray.put(task)
        do = ray.remote(max_retries=3)(_do)
        most = 2 * max(1, self._rules.workers or int(ray.cluster_resources().get("CPU", 1)))
        under_way: deque[Any] = deque()
        for part in parts:
            under_way.append(do.remote(task_reference, part))
            if len(under_way) >= most:
                yield _result(ray, under_way.popleft())
        while under_way:
            yield _result(ray, under_way.popleft())

    async def _lead(self, ray: ModuleType, job: StageJob, named: Mapping[str, str]) -> None:
        asker, stage = job.asker, job.stage
        units = {n: sum(1 for _ in waiting_units(stage, job.journal, n)) for n in stage.specs}
        if not any(units.values()):
            return
        worker_job = WorkerJob.of(job, self._responses)
        pools = parted(stage.specs, units, self._rules, ray.cluster_resources())
        pool = RayPool(ray, worker_job, pools, named)
        coordinator = Coordinator(
            stage,
            job.journal,
            asker,
            job.progress,
            job.stop,
            number_of=job.number_of,
            units=units,
            leases=LeaseWatcher(job.run),
            fetch=worker_job.fetch,
            shard=self._rules.shard,
        )
        try:
            await coordinator.run(pool)
        finally:
            pool.end()


def _do(task: Callable[[T], R], part: T) -> R:
    return task(part)


def _result(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None  # what the task raised itself
    except ray.exceptions.RayError as error:
        raise IncompleteError(
            f"engine 'ray': a part of the work was lost again and again: {type(error).__name__}; "
            "the same command goes on with what is kept"
        ) from None


def connect(hidden: Collection[str] = ()) -> ModuleType:
    """Return Ray, connected to the cluster of RAY_ADDRESS, else to one that starts on this machine
    and ends with this process.

    Parameters
    ----------
    hidden : names of variables that processes started here shall not inherit: secrets reach workers
        by calls alone

    Raises
    ------
    UnavailableError
        When Ray is not installed.
    InputError
        When there is an address and nobody answers there, or nothing could be started.
    """
    address = os.environ.get("RAY_ADDRESS", "")
    if not address:  # closed to everybody without its token; Ray reads these when it is imported
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    # What Ray says of lost nodes would go to standard output, which belongs to the result; events
    # tell of them.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "(?s).*")
    try:
        import ray
    except ImportError:
        raise UnavailableError(
            "engine 'ray' needs the extra [ray]: pip install 'medassay[ray]'; --engine local needs"
            " nothing"
        ) from None
    known_secrets.learn([os.environ.get("RAY_AUTH_TOKEN", "")])
    if ray.is_initialized():
        return ray
    _refuse_unreachable(address)
    here = {} if address else {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    hidden_values = {name: os.environ.pop(name) for name in hidden if name in os.environ}
    ending = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level=logging.ERROR,
            **here,  # type: ignore[arg-type]
        )
    except (
        ConnectionError,
        RuntimeError,
        ValueError,
        TimeoutError,
        ray.exceptions.RayError,
    ) as error:
        reason = known_secrets.quote(str(error), 300)
        what = (
            f"no cluster answers at RAY_ADDRESS {address} (is RAY_AUTH_TOKEN that of the cluster?)"
            if address
            else "Ray does not start"
        )
        raise InputError(f"engine 'ray': {what}: {reason}") from None
    finally:
        os.environ |= hidden_values
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, ending)  # Ray's own prints a stack and ends the process
    return ray


def _refuse_unreachable(address: str) -> None:
    """Refuse an address where nobody listens: Ray would end this whole process after half a
    minute.
    """
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():  # "auto", Ray's client: Ray knows
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise InputError(
            f"engine 'ray': no cluster answers at RAY_ADDRESS {address}: {error.strerror or error};"
            " see `ray status`"
        ) from None


class Pool(msgspec.Struct, frozen=True):
    """Alike workers: which models they ask, how many there are, and the processors and devices of
    each.
    """

    models: frozenset[str]
    workers: int
    gpus: float


def parted(
    specs: Mapping[str, ModelSpec],
    units: Mapping[str, int],
    rules: EngineRules,
    resources: Mapping[str, float],
) -> list[Pool]:
    """Return the pools of a pass: replicas for weights that are loaded, the processors left for all
    others.

    Parameters
    ----------
    units : model → units to do; a model without any gets no worker
    resources : what the cluster has, as Ray tells: `CPU`, `GPU`

    Raises
    ------
    InputError
        When a replica wants more devices than there are.
    """
    specs_left = {name: spec for name, spec in specs.items() if units[name]}
    pools, there = [], resources.get("GPU", 0.0)
    for name, spec in specs_left.items():
        if spec.in_process:
            # "auto" takes what is there; what cannot do without is waited for, where a cluster
            # grows on demand.
            content = spec.device == "auto" and spec.provider != "vllm" and not there
            gpus = 0 if spec.device == "cpu" or content else spec.gpus
            if gpus > there > 0:
                raise InputError(
                    f"model '{name}' wants {gpus:g} GPUs a replica, the cluster has {there:g};"
                    " lower 'gpus' in its entry"
                )
            pools.append(Pool(frozenset([name]), rules.replicas.get(name, 1), gpus))
    others = frozenset(n for n, spec in specs_left.items() if not spec.in_process)
    if others:
        free = int(resources.get("CPU", 1)) - sum(pool.workers for pool in pools)
        shards = math.ceil(sum(units[name] for name in others) / rules.shard)
        workers = rules.workers or min(max(1, free), max(1, shards))
        pools.append(Pool(others, workers, 0))
    return pools


class RayPool:
    """Workers as actors of a Ray cluster."""

    def __init__(
        self, ray: ModuleType, job: WorkerJob, pools: Sequence[Pool], secrets: Mapping[str, str]
    ) -> None:
        self._ray, self._pools, self._secrets = ray, pools, secrets
        self._job = ray.put(job)
        self._handles: list[RayWorkerHandle] = []
        self._remote = ray.remote(max_restarts=0, max_task_retries=0)(_Actor)

    def start(self) -> list["RayWorkerHandle"]:
        """Ask Ray for all workers."""
        return [self._new_handle(pool) for pool in self._pools for _ in range(pool.workers)]

    def replace(self, worker: WorkerHandle) -> "RayWorkerHandle":
        """Ask Ray for another worker like a lost one."""
        assert isinstance(worker, RayWorkerHandle)  # as all workers of this engine
        self._handles.remove(worker)
        return self._new_handle(worker.pool)

    def _new_handle(self, pool: Pool) -> "RayWorkerHandle":
        name = f"w-{secrets.token_hex(6)}"
        actor = self._remote.options(num_cpus=1, num_gpus=pool.gpus).remote()
        # Not as an argument of the constructor, which Ray stores: secrets go into a call.
        opened = actor.open.remote(name, self._job, dict(self._secrets), sorted(pool.models))
        worker = RayWorkerHandle(self._ray, name, pool, actor, opened)
        self._handles.append(worker)
        return worker

    def end(self) -> None:
        """End whoever is still there."""
        for worker in self._handles:
            worker.end()


class RayWorkerHandle:
    """One actor, as the coordinator sees it."""

    def __init__(self, ray: Any, name: str, pool: Pool, actor: Any, opened: Any) -> None:
        self._ray, self._actor, self._open_reference = ray, actor, opened
        self.name, self.pool = name, pool
        self.models = pool.models

    async def ready(self) -> None:
        """Return when the worker has opened everything."""
        await self._receive(self._open_reference)

    async def beat(self, orders: WorkMessage) -> WorkReport:
        """Hand over orders, return the report."""
        report: WorkReport = await self._receive(self._actor.beat.remote(orders))
        return report

    async def leave(self) -> WorkReport:
        """Let the worker finish what is under way, and end it."""
        report: WorkReport = await self._receive(self._actor.leave.remote())
        self.end()
        return report

    async def _receive(self, reference: Awaitable[Any]) -> Any:
        try:
            return await asyncio.wrap_future(reference.future())  # type: ignore[attr-defined]
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None  # what the worker raised itself
        except self._ray.exceptions.RayError as error:
            message = known_secrets.quote(str(error), 200)
            raise LostError(f"{self.name}: {type(error).__name__}: {message}") from None

    def end(self) -> None:
        """End the worker's process without a word."""
        self._ray.kill(self._actor)


class _Actor:
    """What Ray runs: a worker, reached by messages; its loop is Ray's."""

    def __init__(self) -> None:
        self._worker: Worker | None = None

    async def open(
        self, name: str, job: WorkerJob, secrets: Mapping[str, str], models: Sequence[str]
    ) -> None:
        """Make the worker; what it asks was chosen by the pool that it belongs to."""
        self._worker = Worker(name, job, models)
        await self._worker.start(secrets)
        gc.freeze()  # what is loaded by now stays; the collector need not look at it again

    @property
    def _open_worker(self) -> Worker:
        assert self._worker is not None  # Ray keeps the order of calls
        return self._worker

    async def beat(self, orders: WorkMessage) -> WorkReport:
        """Pass a beat on to the worker."""
        return await self._open_worker.beat(orders)

    async def leave(self) -> WorkReport:
        """Tell the worker that the pass is over."""
        return await self._open_worker.leave()
