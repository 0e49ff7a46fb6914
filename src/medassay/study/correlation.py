"""Which benchmarks and metrics say the same of models: matrices of correlations over models, with
intervals, order and clusters.

Few models make wide intervals: n is printed everywhere, and a correlation over twelve models is a
hint.

Source: specification of statistics, 7.6 and 7.7.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from medassay.core.wording import some_of
from medassay.errors import InputError
from medassay.statistic.draws import Floats, seed_of
from medassay.statistic.metric.correlation import (
    FEWEST,
    Ends,
    kendall,
    pearson,
    pearson_intervals,
    spearman,
    tree,
)
from medassay.study.closed_accuracy import (
    ACCURACY,
    AccuracyColumn,
    ClosedAccuracy,
    ClosedComparison,
    against_closed,
    without_means,
)
from medassay.study.long_table import External, LongRow

RANKS = "metrics, by mean rank over data sets"
_SMALL = 10.0  # billions of parameters; from there on medium and larger


class ModelNumbers(msgspec.Struct, frozen=True):
    """Numbers of models: shape (n_models, n_columns), NaN where absent."""

    models: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats

    def of(self, models: Sequence[str]) -> "ModelNumbers":
        """Return the rows of some models."""
        places = [at for at, name in enumerate(self.models) if name in models]
        return ModelNumbers(
            tuple(self.models[at] for at in places), self.columns, self.values[places]
        )


class CorrelationMatrices(msgspec.Struct, frozen=True, kw_only=True):
    """Correlations of every pair of columns over models, with the ends of Pearson's interval and
    how many models have both; shape (n_columns, n_columns), None where undefined.
    """

    pearson: Ends
    pearson_lo: Ends
    pearson_hi: Ends
    spearman: Ends
    kendall: Ends
    n: tuple[tuple[int, ...], ...]


class CorrelationView(msgspec.Struct, frozen=True, kw_only=True):
    """The correlations of some columns; `order`, `merges` and `clusters` are those of a tree over
    1 − |r|.
    """

    columns: list[str]
    n_models: int
    matrices: CorrelationMatrices
    order: list[str]
    merges: list[tuple[int, int, float]]
    clusters: list[list[str]]


class ExternalSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where scores from elsewhere come from."""

    name: str
    source: str
    date: str


class CorrelationStudy(CorrelationView, frozen=True, kw_only=True):
    """The correlations of all columns of a table, and of its parts.

    `views` are metrics of a data set, data sets by a metric, and groups of models; `closed` is None
    where fewer than two closed benchmarks are asked of all models. `unknown` are models of external
    scores that are not in the table, `unsized` those without a size, `means_left_out` columns that
    are means of others.
    """

    models: list[str]
    groups: dict[str, list[str]]
    pooled: bool
    sources: list[ExternalSource]
    unknown: list[str]
    unsized: list[str]
    means_left_out: list[str]
    views: dict[str, CorrelationView]
    closed: ClosedComparison | None


def correlation_study(
    rows: Sequence[LongRow],
    *,
    external: Sequence[External] = (),
    sizes: Mapping[str, float] | None = None,
) -> CorrelationStudy:
    """Return the correlations of a long table of results.

    Parameters
    ----------
    external : scores from elsewhere, as further columns; a model without one has none
    sizes : model → billions of parameters, for groups of models

    Raises
    ------
    InputError
        When there are fewer than three models or two columns.
    """
    models = tuple(sorted({row.model for row in rows}))
    unsized = sorted(model for model in models if sizes and model not in sizes)
    groups = _groups(models, sizes or {})
    rows, means = without_means(rows)
    columns, closed = _columns(rows), ClosedAccuracy(rows)
    if len(models) < FEWEST or len(columns) < 2:
        raise InputError(
            f"correlation: {len(models)} models and {len(columns)} columns; at least {FEWEST}"
            " models and 2 columns are needed"
        )
    columns |= _external_columns(external, models, columns)
    unknown = sorted({entry.model for entry in external} - {*models})
    table_all = _table(models, columns)
    views = {name: _table(models, columns_of) for name, columns_of in _views(rows)}
    matrices = {name: _matrices(table) for name, table in views.items()}
    for group, members in groups.items():
        for name in (f"{ACCURACY} over data sets", RANKS):
            if len(groups) > 1 and len(members) >= FEWEST and name in views:
                matrices[f"{name}: {group} models"] = _matrices(views[name].of(members))
    return CorrelationStudy(
        **msgspec.structs.asdict(_matrices(table_all)),
        models=list(models),
        groups=groups,
        pooled=len(groups) > 1,
        sources=[
            ExternalSource(name=name, source=source, date=date)
            for name, source, date in sorted({(e.name, e.source, e.date) for e in external})
        ],
        unknown=unknown,
        unsized=unsized,
        means_left_out=means,
        views=matrices,
        closed=against_closed(_described(columns, rows), closed, groups) if closed else None,
    )


def _external_columns(
    external: Sequence[External], models: Sequence[str], columns: Collection[str]
) -> dict[str, dict[str, float]]:
    """Return the columns of scores from elsewhere: name → model → value."""
    external_columns: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(entry.name for entry in external):
        if name in columns:
            raise InputError(
                f"--external: '{name}' is the name of a column here; call it otherwise"
            )
        entries = [entry for entry in external if entry.name == name]
        if len({entry.model for entry in entries}) < len(entries):
            raise InputError(f"--external: '{name}' has two values for one model; expected one")
        values = {entry.model: entry.value for entry in entries if entry.model in models}
        if not values:
            raise InputError(
                f"--external: '{name}' has no value for a model here; the models are"
                f" {some_of(models)}"
            )
        external_columns[name] = values
    return external_columns


