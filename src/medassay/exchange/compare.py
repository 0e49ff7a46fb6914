"""Compare models across runs on the items that all of them answered, pair by pair."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import msgspec
import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.ranks import SIMULTANEOUS
from medassay.core.records.leaderboard import scale_text, unread_outweighs, unread_share
from medassay.core.records.task import Task
from medassay.errors import IncompleteError, InputError
from medassay.kinds.catalog import task_of_run
from medassay.statistic.draws import seed_of
from medassay.statistic.interval.bootstrap import SMALL_N, TIE
from medassay.statistic.ranking.evidence import Evidence
from medassay.statistic.ranking.field import ALL_PAIRS_UP_TO, MIN_COVERAGE
from medassay.statistic.ranking.pairs import Pair, RankedRows, board_of, pairs_of_board
from medassay.statistic.ranking.pool import Options, Stratum
from medassay.statistic.test.margin import DifferenceInterval, check_margin
from medassay.statistic.test.planner import items_to_tell
from medassay.storage.records import read_scored_trials
from medassay.storage.run import Run
from medassay.summary.leaderboard import OVERALL, unranked_rows
from medassay.summary.provenance import seed_label
from medassay.summary.scores import LeaderboardScores

_SAME = (
    *("question", "context", "options", "expected", "range", "regex", "facts", "criteria"),
    *("revision", "commitment"),
)
Family = Literal["board", "pair"]
_TOLD_OF = 30  # rows: of the pairs of more of them nobody asks how many items each would need


@dataclass(frozen=True, kw_only=True)
class Side:
    """One run of a comparison, with its scores."""

    run: Run
    items: RunItems
    table: LeaderboardScores

    @classmethod
    def of(cls, run: Run) -> "Side":
        """Return a sealed run with its scores read."""
        if not run.sealed:
            raise IncompleteError(f"{run.path}: not finished; only sealed runs are compared")
        items = RunItems(run.path, run.manifest.domains)
        table = LeaderboardScores(items)
        for trial, score in read_scored_trials(run.path):
            table.add(trial, score.score)
        return cls(run=run, items=items, table=table)


class ComparedPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two rows over the items that both have: a minus b, on the metric's scale.

    Attributes
    ----------
    a, b : labels of the rows
    diff, lo, hi : the difference with its own interval
    simultaneous : the interval tested at once with all pairs of the family; None without spread,
        or of too few items
    family : how many pairs were tested at once
    better : "a" or "b", "" where neither is shown to be better, None of too few items
    p, test, p_holm : of the pair alone, by which test, and adjusted over the family
    unread : unread shares of both, in [0, 1]
    unread_outweighs : whether these differ by more than the scores do
    mcnemar_p, only_a, only_b : of right-or-wrong answers; how many just one has right
    margin : against which `equivalent` and `non_inferior` are claimed; None without one
    bounds_90, bounds_method : the 90 % interval that these rest on
    items_to_tell : about how many items would tell the two apart
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
    p: float
    test: str
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


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Every pair of rows over the items common to all sides.

    `notes` are what a reader must know of the runs.
    """

    pairs: list[ComparedPair]
    notes: list[str]

    def gate(self, rule: str) -> tuple[bool, ComparedPair]:
        """Return whether the one pair, first against second, passes, and the pair.

        Parameters
        ----------
        rule : "noninferior" (the first is not worse by the margin compared with) or "equivalent"

        Raises
        ------
        InputError
            When there is more than one pair: a gate holds one model against one.
        """
        overall = [pair for pair in self.pairs if pair.domain == self.pairs[0].domain]
        if len(overall) != 1:
            raise InputError(
                f"--gate: {len(overall)} pairs; a gate holds one model against one, name them "
                "with --only"
            )
        [pair] = overall
        passed = pair.equivalent if rule == "equivalent" else pair.non_inferior
        return bool(passed), pair


