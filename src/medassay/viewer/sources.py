"""The lines of a run that the index did not read yet: of a sealed run its files side by side, of
one under way its journal.
"""

import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec

from medassay.core.records.trial import TrialKey, TrialLine
from medassay.errors import IntegrityError
from medassay.storage.journal import JOURNAL, VERDICTS
from medassay.viewer.entry import (
    NOWHERE,
    Count,
    EntryMaker,
    Extent,
    IndexedTrial,
    ScoreHead,
    TimingHead,
    TrialHead,
)

T = TypeVar("T")
TRIALS, SCORES, TIMINGS = "trials.jsonl", "scores.jsonl", "timings.jsonl"
VERDICT_LINES = f"{VERDICTS}.jsonl"
_NO_TIMING = TimingHead()


class VerdictHead(TrialLine, frozen=True, kw_only=True):
    """What the index reads of a verdict in a journal."""

    repeat: Count
    judge: str = ""
    outcome: str = ""
    score: float | None = None
    attempt: Count = 0


class IndexedVerdict(NamedTuple):
    """A verdict of a run under way, and where its line lies."""

    head: VerdictHead
    extent: Extent


class Batch(msgspec.Struct):
    """What was read in one go, and how far each file is read now."""

    trials: list[IndexedTrial] = msgspec.field(default_factory=list)
    verdicts: list[IndexedVerdict] = msgspec.field(default_factory=list)
    positions: dict[str, int] = msgspec.field(default_factory=dict)


class _TrialPart(msgspec.Struct):
    record: TrialHead
    score: ScoreHead | None = None
    timing: TimingHead | None = None


class _VerdictPart(msgspec.Struct):
    record: VerdictHead


_trial = msgspec.json.Decoder(TrialHead).decode
_score = msgspec.json.Decoder(ScoreHead).decode
_timing = msgspec.json.Decoder(TimingHead).decode
_place = msgspec.json.Decoder(TrialLine).decode
_trial_part = msgspec.json.Decoder(_TrialPart).decode
_verdict_part = msgspec.json.Decoder(_VerdictPart).decode
FileNumber = Callable[[str], int]


def read_sealed(
    folder: Path,
    positions: Mapping[str, int],
    number_of: FileNumber,
    maker: EntryMaker,
    limit: int,
) -> Batch:
    """Return the next trials of a sealed run, at most `limit`, each with its score and timing.

    Raises
    ------
    IntegrityError
        Naming the file and the byte at which there is no such line.
    """
    batch = Batch(positions=dict(positions))
    with ExitStack() as stack:
        trials, scores, timings, verdicts = (
            _opened(stack, folder / name, positions.get(name, 0))
            for name in (TRIALS, SCORES, TIMINGS, VERDICT_LINES)
        )
        if trials is None or scores is None:
            missing = TRIALS if trials is None else SCORES
            raise IntegrityError(f"{missing}: missing; a sealed run has it, restore the file")
        waiting = _Verdicts(verdicts, number_of)
        for line, at in _lines(trials):
            if len(batch.trials) == limit:
                break
            try:
                head = _decoded(_trial, line, TRIALS, at)
                score, score_extent = _beside(scores, SCORES, _score, number_of)
                if score is None or score.place != head.place:
                    raise IntegrityError(
                        f"{SCORES} at byte {score_extent.at}: not the score of the trial in"
                        f" {TRIALS} at byte {at}; restore the files"
                    )
                timing, _ = _beside(timings, TIMINGS, _timing, number_of)
                extents = (Extent(number_of(TRIALS), at, len(line)), score_extent)
                verdict_extent = waiting.of(head.place)
            except IntegrityError:
                if not batch.trials:  # what stands before the damage is shown all the same
                    raise
                break
            batch.trials.append(
                maker.entry(head, score, timing or _NO_TIMING, (*extents, verdict_extent))
            )
            batch.positions |= {TRIALS: at + len(line), SCORES: scores.tell()}
            batch.positions[VERDICT_LINES] = waiting.at
            if timings is not None:
                batch.positions[TIMINGS] = timings.tell()
    return batch


class _Verdicts:
    """The verdicts of a sealed run, which stand in the order of its trials."""

    def __init__(self, file: BinaryIO | None, number_of: FileNumber) -> None:
        self._file = file
        self._number = -1 if file is None else number_of(VERDICT_LINES)
        self.at = 0 if file is None else file.tell()  # where those begin that nobody asked for yet

    def of(self, place: TrialKey) -> Extent:
        """Return where the verdicts on a trial lie together."""
        if self._file is None:
            return NOWHERE
        start = self.at
        self._file.seek(start)
        for line in self._file:
            other = _decoded(_place, line, VERDICT_LINES, self.at).place
            if other < place:
                raise IntegrityError(
                    f"{VERDICT_LINES} at byte {self.at}: a verdict on no trial of {TRIALS}; restore"
                    " the files"
                )
            if other != place:
                break
            self.at += len(line)
        return Extent(self._number, start, self.at - start) if self.at > start else NOWHERE


