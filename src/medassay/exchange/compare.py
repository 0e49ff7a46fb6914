"""Compare models across runs on the items that all of them answered, pair by pair."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import msgspec
import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.frame import SHOWN, FrameRow, Tabular, table_html
from medassay.core.ranks import SIMULTANEOUS
from medassay.core.records.leaderboard import unread_share
from medassay.core.records.manifest import Manifest
from medassay.core.records.statistics import OVERALL, ScoreScale, Statistics, scripted_sentence
from medassay.core.records.target import TARGETS, further_targets
from medassay.core.records.task import Task
from medassay.core.scale import scale_text, units
from medassay.core.wording import visible
from medassay.errors import IncompleteError, InputError
from medassay.exchange.compared_pairs import ComparedPair, RowsOfDomains
from medassay.kinds.catalog import task_of_run
from medassay.kinds.statistics import parts_of
from medassay.statistic.draws import count_clusters, seed_of
from medassay.statistic.ranking.pool import Options, Stratum
from medassay.statistic.test.margin import check_margin
from medassay.storage.records import read_scored_trials
from medassay.storage.run import Run
from medassay.summary.leaderboard import unranked_rows
from medassay.summary.scores import RunScores

# What must be the same in both runs; withheld items have less of it.
_SAME = ("question", "context", "revision")
_OF_TARGETS = {key for target in TARGETS for key in target.keys} - {"lowest", "tombstone"}
Family = Literal["board", "pair"]


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a comparison, with its scores of one metric.

    Attributes
    ----------
    items, manifest, statistics : as if the run had no other metric
    """

    run: Run
    task: Task
    items: RunItems
    manifest: Manifest
    statistics: Statistics
    scores: RunScores

    @classmethod
    def of(cls, run: Run, metric: str = "") -> "Side":
        """Return a sealed run with its scores read; without a metric those of the first one."""
        items = RunItems(run.path, run.manifest.domains)
        statistics = next(s for s in run.statistics.by_metric if metric in ("", s.metric))
        parts = parts_of(items, run.manifest, task_of_run(run.manifest))
        part = parts[0]
        if len(parts) > 1:
            part = next(p for p in parts if p.task.metric == statistics.metric)
        scores = RunScores(part.items, part.manifest, part.task.scale)
        for trial, score in read_scored_trials(run.path):
            if part.items is items or part.items.holds(trial.domain, trial.item):
                scores.add_trial(trial, score.score)
        return cls(
            run=run,
            task=part.task,
            items=part.items,
            manifest=part.manifest,
            statistics=statistics,
            scores=scores,
        )


@dataclass(frozen=True, kw_only=True)
class Comparison(Tabular):
    """Every pair of rows over the items common to all sides.

    Attributes
    ----------
    notes : what a reader must know of the runs
    scales : ends of the scale of each metric, under "" where the runs have one alone
    places : label of a row → number of its run, model, setting
    """

    pairs: list[ComparedPair]
    notes: list[str]
    scales: Mapping[str, Sequence[float | None]]
    places: Mapping[str, tuple[int, str, str]]

    def __str__(self) -> str:
        return visible("\n".join([*map(" · ".join, self._cells()), *self.notes]))

    def _repr_html_(self) -> str:
        headings = ["first", "second", "difference [95 % interval]", "n", "reading"]
        rows = list(self._cells())
        n_more = max(0, len(rows) - SHOWN)
        return table_html(headings, rows[:SHOWN], n_more=n_more, notes=self.notes)

    def _cells(self) -> Iterator[list[str]]:
        for pair in self.pairs:
            scale = self.scales[pair.metric or ""]
            diff, lo, hi = (units(value, scale) for value in (pair.diff, *pair.ends))
            metric = f"{pair.metric}: " if pair.metric else ""
            difference = f"{metric}{diff} [{lo}, {hi}]"
            yield [pair.a, pair.b, difference, f"n={pair.n}", pair.reading]

    def table_rows(self) -> Iterator[FrameRow]:
        """Yield a row for each pair, with all its numbers."""
        for pair in self.pairs:
            yield {**msgspec.to_builtins(pair), "reading": pair.reading}

    def only_pair(self) -> ComparedPair:
        """Return the pair over all domains, where two models alone are compared by one metric.

        Raises
        ------
        InputError
            When there are more pairs.
        """
        overall = [pair for pair in self.pairs if pair.domain == self.pairs[0].domain]
        # Pairs of a metric of one domain stand under its name, not among those over all.
        metrics = sorted({str(pair.metric) for pair in self.pairs if pair.metric})
        if len(metrics) > 1:
            raise InputError(
                f"--gate: the runs have several metrics ({', '.join(metrics)}); name one with"
                " --metric (in Python metric=)"
            )
        if len(overall) != 1:
            raise InputError(
                f"--gate: {len(overall)} pairs; a gate holds one model against one, name them"
                " with --only (in Python only=)"
            )
        return overall[0]

    def gate(self, rule: str) -> tuple[bool, ComparedPair]:
        """Return whether the one pair, first against second, passes, and the pair.

        Parameters
        ----------
        rule : "noninferior" (the first is not worse by the margin compared with) or "equivalent";
            more rules, and their reports: `medassay.exchange.gate`

        Raises
        ------
        InputError
            When there is more than one pair: a gate holds one model against one.
        """
        pair = self.only_pair()
        return bool(pair.equivalent if rule == "equivalent" else pair.non_inferior), pair


