"""`Leaderboard`: the rankings of a run, for reading, printing and notebooks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from medassay.core.records.manifest_object import Fallback
from medassay.core.records.statistics import LeaderboardRow, rows_of, tied_groups

_SHOWN = 20


_UNREAD = ("unparsed", "truncated", "refused")  # outcomes in which no answer was read


def unread_share(outcomes: Mapping[str, int]) -> float:
    """Return the share of replies in which no answer was read: unparsed, cut off, or declined.

    Failed calls are no replies.

    Examples
    --------
    >>> unread_share({"answered": 90, "unparsed": 6, "truncated": 3, "refused": 1, "failed": 50})
    0.1
    """
    unread = sum(outcomes.get(name, 0) for name in _UNREAD)
    replies = unread + outcomes.get("answered", 0)
    return unread / replies if replies else 0.0


def unread_outweighs(
    first: float, second: float, difference: float, scale: Sequence[float | None]
) -> bool:
    """Return whether two unread shares differ by more than two scores do: the difference may be one
    of reading.

    Parameters
    ----------
    first, second : unread shares, in [0, 1]
    difference : of the scores, on their scale; an unread reply scores the worst of it

    Examples
    --------
    >>> unread_outweighs(0.43, 0.20, -0.10, [0, 1]), unread_outweighs(0.01, 0.0, -0.10, [0, 1])
    (True, False)
    """
    lo, hi = scale
    if lo is None or hi is None:  # nothing is the worst there: unread replies are left out
        return False
    return abs(first - second) * (hi - lo) > abs(difference) + 1e-12


UNREAD_WARNING = "unread replies differ by more than the scores"


def fallback_lines(fallback: Fallback) -> list[str]:
    """Return a line for each model that was asked for replies where others were asked for
    likelihoods.

    Examples
    --------
    >>> fallback_lines({"task": "closed_gen", "models": {"m": "its provider tells none"}})
    ["model 'm' is asked for replies, rows '…:closed_gen', never ranked: its provider tells none"]
    """
    return [
        f"model '{name}' is asked for replies, rows '…:{fallback['task']}', never ranked: {reason}"
        for name, reason in fallback.get("models", {}).items()
    ]


def ranking_lines(rows: Sequence[LeaderboardRow]) -> list[tuple[str, str, str]]:
    """Return (rank, model and setting, score with interval) of each row of one ranking."""
    tied = tied_groups(rows)
    return [
        (row.rank_text(tied=(row.mode, row.group) in tied), row.name, row.score_text)
        for row in rows
    ]


@dataclass(frozen=True)
class Leaderboard:
    """Rankings by domain, "overall" among them; `to_dict` is what `medassay report --json` prints.

    `by_kind` holds public and synthetic items apart, where a run has both; `ddx`, of ranked
    diagnoses, the weights, the pairs of model-prompts and where they err.
    """

    run: str
    domains: dict[str, list[dict[str, Any]]]
    by_kind: dict[str, Any] | None = None
    ddx: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the rankings as one JSON document."""
        document = {"schema_version": 1, "run": self.run, "domains": self.domains}
        more = {"by_kind": self.by_kind, "ddx": self.ddx}
        return document | {name: value for name, value in more.items() if value is not None}

    def rows(self, domain: str = "overall") -> list[LeaderboardRow]:
        """Return the rows of a ranking, the best first."""
        return rows_of(LeaderboardRow, self.domains[domain])

    def lines(self, domain: str = "overall") -> list[tuple[str, str, str]]:
        """Return (rank, model and setting, score with interval) of each row; where there are
        several metrics, each row is named after its own.
        """
        lines = []
        rows = self.rows(domain)
        metrics = list(dict.fromkeys(row.metric for row in rows))
        for metric in metrics:
            for rank, name, score in ranking_lines([r for r in rows if r.metric == metric]):
                lines.append((rank, f"{metric}: {name}" if len(metrics) > 1 else name, score))
        return lines

    def __str__(self) -> str:
        lines = self.lines()
        shown_lines = [f"{rank:>12}  {score:<28}  {name}" for rank, name, score in lines[:_SHOWN]]
        if len(lines) > _SHOWN:
            shown_lines.append(f"… {len(lines) - _SHOWN} more")
        return "\n".join(shown_lines)

    def _repr_html_(self) -> str:
        lines = self.lines()
        cells = "".join(
            f"<tr><td>{escape(rank)}</td><td>{escape(name)}</td><td>{escape(score)}</td></tr>"
            for rank, name, score in lines[:_SHOWN]
        )
        more = f"<p>… {len(lines) - _SHOWN} more</p>" if len(lines) > _SHOWN else ""
        head = "<tr><th>rank</th><th>model · setting</th><th>score</th></tr>"
        return f"<table>{head}{cells}</table>{more}"

    def to_pandas(self) -> Any:
        """Return all rows as a pandas DataFrame (needs pandas)."""
        import pandas

        rows = [
            {"domain": d, **row}
            for d, rows_of_domain in self.domains.items()
            for row in rows_of_domain
        ]
        return pandas.DataFrame(rows)
