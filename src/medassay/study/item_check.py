"""A check-up of metrics on one's own data: which say the same, which break when an answer is
rephrased, which agree with people.

Source: specification of statistics, 7.7 and 7.8; text metrics.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from medassay.bank.builder import numbered_csv
from medassay.errors import InputError
from medassay.report.document import Grid, ReportDocument, Section
from medassay.report.plot.forest import NamedCorrelation, agreement
from medassay.report.plot.matrix import heat_map
from medassay.runner.engine.stage import Engine
from medassay.score.measure import TextMeasure
from medassay.statistic.draws import Floats, seed_of
from medassay.statistic.metric.correlation import (
    Correlations,
    Ends,
    kendall,
    pearson,
    pearson_intervals,
    spearman,
    tree,
)
from medassay.study.answers import StudyAnswer, columns_of, values_of
from medassay.study.closed_accuracy import r_text
from medassay.study.long_table import number_of
from medassay.study.stability import MetricResilience, ResilienceStudy

SAME = 0.95  # |r| from which on two metrics say the same
_WEAK = 0.3  # |r| below which a metric is of no use for a label
_FEWEST = 10  # answers
_NEEDED = ("prediction", "reference")
_KNOWN = (*_NEEDED, "item", "model")


def read_answers(
    path: Path, columns: Mapping[str, str], people: Sequence[str], labels: Path | None = None
) -> list[StudyAnswer]:
    """Return the answers in a table, with what people said of each.

    Parameters
    ----------
    columns : prediction, reference, and where they are there item and model → column of the table
    people : columns of numbers that people gave, higher or lower being better
    labels : another table with these columns, a line for each line of the first, in the same order

    Raises
    ------
    InputError
        Naming file, row and column.
    """
    for key in columns:
        if key not in _KNOWN:
            raise InputError(f"--columns: '{key}' is unknown; known are {', '.join(_KNOWN)}")
    rows = [row for _, row in numbered_csv(path)]
    labels_read = list(numbered_csv(path if labels is None else labels))
    label_rows = [row for _, row in labels_read]
    if len(label_rows) != len(rows):
        raise InputError(
            f"{labels}: {len(label_rows)} rows for {len(rows)} of {path.name}; expected one for"
            " each, in the same order"
        )
    named = {key: columns.get(key, key) for key in _KNOWN}
    where = path if labels is None else labels
    for key in dict.fromkeys((*_NEEDED, *columns)):
        if rows and named[key] not in rows[0]:
            raise InputError(
                f"{path.name}: no column '{named[key]}' ({key}); found"
                f" {', '.join(map(str, rows[0]))}; name it by --columns {key}=…"
            )
    item = named["item"]
    if label_rows and item in rows[0] and item in label_rows[0]:
        for row, (number, label) in zip(rows, labels_read, strict=True):
            if row[item].strip() != label[item].strip():
                raise InputError(
                    f"{where.name} row {number}: item '{label[item]:.60}', and '{row[item]:.60}'"
                    f" in {path.name}; expected the same order"
                )
    for name in people:
        if label_rows and name not in label_rows[0]:
            raise InputError(
                f"{where.name}: no column '{name}'; found {', '.join(map(str, label_rows[0]))}"
            )
    return [
        StudyAnswer(
            item=row.get(item) or str(number),
            model=row.get(named["model"]) or "",
            repeat=0,
            text=row[named["prediction"]].strip(),
            reference=row[named["reference"]].strip(),
            people={
                name: value
                for name in people
                if (value := _number(label[name], f"{where.name} row {number}: {name}")) is not None
            },
        )
        for row, (number, label) in zip(rows, labels_read, strict=True)
    ]


def _number(text: str, where: str) -> float | None:
    """Return a number, None for an empty cell."""
    if text.strip().lower() in ("", "nan", "na", "-"):
        return None
    return number_of(text, where, "a number or nothing")


class PeopleAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How one metric goes with one label of people, over answers: correlations in [−1, 1], those
    undefined None.
    """

    metric: str
    pearson: float | None
    lo: float | None
    hi: float | None
    spearman: float | None
    kendall: float | None
    n: int


class MetricMatrices(msgspec.Struct, frozen=True, kw_only=True):
    """Pearson's r of every pair of metrics, the ends of its interval, and how many answers have
    both; shape (n_metrics, n_metrics).
    """

    pearson: list[tuple[float | None, ...]]
    pearson_lo: list[Sequence[float | None]]
    pearson_hi: list[Sequence[float | None]]
    n: list[tuple[int, ...]]


