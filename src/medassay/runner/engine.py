"""The engine room: asks what is not yet answered, journals every answer before it is used.

All concurrency is here. A model's workers take trial numbers from one iterator; an endpoint's gate
decides how many requests are under way; every reply goes to the response store, and with its
reading and score to the journal, before anything else happens with it.
"""

import asyncio
import gc
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import stamina
import stamina.instrumentation

from medassay.answer.catalog import PARSERS
from medassay.answer.parse import read_answer
from medassay.core.canonical import canonical, sha256_hex
from medassay.core.item import Item
from medassay.core.model import Chat, ModelSpec, Sampling
from medassay.core.trial import Answer, Completion, Prompt
from medassay.errors import Permanent, Transient
from medassay.runner.budget import Purse, estimated_tokens
from medassay.runner.gate import Gate
from medassay.runner.progress import Progress
from medassay.runner.schedule import Cell, Schedule
from medassay.storage.journal import Journal
from medassay.storage.response import ResponseStore, request_key
from medassay.task.scoring import Scoring

# A retry is not news: progress counts what failed in the end.
stamina.instrumentation.set_on_retry_hooks([])

ATTEMPTS = 6  # the first and five retries
_SYNC_EVERY = 1.0  # seconds


@dataclass
class Stop:
    """Asked for by Ctrl-C: `soon` finishes the calls under way."""

    soon: bool = False


@dataclass
class Tally:
    """What happened in one pass: calls made, answers replayed, failures by reason."""

    called: int = 0
    replayed: int = 0
    failed: int = 0
    over_budget: bool = False
    failures: dict[str, int] = field(default_factory=dict)
    dead: dict[str, str] = field(default_factory=dict)  # model → why no call to it can succeed
    findings: list[dict[str, Any]] = field(default_factory=list)


