"""A ranked list of diagnoses from a reply: JSON as asked for, or the numbered lines that models write.

The answer's value is JSON text, `[{"name": …, "rank": …}, …]`, best rank first.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from medassay.core.canonical import canonical
from medassay.core.item import Item
from medassay.core.reading import find_objects, strip_thoughts
from medassay.core.trial import Prompt

MOST = 40  # entries that are kept: ranks beyond 5 are told, and weigh nothing
LONGEST_NAME = 160  # characters; a longer one is a sentence
_LONGEST_LINE = 600  # of a line that may begin an entry
_MOST_LINES = 5000
_KEYS = ("diagnoses", "differential_diagnosis", "differential_diagnoses", "differential")
_NAMES = ("name", "diagnosis", "disease", "condition")
# "+1. ", "1. +", "'+1' ", "**2)** ", "### 3: ", "(4) ", "#5 ", "6 – ": what may stand before a name; a bare number
# needs a mark.
_MARKER = re.compile(
    r"[\s>#*_'\"`\-•(]{0,20}(?:(?P<plus>\+)[\s*_]{0,3}(?P<n>\d{1,2})(?!\d)['\"`*_]{0,3}[.):]?"
    r"|(?P<m>\d{1,2})(?:[*_]{0,2}[.):](?!\d)|\s{1,2}[-–—](?=\s))"
    r"|(?<=#)(?P<h>\d{1,2})(?=\s))[*_]{0,2}(?P<late>\s{0,3}\+)?"
)
_HEADING = re.compile(r"diagn|differential", re.IGNORECASE)
_PLUS = re.compile(
    r"[\s>*_'\"`]{0,20}\+[\s*_'\"`]{0,5}(?=[^\W\d])"
)  # "+Gout: …", without a number
_BOLD = re.compile(r"\s{0,4}(\*\*|__)(?P<name>.{1,200}?)\1")
# A colon before a blank, a mark or the end; a dash between blanks.
_END = re.compile(r"\s*:(?=[\s*_'\"`]|$)|\s+[-–—]+\s+|['\"`]:|\s*\|")
_EDGE = " \t\r\n.,:;*_+'\"`|–—-…"
Entry = dict[str, Any]


def read_diagnoses(item: Item, prompt: Prompt, text: str, mode: str) -> tuple[str | None, str]:
    """Return the list as JSON text and the form it had, or None and why none could be read."""
    listed, form = read_list(text)
    return (None if listed is None else canonical(listed).decode()), form


def read_list(text: str) -> tuple[list[Entry] | None, str]:
    r"""Return the entries of a ranked list, each with `rank` and `name`, and the form it had.

    JSON: an object with `diagnoses`, or a list, of names or of objects with `name` and perhaps `rank`;
    of several the last counts. An empty list is an answer. Else lines that begin with a number; lines
    marked "+1." are preferred, and where the numbers begin anew the list has ended (of several lists the
    one under a heading that speaks of diagnoses). None, and why, where nothing could be read.

    Examples
    --------
    >>> read_list("+1. Gout: a crystal disease\n+2. Septic arthritis: …")
    ([{'rank': 1, 'name': 'Gout'}, {'rank': 2, 'name': 'Septic arthritis'}], 'lines')
    """
    kept = strip_thoughts(text)[0]
    if not kept.strip():
        return None, "blank"
    listed, form = _json(kept)
    if listed is None:
        listed, form = list(_lines(kept)), "lines"
    if not listed and form == "lines":
        listed, form = _bare_list(kept, (str, dict)), "json list"
        if not listed:
            return None, "no list of diagnoses"
    return listed[:MOST], form


def _json(text: str) -> tuple[list[Entry] | None, str]:
    """Return the entries of the last JSON list of diagnoses; None if there is none."""
    for found in reversed(find_objects(text, *_KEYS)):
        listed = next(found.value[key] for key in _KEYS if key in found.value)
        if isinstance(listed, list) and ((entries := _entries(listed)) or not listed):
            return entries, "json, repaired" if found.repaired else "json"
    entries = _bare_list(text, (dict,))
    return (entries, "json list") if entries else (None, "")


def _bare_list(text: str, kinds: tuple[type, ...]) -> list[Entry]:
    """Return the entries of the first JSON list that stands alone, without an object around it.

    A list of mere texts may be an echo of the symptoms: it counts where nothing else does.
    """
    decode = json.JSONDecoder().raw_decode
    position, tries = text.find("["), 0
    while position >= 0 and tries < 50:
        try:
            value, _ = decode(text, position)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, list):
            entries = _entries([entry for entry in value if isinstance(entry, kinds)])
            if entries:
                return entries
        position, tries = text.find("[", position + 1), tries + 1
    return []


def _entries(listed: list[Any]) -> list[Entry]:
    """Return names with ranks: those given where all are distinct whole numbers from 1, else places.

    Blank names are dropped before places are counted.
    """
    named = [(name, rank) for name, rank in map(_named, listed) if name]
    given = [rank for _, rank in named]
    usable = all(isinstance(rank, int) and rank >= 1 for rank in given)
    if not usable or len(set(given)) != len(given):
        return [{"rank": at, "name": name} for at, (name, _) in enumerate(named, 1)]
    return sorted(
        ({"rank": rank, "name": name} for name, rank in named), key=lambda e: e["rank"]
    )


def _named(entry: Any) -> tuple[str, int | None]:
    if isinstance(entry, str):
        return clean_name(entry), None
    if not isinstance(entry, dict):
        return "", None
    name = next((entry[key] for key in _NAMES if isinstance(entry.get(key), str)), "")
    rank = entry.get("rank")
    whole = isinstance(rank, int) and not isinstance(rank, bool) and rank <= 1000
    return clean_name(name), rank if whole else None


def _lines(text: str) -> Iterator[Entry]:
    """Yield the entries of a numbered list; numbers are ranks, and gaps stay.

    Where the numbers begin anew there are several lists (findings, tests): the only one whose heading speaks
    of diagnoses counts, else the first. Without any number, lines that begin with "+" are entries in
    their order.
    """
    lines = [
        line[:_LONGEST_LINE] for line in text.replace("\\n", "\n").splitlines()[:_MOST_LINES]
    ]
    marked = list(_marked(lines))
    if any(one.plus for one in marked):
        marked = [one for one in marked if one.plus]
    lists: list[list[_Marked]] = []
    for one in marked:
        if not lists or one.number <= lists[-1][-1].number:
            lists.append([])
        lists[-1].append(one)
    named = [found for found in lists if _HEADING.search(_above(lines, found[0].line))]
    chosen = named[0] if len(named) == 1 else lists[0] if lists else []
    first = 1 if chosen and chosen[0].number == 0 else 0  # some count from 0
    for one in chosen:
        yield {"rank": one.number + first, "name": one.name}
    if not lists:
        pluses = (match for line in lines if (match := _PLUS.match(line)))
        names = filter(None, (_name(match.string[match.end() :]) for match in pluses))
        yield from ({"rank": rank, "name": name} for rank, name in enumerate(names, 1))


def _above(lines: list[str], at: int) -> str:
    """Return the line above one, blank lines left out: its heading, if it has one."""
    return next((line for line in reversed(lines[max(0, at - 4) : at]) if line.strip()), "")


@dataclass(frozen=True, slots=True)
class _Marked:
    """One numbered entry: its line, whether a plus marks it, number and name."""

    line: int
    plus: bool
    number: int
    name: str


def _marked(lines: list[str]) -> Iterator[_Marked]:
    """Yield the numbered entries."""
    for at, line in enumerate(lines):
        match = _MARKER.match(line)
        if match is None:
            continue
        rest, plus = line[match.end() :], bool(match["plus"] or match["late"])
        if not clean_name(rest):  # the name stands on a line of its own below
            following = (below for below in lines[at + 1 : at + 4] if below.strip())
            rest = next(following, "")
            plus = plus or rest.lstrip().startswith("+")
            rest = "" if _MARKER.match(rest) else rest
        if name := _name(rest):
            number = int(match["n"] or match["m"] or match["h"])
            yield _Marked(line=at, plus=plus, number=number, name=name)


def _name(rest: str) -> str:
    """Return the name at the beginning of an entry, without the description behind it."""
    bold = _BOLD.match(rest)
    if bold and (name := clean_name(_END.split(bold["name"], maxsplit=1)[0])):
        return name
    head = _END.split(rest.strip(" \t*_+'\"`"), maxsplit=1)[0]
    if len(head) > LONGEST_NAME:  # no mark: the name is what stands before the sentence ends
        head = head.split(". ", maxsplit=1)[0]
    return clean_name(head)


def clean_name(name: str) -> str:
    """Return a name without marks and control characters around and in it, at most 160 characters."""
    whole = "".join(c if c.isprintable() else " " for c in name[: 4 * LONGEST_NAME])
    bare = " ".join(whole.split()).strip(_EDGE)
    return bare[:LONGEST_NAME].encode("utf-8", "replace").decode()