def _described(
    columns: Mapping[str, Mapping[str, float]], rows: Sequence[LongRow]
) -> list[AccuracyColumn]:
    """Return columns with what they are; scores from elsewhere belong to no task."""
    called = _names(rows)
    of = {called(row): row for row in rows}
    return [
        AccuracyColumn(
            name, values, of.get(name) or LongRow(dataset=name, metric="", model="", value=0.0)
        )
        for name, values in columns.items()
    ]


def _names(rows: Sequence[LongRow]) -> Callable[[LongRow], str]:
    """Return what calls the column of a row: data set and metric, or one of them where the other
    never changes.
    """
    several_sets = len({row.dataset for row in rows}) > 1
    several = len({row.metric for row in rows}) > 1

    def name(row: LongRow) -> str:
        if not several_sets:
            return row.metric
        return f"{row.dataset} · {row.metric}" if several else row.dataset

    return name


def _columns(rows: Sequence[LongRow]) -> dict[str, dict[str, float]]:
    """Return name of a column → model → value."""
    called = _names(rows)
    columns: dict[str, dict[str, float]] = {}
    for row in rows:
        name = called(row)
        if row.model in columns.setdefault(name, {}):
            raise InputError(
                f"correlation: model '{row.model}' has two numbers for {row.dataset}, {row.metric};"
                " expected one"
            )
        columns[name][row.model] = row.value
    return columns


def _views(rows: Sequence[LongRow]) -> Iterator[tuple[str, dict[str, dict[str, float]]]]:
    """Yield the parts of a table that have three columns or more: data sets by a metric, metrics of
    a data set, mean ranks.
    """
    datasets = dict.fromkeys(row.dataset for row in rows)
    metrics = sorted({row.metric for row in rows}, key=lambda name: (name != ACCURACY, name))
    ranks = _mean_ranks(rows)
    if len(ranks) >= FEWEST and len(datasets) > 1:
        yield RANKS, ranks
    for metric in metrics:
        metric_columns = _columns([row for row in rows if row.metric == metric])
        if len(metric_columns) >= FEWEST and len(metrics) > 1:
            yield f"{metric} over data sets", metric_columns
    for dataset in datasets:
        metric_columns = _columns([row for row in rows if row.dataset == dataset])
        if len(metric_columns) >= FEWEST and len(datasets) > 1:
            yield f"metrics of {dataset}", metric_columns


def _mean_ranks(rows: Sequence[LongRow]) -> dict[str, dict[str, float]]:
    """Return metric → model → mean over data sets of its average rank, 1 best.

    Only metrics of open answers count.
    """
    from scipy.stats import rankdata

    rows_by_column: dict[tuple[str, str], list[LongRow]] = {}
    for row in rows:
        if row.metric != ACCURACY:
            rows_by_column.setdefault((row.dataset, row.metric), []).append(row)
    ranks: dict[str, dict[str, list[float]]] = {}
    for (_, metric), rows_of in rows_by_column.items():
        sign = 1.0 if rows_of[0].better == "low" else -1.0
        placed = rankdata([sign * row.value for row in rows_of])
        for row, place in zip(rows_of, placed, strict=True):
            ranks.setdefault(metric, {}).setdefault(row.model, []).append(float(place))
    return {
        metric: {model: sum(v) / len(v) for model, v in ranks_of.items()}
        for metric, ranks_of in ranks.items()
    }


def _table(models: Sequence[str], columns: Mapping[str, Mapping[str, float]]) -> ModelNumbers:
    values = np.array([[columns[name].get(model, np.nan) for name in columns] for model in models])
    return ModelNumbers(tuple(models), tuple(columns), values)


def _groups(models: Sequence[str], sizes: Mapping[str, float]) -> dict[str, list[str]]:
    """Return small and larger models; one group where sizes are unknown."""
    sizes_known = {name: sizes[name] for name in models if name in sizes}
    if len(sizes_known) < len(models):
        return {"all": list(models)}
    groups = {
        f"small (under {_SMALL:g} B)": [n for n in models if sizes_known[n] < _SMALL],
        f"medium (from {_SMALL:g} B)": [n for n in models if sizes_known[n] >= _SMALL],
    }
    return {name: members for name, members in groups.items() if members}


def _matrices(table: ModelNumbers) -> CorrelationView:
    r = pearson(table.values)
    lo, hi = pearson_intervals(table.values, seed=seed_of(*table.models, *table.columns))
    joined = tree(r.values)
    return CorrelationView(
        columns=list(table.columns),
        n_models=len(table.models),
        matrices=CorrelationMatrices(
            pearson=r.values,
            pearson_lo=lo,
            pearson_hi=hi,
            spearman=spearman(table.values).values,
            kendall=kendall(table.values).values,
            n=r.n,
        ),
        order=[table.columns[at] for at in joined.order],
        merges=list(joined.merges),
        clusters=[[table.columns[at] for at in cluster] for cluster in joined.clusters],
    )
