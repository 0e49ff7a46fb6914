"""A workshop: the folder in which items are made, and its journal, from the source's page to the
released revision.

Every step writes one line, and each line holds the hash of the one before it: whoever keeps the
last hash can tell whether anything before it was changed. A step is done when its line is written;
a step whose inputs changed is done anew, and the old line stays. A torn last line, of a process
that was killed, is dropped and its step repeated.
"""

import datetime as dt
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.json import parse_record, record_as
from medassay.core.private import make_folder, open_file
from medassay.errors import IncompleteError, InputError, IntegrityError
from medassay.storage.jsonl import append_line
from medassay.storage.ledger import START, chained
from medassay.synthesis.records import ReleaseNote

JOURNAL = "journal.jsonl"
Step = Literal[
    "plan",  # what is wanted
    "source",  # a document was read
    "text",  # its text stream
    "graph",  # its decision graph
    "paths",  # the ways through it
    "refine",  # one way in uniform words
    "question",  # a case for one way
    "draft",  # a private item
    "verdict",  # a reviewer's opinion of a draft
    "end",  # the last draft of a topic that was not accepted
    "exam",  # one question of an exam
    "rephrase",  # an exam question as an open one
    "choice",  # the better of two versions
    "only",  # whether a key is the only right answer
    "translate",  # an item in another language
    "review",  # a model's opinion of a flawed item
    "votes",  # a sheet of evaluators' votes
    "item",  # a record as a bank would hold it
    "decision",  # what a person decided
    "release",  # a version of the bank
]
Status = Literal["made", "queued", "dropped", "accept", "change", "keep", "remove"]
Place = tuple[str, str]  # step, subject
T = TypeVar("T")
BY_PROGRAM = {"program": "medassay"}


class StepAuthor(msgspec.Struct, frozen=True, kw_only=True):
    """Who did a step: a model with its family, or a person; neither is medassay itself."""

    model: str | None = None
    family: str | None = None
    person: str | None = None

    @property
    def name(self) -> str:
        """Return the name of the person or model."""
        return self.person or self.model or "medassay"


class EventLine(msgspec.Struct, frozen=True, kw_only=True, rename={"sources": "from"}):
    """What a line of a journal says.

    Attributes
    ----------
    step, status : a `Step` and a `Status`, or those of another version
    basis : hash of what the step was made from
    sources : steps and subjects that it was made from
    given : what the model or person was shown, where that is more than the sources
    calls : each asking of a model, with its reply
    together : whether a person decided of several at once
    max_tokens : limit of the reply of a step that failed
    """

    step: str
    subject: str
    status: str
    at: str
    by: StepAuthor = StepAuthor()
    result: Any = None
    note: str = ""
    basis: str = ""
    sources: list[Place] = []
    given: Any = None
    calls: list[dict[str, Any]] = []
    together: bool = False
    max_tokens: int | None = None


class Event(msgspec.Struct, frozen=True, dict=True):
    """One line of a journal; `record` as it is hashed, `line` what it says."""

    number: int
    hash: str
    record: Mapping[str, Any]

    @cached_property
    def line(self) -> EventLine:
        """Return what the line says."""
        return record_as(self.record, EventLine, f"{JOURNAL} line {self.number}")

    @property
    def place(self) -> Place:
        """Return step and subject."""
        return self.line.step, self.line.subject

    @property
    def status(self) -> str:
        """Return how the step ended."""
        return self.line.status

    @property
    def result(self) -> Any:
        """Return what was made, None where nothing was."""
        return self.line.result

    def result_as(self, kind: type[T]) -> T:
        """Return what was made as a record, or another type.

        Raises
        ------
        IntegrityError
            When it is something else.
        """
        return record_as(self.result, kind, f"{JOURNAL} line {self.number}: result")

    def shown_as(self, kind: type[T]) -> T:
        """Return what the model or person was shown, as `result_as` returns a result."""
        return record_as(self.line.given, kind, f"{JOURNAL} line {self.number}: given")

    @property
    def note(self) -> str:
        """Return what was said besides, such as why there is no result."""
        return self.line.note


def basis_of(*inputs: Any) -> str:
    """Return the hash of what a step is made from: equal inputs, equal step."""
    return sha256_hex(canonical(msgspec.to_builtins(inputs)))[:16]


