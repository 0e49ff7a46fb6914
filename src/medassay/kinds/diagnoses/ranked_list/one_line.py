"""Candidates within one line: "(1) X, (2) Y", "Differential: X; Y; Z", "Most likely diagnosis:
X".
"""

import re
from collections.abc import Iterator, Sequence

from medassay.kinds.diagnoses.ranked_list.candidate import CandidateList
from medassay.kinds.diagnoses.ranked_list.entry import split_entry
from medassay.kinds.diagnoses.ranked_list.outline import OutlineLine, subject_before
from medassay.kinds.diagnoses.ranked_list.subject import Subject, subject_of

_INLINE_MARK = re.compile(
    r"(?:(?<=^)|(?<=[\s:;,.：；，、。(（]))(?:[(（\[]?(?P<n>\d{1,2})(?:[.)．）\]、"
    r":](?!\d)|[º°][.)]?)|#(?P<h>\d{1,2})(?=\s)|(?P<c>[\u2460-\u2473])|[(（](?P<l>[a-j])[)）]|"
    r"(?P<b>[a-j])\))\s*"
)
LABELLED = re.compile(
    r"(?P<head>[^:：]{2,120}?)\s*(?:\*\*|__)?\s*[:：]\s*(?:\*\*|__)?\s*(?P<rest>\S.*)$"
)
LONGEST_PLAIN = 12  # words of a plain line that may be a name


def on_one_line(
    lines: Sequence[OutlineLine], in_list: set[int], last: int
) -> Iterator[CandidateList]:
    """Yield lists whose marks stand within one line, or whose names semicolons part behind a
    label.
    """
    for line in lines:
        broken_json = line.text.lstrip()[:1] in ("{", "[", '"')
        if not line.text or line.number in in_list or "|" in line.text or broken_json:
            continue
        marks = inline_marks(line.text)
        if len(marks) > 1:
            head = line.text[: marks[0].start()]
            ends = [*(mark.start() for mark in marks[1:]), len(line.text)]
            texts = [line.text[mark.end() : end] for mark, end in zip(marks, ends, strict=True)]
        else:
            labelled = LABELLED.match(line.text)
            if labelled is None or not subject_of(labelled["head"]).says_diagnoses:
                continue
            if line.heading and subject_of(labelled["rest"]) is not Subject.UNKNOWN:
                continue  # "Answer: ranked diagnoses" is a heading
            head = labelled["head"]
            texts = _separated(labelled["rest"])
        line_entries = [
            split_entry(text.strip().strip(",;，；").removesuffix(" and")) for text in texts
        ]
        entries = [entry for entry in line_entries if entry is not None]
        if len(entries) < 1 or (len(texts) == 1 and len(entries[0].name.split()) > LONGEST_PLAIN):
            continue
        cut_off = (
            line.number == last
            and not entries[-1].whole
            and not line.text.rstrip().endswith((".", "。"))
        )
        if cut_off:
            entries.pop()
        subject = subject_of(head) if head.strip() else subject_before(lines, line.number)
        single = len(texts) == 1
        yield CandidateList(
            entries=tuple(entries),
            subject=subject,
            form="one line",
            start=line.number,
            strength=0 if single else 4,
            cut_off=cut_off,
            single=single,
        )


def inline_marks(text: str) -> list[re.Match[str]]:
    """Return the marks within a line if they count up from 1 (or a)."""
    marks: list[re.Match[str]] = []
    for mark in _INLINE_MARK.finditer(text):
        value = (
            int(mark["n"] or mark["h"])
            if mark["n"] or mark["h"]
            else ord(mark["c"]) - 0x245F
            if mark["c"]
            else ord(mark["l"] or mark["b"]) - 96
        )
        if value == len(marks) + 1:
            marks.append(mark)
    return marks


def _separated(text: str) -> list[str]:
    """Return the names in a text that semicolons, arrows or slashes part; one name where nothing
    does.
    """
    for separator in (r"\s*[;；]\s*", r"\s+(?:>|→|≫|>>)\s+", r"\s*、\s*"):
        parts = [part for part in re.split(separator, text) if part.strip()]
        if len(parts) > 1:
            return parts
    return [text]