class Engine:
    """One pass over the trials of a schedule that have no answer yet."""

    def __init__(
        self,
        schedule: Schedule,
        chats: dict[str, Chat],
        store: ResponseStore,
        journal: Journal,
        progress: Progress,
        *,
        fresh: bool = False,
    ) -> None:
        self._schedule = schedule
        self._chats = chats
        self._store = store
        self._journal = journal
        self._progress = progress
        self._fresh = fresh
        self._scoring = Scoring(schedule.task)
        self._purse = Purse(schedule.plan.budget)
        self.stop = Stop()
        self.tally = Tally()
        self._gates: dict[str, Gate] = {}
        self._sampling = {
            name: sampling_of(spec, schedule.plan.seed) for name, spec in schedule.specs.items()
        }
        self._constants = {
            name: canonical(request_constant(spec, self._sampling[name]))
            for name, spec in schedule.specs.items()
        }

    async def run(self) -> Tally:
        """Ask until every trial is done, failed or out of budget, or until a stop is asked for."""
        syncing = asyncio.create_task(self._sync())
        gc.freeze()  # what is loaded by now stays; the collector need not look at it again
        try:
            async with asyncio.TaskGroup() as group:
                for name, spec in self._schedule.specs.items():
                    waiting = (
                        n for n in self._schedule.numbers(name) if not self._journal.is_done(n)
                    )
                    for _ in range(spec.concurrency):
                        group.create_task(self._work(spec, waiting))
        except BaseExceptionGroup as many:  # every worker meets the same full disk
            raise many.exceptions[0] from None
        finally:
            gc.unfreeze()
            syncing.cancel()
            for chat in self._chats.values():
                await chat.close()
            self._journal.sync()
        return self.tally

    async def _sync(self) -> None:
        while True:
            await asyncio.sleep(_SYNC_EVERY)
            await asyncio.to_thread(self._journal.sync)

    async def _work(self, spec: ModelSpec, numbers: Iterator[int]) -> None:
        for done, number in enumerate(numbers, 1):
            if self.stop.soon or self.tally.over_budget:
                return
            await self._trial(number, spec)
            if done % 64 == 0:  # replays never wait; let others have their turn
                await asyncio.sleep(0)

    async def _trial(self, number: int, spec: ModelSpec) -> None:
        cell, item, repeat = self._schedule.trial(number)
        try:
            prompt = self._schedule.prompt(cell, item)
            found = await self._completion(spec, cell, item, prompt, repeat)
        except (Transient, Permanent) as error:
            if isinstance(error, Permanent) and error.endpoint_wide:
                self.tally.dead.setdefault(spec.id, str(error))
            self._fail(cell, item, repeat, str(error))
            return
        except Exception as error:  # noqa: BLE001 -- the one place that catches everything: a trial fails, the run goes on
            self._fail(
                cell, item, repeat, f"{type(error).__name__}: {error}", traceback.format_exc()
            )
            return
        if found is None:
            return
        key, completion, replayed = found
        parser = PARSERS[self._schedule.task.readers[item.form][0] or ""]
        answer = read_answer(item, prompt, completion, parser, self._schedule.plan.extraction)
        record = self._record(cell, item, repeat, prompt, completion, answer, key)
        score = self._scoring.record(item, record, answer)
        timing = {"seconds": round(completion.seconds, 6), "replayed": replayed}
        self._journal.append(number, canonical(record), canonical(score), timing)
        self._progress.advance(cell, answer.outcome)

    async def _completion(
        self, spec: ModelSpec, cell: Cell, item: Item, prompt: Prompt, repeat: int
    ) -> tuple[str, Completion, bool] | None:
        sampling = self._sampling[spec.id]
        key = request_key(self._constants[spec.id], prompt.encoded, repeat)
        chat = self._chats[spec.id]
        if spec.is_baseline:  # computed, not asked: no key could name what it depends on
            return key, await chat.complete(prompt, sampling, repeat=repeat), False
        stored = self._store.get(key)
        if stored is not None and not self._fresh:
            self.tally.replayed += 1
            return key, stored, True
        booked = self._purse.book(spec, prompt)
        if booked is None:
            self.tally.over_budget = True
            return None
        completion = await self._ask(spec, chat, prompt, sampling, repeat)
        self._purse.settle(spec, booked, completion.usage)
        self.tally.called += 1
        if stored is None:
            columns = {
                "model": spec.id,
                "bank": self._schedule.bank(cell).version,
                "item": item.id,
                "revision": item.revision,
            }
            self._store.put(key, completion, columns)
        elif stored.text != completion.text:  # --fresh: the first reply stays the stored one
            self._find(cell, item, repeat, stored, completion)
        return key, completion, False

    async def _ask(
        self, spec: ModelSpec, chat: Chat, prompt: Prompt, sampling: Sampling, repeat: int
    ) -> Completion:
        """Ask once; on a transient failure ask again, at most five times, as the endpoint bears."""
        gate = self._gate(spec)
        tokens = estimated_tokens(prompt) if spec.tokens_per_minute else 0

        async def once() -> Completion:
            if spec.id in self.tally.dead:
                raise Permanent(self.tally.dead[spec.id])
            await gate.enter(tokens)
            try:
                completion = await chat.complete(prompt, sampling, repeat=repeat)
            except Transient as error:
                gate.failed(overload=error.overload, retry_after=error.retry_after)
                raise
            except BaseException:
                gate.failed(overload=False, retry_after=None)
                raise
            gate.succeeded()
            return completion

        try:
            return await once()
        except Transient as error:
            first = error
        if first.retry_after is None:
            await asyncio.sleep(0.2)
        async for attempt in stamina.retry_context(
            on=_backoff,
            attempts=ATTEMPTS - 1,
            timeout=None,
            wait_initial=0.4,
            wait_max=30.0,
            wait_jitter=0.4,
        ):
            with attempt:
                return await once()
        raise first  # pragma: no cover -- retry_context returns or raises

    def _gate(self, spec: ModelSpec) -> Gate:
        endpoint = spec.url or spec.id
        if endpoint not in self._gates:
            self._gates[endpoint] = Gate(spec)
        return self._gates[endpoint]

    def _record(
        self,
        cell: Cell,
        item: Item,
        repeat: int,
        prompt: Prompt,
        completion: Completion,
        answer: Answer,
        key: str,
    ) -> dict[str, Any]:
        record: dict[str, Any] = {
            "schema_version": 1,
            "domain": cell.domain,
            "model": cell.model,
            "setting": cell.setting,
            "mode": cell.mode,
            "item": item.id,
            "repeat": repeat,
            "template": prompt.template,
            "prompt_sha256": sha256_hex(prompt.encoded),
            "response": key,
            "text": completion.text,
            "finish": completion.finish,
            "prompt_tokens": completion.usage.prompt,
            "completion_tokens": completion.usage.completion,
            "outcome": answer.outcome,
            "value": answer.value,
            "reason": answer.reason,
        }
        if prompt.order is not None:
            record["order"] = list(prompt.order)
        return record

    def _fail(
        self, cell: Cell, item: Item, repeat: int, reason: str, trace: str | None = None
    ) -> None:
        self.tally.failed += 1
        self.tally.failures[reason] = self.tally.failures.get(reason, 0) + 1
        record = failed_record(cell, item.id, repeat, reason)
        timing = {"seconds": 0.0, **({"traceback": trace} if trace else {})}
        self._journal.append(None, canonical(record), b"null", timing)
        self._progress.advance(cell, "failed")

    def _find(
        self, cell: Cell, item: Item, repeat: int, old: Completion, new: Completion
    ) -> None:
        self.tally.findings.append(
            {
                "schema_version": 1,
                "trial": [cell.domain, cell.model, cell.setting, cell.mode, item.id, repeat],
                "field": "text",
                "old": old.text,
                "new": new.text,
                "cause": "unknown",
                "note": "a fresh call gave another reply than the stored one",
            }
        )


