"""The outline of a reply: which marked lines belong to one list, what stands below an entry, which
heading is above a list.

Numbers that rise, and numbers that repeat ("1. 1. 1.", as Markdown allows), are entries of one
list; what is indented deeper, and bullets between numbers, are points below an entry. A heading
begins a new list, a number that begins anew does, too.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from medassay.kinds.diagnoses.ranked_list.entry import is_picture
from medassay.kinds.diagnoses.ranked_list.marks import Mark, mark_of
from medassay.kinds.diagnoses.ranked_list.subject import Subject, says_other_first, subject_of

MOST_LINES = 5_000
LONGEST_LINE = 600  # characters of a line that are looked at
_UNNUMBERED = ("bullet", "bare plus")
_DEEPER = 2  # blanks by which a point below an entry is indented
_TAG = re.compile(r"\s*<(?P<close>/)?(?P<name>[A-Za-z0-9_][\w-]{0,40})(?:\s[^<>]{0,80})?>\s*$")
_BOLD_LINE = re.compile(r"\s*(?:\*\*|__)(?P<text>[^*_]{1,120})(?:\*\*|__)\s*[:：]?\s*$")
_HASH_LINE = re.compile(r"\s*(?P<hash>#{1,6})\s*(?P<text>\S.{0,200}?)\s*#*\s*$")
_RULE = re.compile(r"\s*(?:[-*_=]\s?){3,}\s*$")
_SHORT_TITLE = re.compile(r"\s*[^\W\d_]+(?:[\s&/'’-]+[^\W\d_]+){0,3}\s*")  # "Key findings"
_SECTION_WORDS = 9  # of an entry that may be the heading of a section


class OutlineLine(msgspec.Struct, frozen=True):
    """A line with its place.

    `heading` is 0 for none, else its level: 1 to 6 for #, 7 bold, 8 a tag, 9 a line that ends in a
    colon.
    """

    number: int
    text: str
    indent: int
    mark: Mark | None
    heading: int

    @property
    def bare(self) -> str:
        """Return the text without marks of headings and bold."""
        tag = _TAG.match(self.text)
        return (tag["name"] if tag else self.text).strip(" \t#*_>:：<")


class OutlinePoint(msgspec.Struct):
    """One entry of a list: its line, its text without the mark, and the lists below it."""

    line: OutlineLine
    text: str
    value: int
    below: "list[MarkedList]" = msgspec.field(default_factory=list)
    name_line: int = 0  # where the text stands, if not on the line of the mark


class MarkedList(msgspec.Struct):
    """Entries under one kind of mark, what the heading above says of them, and whether they stand
    below another entry.
    """

    family: str
    indent: int
    style: str
    points: list[OutlinePoint]
    subject: Subject = Subject.UNKNOWN
    parent: OutlinePoint | None = None
    parted: bool = False  # whether a heading stands behind its last entry

    @property
    def first(self) -> int:
        """Return the number of the line where the list begins."""
        return self.points[0].line.number

    @property
    def last(self) -> int:
        """Return the number of the line where its last entry begins."""
        return self.points[-1].line.number

    def continues(self, mark: Mark) -> bool:
        """Return whether a mark is the next of this list."""
        if abs(mark.indent - self.indent) >= _DEEPER:
            return False
        if self.family == "roman":
            return mark.roman == self.points[-1].value + 1 and self.style == mark.style
        if mark.family != self.family or (mark.style != self.style and not self._alike(mark)):
            return False
        last = self.points[-1].value
        if self.family in _UNNUMBERED:
            return True
        if self.family == "letter":
            return mark.value == last + 1 or (len(self.points) == 1 and last == 1 == mark.roman - 1)
        # Values never fall within a list: where the last is the first, each entry says the same.
        return mark.value > last or mark.value == last == self.points[0].value

    def _alike(self, mark: Mark) -> bool:
        """Return whether two ways to write one family may stand in one list ("Diagnosis 1",
        "Condition 2").
        """
        return self.family == "plus" or (
            self.family == "word" and {self.style, mark.style} != {"ordinal"}
        )


def lines_of(text: str) -> list[OutlineLine]:
    """Return the lines of a reply, at most 5,000, each with its mark or as a heading."""
    listed: list[OutlineLine] = []
    for number, raw in enumerate(text.lstrip(" \t").split("\n", MOST_LINES)[:MOST_LINES]):
        line = raw[:LONGEST_LINE].rstrip()
        if not line.strip():
            listed.append(OutlineLine(number, "", 0, None, 0))
            continue
        pictured = False
        if not line.isascii():
            pictured = is_picture(line.lstrip(" \t#*_>")[:1])
            line = _without_pictures(line)
        ruled = line.endswith(("-", "*", "_", "=")) and _RULE.match(line)
        mark = None if ruled else mark_of(line)
        begin = len(line) - len(line.lstrip())
        if mark is None and pictured and line.strip() and not _heading(line):
            mark = Mark("bullet", 0, begin, begin, style="picture")
        indent = mark.indent if mark else begin
        listed.append(OutlineLine(number, line, indent, mark, 0 if mark else _heading(line)))
    return [_as_title(listed, line) for line in listed]


def _without_pictures(line: str) -> str:
    return "".join(c for c in line if (not is_picture(c) and c != "\ufe0f") or c == "\u20e3")


def _as_title(lines: Sequence[OutlineLine], line: OutlineLine) -> OutlineLine:
    """Return a short line above a list that says what the list is of as the heading that it is."""
    if (
        not line.text
        or line.mark is not None
        or line.heading
        or len(line.text) > 80
        or line.text.endswith((".", "!", "?", ",", ";", "。"))
    ):
        return line
    if any(c in '[]{}"' for c in line.text):
        return line
    before = line.number == 0 or not lines[line.number - 1].text
    following = next(
        (below for below in lines[line.number + 1 : line.number + 3] if below.text), None
    )
    if not before or following is None or following.mark is None:
        return line
    return line if subject_of(line.text) is Subject.UNKNOWN else replace(line, heading=9)


def _heading(line: str) -> int:
    first = line.lstrip()[:1]
    if first == "#" and (hashed := _HASH_LINE.match(line)):
        return len(hashed["hash"])
    if first in ("*", "_") and _BOLD_LINE.match(line):
        return 7
    if first == "<" and _TAG.match(line):
        return 8
    if line.endswith((":", "：")) or (
        line.endswith(("*", "_")) and line.rstrip("*_ ").endswith((":", "："))
    ):
        return 9
    return 0


def marked_lists(lines: Sequence[OutlineLine]) -> list[MarkedList]:
    """Return all lists of marked lines in the order in which they begin, those below entries among
    them.
    """
    lists: list[MarkedList] = []
    open_lists: list[MarkedList] = []
    above: OutlineLine | None = None  # the last heading or paragraph that stands directly above
    for line in lines:
        if not line.text:
            continue
        mark = line.mark
        if mark is None:
            if line.heading:
                open_lists = _after_heading(open_lists, line)
            above = line
            continue
        subject = subject_of(above.text) if above is not None and above.heading else Subject.UNKNOWN
        at = _continued(open_lists, mark, subject, above)
        if at is None:
            at = _open_list(lists, open_lists, mark)
        else:
            del open_lists[at + 1 :]
        owner = open_lists[at]
        owner.parted = False
        owner.points.append(_point(lines, line, mark, roman=owner.family == "roman"))
        above = None
    filled = [marked for marked in lists if marked.points]
    _adopt(lines, filled)
    for marked in filled:
        marked.subject = _subject_above(lines, marked)
    return filled


def _adopt(lines: Sequence[OutlineLine], lists: Sequence[MarkedList]) -> None:
    """Put a list below the entry of another one that goes on behind it, or that has had such a list
    under the same heading before.
    """
    for at, inner in enumerate(lists):
        if inner.parent is not None:
            continue
        for outer in reversed(lists[:at]):
            before = [point for point in outer.points if point.line.number < inner.first]
            if outer.parent is not None or not before:
                continue
            headings = {
                _heading_above(lines, child) for point in before for child in point.below
            } - {""}
            if outer.last > inner.last or _heading_above(lines, inner) in headings:
                inner.parent = before[-1]
                before[-1].below.append(inner)
                break


def _heading_above(lines: Sequence[OutlineLine], marked: MarkedList) -> str:
    above = next(
        (line for line in reversed(lines[max(0, marked.first - 4) : marked.first]) if line.text),
        None,
    )
    return "" if above is None or above.mark is not None else above.bare.casefold()


def _after_heading(open_lists: list[MarkedList], line: OutlineLine) -> list[MarkedList]:
    """Return the lists that a heading leaves open: numbers may go on below it, bullets end unless
    it is indented under them.
    """
    for open_list in open_lists:
        open_list.parted = open_list.parted or line.indent < open_list.indent + _DEEPER
    return [
        open_list
        for open_list in open_lists
        if open_list.family not in _UNNUMBERED or not open_list.parted
    ]


def _continued(
    open_lists: list[MarkedList], mark: Mark, subject: Subject, above: OutlineLine | None
) -> int | None:
    """Return the open list that a mark continues, the innermost first."""
    for at in range(len(open_lists) - 1, -1, -1):
        open_list = open_lists[at]
        if not open_list.points or not open_list.continues(mark):
            if (
                open_list.points
                and mark.roman == 2
                and open_list.family == "letter"
                and _turns_roman(open_list, mark)
            ):
                open_list.family, open_list.points[0].value = "roman", 1
                return at
            continue
        fresh = above is not None and above.heading and mark.value <= open_list.points[0].value
        if fresh or subject in (Subject.OTHER, Subject.EXCLUDED):
            return None
        return at
    return None


def _turns_roman(marked: MarkedList, mark: Mark) -> bool:
    """Return whether "I." followed by "II." is a list of roman numbers and none of letters."""
    first = marked.points[0]
    own_mark = first.line.mark
    same = abs(mark.indent - marked.indent) < _DEEPER
    return len(marked.points) == 1 and own_mark is not None and own_mark.roman == 1 and same


def _open_list(lists: list[MarkedList], open_lists: list[MarkedList], mark: Mark) -> int:
    """Begin a list below the entry where its mark stands, or beside the others."""
    while open_lists and not open_lists[-1].parted and not _holds(open_lists[-1], mark):
        open_lists.pop()
    # Behind a heading a list stands for itself, though the one before it may go on later.
    held = bool(open_lists) and not open_lists[-1].parted
    parent = open_lists[-1].points[-1] if held else None
    marked = MarkedList(mark.family, mark.indent, mark.style, [], parent=parent)
    if parent is not None:
        parent.below.append(marked)
    open_lists.append(marked)
    lists.append(marked)
    return len(open_lists) - 1


def _holds(outer: MarkedList, mark: Mark) -> bool:
    """Return whether a list that begins with a mark stands below the last entry of another list."""
    if mark.indent >= outer.indent + _DEEPER:
        return True
    level = mark.indent >= outer.indent - 1
    below = mark.family in _UNNUMBERED and outer.family not in _UNNUMBERED
    return level and (
        below or (mark.family == "letter" and outer.family in ("number", "word", "plus"))
    )


def _point(
    lines: Sequence[OutlineLine], line: OutlineLine, mark: Mark, *, roman: bool
) -> OutlinePoint:
    rest = line.text[mark.end :]
    value = mark.roman if roman and mark.roman else mark.value
    name_line = line.number
    if not rest.strip(" \t*_+'\"`:.#"):  # the name stands on a line of its own below
        for below in lines[line.number + 1 : line.number + 4]:
            if below.text:
                if below.mark is None or below.mark.family == "bare plus":
                    rest, name_line = below.text.strip().lstrip("+ "), below.number
                break
    return OutlinePoint(line=line, text=rest, value=value, name_line=name_line)


def _subject_above(lines: Sequence[OutlineLine], marked: MarkedList) -> Subject:
    """Return what is said of a list: by the line above it, else by the heading above that line,
    else by the entry it stands below.
    """
    nearest: OutlineLine | None = None
    for line in reversed(lines[max(0, marked.first - 40) : marked.first]):
        if not line.text:
            continue
        if line.mark is not None:
            break
        if nearest is None:
            nearest = line
            subject = subject_of(line.bare if line.heading else line.text)
            if (
                subject is Subject.OTHER
                and not line.heading
                and not _SHORT_TITLE.fullmatch(line.text)
            ):
                subject = Subject.UNKNOWN  # a sentence above a list need not be about it
            if subject is not Subject.UNKNOWN:
                return subject
        if line.heading:
            return subject_of(line.bare)
    if marked.parent is not None:
        return subject_of(marked.parent.text)
    return Subject.UNKNOWN


def is_section(point: OutlinePoint) -> bool:
    """Return whether an entry is no entry but the heading of a section: "2. Differential
    diagnosis:".

    A group of diseases ("Autoimmune disorders") is an entry, whatever stands below it.
    """
    text = point.text.strip(" *_#:：")
    if not text or len(text.split(maxsplit=_SECTION_WORDS)) > _SECTION_WORDS:
        return False
    title = _TITLE.fullmatch(text) is not None
    if not (title or point.below):
        return False
    subject = subject_of(text)
    if subject is Subject.UNKNOWN:
        return False
    if subject in (Subject.OTHER, Subject.EXCLUDED):
        # "Key findings", "Next steps:"; no disease that only ends in such a word ("… disorder,
        # atypical features").
        titled = says_other_first(text) or point.text.rstrip(" *_").endswith((":", "："))
        return title or titled
    return bool(_OF_DIAGNOSES.search(text))


_OF_DIAGNOSES = re.compile(
    r"diagnos|diagnóst|differential|\bddx\b|hypothes|possibilit|\bcauses\b|ursachen|causas|诊断|鉴别",
    re.IGNORECASE,
)
_TITLE = re.compile(
    r"(?:(?:key|main|most|likely|possible|differential|next|further|recommended|clinical|summary|"
    r"of|the|and|final|ranked|list|"
    r"top|\d+)\s+)*(?:findings|symptoms|diagnos[ie]s|steps|tests|treatment|management|"
    r"recommendations|differential|conclusion|"
    r"befunde|differentialdiagnosen|diagnosen|hallazgos|diagnósticos|symptômes|diagnostics)",
    re.IGNORECASE,
)


def headings_of(lines: Sequence[OutlineLine]) -> Iterator[list[OutlineLine]]:
    """Yield runs of headings at one level, each of which may name a disease.

    What is said of sections ends a run.
    """
    runs: dict[int, list[OutlineLine]] = {}
    for line in lines:
        if not line.heading or line.heading >= 8:
            continue
        section = subject_of(line.bare) is not Subject.UNKNOWN
        for level in [
            level for level in runs if level > line.heading or (level == line.heading and section)
        ]:
            yield runs.pop(level)
        if not section:
            runs.setdefault(line.heading, []).append(line)
    yield from runs.values()


def subject_before(lines: Sequence[OutlineLine], number: int) -> Subject:
    """Return what the nearest line of text above a line says."""
    for line in reversed(lines[max(0, number - 6) : number]):
        if line.text:
            return subject_of(line.bare)
    return Subject.UNKNOWN
