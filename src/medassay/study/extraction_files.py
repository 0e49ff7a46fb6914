"""The extraction study as files: a page with figures, Markdown, CSV, JSON."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from medassay.core.ranks import NOT_SHOWN, SHOWN, ranking_sentence
from medassay.core.records.leaderboard import share_text
from medassay.kinds.record.page import thinking_figure
from medassay.report.document import markdown_table, markdown_text
from medassay.report.pages.html import asset, environment
from medassay.report.plot.figure import Figure, drawable
from medassay.report.plot.matrix import heat_map
from medassay.report.tables import harmless
from medassay.study.extraction import COMPOSITE

_ALONE = "Each interval is of its difference alone: among twenty, one excludes 0 by chance."
_BESIDE = (
    "They enter no family: shares of leaves, and of entries of drugs that reply and reference have"
    " in common."
)
_SCRIPTED = "SCRIPTED: answers or judges were scripted; these numbers measure nothing."


def files_of(document: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files of a study by name; figures are left out where they cannot be drawn."""
    figures = {"correlation": correlation_figure(document["correlation"])}
    columns_shown = [*(f"family {name}" for name in document["families"]), COMPOSITE]
    if (gain := thinking_figure(document["thinking"], columns_shown)) is not None:
        figures["thinking"] = gain
    page = environment().get_template("extraction.html")
    content = page.render(
        **document,
        groups=_groups(document),
        figures=figures,
        drawn=drawable(),
        reading=reading(document),
    )
    files = {
        "index.html": content.encode(),
        "extraction.md": markdown(document).encode(),
        "extraction.csv": csv_text(document).encode(),
        "extraction.json": json.dumps({"schema_version": 1, **document}, indent=1).encode() + b"\n",
        "style.css": asset("style.css"),
    }
    for name, figure in figures.items() if drawable() else ():
        files[f"{name}.svg"] = figure.svg().encode()
        files[f"{name}-dark.svg"] = figure.svg(dark=True).encode()
    return files


def correlation_figure(correlation: Mapping[str, Any]) -> Figure:
    """Return the heat map of the metrics in the order of their tree."""
    return heat_map(
        [name.replace("_", " ") for name in correlation["metrics"]],
        correlation["pearson"],
        order=correlation["order"],
        merges=[tuple(merge) for merge in correlation["merges"]],
        linkage="average linkage of 1 − |Pearson|",
    )


def reading(document: Mapping[str, Any]) -> str:
    """Return the study in a few sentences: the composite, whether rows are shown to differ by it,
    and what it hides.
    """
    rows = [row for row in document["rows"] if row["metrics"][COMPOSITE]]
    if not rows:
        return (
            "There is no composite with an interval: too few reports, or a family of metrics is"
            " absent."
        )
    rows.sort(key=lambda row: (-row["metrics"][COMPOSITE]["score"], _name(row)))
    stopped, first_row = sum(row["stopped_as_current"] for row in document["rows"]), rows[0]
    sentences = (
        f"{_name(first_row)} has a composite of {share_text(first_row['metrics'][COMPOSITE])}, and"
        f" lists {first_row['stopped_as_current']} stopped drugs as current; all rows together list"
        f" {stopped}."
    )
    if len(rows) == 1:
        return sentences
    order = document["composite"]
    if order is None:
        return (
            f"{sentences} Too few reports to say whether the composites of the {len(rows)} rows"
            " differ."
        )
    lowest = {_name(row): row["rank_lo"] for row in order["rows"]}
    ranked = [name for name in map(_name, rows) if name in lowest]
    first = [name for name in ranked if lowest[name] == 1]
    others = [name for name in ranked if lowest[name] > 1]
    return (
        f"{sentences} By the composite: {ranking_sentence(first, others, graded=True, who='row')}"
    )


def _name(row: Mapping[str, Any]) -> str:
    name = row["setting"] if row["mode"] == "solo" else f"{row['setting']}, {row['mode']}"
    return f"{row['model']} ({name})"