class Workshop:
    """A workshop's journal, read; `open_workshop` opens it for writing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[Event] = []
        self._latest: dict[Place, Event] = {}
        self._done: dict[tuple[str, str, str], Event] = {}
        self._by_hash: dict[str, Event] = {}
        self._file: int | None = None
        self._end = 0
        path = folder / JOURNAL
        if path.is_file():
            self._read(path)

    @property
    def account(self) -> str:
        """Return the name under which what it costs is written down.

        It stays when the folder is moved.
        """
        return f"workshops/{self.folder.name}-{self.events[0].hash[:8]}"

    def _read(self, path: Path) -> None:
        prev = START
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break  # torn: its process was killed while it wrote
                prev = self._take(line, number, prev)
                self._end += len(line)

    def _take(self, line: bytes, number: int, prev: str) -> str:
        where = f"{self.folder.name}/{JOURNAL} line {number}"
        try:
            line_record = parse_record(line, where)
            record, claimed = line_record["record"], line_record["hash"]
            is_event = isinstance(record, dict) and {"step", "subject", "status"} <= record.keys()
        except (InputError, KeyError, TypeError):
            raise IntegrityError(
                f"{where}: not a line that was written; restore the file"
            ) from None
        expected = (
            {"record": record, "prev": prev, "hash": chained(prev, record)} if is_event else None
        )
        if line_record != expected or canonical(line_record) + b"\n" != line:
            raise IntegrityError(f"{where}: does not follow the line before it; restore the file")
        self._keep(Event(number, claimed, record))
        return str(claimed)

    def _keep(self, event: Event) -> None:
        self.events.append(event)
        self._latest[event.place] = event
        self._done[(*event.place, event.line.basis)] = event
        self._by_hash[event.hash] = event

    def latest(self, step: str, subject: str) -> Event | None:
        """Return how a step last ended for a subject, None if it never did."""
        return self._latest.get((step, subject))

    def done(self, step: str, subject: str, basis: str) -> Event | None:
        """Return how a step ended if it was made from the same inputs."""
        return self._done.get((step, subject, basis))

    def times(self, step: str, subject: str, *bases: str) -> int:
        """Return how often a step was done from some inputs."""
        return sum(
            event.place == (step, subject) and event.line.basis in bases for event in self.events
        )

    def is_latest(self, step: str, subject: str, basis: str) -> bool:
        """Return whether a step was last done from these inputs.

        What counts now may have been done before something else was.
        """
        latest = self.latest(step, subject)
        return latest is not None and latest.line.basis == basis

    def line(self, line_hash: str) -> Event | None:
        """Return the event with a hash, None if there is none."""
        return self._by_hash.get(line_hash)

    def all_latest(self, step: Step) -> list[Event]:
        """Return how a step last ended, for every subject, in the order in which they first
        came.
        """
        return [event for (name, _), event in self._latest.items() if name == step]

    def note(
        self,
        step: Step,
        subject: str,
        status: Status,
        *,
        basis: str,
        by: Mapping[str, str] = BY_PROGRAM,
        sources: Sequence[Place] = (),
        **more: Any,
    ) -> Event:
        """Write a line: on the disk when this returns.

        Parameters
        ----------
        by : who did it: a model, a person or medassay
        sources : steps and subjects that it was made from
        more : result, a record or JSON values; note, calls
        """
        if self._file is None:
            raise RuntimeError("the workshop is open for reading only")
        record = {
            "at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "step": step,
            "subject": subject,
            "status": status,
            "basis": basis,
            "by": dict(by),
            "from": [list(place) for place in sources],
            **msgspec.to_builtins(more),
        }
        prev = self.events[-1].hash if self.events else START
        line_hash = chained(prev, record)
        line = canonical({"record": record, "prev": prev, "hash": line_hash}) + b"\n"
        append_line(self._file, self.folder / JOURNAL, line)
        os.fsync(self._file)
        event = Event(len(self.events) + 1, line_hash, record)
        self._keep(event)
        return event

    def note_once(
        self, step: Step, subject: str, status: Status, *, basis: str, **more: Any
    ) -> Event:
        """Return how medassay's own step ended with these inputs; write it down where it is new."""
        done = self.done(step, subject, basis)
        return done or self.note(step, subject, status, basis=basis, **more)

    def note_latest(
        self, step: Step, subject: str, result: Any, *, basis: str = "", **more: Any
    ) -> None:
        """Write down a result, unless the last line of this step has the same basis.

        Default basis: the hash of the result.
        """
        basis = basis or basis_of(result)
        if not self.is_latest(step, subject, basis):
            self.note(step, subject, "made", basis=basis, result=result, **more)

    def history(self, subject: str) -> list[Event]:
        """Return every event of a subject and of all that it was made from, in order.

        Raises
        ------
        InputError
            When there is no such subject.
        """
        waiting = [event for event in self.events if event.line.subject == subject]
        if not waiting:
            raise InputError(f"{self.folder}: nothing is called '{subject}'")
        events_by_number: dict[int, Event] = {}
        while waiting:
            event = waiting.pop()
            if event.number not in events_by_number:
                events_by_number[event.number] = event
                places = {*event.line.sources}
                waiting += [event for event in self.events[: event.number] if event.place in places]
        places = {event.place for event in events_by_number.values()}
        # What people decided on the way, and the versions of the bank that hold it.
        for event in self.events:
            step, made_from = event.line.step, event.line.sources
            decided = step == "decision" and any(tuple(place) in places for place in made_from)
            if decided or (step == "release" and subject in event.result_as(ReleaseNote).items):
                events_by_number[event.number] = event
        return [events_by_number[number] for number in sorted(events_by_number)]


@contextmanager
def open_workshop(folder: Path) -> Iterator[Workshop]:
    """Open a workshop for writing, for oneself; it is made where there is none.

    Raises
    ------
    GateError
        When another process works in it.
    IntegrityError
        Naming the first line that is not what was written.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; expected a folder for the workshop")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / JOURNAL).exists():
        raise InputError(
            f"{folder}: holds other files and no {JOURNAL}; expected a new folder or a workshop"
        )
    make_folder(folder)
    file = open_file(folder / JOURNAL, os.O_RDWR | os.O_APPEND)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise IncompleteError(f"{folder}: another process works in this workshop") from None
        workshop = Workshop(folder)
        os.ftruncate(file, workshop._end)
        workshop._file = file
        yield workshop
    finally:
        os.close(file)


def read_workshop(folder: Path) -> Workshop:
    """Return a workshop for reading.

    Raises
    ------
    InputError
        When there is none.
    """
    if not (folder / JOURNAL).is_file():
        raise InputError(
            f"{folder}: no {JOURNAL}; expected a workshop, which `medassay bank synthesize` makes"
        )
    return Workshop(folder)


def by_person(name: str) -> dict[str, str]:
    """Return a person as who did something.

    Raises
    ------
    InputError
        When nobody is named.
    """
    if not name.strip() or not name.isprintable():
        raise InputError("nobody is named; say who decides with --by")
    return {"person": " ".join(name.split())}
