"""What models make of contexts: accuracy, judge and similarity of every model in every setting, and
what each context adds.

Settings stand side by side: zero-shot, with retrieved text, and the toplines with path, source
text, or both, which are upper bounds and get no rank. Every item counts once, whatever its
category, as published; ranks are of the models of one setting.

Source: specification of tasks and prompts, 14.2; of ranks, R1, R2 and R5; of statistics, 7.4 and
7.7.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, groupby
from typing import Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from medassay.bank.run_items import RunItems
from medassay.core.ranks import SIMULTANEOUS
from medassay.core.records.leaderboard import unread_outweighs, unread_share
from medassay.core.records.statistics import OVERALL
from medassay.core.records.trial import RowKey, Setting
from medassay.core.scale import Scale
from medassay.errors import InputError
from medassay.kinds.catalog import task_of_run
from medassay.score.measure import UNBOUNDED
from medassay.statistic.draws import count_clusters, number_clusters, seed_of
from medassay.statistic.interval.bootstrap import SMALL_N
from medassay.statistic.interval.effective import effective_interval
from medassay.statistic.metric.correlation import FEWEST, pearson_intervals, spearman
from medassay.statistic.ranking.field import ALL_PAIRS_UP_TO
from medassay.statistic.ranking.pairs import RankedRows, board_of
from medassay.statistic.ranking.pool import Options, Stratum
from medassay.statistic.ranking.shared import Rank
from medassay.statistic.test.holm import holm
from medassay.statistic.test.paired import Difference, paired_difference
from medassay.storage.records import read_scored_trials
from medassay.storage.run import Run

MeasureName = Literal["accuracy", "judge", "similarity"]
MEASURES: tuple[MeasureName, ...] = get_args(MeasureName)
SETTINGS: tuple[str, ...] = get_args(Setting)
BARE = "zero_shot"
ALL = "all"
ASKED_FOR = 150  # characters of an open answer
_SHORT = "healthbranches_open"  # the template that asks for so few
_LIKENESS = ("bge_m3", "bertscore", "moverscore", "chrf")  # the first that a run has
_LEVEL = 0.05
# Of rows that no ranking has, whatever their numbers; too few items are a category's own affair.
_NOT_RANKED = {f"not_ranked:{reason}" for reason in ("baseline", "fake", "generated", "topline")}


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of some items, each counted once.

    `ends` are those of its interval; None of a single condition, and of values that are all alike
    on a scale without ends: nothing is known of how sure the number is.
    """

    value: float
    ends: tuple[float, float] | None
    n: int
    n_clusters: int


