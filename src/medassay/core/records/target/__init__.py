"""What counts as right for an item: one class for each form of target, tagged by its form.

A target is read from the keys of an item's file object that belong to it, after they were checked.
The classes here are those that more than one room reads; kinds may bring their own
(`further_targets`).
"""

import importlib
from functools import cache

from medassay.core.records.target.base import Form, Keys, Refuse, Target
from medassay.core.records.target.closed import LETTERS, Choice, Given, Key, Pattern, Range
from medassay.core.records.target.open import Criteria, Criterion, Diagnoses, Fact, Facts, Reference
from medassay.core.records.target.record import Record, Report
from medassay.core.records.target.withheld import Withheld

__all__ = [
    "CLOSED_TARGETS",
    "LETTERS",
    "OPEN_FORMS",
    "OPEN_TARGETS",
    "TARGETS",
    "Choice",
    "Criteria",
    "Criterion",
    "Diagnoses",
    "Fact",
    "Facts",
    "Form",
    "Given",
    "Key",
    "Keys",
    "Pattern",
    "Range",
    "Record",
    "Reference",
    "Refuse",
    "Report",
    "Target",
    "Withheld",
    "further_targets",
]

# An item has the first that claims it, of the closed or of the open ones, and without any the last
# of these; but for one that is withheld, and for targets that kinds bring: these are asked first.
CLOSED_TARGETS: tuple[type[Target], ...] = (Choice, Pattern, Range, Key, Given)
OPEN_TARGETS: tuple[type[Target], ...] = (Report, Criteria, Diagnoses, Record, Reference, Facts)
TARGETS: tuple[type[Target], ...] = (*CLOSED_TARGETS, *OPEN_TARGETS, Withheld)
OPEN_FORMS = frozenset(target.form for target in TARGETS if target.is_open)


@cache
def further_targets() -> tuple[type[Target], ...]:
    """Return the targets that kinds bring themselves.

    The catalogue of kinds lies above the rooms that read items, and is found by name: when an item
    has a key that nobody here knows (docs/decisions/0028).
    """
    catalog = importlib.import_module("medassay.kinds.catalog")
    return tuple(target for kind in catalog.KINDS.values() for target in kind.targets)
