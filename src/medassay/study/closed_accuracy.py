"""How every number goes with the accuracy of closed benchmarks, for groups of models and by task.

No number stands against a mean that it is part of: a benchmark of the mean stands against the mean
of the others. Languages of one benchmark count once.

Source: specification of statistics, 7.7; the published suite's figure of weighted accuracy against
its other tasks.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from medassay.core.wording import counted, listed
from medassay.report.document import Grid, Section
from medassay.report.pages.html import signed
from medassay.statistic.draws import Floats, seed_of
from medassay.statistic.metric.correlation import (
    FEWEST,
    PairCorrelations,
    ends_of,
    kendall,
    pearson_pairs,
    spearman,
)
from medassay.statistic.metric.weighted import weighted_accuracy
from medassay.study.long_table import LongRow

ACCURACY = "accuracy"
CHOICE = "multiple choice questions"
ALL = "all"
# Test items of published sets, for tables that do not say how many.
ITEMS = {
    "BioRED": 1163,
    "CareQA (en)": 5621,
    "CareQA (es)": 5621,
    "MMLU": 1089,
    "MedMCQA": 4183,
    "MedQA": 1273,
    "PubMedQA": 500,
}
# Means over other benchmarks: they are left out where their parts stand.
MEANS = {"multimedqa": ("MMLU", "MedMCQA", "MedQA", "PubMedQA")}
_LANGUAGE = re.compile(r" \([a-z]{2}\)\Z")
_BY_CHANCE = 0.05  # of 95 % intervals do not hold a true 0


class AccuracyColumn(msgspec.Struct, frozen=True):
    """The values of models in one column of a table, and what it is: a row of it without its
    model.
    """

    name: str
    values: Mapping[str, float]
    row: LongRow


def without_means(rows: Sequence[LongRow]) -> tuple[list[LongRow], list[str]]:
    """Return the rows that are no mean of others that are there too, and the names of those left
    out.
    """
    names = {row.dataset for row in rows}
    means = [name for name, parts in MEANS.items() if name in names and names & {*parts}]
    return [row for row in rows if row.dataset not in means], means


def benchmark_of(dataset: str) -> str:
    """Return what the languages of one benchmark have in common.

    Examples
    --------
    >>> benchmark_of("CareQA (es)"), benchmark_of("Prescriptions (easy)")
    ('CareQA', 'Prescriptions (easy)')
    """
    return _LANGUAGE.sub("", dataset)


class ClosedAccuracy:
    """The mean accuracy over closed benchmarks that all models have, each by its items, its
    languages counting once.

    Where rows say their task and at least two benchmarks ask multiple choice questions, these are
    the closed benchmarks meant.
    """

    def __init__(self, rows: Sequence[LongRow]) -> None:
        models = {row.model for row in rows}
        closed = [row for row in rows if row.metric == ACCURACY]
        choice = [row for row in closed if row.task == CHOICE]
        self.of_choice = len({benchmark_of(row.dataset) for row in choice}) > 1
        by_set: dict[str, dict[str, LongRow]] = {}
        for row in choice if self.of_choice else closed:
            by_set.setdefault(row.dataset, {})[row.model] = row
        self._values: dict[str, list[Mapping[str, LongRow]]] = {}
        self.items: dict[str, int] = {}
        for dataset, values in by_set.items():
            n = next((row.n for row in values.values() if row.n), None) or ITEMS.get(dataset)
            if n is not None and values.keys() == models:
                name = benchmark_of(dataset)
                self._values.setdefault(name, []).append(values)
                self.items[name] = max(n, self.items.get(name, 0))

    def __bool__(self) -> bool:
        return len(self.items) > 1

    @property
    def name(self) -> str:
        """Return what the mean is called."""
        return f"weighted accuracy of {CHOICE if self.of_choice else 'closed benchmarks'}"

    def mean(self, model: str, without: str = "") -> float:
        """Return the mean of one model, without one benchmark."""
        items = {name: n for name, n in self.items.items() if name != without}
        values = {
            name: (
                sum(values_of[model].value for values_of in self._values[name])
                / len(self._values[name])
            )
            for name in items
        }
        return weighted_accuracy(values, items)

    def part(self, column: AccuracyColumn) -> str:
        """Return the benchmark of the mean that a column is, "" where it is none."""
        name = benchmark_of(column.row.dataset)
        return name if column.row.metric == ACCURACY and name in self.items else ""


class ClosedColumn(msgspec.Struct, frozen=True, kw_only=True):
    """How one number goes with closed accuracy over models: correlations in [−1, 1], those
    undefined None.

    `without` names the benchmark that the mean leaves out, since the number is a part of it.
    """

    column: str
    task: str
    without: str
    pearson: float | None
    pearson_lo: float | None
    pearson_hi: float | None
    spearman: float | None
    kendall: float | None
    n: int


class ClosedTask(msgspec.Struct, frozen=True, kw_only=True):
    """The mean correlation of the numbers of one task, those where lower is better turned round."""

    task: str
    numbers: int
    mean: float
    lo: float | None
    hi: float | None
    lowest: float
    highest: float


class ClosedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison over one group of models; columns by falling |r|."""

    n_models: int
    columns: list[ClosedColumn]
    tasks: list[ClosedTask]


class ClosedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """How columns go with closed accuracy: `items` is benchmark → test items."""

    name: str
    items: dict[str, int]
    groups: dict[str, ClosedGroup]


def against_closed(
    columns: Sequence[AccuracyColumn],
    closed: ClosedAccuracy,
    groups: Mapping[str, Sequence[str]],
) -> ClosedComparison:
    """Return how columns go with closed accuracy, over all models and over each group of three
    models or more.
    """
    model_groups = {ALL: [*dict.fromkeys(model for column in columns for model in column.values)]}
    if len(groups) > 1:
        model_groups |= {
            name: [*models] for name, models in groups.items() if len(models) >= FEWEST
        }
    return ClosedComparison(
        name=closed.name,
        items=dict(closed.items),
        groups={
            name: _of_group(columns, closed, sorted(models))
            for name, models in model_groups.items()
        },
    )


def _of_group(
    columns: Sequence[AccuracyColumn], closed: ClosedAccuracy, models: Sequence[str]
) -> ClosedGroup:
    parts = [closed.part(column) for column in columns]
    values = np.array(
        [[column.values.get(model, np.nan) for column in columns] for model in models]
    )
    means = {part: [closed.mean(model, part) for model in models] for part in {*parts}}
    group_means = np.column_stack([means[part] for part in parts])
    correlations = pearson_pairs(values, group_means, seed=seed_of("closed", *models))
    column_rows = []
    tasks: dict[str, list[int]] = {}
    for at, (column, part) in enumerate(zip(columns, parts, strict=True)):
        pair = np.column_stack([values[:, at], group_means[:, at]])
        column_rows.append(
            ClosedColumn(
                column=column.name,
                task=column.row.task,
                without=part,
                pearson=correlations.values[at],
                pearson_lo=correlations.lo[at],
                pearson_hi=correlations.hi[at],
                spearman=spearman(pair).values[0][1],
                kendall=kendall(pair).values[0][1],
                n=correlations.n[at],
            )
        )
        if column.row.task and not part and correlations.values[at] is not None:
            tasks.setdefault(column.row.task, []).append(at)
    signs = np.array([-1.0 if column.row.better == "low" else 1.0 for column in columns])
    return ClosedGroup(
        n_models=len(models),
        columns=sorted(column_rows, key=lambda column: -abs(column.pearson or 0.0)),
        tasks=[_of_task(task, places, correlations, signs) for task, places in tasks.items()],
    )


