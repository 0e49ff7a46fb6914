"""The engine room: asks what is not yet answered, journals every answer before it is used.

A model's workers take trial numbers from one iterator; every reply goes to the response store, and
with its reading and score to the journal, before anything else happens with it.
"""

import asyncio
import gc
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from medassay.answer.catalog import PARSERS
from medassay.answer.parse import read_answer
from medassay.core.canonical import canonical, sha256_hex
from medassay.core.item import Item
from medassay.core.jsontext import storable
from medassay.core.model import ModelSpec
from medassay.core.trial import Answer, Prompt
from medassay.errors import Permanent, Transient
from medassay.runner.asking import Asker, Reply
from medassay.runner.looking import Looked, Looking
from medassay.runner.progress import Progress, Stop
from medassay.runner.schedule import Cell, Schedule
from medassay.storage.journal import Journal
from medassay.task.scoring import Scoring

_SYNC_EVERY = 1.0  # seconds


class Engine:
    """One pass over the trials of a schedule that have no answer yet."""

    def __init__(
        self,
        schedule: Schedule,
        asker: Asker,
        journal: Journal,
        progress: Progress,
        stop: Stop,
        *,
        looking: Looking | None = None,
    ) -> None:
        self._looking = looking
        self._schedule = schedule
        self._asker = asker
        self._journal = journal
        self._progress = progress
        self._stop = stop
        self._scoring = Scoring(schedule.task)

    async def run(self) -> None:
        """Ask until every trial is done, failed or out of budget, or until a stop is asked for."""
        try:
            async with asking(self._journal) as group:
                for name, spec in self._schedule.specs.items():
                    waiting = (
                        n for n in self._schedule.numbers(name) if not self._journal.is_done(n)
                    )
                    for _ in range(spec.concurrency):
                        group.create_task(self._work(spec, waiting))
        finally:
            if self._looking is not None:
                await self._looking.close()

    async def _work(self, spec: ModelSpec, numbers: Iterator[int]) -> None:
        for done, number in enumerate(numbers, 1):
            if self._stop.soon or self._asker.tally.over_budget:
                return
            await self._trial(number, spec)
            if done % 64 == 0:  # replays never wait; let others have their turn
                await asyncio.sleep(0)

    async def _trial(self, number: int, spec: ModelSpec) -> None:
        cell, item, repeat = self._schedule.trial(number)
        try:
            prompt = self._schedule.prompt(cell, item)
            columns = {
                "bank": self._schedule.bank(cell).version,
                "item": item.id,
                "revision": item.revision,
            }
            reply, looked = await self._asked(cell, spec, prompt, columns, repeat)
        except Exception as error:  # noqa: BLE001 -- the one place that catches everything: a trial fails, the run goes on
            self._fail(cell, item, repeat, error)
            return
        if reply is None:
            return
        parser = PARSERS[self._schedule.task.readers[item.form][0] or ""]
        extraction = self._schedule.plan.extraction
        answer = read_answer(item, prompt, reply.completion, parser, extraction)
        record = trial_record(cell, repeat, prompt, reply, answer)
        if looked is not None:
            record |= {"tool_use": dict(looked.use), "trace": list(looked.trace)}
        score = self._scoring.record(item, record, answer)
        seconds = round(reply.completion.seconds, 6)
        usage = reply.completion.usage
        timing = {
            "seconds": seconds,
            "replayed": reply.replayed,
            "tokens": [usage.prompt, usage.completion],
        }
        self._journal.append(number, canonical(record), canonical(score), timing)
        self._progress.advance(cell.model, cell.domain, answer.outcome)

    async def _asked(
        self, cell: Cell, spec: ModelSpec, prompt: Prompt, columns: dict[str, Any], repeat: int
    ) -> tuple[Reply | None, Looked | None]:
        """Return the reply, and in the mode `tools` how it came about."""
        if cell.mode != "tools" or self._looking is None or spec.is_baseline:
            return await self._asker.ask(spec, prompt, columns, repeat=repeat), None
        looked = await self._looking.solve(spec, prompt, columns, repeat=repeat)
        return (None, None) if looked is None else (looked.reply, looked)

    def _fail(self, cell: Cell, item: Item, repeat: int, error: Exception) -> None:
        reason = self._asker.tally.fail(cell.model, error)
        record = failed_record(cell, item.id, repeat, reason)
        timing: dict[str, Any] = {"seconds": 0.0}
        if not isinstance(error, Transient | Permanent):  # our own mistake: keep what shows it
            timing["traceback"] = storable("".join(traceback.format_exception(error)))
        self._journal.append(None, canonical(record), b"null", timing)
        self._progress.advance(cell.model, cell.domain, "failed")


@asynccontextmanager
async def asking(*journals: Journal) -> AsyncIterator[asyncio.TaskGroup]:
    """Yield a group for the askers of a stage; journals reach the disk every second and at the end."""
    syncing = asyncio.create_task(_sync(journals))
    gc.freeze()  # what is loaded by now stays; the collector need not look at it again
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as many:  # every worker meets the same full disk
        raise many.exceptions[0] from None
    finally:
        gc.unfreeze()
        syncing.cancel()
        for journal in journals:
            journal.sync()


async def _sync(journals: tuple[Journal, ...]) -> None:
    while True:
        await asyncio.sleep(_SYNC_EVERY)
        for journal in journals:
            await asyncio.to_thread(journal.sync)


def trial_record(
    cell: Cell, repeat: int, prompt: Prompt, reply: Reply, answer: Answer
) -> dict[str, Any]:
    """Return the line of trials.jsonl of an answered trial."""
    completion = reply.completion
    record: dict[str, Any] = {
        "schema_version": 1,
        "domain": cell.domain,
        "model": cell.model,
        "setting": cell.setting,
        "mode": cell.mode,
        "item": prompt.item_id,
        "repeat": repeat,
        "template": prompt.template,
        "prompt_sha256": sha256_hex(prompt.encoded),
        "response": reply.key,
        "text": completion.text,
        "finish": completion.finish,
        "prompt_tokens": completion.usage.prompt,
        "completion_tokens": completion.usage.completion,
        "outcome": answer.outcome,
        "value": answer.value,
        "reason": answer.reason,
    }
    if completion.likelihoods is not None:
        record["likelihoods"] = list(completion.likelihoods)
    if completion.drawn is not None:
        record["drawn"] = completion.drawn
    if prompt.order is not None:
        record["order"] = list(prompt.order)
    if prompt.retrieved:
        record["retrieved"] = [list(place) for place in prompt.retrieved]
    if prompt.own_source is not None:
        record["own_source"] = prompt.own_source
    return record


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
        "reason": storable(reason[:300]),
    }
