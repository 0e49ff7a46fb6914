"""How the models of a run under way stand by now: counts and means, no ranks and no intervals.

Which items are answered first is no random draw, and models may be at different items.
"""

from medassay.core.records.answer import OUTCOMES
from medassay.core.records.leaderboard import UNREAD
from medassay.summary.provisional import ProvisionalRow
from medassay.viewer.index import RunIndex, remembered

_FAILED = OUTCOMES.index("failed")
_UNREAD = ",".join(str(OUTCOMES.index(name)) for name in OUTCOMES if name in UNREAD)


@remembered
def standings(index: RunIndex) -> list[ProvisionalRow]:
    """Return a row for each model, setting, mode and scorer, sorted by name; `mean` is over the
    trials that have a score by now.
    """
    rows = index.rows(
        "SELECT m.text, s.text, o.text, c.text, t.answered, t.unread, t.failed, t.scored, t.mean"
        " FROM (SELECT model, setting, mode, max(scorer) AS scorer,"
        f" sum(outcome != {_FAILED}) AS answered, sum(outcome IN ({_UNREAD})) AS unread,"
        f" sum(outcome = {_FAILED}) AS failed, count(score) AS scored, avg(score) AS mean"
        " FROM trial GROUP BY model, setting, mode) t"
        " JOIN name m ON m.id = t.model JOIN name s ON s.id = t.setting"
        " JOIN name o ON o.id = t.mode JOIN name c ON c.id = t.scorer ORDER BY 1, 2, 3"
    )
    names = ("model", "setting", "mode", "scorer", "answered", "unread", "failed", "scored", "mean")
    return [ProvisionalRow(**dict(zip(names, row, strict=True))) for row in rows]
