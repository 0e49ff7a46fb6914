"""How steady metrics are: when an answer is said in other words (resilience), and when a model is
asked again (consistency).

A metric that moves when nothing that matters changes cannot tell small differences between models.

Source: specification of statistics, 7.8 and 7.9.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from medassay.errors import InputError
from medassay.report.document import Grid, ReportDocument, Section
from medassay.report.plot.figure import Figure
from medassay.report.plot.points import SwarmPoint, violin_swarm
from medassay.runner.engine.stage import Engine
from medassay.score.measure import TextMeasure
from medassay.statistic.metric.spread import Resilience, resilience, variation
from medassay.study.answers import SIGNED, StudyAnswer, columns_of, values_of
from medassay.study.rephrase import REPHRASINGS, Rephraser

_SWARM = 200  # points drawn over a violin
_LEAST_DRAWS = 2


class MetricResilience(msgspec.Struct, frozen=True, kw_only=True):
    """How far a metric moves when answers are rephrased.

    `range` is over all rephrasings, `mean` the mean variance of an answer's rephrasings over the
    range, `mean_squared` over its square, `meta_variance` the variance of the former over answers.
    """

    range: float
    mean: float
    mean_squared: float
    meta_variance: float
    n: int


class ResilienceStudy(msgspec.Struct, frozen=True, kw_only=True):
    """The study of rephrasings, over all answers and by model.

    `items` are the scaled variances over the squared range of each answer, by metric; `lost`
    counts answers without all rephrasings, `same` those that came back the same each time.
    """

    rephraser: str
    rephrasings: int
    n: int
    lost: int
    same: int
    models: list[str]
    scripted: bool
    metrics: dict[str, MetricResilience]
    by_model: dict[str, dict[str, MetricResilience]]
    items: dict[str, list[float]]


class MetricConsistency(msgspec.Struct, frozen=True, kw_only=True):
    """How far a metric moves when a model is asked again.

    Variances and coefficients of variation are of each prompt, then averaged; those of metrics that
    can be negative are None. `zero_mean` counts the prompts left out of them.
    """

    variance: float
    cv: float | None
    cv_median: float | None
    zero_mean: int
    n: int


class ConsistencyStudy(msgspec.Struct, frozen=True, kw_only=True):
    """The study of draws: `draws` is the smallest number of a prompt, `prompts` are the CV of each
    prompt, averaged over models, by metric.
    """

    draws: int
    models: list[str]
    n: int
    metrics: dict[str, MetricConsistency]
    prompts: dict[str, list[float]]


def resilience_study(
    answers: Sequence[StudyAnswer],
    rephraser: Rephraser,
    measures: Mapping[str, TextMeasure],
    workspace: Path,
    *,
    engine: Engine | None = None,
) -> ResilienceStudy:
    """Return how far each metric moves when answers are rephrased, over all answers and by model.

    Raises
    ------
    InputError
        When no answer has all its rephrasings.
    """
    first = [answer for answer in answers if answer.repeat == 0]
    versions = rephraser.rephrase([answer.text for answer in first])
    answers_kept = [answer for answer in first if answer.text in versions]
    if not answers_kept:
        raise InputError(
            "resilience: the rephrasing model gave no answer its six rephrasings; --again failed"
            " asks once more"
        )
    pairs = [(text, a.reference) for a in answers_kept for text in versions[a.text]]
    values = values_of(pairs, measures.values(), workspace, engine)
    models = [answer.model for answer in answers_kept]
    columns: dict[str, MetricResilience] = {}
    by_model: dict[str, dict[str, MetricResilience]] = {name: {} for name in sorted(set(models))}
    items: dict[str, list[float]] = {}
    for name in columns_of(values):
        table = np.array([row.get(name, np.nan) for row in values]).reshape(-1, REPHRASINGS)
        is_complete = ~np.isnan(table).any(axis=1)
        if not is_complete.any():
            continue
        span = float(np.ptp(table[is_complete]))
        every = resilience(table[is_complete], span=span)
        columns[name] = _of_metric(every)
        items[name] = every.scaled_squared.tolist()
        for model, by_metric in by_model.items():
            is_own = is_complete & np.array([m == model for m in models])
            if is_own.any():
                by_metric[name] = _of_metric(resilience(table[is_own], span=span))
    return ResilienceStudy(
        rephraser=rephraser.id,
        rephrasings=REPHRASINGS,
        n=len(answers_kept),
        lost=len(first) - len(answers_kept),
        same=sum(len(set(versions[a.text])) == 1 for a in answers_kept),
        models=sorted(set(models)),
        scripted=rephraser.spec.is_scripted,
        metrics=columns,
        by_model=by_model,
        items=items,
    )


def _of_metric(value: Resilience) -> MetricResilience:
    return MetricResilience(
        range=value.range,
        mean=value.mean,
        mean_squared=value.mean_squared,
        meta_variance=value.meta_variance,
        n=len(value.variances),
    )


def resilience_sheet(study: ResilienceStudy) -> ReportDocument:
    """Return the study as a sheet."""
    order = sorted(study.metrics, key=lambda name: study.metrics[name].mean_squared)
    rows = [
        [
            name.replace("_", " "),
            f"{metric.range:.3g}",
            f"{metric.mean:.3g}",
            f"{metric.meta_variance:.3g}",
            f"{metric.mean_squared:.3g}",
            str(metric.n),
        ]
        for name, metric in ((name, study.metrics[name]) for name in order)
    ]
    heads = [
        "metric",
        "range",
        "mean variance / range",
        "meta-variance",
        "mean variance / range²",
        "answers",
    ]
    by_model = [
        [
            name.replace("_", " "),
            *(_mean(study.by_model[model].get(name)) for model in study.models),
        ]
        for name in order
    ]
    grids = [Grid(heads=heads, rows=rows)]
    if len(study.models) > 1:
        grids.append(
            Grid(
                heads=["metric", *study.models],
                rows=by_model,
                caption="Mean variance / range² by model",
            )
        )
    points = _points({name: study.items[name] for name in order}, "variance / range²")
    return ReportDocument(
        name="resilience",
        title="Resilience of metrics to rephrasing",
        reading=resilience_reading(study, order),
        notes=list(_resilience_notes(study)),
        sections=[
            Section(
                title="Metrics, steadiest first",
                figure=("resilience", _violins(points, "variance / range²")),
                grids=grids,
            )
        ],
        columns=["metric", "range", "mean", "meta_variance", "mean_squared", "n"],
        lines=[{"metric": name, **msgspec.to_builtins(study.metrics[name])} for name in order],
        data=msgspec.to_builtins(study),
    )


def _resilience_notes(study: ResilienceStudy) -> Iterator[str]:
    yield (
        f"{study.n} answers, each said in other words {study.rephrasings} times by"
        f" {study.rephraser}; the original is not among them."
    )
    yield (
        "Variances are of the rephrasings of one answer (divided by their number). Over the"
        " range they keep the metric's unit, the literal published rule; over its square"
        " metrics can be compared."
    )
    if study.lost:
        yield f"{study.lost} answers lack rephrasings and are left out."
    if study.same:
        yield f"{study.same} answers came back the same six times."
    if study.scripted:
        yield "SCRIPTED: the rephrasing model is a script; these numbers measure nothing."


def resilience_reading(study: ResilienceStudy, order: Sequence[str]) -> str:
    """Return the study in one paragraph."""
    moved = [name for name in order if study.metrics[name].mean_squared > 0]
    if not moved:
        return (
            "No metric moved: the rephrasings are the answers themselves, or all metrics are"
            " constant."
        )
    best, worst = moved[0], moved[-1]
    return (
        f"Said in other words, {best.replace('_', ' ')} moves least (mean variance / range²"
        f" {study.metrics[best].mean_squared:.2g}) and {worst.replace('_', ' ')} most"
        f" ({study.metrics[worst].mean_squared:.2g}): differences of that size by it may be"
        " wording alone."
    )


def consistency_study(answers: Sequence[StudyAnswer]) -> ConsistencyStudy:
    """Return how far each metric moves when the same model is asked the same again.

    Raises
    ------
    InputError
        When no prompt was asked twice.
    """
    answers_by_key: dict[tuple[str, str], list[StudyAnswer]] = {}
    for answer in answers:
        answers_by_key.setdefault((answer.item, answer.model), []).append(answer)
    several = {
        key: answers_of
        for key, answers_of in answers_by_key.items()
        if len(answers_of) >= _LEAST_DRAWS
    }
    if not several:
        raise InputError(
            "consistency: every prompt was asked once; give the plan repeats = 11, and its models"
            " temperature 1 and top_p 0.9"
        )
    metrics: dict[str, MetricConsistency] = {}
    prompts: dict[str, list[float]] = {}
    for name in columns_of(answer.values for answer in answers):
        variances: dict[str, list[float]] = {}
        cvs: dict[str, list[float]] = {}
        zero = 0
        for (item, _), answers_of in several.items():
            values = np.array([a.values[name] for a in answers_of if name in a.values])
            if len(values) < _LEAST_DRAWS:
                continue
            variances.setdefault(item, []).append(float(values.var()))
            cv = None if name in SIGNED else variation(values)
            if cv is None:
                zero += name not in SIGNED
            else:
                cvs.setdefault(item, []).append(cv)
        each = [sum(v) / len(v) for v in cvs.values()]
        spread = [sum(v) / len(v) for v in variances.values()]
        if spread:
            prompts[name] = each
            metrics[name] = MetricConsistency(
                variance=float(np.mean(spread)),
                cv=float(np.mean(each)) if each else None,
                cv_median=float(np.median(each)) if each else None,
                zero_mean=zero,
                n=len(spread),
            )
    return ConsistencyStudy(
        draws=min(len(answers_of) for answers_of in several.values()),
        models=sorted({model for _, model in several}),
        n=len({item for item, _ in several}),
        metrics=metrics,
        prompts=prompts,
    )


def consistency_sheet(study: ConsistencyStudy, notes: Sequence[str] = ()) -> ReportDocument:
    """Return the study as a sheet; `notes` are what is known of the run."""
    names = sorted(_varying(study), key=lambda name: _varying(study)[name])
    order = [*names, *(name for name in study.metrics if name not in names)]
    rows = [
        [
            name.replace("_", " "),
            f"{metric.variance:.3g}",
            _number(metric.cv),
            _number(metric.cv_median),
            str(metric.zero_mean),
            str(metric.n),
        ]
        for name, metric in ((name, study.metrics[name]) for name in order)
    ]
    heads = ["metric", "mean variance", "mean CV", "median CV", "mean is 0", "prompts"]
    points = _points({name: study.prompts[name] for name in names}, "coefficient of variation")
    figure = ("consistency", _violins(points, "coefficient of variation")) if points else None
    return ReportDocument(
        name="consistency",
        title="Self-consistency of models, metric by metric",
        reading=_consistency_reading(study),
        notes=[
            (
                f"{study.n} prompts, each asked at least {study.draws} times of"
                f" {', '.join(study.models)}; by prompt first, then averaged over models."
            ),
            (
                "CV: deviation (divided by the number of draws) over the mean. Metrics that can be"
                " negative have none; perplexities of a fixed reference do not depend on draws."
            ),
            *notes,
        ],
        sections=[
            Section(
                title="Metrics, steadiest first",
                figure=figure,
                grids=[Grid(heads=heads, rows=rows)],
            )
        ],
        columns=["metric", "variance", "cv", "cv_median", "zero_mean", "n"],
        lines=[{"metric": name, **msgspec.to_builtins(study.metrics[name])} for name in order],
        data=msgspec.to_builtins(study),
    )


def _varying(study: ConsistencyStudy) -> dict[str, float]:
    """Return metric → mean coefficient of variation, of the metrics that have one."""
    return {name: metric.cv for name, metric in study.metrics.items() if metric.cv is not None}


def _consistency_reading(study: ConsistencyStudy) -> str:
    moved = sorted((cv, name) for name, cv in _varying(study).items() if cv > 0)
    if not moved:
        return "No metric moved from draw to draw: the models gave the same answers again."
    (low_cv, low), (high_cv, high) = moved[0], moved[-1]
    return (
        f"Asked again, a model's {low.replace('_', ' ')} varies by {100 * low_cv:.0f} % of its"
        f" mean, its {high.replace('_', ' ')} by {100 * high_cv:.0f} %: one draw says little where"
        " that is large."
    )


def _points(values: Mapping[str, Sequence[float]], column: str) -> list[SwarmPoint]:
    jitter = random.Random(column)
    return [
        SwarmPoint(
            group=name.replace("_", " "),
            value=value,
            jitter=round(jitter.uniform(-1, 1), 3) if at < _SWARM else None,
        )
        for name, values_of_name in values.items()
        for at, value in enumerate(jitter.sample(list(values_of_name), len(values_of_name)))
    ]


def _violins(points: Sequence[SwarmPoint], column: str) -> Figure:
    top = max((point.value for point in points), default=0.0) or 1.0
    return violin_swarm(
        points, value=column, bandwidth=float(f"{top / 25:.1g}"), extent=(0.0, 1.05 * top)
    )


def _mean(metric: MetricResilience | None) -> str:
    return "–" if metric is None else f"{metric.mean_squared:.3g}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
