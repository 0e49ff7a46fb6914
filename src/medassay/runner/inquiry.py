"""An inquiry: a study asks one model about many subjects, on any engine; what it makes of the replies comes back in order.

Replies go to the response store as those of runs do, so that an inquiry that was cut off is resumed by asking again. The
journal of an inquiry only carries what workers found, and is removed at its end; what a killed one left, by a later one.
"""

import datetime as dt
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

import msgspec

from medassay.core.canonical import canonical
from medassay.core.jsontext import storable
from medassay.core.model import ModelSpec
from medassay.core.plan import EngineRules
from medassay.core.trial import Completion, Prompt
from medassay.errors import ModelError, NotAsked
from medassay.runner.asking import Asker
from medassay.runner.engine.catalog import engine_of
from medassay.runner.progress import Progress
from medassay.runner.providing import named_secrets, provide
from medassay.runner.spending import spending
from medassay.runner.stages import Means, Watch, hear, watching, work
from medassay.storage.journal import Journal, Writing
from medassay.storage.mirror import mirror_of
from medassay.storage.response import ResponseStore
from medassay.storage.run import JOURNAL, STUDIES, Run, create_run

_RULES = EngineRules(shard=16)  # studies are small, and asked about one subject several times
_LEFT_AFTER = dt.timedelta(days=7)  # no study takes so long
_STAMP = "%Y%m%dT%H%M%SZ"
_REASON = 300  # characters


class Useless(Exception):
    """Say that what a model said is of no use, and why."""


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
        """Return what is found about one subject, as JSON values; raise `Useless` where the replies are of no use."""


@dataclass(frozen=True)
class Finding:
    """What came of one subject: JSON values, or why there are none, and whether that is since no reply came."""

    value: Any = None
    problem: str = ""
    unanswered: bool = False


def inquire(
    what: str,
    questions: Questions,
    spec: ModelSpec,
    *,
    secrets: Mapping[str, str],
    workspace: Path,
    engine: str = "local",
    watch: Watch | None = None,
) -> list[Finding]:
    """Ask a model about every subject; return what was found, by subject.

    Parameters
    ----------
    what : the plural of what is made, for progress
    workspace : folder of responses/
    engine : "local", or "ray" for several processes or machines

    Raises
    ------
    InputError
        When there is no such engine.
    ModelError
        When the model is given up, or answers nothing at all.
    Interrupted
        When the user stopped; replies are kept.
    """
    if not len(questions):
        return []
    responses = workspace / "responses"
    spread = engine_of(engine, _RULES, responses, named_secrets(spec, secrets))
    with (
        ResponseStore(responses) as store,
        _kept(workspace, what, spec) as run,
        spending(workspace, f"{STUDIES}/{questions.study}", {spec.id: spec}, store) as purse,
    ):
        chats = {spec.id: provide(spec, secrets)}
        asker = Asker({spec.id: spec}, chats, store, purse, seed=0)
        means = Means(asker=asker, engine=spread, watch=watch)
        journal = Journal(run.path / JOURNAL, len(questions))
        sizes = Counter({(spec.id, what): len(questions)})
        portable = PortableInquiry(what, questions, spec)
        with watching(watch, what, sizes, Counter()) as progress, closing(journal):
            stage = portable.open(run.path, asker, journal, progress, {})
            todo = means.todo(run, stage, portable, journal, progress, _subject)
            work(run, what, means, todo)
        found = {line.number: _finding(line.record) for line in journal.lines()}
    answered = sum(not one.unanswered for one in found.values())
    given_up = [*asker.tally.given_up.values(), *asker.tally.failures]
    if asker.tally.given_up or (asker.tally.failed and not answered):
        raise ModelError(f"model '{spec.id}' does not answer: {given_up[0]}")
    hear(todo.stop, f"{what} are done", answered, len(questions))
    return [found[subject] for subject in range(len(questions))]


@contextmanager
def _kept(workspace: Path, what: str, spec: ModelSpec) -> Iterator[Run]:
    """Yield the folder of an inquiry, removed at its end; what killed ones left is removed, too."""
    now = dt.datetime.now(dt.UTC)
    for left in _inquiries(workspace):
        if left.name < f"{now - _LEFT_AFTER:{_STAMP}}":
            _remove(left)
    made = {"what": what, "model": spec.id, "created_at": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
    run = create_run(workspace / STUDIES, f"{now:{_STAMP}}-{token_hex(4)}", made)
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

        try:
            outcome, told = await self._about(unit, ask)
        except NotAsked:
            return
        record = canonical({"subject": unit, "outcome": outcome, **told})
        self.journal.append(unit, record, b"null", {})
        self.progress.advance(spec.id, self.what, outcome)

    async def _about(self, unit: int, ask: Ask) -> tuple[str, dict[str, Any]]:
        """Return the outcome of asking about a subject with the value found, or with the reason why there is none."""
        try:
            return "answered", {"value": await self.questions.about(unit, ask)}
        except NotAsked:
            raise
        except Useless as error:
            return "invalid", {"reason": storable(str(error)[:_REASON])}
        except Exception as error:  # noqa: BLE001 -- as for trials: a subject fails, the study goes on
            reason = self.asker.tally.fail(error)
            return "failed", {"reason": storable(reason[:_REASON])}


@dataclass(frozen=True)
class PortableInquiry:
    """What another process needs to ask about subjects of an inquiry."""

    what: str
    questions: Questions
    spec: ModelSpec
    secret_names: tuple[str, ...] = ()
    majority: Mapping[str, str] = field(default_factory=dict)  # there is no bank

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