def csv_text(document: Mapping[str, Any]) -> str:
    """Return every estimate: a line for each row, metric, family and pass rate."""
    text = io.StringIO()
    columns = [
        *("model", "setting", "mode", "kind", "name", "threshold", "estimate", "lo", "hi"),
        *(
            "second_method",
            "second_lo",
            "second_hi",
            "n",
            "n_clusters",
            "gold",
            "silver",
            "flags",
        ),
    ]
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    thresholds = {m["name"]: m["threshold"] for m in document["metrics"]}
    references = {name: document["references"][name] for name in ("gold", "silver")}
    for row in document["rows"]:
        marks = {**references, "flags": " ".join(row["flags"])}
        for kind, key in (
            *(("metric", "metrics"), ("family", "families")),
            *(("pass rate", "pass"), ("beside", "beside")),
        ):
            for name, estimate in row[key].items():
                if estimate is None:
                    continue
                second = {f"second_{k}": v for k, v in (estimate["second"] or {}).items()}
                threshold = thresholds.get(name) if kind == "pass rate" else None
                cells = {"kind": kind, "name": name, "threshold": threshold}
                line = {
                    **row,
                    **estimate,
                    **cells,
                    "estimate": estimate["score"],
                    **second,
                    **marks,
                }
                writer.writerow({k: harmless(v) for k, v in line.items()})
    return text.getvalue()


def markdown(document: Mapping[str, Any]) -> str:
    """Return the tables of the study."""
    references = document["references"]
    parts = [
        f"# Extraction study of run {document['run']}",
        "",
        (
            f"{markdown_text(reading(document))} References: {references['gold']} gold,"
            f" {references['silver']} silver, {references['converted']} converted. Percent with 95"
            f" % intervals, over {document['reports']['common']} of {document['reports']['all']}"
            f" reports that the rows have in common. Seal {document['seal'][:16]}."
        ),
        "",
        *([_SCRIPTED, ""] if document["scripted"] else []),
        "## Families",
        "",
        *_table(document, "families", [*document["families"]]),
    ]
    for family, names in _groups(document).items():
        parts += ["", f"## {family.capitalize()}", "", *_table(document, "metrics", names)]
    parts += ["", "## Lost, invented, and details of drugs", "", _BESIDE, ""]
    parts += _table(document, "beside", [*document["rows"][0]["beside"]])
    thresholds = {m["name"]: m["threshold"] for m in document["metrics"]}
    declared = ", ".join(f"{markdown_text(name)} {value:g}" for name, value in thresholds.items())
    parts += ["", "## Passes", "", f"Thresholds: {declared}.", ""]
    parts += _table(document, "pass", list(thresholds))
    parts += ["", "## Pearson's r over all answers", "", *_correlation(document["correlation"])]
    if document["thinking"]:
        parts += [
            "",
            "## Thinking minus no thinking, points of 100",
            "",
            _ALONE,
            "",
            *_thinking(document),
        ]
    parts += ["", "## Stopped drugs listed as current", ""]
    heads = ["report", "drug", "model", "setting"]
    lines = (
        [s["item"], s["drug"] or "not named: synthetic", s["model"], s["setting"]]
        for s in document["stopped"]
    )
    parts += list(markdown_table(heads, lines)) if document["stopped"] else ["None."]
    return "\n".join(parts) + "\n"


def _groups(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return family → its metrics, those that enter no composite too; the composite last."""
    names_by_group: dict[str, list[str]] = {}
    for metric in document["metrics"]:
        names_by_group.setdefault(metric["family"] or COMPOSITE, []).append(metric["name"])
    return names_by_group


def _table(document: Mapping[str, Any], key: str, names: Sequence[str]) -> Iterator[str]:
    rows = (
        [
            row["model"],
            row["setting"],
            str(row["n"]),
            *(share_text(row[key][name]) for name in names),
        ]
        for row in document["rows"]
    )
    yield from markdown_table(["model", "setting", "reports", *names], rows)


def _correlation(correlations: Mapping[str, Any]) -> Iterator[str]:
    names = [correlations["metrics"][at] for at in correlations["order"]]
    rows = (
        [
            correlations["metrics"][i],
            *(_number(correlations["pearson"][i][j]) for j in correlations["order"]),
        ]
        for i in correlations["order"]
    )
    yield from markdown_table(["metric", *names], rows)


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"


def _thinking(document: Mapping[str, Any]) -> Iterator[str]:
    rows = (
        [
            pair["model"],
            name,
            *(f"{100 * difference[side]:.1f}" for side in ("thinking", "direct")),
            (
                f"{100 * difference['difference']:+.1f} [{100 * difference['lo']:+.1f},"
                f" {100 * difference['hi']:+.1f}]"
            ),
            SHOWN if difference["different"] else NOT_SHOWN,
        ]
        for pair in document["thinking"]
        for name, difference in pair["differences"].items()
    )
    heads = ["model", "metric", "with thinking", "without", "difference", "reading"]
    yield from markdown_table(heads, rows)
