"""What the runs of a suite say, as one long table: a line for each benchmark, metric and row, with
standard error, interval and rank.

Source: specification of text metrics; statistics 7.6 and 7.7.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from medassay.core.records.estimate import Estimate, RowEstimate, Second
from medassay.core.records.manifest import Manifest
from medassay.core.records.statistics import OVERALL, LeaderboardRow, ScoreScale
from medassay.core.records.trial import RowKey
from medassay.core.scale import Scale
from medassay.kinds.likelihood.row import LikelihoodColumns
from medassay.kinds.reference.row import TextColumns
from medassay.statistic.draws import Floats, seed_of
from medassay.statistic.interval.bootstrap import SMALL_N, bootstrap_mean
from medassay.statistic.interval.effective import effective_interval
from medassay.statistic.interval.ratio import DrawnStratum, Strata, ratio_estimate
from medassay.statistic.ranking.shared import rank
from medassay.statistic.test.paired import paired_difference
from medassay.storage.records import item_scores, read_scored_trials
from medassay.storage.run import Run
from medassay.suite.catalog import LANGUAGES, SUITES, WEIGHTED
from medassay.suite.run import ANSWERS, JUDGED, PERPLEXITY, RELAXED, BenchmarkPart, SuiteRun

Items = dict[tuple[str, str], float]  # (domain, item) → mean over repeats
PERPLEXITIES = ("bits_per_byte", "byte_perplexity", "word_perplexity")
# Without model and parameters: bleu gives nothing to a right answer of three tokens, the others say
# how to read a number beside them.
NEVER_RANKED = ("bleu", "tied", "targets above 1")
_FEWEST = 2  # items of a difference
_LEVEL = 0.05


class SuiteRow(LeaderboardRow, frozen=True, kw_only=True):
    """A row of a run of a suite, with the numbers beside its score that a suite shows."""

    text: TextColumns | None = None
    likelihood: LikelihoodColumns | None = None
    own_scorer: dict[str, RowEstimate | None] | None = None
    document: dict[str, RowEstimate | None] | None = None

    @property
    def likelihood_metrics(self) -> Mapping[str, RowEstimate]:
        """Return the metrics of likelihoods by name; none where there are none."""
        return {} if self.likelihood is None else self.likelihood.metrics


class SuiteResult(msgspec.Struct, frozen=True, kw_only=True):
    """One number of a suite.

    `metric` names model, revision and parameters where the metric has some, as
    `bertscore:roberta-large@…`. `headline` are the numbers of published tables; the others stand
    beside them. `ranked` tells whether its row takes part in ranks: baselines and scripted models
    do not. `flags` are those of the run's row and of the number itself.
    """

    group: str
    benchmark: str
    title: str
    metric: str
    better: str
    model: str
    setting: str
    value: float | None = None
    se: float | None = None
    lo: float | None = None
    hi: float | None = None
    n: int = 0
    left_out: int = 0
    second: Second | None = None
    rank: int | None = None
    rank_lo: int | None = None
    rank_hi: int | None = None
    rank_by: str = ""  # "pairs", all tested at once, or "intervals", whether they overlap
    ranked: bool = True
    run: str = ""
    headline: bool = True
    flags: tuple[str, ...] = ()


def results_of(suite: SuiteRun, *, as_published: bool = False) -> list[SuiteResult]:
    """Return every number of a suite.

    `as_published` leaves answers that are too short out of means of texts.
    """
    results: list[SuiteResult] = []
    for part in suite.parts:
        for kind in part.runs:
            results += _of_run(suite, part, kind, as_published=as_published)
    return _ranked(results)


def _of_run(
    suite: SuiteRun, part: BenchmarkPart, kind: str, *, as_published: bool
) -> Iterator[SuiteResult]:
    benchmark = suite.benchmark(part.benchmark)
    run = suite.run(part.runs[kind])
    ids = _ids(run.manifest)
    scored = item_scores(run.path) if kind in (ANSWERS, JUDGED) else {}
    votes = vote_scores(run) if kind == ANSWERS and benchmark.vote else {}
    rows = (
        (statistics, row)
        for statistics in run.statistics.by_metric
        for row in statistics.rows_as(SuiteRow, OVERALL)
    )
    for statistics, row in rows:
        reasons = [f for f in row.flags if f.startswith("not_ranked:")]
        base = SuiteResult(
            group=benchmark.group,
            benchmark=part.benchmark,
            title=benchmark.shown_title,
            metric="",
            better=statistics.scale.better,
            model=row.model,
            setting=row.setting,
            ranked=not reasons or reasons == ["not_ranked:too_few_items"],
            run=run.id,
            flags=tuple(f for f in row.flags if f not in ("degenerate", "intervals_differ")),
        )
        if kind in (PERPLEXITY, RELAXED):
            yield from _likelihoods(base, row, statistics.metric, kind)
        elif kind == ANSWERS and row.text is not None:
            yield from _texts(base, row.text, ids, as_published=as_published)
        else:
            name = f"prometheus:{_judge(run.manifest)}" if kind == JUDGED else statistics.metric
            name = "accuracy" if name == "acc" else name  # read or by likelihood, one word
            items = scored.get(row.key, {}) if len(run.statistics.by_metric) == 1 else {}
            yield _scored(replace(base, metric=name), row, items)
            if kind == ANSWERS and benchmark.vote and row.key in votes:
                voted = replace(base, metric=f"{name}, vote of {benchmark.repeats}")
                yield _voted(voted, votes, statistics.scale)
            beside = {**row.likelihood_metrics, **(row.own_scorer or {}), **(row.document or {})}
            for further, metric in beside.items():
                if metric is not None:
                    yield replace(_filled(base, metric), metric=further, headline=False)


def _ids(manifest: Manifest) -> dict[str, str]:
    """Return column of a metric → its name with the model that measures it."""
    ids: dict[str, str] = {}
    for name, metric in manifest.metrics.items():
        model = metric.id.removeprefix(name)
        ids |= {column: column + model for column in metric.columns}
    return ids


def _judge(manifest: Manifest) -> str:
    """Return who judged, with the version where one is given, and by which rubric."""
    judges = [
        (judge.model or judge.id) + (f"@{judge.version}" if judge.version else "")
        for judge in manifest.judges
    ]
    return f"{'+'.join(judges)}[{', '.join(sorted({*manifest.rubrics.values()}))}]"


def _texts(
    base: SuiteResult,
    text: TextColumns,
    ids: Mapping[str, str],
    *,
    as_published: bool,
) -> Iterator[SuiteResult]:
    for name, entry in text.metrics.items():
        metric = ids.get(name, name)
        published_metric = text.as_published[name] if as_published else entry
        if published_metric is not None:
            yield replace(
                _filled(base, published_metric),
                metric=metric,
                se=published_metric.se,
                left_out=text.left_out,
            )
        elif entry is not None:  # every answer was left out: the row stays, without a value
            yield replace(base, metric=metric, left_out=text.left_out)


def _likelihoods(base: SuiteResult, row: SuiteRow, metric: str, kind: str) -> Iterator[SuiteResult]:
    headlines = PERPLEXITIES if kind == PERPLEXITY else (metric,)
    for name, estimate in row.likelihood_metrics.items():
        yield replace(
            _filled(base, estimate), metric=name, better="low", headline=name in headlines
        )


def _filled(base: SuiteResult, estimate: RowEstimate) -> SuiteResult:
    return replace(
        base,
        value=estimate.value,
        lo=estimate.lo,
        hi=estimate.hi,
        second=estimate.second,
        n=estimate.n or 0,
        flags=tuple(dict.fromkeys((*base.flags, *(estimate.flags or ())))),
    )


def _scored(base: SuiteResult, row: SuiteRow, items: Items) -> SuiteResult:
    """Return the mean over items, each counting once whatever its domain, as published tables have
    it.
    """
    scored = row.micro or row
    if row.interval is not msgspec.UNSET and not row.micro and row.rank is not None:
        # Pairs were tested, and the mean of one domain is that of its items: these ranks hold.
        ranks = {"rank": row.rank, "rank_lo": row.rank_lo, "rank_hi": row.rank_hi}
        base = replace(base, **ranks, rank_by="pairs")
    values = np.array(list(items.values()))
    se = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    # Of several domains the run has no second interval of the mean over items, and no flag of it.
    second = None if row.micro else row.second
    own_flags = () if row.micro else tuple(f for f in row.flags if f not in base.flags)
    return replace(
        base,
        value=scored.score,
        lo=scored.lo,
        hi=scored.hi,
        second=second,
        se=se,
        flags=(*base.flags, *own_flags),
        n=row.n,
    )


def _voted(base: SuiteResult, votes: Mapping[RowKey, Items], ends: ScoreScale) -> SuiteResult:
    """Return the mean score of the answers that most repeats of an item give."""
    row = (base.model, base.setting)
    scale = Scale(lo=ends.lo or 0.0, hi=math.inf if ends.hi is None else ends.hi)
    values = np.array(list(votes[row].values()))
    estimate = bootstrap_mean(values, seed=seed_of("vote", base.benchmark, *row), scale=scale)
    items = np.arange(len(values))
    printed = effective_interval([(values, items)], scale=scale).ends or (None, None)
    se = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    return replace(
        base,
        value=estimate.value,
        se=se,
        lo=printed[0],
        hi=printed[1],
        second=Second(method="percentile", lo=estimate.lo, hi=estimate.hi),
        n=len(values),
    )


def vote_scores(run: Run) -> dict[RowKey, Items]:
    """Return row → the score of each item by vote: of the answer that most of its repeats gave;
    where several were given as often, the mean of their scores.

    An unread repeat votes for nothing. An item without any vote has the mean of its scores, one
    with a score that nobody knows has none.

    Source: Wang et al. (2023), self-consistency, arXiv:2203.11171.
    """
    given: dict[RowKey, dict[tuple[str, str], list[tuple[str | None, float | None]]]] = {}
    for trial, score in read_scored_trials(run.path):
        items = given.setdefault(score.row, {})
        items.setdefault((score.domain, score.item), []).append((trial.value, score.score))
    return {
        row: {item: value for item, pairs in items.items() if (value := _vote(pairs)) is not None}
        for row, items in given.items()
    }


def _vote(pairs: Sequence[tuple[str | None, float | None]]) -> float | None:
    if any(score is None for _, score in pairs):
        return None
    scores: dict[str, list[float]] = {}
    for value, score in pairs:
        if value is not None and score is not None:
            scores.setdefault(value, []).append(score)
    if not scores:
        return sum(score or 0.0 for _, score in pairs) / len(pairs)
    most = max(map(len, scores.values()))
    chosen = [sum(own) / len(own) for own in scores.values() if len(own) == most]
    return sum(chosen) / len(chosen)


def _ranked(results: Sequence[SuiteResult]) -> list[SuiteResult]:
    """Return the results with ranks within each benchmark and metric, where two or more rows have
    it; 1 is best.

    Metrics whose pairs of models were tested keep the ranks of their run; others are ranked by
    whether intervals overlap.
    """
    ranked = list(results)
    columns: dict[tuple[str, str, str], list[int]] = {}
    for at, result in enumerate(ranked):
        if (
            re.split(r"[:\[]", result.metric, maxsplit=1)[0] not in NEVER_RANKED
            and result.ranked
            and result.value is not None
            and result.lo is not None
            and result.hi is not None
        ):
            columns.setdefault((result.benchmark, result.metric, result.rank_by), []).append(at)
    for places in columns.values():
        if len(places) < 2:  # first of one says nothing
            at = places[0]
            ranked[at] = replace(ranked[at], rank=None, rank_lo=None, rank_hi=None, rank_by="")
            continue
        if ranked[places[0]].rank_by:
            continue
        estimates = {str(at): _estimate(ranked[at]) for at in places}
        better: Literal["high", "low"] = "low" if ranked[places[0]].better == "low" else "high"
        for key, found_rank in rank(estimates, better=better).items():
            at = int(key)
            ranked[at] = replace(
                ranked[at],
                rank=found_rank.rank,
                rank_lo=found_rank.lo,
                rank_hi=found_rank.hi,
                rank_by="intervals",
            )
    return ranked


def _estimate(result: SuiteResult) -> Estimate:
    assert result.value is not None
    assert result.lo is not None
    assert result.hi is not None
    return Estimate(
        value=result.value,
        lo=result.lo,
        hi=result.hi,
        second=result.second,
        n=result.n,
        n_clusters=result.n,
    )


class WeightedMean(msgspec.Struct, frozen=True, kw_only=True):
    """The mean over all items of the benchmarks of a suite, of one row.

    Attributes
    ----------
    lo, hi : None where too few items tell an interval
    lacking : benchmarks of the suite that are not here
    """

    suite: str
    model: str
    setting: str
    score: float
    lo: float | None
    hi: float | None
    n: int
    benchmarks: list[str]
    lacking: list[str]


class LanguageGap(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracy of one row in one language minus that in another, over the same questions."""

    first: str
    second: str
    model: str
    setting: str
    difference: float
    lo: float
    hi: float
    p: float
    different: bool
    n: int


