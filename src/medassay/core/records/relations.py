"""What holds between the rows of one ranking: the pairs, who is shown to be better, and the best
answer to each item.
"""

import msgspec

from medassay.core.ranks import NOT_SHOWN, Reading, small_domain_text
from medassay.core.records.estimate import RowEstimate


class RowPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two rows of a ranking compared over their common items.

    Attributes
    ----------
    first, second : model and setting
    difference, lo, hi : of the means, first minus second, on the scale
    better : which of them is shown to be better, "" where none is; absent in rankings of earlier
        rules, of which `ordered` is the simultaneous test of all pairs
    unread : share of unread replies of each
    """

    first: tuple[str, str]
    second: tuple[str, str]
    difference: float
    lo: float
    hi: float
    n: int
    p: float
    test: str = ""
    p_holm: float | None = None
    p_max_t: float | None = None
    se: float | None = None
    better: str | msgspec.UnsetType = msgspec.UNSET
    different: bool | None = None
    separated: bool | None = None
    ordered: bool | None = None
    note: str = ""
    unread: tuple[float, float] | None = None
    unread_outweighs: bool | None = None

    @property
    def all_at_once(self) -> bool:
        """Return whether reading and interval come from one test of all pairs."""
        return self.better is not msgspec.UNSET

    def reading(self, better: str = "high") -> Reading:
        """Return which of the two is shown to be better.

        Of rankings by an earlier rule it is the simultaneous test of all pairs that tells, never
        whether intervals overlap.

        Parameters
        ----------
        better : end of the scale that is better
        """
        if self.all_at_once:
            return self.better or "none"  # type: ignore[return-value]
        if not self.ordered:
            return "none"
        return "first" if (self.difference > 0) == (better == "high") else "second"

    def reading_text(self, names: tuple[str, str], better: str = "high") -> str:
        """Return what is said of the two: which is better, or that no difference is shown."""
        reading = self.reading(better)
        if reading == "none":
            return NOT_SHOWN
        return f"{names[0] if reading == 'first' else names[1]} better"

    def turned(self) -> "RowPair":
        """Return the pair with its second row first."""
        others = {"first": "second", "second": "first"}
        return msgspec.structs.replace(
            self,
            first=self.second,
            second=self.first,
            difference=0.0 - self.difference,  # no negative zero
            lo=0.0 - self.hi,
            hi=0.0 - self.lo,
            better=self.better and others.get(self.better, ""),
            unread=self.unread and (self.unread[1], self.unread[0]),
        )


class SmallDomain(msgspec.Struct, frozen=True, kw_only=True):
    """A domain of few items, and what it weighs in the mean over domains."""

    domain: str
    items: int
    clusters: int
    weight: float

    def __str__(self) -> str:
        return small_domain_text(self.domain, self.items, self.clusters, self.weight)


class Wins(msgspec.Struct, frozen=True, kw_only=True):
    """The items on which a row is best, shared ones in parts; with an interval of their share."""

    model: str
    setting: str
    wins: float
    share_lo: float | None = None
    share_hi: float | None = None


class BestPerItem(msgspec.Struct, frozen=True, kw_only=True):
    """The best answer to each item: a bound above all rows."""

    score: float
    lo: float
    hi: float
    best_single: float
    headroom: float
    unsolved_share: float
    wins: list[Wins]


class PanelAlpha(msgspec.Struct, frozen=True, kw_only=True):
    """Krippendorff's alpha of a panel, with the interval of its nominal form."""

    nominal: float | None = None
    estimate: RowEstimate | None = None


class PanelOfRanking(msgspec.Struct, frozen=True, kw_only=True):
    """How far judges agree over all models of a ranking."""

    agreement: float | None = None
    alpha: PanelAlpha | None = None


class Relations(msgspec.Struct, frozen=True, kw_only=True):
    """What holds between the rows of one ranking.

    Attributes
    ----------
    n_common : items that all ranked rows have
    c : factor by which simultaneous intervals are wider than a standard error
    kappa : one item of right and wrong answers, which a difference must exceed besides; else 0
    graded : whether scores are more than right and wrong; None in rankings of earlier rules, as
        `n_ranked` and `sentence`
    """

    n_items: int
    n_common: int
    common_share: float = 1.0
    not_common: bool = False
    leader_changes_with_nulls: bool = False
    c: float | None = None
    kappa: float | None = None
    graded: bool | None = None
    n_ranked: int | None = None
    small_domains: list[SmallDomain] = []
    sentence: str | None = None
    pairs: list[RowPair]
    oracle: BestPerItem | None = None
    panel: PanelOfRanking | None = None

    @property
    def has_p(self) -> bool:
        """Return whether the p of a pair tests the difference that stands beside it: t does not
        where a domain has a single item, or cluster, and so no spread.
        """
        single = any(small.clusters < 2 for small in self.small_domains)
        return not (single and any(pair.test == "stratified_t" for pair in self.pairs))
