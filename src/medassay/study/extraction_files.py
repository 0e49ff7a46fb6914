"""The extraction study as files: a page with figures, Markdown, CSV, JSON."""

import json
from collections.abc import Iterator, Sequence

import msgspec

from medassay.core.ranks import NOT_SHOWN, SHOWN, ranking_sentence
from medassay.core.records.estimate import Estimate, percent_text
from medassay.errors import StatisticError
from medassay.kinds.record.page import thinking_figure
from medassay.report.document import markdown_table, markdown_text
from medassay.report.pages.html import asset, environment
from medassay.report.plot.figure import Figure, drawable
from medassay.report.plot.matrix import heat_map
from medassay.report.tables import csv_text, estimate_cells
from medassay.study.extraction import COMPOSITE, ROW_KEYS
from medassay.study.extraction_tables import (
    ExtractionRow,
    ExtractionStudy,
    MetricCorrelation,
    ThinkingPair,
)

_ALONE = "Each interval is of its difference alone: among twenty, one excludes 0 by chance."
_BESIDE = (
    "They enter no family: shares of leaves, and of entries of drugs that reply and reference have"
    " in common."
)
_SCRIPTED = "SCRIPTED: answers or judges were scripted; these numbers measure nothing."


def files_of(study: ExtractionStudy) -> dict[str, bytes]:
    """Return the files of a study by name; figures are left out where they cannot be drawn."""
    figures = {"correlation": correlation_figure(study.correlation)}
    columns_shown = [*(f"family {name}" for name in study.families), COMPOSITE]
    pairs = [(pair.model, pair.differences) for pair in study.thinking]
    if (gain := thinking_figure(pairs, columns_shown)) is not None:
        figures["thinking"] = gain
    page = environment().get_template("extraction.html")
    content = page.render(
        study=study,
        groups=_groups(study),
        figures=figures,
        drawn=drawable(),
        reading=reading(study),
    )
    document = {"schema_version": 1, **msgspec.to_builtins(study)}
    files = {
        "index.html": content.encode(),
        "extraction.md": markdown(study).encode(),
        "extraction.csv": csv_of(study).encode(),
        "extraction.json": json.dumps(document, indent=1).encode() + b"\n",
        "style.css": asset("style.css"),
    }
    for name, figure in figures.items() if drawable() else ():
        files[f"{name}.svg"] = figure.svg().encode()
        files[f"{name}-dark.svg"] = figure.svg(dark=True).encode()
    return files


def correlation_figure(correlation: MetricCorrelation) -> Figure:
    """Return the heat map of the metrics in the order of their tree."""
    return heat_map(
        [name.replace("_", " ") for name in correlation.metrics],
        correlation.pearson,
        order=correlation.order,
        merges=[tuple(merge) for merge in correlation.merges],
        linkage="average linkage of 1 − |Pearson|",
    )


def _composite(row: ExtractionRow) -> Estimate:
    estimate = row.metrics[COMPOSITE]
    if estimate is None:
        raise StatisticError(f"{row.name}: has no composite")
    return estimate


def reading(study: ExtractionStudy) -> str:
    """Return the study in a few sentences: the composite, whether rows are shown to differ by it,
    and what it hides.
    """
    rows = [row for row in study.rows if row.metrics[COMPOSITE] is not None]
    if not rows:
        return (
            "There is no composite with an interval: too few reports, or a family of metrics is"
            " absent."
        )
    rows.sort(key=lambda row: (-_composite(row).value, row.name))
    stopped, first_row = sum(row.stopped_as_current for row in study.rows), rows[0]
    sentences = (
        f"{first_row.name} has a composite of {_composite(first_row).percent}, and lists"
        f" {first_row.stopped_as_current} stopped drugs as current; all rows together list"
        f" {stopped}."
    )
    if len(rows) == 1:
        return sentences
    if study.composite is None:
        return (
            f"{sentences} Too few reports to say whether the composites of the {len(rows)} rows"
            " differ."
        )
    places = {(row.model, row.setting, row.mode): row.rank_lo for row in study.composite.rows}
    lowest = {row.name: places.get((row.model, row.setting, row.mode)) for row in rows}
    first = [name for name, place in lowest.items() if place == 1]
    others = [name for name, place in lowest.items() if place is not None and place > 1]
    return (
        f"{sentences} By the composite: {ranking_sentence(first, others, graded=True, who='row')}"
    )