OWN_WEIGHTS = "own weights"


def weighted_means(suite: SuiteRun) -> list[WeightedMean]:
    """Return, for suites told as one mean, Σ n·accuracy / Σ n of each model with its bootstrap
    interval, benchmarks drawn apart; and Σ w·score / Σ w where benchmarks have weights, with the
    interval of a mean over domains.

    A model that lacks one of the benchmarks that were run has no mean.
    """
    means: list[WeightedMean] = []
    parts = {part.benchmark: part for part in suite.parts if ANSWERS in part.runs}
    for name in WEIGHTED:
        members = [benchmark for benchmark in SUITES[name] if benchmark in parts]
        if len(members) < 2 or not set(SUITES[name]) <= {p.benchmark for p in suite.parts}:
            continue
        lacking = [benchmark for benchmark in SUITES[name] if benchmark not in parts]
        means += _means_by_items(suite, name, members, lacking)
    weights = {name: suite.benchmark(name).weight for name in parts}
    weights = {
        name: weight
        for name, weight in weights.items()
        if weight and has_mean(suite.run(parts[name].runs[ANSWERS]))
    }
    if len(weights) > 1:
        means += _means_by_weights(suite, weights)
    return means


def has_mean(run: Run) -> bool:
    """Return whether the scores of a run may stand in a mean beside those of others: one metric,
    whose scale is 0 to 1.
    """
    [first, *more] = run.statistics.by_metric
    return not more and (first.scale.lo, first.scale.hi) == (0, 1)


