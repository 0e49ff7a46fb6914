"""The stage that answers: a unit is a trial; every answer is journalled before it is used.

A reply goes to the response store, and with its reading and score to the journal, before anything
else happens with it.
"""

import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from medassay.bank.folder import StoredItems
from medassay.context.tools.loop import ToolLoop, ToolTrace
from medassay.core.canonical import canonical, sha256_hex
from medassay.core.catch import caught
from medassay.core.json import storable
from medassay.core.records.answer import Answer
from medassay.core.records.completion import Reply, ReplyColumns
from medassay.core.records.item import Item
from medassay.core.records.model import ModelSpec
from medassay.core.records.prompt import Prompt
from medassay.core.records.sealed_object import ScoreObject, TimingObject, TrialObject
from medassay.core.records.trial import TrialKey
from medassay.core.secret import secrets
from medassay.errors import NotAsked, Permanent, Transient
from medassay.kinds.catalog import parser_of
from medassay.kinds.read_answer import read_answer
from medassay.kinds.scoring import TaskScorer
from medassay.model.spec import ModelsSource, load_models
from medassay.own_code.process import close_all, run_beside
from medassay.runner.ask import Asker
from medassay.runner.budget import Budget
from medassay.runner.context import embedding_entry
from medassay.runner.progress import Progress
from medassay.runner.schedule import Cell, Schedule
from medassay.storage.journal import RecordWriter

if TYPE_CHECKING:
    from medassay.context.tools.toolbox import Toolbox


Attempt = tuple[
    int, str
]  # how often it was asked before, and the scope of the last wish to ask again
FIRST: Attempt = (0, "")


class AnswerStage:
    """The trials of a schedule, each asked, read, scored and journalled."""

    def __init__(
        self,
        schedule: Schedule,
        asker: Asker,
        journal: RecordWriter,
        progress: Progress,
        *,
        tool_loop: ToolLoop | None = None,
        again: Mapping[int, Attempt] | None = None,
    ) -> None:
        self._tool_loop = tool_loop
        self._again = again or {}
        self._schedule = schedule
        self._asker = asker
        self._journal = journal
        self._progress = progress
        self._scoring = TaskScorer(schedule.task)
        task = schedule.task
        self._parsers = {form: parser_of(task, form) for form, name in task.parsers.items() if name}
        runs_own = task.own is not None and bool(task.own.parts)
        self._beside = ThreadPoolExecutor(1) if runs_own else None
        self.specs = schedule.specs

    def units(self, model: str) -> Iterator[int]:
        """Yield the numbers of a model's trials."""
        return self._schedule.numbers(model)

    def records(self, unit: int) -> tuple[int, ...]:
        """Return the number of the record that a trial leaves in the journal: its own."""
        return (unit,)

    def length(self, unit: int) -> int:
        """Return how long the prompt of a trial is, in characters."""
        cell, item, _ = self._schedule.trial(unit)
        return len(self._schedule.prompt(cell, item).encoded)

    async def close(self) -> None:
        """Close the connections of tools, and end the processes of own code."""
        if self._beside is not None:
            close_all()
            self._beside.shutdown(wait=False)
        if self._tool_loop is not None:
            await self._tool_loop.close()

    async def do(self, spec: ModelSpec, unit: int) -> None:
        """Ask one trial; nothing is left behind where it may not be asked."""
        cell, item, repeat = self._schedule.trial(unit)
        attempt, scope = self._again.get(unit, FIRST)
        try:
            with caught() as errors:
                prompt = self._schedule.prompt(cell, item)
                if prompt.max_tokens == 0:
                    raise Permanent(self._schedule.room.refusal(spec, item, prompt))
                columns: ReplyColumns = {
                    "bank": self._schedule.bank(cell).version,
                    "item": item.id,
                    "revision": item.revision,
                }
                reply, trace = await self._ask(cell, spec, prompt, columns, repeat, attempt)
        except NotAsked:
            return
        if errors:
            self._fail(cell, item, repeat, errors[0])
            return
        if reply is None:
            return
        work = partial(self._worth, cell, item, repeat, prompt, reply)
        # Code of the user may take its time: it must not hold up those who are being asked.
        beside = self._beside
        answer, score = work() if beside is None else await run_beside(beside, work)
        record = trial_record(cell, repeat, prompt, reply, answer)
        if attempt:
            record["attempt"], record["again"] = attempt, scope
        if trace is not None:
            record |= {"tool_use": msgspec.structs.asdict(trace.use)}
            record |= {"trace": trace.calls()}
        seconds = round(reply.completion.seconds, 6)
        usage = reply.completion.usage
        timing: TimingObject = {
            "seconds": seconds,
            "replayed": reply.replayed,
            "tokens": [usage.prompt, usage.completion],
        }
        if usage.cached:
            timing |= {"cached": usage.cached}
        if usage.reasoning:
            timing |= {"reasoning": usage.reasoning}
        self._journal.append(unit, canonical(record), canonical(score), timing)
        self._progress.advance(cell.model, cell.domain, answer.outcome)

    def _worth(
        self, cell: Cell, item: Item, repeat: int, prompt: Prompt, reply: Reply
    ) -> tuple[Answer, ScoreObject]:
        """Return what a reply says, and the line of its score."""
        schedule, completion = self._schedule, reply.completion
        parser = self._parsers[item.form]
        answer = read_answer(item, prompt, completion, parser, schedule.plan.extraction)
        place = trial_place(cell, item.id, repeat)
        return answer, self._scoring.record(item, place, answer, completion.text)

    async def _ask(
        self,
        cell: Cell,
        spec: ModelSpec,
        prompt: Prompt,
        columns: ReplyColumns,
        repeat: int,
        attempt: int,
    ) -> tuple[Reply | None, ToolTrace | None]:
        """Return the reply, and in the mode `tools` how it came about."""
        which = {"repeat": repeat, "attempt": attempt}
        if cell.mode != "tools" or self._tool_loop is None or spec.is_baseline:
            return await self._asker.ask(spec, prompt, columns, **which), None
        trace = await self._tool_loop.solve(spec, prompt, columns, **which)
        return (None, None) if trace is None else (trace.reply, trace)

    def _fail(self, cell: Cell, item: Item, repeat: int, error: Exception) -> None:
        reason = self._asker.tally.fail(error)
        record = failed_record(cell, item.id, repeat, reason)
        timing: TimingObject = {"seconds": 0.0}
        if not isinstance(error, Transient | Permanent):  # our own mistake: keep what shows it
            trace_text = secrets.redact("".join(traceback.format_exception(error)))
            timing["traceback"] = storable(trace_text)
        self._journal.append(None, canonical(record), b"null", timing)
        self._progress.advance(cell.model, cell.domain, "failed")