class ContextMeasure(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One measure of one run: means by category and row, and the value of every item for
    differences.
    """

    measure: MeasureName
    metric: str
    run: Run
    scale: Scale
    values: Mapping[RowKey, Mapping[tuple[str, str], float]]
    clusters: Mapping[tuple[str, str], int]
    unranked: frozenset[RowKey] = frozenset()
    baselines: frozenset[RowKey] = frozenset()
    long: Mapping[RowKey, tuple[int, int]] = msgspec.field(default_factory=dict)
    unread: Mapping[RowKey, float] = msgspec.field(default_factory=dict)

    @cached_property
    def means(self) -> dict[str, dict[RowKey, Mean]]:
        """Return category → row → mean over its items; of a single item there is none."""
        means_by_category: dict[str, dict[RowKey, Mean]] = {}
        for row, values in self.values.items():
            places: dict[str, list[tuple[str, str]]] = {ALL: sorted(values)}
            for item in places[ALL]:
                places.setdefault(item[0], []).append(item)
            if len(places) == 2:  # one category is the whole
                places = {ALL: places[ALL]}
            for category, items in places.items():
                if len(items) > 1:
                    means_by_category.setdefault(category, {})[row] = self.mean(row, items)
        return means_by_category

    def mean(self, row: RowKey, items: Sequence[tuple[str, str]]) -> Mean:
        """Return the mean of a row over some items."""
        by_category = [[*group] for _, group in groupby(items, key=lambda item: item[0])]
        numbers = self._numbers(items)
        labels = [self._numbers(group) for group in by_category]
        n_clusters = len(items) if numbers is None else int(numbers.max()) + 1
        apart = sum(
            len(group) if label is None else int(label.max()) + 1
            for group, label in zip(by_category, labels, strict=True)
        )
        interval = effective_interval(
            [
                (np.array([self.values[row][item] for item in group]), label)
                for group, label in zip(by_category, labels, strict=True)
            ],
            scale=self.scale,
            weights=[len(group) / len(items) for group in by_category],
            spanning=numbers if n_clusters < apart else None,
        )
        ends = interval.ends if n_clusters > 1 else None
        return Mean(value=interval.mean, ends=ends, n=len(items), n_clusters=n_clusters)

    def _numbers(self, items: Sequence[tuple[str, str]]) -> NDArray[np.int64] | None:
        return number_clusters(np.array([self.clusters[item] for item in items]))


class ContextRow(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of one measure for one model in one setting and category, in the measure's units.

    Ranks are those of the models of the setting, None where they are not ranked; `few` marks
    fewer than 10 items or conditions; `unread` is a share, told of all categories together.
    """

    model: str
    setting: str
    category: str
    measure: MeasureName
    metric: str
    score: float
    lo: float | None
    hi: float | None
    n: int
    rank: int | None
    rank_lo: int | None
    rank_hi: int | None
    few: bool
    unread: float | None
    run: str


class ContextGain(msgspec.Struct, frozen=True, kw_only=True):
    """What one setting adds to a model: the setting minus zero-shot, paired over the items that
    both have, in points of 100 of the scale.

    `unread` are the unread shares with and without the context; `unread_outweighs` whether these
    differ by more than the gain.
    """

    model: str
    setting: str
    measure: MeasureName
    value: float
    lo: float
    hi: float
    p: float
    different: bool
    n: int
    unread: tuple[float, float]
    unread_outweighs: bool
    p_holm: float


class MeasureCorrelation(msgspec.Struct, frozen=True, kw_only=True):
    """Spearman's rho of two measures over the models of a setting."""

    setting: str
    first: MeasureName
    second: MeasureName
    rho: float | None
    lo: float | None
    hi: float | None
    n: int


class SourceShare(msgspec.Struct, frozen=True, kw_only=True):
    """How often what was retrieved held the source of the item's condition."""

    model: str
    setting: str
    mode: str
    run: str
    measure: MeasureName
    score: float
    lo: float | None
    hi: float | None
    n: int


class LongAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the open answers of a model in a setting are longer than asked for."""

    model: str
    setting: str
    long: int
    answers: int


class ContextsStudy(msgspec.Struct, frozen=True, kw_only=True):
    """The study: `metrics` names the metric of each measure; `scripted` says whether any answer or
    grade is a script's, so that the numbers measure nothing.
    """

    runs: list[str]
    metrics: dict[MeasureName, str]
    rows: list[ContextRow]
    gains: list[ContextGain]
    correlations: list[MeasureCorrelation]
    sources: list[SourceShare]
    long: list[LongAnswers]
    scripted: bool


def contexts_study(runs: Sequence[Run]) -> ContextsStudy:
    """Return accuracy, judge and similarity by model, setting and category, with what each context
    adds.

    Raises
    ------
    InputError
        When two runs measure the same, or a run none of the three, or too few items.
    """
    columns = [_column(run) for run in runs]
    _refuse_twice(columns)
    # Judged and compared answers are the same ones: told once.
    long = next((column.long for column in columns if column.long), {})
    return ContextsStudy(
        runs=[run.id for run in runs],
        metrics={column.measure: column.metric for column in columns},
        rows=[row for column in columns for row in _rows(column)],
        gains=_gains(columns),
        correlations=[*_correlations(columns)],
        sources=[source for run in runs for source in _sources(run)],
        long=[
            LongAnswers(model=model, setting=setting, long=n, answers=of)
            for (model, setting), (n, of) in sorted(long.items())
        ],
        scripted=any(_is_scripted(run) for run in runs),
    )


def _column(run: Run) -> ContextMeasure:
    """Return what a run measures: its own score, and of texts compared with references a
    likeness.
    """
    run.refuse_unfinished()
    run.manifest.refuse_several("this study")
    measure, metric = _measure(run)
    mode = run.statistics.modes[0]
    own_rows = run.statistics.rows(OVERALL, mode)
    values, long = _values(run, mode, measure, metric)
    scale = task_of_run(run.manifest).scale if measure != "similarity" else UNBOUNDED
    return ContextMeasure(
        measure=measure,
        metric=metric,
        run=run,
        scale=scale,
        values=values,
        clusters=RunItems(run.path, run.manifest.domains).cluster_of,
        unranked=frozenset(row.key for row in own_rows if _NOT_RANKED & set(row.flags)),
        baselines=frozenset(row.key for row in own_rows if "not_ranked:baseline" in row.flags),
        unread={row.key: unread_share(row.outcomes) for row in own_rows},
        long=long if f"{_SHORT}@" in run.manifest.template else {},
    )


def _measure(run: Run) -> tuple[MeasureName, str]:
    """Return which of the three a run measures, and by which metric."""
    metric = run.statistics.metric
    if (text := run.statistics.document.get("text")) is not None:
        metrics_known = text["metrics"]
        return "similarity", next(name for name in _LIKENESS if name in metrics_known)
    if run.manifest.task.startswith("g_eval"):
        return "judge", metric
    if metric == "accuracy":
        return "accuracy", metric
    raise InputError(
        f"run {run.id}: measures {metric}; expected a quiz (accuracy), answers graded by G-Eval, or"
        " answers compared with references"
    )


def _values(
    run: Run, mode: str, measure: MeasureName, metric: str
) -> tuple[dict[RowKey, dict[tuple[str, str], float]], dict[RowKey, tuple[int, int]]]:
    """Return the value of every item in every row, repeats averaged, and how many answers are
    longer than asked for.
    """
    values: dict[RowKey, dict[tuple[str, str], list[float]]] = {}
    long: dict[RowKey, list[int]] = {}
    for trial, score in read_scored_trials(run.path):
        if trial.mode != mode:
            continue
        row = trial.row
        value = score.score
        if measure == "similarity" and trial.outcome == "answered":
            texts = {**(score.parts or {}).get("text", {}), **score.measured}
            value = texts.get(metric)
        if value is not None:
            place = values.setdefault(row, {})
            place.setdefault((trial.domain, trial.item), []).append(value)
        if trial.outcome == "answered":
            counted = long.setdefault(row, [0, 0])
            counted[0] += len(trial.value or "") > ASKED_FOR
            counted[1] += 1
    means = {row: {i: sum(v) / len(v) for i, v in of.items()} for row, of in values.items()}
    return means, {row: (n, of) for row, (n, of) in long.items()}


def _refuse_twice(columns: Sequence[ContextMeasure]) -> None:
    """Refuse two runs of one measure: a table has one series of it, and its models are ranked among
    themselves.
    """
    owners: dict[str, str] = {}
    for column in columns:
        other = owners.get(column.measure)
        owners[column.measure] = column.run.id
        if not column.means:
            raise InputError(f"run {column.run.id}: no row has two items with a score")
        if other is not None:
            raise InputError(
                f"runs {other} and {column.run.id} both measure {column.measure}; give one run of"
                " each measure, with all its models in one plan"
            )


def order_of(setting: str) -> tuple[int, str]:
    """Return the place of a setting in tables: bare, with examples, retrieved, then the
    toplines.
    """
    kind = setting.partition(":")[0]
    return (SETTINGS.index(kind) if kind in SETTINGS else len(SETTINGS), setting)


def _rows(column: ContextMeasure) -> Iterator[ContextRow]:
    for category, means in sorted(column.means.items(), key=lambda o: (o[0] != ALL, o[0])):
        for setting in sorted({setting for _, setting in means}, key=order_of):
            own_means = {m: e for (m, s), e in sorted(means.items()) if s == setting}
            ranks = _ranks(column, category, setting, own_means)
            for model, mean in own_means.items():
                rank = ranks.get(model)
                yield ContextRow(
                    model=model,
                    setting=setting,
                    category=category,
                    measure=column.measure,
                    metric=column.metric,
                    score=mean.value,
                    lo=None if mean.ends is None else mean.ends[0],
                    hi=None if mean.ends is None else mean.ends[1],
                    n=mean.n,
                    rank=None if rank is None else rank.lo,
                    rank_lo=None if rank is None else rank.lo,
                    rank_hi=None if rank is None else rank.hi,
                    few=min(mean.n, mean.n_clusters) < SMALL_N,
                    unread=column.unread.get((model, setting), 0.0) if category == ALL else None,
                    run=column.run.id,
                )


def _ranks(
    column: ContextMeasure, category: str, setting: str, own_means: Mapping[str, Mean]
) -> dict[str, Rank]:
    """Return the rank range of each model of a setting on the items that all have: all its pairs
    are tested at once.

    Nothing for rows that the run does not rank, toplines among them, and where items or conditions
    are too few to order anything.
    """
    models = [model for model in own_means if (model, setting) not in column.unranked]
    if not models:
        return {}
    values = [column.values[model, setting] for model in models]
    common = sorted(set(values[0]).intersection(*values[1:]))
    items = [item for item in common if category in (ALL, item[0])]
    clusters = np.array([column.clusters[item] for item in items], dtype=np.int64)
    if count_clusters(clusters) < SMALL_N:
        return {}
    scores = np.array([[values_of_row[item] for item in items] for values_of_row in values])
    seed = seed_of(column.measure, category)
    of_setting = RankedRows(
        rows=[(model, setting) for model in models],
        strata=[Stratum(name=category, scores=scores, clusters=clusters, seed=seed)],
        ranked=[*range(len(models))],
        present=[np.ones(scores.shape, dtype=bool)],
        common=[np.ones(len(items), dtype=bool)],
        options=Options(pool_seed=seed, scale=column.scale, rule=SIMULTANEOUS),
    )
    board = board_of(of_setting, step_down=len(models) <= ALL_PAIRS_UP_TO)
    return {models[place]: rank for place, rank in board.ranks.items()}


def _gains(columns: Sequence[ContextMeasure]) -> list[ContextGain]:
    """Return each setting minus zero-shot for every measure and model, p adjusted over all."""
    paired = [(column, *pair) for column in columns for pair in _differences(column)]
    adjusted = holm([difference.p for *_, difference, _ in paired]) if paired else ()
    gains = []
    for (column, (model, setting), difference, n), p in zip(paired, adjusted, strict=True):
        # Likeness has no scale of its own, but means much where it is 1 and nothing at 0.
        scale, is_likeness = column.scale, column.measure == "similarity"
        factor = 100.0 if is_likeness else 100 / (scale.hi - scale.lo)
        with_context, bare = (column.unread.get((model, name), 0.0) for name in (setting, BARE))
        points = factor * difference.value
        gains.append(
            ContextGain(
                model=model,
                setting=setting,
                measure=column.measure,
                value=points,
                lo=factor * difference.lo,
                hi=factor * difference.hi,
                p=difference.p,
                # Few conditions make intervals too short, and many differences find one by
                # chance: both must agree.
                different=difference.different and bool(p <= _LEVEL),
                n=n,
                unread=(with_context, bare),
                unread_outweighs=unread_outweighs(with_context, bare, points, (0, 100)),
                p_holm=float(p),
            )
        )
    return gains


def _differences(column: ContextMeasure) -> Iterator[tuple[RowKey, Difference, int]]:
    """Yield (model, setting), the setting minus zero-shot paired over the items that both have, and
    how many these are.
    """
    for model, setting in sorted(column.values, key=lambda row: (row[0], order_of(row[1]))):
        bare = column.values.get((model, BARE), {})
        kind, _, template = setting.partition(":")
        if kind == BARE or template:
            continue
        with_, shared = column.values[model, setting], sorted(bare)
        shared = [item for item in shared if item in with_]
        if len({column.clusters[item] for item in shared}) < 2:
            continue
        difference = paired_difference(
            np.array([with_[item] for item in shared]),
            np.array([bare[item] for item in shared]),
            seed=seed_of(model, setting, column.measure),
            clusters=number_clusters(np.array([column.clusters[item] for item in shared])),
        )
        yield (model, setting), difference, len(shared)


def _correlations(columns: Sequence[ContextMeasure]) -> Iterator[MeasureCorrelation]:
    """Yield Spearman's rho of two measures over the models of a setting, with an interval where
    models suffice.
    """
    score: dict[tuple[str, str], dict[str, float]] = {}  # measure, setting → model → score
    for column in columns:
        for (model, setting), mean in column.means.get(ALL, {}).items():
            if (model, setting) in column.baselines:
                continue
            score.setdefault((column.measure, setting), {})[model] = mean.value
    from scipy.stats import rankdata

    for setting in sorted({setting for _, setting in score}, key=order_of):
        for first_measure, other in combinations(MEASURES, 2):
            first, second = (score.get((name, setting), {}) for name in (first_measure, other))
            models = sorted(first.keys() & second.keys())
            if len(models) < FEWEST:
                continue
            table = np.array([(first[model], second[model]) for model in models])
            ranks = np.column_stack([rankdata(table[:, at]) for at in (0, 1)])
            lo, hi = pearson_intervals(ranks, seed=seed_of(setting, first_measure, other))
            yield MeasureCorrelation(
                setting=setting,
                first=first_measure,
                second=other,
                rho=spearman(table).values[0][1],
                lo=lo[0][1],
                hi=hi[0][1],
                n=len(models),
            )


def _sources(run: Run) -> Iterator[SourceShare]:
    """Yield how often what was retrieved held the source of the item's condition."""
    for row in run.statistics.document["domains"][OVERALL]:
        if "own_source" in row:
            yield msgspec.convert(
                {**row, **row["own_source"], "run": run.id, "measure": _measure(run)[0]},
                SourceShare,
            )


def _is_scripted(run: Run) -> bool:
    """Return whether any answer or verdict is a script's, so that the numbers measure nothing."""
    specs = [*run.manifest.models.values(), *run.manifest.judges]
    return any(spec.provider == "fake" for spec in specs)