class Checkup(msgspec.Struct, frozen=True, kw_only=True):
    """The check-up: `same` are pairs of metrics that say the same, `people` is label → metrics,
    the one that agrees most first; `order`, `merges` and `clusters` are those of a tree over
    1 − |r|.
    """

    n: int
    n_items: int
    left_out: int
    metrics: list[str]
    ids: dict[str, str]
    matrices: MetricMatrices
    order: list[str]
    merges: list[tuple[int, int, float]]
    clusters: list[list[str]]
    same: list[tuple[str, str]]
    people: dict[str, list[PeopleAgreement]]
    resilience: dict[str, MetricResilience] | None
    rephraser: str | None


def checkup(
    answers: Sequence[StudyAnswer],
    measures: Mapping[str, TextMeasure],
    workspace: Path,
    *,
    resilience: ResilienceStudy | None = None,
    engine: Engine | None = None,
) -> Checkup:
    """Return what metrics say of each other and of people's labels, over answers.

    Parameters
    ----------
    resilience : the study of rephrasings of the same answers, where there is one
    engine : who computes metrics; None: this process

    Raises
    ------
    InputError
        When fewer than 10 answers have a reference.
    """
    answers_kept = [answer for answer in answers if answer.text and answer.reference]
    if len(answers_kept) < _FEWEST:
        raise InputError(
            f"metrics: {len(answers_kept)} answers with a reference; at least {_FEWEST} are needed"
        )
    values = values_of(
        [answer.pair for answer in answers_kept], measures.values(), workspace, engine
    )
    metrics = columns_of(values)
    labels = list(dict.fromkeys(name for answer in answers_kept for name in answer.people))
    table = np.array(
        [
            [
                *(v.get(m, np.nan) for m in metrics),
                *(a.people.get(name, np.nan) for name in labels),
            ]
            for a, v in zip(answers_kept, values, strict=True)
        ]
    )
    numbers = {item: at for at, item in enumerate(dict.fromkeys(a.item for a in answers_kept))}
    clusters = np.array([numbers[a.item] for a in answers_kept])
    r = pearson(table)
    lo, hi = pearson_intervals(table, seed=seed_of("metrics", *metrics, *labels), clusters=clusters)
    k = len(metrics)
    inner = [row[:k] for row in r.values[:k]]
    joined = tree(inner)
    return Checkup(
        n=len(answers_kept),
        n_items=len(numbers),
        left_out=len(answers) - len(answers_kept),
        metrics=metrics,
        ids={name: gauge.id for name, gauge in measures.items()},
        matrices=MetricMatrices(
            pearson=inner,
            pearson_lo=[row[:k] for row in lo[:k]],
            pearson_hi=[row[:k] for row in hi[:k]],
            n=[row[:k] for row in r.n[:k]],
        ),
        order=[metrics[at] for at in joined.order],
        merges=list(joined.merges),
        clusters=[[metrics[at] for at in cluster] for cluster in joined.clusters],
        same=[
            (metrics[i], metrics[j])
            for i in range(k)
            for j in range(i + 1, k)
            if abs(inner[i][j] or 0.0) >= SAME
        ],
        people=_people_agreement(metrics, labels, table, r, (lo, hi)),
        resilience=None if resilience is None else resilience.metrics,
        rephraser=None if resilience is None else resilience.rephraser,
    )


def _people_agreement(
    metrics: Sequence[str],
    labels: Sequence[str],
    table: Floats,
    r: Correlations,
    ends: tuple[Ends, Ends],
) -> dict[str, list[PeopleAgreement]]:
    """Return label → metrics, by falling |r|; the table has the metrics' columns, then the
    labels'.
    """
    rho, tau = spearman(table), kendall(table)
    lo, hi = ends
    return {
        label: sorted(
            (
                PeopleAgreement(
                    metric=metric,
                    pearson=r.values[i][at],
                    lo=lo[i][at],
                    hi=hi[i][at],
                    spearman=rho.values[i][at],
                    kendall=tau.values[i][at],
                    n=r.n[i][at],
                )
                for i, metric in enumerate(metrics)
            ),
            key=lambda entry: -abs(entry.pearson or 0.0),
        )
        for at, label in enumerate(labels, len(metrics))
    }


