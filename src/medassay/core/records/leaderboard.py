"""`Leaderboard`: the rankings of a run, for reading, printing and notebooks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Self

from medassay.core.frame import SHOWN, FrameRow, Tabular, table_html
from medassay.core.records.manifest_object import Fallback
from medassay.core.records.statistics import LeaderboardRow, rows_of, tied_groups
from medassay.core.records.statistics_object import ProvenanceObject, StatisticsObject
from medassay.core.wording import visible
from medassay.errors import InputError

UNREAD = ("unparsed", "truncated", "refused")  # outcomes in which no answer was read


def unread_share(outcomes: Mapping[str, int]) -> float:
    """Return the share of replies in which no answer was read: unparsed, cut off, or declined.

    Failed calls are no replies.

    Examples
    --------
    >>> unread_share({"answered": 90, "unparsed": 6, "truncated": 3, "refused": 1, "failed": 50})
    0.1
    """
    unread = sum(outcomes.get(name, 0) for name in UNREAD)
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
class Leaderboard(Tabular):
    """Rankings by domain, "overall" among them; `to_dict` is what `medassay report --json` prints.

    In a notebook it is a table with the intervals drawn.

    Attributes
    ----------
    run : id of the run
    domains : domain → rows, the best first; `rows` gives them as records
    by_kind : public and synthetic items apart, where a run has both
    ddx : of ranked diagnoses the weights, the pairs of model-prompts, and where they err

    Examples
    --------
    >>> import medassay
    >>> board = medassay.leaderboard(medassay.example_run())
    >>> best = board.rows()[0]
    >>> best.model, best.rank_text(), best.score_text
    ('careful', '1', '70.8 [47.6, 86.7] n=24')
    """

    run: str
    domains: Mapping[str, Sequence[dict[str, Any]]]
    by_kind: ProvenanceObject | None = None
    ddx: dict[str, Any] | None = None

    @classmethod
    def of(cls, run: str, statistics: StatisticsObject) -> Self:
        """Return the rankings in the statistics of a run."""
        return cls(
            run=run,
            domains=statistics["domains"],
            by_kind=statistics.get("by_kind"),
            ddx=statistics.get("ddx"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the rankings as one JSON document."""
        document = {"schema_version": 1, "run": self.run, "domains": self.domains}
        more = {"by_kind": self.by_kind, "ddx": self.ddx}
        return document | {name: value for name, value in more.items() if value is not None}

    def rows(self, domain: str = "overall") -> list[LeaderboardRow]:
        """Return the rows of a ranking, the best first.

        Raises
        ------
        InputError
            When there is no such domain.
        """
        if domain not in self.domains:
            known = ", ".join(self.domains)
            raise InputError(f"run {self.run}: no domain '{domain}'; expected one of {known}")
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
        shown_lines = [f"{rank:>12}  {score:<28}  {name}" for rank, name, score in lines[:SHOWN]]
        if len(lines) > SHOWN:
            shown_lines.append(f"… {len(lines) - SHOWN} more")
        return visible("\n".join(shown_lines))

    def _repr_html_(self) -> str:
        return self.table()

    def table(self, domain: str = "overall", *, title: str = "") -> str:
        """Return a ranking as a table in HTML with its intervals drawn: no script, no link.

        Parameters
        ----------
        title : stands above the table; default: the domain
        """
        rows = self.rows(domain)
        ends = _ends_of(rows)
        cells = [
            [rank, name, score, _bar(row, ends)]
            for (rank, name, score), row in zip(self.lines(domain), _by_metric(rows), strict=True)
        ]
        return table_html(
            ["rank", "model · setting", "score [95 % interval]", ""],
            cells[:SHOWN],
            title=title or f"{self.run} · {domain}",
            n_more=max(0, len(cells) - SHOWN),
            markup=frozenset([3]),
        )

    def table_rows(self) -> Iterator[FrameRow]:
        """Yield the rows of all rankings, the domain first."""
        for domain, rows in self.domains.items():
            for row in rows:
                yield {"domain": domain, **row}


def _by_metric(rows: Sequence[LeaderboardRow]) -> list[LeaderboardRow]:
    """Return the rows as `Leaderboard.lines` orders them: one metric after the other."""
    metrics = list(dict.fromkeys(row.metric for row in rows))
    return sorted(rows, key=lambda row: metrics.index(row.metric))


def _ends_of(rows: Sequence[LeaderboardRow]) -> tuple[float, float]:
    """Return what all bars are drawn between: the scale, or where it has no end the widest
    interval.
    """
    values = [value for row in rows for value in (row.lo, row.hi) if value is not None]
    if not values:
        return 0.0, 1.0
    lo, hi = rows[0].scale
    return (min(values) if lo is None else lo), (max(values) if hi is None else hi)


def _bar(row: LeaderboardRow, ends: tuple[float, float]) -> str:
    """Return the interval of a score as a small drawing, in the colour of the text."""
    if row.score is None or row.lo is None or row.hi is None or ends[0] >= ends[1]:
        return ""

    def at(value: float) -> float:
        share = (value - ends[0]) / (ends[1] - ends[0])
        return round(4 + 152 * min(1.0, max(0.0, share)), 1)

    return (
        '<svg width="160" height="14" role="img" style="vertical-align:middle">'
        f"<title>{escape(row.score_text)}</title>"
        '<path d="M4 7H156" stroke="currentColor" opacity=".2"/>'
        f'<path d="M{at(row.lo)} 7H{at(row.hi)}" stroke="currentColor" stroke-width="2"/>'
        f'<circle cx="{at(row.score)}" cy="7" r="3.5" fill="currentColor"/></svg>'
    )
