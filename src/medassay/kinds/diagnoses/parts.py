"""The parts of the score of one ranked list."""

from collections.abc import Mapping
from typing import Any

import msgspec

from medassay.core.json import record_as


class DiagnosesParts(msgspec.Struct, frozen=True, kw_only=True):
    """What belongs to the score of a list besides its value.

    Of a withheld case some of it is public; runs of earlier versions lack what was added later.

    Attributes
    ----------
    severity : 0 to 16; None where no severity was judged
    severity_shift : mean signed difference of the severities
    all_places : semantic score over all places, also those without a name
    hit : rank of the golden diagnosis; None where it is not in the list
    n, n_considered : names in the list, and those within the limit of ranks
    unjudged : labels that nobody gave
    """

    severity: float | None = None
    severity_shift: float | None = None
    golden_severity: str | None = None
    all_places: float | None = None
    hit: int | None = None
    n: int | None = None
    n_considered: int = 0
    unjudged: int = 0


def parts_of(parts: Mapping[str, Any] | None) -> DiagnosesParts:
    """Return the parts of a score as a record; of a reply without a list there are none.

    Raises
    ------
    IntegrityError
        When they are something else.
    """
    return record_as(parts or {}, DiagnosesParts, "scores.jsonl: parts of ranked diagnoses")