def _scores_of_all(
    suite: SuiteRun, benchmarks: Collection[str]
) -> Iterator[tuple[tuple[str, str], list[Floats]]]:
    """Yield each row that has all of some benchmarks, with its scores in each."""
    runs = {
        part.benchmark: part.runs[ANSWERS] for part in suite.parts if part.benchmark in benchmarks
    }
    scored = {benchmark: item_scores(suite.run(runs[benchmark]).path) for benchmark in benchmarks}
    for row in sorted(set.intersection(*(set(scores_of) for scores_of in scored.values()))):
        yield row, [np.array(list(scored[benchmark][row].values())) for benchmark in benchmarks]


def _means_by_weights(suite: SuiteRun, weights: Mapping[str, float]) -> Iterator[WeightedMean]:
    """Yield the mean of each row over benchmarks by their weights, as over domains of a board."""
    total = sum(weights.values())
    shares = [weight / total for weight in weights.values()]
    for row, columns in _scores_of_all(suite, weights):
        domains = [(scores, None) for scores in columns]
        effective = effective_interval(domains, scale=Scale(), weights=shares)
        lo, hi = effective.ends or (None, None)
        yield WeightedMean(
            suite=OWN_WEIGHTS,
            model=row[0],
            setting=row[1],
            score=effective.mean,
            lo=lo,
            hi=hi,
            n=sum(map(len, columns)),
            benchmarks=[*weights],
            lacking=[],
        )