def compare(
    runs: Sequence[Run],
    *,
    margin: float | None = None,
    only: Sequence[str] = (),
    by_domain: bool = False,
    family: Family = "board",
) -> Comparison:
    """Return all pairs of rows of some runs, each compared on the items common to all of them.

    Parameters
    ----------
    margin : in units of the score; equivalence and non-inferiority are claimed against it, and are
        null without it
    only : names of models, to tell of no others; the pairs are then in this order
    family : "board": all rows that the runs rank are tested at once, whichever are told of; "pair":
        just those that are told of
    by_domain : whether each domain is compared too, besides the mean over domains

    Returns
    -------
    Comparison
        A pair is the first minus the second, on the metric's scale.

    Raises
    ------
    InputError
        When runs have no item, mode or metric in common, or other items under the same id.
    """
    if margin is not None:
        check_margin(margin)
    sides = [Side.of(run) for run in runs]
    _refuse_unlike(sides)
    ends = sides[0].run.statistics["scale"]
    bounded = ends["hi"] is not None
    if margin is not None and bounded and margin >= ends["hi"] - ends["lo"]:
        raise InputError(
            f"margin {margin:g}: as wide as the scale {ends['lo']:g} to {ends['hi']:g}; 0.02 is 2"
            " points of 100"
        )
    rows = _rows(sides, only)
    if len(rows) < 2:
        raise InputError(
            f"{len(rows)} model to compare; expected at least two (baselines and scripted models"
            " are compared when --only names them)"
        )
    pairs: list[ComparedPair] = []
    others = []
    if only and family == "board":
        rows_told = {(row.side, row.model, row.setting, row.mode) for row in rows}
        others = [
            row
            for row in _rows(sides, ())
            if (row.side, row.model, row.setting, row.mode) not in rows_told
        ]
    for mode in sorted({row.mode for row in rows}):
        rows_of_mode = [row for row in rows if row.mode == mode]
        beside = [row for row in others if row.mode == mode]
        if len(rows_of_mode) > 1:
            pairs += _of_mode(sides, rows_of_mode, beside, mode, margin, by_domain=by_domain)
    if not pairs:
        raise InputError("the runs have no mode in common (solo, tools); nothing to compare")
    return Comparison(pairs=pairs, notes=_notes(sides))


@dataclass(frozen=True)
class _ComparedRow:
    side: int
    model: str
    setting: str
    mode: str
    label: str


def _refuse_unlike(sides: Sequence[Side]) -> None:
    """Refuse runs on other scales, or with another question under the same id."""
    for side, other in pairwise(sides):
        scales = [(s.run.statistics["metric"], s.run.statistics["scale"]) for s in (side, other)]
        if scales[0] != scales[1]:
            raise InputError(
                f"{side.run.path} has {_metric(scales[0])}, {other.run.path} {_metric(scales[1])}; "
                "expected the same metric on the same scale"
            )
    for other in sides[1:]:
        for domain in sides[0].table.domains:
            _refuse_other_items(sides[0], other, domain)
            _refuse_other_clusters(sides[0], other, domain)


def _refuse_other_items(first: Side, other: Side, domain: str) -> None:
    for name in sorted(_ids(other, domain) & _ids(first, domain)):
        mine, yours = first.items.record(domain, name), other.items.record(domain, name)
        for key in _SAME:
            if key in mine and key in yours and mine[key] != yours[key]:
                raise InputError(
                    f"item '{name}' of domain '{domain}' has another '{key}' in "
                    f"{other.run.path} than in {first.run.path}: not the same item"
                )


def _refuse_other_clusters(first: Side, other: Side, domain: str) -> None:
    """Refuse runs that group the same items in different ways; one may know no groups."""
    names = sorted(_ids(other, domain) & _ids(first, domain))
    if not names:
        return
    mine, yours = (
        s.table.clusters[domain][[s.items.place(domain, name) for name in names]]
        for s in (first, other)
    )
    n_mine, two = (len(np.unique(labels)) for labels in (mine, yours))
    n_both = len({(int(a), int(b)) for a, b in zip(mine, yours, strict=True)})
    if max(n_mine, two) < len(names) and not n_mine == two == n_both:
        raise InputError(
            f"domain '{domain}': {first.run.path} and {other.run.path} group the items into other "
            "clusters; expected the same, or none in one of them"
        )


def _metric(scale: tuple[str, Mapping[str, Any]]) -> str:
    return f"{scale[0]} ({scale_text([scale[1]['lo'], scale[1]['hi']], scale[1]['better'])})"


def _ids(side: Side, domain: str) -> set[str]:
    return set(side.items.names(domain))


