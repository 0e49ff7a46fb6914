"""An inquiry: a study asks one model about many subjects, on any engine.

What it makes of the replies comes back in order.

Replies go to the response store as those of runs do, so that an interrupted inquiry is resumed
by asking again. The journal of an inquiry only carries what workers found, and is removed at its
end; what a killed one left, by a later one.

A subject of which nothing usable was said is asked about once more on request, or because the token
limit was raised; its replies of each time are stored apart. What was usable is never asked for
again, also where a request names it.
"""

import datetime as dt
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.catch import caught
from medassay.core.json import storable
from medassay.core.records.completion import Completion
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import EngineRules
from medassay.core.records.prompt import Prompt
from medassay.errors import IncompleteError, InputError, ModelError, NotAsked
from medassay.model.chats import named_secrets, provide
from medassay.runner.ask import Asker, request_constant, sampling_of
from medassay.runner.engine.catalog import engine_of
from medassay.runner.progress import Progress, ProgressFactory, raise_if_interrupted, watching
from medassay.runner.spending import spending
from medassay.runner.stages import RunContext, work
from medassay.storage.asked import LastAttempt, note_attempts, read_attempts
from medassay.storage.journal import JOURNAL, Journal, RecordWriter
from medassay.storage.object_store import mirror_of
from medassay.storage.response import ResponseStore
from medassay.storage.run import STUDIES, Run, create_run

_RULES = EngineRules(shard=16)  # studies are small, and asked about one subject several times
_LEFT_AFTER = dt.timedelta(days=7)  # no study takes so long
_STAMP = "%Y%m%dT%H%M%SZ"
_REASON = 300  # characters
_APART = 1000  # attempts of one time, at most
FAILED = "failed"  # stands for all subjects of which nothing usable was said


class UnusableReply(Exception):
    """Say that what a model said is of no use, and why."""


class Ask(Protocol):
    """Asks the model of an inquiry."""

    async def __call__(self, prompt: Prompt, *, repeat: int = 0, attempt: int = 0) -> Completion:
        """Return the reply; `repeat` and `attempt` tell askings of one prompt apart.

        Raises
        ------
        Transient, Permanent
            When there is none after the retries.
        """


class Questions(Protocol):
    """What is asked about each of some subjects; sent to other processes as it is."""

    @property
    def study(self) -> str:
        """Return the name of the study, noted beside each reply."""

    @property
    def repeats(self) -> int:
        """Return how many subjects in a row ask one prompt."""

    def __len__(self) -> int:
        """Return how many subjects there are; they are numbered from 0."""

    def handle(self, subject: int) -> str:
        """Return how a person names a subject: the same whatever else is asked about."""

    def first(self, subject: int) -> Prompt:
        """Return what is asked first about a subject; its length orders the work."""

    async def about(self, subject: int, ask: Ask) -> Any:
        """Return what is found about one subject, as JSON values.

        Raise `UnusableReply` where the replies are of no use.
        """


class Finding(msgspec.Struct, frozen=True):
    """What came of one subject: JSON values, or why there are none, and whether that is since no
    reply came.
    """

    value: Any = None
    problem: str = ""
    unanswered: bool = False


def prompt_batch(  # noqa: PLR0913 -- what every study that asks is given
    what: str,
    questions: Questions,
    spec: ModelSpec,
    *,
    secrets: Mapping[str, str],
    workspace: Path,
    engine: str = "local",
    watch: ProgressFactory | None = None,
    again: Collection[str] = (),
) -> list[Finding]:
    """Ask a model about every subject; return what was found, by subject.

    Parameters
    ----------
    what : the plural of what is made, for progress
    workspace : folder of responses/ and inquiries/
    engine : "local", or "ray" for several processes or machines
    again : handles of subjects that are asked about once more if nothing usable was said of them,
        or "failed" for all such

    Raises
    ------
    InputError
        When there is no such engine, or no such subject.
    ModelError
        When the model is given up, or answers nothing at all.
    IncompleteError
        When a bound of the workspace allows no more.
    Interrupted
        When the user stopped; replies are kept.
    """
    if not len(questions):
        return []
    _refuse_strange(again, questions)
    responses = workspace / "responses"
    spread = engine_of(engine, _RULES, responses, named_secrets(spec, secrets))
    with (
        ResponseStore(responses) as store,
        _inquiry_run(workspace, what, spec) as run,
        spending(workspace, f"{STUDIES}/{questions.study}", {spec.id: spec}, store) as budget,
    ):
        chats = {spec.id: provide(spec, secrets)}
        asker = Asker({spec.id: spec}, chats, store, budget)
        context = RunContext(asker=asker, engine=spread, watch=watch)
        journal = Journal(run.path / JOURNAL, len(questions))
        sizes = Counter({(spec.id, what): len(questions)})
        bases = [_basis(questions, subject, spec) for subject in range(len(questions))]
        former = read_attempts(workspace)
        before = {n: former[basis] for n, basis in enumerate(bases) if basis in former}
        stage_spec = PromptBatchSpec(what, questions, spec, before, tuple(again))
        try:
            with watching(watch, what, sizes, Counter()) as progress, closing(journal):
                stage = stage_spec.open(run.path, asker, journal, progress, {})
                job = context.job(
                    run, stage, stage_spec, journal, progress, lambda record: int(record["subject"])
                )
                work(run, what, context, job)
        finally:
            records = {
                line.number: msgspec.json.decode(line.record, type=SubjectRecord)
                for line in journal.lines()
            }
            _note(workspace, records, bases, before)
    if asker.tally.over_budget:
        raise IncompleteError(
            f"{asker.tally.over_budget}; what was said is kept, the same command resumes with a"
            " larger one"
        )
    findings = {subject: record.finding for subject, record in records.items()}
    answered = sum(not finding.unanswered for finding in findings.values())
    given_up = [*asker.tally.given_up.values(), *asker.tally.failures]
    if asker.tally.given_up or (asker.tally.failed and not answered):
        raise ModelError(f"model '{spec.id}' does not answer: {given_up[0]}")
    raise_if_interrupted(job.stop, f"{what} are done", answered, len(questions))
    return [findings[subject] for subject in range(len(questions))]