def read_journals(
    folder: Path,
    positions: Mapping[str, int],
    number_of: FileNumber,
    maker: EntryMaker,
    limit: int,
) -> Batch:
    """Return what a run under way wrote since, at most about `limit` lines; a line that is just
    being written is left for the next time.

    Raises
    ------
    IntegrityError
        As `read_sealed`.
    """
    batch = Batch(positions=dict(positions))
    segments = sorted((folder / JOURNAL).glob("*.jsonl"))
    # What is made from another run, judged again say, has the trials and no journal of them.
    journalled = bool(segments) or not (folder / TRIALS).exists()
    damage: list[IntegrityError] = []
    for path in segments if journalled else [folder / TRIALS]:
        name = path.relative_to(folder).as_posix()
        try:
            for line, at in _grown(path, name, batch, limit - len(batch.trials)):
                part = (
                    _decoded(_trial_part, line, name, at)
                    if journalled
                    else _TrialPart(_decoded(_trial, line, name, at))
                )
                extents = (Extent(number_of(name), at, len(line)), NOWHERE, NOWHERE)
                timing = part.timing or _NO_TIMING
                batch.trials.append(maker.entry(part.record, part.score, timing, extents))
        except IntegrityError as error:  # the other segments are read all the same
            damage.append(error)
    if len(batch.trials) < limit:
        for path in sorted((folder / VERDICTS).glob("*.jsonl")):
            name = path.relative_to(folder).as_posix()
            try:
                for line, at in _grown(path, name, batch, limit - len(batch.verdicts)):
                    head = _decoded(_verdict_part, line, name, at).record
                    extent = Extent(number_of(name), at, len(line))
                    batch.verdicts.append(IndexedVerdict(head, extent))
            except IntegrityError as error:
                damage.append(error)
    if damage and not (batch.trials or batch.verdicts):
        raise damage[0]
    return batch


def _grown(path: Path, name: str, batch: Batch, limit: int) -> Iterator[tuple[bytes, int]]:
    """Yield the whole lines of a file from where it was read to, with their offsets; note how far
    they were read.
    """
    start = batch.positions.get(name, 0)
    try:
        if limit <= 0 or _size(path) <= start:
            return
        with path.open("rb") as file:
            file.seek(start)
            for number, (line, at) in enumerate(_lines(file)):
                if number == limit or not line.endswith(b"\n"):
                    return
                yield line, at
                batch.positions[name] = at + len(line)
    except FileNotFoundError:  # sealed meanwhile
        return


def unread_bytes(folder: Path, positions: Mapping[str, int], *, sealed: bool) -> tuple[int, int]:
    """Return how many bytes of trials are read, and how many there are."""
    names: Sequence[str] = [TRIALS]
    if not sealed:
        segments = sorted((folder / JOURNAL).glob("*.jsonl"))
        names = [path.relative_to(folder).as_posix() for path in segments] or names
    sizes = [_size(folder / name) for name in names if (folder / name).exists()]
    return sum(positions.get(name, 0) for name in names), sum(sizes)


def _opened(stack: ExitStack, path: Path, offset: int) -> BinaryIO | None:
    if not path.exists():
        return None
    _size(path)
    file = stack.enter_context(path.open("rb"))
    file.seek(offset)
    return file


def _size(path: Path) -> int:
    """Return the bytes of a file; a pipe would be waited for without end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise IntegrityError(f"{path.name}: no plain file")
    return status.st_size


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    at = file.tell()
    for line in iter(file.readline, b""):
        yield line, at
        at += len(line)


def _beside(
    file: BinaryIO | None,
    name: str,
    decode: Callable[[bytes], T],
    number_of: FileNumber,
) -> tuple[T | None, Extent]:
    """Return the next line of a file beside the trials, None where there is none, and where it
    lies.
    """
    if file is None:
        return None, NOWHERE
    at = file.tell()
    line = file.readline()
    if not line:
        return None, Extent(-1, at, 0)
    return _decoded(decode, line, name, at), Extent(number_of(name), at, len(line))


def _decoded(decode: Callable[[bytes], T], line: bytes, name: str, at: int) -> T:
    try:
        return decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise IntegrityError(f"{name} at byte {at}: no such record ({error})") from None
