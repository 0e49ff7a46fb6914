"""An inquiry: a study asks one model about many subjects, on any engine; what it makes of the replies comes back in order.

Replies go to the response store as those of runs do, so that an inquiry that was cut off is resumed by asking again. The
journal of an inquiry only carries what workers found, and is removed at its end.
"""

import datetime as dt
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

import msgspec

from medassay.core.canonical import canonical
from medassay.core.jsontext import storable
from medassay.core.model import ModelSpec
from medassay.core.plan import Budget, EngineRules
from medassay.core.trial import Completion, Prompt
from medassay.errors import IncompleteError, ModelError
from medassay.runner.asking import Asker
from medassay.runner.engine.catalog import engine_of
from medassay.runner.progress import Progress
from medassay.runner.providing import all_named_secrets, provide
from medassay.runner.stages import Means, Watch, hear, watching, work
from medassay.storage.journal import Journal, Writing
from medassay.storage.mirror import mirror_of
from medassay.storage.response import ResponseStore
from medassay.storage.run import JOURNAL, Run, create_run

STUDIES = "studies"  # of a workspace: journals of inquiries under way
_RULES = EngineRules(shard=100)  # subjects: each is asked about several times
_LEFT_AFTER = 24 * 3600.0  # seconds without a change: nobody is at work on it


class Ask(Protocol):
    """Asks the model of an inquiry."""

    async def __call__(
        self, prompt: Prompt, *, repeat: int = 0, attempt: int = 0
    ) -> Completion:
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

    def __len__(self) -> int:
        """Return how many subjects there are; they are numbered from 0."""

    def length(self, subject: int) -> int:
        """Return how long what is sent is, roughly, in characters."""

    async def about(self, subject: int, ask: Ask) -> Any:
        """Return what is found about one subject, as JSON values; raise ValueError where the replies are of no use."""


@dataclass(frozen=True)
class Finding:
    """What came of one subject: JSON values, or why there are none, and whether that is since no reply came."""

    value: Any = None
    problem: str = ""
    unanswered: bool = False


def inquire(  # noqa: PLR0913 -- each is a part of what is asked
    what: str,
    questions: Questions,
    spec: ModelSpec,
    *,
    secrets: Mapping[str, str],
    workspace: Path,
    engine: str = "local",
    seed: int = 0,
    watch: Watch | None = None,
) -> list[Finding]:
    """Ask a model about every subject; return what was found, by subject.

    Parameters
    ----------
    what : the plural of what is made, for progress
    workspace : folder of responses/
    engine : "local", or "ray" for several processes or machines
    seed : sent where the entry says so

    Raises
    ------
    Interrupted
        When the user stopped; replies are kept.
    """
    if not len(questions):
        return []
    responses = workspace / "responses"
    spread = engine_of(engine, _RULES, responses, all_named_secrets([spec], secrets))
    with ResponseStore(responses) as store, _kept(workspace, what, spec) as run:
        chats = {spec.id: provide(spec, secrets)}
        asker = Asker({spec.id: spec}, chats, store, Budget(), seed=seed)
        means = Means(asker=asker, engine=spread, watch=watch)
        journal = Journal(run.path / JOURNAL, len(questions))
        sizes = Counter({(spec.id, what): len(questions)})
        with watching(watch, what, sizes, Counter()) as progress, closing(journal):
            portable = PortableInquiry(what, questions, spec)
            stage = portable.open(run.path, asker, journal, progress, {})
            todo = means.todo(run, stage, portable, journal, progress, _subject)
            work(run, what, means, todo)
        hear(todo.stop, f"{what} are made", journal.done, len(questions))
        found = {line.number: _finding(line.record) for line in journal.lines()}
    if len(found) < len(questions):
        raise IncompleteError(
            f"{len(questions) - len(found)} of {len(questions)} {what} were not asked for; what was said is kept, "
            "the same command goes on"
        )
    return [found[subject] for subject in range(len(questions))]


@contextmanager
def _kept(workspace: Path, what: str, spec: ModelSpec) -> Iterator[Run]:
    """Yield the folder of an inquiry, removed at its end; what killed ones left is removed, too."""
    studies = workspace / STUDIES
    for left in studies.glob("*"):
        times = [path.stat().st_mtime for path in (left, *left.rglob("*")) if path.exists()]
        if times and time.time() - max(times) > _LEFT_AFTER:
            _remove(left)
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    told = {"what": what, "model": spec.id, "created_at": now}
    run = create_run(studies, token_hex(8), told)
    try:
        yield run
    finally:
        _remove(run.path)
        with suppress(OSError):  # others are at work there
            studies.rmdir()


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if (mirror := mirror_of(folder)) is not None:
        mirror.remove(mirror.name(folder))


def _subject(record: Mapping[str, Any]) -> int:
    return int(record["subject"])


def _finding(record: bytes) -> Finding:
    told = msgspec.json.decode(record)
    if told["outcome"] == "answered":
        return Finding(told["value"])
    return Finding(problem=told["reason"], unanswered=told["outcome"] == "failed")


@dataclass
class Inquiring:
    """The subjects of an inquiry; a unit is a subject."""

    what: str
    questions: Questions
    spec: ModelSpec
    asker: Asker
    journal: Writing
    progress: Progress
    specs: Mapping[str, ModelSpec] = field(init=False)

    def __post_init__(self) -> None:
        self.specs = {self.spec.id: self.spec}

    def units(self, model: str) -> Iterator[int]:
        """Yield the subjects."""
        yield from range(len(self.questions))

    def records(self, unit: int) -> tuple[int, ...]:
        """Return the number of what a subject leaves in the journal: its own."""
        return (unit,)

    def length(self, unit: int) -> int:
        """Return how long what is asked about a subject is."""
        return self.questions.length(unit)

    async def close(self) -> None:
        """Nothing to close."""

    async def do(self, spec: ModelSpec, unit: int) -> None:
        """Ask about one subject, and journal what was found; that nothing was is found, too."""

        async def ask(prompt: Prompt, *, repeat: int = 0, attempt: int = 0) -> Completion:
            columns = {"item": prompt.item_id, "study": self.questions.study}
            reply = await self.asker.ask(spec, prompt, columns, repeat=repeat, attempt=attempt)
            assert reply is not None  # an inquiry has no budget
            return reply.completion

        record: dict[str, Any] = {"subject": unit}
        try:
            record |= {"outcome": "answered", "value": await self.questions.about(unit, ask)}
        except ModelError as error:
            reason = storable(self.asker.tally.fail(spec.id, error))
            record |= {"outcome": "failed", "reason": reason}
        except ValueError as error:
            record |= {"outcome": "invalid", "reason": storable(str(error))}
        self.journal.append(unit, canonical(record), b"null", {})
        failed = record["outcome"] != "answered"
        self.progress.advance(spec.id, self.what, "failed" if failed else "answered")


@dataclass(frozen=True)
class PortableInquiry:
    """What another process needs to ask about subjects of an inquiry."""

    what: str
    questions: Questions
    spec: ModelSpec
    secret_names: tuple[str, ...] = ()
    majority: Mapping[str, str] = field(default_factory=dict)  # no baseline is asked

    @property
    def specs(self) -> Mapping[str, ModelSpec]:
        """Return who is asked."""
        return {self.spec.id: self.spec}

    def open(
        self,
        run: Path,
        asker: Asker,
        journal: Writing,
        progress: Progress,
        secrets: Mapping[str, str],
    ) -> Inquiring:
        """Return the stage."""
        return Inquiring(self.what, self.questions, self.spec, asker, journal, progress)
