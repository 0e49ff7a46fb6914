"""Official exams as questions: from a CSV, or from the text of a PDF and a table of its keys.

What cannot be a question (no text, not four or five options, no key) is named, and so is what the
board withdrew.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import msgspec

from medassay.bank.builder import numbered_csv
from medassay.core.keyed import KeyedRecord
from medassay.errors import InputError
from medassay.synthesis.source import SourceDocument

MISPARSED, IMPUGNED, NEGATIVE = "misparsed", "impugned", "asks for what is wrong"
_WITHDRAWN = re.compile(
    r"impugned|withdrawn|annulled|cancelled|anulada|impugnada|gestrichen|-", re.IGNORECASE
)
_MIN_OPTIONS, _MAX_OPTIONS = 4, 5  # options
_NUMBERED = re.compile(r"\s*(\d{1,3})\s*[.)\u2013-]+\s+(\S.*)")
_LETTERED = re.compile(r"\s*\(?([A-Ea-e])[.)]\s+(\S.*)")


class _ExamRow(msgspec.Struct, frozen=True, kw_only=True):
    """The cells of a question in a table of an exam; empty where there is no such column."""

    unique_id: str = ""
    exam_id: str = ""
    question: str = ""
    op1: str = ""
    op2: str = ""
    op3: str = ""
    op4: str = ""
    op5: str = ""
    cop: str = ""
    year: str = ""
    category: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options: an exam has four, or five; one that is empty between others is no
        option.
        """
        options = [self.op1, self.op2, self.op3, self.op4, self.op5]
        while options and not options[-1]:
            options.pop()
        return tuple(options)


COLUMNS = _ExamRow.__struct_fields__


class ExamQuestion(KeyedRecord, msgspec.Struct, frozen=True, kw_only=True):
    """One question of an exam; `dropped` says why it is none, `cop` is the right option from 1."""

    KEYS: ClassVar = ("exam_id", "question", "options", "cop", "year", "category", "dropped")

    exam_id: str
    question: str
    options: tuple[str, ...]
    cop: int | None
    year: int | None = None
    category: str = ""
    dropped: str = ""

    @property
    def right(self) -> str:
        """Return the right option; of questions that were not dropped."""
        return self.options[(self.cop or 1) - 1]


def read_exam_table(path: Path, columns: Mapping[str, str]) -> Iterator[ExamQuestion]:
    """Yield the questions of a CSV; `columns` are those that bear other names than `COLUMNS`.

    Raises
    ------
    InputError
        When a needed column is absent, or an id occurs twice.
    """
    for name in columns:
        if name not in COLUMNS:
            raise InputError(f"exam columns: '{name}' is unknown; known are {', '.join(COLUMNS)}")
    rows = [*_table_rows(path, columns)]
    once = Counter(row.exam_id for row in rows)
    seen_ids: set[str] = set()
    for number, row in enumerate(rows, 1):
        # In official tables exam_id often names the exam, not the question.
        own_id = row.exam_id if once[row.exam_id] == 1 else ""
        name = row.unique_id or own_id or f"{row.exam_id or path.stem}-{number:03}"
        if name in seen_ids:
            raise InputError(f"{path} row {number + 1}: the id '{name}' occurs twice")
        seen_ids.add(name)
        yield _exam_question(name, row.question, row.options, row)


def _table_rows(path: Path, columns: Mapping[str, str]) -> Iterator[_ExamRow]:
    needed = ("question", *(f"op{n}" for n in range(1, _MIN_OPTIONS + 1)), "cop")
    for _, row in numbered_csv(path):
        absent = [columns.get(name, name) for name in needed if columns.get(name, name) not in row]
        if absent:
            raise InputError(
                f"{path}: no column '{absent[0]}'; found {', '.join(row)}; name yours in"
                " 'exam.columns'"
            )
        cells = {name: (row.get(columns.get(name, name)) or "").strip() for name in COLUMNS}
        yield _ExamRow(**cells)


def read_exam_text(source: SourceDocument, keys: Mapping[int, str]) -> Iterator[ExamQuestion]:
    """Yield the questions of an exam's text: a number, the question, then its options by number or
    letter.

    Raises
    ------
    InputError
        When no question is found.
    """
    questions = dict(_questions(source.text))
    if not questions:
        raise InputError(
            f"{source.file}: no question found; expected lines as '12. Question' and '1. option' or"
            " 'a) option'"
        )
    for number in sorted(questions.keys() | keys.keys()):
        question, options = questions.get(number, ("", []))
        key = _ExamRow(cop=keys.get(number, ""))
        yield _exam_question(f"{source.name}-{number:03}", question, tuple(options), key)