def compare(
    runs: Sequence[Run],
    *,
    margin: float | None = None,
    only: Sequence[str] = (),
    by_domain: bool = False,
    family: Family = "board",
    metric: str = "",
) -> Comparison:
    """Return all pairs of rows of some runs, each compared on the items common to all of them, by
    each metric that all have.

    Parameters
    ----------
    margin : in units of the score; equivalence and non-inferiority are claimed against it, and are
        null without it
    only : names of models, to tell of no others; the pairs are then in this order
    family : "board": all rows that the runs rank are tested at once, whichever are told of; "pair":
        just those that are told of
    by_domain : whether each domain is compared too, besides the mean over domains
    metric : to compare by no other

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
    for run in runs:
        if not run.sealed:
            raise IncompleteError(f"{run.path}: not finished; only sealed runs are compared")
    metrics = _metrics(runs, metric)
    comparisons = [
        _compare([Side.of(run, name) for run in runs], margin, only, family, by_domain=by_domain)
        for name in metrics
    ]
    if len(metrics) == 1:
        return comparisons[0]
    pairs = [
        msgspec.structs.replace(pair, metric=name)
        for name, comparison in zip(metrics, comparisons, strict=True)
        for pair in comparison.pairs
    ]
    notes = [note for comparison in comparisons for note in comparison.notes]
    scales = {n: c.scales[""] for n, c in zip(metrics, comparisons, strict=True)}
    return Comparison(
        pairs=pairs,
        notes=list(dict.fromkeys(notes)),
        scales=scales,
        places=comparisons[0].places,
    )


def _metrics(runs: Sequence[Run], metric: str) -> list[str]:
    """Return the metrics to compare by: the one that is named, else all that the runs share; ""
    where every run has one alone.
    """
    by_run = [[s.metric for s in run.statistics.by_metric] for run in runs]
    if metric:
        for run, names in zip(runs, by_run, strict=True):
            if metric not in names:
                raise InputError(
                    f"--metric: {run.path} has no '{metric}'; it has {', '.join(names)}"
                )
        return [metric]
    shared = [name for name in by_run[0] if all(name in names for names in by_run)]
    return shared if shared and max(map(len, by_run)) > 1 else [""]


def _compare(
    sides: Sequence[Side],
    margin: float | None,
    only: Sequence[str],
    family: Family,
    *,
    by_domain: bool,
) -> Comparison:
    _refuse_unlike(sides)
    lo, hi = sides[0].statistics.scale.ends
    if margin is not None and lo is not None and hi is not None and margin >= hi - lo:
        raise InputError(
            f"margin {margin:g}: as wide as the scale {lo:g} to {hi:g}; 0.02 is 2 points of 100"
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
    return Comparison(
        pairs=pairs,
        notes=_notes(sides, rows),
        scales={"": (lo, hi)},
        places={row.label: (row.side, row.model, row.setting) for row in rows},
    )


class _ComparedRow(msgspec.Struct, frozen=True):
    side: int
    model: str
    setting: str
    mode: str
    label: str


def _refuse_unlike(sides: Sequence[Side]) -> None:
    """Refuse runs on other scales, or with another question under the same id."""
    for side, other in pairwise(sides):
        scales = [(s.statistics.metric, s.statistics.scale) for s in (side, other)]
        if scales[0] != scales[1]:
            raise InputError(
                f"{side.run.path} has {_metric(*scales[0])}, {other.run.path}"
                f" {_metric(*scales[1])}; expected the same metric on the same scale"
            )
    for other in sides[1:]:
        for domain in sides[0].scores.domains:
            _refuse_other_items(sides[0], other, domain)
            _refuse_other_clusters(sides[0], other, domain)


def _refuse_other_items(first: Side, other: Side, domain: str) -> None:
    further = {key for target in further_targets() for key in target.keys}
    for name in sorted(_ids(other, domain) & _ids(first, domain)):
        mine, yours = first.items.record(domain, name), other.items.record(domain, name)
        for key in (*_SAME, *sorted(_OF_TARGETS | further)):
            if key in mine and key in yours and mine.get(key) != yours.get(key):
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
        s.scores.clusters[domain][[s.items.place(domain, name) for name in names]]
        for s in (first, other)
    )
    n_mine, n_yours = count_clusters(mine), count_clusters(yours)
    n_both = len({(int(a), int(b)) for a, b in zip(mine, yours, strict=True)})
    if max(n_mine, n_yours) < len(names) and not n_mine == n_yours == n_both:
        raise InputError(
            f"domain '{domain}': {first.run.path} and {other.run.path} group the items into other "
            "clusters; expected the same, or none in one of them"
        )


def _metric(metric: str, scale: ScoreScale) -> str:
    return f"{metric} ({scale_text(scale.ends, scale.better)})"


def _ids(side: Side, domain: str) -> set[str]:
    return set(side.items.names(domain))


def _rows(sides: Sequence[Side], only: Sequence[str]) -> list[_ComparedRow]:
    """Return the rows to compare, each with a name of its own."""
    rows = []
    for at, side in enumerate(sides):
        for mode in sorted(side.scores.modes):
            names = side.scores.rows(mode)
            skipped = unranked_rows(side.manifest, names, side.scores, mode=mode)
            rows += [
                (at, model, setting, mode)
                for model, setting in names
                if (model in only if only else (model, setting) not in skipped)
            ]
    models = {model for _, model, _, _ in rows}
    for name in only:
        if name not in models:
            listed = sorted(
                {m for s in sides for mode in s.scores.modes for m, _ in s.scores.rows(mode)}
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
    roots = sorted({sides[at].run.seal.root for at in used})
    task = sides[0].task
    strata: list[Stratum] = []
    for domain in sides[used[0]].scores.domains:
        common = set.intersection(*(_ids(sides[at], domain) for at in used))
        if common:
            seed = seed_of(*roots, domain, mode)
            if len(used) == 1:  # as its board: no reading contradicts it
                manifest = sides[used[0]].manifest
                seed = seed_of(manifest.domains[domain], manifest.seed_label, domain, mode)
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
        compared = RowsOfDomains(
            domain=name,
            mode=mode,
            labels=[row.label for row in rows],
            strata=members,
            options=options,
            margin=margin,
            unread=unread,
            n_told=len(rows_told),
        )
        pairs += compared.pairs()
    return pairs


def _options(
    sides: Sequence[Side], used: Sequence[int], roots: Sequence[str], task: Task, mode: str
) -> Options:
    """Return how pairs are drawn and tested: within one run as its board is."""
    pool_seed, n_resamples = seed_of(*roots, OVERALL, mode), 1000
    if len(used) == 1:
        manifest = sides[used[0]].manifest
        joined = "+".join(sorted(set(manifest.domains.values())))
        pool_seed = seed_of(joined, manifest.seed_label, OVERALL, mode)
        n_resamples = manifest.plan.n_resamples
    return Options(
        pool_seed=pool_seed, scale=task.scale, rule=SIMULTANEOUS, n_resamples=n_resamples
    )


def _unread(side: Side, row: _ComparedRow, members: Sequence[Stratum]) -> float:
    """Return the unread share of a row over some domains."""
    names = [stratum.name for stratum in members]
    return unread_share(
        side.scores.outcomes.of(names, (row.model, row.setting), (row.mode,)).outcomes
    )


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
        scores[k] = side.scores.of(domain, row.mode, [(row.model, row.setting)])[0, places]
    owner = _grouping(sides, rows)
    positions = [owner.items.place(domain, name) for name in names]
    of = next((side for side in sides if domain in side.scores.lowest), None)
    return Stratum(
        name=domain,
        scores=scores,
        clusters=owner.scores.clusters[domain][positions],
        seed=seed,
        lowest=(
            None
            if of is None
            else of.scores.lowest[domain][[of.items.place(domain, name) for name in names]]
        ),
    )


def _grouping(sides: Sequence[Side], rows: Sequence[_ComparedRow]) -> Side:
    """Return the side whose clusters hold: the one that knows the coarsest grouping.

    A run that does not know that items share a case must not make them independent.
    """
    used = [sides[at] for at in sorted({row.side for row in rows})]

    def groups(side: Side) -> int:
        joined = np.concatenate([side.scores.clusters[d] for d in side.scores.domains])
        return count_clusters(joined) - len(joined)

    return min(used, key=groups)


def _notes(sides: Sequence[Side], rows: Sequence[_ComparedRow]) -> list[str]:
    notes = []
    if len({side.run.manifest.methodology for side in sides}) > 1:
        notes.append(
            "the runs differ in methodology: a difference may come from how they were asked or"
            " scored"
        )
    compared = {(row.side, row.model, row.setting) for row in rows}
    told = [
        row
        for number, side in enumerate(sides)
        for row in side.statistics.rows(OVERALL)
        if (number, *row.key) in compared
    ]
    if sentence := scripted_sentence(told):
        notes.append(sentence)
    shared = sum(
        len(set.intersection(*(_ids(s, d) for s in sides))) for d in sides[0].scores.domains
    )
    for side in sides:
        if n_left := len(side.items) - shared:
            notes.append(
                f"{side.run.path.name}: {n_left} of its {len(side.items)} items are not in all runs"
            )
    return notes
