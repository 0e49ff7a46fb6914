"""Candidates without marks: headings that name one disease each, names behind one label, plain
lines under a heading.
"""

import re
from collections.abc import Iterator, Sequence

from medassay.kinds.diagnoses.ranked_list.candidate import CandidateList
from medassay.kinds.diagnoses.ranked_list.entry import ListEntry, name_label, split_entry
from medassay.kinds.diagnoses.ranked_list.one_line import LONGEST_PLAIN
from medassay.kinds.diagnoses.ranked_list.outline import OutlineLine
from medassay.kinds.diagnoses.ranked_list.subject import Subject, subject_of

_SENTENCE = re.compile(
    r"[.!?。！？]\s*$|\b(?:is|are|was|were|has|have|should|would|could|the"
    r" patient|ist|sind|sollte|es|son|est|sont)\b|[，。]",
    re.IGNORECASE,
)


def heading_lists(
    lines: Sequence[OutlineLine], run: Sequence[OutlineLine], last: int
) -> Iterator[CandidateList]:
    """Yield headings that name one disease each."""
    if len(run) < 2:
        return
    entries = [
        entry
        for line in run
        if line.number != last
        and (entry := split_entry(line.bare)) is not None
        and len(entry.name.split()) <= LONGEST_PLAIN
    ]
    if len(entries) < 2 or len(entries) < len(run) - 1:
        return
    subject = Subject.UNKNOWN
    for line in reversed(lines[: run[0].number]):
        if line.text and line.mark is None and (line.heading or subject is Subject.UNKNOWN):
            subject = subject_of(line.bare)
            if line.heading or subject is not Subject.UNKNOWN:
                break
    yield CandidateList(
        entries=tuple(ListEntry(name=entry.name, codes=entry.codes) for entry in entries),
        subject=subject,
        form="headings",
        start=run[0].number,
        strength=1,
        cut_off=run[-1].number == last,
    )


def labelled_names(lines: Sequence[OutlineLine], last: int) -> Iterator[CandidateList]:
    """Yield names behind one label that stands again and again: "Disease: X" with its reason,
    "Disease: Y".
    """
    by_label: dict[str, list[OutlineLine]] = {}
    for line in lines:
        if line.text and line.mark is None and (label := name_label(line.text)):
            by_label.setdefault(label, []).append(line)
    for label, labelled in by_label.items():
        if len(labelled) < 2:
            continue
        labelled_entries = [(line, split_entry(line.text)) for line in labelled]
        entries = [
            entry
            for line, entry in labelled_entries
            if entry and (entry.whole or line.number != last)
        ]
        if entries:
            yield CandidateList(
                entries=tuple(ListEntry(name=entry.name, codes=entry.codes) for entry in entries),
                subject=(
                    subject_of(label) if subject_of(label).says_diagnoses else Subject.DIAGNOSES
                ),
                form="labels",
                start=labelled[0].number,
                strength=3,
                cut_off=len(entries) < len(labelled_entries),
            )


def plain_lists(
    lines: Sequence[OutlineLine], in_list: set[int], last: int
) -> Iterator[CandidateList]:
    """Yield lines without marks that each hold a name: below a heading that speaks of diagnoses, or
    the whole reply.
    """
    block: list[OutlineLine] = []
    heading: OutlineLine | None = None
    blocks: list[tuple[OutlineLine | None, list[OutlineLine]]] = []
    for line in (*lines, OutlineLine(len(lines), "", 0, None, 1)):
        if line.heading:
            if block:
                blocks.append((heading, block))
            block, heading = [], line
        elif line.text:
            block.append(line)
    is_one_block = len(blocks) == 1 and blocks[0][0] is None
    for head, block in blocks:
        subject = Subject.UNKNOWN if head is None else subject_of(head.bare)
        if not (subject.says_diagnoses or (is_one_block and len(block) > 1)):
            continue
        block_names = [_plain_name(line) for line in block if line.number not in in_list]
        names = [entry for entry in block_names if entry is not None]
        if len(names) < len(block) or len(names) < (2 if is_one_block else 1):
            continue
        cut_off = block[-1].number == last and not names[-1].whole
        if cut_off:
            names.pop()
        if names:
            yield CandidateList(
                entries=tuple(names),
                subject=subject,
                form="plain lines",
                start=block[0].number,
                strength=0,
                cut_off=cut_off,
            )


def _plain_name(line: OutlineLine) -> ListEntry | None:
    """Return the name that a line without a mark holds, None where it is a sentence."""
    if line.mark is not None or len(line.text) > 200 or set(line.text) & set("<{}[]"):
        return None
    entry = split_entry(line.text)
    if entry is None or len(entry.name.split()) > LONGEST_PLAIN:
        return None
    if _SENTENCE.search(entry.name) or (not entry.whole and _SENTENCE.search(line.text)):
        return None
    return entry
