"""One trial whole: its lines as they stand in the run, and what is read in them."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from medassay.core.canonical import sha256_hex
from medassay.core.json import parse_record
from medassay.core.records.score import TrialScore
from medassay.core.records.sealed_object import ScoreObject, TrialObject, VerdictObject
from medassay.core.records.table_rows import score_columns
from medassay.core.records.trial import Trial, TrialKey
from medassay.core.reply.thoughts import strip_thoughts
from medassay.errors import InputError, IntegrityError
from medassay.storage.records import decode_trial
from medassay.viewer.index import NAMED, RunIndex
from medassay.viewer.sources import SCORES, VERDICT_LINES

_EXCERPT = 160  # characters of a reply in a table
_LARGE = 1 << 16  # bytes of a line that a table does not read for its excerpt


class _Part(msgspec.Struct):
    record: msgspec.Raw
    score: msgspec.Raw = msgspec.Raw(b"null")


class _Text(msgspec.Struct):
    text: str | None = None
    outcome: str = ""


class _TextPart(msgspec.Struct):
    record: _Text


_part = msgspec.json.Decoder(_Part).decode
_text = msgspec.json.Decoder(_Text).decode
_text_part = msgspec.json.Decoder(_TextPart).decode


class TrialRow(msgspec.Struct, frozen=True, kw_only=True):
    """A trial as a table shows it; see `IndexedTrial` for its numbers."""

    number: int
    domain: str
    model: str
    setting: str
    mode: str
    item: str
    repeat: int
    outcome: int
    reason: str
    scorer: str
    score: float | None
    grade: int | None
    value: str | None
    cut: bool
    spread: float | None
    length: int
    seconds: float
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    excerpt: str = ""

    @property
    def place(self) -> TrialKey:
        """Return what names the trial."""
        return (self.domain, self.model, self.setting, self.mode, self.item, self.repeat)


class TrialDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A trial with all that the run has about it by now.

    Attributes
    ----------
    sha256 : of its line in trials.jsonl
    document, trial : the line as it is, and as it is read
    score : the line of its score; None where it has none yet
    verdicts : of its judges
    """

    row: TrialRow
    sha256: str
    document: TrialObject
    trial: Trial
    score: ScoreObject | None
    verdicts: Sequence[VerdictObject]

    @property
    def reply(self) -> tuple[str, str]:
        """Return the reply without its thoughts, and the whole of it where it has some."""
        text = self.trial.text or ""
        spoken, _ = strip_thoughts(text)
        return (text, "") if spoken == text else (spoken, text)

    @property
    def columns(self) -> dict[str, Any]:
        """Return the columns of its score besides the score itself."""
        if self.score is None:
            return {}
        columns = score_columns(msgspec.convert(self.score, TrialScore))
        return {k: v for k, v in columns.items() if k not in ("score", "because")}


_COLUMNS = (
    "t.n, d.text, m.text, s.text, o.text, i.text, t.repeat, t.outcome, r.text, c.text, t.score,"
    " t.grade, t.value, t.cut, t.spread, t.length, t.seconds, t.prompt_tokens,"
    " t.completion_tokens, t.cost"
)
_JOINED = (
    "trial t JOIN name d ON d.id = t.domain JOIN name m ON m.id = t.model"
    " JOIN name s ON s.id = t.setting JOIN name o ON o.id = t.mode JOIN name i ON i.id = t.item"
    " JOIN name r ON r.id = t.reason JOIN name c ON c.id = t.scorer"
)
_FIELDS = (
    *("number", *NAMED[:4], "item", "repeat", "outcome", "reason", "scorer", "score", "grade"),
    *("value", "cut", "spread", "length", "seconds", "prompt_tokens", "completion_tokens", "cost"),
)


def trial_rows(index: RunIndex, numbers: Sequence[int], *, excerpts: bool = True) -> list[TrialRow]:
    """Return trials as a table shows them, in the order of their numbers as given."""
    marks = ",".join("?" * len(numbers))
    rows = index.rows(f"SELECT {_COLUMNS} FROM {_JOINED} WHERE t.n IN ({marks})", *numbers)
    by_number = {row[0]: row for row in rows}
    texts = _excerpts(index, numbers) if excerpts else {}
    return [
        TrialRow(**dict(zip(_FIELDS, by_number[n], strict=True)), excerpt=texts.get(n, ""))
        for n in numbers
        if n in by_number
    ]


