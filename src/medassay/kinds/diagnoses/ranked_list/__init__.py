"""A ranked list out of a reply, in three steps: candidates (JSON, then lines), one chosen by stated
rules, its names.

The rules and the layouts that they are held to: `choose`, and
`tests/golden/diagnosis_layouts.json`.
"""

import re

import msgspec

from medassay.core.records.diagnosis import plain_name
from medassay.core.reply.refusal import declined_at, turns_to_answer
from medassay.kinds.diagnoses.ranked_list.candidate import CandidateList
from medassay.kinds.diagnoses.ranked_list.choose import choose
from medassay.kinds.diagnoses.ranked_list.entry import ListEntry
from medassay.kinds.diagnoses.ranked_list.json_lists import json_candidates
from medassay.kinds.diagnoses.ranked_list.subject import Subject, subject_of
from medassay.kinds.diagnoses.ranked_list.text_lists import text_candidates

__all__ = ["ListEntry", "RankedList", "read_ranked_list"]
MOST = 40  # entries that are kept: ranks beyond 5 are told, and weigh nothing
LONGEST = 200_000  # characters of a reply that are read
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|[。！？\n]")


class RankedList(msgspec.Struct, frozen=True, kw_only=True):
    """Names with distinct ranks, best first, and the form in which they stood.

    `cut_off` says that the reply ended inside the list, `provisional` that it is said to be a first
    list, which a later one would have replaced.
    """

    entries: tuple[ListEntry, ...]
    form: str
    cut_off: bool = False
    provisional: bool = False


def read_ranked_list(text: str, *, cut: bool = False) -> RankedList | None:
    """Return the ranked list of a reply whose thoughts are left out, None where it holds none.

    Parameters
    ----------
    cut : whether the reply was cut off at its end: a name that may have been cut is left out
    """
    text = text[:LONGEST]
    candidates = list(json_candidates(text, cut=cut)) if "{" in text or "[" in text else []
    if not any(candidate.strength > 1 for candidate in candidates):
        candidates += text_candidates(text, cut=cut)
    chosen = choose(candidates)
    if chosen is None or _follows_refusal(text, chosen):
        return None
    return RankedList(
        entries=_ranked(chosen.entries)[:MOST],
        form=chosen.form,
        cut_off=chosen.cut_off,
        provisional=chosen.subject is Subject.INITIAL,
    )


def _follows_refusal(text: str, chosen: CandidateList) -> bool:
    """Return whether a reply declines before a list, and nothing between them turns to an answer or
    speaks of diagnoses.

    What it lists then is advice.
    """
    begin = text.find(chosen.entries[0].name) if chosen.entries else len(text)
    before = text[:begin] if begin >= 0 else text
    end = declined_at(before)
    if end < 0:
        return False
    between = before[end : end + 400]
    sentences = _SENTENCE_END.split(between)[1:]  # "I can't give a diagnosis." names none
    named = any(subject_of(sentence).says_diagnoses for sentence in sentences)
    return not (named or turns_to_answer(between))


def _ranked(entries: tuple[ListEntry, ...]) -> tuple[ListEntry, ...]:
    """Return the entries with a rank each.

    A repeated name counts once, and those behind it move up.
    """
    ranks = [entry.rank for entry in entries]
    has_own_ranks = all(rank is not None for rank in ranks) and len(set(ranks)) == len(ranks)
    ranked: list[ListEntry] = []
    seen_names: set[str] = set()
    repeated = 0
    for place, entry in enumerate(entries, 1):
        same = plain_name(entry.name) or entry.name
        if same in seen_names:
            repeated += 1
            continue
        seen_names.add(same)
        rank = (entry.rank if has_own_ranks and entry.rank is not None else place) - repeated
        ranked.append(ListEntry(name=entry.name, rank=rank, codes=entry.codes))
    return tuple(sorted(ranked, key=lambda entry: entry.rank or 0))
