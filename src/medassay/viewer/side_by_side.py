"""Two models on the same items: who is right where, and in which words their replies differ."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import Indel

from medassay.errors import InputError
from medassay.viewer.entry import GRADES
from medassay.viewer.index import RunIndex, remembered

PAIRS_A_PAGE = 10
_COMPARED = 3_000  # words of each reply that are compared; the time grows with their product
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_RIGHT, _WRONG = GRADES.index("right"), GRADES.index("wrong")
# What two answers to one item may have to do with each other; an answer may have several.
VERDICTS = {
    "only-a": f"a.grade = {_RIGHT} AND b.grade < {_RIGHT}",
    "only-b": f"b.grade = {_RIGHT} AND a.grade < {_RIGHT}",
    "both-right": f"a.grade = {_RIGHT} AND b.grade = {_RIGHT}",
    "both-wrong": f"a.grade = {_WRONG} AND b.grade = {_WRONG}",
    "a-more": "a.score > b.score",
    "b-more": "b.score > a.score",
    "read-apart": "a.value IS NOT b.value OR a.outcome != b.outcome",
    "no-score": "a.score IS NULL OR b.score IS NULL",
}
_PAIRS = """
FROM trial a JOIN trial b ON b.item = a.item AND b.model = ? AND b.domain = a.domain
     AND b.setting = ? AND b.mode = ? AND b.repeat = a.repeat
WHERE a.model = ? AND a.setting = ? AND a.mode = ?
"""


class RunRow(NamedTuple):
    """A row of a run: a model in a setting and a mode."""

    model: str
    setting: str
    mode: str

    def __str__(self) -> str:
        return " · ".join(self)


class ComparedPairs(NamedTuple):
    """The pairs of two rows: how many in all and of each verdict, and one page."""

    n_pairs: int
    counts: dict[str, int]
    page: list[tuple[int, int]]


class DiffPart(NamedTuple):
    """A piece of a text, and whether the other text has it."""

    text: str
    common: bool


@remembered
def rows_of(index: RunIndex) -> list[RunRow]:
    """Return the rows of a run, sorted."""
    rows = index.rows(
        "SELECT m.text, s.text, o.text FROM (SELECT DISTINCT model, setting, mode FROM trial) t"
        " JOIN name m ON m.id = t.model JOIN name s ON s.id = t.setting"
        " JOIN name o ON o.id = t.mode"
    )
    return sorted(RunRow(*row) for row in rows)


def compare_rows(
    index: RunIndex, a: RunRow, b: RunRow, *, verdict: str, domain: str, page: int
) -> ComparedPairs:
    """Return the trials of two rows on the same items.

    Parameters
    ----------
    verdict : one of `VERDICTS`, or "" for all pairs
    domain : of the items, "" for all

    Raises
    ------
    InputError
        Naming the row that the run does not have.
    """
    numbers: list[int] = []
    for row in (b, a):
        for kind, name in zip(("model", "setting", "mode"), row, strict=True):
            number = index.number_of_name(kind, name)
            if number is None:
                raise InputError(f"run {index.run.id}: no answers of '{row}' are there by now")
            numbers.append(number)
    source, values = _PAIRS, list(numbers)
    if domain:
        source += " AND a.domain = ?"
        number = index.number_of_name("domain", domain)
        values.append(-1 if number is None else number)
    n_pairs, counts = _counts(index, source, tuple(values), index.version)
    chosen = f" AND ({VERDICTS[verdict]})" if verdict else ""
    rows = index.rows(
        f"SELECT a.n, b.n {source}{chosen} ORDER BY a.n LIMIT ? OFFSET ?",
        *values,
        PAIRS_A_PAGE,
        PAIRS_A_PAGE * (page - 1),
    )
    return ComparedPairs(n_pairs, counts, [(first, second) for first, second in rows])


@lru_cache(maxsize=64)
def _counts(
    index: RunIndex, source: str, values: Sequence[int], version: int
) -> tuple[int, dict[str, int]]:
    del version
    sums = ", ".join(f"total({condition})" for condition in VERDICTS.values())
    [[n_pairs, *counts]] = index.rows(f"SELECT count(*), {sums} {source}", *values)
    return int(n_pairs), dict(zip(VERDICTS, map(int, counts), strict=True))


def differences(first: str, second: str) -> tuple[list[DiffPart], list[DiffPart]]:
    """Return both texts in pieces that the other has, or has not; word by word.

    Beyond a few thousand words the rest is left as it is, marked as common.

    Examples
    --------
    >>> a, b = differences("give 5 mg", "give 10 mg")
    >>> [part.text for part in a if not part.common], [part.text for part in b if not part.common]
    (['5'], ['10'])
    """
    (tokens_a, rest_a), (tokens_b, rest_b) = _tokens(first), _tokens(second)
    a: list[DiffPart] = []
    b: list[DiffPart] = []
    for change in Indel.opcodes(tokens_a, tokens_b):
        common = change.tag == "equal"
        _add(a, "".join(tokens_a[change.src_start : change.src_end]), common=common)
        _add(b, "".join(tokens_b[change.dest_start : change.dest_end]), common=common)
    _add(a, rest_a, common=True)
    _add(b, rest_b, common=True)
    return a, b


def _tokens(text: str) -> tuple[list[str], str]:
    tokens: list[str] = []
    for match in _TOKEN.finditer(text):
        if len(tokens) == _COMPARED:
            return tokens, text[match.start() :]
        tokens.append(match[0])
    return tokens, ""


def _add(parts: list[DiffPart], text: str, *, common: bool) -> None:
    if not text:
        return
    if parts and parts[-1].common == common:
        parts[-1] = DiffPart(parts[-1].text + text, common)
    else:
        parts.append(DiffPart(text, common))