def failed_record(cell: Cell, item_id: str, repeat: int, reason: str) -> dict[str, Any]:
    """Return the trial record of a failure: the provider's, so nothing is known of the model."""
    return {
        "schema_version": 1,
        "domain": cell.domain,
        "model": cell.model,
        "setting": cell.setting,
        "mode": cell.mode,
        "item": item_id,
        "repeat": repeat,
        "outcome": "failed",
        "value": None,
        "reason": reason[:300],
    }


def sampling_of(spec: ModelSpec, seed: int) -> Sampling:
    """Return how tokens are drawn: temperature 0 unless the entry says otherwise or cannot."""
    refuses = "no_temperature" in spec.capabilities
    return Sampling(
        temperature=None if refuses else spec.temperature,
        top_p=spec.top_p,
        max_tokens=spec.max_tokens,
        seed=seed % 2**31 if spec.sends_seed else None,
    )


def request_constant(spec: ModelSpec, sampling: Sampling) -> dict[str, Any]:
    """Return what all requests of a model share: the parts of the response key besides messages."""
    constant: dict[str, Any] = {
        "endpoint": spec.url or spec.path or spec.provider,
        "protocol": spec.protocol,
        "model": spec.sent_name,
        "version": spec.version,
        "sampling": sampling.to_dict(),
        "extra": spec.extra_body,
        "logprobs": spec.logprobs,
        "tools": [],
    }
    if spec.provider == "transformers":
        constant.update(
            dtype=spec.dtype, weights=spec.weights_digest, quantisation=spec.quantisation
        )
    if spec.provider == "fake":
        constant["script"] = spec.script
    return constant


def _backoff(error: Exception) -> bool | float:
    """Tell stamina whether to go on, and for how long to wait where the server said so."""
    if not isinstance(error, Transient):
        return False
    return True if error.retry_after is None else error.retry_after
