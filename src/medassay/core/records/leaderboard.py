"""`Leaderboard`: the rankings of a run, for reading, printing and notebooks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import msgspec

from medassay.core.ranks import rank_range
from medassay.core.records.estimate import Second

_SHOWN = 20


def rank_text(row: Mapping[str, Any], tied: bool) -> str:
    """Return the range of ranks of a row as it is stored; see `LeaderboardRow.rank_text`.

    Examples
    --------
    >>> rank_text({"rank": 3, "rank_lo": 3, "rank_hi": 38, "interval": "wilson"}, True)
    '3–38'
    >>> rank_text({"rank": 7, "rank_lo": 3, "rank_hi": 38}, True)
    '7 = (3–38)'
    """
    by_earlier_rule = tied if "interval" not in row else None
    return _rank_text((row["rank"], row["rank_lo"], row["rank_hi"]), by_earlier_rule)


def _rank_text(rank: tuple[int | None, int | None, int | None], tied: bool | None) -> str:
    """Return a rank with its ends as text; `tied` is None where ranks are ranges."""
    first, lo, hi = rank
    if first is None:
        return "–"
    return rank_range(lo, hi) if tied is None else f"{first}{' =' if tied else ''} ({lo}–{hi})"


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


def fallback_lines(fallback: Mapping[str, Any]) -> list[str]:
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


def units(value: float | None, scale: Sequence[float | None]) -> str:
    """Return a score as people read it: in percent on the scale 0 to 1, else in its own units.

    Examples
    --------
    >>> units(0.612, [0, 1]), units(7.25, [0, 10]), units(None, [0, 1]), units(1.23456, [0, None])
    ('61.2', '7.25', '–', '1.235')
    """
    if value is None:
        return "–"
    if None in scale:
        return f"{value:.4g}"
    return f"{100 * value:.1f}" if list(scale) == [0, 1] else f"{value:.2f}"


def scale_text(scale: Sequence[float | None], better: str = "high") -> str:
    """Return a scale as people read it.

    Examples
    --------
    >>> scale_text([0, 1]), scale_text([0, 10]), scale_text([0, None], "low")
    ('%', '0 to 10', 'from 0, lower is better')
    """
    lo, hi = scale
    if (lo, hi) == (0, 1):
        return "%"
    reach = f"from {lo:g}" if hi is None else f"{lo:g} to {hi:g}"
    return f"{reach}, lower is better" if better == "low" else reach


def honest_ends(estimate: dict[str, Any]) -> dict[str, Any]:
    """Return the interval to show of a rate: the second one where the first has no width.

    None of 24 answers is no proof of none at all; the bootstrap cannot say so, Wilson's interval
    can.
    """
    narrow = "degenerate" in estimate["flags"] and estimate["second"]
    return estimate["second"] if narrow else estimate


def share_text(share: Mapping[str, Any] | None) -> str:
    """Return an estimate of a share in percent with its interval, a dash where nothing is known."""
    if not share:
        return "–"
    ends = honest_ends(dict(share))
    numbers = [100 * number for number in (share["score"], ends["lo"], ends["hi"])]
    return "{:.1f} [{:.1f}, {:.1f}]".format(*numbers)


def tied_groups(rows: list[dict[str, Any]]) -> set[tuple[str, int | None]]:
    """Return the (mode, group) of every group with more than one member."""
    seen_ranks: set[tuple[str, int | None]] = set()
    tied: set[tuple[str, int | None]] = set()
    for row in rows:
        if row["group"] is not None:
            key = (row["mode"], row["group"])
            (tied if key in seen_ranks else seen_ranks).add(key)
    return tied


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A number with its interval, as a run stores it: on the scale of the number."""

    score: float
    lo: float
    hi: float
    second: Second | None = None
    flags: list[str] = []

    @property
    def ends(self) -> tuple[float, float]:
        """Return the interval to show: the second one where the first has no width (see
        `honest_ends`).
        """
        if "degenerate" in self.flags and self.second is not None:
            return self.second.lo, self.second.hi
        return self.lo, self.hi


class LeaderboardRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a ranking, as a run stores it: a model in one setting and mode.

    What a kind of task adds, and what this code does not know, stays in the document.

    Attributes
    ----------
    scale : lower and upper end; None where there is none
    score, lo, hi : on the scale; None without an interval
    second : an interval by another method, where the first may be too short
    coverage : share of the items that have a score, in [0, 1]
    rank, rank_lo, rank_hi : None where the row is not ranked
    group : rows of earlier rules that share a rank
    interval : how the interval was made; absent in rankings of earlier rules
    outcomes : outcome → replies
    agreement : mean share of pairs of judges that say the same of a fact
    """

    model: str
    setting: str
    mode: str
    metric: str
    scale: tuple[float | None, float | None]
    score: float | None = None
    lo: float | None = None
    hi: float | None = None
    second: Second | None = None
    n: int
    coverage: float
    rank: int | None = None
    rank_lo: int | None = None
    rank_hi: int | None = None
    group: int | None = None
    interval: str | msgspec.UnsetType | None = msgspec.UNSET
    outcomes: dict[str, int] = {}
    flags: list[str] = []
    cut_off: int = 0
    asked_again: int = 0
    agreement: float | None = None
    hallucination_rate: Interval | None = None

    def rank_text(self, *, tied: bool) -> str:
        """Return the range of ranks, "3–38"; a dash when there is none.

        By the earlier rules a rank with its range, "=" when `tied` says that it is shared.
        """
        by_earlier_rule = tied if self.interval is msgspec.UNSET else None
        return _rank_text((self.rank, self.rank_lo, self.rank_hi), by_earlier_rule)

    @property
    def score_text(self) -> str:
        """Return the score with its interval and n: `61.2 [57.9, 64.4] n=330`."""
        if self.score is None:
            return "no interval"
        score, lo, hi = (units(value, self.scale) for value in (self.score, self.lo, self.hi))
        return f"{score} [{lo}, {hi}] n={self.n}"

    @property
    def replies(self) -> int:
        """Return how many calls gave a reply."""
        return sum(self.outcomes.values()) - self.outcomes.get("failed", 0)


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
        return msgspec.convert(self.domains[domain], list[LeaderboardRow])

    def lines(self, domain: str = "overall") -> list[tuple[str, str, str]]:
        """Return (rank, model and setting, score with interval) of each row."""
        tied = tied_groups(self.domains[domain])
        return [
            (
                row.rank_text(tied=(row.mode, row.group) in tied),
                f"{row.model} · {row.setting}",
                row.score_text,
            )
            for row in self.rows(domain)
        ]

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