def _excerpts(index: RunIndex, numbers: Sequence[int]) -> dict[int, str]:
    """Return the beginning of the reply of each trial; of a very long one, nothing."""
    marks = ",".join("?" * len(numbers))
    places = index.rows(
        f"SELECT t.n, f.name, t.at, t.size FROM trial t JOIN file f ON f.id = t.file"
        f" WHERE t.n IN ({marks})",
        *numbers,
    )
    texts = {}
    for number, name, at, size in places:
        if size > _LARGE:
            continue
        line = read_at(index.run.path, name, at, size)
        try:
            head = _text_part(line).record if _is_journal(name) else _text(line)
        except msgspec.DecodeError:
            raise IntegrityError(f"{name} at byte {at}: not the line that was indexed") from None
        spoken = strip_thoughts(head.text or "")[0] or head.text or ""
        text = " ".join(spoken[: 4 * _EXCERPT].split())
        texts[number] = text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
    return texts


def trial_detail(index: RunIndex, number: int) -> TrialDetail:
    """Return a trial with all that the run has about it.

    Raises
    ------
    InputError
        When it was replaced meanwhile, by the answer of a later attempt.
    IntegrityError
        When the run is not what was indexed.
    """
    rows = trial_rows(index, [number], excerpts=False)
    places = index.rows(
        "SELECT f.name, t.at, t.size, t.score_at, t.score_size, t.verdict_at, t.verdict_size"
        " FROM trial t JOIN file f ON f.id = t.file WHERE t.n = ?",
        number,
    )
    if not rows or not places:
        raise InputError(
            f"run {index.run.id}: trial {number} was asked again meanwhile; reload the table"
        )
    name, at, size, score_at, score_size, verdict_at, verdict_size = places[0]
    folder = index.run.path
    line, score = read_at(folder, name, at, size).removesuffix(b"\n"), b"null"
    if _is_journal(name):
        part = _decoded(line, name, at)
        line, score = bytes(part.record), bytes(part.score)
    elif score_size:
        score = read_at(folder, SCORES, score_at, score_size)
    verdicts = (
        _sealed_verdicts(folder, verdict_at, verdict_size)
        if index.sealed
        else _journalled_verdicts(index, number)
    )
    return TrialDetail(
        row=rows[0],
        sha256=sha256_hex(line),
        document=parse_record(line, name),
        trial=decode_trial(line, name, 0),
        score=parse_record(score, SCORES),
        verdicts=verdicts,
    )


def _sealed_verdicts(folder: Path, at: int, size: int) -> list[VerdictObject]:
    if size == 0:
        return []
    lines = read_at(folder, VERDICT_LINES, at, size).splitlines()
    return [parse_record(line, VERDICT_LINES) for line in lines]


def _journalled_verdicts(index: RunIndex, number: int) -> list[VerdictObject]:
    places = index.rows(
        "SELECT f.name, v.at, v.size FROM verdict v JOIN file f ON f.id = v.file"
        " WHERE v.trial = ? ORDER BY v.judge",
        number,
    )
    return [
        parse_record(bytes(_decoded(read_at(index.run.path, *place), *place[:2]).record), place[0])
        for place in places
    ]


def _decoded(line: bytes, name: str, at: int) -> _Part:
    try:
        return _part(line)
    except msgspec.DecodeError:
        raise IntegrityError(f"{name} at byte {at}: not the line that was indexed") from None


def _is_journal(name: str) -> bool:
    return "/" in name


def read_at(folder: Path, name: str, at: int, size: int) -> bytes:
    """Return some bytes of a file of a run.

    Raises
    ------
    InputError
        When the file is there no longer: the run was sealed, or removed.
    """
    try:
        file = os.open(folder / name, os.O_RDONLY)
    except FileNotFoundError:
        raise InputError(
            f"{name}: is there no longer; the run was sealed or removed meanwhile: reload the page"
        ) from None
    try:
        return os.pread(file, size, at)
    finally:
        os.close(file)


def neighbours(index: RunIndex, row: TrialRow) -> Mapping[str, list[TrialRow]]:
    """Return the other answers to the item of a trial: of the same model, and of others."""
    numbers = index.rows(
        "SELECT t.n FROM trial t JOIN name i ON i.id = t.item AND i.kind = 'item'"
        " JOIN name d ON d.id = t.domain WHERE i.text = ? AND d.text = ? AND t.n != ?"
        " ORDER BY t.n LIMIT 200",
        row.item,
        row.domain,
        row.number,
    )
    rows = trial_rows(index, [n for (n,) in numbers], excerpts=False)
    of_model = [other for other in rows if other.model == row.model]
    return {"own": of_model, "others": [other for other in rows if other.model != row.model]}
