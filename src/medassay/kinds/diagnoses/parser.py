"""A ranked list of diagnoses from a reply: JSON as asked for, or any layout in which models write
lists.

The answer's value is JSON text, `[{"name": …, "rank": …}, …]`, best rank first, with `codes` where
the reply gives any.
"""

from typing import Required, TypedDict

from medassay.core.canonical import canonical
from medassay.core.parser import Reading
from medassay.core.records.item import Item
from medassay.core.records.manifest import JudgingRules
from medassay.core.records.prompt import Prompt
from medassay.core.reply.thoughts import strip_thoughts
from medassay.kinds.diagnoses.ranked_list import RankedList, read_ranked_list
from medassay.kinds.diagnoses.ranked_list.entry import LONGEST_NAME, clean_name

__all__ = ["ASKED", "clean_name", "read_diagnoses", "read_list"]
ASKED = 5  # names that prompts ask for: a reply that was cut off before them is truncated


class EntryObject(TypedDict, total=False):
    """A name in a ranked list, with its codes where there are any."""

    rank: Required[int | None]
    name: Required[str]
    codes: list[str]


def longest_list(rules: JudgingRules) -> str:
    """Return the longest list that counts, by the rules of a run."""
    ranks = range(1, rules.ddx_rules.rank_limit + 1)
    return canonical([{"rank": n, "name": "x" * LONGEST_NAME} for n in ranks]).decode()


def read_diagnoses(
    item: Item, prompt: Prompt, text: str, mode: str, *, cut: bool = False
) -> Reading:
    """Return the list as JSON text and the form it had, or None and why none could be read.

    A list of fewer than five names in a reply that was cut off is `truncated`; its whole names are
    kept beside that.
    """
    answer_text = strip_thoughts(text)[0]
    if not answer_text.strip():
        return Reading(None, "blank")
    ranked = read_ranked_list(answer_text, cut=cut)
    if ranked is None:
        return Reading(None, "no list of diagnoses")
    value = canonical(_entry_records(ranked)).decode()
    ended = ranked.cut_off or cut
    short = ended and (len(ranked.entries) < ASKED or (cut and ranked.provisional))
    return Reading(value, ranked.form, outcome="truncated" if short else "answered")


def read_list(text: str) -> tuple[list[EntryObject] | None, str]:
    r"""Return the entries of a ranked list.

    Each with `rank`, `name` and perhaps `codes`, and the form it had.

    None, and why, where nothing could be read. An empty list is an answer.

    Examples
    --------
    >>> read_list("+1. Gout: a crystal disease\n+2. Septic arthritis: …")
    ([{'rank': 1, 'name': 'Gout'}, {'rank': 2, 'name': 'Septic arthritis'}], 'lines')
    """
    answer_text = strip_thoughts(text)[0]
    if not answer_text.strip():
        return None, "blank"
    ranked = read_ranked_list(answer_text)
    return (
        (None, "no list of diagnoses") if ranked is None else (_entry_records(ranked), ranked.form)
    )


def _entry_records(ranked: RankedList) -> list[EntryObject]:
    entries: list[EntryObject] = []
    for entry in ranked.entries:
        entries.append({"rank": entry.rank, "name": entry.name})
        if entry.codes:
            entries[-1]["codes"] = list(entry.codes)
    return entries
