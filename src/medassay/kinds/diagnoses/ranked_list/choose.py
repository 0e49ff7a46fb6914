"""One list of several, by stated rules.

1. What is said to be something else (findings, tests, treatment, ruled out) never counts.
2. JSON that names diagnoses comes before lines; of each the last list that is said to be of diagnoses counts.
3. One name behind a label ("Most likely diagnosis: X") comes first where it stands before the list, and replaces none.
4. A first diagnosis with alternatives below a heading of their own are one list; so are lists whose numbers go on.
5. Where nothing is said, the strongest form counts (numbers before letters before bullets), and of equals the first.
6. Lists that a reply gives after declining count only where they are said to be of diagnoses or hold no advice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from medassay.kinds.diagnoses.ranked_list.candidate import CandidateList
from medassay.kinds.diagnoses.ranked_list.entry import ListEntry
from medassay.kinds.diagnoses.ranked_list.subject import Subject

_SAID = (Subject.DIAGNOSES, Subject.INITIAL, Subject.FURTHER)
_JSON = 9  # strength of JSON that names diagnoses
_PLUS = 6  # of lines marked "+1.", as some prompts ask for


def choose(candidates: Iterable[CandidateList]) -> CandidateList | None:
    """Return the list that a reply means by its diagnoses, None where it holds none."""
    usable = [
        one
        for one in candidates
        if one.subject is not Subject.EXCLUDED
        and (one.subject is not Subject.OTHER or one.strength == _PLUS)
    ]
    for tier in (
        [one for one in usable if one.strength == _JSON],
        [one for one in usable if one.strength == _PLUS],
        [one for one in usable if one.subject in _SAID],
    ):
        if tier:
            lists = [one for one in tier if not one.single]
            if not lists:
                return min(tier, key=lambda one: one.start)
            return _with_first(_last_said(lists), [one for one in tier if one.single])
    if not usable:
        return None
    return max(usable, key=lambda one: (one.strength, -one.start))


def _with_first(chosen: CandidateList, singles: Sequence[CandidateList]) -> CandidateList:
    """Return a list with the one diagnosis that a label before it names at its head."""
    before = [one for one in singles if one.start < chosen.start and one.entries]
    if not before or chosen.strength == _JSON:
        return chosen
    unranked = tuple(ListEntry(name=entry.name, codes=entry.codes) for entry in chosen.entries)
    return replace(chosen, entries=(*before[0].entries, *unranked))


def _last_said(candidates: Sequence[CandidateList]) -> CandidateList:
    """Return the last list of diagnoses, with the one before it where it only goes on from there."""
    ordered = sorted(candidates, key=lambda one: (one.start, one.strength))
    strongest: dict[int, CandidateList] = {one.start: one for one in ordered}
    listed = [one for one in strongest.values() if one.entries] or list(strongest.values())
    chosen = _whole_lists(listed)
    last = chosen[-1]
    if last.subject is Subject.INITIAL and any(
        one.subject is not Subject.INITIAL for one in chosen
    ):
        last = next(one for one in reversed(chosen) if one.subject is not Subject.INITIAL)
    return last


def _whole_lists(listed: Sequence[CandidateList]) -> list[CandidateList]:
    """Return the lists with those that go on from the one before joined to it."""
    joined: list[CandidateList] = []
    for one in listed:
        before = joined[-1] if joined else None
        if (
            before is not None
            and before.subject is not Subject.INITIAL
            and _goes_on(before, one)
        ):
            joined[-1] = _together(before, one)
        else:
            joined.append(one)
    return joined


def _goes_on(before: CandidateList, one: CandidateList) -> bool:
    if one.strength == _JSON or not before.entries or not one.entries:
        return False
    first, last = one.entries[0].rank, before.entries[-1].rank
    if first is not None and last is not None and first == last + 1:
        return True
    return one.subject is Subject.FURTHER


def _together(before: CandidateList, one: CandidateList) -> CandidateList:
    """Return two lists as one; ranks stay only where they go on rising."""
    entries = (*before.entries, *one.entries)
    ranks = [entry.rank for entry in entries if entry.rank is not None]
    rising = len(ranks) == len(entries) and all(a < b for a, b in pairwise(ranks))
    if not rising:
        entries = tuple(ListEntry(name=entry.name, codes=entry.codes) for entry in entries)
    return replace(before, entries=entries, cut_off=one.cut_off)