def _means_by_items(
    suite: SuiteRun, name: str, benchmarks: list[str], lacking: list[str]
) -> Iterator[WeightedMean]:
    """Yield the mean of each row over all items of some benchmarks."""
    for row, columns in _scores_of_all(suite, benchmarks):
        strata = Strata(
            [
                DrawnStratum(np.arange(len(v)) + at * 10**9, seed_of(name, benchmark, *row))
                for at, (benchmark, v) in enumerate(zip(benchmarks, columns, strict=True))
            ],
            pool_seed=seed_of(name, *row, "pool"),
            n_resamples=suite.record["plan"]["n_resamples"],
        )
        values = np.concatenate(columns)
        counts = np.ones(len(values))
        sums = strata.sums(np.column_stack([values, counts]))
        estimate = ratio_estimate(values, counts, sums[:, 0] / sums[:, 1], strata, scale=Scale())
        yield WeightedMean(
            suite=name,
            model=row[0],
            setting=row[1],
            score=estimate.value,
            lo=estimate.lo,
            hi=estimate.hi,
            n=len(values),
            benchmarks=benchmarks,
            lacking=lacking,
        )


def language_gaps(suite: SuiteRun) -> list[LanguageGap]:
    """Return the paired difference of accuracy between two languages of the same questions, over
    those that both have.
    """
    runs = {part.benchmark: part.runs.get(ANSWERS) for part in suite.parts}
    gaps: list[LanguageGap] = []
    for first, second in LANGUAGES:
        first_run, other = runs.get(first), runs.get(second)
        if first_run is None or other is None:
            continue
        sides = [
            {
                row: _without_language(items)
                for row, items in item_scores(suite.run(name).path).items()
            }
            for name in (first_run, other)
        ]
        for row in sorted(sides[0].keys() & sides[1].keys()):
            shared = sorted(sides[0][row].keys() & sides[1][row].keys())
            if len(shared) < _FEWEST:
                continue  # as with a limit, which draws other items of each bank
            a, b = (np.array([side[row][item] for item in shared]) for side in sides)
            difference = paired_difference(a, b, seed=seed_of(first, second, *row))
            # No reading comes from an interval alone.
            is_shown = difference.p <= _LEVEL and len(shared) >= SMALL_N
            gaps.append(
                LanguageGap(
                    first=first,
                    second=second,
                    model=row[0],
                    setting=row[1],
                    difference=difference.value,
                    lo=difference.lo,
                    hi=difference.hi,
                    p=difference.p,
                    different=is_shown,
                    n=len(shared),
                )
            )
    return gaps


def _without_language(items: Items) -> dict[str, float]:
    """Return the scores by what names of items have in common in both languages.

    Examples
    --------
    >>> _without_language({("d", "careqa-en-2020-1"): 1.0})
    {'careqa-2020-1': 1.0}
    """
    return {
        name.replace("-en-", "-", 1).replace("-es-", "-", 1): score
        for (_, name), score in items.items()
    }