def _of_task(
    task: str, places: Sequence[int], correlations: PairCorrelations, signs: Floats
) -> ClosedTask:
    """Return the mean r of the numbers of one task, above 0 where better models of closed questions
    are better at it.
    """
    turned = [signs[at] * (correlations.values[at] or 0.0) for at in places]
    draws = correlations.draws[:, places] * signs[places]
    defined = ~np.isnan(draws)  # a number can be alike in all models of a draw
    sums = np.where(defined, draws, 0.0).sum(axis=1)
    means = np.where(defined.any(axis=1), sums / np.maximum(defined.sum(axis=1), 1), np.nan)
    (lo,), (hi,) = ends_of(means[:, None])
    return ClosedTask(
        task=task,
        numbers=len(places),
        mean=float(np.mean(turned)),
        lo=lo,
        hi=hi,
        lowest=float(min(turned)),
        highest=float(max(turned)),
    )


def reading(closed: ClosedComparison) -> str:
    """Say how many numbers of open answers go with closed accuracy, and how many would by
    chance.
    """
    others = [
        column
        for column in closed.groups[ALL].columns
        if ACCURACY not in column.column and column.pearson is not None
    ]
    if not others:
        return ""
    beyond = sum(
        column.pearson_lo is not None
        and column.pearson_hi is not None
        and column.pearson_lo * column.pearson_hi > 0
        for column in others
    )
    chance = round(_BY_CHANCE * len(others))
    return (
        f"Of {counted(len(others), 'number')} of open answers {beyond}"
        f" {'goes' if beyond == 1 else 'go'} with the {closed.name} beyond what drawing models"
        f" explains; about {chance} would if none did, since 95 % intervals miss one in twenty."
        " Closed accuracy does not stand in for the others."
    )


def sections(closed: ClosedComparison) -> Iterator[Section]:
    """Yield the tables of each group of models: tasks first, then every number."""
    parts = listed([f"{name} ({n:,})" for name, n in closed.items.items()])
    for name, group in closed.groups.items():
        about = "" if name == ALL else f": {name} models"
        if group.tasks:
            yield Section(
                title=f"Tasks against closed accuracy{about} (n = {group.n_models})",
                text=(
                    "The mean of the correlations of a task's numbers, those where lower is better"
                    " turned round: above 0, models that know more exams are better at the task;"
                    " below 0, worse. Intervals by drawing models."
                ),
                grids=[_tasks(group.tasks)],
            )
        yield Section(
            title=f"Closed accuracy against everything else{about} (n = {group.n_models})",
            text=(
                f"The {closed.name}: {parts}, each by its test items, the languages of one"
                " benchmark counted once. A benchmark that is part of the mean stands against the"
                " mean of the others."
            ),
            grids=[_columns(group.columns)],
        )


def _tasks(tasks: Sequence[ClosedTask]) -> Grid:
    return Grid(
        heads=["task", "mean r", "95 % interval", "lowest", "highest", "numbers"],
        rows=[
            [
                task.task,
                r_text(task.mean),
                _interval(task.lo, task.hi),
                r_text(task.lowest),
                r_text(task.highest),
                str(task.numbers),
            ]
            for task in sorted(tasks, key=lambda task: task.mean)
        ],
    )


def _columns(columns: Sequence[ClosedColumn]) -> Grid:
    return Grid(
        heads=["number", "Pearson", "95 % interval", "Spearman", "Kendall", "models"],
        rows=[
            [
                column.column + (f" (against the mean without {column.without})" if
                column.without else ""),
                r_text(column.pearson),
                _interval(column.pearson_lo, column.pearson_hi),
                r_text(column.spearman),
                r_text(column.kendall),
                str(column.n),
            ]
            for column in columns
        ],
    )  # fmt: skip


def _interval(lo: float | None, hi: float | None) -> str:
    return "–" if lo is None or hi is None else f"[{r_text(lo)}, {r_text(hi)}]"


def r_text(value: float | None) -> str:
    """Return a correlation as tables print it."""
    return "undefined" if value is None else signed(value, 2)