def _rows(sides: Sequence[Side], only: Sequence[str]) -> list[_ComparedRow]:
    """Return the rows to compare, each with a name of its own."""
    rows = []
    for at, side in enumerate(sides):
        for mode in sorted(side.table.modes):
            names = side.table.rows(mode)
            skipped = unranked_rows(side.run.manifest, names, side.table, mode=mode)
            rows += [
                (at, model, setting, mode)
                for model, setting in names
                if (model in only if only else (model, setting) not in skipped)
            ]
    models = {model for _, model, _, _ in rows}
    for name in only:
        if name not in models:
            listed = sorted(
                {m for s in sides for mode in s.table.modes for m, _ in s.table.rows(mode)}
            )
            raise InputError(f"--only: no model '{name}'; there are {', '.join(listed)}")
    if only:
        rows.sort(key=lambda row: only.index(row[1]))
    return [_ComparedRow(*row, label=_label(row, rows, sides)) for row in rows]


def _label(
    row: tuple[int, str, str, str],
    rows: Sequence[tuple[int, str, str, str]],
    sides: Sequence[Side],
) -> str:
    """Return the shortest name that no other row has: model, setting, mode, run."""
    side, model, setting, mode = row
    label = model
    if len({other[2] for other in rows}) > 1:
        label += f" · {setting}"
    if len({other[3] for other in rows}) > 1:
        label += f" · {mode}"
    if any(other != row and other[1:] == row[1:] for other in rows):
        label += f" · {side + 1}. {sides[side].run.path.name}"
    return label


def _of_mode(
    sides: Sequence[Side],
    rows_told: Sequence[_ComparedRow],
    beside: Sequence[_ComparedRow],
    mode: str,
    margin: float | None,
    *,
    by_domain: bool,
) -> list[ComparedPair]:
    """Return the pairs of some rows; those beside them are of their family, and not told of."""
    rows = [*rows_told, *beside]
    used = sorted({row.side for row in rows})
    roots = sorted({sides[at].run.seal["root"] for at in used})
    task = task_of_run(sides[0].run.manifest)
    strata: list[Stratum] = []
    for domain in sides[used[0]].table.domains:
        common = set.intersection(*(_ids(sides[at], domain) for at in used))
        if common:
            seed = seed_of(*roots, domain, mode)
            if len(used) == 1:  # as its board: no reading contradicts it
                manifest = sides[used[0]].run.manifest
                seed = seed_of(manifest.domains[domain], seed_label(manifest), domain, mode)
            strata.append(_stratum(sides, rows, domain, sorted(common), seed))
    if not strata:
        raise InputError("the runs have no item in common (same domain, same id)")
    groups = [(OVERALL if len(strata) > 1 else strata[0].name, strata)]
    if by_domain and len(strata) > 1:
        groups += [(stratum.name, [stratum]) for stratum in strata]
    pairs = []
    for name, members in groups:
        options = _options(sides, used, roots, task, mode)
        unread = [_unread(sides[row.side], row, members) for row in rows]
        versus = _Versus((name, mode), rows, members, options, margin, unread, len(rows_told))
        pairs += versus.pairs()
    return pairs


def _options(
    sides: Sequence[Side], used: Sequence[int], roots: Sequence[str], task: Task, mode: str
) -> Options:
    """Return how pairs are drawn and tested: within one run as its board is."""
    pool_seed, n_resamples = seed_of(*roots, OVERALL, mode), 1000
    if len(used) == 1:
        manifest = sides[used[0]].run.manifest
        joined = "+".join(sorted(set(manifest.domains.values())))
        pool_seed = seed_of(joined, seed_label(manifest), OVERALL, mode)
        n_resamples = manifest.plan.n_resamples
    return Options(
        pool_seed=pool_seed, scale=task.scale, rule=SIMULTANEOUS, n_resamples=n_resamples
    )


def _unread(side: Side, row: _ComparedRow, members: Sequence[Stratum]) -> float:
    """Return the unread share of a row over some domains."""
    names = [stratum.name for stratum in members]
    return unread_share(side.table.counted(names, (row.model, row.setting), row.mode))


def _stratum(
    sides: Sequence[Side],
    rows: Sequence[_ComparedRow],
    domain: str,
    names: list[str],
    seed: int,
) -> Stratum:
    scores = np.empty((len(rows), len(names)))
    for k, row in enumerate(rows):
        side = sides[row.side]
        places = [side.items.place(domain, name) for name in names]
        scores[k] = side.table.matrix(domain, row.mode, [(row.model, row.setting)])[0, places]
    owner = _grouping(sides, rows)
    positions = [owner.items.place(domain, name) for name in names]
    of = next((side for side in sides if domain in side.table.lowest), None)
    return Stratum(
        name=domain,
        scores=scores,
        clusters=owner.table.clusters[domain][positions],
        seed=seed,
        lowest=(
            None
            if of is None
            else of.table.lowest[domain][[of.items.place(domain, name) for name in names]]
        ),
    )


