"""The study of correlations as a sheet: a matrix for every view, and what goes with accuracy."""

from collections.abc import Iterator, Sequence

import msgspec

from medassay.core.wording import counted, listed, some_of
from medassay.report.document import Grid, ReportDocument, Section
from medassay.report.plot.matrix import heat_map
from medassay.statistic.metric.correlation import CUT
from medassay.study.closed_accuracy import ACCURACY, MEANS, r_text, sections
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
    return ReportDocument(
        name="correlation",
        title="Correlations of benchmarks and metrics",
        reading=reading(study),
        notes=list(_notes(study)),
        facts={"Models": ", ".join(study.models)},
        sections=tables,
        columns=["view", "first", "second", *CorrelationMatrices.__struct_fields__],
        lines=lines,
        data=msgspec.to_builtins(study),
    )


def _notes(study: CorrelationStudy) -> Iterator[str]:
    """Yield what a reader of the matrices must know."""
    yield (
        f"Pearson's r over {_n_text(study)} models, with 95 % intervals by drawing"
        f" models; clusters join below a distance of {CUT:g} (1 − |r|, average linkage)."
        " Undefined with fewer than three models, or where a column does not vary."
    )
    yield "Few models: a correlation here is a hint, and its interval is wide."
    if study.pooled:
        yield "The matrix of all models is pooled over groups of sizes; groups stand apart below."
    yield from (f"{source.name}: {source.source}, {source.date}." for source in study.sources)
    if n := len(study.unknown):
        yield (
            f"External scores of {counted(n, 'model')} that {'is' if n == 1 else 'are'} not in the"
            f" table are left out: {some_of(study.unknown)}."
        )
    if n := len(study.unsized):
        yield (
            f"Models are in no groups by size: {counted(n, 'model')}"
            f" {'has' if n == 1 else 'have'} no size: {some_of(study.unsized)}."
        )
    for name in study.means_left_out:
        yield (
            f"{name} is the mean of {listed(MEANS[name])}; it is left out, since some of these"
            " stand here."
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
            linkage=f"Pearson's r over {_n_text(view)} models, average linkage of 1 − |r|",
        )
        figure = (f"correlation-{_slug(name)}", map_drawn)
    clusters = "; ".join(", ".join(cluster) for cluster in view.clusters)
    return Section(
        title=f"{name[0].upper()}{name[1:]} (n = {_n_text(view)})",
        text=f"Clusters: {clusters}.",
        figure=figure,
        grids=[_matrix(view, order)] if len(names) <= _MOST_DRAWN else [],
    )


def _n_text(view: CorrelationView) -> str:
    """Return how many models the pairs of columns have: "24", or "12 to 24" where some lack
    numbers.
    """
    counts = {n for at, row in enumerate(view.matrices.n) for n in row[:at]} or {view.n_models}
    return f"{min(counts)} to {max(counts)}" if len(counts) > 1 else f"{max(counts)}"


def _matrix(view: CorrelationView, order: Sequence[int]) -> Grid:
    names = view.columns
    rows = [
        [
            names[i],
            *(_cell_text(view, i, j) if at > other else "" for other, j in enumerate(order)),
        ]
        for at, i in enumerate(order)
    ]
    return Grid(
        heads=["", *(names[j] for j in order)],
        rows=rows,
        caption="Pearson [95 % interval]",
        folded=True,
    )


def _cell_text(view: CorrelationView, i: int, j: int) -> str:
    matrices = view.matrices
    r, lo, hi = (
        matrix[i][j] for matrix in (matrices.pearson, matrices.pearson_lo, matrices.pearson_hi)
    )
    n = matrices.n[i][j]
    text = "undefined" if r is None else r_text(r)
    if lo is not None:
        text += f" [{r_text(lo)}, {r_text(hi)}]"
    return text if n == view.n_models else f"{text} n={n}"


def _slug(name: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in name).lower().split()) or "view"