def read_keys(path: Path) -> dict[int, str]:
    """Return question's number → key as it stands in a CSV with the columns number and cop.

    Raises
    ------
    InputError
        Naming the row that is wrong.
    """
    keys: dict[int, str] = {}
    for row, cells in numbered_csv(path):
        text, key = cells.get("number"), cells.get("cop")
        if text is None or key is None:
            raise InputError(f"{path}: columns {', '.join(cells)}; expected number, cop")
        if not re.fullmatch("[0-9]{1,4}", text.strip()):
            raise InputError(f"{path} row {row}: number '{text}'; expected a whole number")
        number = int(text)
        if number in keys:
            raise InputError(f"{path} row {row}: number {number} occurs twice")
        keys[number] = key.strip()
    return keys


def _exam_question(
    exam_id: str, question: str, options: tuple[str, ...], row: _ExamRow
) -> ExamQuestion:
    key = row.cop.strip()
    is_key = re.fullmatch("[1-5a-eA-E]", key)
    cop = "12345abcde".find(key.lower()) % _MAX_OPTIONS + 1 if is_key else 0
    question, options = _one_line(question), tuple(map(_one_line, options))
    is_printable = all(text and text.isprintable() for text in (question, *options))
    same = {" ".join(option.casefold().split()) for option in options}
    dropped = ""
    if not key or _WITHDRAWN.fullmatch(key) or key == "0":
        dropped = IMPUGNED
    elif (
        not is_printable
        or not _MIN_OPTIONS <= len(options) <= _MAX_OPTIONS
        or len(same) < len(options)
        or not 1 <= cop <= len(options)
    ):
        dropped = MISPARSED
    return ExamQuestion(
        exam_id=exam_id,
        question=question,
        options=options,
        cop=None if dropped else cop,
        year=int(row.year) if re.fullmatch("[0-9]{4}", row.year) else None,
        category=row.category,
        dropped=dropped,
    )


class _MarkedText(msgspec.Struct):
    """A line that begins with a number or a letter, and the lines that go on with it."""

    place: int  # its number, or that of its letter from 1
    lines: list[str]
    letter: bool


def _questions(text: str) -> Iterator[tuple[int, tuple[str, list[str]]]]:
    """Yield number → (question, options)."""
    marked = [*_marked_texts(text)]
    number, question_text, options = 0, "", list[str]()
    for at, marked_line in enumerate(marked):
        if _is_option(
            marked_line, number, len(options), marked[at + 1] if at + 1 < len(marked) else None
        ):
            options.append(_join_lines(marked_line.lines))
        elif not marked_line.letter and marked_line.place > number:
            if number:
                yield number, (question_text, options)
            number, question_text, options = marked_line.place, _join_lines(marked_line.lines), []
        elif options:
            options[-1] = f"{options[-1]} {_join_lines(marked_line.lines)}"
    if number:
        yield number, (question_text, options)


def _marked_texts(text: str) -> Iterator[_MarkedText]:
    current: _MarkedText | None = None
    for line in text.splitlines():
        numbered, lettered = _NUMBERED.match(line), _LETTERED.match(line)
        if numbered is None and lettered is None:
            if current is not None and line.strip():
                current.lines.append(line)
            continue
        if current is not None:
            yield current
        if numbered is not None:
            current = _MarkedText(int(numbered[1]), [numbered[2]], letter=False)
        elif lettered is not None:
            current = _MarkedText(ord(lettered[1].lower()) - 96, [lettered[2]], letter=True)
    if current is not None:
        yield current


def _is_option(
    marked_line: _MarkedText, number: int, so_far: int, after: _MarkedText | None
) -> bool:
    """Return whether a marked line is the next option of a question.

    "4." may be the fourth option of question 3, or question 4: it is a question where options begin
    anew behind it.
    """
    if not number or marked_line.place != so_far + 1 or marked_line.place > _MAX_OPTIONS:
        return False
    begins_anew = after is not None and after.place == 1
    return marked_line.letter or marked_line.place != number + 1 or not begins_anew


def _join_lines(lines: list[str]) -> str:
    return _one_line(" ".join(lines))


def _one_line(text: str) -> str:
    return " ".join(text.split())


_NEGATIVE_ANY = re.compile(r"\b(?:incorrect|except|false|not correct)\b", re.IGNORECASE)
_NEGATIVE_CAPITALS = re.compile(r"\bNOT\b")


def asks_for_wrong(question: str) -> bool:
    """Return whether a question asks for what is wrong: such a question has no answer without its
    options.

    Only whole words count: incorrect, except, false, "not correct" in any case, and NOT in
    capitals.

    Examples
    --------
    >>> asks_for_wrong("Which drug is NOT indicated?"), asks_for_wrong(
    ...     "Which drug is not indicated?")
    (True, False)
    """
    return bool(_NEGATIVE_ANY.search(question) or _NEGATIVE_CAPITALS.search(question))
