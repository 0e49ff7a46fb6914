"""Candidates in the JSON of a reply, whole or broken: arrays and objects under keys that name
diagnoses.

Arrays under other keys ("symptoms_in_common") are never diagnoses; an array of texts that stands
alone is one only where nothing above it says otherwise.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from medassay.core.reply.lenient_json import LenientValue, read_lenient
from medassay.kinds.diagnoses.ranked_list.candidate import CandidateList
from medassay.kinds.diagnoses.ranked_list.choose import choose
from medassay.kinds.diagnoses.ranked_list.entry import ListEntry, entry_of
from medassay.kinds.diagnoses.ranked_list.json_entries import (
    NAMES,
    NOT_A_NAME,
    OF_DISEASE,
    entries_of,
    entry_in,
    is_of_disease,
    plain_key,
    subject_of_key,
)
from medassay.kinds.diagnoses.ranked_list.subject import Subject, subject_of
from medassay.kinds.diagnoses.ranked_list.text_lists import text_candidates

LONGEST = 200_000  # characters in which JSON is sought
_MOST_VALUES = 100  # of top-level JSON values
_MOST_TRIES = 200  # at brackets that hold no JSON
_DEEPEST = 4  # levels of objects in which a list is sought
_LONGEST_NAME = 12  # words of a text that is one name
_OPENING = re.compile(r"[{\[]")
_FIRST = re.compile(
    r"(?:most_likely|primary|leading|main|principal|top|working|final|likely|first|"
    r"wahrscheinlichste|hauptdiagnose|principale?|plus_probable|mas_probable|首要|最可能|主要)"
)
_NUMBER_KEY = re.compile(
    r"(?:(?:d?dx|diagnos\w*?|differential\w*?|rank|disease|condition|hypothesis|option|candidate|"
    r"top|no|nr|number|#|诊断)[_\s#-]*)?(\d{1,2})(?:st|nd|rd|th|[.)])?"
)
_ORDINAL_KEYS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")


def json_candidates(text: str, *, cut: bool) -> Iterator[CandidateList]:
    """Yield the lists in the JSON of a reply, thoughts already left out.

    `cut` says that the reply was cut off.
    """
    text = text[:LONGEST]
    values = list(_values(text))
    objects: list[tuple[int, Mapping[str, Any], LenientValue]] = []
    for start, read in values:
        above = _words_before(text, start)
        lost = read.cut_off
        form = "json" if not read.faults else "json, cut off" if lost else "json, repaired"
        if isinstance(read.value, dict):
            lists = list(_lists_in(read.value, subject_of(above), 0))
            entry = None if lists else entry_in(read.value)
            if entry is not None and (entry.rank is not None or is_of_disease(read.value)):
                objects.append((start, read.value, read))
            for entries, subject in lists:
                yield CandidateList(
                    entries=entries,
                    subject=subject,
                    form=form,
                    start=start,
                    strength=9,
                    cut_off=lost,
                )
        else:
            yield from _bare_array(read.value, above, form, start, lost)
    if objects:  # an object a line
        entries = tuple(entry for _, value, _ in objects if (entry := entry_in(value)) is not None)
        lost = objects[-1][2].cut_off
        faults = any(read.faults for _, _, read in objects)
        yield CandidateList(
            entries=entries,
            subject=Subject.DIAGNOSES,
            form="json, cut off" if lost else "json, repaired" if faults else "json lines",
            start=objects[0][0],
            strength=9,
            cut_off=lost,
        )


def _values(text: str) -> Iterator[tuple[int, LenientValue]]:
    """Yield the JSON values of a text that no other value holds."""
    position, tries, n = 0, 0, 0
    while n < _MOST_VALUES and tries < _MOST_TRIES and (opening := _OPENING.search(text, position)):
        read = read_lenient(text, opening.start())
        if read is None or (read.cut_off and not _looks_meant(text, opening.start())):
            position, tries = opening.start() + 1, tries + 1
            continue
        yield opening.start(), read
        position, n = max(read.end, opening.start() + 1), n + 1


def _looks_meant(text: str, start: int) -> bool:
    """Return whether a bracket that is never closed was meant as JSON: a quote, a key or another
    bracket follows.
    """
    return re.match(r"[{\[]\s*(?:[\"'{\[“]|[^\W\d]\w*\s*:|$)", text[start : start + 80]) is not None


def _words_before(text: str, start: int) -> str:
    """Return the line above a value, tags and fences left out or read as words."""
    before = text[max(0, start - 300) : start].rstrip()
    while before.endswith(("```", "```json", "```JSON", "~~~")):
        before = re.sub(r"(?:```|~~~)\w*$", "", before).rstrip()
    line = before.rsplit("\n", 1)[-1]
    return re.sub("[<>_]", " ", line)


Found = tuple[tuple[ListEntry, ...], Subject]


def _lists_in(value: Mapping[str, Any], above: Subject, level: int) -> list[Found]:
    """Return the lists of an object: under keys that name diagnoses, by numbers as keys, a first
    diagnosis with others after it.
    """
    if level > _DEEPEST:
        return []
    if numbered := _by_number(value):
        return [(numbered, Subject.UNKNOWN if above is Subject.OTHER else above)]
    first = _first_name(value)
    lists: list[Found] = []
    for name, part in value.items():
        key, subject = plain_key(name), subject_of_key(plain_key(name))
        if subject is Subject.OTHER:
            continue
        if isinstance(part, list):
            lists += _of_array(part, subject)
        elif isinstance(part, dict):
            lists += _of_object(part, subject, level)
        elif isinstance(part, str) and first is None and subject.says_diagnoses:
            listed = () if key in OF_DISEASE else _in_text(part)
            lists += [(listed, subject)] if listed else []
    return lists if first is None else _behind(first, lists)


def _of_array(part: list[Any], subject: Subject) -> list[Found]:
    """Return the list in an array: any under a key that says so, else of objects that name a
    disease each.
    """
    if subject is Subject.UNKNOWN:
        entries = entries_of(
            [element for element in part if isinstance(element, dict) and is_of_disease(element)]
        )
        return [(entries, Subject.DIAGNOSES)] if entries else []
    entries = entries_of(part)
    return [(entries, subject)] if entries or not part else []


def _of_object(part: Mapping[str, Any], subject: Subject, level: int) -> list[Found]:
    """Return the lists in an object under a key."""
    if subject in (Subject.DIAGNOSES, Subject.INITIAL, Subject.EXCLUDED) and entry_in(part) is None:
        named = _by_number(part) or _names_as_keys(part)
        if named:
            return [(named, subject)]
    if subject is Subject.EXCLUDED:
        return []
    inner = _lists_in(part, Subject.UNKNOWN, level + 1)
    if subject is not Subject.INITIAL:
        return inner
    return [(entries, subject if of is Subject.DIAGNOSES else of) for entries, of in inner]


def _behind(first: ListEntry, lists: list[Found]) -> list[Found]:
    """Return lists with the one diagnosis that stands beside them at the head of the first that
    goes on from it.
    """
    for at, (entries, subject) in enumerate(lists):
        if entries and subject in (Subject.FURTHER, Subject.DIAGNOSES):
            rest = (ListEntry(name=entry.name, codes=entry.codes) for entry in entries)
            return [*lists[:at], *lists[at + 1 :], ((first, *rest), Subject.DIAGNOSES)]
    return lists


def _in_text(text: str) -> tuple[ListEntry, ...]:
    """Return the names in a JSON text: a list in its lines, or one name."""
    chosen = choose(text_candidates(text, cut=False))
    if chosen is not None:
        return chosen.entries
    name, codes = entry_of(text)
    return (
        (ListEntry(name=name, codes=codes),) if name and len(name.split()) <= _LONGEST_NAME else ()
    )


def _first_name(value: Mapping[str, Any]) -> ListEntry | None:
    """Return the one diagnosis that an object names beside its lists: `diagnosis`,
    `most_likely_diagnosis`.
    """
    for name, part in value.items():
        key = plain_key(name)
        if NOT_A_NAME.search(key) or subject_of_key(key) is Subject.EXCLUDED:
            continue
        if key in OF_DISEASE or (_FIRST.search(key) and not isinstance(part, list)):
            if isinstance(part, dict):
                entry = entry_in(part)
                if entry is not None:
                    return ListEntry(name=entry.name, codes=entry.codes)
            elif isinstance(part, str) and part.strip():
                key_name, codes = entry_of(part)
                return ListEntry(name=key_name, codes=codes) if key_name else None
    return None


def _by_number(value: Mapping[str, Any]) -> tuple[ListEntry, ...]:
    """Return the entries of an object whose keys are numbers, in their order.

    None where any key is no number.
    """
    numbers: list[tuple[int, Any]] = []
    for name, part in value.items():
        key = plain_key(name)
        if key in _ORDINAL_KEYS:
            numbers.append((_ORDINAL_KEYS.index(key) + 1, part))
        elif match := _NUMBER_KEY.fullmatch(key):
            numbers.append((int(match[1]), part))
        elif isinstance(part, str | dict) and not NOT_A_NAME.search(key):
            return ()
    if not numbers or len({number for number, _ in numbers}) < len(numbers):
        return ()
    entries = []
    for number, part in sorted(numbers, key=lambda pair: pair[0]):
        entry = entry_in(part)
        if entry is not None:
            entries.append(
                ListEntry(name=entry.name, rank=number if number else None, codes=entry.codes)
            )
    return tuple(entries)


def _names_as_keys(value: Mapping[str, Any]) -> tuple[ListEntry, ...]:
    """Return the keys of an object whose values only say something of each: {"Gout": 0.5}."""
    plain = all(isinstance(part, int | float | str) or part is None for part in value.values())
    is_described = all(
        isinstance(part, dict) and not is_of_disease(part) for part in value.values()
    )
    if (
        not value
        or not (plain or is_described)
        or any(NOT_A_NAME.search(plain_key(name)) or plain_key(name) in NAMES for name in value)
    ):
        return ()
    pairs = (entry_of(name) for name in value)
    return tuple(ListEntry(name=name, codes=codes) for name, codes in pairs if name)


def _bare_array(
    value: list[Any], above: str, form: str, start: int, lost: bool
) -> Iterator[CandidateList]:
    """Yield the lists in an array that stands alone; what is said above it counts."""
    subject = subject_of(above)
    if not value:
        if subject.says_diagnoses:
            yield CandidateList(entries=(), subject=subject, form=form, start=start, strength=9)
        return
    make_candidate = partial(CandidateList, start=start, cut_off=lost)
    listed = form if form != "json" else "json list"
    objects = [element for element in value if isinstance(element, dict)]
    if objects and (entries := entries_of(objects)):
        kind = Subject.DIAGNOSES
        echo = subject is Subject.OTHER and not any(map(is_of_disease, objects))
        if echo or subject in (Subject.EXCLUDED, Subject.INITIAL):
            kind = subject
        yield make_candidate(entries=entries, subject=kind, form=listed, strength=9)
    elif objects:
        for element in objects:
            for entries, of in _lists_in(element, subject, 1):
                yield make_candidate(entries=entries, subject=of, form=form, strength=9)
    elif entries := entries_of([element for element in value if isinstance(element, list)]):
        yield make_candidate(entries=entries, subject=subject, form=listed, strength=8)
    elif entries := entries_of([element for element in value if isinstance(element, str)]):
        # It may be an echo of the symptoms: it counts where nothing else does.
        yield make_candidate(entries=entries, subject=subject, form=listed, strength=1)
