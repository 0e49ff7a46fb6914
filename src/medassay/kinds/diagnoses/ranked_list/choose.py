"""One list of several, by stated rules.

1. What is said to be something else (findings, tests, treatment, ruled out) never counts.
2. JSON that names diagnoses comes before lines; of each the last list that is said to be of
diagnoses counts.
3. One name behind a label ("Most likely diagnosis: X") comes first where it stands before the list,
and replaces none.
4. A first diagnosis with alternatives below a heading of their own are one list; so are lists whose
numbers go on.
5. Where nothing is said, the strongest form counts (numbers before letters before bullets), and of
equals the first.
6. Lists that a reply gives after declining count only where they are said to be of diagnoses or
hold no advice.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec.structs import replace

from medassay.kinds.diagnoses.ranked_list.candidate import CandidateList
from medassay.kinds.diagnoses.ranked_list.entry import ListEntry
from medassay.kinds.diagnoses.ranked_list.subject import Subject

_SAID = (Subject.DIAGNOSES, Subject.INITIAL, Subject.FURTHER)
_JSON = 9  # strength of JSON that names diagnoses
_PLUS = 6  # of lines marked "+1.", as some prompts ask for


def choose(candidates: Iterable[CandidateList]) -> CandidateList | None:
    """Return the list that a reply means by its diagnoses, None where it holds none."""
    usable = [
        candidate
        for candidate in candidates
        if candidate.subject is not Subject.EXCLUDED
        and (candidate.subject is not Subject.OTHER or candidate.strength == _PLUS)
    ]
    for tier in (
        [candidate for candidate in usable if candidate.strength == _JSON],
        [candidate for candidate in usable if candidate.strength == _PLUS],
        [candidate for candidate in usable if candidate.subject in _SAID],
    ):
        if tier:
            lists = [candidate for candidate in tier if not candidate.single]
            if not lists:
                return min(tier, key=lambda candidate: candidate.start)
            return _with_first(
                _last_list(lists), [candidate for candidate in tier if candidate.single]
            )
    if not usable:
        return None
    return max(usable, key=lambda candidate: (candidate.strength, -candidate.start))


def _with_first(chosen: CandidateList, singles: Sequence[CandidateList]) -> CandidateList:
    """Return a list with the one diagnosis that a label before it names at its head."""
    before = [
        candidate for candidate in singles if candidate.start < chosen.start and candidate.entries
    ]
    if not before or chosen.strength == _JSON:
        return chosen
    unranked = tuple(ListEntry(name=entry.name, codes=entry.codes) for entry in chosen.entries)
    return replace(chosen, entries=(*before[0].entries, *unranked))


def _last_list(candidates: Sequence[CandidateList]) -> CandidateList:
    """Return the last list of diagnoses, with the one before it where it only goes on from
    there.
    """
    ordered = sorted(candidates, key=lambda candidate: (candidate.start, candidate.strength))
    strongest: dict[int, CandidateList] = {candidate.start: candidate for candidate in ordered}
    listed = [candidate for candidate in strongest.values() if candidate.entries] or list(
        strongest.values()
    )
    chosen = _whole_lists(listed)
    return next((c for c in reversed(chosen) if c.subject is not Subject.INITIAL), chosen[-1])


def _whole_lists(listed: Sequence[CandidateList]) -> list[CandidateList]:
    """Return the lists with those that go on from the one before joined to it."""
    joined: list[CandidateList] = []
    for candidate in listed:
        before = joined[-1] if joined else None
        if (
            before is not None
            and before.subject is not Subject.INITIAL
            and _goes_on(before, candidate)
        ):
            joined[-1] = _together(before, candidate)
        else:
            joined.append(candidate)
    return joined


def _goes_on(before: CandidateList, candidate: CandidateList) -> bool:
    if candidate.strength == _JSON or not before.entries or not candidate.entries:
        return False
    first, last = candidate.entries[0].rank, before.entries[-1].rank
    if first is not None and last is not None and first == last + 1:
        return True
    return candidate.subject is Subject.FURTHER


def _together(before: CandidateList, candidate: CandidateList) -> CandidateList:
    """Return two lists as one; ranks stay only where they go on rising."""
    entries = (*before.entries, *candidate.entries)
    ranks = [entry.rank for entry in entries if entry.rank is not None]
    rising = len(ranks) == len(entries) and all(a < b for a, b in pairwise(ranks))
    if not rising:
        entries = tuple(ListEntry(name=entry.name, codes=entry.codes) for entry in entries)
    return replace(before, entries=entries, cut_off=candidate.cut_off)
