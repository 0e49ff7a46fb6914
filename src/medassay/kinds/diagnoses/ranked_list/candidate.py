"""A list that a reply may mean by its diagnoses."""

import msgspec

from medassay.kinds.diagnoses.ranked_list.entry import ListEntry
from medassay.kinds.diagnoses.ranked_list.subject import Subject


class CandidateList(msgspec.Struct, frozen=True, kw_only=True):
    """Entries in their order, what is said of them, and the form and place in which they stand.

    Parameters
    ----------
    start : where the list begins; a larger number is later in the reply
    strength : of candidates of which nothing is said, the strongest form counts
    cut_off : whether the reply ended inside the list
    single : whether it is one name behind a label ("Most likely diagnosis: X"), no list
    """

    entries: tuple[ListEntry, ...]
    subject: Subject
    form: str
    start: int
    strength: int = 0
    cut_off: bool = False
    single: bool = False
