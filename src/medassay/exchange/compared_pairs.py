"""Every pair of some rows over some domains: differences, tests, and what would tell them apart."""

from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np
from msgspec.structs import replace

from medassay.core.records.leaderboard import UNREAD_WARNING, unread_outweighs
from medassay.statistic.draws import count_clusters
from medassay.statistic.interval.bootstrap import SMALL_N, TIE
from medassay.statistic.ranking.evidence import Evidence
from medassay.statistic.ranking.field import ALL_PAIRS_UP_TO, MIN_COVERAGE
from medassay.statistic.ranking.pairs import Pair, RankedRows, board_of, pairs_of_board
from medassay.statistic.ranking.pool import Options, Stratum
from medassay.statistic.ranking.shared import Bools
from medassay.statistic.test.margin import DifferenceInterval
from medassay.statistic.test.planner import items_to_tell

_TOLD_OF = 30  # rows: of the pairs of more of them nobody asks how many items each would need


class ComparedPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two rows over the items that both have: a minus b, on the metric's scale.

    Attributes
    ----------
    domain, mode : what is compared; `overall` is the mean over domains
    a, b : labels of the rows
    n, n_clusters : items that both have, and vignettes that they come from
    diff, lo, hi : the difference with its own interval
    simultaneous : the interval tested at once with all pairs of the family; None without spread,
        or of too few items
    family : how many pairs were tested at once
    better : "a" or "b", "" where neither is shown to be better, None of too few items
    p, test, p_holm : of the pair alone, by which test, and adjusted over the family; None where a
        domain has a single common item, or cluster, so that nothing tests the mean over domains
    unread : unread shares of both, in [0, 1]
    unread_outweighs : whether these differ by more than the scores do
    mcnemar_p, only_a, only_b : of right-or-wrong answers; how many just one has right
    identical : whether both have the same score on every item
    margin : against which `equivalent` and `non_inferior` are claimed; None without one
    equivalent : whether the two are shown to differ by less than the margin; None without one
    non_inferior : whether a is shown not to be worse than b by the margin; None without one
    bounds_90, bounds_method : the 90 % interval that these rest on
    items_to_tell : about how many items would tell the two apart; None where a difference is shown,
        where there is none at all, or where nobody can say
    metric : where the runs have several
    """

    domain: str
    mode: str
    a: str
    b: str
    n: int
    n_clusters: int
    diff: float
    lo: float
    hi: float
    simultaneous: tuple[float, float] | None
    family: int
    better: str | None
    p: float | None
    test: str | None
    p_holm: float | None
    unread: tuple[float, float]
    unread_outweighs: bool
    identical: bool
    mcnemar_p: float | None
    only_a: int | None
    only_b: int | None
    margin: float | None
    bounds_90: tuple[float, float] | None
    bounds_method: str | None
    equivalent: bool | None
    non_inferior: bool | None
    items_to_tell: int | None
    metric: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def ends(self) -> tuple[float, float]:
        """Return the interval that goes with the reading; where there is none, that of the pair
        alone.
        """
        lo, hi = self.simultaneous or (self.lo, self.hi)
        return lo, hi

    @property
    def reading(self) -> str:
        """Return what the numbers say, in words."""
        says = [f"{self.a if self.better == 'a' else self.b} better"]
        if not self.better:
            says = ["no difference shown"]
        if self.better is None:
            says = ["fewer than 10 items or clusters: no reading"]
        if self.identical:
            says = [f"the same score on each of {self.n} items"]
        if self.margin is not None:
            if self.equivalent:
                says.append("equally good within the margin")
            elif self.non_inferior:
                says.append("first not worse by the margin")
            else:
                says.append("nothing shown within the margin")
        if self.unread_outweighs:
            says.append(f"⚠ {UNREAD_WARNING}")
        if self.better == "" and (needed := self.items_to_tell) is not None:
            says.append(f"about {needed:,} items would be needed")
        return "; ".join(says)


class RowsOfDomains(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Some rows over some domains, to be compared pair by pair.

    Attributes
    ----------
    domain, mode : what pairs are called by
    labels : of the rows, in the order of the strata's scores
    n_told : how many rows, the first ones, to tell of; the others are tested with them
    unread : unread share of each row
    """

    domain: str
    mode: str
    labels: Sequence[str]
    strata: Sequence[Stratum]
    options: Options
    margin: float | None
    unread: Sequence[float]
    n_told: int

    @cached_property
    def _present(self) -> list[Bools]:
        return [~np.isnan(stratum.scores) for stratum in self.strata]

    def pairs(self) -> list[ComparedPair]:
        """Return all pairs of the rows to tell of.

        A board ranks no row that has scores of too few items: the family of its pairs is without
        such a row, and pairs with one are tested in a family that has them all.
        """
        numbers = list(range(len(self.labels)))
        enough = [k for k in numbers if self._coverage(k) >= MIN_COVERAGE]
        pairs = self._pairs_among(enough)
        if any(k not in enough for k in numbers[: self.n_told]):
            for places, pair in self._pairs_among(numbers).items():
                pairs.setdefault(places, pair)
        return [pairs[places] for places in sorted(pairs)]

    def _coverage(self, row: int) -> float:
        present = np.concatenate([part[row] for part in self._present])
        return float(present.mean())

    def _pairs_among(self, ranked: list[int]) -> dict[tuple[int, int], ComparedPair]:
        """Return the pairs of the rows to tell of, tested in the family of the `ranked` rows."""
        common = [np.asarray(part[ranked].all(axis=0)) for part in self._present]
        field = RankedRows(
            rows=[(str(k), "") for k in range(len(self.labels))],
            strata=self.strata,
            ranked=ranked,
            present=self._present,
            common=common,
            options=self.options,
        )
        board = board_of(field, step_down=len(ranked) <= ALL_PAIRS_UP_TO)
        places = [place for place, k in enumerate(ranked) if k < self.n_told]
        pairs = pairs_of_board(field, board, places)
        kappa = 0.0 if board.relation is None else board.relation.kappa
        parts = [s.clusters[m] for s, m in zip(self.strata, common, strict=True) if m.any()]
        single = any(count_clusters(part) < 2 for part in parts)
        compared = {}
        for pair in pairs.pairs:
            a, b = int(pair.first[0]), int(pair.second[0])
            evidence = Evidence.of(self.strata, common, a, b)
            compared[a, b] = self._compared(pair, evidence, pairs.c, kappa, len(ranked))
            if single and pair.difference.test == "stratified_t":  # one item has no spread
                compared[a, b] = replace(compared[a, b], p=None, test=None, p_holm=None)
        return compared

    def _compared(
        self, pair: Pair, evidence: Evidence, c: float | None, kappa: float, n_rows: int
    ) -> ComparedPair:
        a, b = int(pair.first[0]), int(pair.second[0])
        difference, margin = pair.difference, self.margin
        discordant = evidence.discordant or (None, None)
        bounds = evidence.bounds
        few = min(pair.n, evidence.groups) < SMALL_N
        needed = None
        open_question = self.n_told <= _TOLD_OF and not pair.better
        if c is not None and pair.se is not None and not few and open_question:
            width = kappa * pair.n or 1.0
            # Over several domains n·SE² is no share of items that one alone has right.
            alone = kappa > 0 and len(evidence.first) == 1
            needed = items_to_tell(
                difference.value, pair.se, pair.n, c=c, right_wrong=alone, width=width
            )
        high = self.options.scale.better == "high"
        # Without a single difference there is no spread to go by: no interval of width 0 is honest.
        spread = pair.se is not None and pair.se > TIE
        return ComparedPair(
            domain=self.domain,
            mode=self.mode,
            a=self.labels[a],
            b=self.labels[b],
            n=pair.n,
            n_clusters=evidence.groups,
            diff=difference.value,
            lo=difference.lo,
            hi=difference.hi,
            simultaneous=pair.ends if pair.ends is not None and spread and not few else None,
            family=n_rows * (n_rows - 1) // 2,
            better=None if few else {"first": "a", "second": "b"}.get(pair.better or "", ""),
            p=difference.p,
            test=difference.test,
            p_holm=pair.p_holm,
            unread=(self.unread[a], self.unread[b]),
            unread_outweighs=unread_outweighs(
                self.unread[a], self.unread[b], difference.value, self.options.scale.ends
            ),
            identical=not evidence.differences.any(),
            mcnemar_p=evidence.mcnemar_p,
            only_a=discordant[0],
            only_b=discordant[1],
            margin=margin,
            bounds_90=None if bounds is None else (bounds.lo, bounds.hi),
            bounds_method=None if bounds is None else bounds.method,
            equivalent=(
                None if margin is None else bounds is not None and bounds.equivalent(margin)
            ),
            non_inferior=(
                None
                if margin is None
                else bounds is not None and _not_worse(bounds, margin, high=high)
            ),
            items_to_tell=needed,
        )


def _not_worse(bounds: DifferenceInterval, margin: float, *, high: bool) -> bool:
    return bounds.non_inferior(margin) if high else bounds.hi < margin