def _grouping(sides: Sequence[Side], rows: Sequence[_ComparedRow]) -> Side:
    """Return the side whose clusters hold: the one that knows the coarsest grouping.

    A run that does not know that items share a case must not make them independent.
    """
    used = [sides[at] for at in sorted({row.side for row in rows})]

    def groups(side: Side) -> int:
        joined = np.concatenate([side.table.clusters[d] for d in side.table.domains])
        return len(np.unique(joined)) - len(joined)

    return min(used, key=groups)


class _Versus:
    """All pairs of some rows over some domains."""

    def __init__(
        self,
        of: tuple[str, str],
        rows: Sequence[_ComparedRow],
        strata: Sequence[Stratum],
        options: Options,
        margin: float | None,
        unread: Sequence[float],
        n_told: int,
    ) -> None:
        self._domain, self._mode = of
        self._unread, self._n_told = unread, n_told
        self._rows, self._strata, self._options, self._margin = rows, strata, options, margin
        self._present = [~np.isnan(s.scores) for s in strata]

    def pairs(self) -> list[ComparedPair]:
        """Return all pairs of the rows to tell of.

        A board ranks no row that has scores of too few items: the family of its pairs is without
        such a row, and pairs with one are tested in a family that has them all.
        """
        numbers = list(range(len(self._rows)))
        enough = [k for k in numbers if self._coverage(k) >= MIN_COVERAGE]
        pairs = self._pairs_among(enough)
        if any(k not in enough for k in numbers[: self._n_told]):
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
            rows=[(str(k), "") for k in range(len(self._rows))],
            strata=self._strata,
            ranked=ranked,
            present=self._present,
            common=common,
            options=self._options,
        )
        board = board_of(field, step_down=len(ranked) <= ALL_PAIRS_UP_TO)
        places = [place for place, k in enumerate(ranked) if k < self._n_told]
        pairs = pairs_of_board(field, board, places)
        kappa = 0.0 if board.relation is None else board.relation.kappa
        compared = {}
        for pair in pairs.pairs:
            a, b = int(pair.first[0]), int(pair.second[0])
            evidence = Evidence.of(self._strata, common, a, b)
            compared[a, b] = self._compared(pair, evidence, pairs.c, kappa, len(ranked))
        return compared

    def _compared(
        self, pair: Pair, evidence: Evidence, c: float | None, kappa: float, n_rows: int
    ) -> ComparedPair:
        a, b = int(pair.first[0]), int(pair.second[0])
        difference, margin = pair.difference, self._margin
        discordant = evidence.discordant or (None, None)
        bounds = evidence.bounds
        few = min(pair.n, evidence.groups) < SMALL_N
        needed = None
        open_question = self._n_told <= _TOLD_OF and not pair.better
        if c is not None and pair.se is not None and not few and open_question:
            width = kappa * pair.n or 1.0
            # Over several domains n·SE² is no share of items that one alone has right.
            alone = kappa > 0 and len(evidence.first) == 1
            needed = items_to_tell(
                difference.value, pair.se, pair.n, c=c, right_wrong=alone, width=width
            )
        high = self._options.scale.better == "high"
        # Without a single difference there is no spread to go by: no interval of width 0 is honest.
        spread = pair.se is not None and pair.se > TIE
        return ComparedPair(
            domain=self._domain,
            mode=self._mode,
            a=self._rows[a].label,
            b=self._rows[b].label,
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
            unread=(self._unread[a], self._unread[b]),
            unread_outweighs=unread_outweighs(
                self._unread[a], self._unread[b], difference.value, self._options.scale.ends
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


def _notes(sides: Sequence[Side]) -> list[str]:
    notes = []
    if len({side.run.manifest.methodology for side in sides}) > 1:
        notes.append(
            "the runs differ in methodology: a difference may come from how they were asked or"
            " scored"
        )
    if any(
        "scripted" in row["flags"] for s in sides for row in s.run.statistics["domains"][OVERALL]
    ):
        notes.append("SCRIPTED: answers or judges were scripted; these numbers measure nothing")
    shared = sum(
        len(set.intersection(*(_ids(s, d) for s in sides))) for d in sides[0].table.domains
    )
    for side in sides:
        if n_left := len(side.items) - shared:
            notes.append(
                f"{side.run.path.name}: {n_left} of its {len(side.items)} items are not in all runs"
            )
    return notes