@contextmanager
def _inquiry_run(workspace: Path, what: str, spec: ModelSpec) -> Iterator[Run]:
    """Yield the folder of an inquiry, removed at its end; what killed ones left is removed, too."""
    now = dt.datetime.now(dt.UTC)
    for inquiry in _inquiries(workspace):
        if inquiry.name < f"{now - _LEFT_AFTER:{_STAMP}}":
            _remove(inquiry)
    manifest: ManifestObject = {
        "what": what,
        "model": spec.id,
        "created_at": f"{now:%Y-%m-%dT%H:%M:%SZ}",
    }
    run = create_run(workspace / STUDIES, f"{now:{_STAMP}}-{token_hex(4)}", manifest)
    try:
        yield run
    finally:
        _remove(run.path)


def _inquiries(workspace: Path) -> list[Path]:
    """Return the folders of inquiries, here or in the object store of a workspace."""
    studies = workspace / STUDIES
    names = {path.name for path in studies.glob("*")}
    if (mirror := mirror_of(workspace)) is not None:
        names |= {name.split("/")[1] for name in mirror.listed(STUDIES)}
    return [studies / name for name in sorted(names)]


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if (mirror := mirror_of(folder)) is not None:
        mirror.remove(mirror.name(folder))


def _refuse_strange(again: Collection[str], questions: Questions) -> None:
    handles = [questions.handle(subject) for subject in range(len(questions))]
    if strange := sorted(set(again) - {*handles, FAILED}):
        raise InputError(
            f"--again {strange[0]}: nothing is asked about it; expected {FAILED}, or one of"
            f" {', '.join(handles[:5])}" + (" …" if len(handles) > len(handles[:5]) else "")
        )


def _basis(questions: Questions, subject: int, spec: ModelSpec) -> str:
    """Return the hash of what decides the replies about a subject: limits of tokens and time, and
    how many ask at once, do not.
    """
    constant = request_constant(spec, sampling_of(spec, 0))
    constant["sampling"].pop("max_tokens")
    first_hash = sha256_hex(questions.first(subject).asked)
    return sha256_hex(canonical([questions.study, questions.handle(subject), first_hash, constant]))


def _note(
    workspace: Path,
    records: Mapping[int, "SubjectRecord"],
    bases: list[str],
    before: Mapping[int, LastAttempt],
) -> None:
    """Write down how the subjects were asked about, where that is news.

    What failed has no replies that could count.
    """
    notes = {
        subject: LastAttempt(
            basis=bases[subject],
            times=record.times,
            max_tokens=record.max_tokens,
            usable=record.outcome == "answered",
        )
        for subject, record in records.items()
        if record.outcome != "failed"
    }
    note_attempts(
        workspace, [entry for n, entry in sorted(notes.items()) if before.get(n) != entry]
    )


class SubjectRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a journal holds of a subject: the value found, or why there is none.

    Attributes
    ----------
    times : how often it was asked about before; replies of each time are stored apart
    max_tokens : the limit of its replies
    """

    subject: int
    times: int
    max_tokens: int
    outcome: Literal["answered", "invalid", "failed"]
    value: Any = UNSET
    reason: str | UnsetType = UNSET

    @property
    def finding(self) -> Finding:
        """Return what was found."""
        if self.outcome == "answered":
            return Finding(self.value)
        return Finding(problem=self.reason or "", unanswered=self.outcome == "failed")


class PromptBatchStage(msgspec.Struct):
    """The subjects of an inquiry; a unit is a subject."""

    stage_spec: "PromptBatchSpec"
    asker: Asker
    journal: RecordWriter
    progress: Progress

    @property
    def specs(self) -> Mapping[str, ModelSpec]:
        """Return who is asked."""
        return self.stage_spec.specs

    def units(self, model: str) -> Iterator[int]:
        """Yield the subjects."""
        yield from range(len(self.stage_spec.questions))

    def records(self, unit: int) -> tuple[int, ...]:
        """Return the number of what a subject leaves in the journal: its own."""
        return (unit,)

    def length(self, unit: int) -> int:
        """Return how long what is asked about a subject is."""
        return len(self.stage_spec.questions.first(unit).encoded)

    async def close(self) -> None:
        """Nothing to close."""

    async def do(self, spec: ModelSpec, unit: int) -> None:
        """Ask about one subject, and journal what was found; that nothing was is found, too."""
        times, limit = 0, spec.reply_tokens
        before = self.stage_spec.before.get(unit)
        # A note whose replies are gone, or that nobody wrote, counts for nothing.
        if before is not None and self._is_stored(unit, spec, before):
            times, limit = before.times, before.max_tokens
        try:
            record, replayed = await self._about(unit, replace(spec, max_tokens=limit), times)
            # What is stored of this time is all there; it may be asked for once more, and perhaps
            # was, by a process that was killed.
            while replayed and self._wants_more(record, spec):
                times += 1
                record, replayed = await self._about(unit, spec, times)
        except NotAsked:
            return
        self.journal.append(unit, canonical(msgspec.to_builtins(record)), b"null", {})
        self.progress.advance(spec.id, self.stage_spec.what, record.outcome)

    def _wants_more(self, record: SubjectRecord, spec: ModelSpec) -> bool:
        """Return whether a subject of which all replies are stored is asked about once more."""
        if record.outcome != "invalid":
            return False
        handle = self.stage_spec.questions.handle(record.subject)
        named = {FAILED, handle} & {*self.stage_spec.again}
        return bool(named) or record.max_tokens < spec.reply_tokens

    def _is_stored(self, unit: int, spec: ModelSpec, before: LastAttempt) -> bool:
        limited = replace(spec, max_tokens=before.max_tokens)
        first = self.stage_spec.questions.first(unit)
        repeat = unit % self.stage_spec.questions.repeats
        attempt = before.times * _APART
        return self.asker.is_stored(limited, first, repeat=repeat, attempt=attempt)

    async def _about(self, unit: int, spec: ModelSpec, times: int) -> tuple[SubjectRecord, bool]:
        """Return what was found about a subject, and whether all replies were stored before.

        Parameters
        ----------
        spec : the entry, with the token limit that holds
        times : how often the subject was asked about before; replies of each time are stored apart
        """
        questions, replayed = self.stage_spec.questions, []

        async def ask(prompt: Prompt, *, repeat: int = 0, attempt: int = 0) -> Completion:
            columns = {"item": prompt.item_id, "study": questions.study}
            number = times * _APART + attempt
            reply = await self.asker.ask(spec, prompt, columns, repeat=repeat, attempt=number)
            if reply is None:
                raise NotAsked(self.asker.tally.over_budget)
            replayed.append(reply.replayed)
            return reply.completion

        about: dict[str, Any] = {}
        with caught() as errors:
            about = {"outcome": "answered", "value": await questions.about(unit, ask)}
        for error in errors:
            if isinstance(error, UnusableReply):
                about = {"outcome": "invalid", "reason": storable(str(error)[:_REASON])}
            else:
                reason = self.asker.tally.fail(error)
                about = {"outcome": "failed", "reason": storable(reason[:_REASON])}
        record = SubjectRecord(subject=unit, times=times, max_tokens=spec.reply_tokens, **about)
        return record, bool(replayed) and all(replayed)


class PromptBatchSpec(msgspec.Struct, frozen=True):
    """What another process needs to ask about subjects of an inquiry.

    `before` is how subjects were asked about in former inquiries, `again` names what is asked about
    once more.
    """

    what: str
    questions: Questions
    spec: ModelSpec
    before: Mapping[int, LastAttempt] = msgspec.field(default_factory=dict)
    again: tuple[str, ...] = ()
    secret_names: tuple[str, ...] = ()
    majority: Mapping[str, str] = msgspec.field(default_factory=dict)  # there is no bank

    @property
    def specs(self) -> Mapping[str, ModelSpec]:
        """Return who is asked."""
        return {self.spec.id: self.spec}

    def open(
        self,
        run: Path,
        asker: Asker,
        journal: RecordWriter,
        progress: Progress,
        secrets: Mapping[str, str],
    ) -> PromptBatchStage:
        """Return the stage."""
        return PromptBatchStage(self, asker, journal, progress)