_COLUMNS = (
    *("model", "setting", "mode", "kind", "name", "threshold", "estimate", "lo", "hi"),
    *("second_method", "second_lo", "second_hi", "n", "n_clusters", "gold", "silver", "flags"),
)


def csv_of(study: ExtractionStudy) -> str:
    """Return every estimate: a line for each row, metric, family and pass rate."""
    thresholds = {metric.name: metric.threshold for metric in study.metrics}
    lines = (
        {
            **{key: getattr(row, key) for key in ROW_KEYS},
            "kind": kind,
            "name": name,
            "threshold": thresholds.get(name) if kind == "pass rate" else None,
            **estimate_cells(estimate),
            "n_clusters": estimate.n_clusters,
            "gold": study.references.gold,
            "silver": study.references.silver,
            "flags": " ".join(row.flags),
        }
        for row in study.rows
        for kind, estimates in (
            *(("metric", row.metrics), ("family", row.families)),
            *(("pass rate", row.passed), ("beside", row.beside)),
        )
        for name, estimate in estimates.items()
        if estimate is not None
    )
    return csv_text(_COLUMNS, lines)


def markdown(study: ExtractionStudy) -> str:
    """Return the tables of the study."""
    references, reports = study.references, study.reports
    parts = [
        f"# Extraction study of run {study.run}",
        "",
        (
            f"{markdown_text(reading(study))} References: {references.gold} gold,"
            f" {references.silver} silver, {references.converted} converted. Percent with 95"
            f" % intervals, over {reports.common} of {reports.all} reports that the rows have in"
            f" common. Seal {study.seal[:16]}."
        ),
        "",
        *([_SCRIPTED, ""] if study.scripted else []),
        "## Families",
        "",
        *_table(study, "families", [*study.families]),
    ]
    for family, names in _groups(study).items():
        parts += ["", f"## {family.capitalize()}", "", *_table(study, "metrics", names)]
    parts += ["", "## Lost, invented, and details of drugs", "", _BESIDE, ""]
    parts += _table(study, "beside", [*study.rows[0].beside])
    declared = ", ".join(f"{markdown_text(m.name)} {m.threshold:g}" for m in study.metrics)
    parts += ["", "## Passes", "", f"Thresholds: {declared}.", ""]
    parts += _table(study, "passed", [metric.name for metric in study.metrics])
    parts += ["", "## Pearson's r over all answers", "", *_correlation(study.correlation)]
    if study.thinking:
        heading = "## Thinking minus no thinking, points of 100"
        parts += ["", heading, "", _ALONE, "", *_thinking(study.thinking)]
    parts += ["", "## Stopped drugs listed as current", ""]
    heads = ["report", "drug", "model", "setting"]
    lines = (
        [drug.item, drug.drug or "not named: synthetic", drug.model, drug.setting]
        for drug in study.stopped
    )
    parts += list(markdown_table(heads, lines)) if study.stopped else ["None."]
    return "\n".join(parts) + "\n"


def _groups(study: ExtractionStudy) -> dict[str, list[str]]:
    """Return family → its metrics, those that enter no composite too; the composite last."""
    names_by_group: dict[str, list[str]] = {}
    for metric in study.metrics:
        names_by_group.setdefault(metric.family or COMPOSITE, []).append(metric.name)
    return names_by_group


def _table(study: ExtractionStudy, key: str, names: Sequence[str]) -> Iterator[str]:
    """Yield a table of the estimates that rows have under a field."""
    rows = (
        [
            row.model,
            row.setting,
            str(row.n),
            *(percent_text(getattr(row, key)[name]) for name in names),
        ]
        for row in study.rows
    )
    yield from markdown_table(["model", "setting", "reports", *names], rows)


def _correlation(correlation: MetricCorrelation) -> Iterator[str]:
    names, order = correlation.metrics, correlation.order
    rows = ([names[i], *(_number(correlation.pearson[i][j]) for j in order)] for i in order)
    yield from markdown_table(["metric", *(names[at] for at in order)], rows)


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"


def _thinking(pairs: Sequence[ThinkingPair]) -> Iterator[str]:
    rows = (
        [
            pair.model,
            name,
            *(f"{100 * side:.1f}" for side in (difference.thinking, difference.direct)),
            difference.points,
            SHOWN if difference.different else NOT_SHOWN,
        ]
        for pair in pairs
        for name, difference in pair.differences.items()
    )
    heads = ["model", "metric", "with thinking", "without", "difference", "reading"]
    yield from markdown_table(heads, rows)
