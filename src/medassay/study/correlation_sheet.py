"""The study of correlations as a sheet: a matrix for every view, and what goes with accuracy."""

from collections.abc import Iterator, Sequence

import msgspec

from medassay.core.wording import counted, listed, some_of
from medassay.report.document import Grid, ReportDocument, Section
from medassay.report.pages.html import signed
from medassay.report.plot.matrix import heat_map
from medassay.statistic.metric.correlation import CUT
from medassay.study.closed_accuracy import ACCURACY, MEANS, sections
from medassay.study.closed_accuracy import reading as reading_of_closed
from medassay.study.correlation import CorrelationMatrices, CorrelationStudy, CorrelationView

_MOST_DRAWN = 30  # columns of a heat map


def correlation_sheet(study: CorrelationStudy) -> ReportDocument:
    """Return the study as a sheet."""
    tables = [_view("All columns", study)] if len(study.columns) <= _MOST_DRAWN else []
    if study.closed:
        tables += sections(study.closed)
    tables += [_view(name, view) for name, view in study.views.items()]
    lines = [
        {
            "view": name,
            "first": a,
            "second": b,
            **{key: matrix[i][j] for key, matrix in matrices.items()},
        }
        for name, view in {"all": study, **study.views}.items()
        for matrices in (msgspec.structs.asdict(view.matrices),)
        for i, a in enumerate(view.columns)
        for j, b in enumerate(view.columns)
        if i < j
    ]
    columns = [
        "view",
        "first",
        "second",
        "pearson",
        "pearson_lo",
        "pearson_hi",
        "spearman",
        "kendall",
        "n",
    ]
    return ReportDocument(
        name="correlation",
        title="Correlations of benchmarks and metrics",
        reading=reading(study),
        notes=_notes(study),
        facts={"Models": ", ".join(study.models)},
        sections=tables,
        columns=columns,
        lines=lines,
        data=msgspec.to_builtins(study),
    )


def _notes(study: CorrelationStudy) -> list[str]:
    """Return what a reader of the matrices must know."""
    return [
        (
            f"Pearson's r over {study.n_models} models, with 95 % intervals by drawing"
            f" models; clusters join below a distance of {CUT:g} (1 − |r|, average linkage)."
            " Undefined with fewer than three models, or where a column does not vary."
        ),
        "Few models: a correlation here is a hint, and its interval is wide.",
        *(
            ["The matrix of all models is pooled over groups of sizes; groups stand apart below."]
            if study.pooled
            else []
        ),
        *(f"{source.name}: {source.source}, {source.date}." for source in study.sources),
        *(_unknown(study.unknown) if study.unknown else ()),
        *(_unsized(study.unsized) if study.unsized else ()),
        *(
            f"{name} is the mean of {listed(MEANS[name])}; it is left out, since some of these"
            " stand here."
            for name in study.means_left_out
        ),
    ]


def _unknown(models: Sequence[str]) -> Iterator[str]:
    """Yield what is said of external scores of models that are not in the table."""
    yield (
        f"External scores of {counted(len(models), 'model')} that"
        f" {'is' if len(models) == 1 else 'are'} not in the table are left out: {some_of(models)}."
    )


def _unsized(models: Sequence[str]) -> Iterator[str]:
    """Yield why there are no groups of sizes."""
    yield (
        f"Models are in no groups by size: {counted(len(models), 'model')}"
        f" {'has' if len(models) == 1 else 'have'} no size: {some_of(models)}."
    )


def reading(study: CorrelationStudy) -> str:
    """Return the study in one paragraph: which closed benchmarks agree, into how many clusters
    metrics fall, what goes with accuracy.
    """
    parts = [f"{study.n_models} models."]
    accuracy = study.views.get(f"{ACCURACY} over data sets")
    if accuracy:
        parts.append(_agreement(accuracy))
    counts = [
        len(v.clusters)
        for n, v in study.views.items()
        if n.startswith("metrics of ") and not n.endswith(" models")
    ]
    if counts:
        parts.append(
            f"The metrics of a data set fall into {min(counts)}"
            + (f" to {max(counts)}" if max(counts) > min(counts) else "")
            + " clusters: what one says, the others of its cluster say too."
        )
    if study.closed and (sentence := reading_of_closed(study.closed)):
        parts.append(sentence)
    if len(parts) == 1:
        parts.append(f"{len(study.columns)} columns fall into {len(study.clusters)} clusters.")
    return " ".join(parts)


def _agreement(view: CorrelationView) -> str:
    """Say which closed benchmarks tell the same of models, and which stand apart."""
    largest = max(view.clusters, key=len)
    apart = [name for cluster in view.clusters if cluster is not largest for name in cluster]
    if len(largest) < 2:
        return "No two closed benchmarks tell the same of these models."
    sentence = f"{', '.join(largest)} tell the same of models"
    return (
        f"{sentence}; {', '.join(apart)} stand{'s' if len(apart) == 1 else ''} apart."
        if apart
        else f"{sentence}."
    )


def _view(name: str, view: CorrelationView) -> Section:
    names = view.columns
    order = [names.index(name) for name in view.order]
    figure = None
    if len(names) <= _MOST_DRAWN:
        map_drawn = heat_map(
            names,
            view.matrices.pearson,
            order=order,
            merges=view.merges,
            linkage=f"Pearson's r over {view.n_models} models, average linkage of 1 − |r|",
        )
        figure = (f"correlation-{_slug(name)}", map_drawn)
    clusters = "; ".join(", ".join(cluster) for cluster in view.clusters)
    return Section(
        title=f"{name[0].upper()}{name[1:]} (n = {view.n_models})",
        text=f"Clusters: {clusters}.",
        figure=figure,
        grids=[_matrix(view, order)] if len(names) <= _MOST_DRAWN else [],
    )


def _matrix(view: CorrelationView, order: Sequence[int]) -> Grid:
    names, matrices = view.columns, view.matrices
    rows = [
        [
            names[i],
            *(_cell_text(matrices, i, j) if at > other else "" for other, j in enumerate(order)),
        ]
        for at, i in enumerate(order)
    ]
    return Grid(
        heads=["", *(names[j] for j in order)],
        rows=rows,
        caption="Pearson [95 % interval]",
        folded=True,
    )


def _cell_text(matrices: CorrelationMatrices, i: int, j: int) -> str:
    r, lo, hi = (
        matrix[i][j] for matrix in (matrices.pearson, matrices.pearson_lo, matrices.pearson_hi)
    )
    if r is None:
        return "undefined"
    return _r(r) if lo is None else f"{_r(r)} [{_r(lo)}, {_r(hi)}]"


def _r(value: float | None) -> str:
    return "undefined" if value is None else signed(value, 2)


def _slug(name: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in name).lower().split()) or "view"
