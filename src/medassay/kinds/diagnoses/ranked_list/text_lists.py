"""Candidates in the lines of a reply: lists under marks here, the other layouts in files of their
own.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec.structs import replace

from medassay.kinds.diagnoses.ranked_list.candidate import CandidateList
from medassay.kinds.diagnoses.ranked_list.entry import ListEntry, split_entry
from medassay.kinds.diagnoses.ranked_list.markup import html_lists, plain_lines, tagged_names
from medassay.kinds.diagnoses.ranked_list.one_line import LABELLED, inline_marks, on_one_line
from medassay.kinds.diagnoses.ranked_list.outline import (
    MarkedList,
    OutlineLine,
    OutlinePoint,
    headings_of,
    is_section,
    lines_of,
    marked_lists,
)
from medassay.kinds.diagnoses.ranked_list.subject import Subject
from medassay.kinds.diagnoses.ranked_list.tables import comma_tables, tables
from medassay.kinds.diagnoses.ranked_list.unmarked import (
    heading_lists,
    labelled_names,
    plain_lists,
)

_STRENGTH = {
    "plus": 6,
    "number": 5,
    "word": 5,
    "roman": 4,
    "letter": 4,
    "bare plus": 4,
    "bullet": 2,
}
_FEWEST = {"bullet": 2, "letter": 2, "roman": 2, "bare": 3}
_ADVICE = re.compile(
    r"(?:please\s+|you\s+(?:should|could|can|may)\s+)?(?:see|go|call|consult|contact|seek|visit|"
    r"talk|speak|ask|get|take|drink|rest|make|schedule|"
    r"keep|avoid|stay|bring|write|describe|provide|share|tell|obtain|order|perform|check|refer|"
    r"monitor|review|repeat|start|discuss|book|"
    r"suchen|gehen|rufen|wenden|kontaktieren|vereinbaren|sprechen|konsultieren|lassen|trinken|"
    r"notieren|"
    r"consult[ea]r?|acud[ai]r?|vaya|ir\s+a|llam[ea]r?|busqu?[ea]r?|contact[ea]r?|habl[ea]r?|"
    r"evit[ea]r?|tom[ea]r?|pid[ae]r?|solicit[ea]r?|no\s+\w+[aei]r(?:se)?|"
    r"consult(?:ez|er)|all(?:ez|er)|appel(?:ez|er)|contact(?:ez|er)|parl(?:ez|er)|pren(?:ez|dre)|"
    r"évit(?:ez|er)|rend(?:ez|re)|demand(?:ez|er)|notez|"
    r"einen?\s+(?:arzt|termin)|den\s+(?:notruf|arzt|hausarzt)|zum\s+arzt|ärztlich\w*)\b"
    r"|(?:sie\s+)?(?:bitte\s+)|请|咨询|前往|尽快|立即|去看|去医院|联系|拨打|避免|注意|就医",
    re.IGNORECASE,
)

_BRACKET_OF_WORDS = re.compile(
    r"(?P<name>(?=.*[^\W\d_]{5}.*\()[^()]+?)\s+\([^\s()]+(?:\s+[^\s()]+){2,}\)"
)


def text_candidates(text: str, *, cut: bool) -> Iterator[CandidateList]:
    """Yield the lists that the lines of a reply hold; `cut` says that it was cut off at its end."""
    if "<li" in text.lower():
        yield from html_lists(text, cut=cut)
    if "</" in text:
        yield from tagged_names(text)
    lines = lines_of(plain_lines(text))
    last = max((line.number for line in lines if line.text), default=-1) if cut else -1
    in_tables = [*tables(lines, last), *comma_tables(lines, last)]
    yield from in_tables
    plus = _plus_alone(lines)
    lists = marked_lists(plus or lines)
    for marked in lists:
        yield from _lists(lines, marked, last)
    if plus:  # no other layout counts beside the one that was asked for
        return
    in_list = {
        point.line.number for marked in lists if len(marked.points) > 1 for point in marked.points
    }
    yield from on_one_line(lines, in_list, last)
    yield from labelled_names(lines, last)
    for run in headings_of(lines):
        yield from heading_lists(lines, run, last)
    if not in_tables:
        yield from plain_lists(lines, in_list, last)


def _plus_alone(lines: Sequence[OutlineLine]) -> list[OutlineLine]:
    """Return the lines with no marks but "+1." and its like, as some prompts ask for; nothing where
    there are none.
    """
    if not any(line.mark is not None and line.mark.family == "plus" for line in lines):
        return []
    return [
        line if line.mark is None or line.mark.family == "plus" else replace(line, mark=None)
        for line in lines
    ]


def _lists(lines: Sequence[OutlineLine], marked: MarkedList, last: int) -> Iterator[CandidateList]:
    """Yield a marked list, unless its entries are sections or points below a diagnosis."""
    if marked.parent is not None and not is_section(marked.parent):
        return
    points = [point for point in marked.points if not is_section(point)]
    if len(points) < len(marked.points) and len(points) * 2 <= len(marked.points):
        return
    if len(points) == 1 and len(inline_marks(points[0].line.text)) > 1:
        return  # "(1) X, (2) Y": its entries stand on one line
    fewest = _FEWEST.get(marked.style, _FEWEST.get(marked.family, 1))
    begins = (
        marked.family in ("bullet", "bare plus", "plus")
        or points[0].value <= 1
        or marked.subject is not Subject.UNKNOWN
    )
    if (marked.family in ("letter", "roman") or marked.style == "bare") and points[0].value != 1:
        return
    if len(points) < fewest and not (marked.family == "bullet" and marked.subject.says_diagnoses):
        return
    entries, cut_off = _entries(lines, marked, points, last)
    if not entries or _is_advice(points):
        return
    yield CandidateList(
        entries=tuple(entries),
        subject=marked.subject,
        form="lines",
        start=marked.first,
        strength=_STRENGTH[marked.family] - (0 if begins else 1) - 2 * (marked.style == "bare"),
        cut_off=cut_off,
    )


def _is_advice(points: Sequence[OutlinePoint]) -> bool:
    """Return whether most entries tell somebody what to do, or ask."""
    texts = [point.text.strip(" *_\"'-:：") for point in points]
    n_advice = sum(text.endswith(("?", "？")) or bool(_ADVICE.match(text)) for text in texts)
    return 2 * n_advice > len(points)


def _entries(
    lines: Sequence[OutlineLine], marked: MarkedList, points: Sequence[OutlinePoint], last: int
) -> tuple[list[ListEntry], bool]:
    """Return the names of a list with the ranks that rising numbers give.

    The last is left out where it was interrupted.
    """
    values = [point.value for point in points]
    rising = marked.family in ("number", "plus", "word") and all(a < b for a, b in pairwise(values))
    first = 1 if rising and values[0] == 0 else 0  # some count from 0
    entries: list[ListEntry] = []
    cut_off = False
    for point in points:
        entry = _name_entry(lines, point)
        if entry is None:
            continue
        if point.name_line == last and not entry.whole:
            cut_off = True
            continue
        rank = point.value + first if rising else None
        entries.append(ListEntry(name=entry.name, rank=rank, codes=entry.codes))
    return _without_reasons(entries), cut_off


def _without_reasons(entries: list[ListEntry]) -> list[ListEntry]:
    """Return a list without the brackets behind its names, where all of three or more hold several
    words: they give reasons.

    One bracket may be part of a name ("Diabetes (maturity onset of the young)"), and what stands
    behind an abbreviation is its meaning.
    """
    bare: list[ListEntry] = []
    for entry in entries:
        split = _BRACKET_OF_WORDS.fullmatch(entry.name) if entry.name.endswith(")") else None
        if split is None:
            return entries
        bare.append(replace(entry, name=split["name"]))
    return bare if len(bare) > 2 else entries


def _name_entry(lines: Sequence[OutlineLine], point: OutlinePoint) -> ListEntry | None:
    """Return the name of an entry.

    "- rank: 1" has it on a line below, behind a label of its own.
    """
    entry = split_entry(point.text)
    if entry is not None:
        return entry
    for line in lines[point.line.number + 1 : point.line.number + 5]:
        if not line.text or line.indent <= point.line.indent:
            break
        text = line.text.strip() if line.mark is None else line.text[line.mark.end :]
        if (
            LABELLED.match(text)
            and (entry := split_entry(text)) is not None
            and entry.name not in text[: len(entry.name)]
        ):
            return entry
    return None
