"""What went wrong in a run, in groups: the same wrong option, the same unread shape, the same
failure.
"""

import msgspec

from medassay.core.records.answer import OUTCOMES
from medassay.viewer.entry import GRADES
from medassay.viewer.index import RunIndex, remembered

_MOST = 100  # groups of a kind
_UNREAD = tuple(OUTCOMES.index(name) for name in ("unparsed", "refused", "truncated"))


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Trials that went wrong alike.

    Attributes
    ----------
    outcome, reason, shape : of unread and failed ones
    domain, item, value : of a wrong option
    n : trials
    models : different models among them
    answering : models that answered the item, of a wrong option
    """

    outcome: str
    reason: str = ""
    shape: str = ""
    domain: str = ""
    item: str = ""
    value: str = ""
    n: int
    models: int
    answering: int = 0


def count_failed(index: RunIndex) -> int:
    """Return how many trials have no reply."""
    [[n]] = index.rows("SELECT count(*) FROM trial WHERE outcome = ?", OUTCOMES.index("failed"))
    return int(n)


@remembered
def failures_by_kind(index: RunIndex) -> list[FailureGroup]:
    """Return the trials without a reply, by what was said of them, the most frequent first."""
    rows = index.rows(
        "SELECT r.text, count(*), count(DISTINCT model) FROM trial t JOIN name r ON r.id = t.reason"
        " WHERE t.outcome = ? GROUP BY t.reason ORDER BY 2 DESC, 1 LIMIT ?",
        OUTCOMES.index("failed"),
        _MOST,
    )
    return [
        FailureGroup(outcome="failed", reason=reason, n=n, models=models)
        for reason, n, models in rows
    ]


@remembered
def unread_by_shape(index: RunIndex) -> list[FailureGroup]:
    """Return the replies in which nothing was read, by why and by their shape, the most frequent
    first.
    """
    marks = ",".join("?" * len(_UNREAD))
    rows = index.rows(
        "SELECT t.outcome, r.text, s.text, count(*), count(DISTINCT model) FROM trial t"
        " JOIN name r ON r.id = t.reason JOIN name s ON s.id = t.shape"
        f" WHERE t.outcome IN ({marks}) GROUP BY t.outcome, t.reason, t.shape"
        " ORDER BY 4 DESC, 1, 2, 3 LIMIT ?",
        *_UNREAD,
        _MOST,
    )
    return [
        FailureGroup(outcome=OUTCOMES[outcome], reason=reason, shape=shape, n=n, models=models)
        for outcome, reason, shape, n, models in rows
    ]


@remembered
def wrong_options(index: RunIndex) -> list[FailureGroup]:
    """Return the wrong values that several models gave to one item, the most frequent first: where
    many agree on one that is not the key, the key is worth a look.
    """
    rows = index.rows(
        "SELECT t.domain, t.item, t.value, count(*), count(DISTINCT t.model) AS models"
        " FROM trial t WHERE t.grade = ? AND t.value IS NOT NULL"
        " GROUP BY t.item, t.domain, t.value HAVING models > 1"
        " ORDER BY models DESC, 4 DESC, t.domain, t.item LIMIT ?",
        GRADES.index("wrong"),
        _MOST,
    )
    groups = []
    for domain, item, value, n, models in rows:
        [[answering]] = index.rows(
            "SELECT count(DISTINCT model) FROM trial WHERE item = ? AND domain = ? AND outcome = ?",
            item,
            domain,
            OUTCOMES.index("answered"),
        )
        [[domain_name]] = index.rows("SELECT text FROM name WHERE id = ?", domain)
        [[item_name]] = index.rows("SELECT text FROM name WHERE id = ?", item)
        groups.append(
            FailureGroup(
                outcome="answered",
                domain=domain_name,
                item=item_name,
                value=value,
                n=n,
                models=models,
                answering=answering,
            )
        )
    return groups