class AnswerStageSpec(msgspec.Struct, frozen=True):
    """What another process needs to answer trials of a schedule: it reads the items from the run.

    Parameters
    ----------
    models_file : where the entries of tools and indexes are; only read in the mode `tools`
    majority : what the baseline of that name answers, by the letters of an item
    again : number of a trial that is asked once more → which attempt this is, and why
    """

    schedule: Schedule
    models_file: ModelsSource
    majority: Mapping[str, str]
    again: Mapping[int, Attempt] = msgspec.field(default_factory=dict)

    @property
    def specs(self) -> Mapping[str, ModelSpec]:
        """Return who is asked."""
        return self.schedule.specs

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Return the names of the keys of tools."""
        rules, contexts = self.schedule.plan.tools, self.schedule.contexts
        names = () if rules is None else (rules.search_key_env, rules.pubmed_key_env)
        entry = embedding_entry(None if contexts is None else contexts.index)
        if rules is None or not entry:
            return names
        embedder = load_models(self.models_file)[entry]
        return (*names, embedder.api_key_env, *embedder.headers_env.values())

    def open(
        self,
        run: Path,
        asker: Asker,
        journal: RecordWriter,
        progress: Progress,
        secrets: Mapping[str, str],
    ) -> AnswerStage:
        """Return the stage over the items of the run; see `stage`."""
        items = StoredItems(run / "items.jsonl", frozenset(self.schedule.domains), of_run=True)
        items.trust()
        self.schedule.read_from(items)
        return self.stage(asker, journal, progress, secrets)

    def stage(
        self, asker: Asker, journal: RecordWriter, progress: Progress, secrets: Mapping[str, str]
    ) -> AnswerStage:
        """Return the stage, with the tools of its plan where it has any."""
        toolbox = open_toolbox(self.schedule, self.models_file, secrets, asker.budget)
        tool_loop = None if toolbox is None else ToolLoop(toolbox, asker)
        return AnswerStage(
            self.schedule, asker, journal, progress, tool_loop=tool_loop, again=self.again
        )


def open_toolbox(
    schedule: Schedule, models_file: ModelsSource, secrets: Mapping[str, str], budget: Budget
) -> "Toolbox | None":
    """Return the tools of a plan with the keys that it names, None for a plan without the mode
    `tools`.
    """
    rules, contexts = schedule.plan.tools, schedule.contexts
    if rules is None:
        return None
    from medassay.context.tools.toolbox import Toolbox

    searched = "doc_retrieval" in rules.use and contexts is not None
    retrieval = schedule.plan.retrieval
    return Toolbox(
        rules,
        secrets=secrets,
        index=contexts.index if searched and contexts is not None else None,
        use=lambda index: index.use(models_file, secrets, budget),
        query_prefix="" if retrieval is None else retrieval.query_prefix,
    )


def trial_place(cell: Cell, item_id: str, repeat: int) -> TrialKey:
    """Return what names a trial of a cell, and its place in a sealed run."""
    return (cell.domain, cell.model, cell.setting, cell.mode, item_id, repeat)


def trial_record(
    cell: Cell, repeat: int, prompt: Prompt, reply: Reply, answer: Answer
) -> TrialObject:
    """Return the line of trials.jsonl of an answered trial."""
    completion = reply.completion
    record: TrialObject = {
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
        record |= {"likelihoods": list(completion.likelihoods)}
    if completion.drawn is not None:
        record |= {"drawn": completion.drawn}
    if prompt.max_tokens is not None:
        record |= {"max_tokens": prompt.max_tokens}
    if prompt.order is not None:
        record |= {"order": list(prompt.order)}
    if prompt.retrieved:
        record |= {"retrieved": [list(place) for place in prompt.retrieved]}
    if prompt.own_source is not None:
        record |= {"own_source": prompt.own_source}
    return record


def failed_record(cell: Cell, item_id: str, repeat: int, reason: str) -> TrialObject:
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