def checkup_sheet(study: Checkup) -> ReportDocument:
    """Return the check-up as a sheet."""
    order = [study.metrics.index(name) for name in study.order]
    map_drawn = heat_map(
        [name.replace("_", " ") for name in study.metrics],
        study.matrices.pearson,
        order=order,
        merges=study.merges,
        linkage=f"Pearson's r over {study.n} answers, average linkage of 1 − |r|",
    )
    sections = [_people(label, rows_of) for label, rows_of in study.people.items()]
    same = "; ".join(" and ".join(pair) for pair in study.same).replace("_", " ") or "none"
    sections.append(
        Section(
            title="Which say the same",
            text=f"Pairs with |r| from {SAME:g} on: {same}. Clusters: "
            + "; ".join(", ".join(cluster) for cluster in study.clusters).replace("_", " ")
            + ".",
            figure=("metrics", map_drawn),
        )
    )
    if study.resilience:
        sections.append(_resilience(study.resilience, study.rephraser))
    lines = [
        {"kind": "people", "first": row.metric, "second": label, **msgspec.to_builtins(row)}
        for label, rows_of in study.people.items()
        for row in rows_of
    ]
    lines += [
        {
            "kind": "metrics",
            "first": a,
            "second": b,
            "pearson": study.matrices.pearson[i][j],
            "lo": study.matrices.pearson_lo[i][j],
            "hi": study.matrices.pearson_hi[i][j],
            "n": study.matrices.n[i][j],
        }
        for i, a in enumerate(study.metrics)
        for j, b in enumerate(study.metrics)
        if i < j
    ]
    return ReportDocument(
        name="metrics",
        title="A check-up of metrics",
        reading=reading(study),
        notes=[
            f"{study.n} answers to {study.n_items} items; intervals draw items with all their"
            " answers." + (f" {study.left_out} blank ones are left out." if study.left_out else ""),
            (
                "Pearson's r between what a metric says of an answer and what people say of it; of"
                " a label where less is better (omissions) a good metric goes below 0."
            ),
            *(f"{name}: {identifier}" for name, identifier in study.ids.items()),
        ],
        sections=sections,
        columns=["kind", "first", "second", "pearson", "lo", "hi", "spearman", "kendall", "n"],
        lines=lines,
        data=msgspec.to_builtins(study),
    )


def reading(study: Checkup) -> str:
    """Return the check-up in one paragraph."""
    parts = []
    for label, rows_of in study.people.items():
        best, last = rows_of[0], rows_of[-1]
        if abs(best.pearson or 0.0) < _WEAK:
            parts.append(
                f"No metric tells {label}: the best has r {r_text(best.pearson)}{_band(best)}."
            )
            continue
        parts.append(
            f"With people's {label}, {best.metric.replace('_', ' ')} agrees most (r"
            f" {r_text(best.pearson)}{_band(best)}), {last.metric.replace('_', ' ')} least"
            f" ({r_text(last.pearson)})."
        )
    if study.same:
        parts.append(f"{len(study.same)} pairs of metrics say the same; one of each is enough.")
    else:
        parts.append("No two metrics say the same.")
    if study.resilience:
        moved, _ = max(study.resilience.items(), key=lambda pair: pair[1].mean_squared)
        parts.append(f"{moved.replace('_', ' ')} moves most when an answer is said in other words.")
    if not study.people:
        parts.append("Without labels of people nobody can say which metric is right.")
    return " ".join(parts)


def _people(label: str, rows_of: Sequence[PeopleAgreement]) -> Section:
    rows = [
        [
            row.metric.replace("_", " "),
            f"{r_text(row.pearson)}{_band(row)}",
            r_text(row.spearman),
            r_text(row.kendall),
            str(row.n),
        ]
        for row in rows_of
    ]
    points = [
        NamedCorrelation(name=row.metric.replace("_", " "), r=row.pearson, lo=row.lo, hi=row.hi)
        for row in rows_of
        if row.pearson is not None and row.lo is not None and row.hi is not None
    ]
    figure = None
    if points:
        drawing = agreement(points, unit=f"Pearson's r with {label}")
        slug = "-".join("".join(c if c.isalnum() else " " for c in label).lower().split())
        figure = (f"people-{slug or 'label'}", drawing)
    heads = ["metric", "Pearson [95 % interval]", "Spearman", "Kendall", "answers"]
    return Section(
        title=f"Agreement with people: {label}",
        figure=figure,
        grids=[Grid(heads=heads, rows=rows)],
    )


def _resilience(metrics: Mapping[str, MetricResilience], rephraser: str | None) -> Section:
    rows = [
        [
            name.replace("_", " "),
            f"{metric.mean_squared:.3g}",
            f"{metric.mean:.3g}",
            str(metric.n),
        ]
        for name, metric in sorted(metrics.items(), key=lambda pair: pair[1].mean_squared)
    ]
    return Section(
        title="Which break under rephrasing",
        text=f"The same answers said in other words six times by {rephraser}; steadiest first.",
        grids=[
            Grid(
                heads=["metric", "mean variance / range²", "mean variance / range", "answers"],
                rows=rows,
            )
        ],
    )


def _band(entry: PeopleAgreement) -> str:
    return "" if entry.lo is None else f" [{r_text(entry.lo)}, {r_text(entry.hi)}]"
