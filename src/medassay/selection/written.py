"""A shortlist as a page, as Markdown, CSV and JSON."""

import csv
import io
import json

from medassay.core.ranks import rank_range
from medassay.core.wording import counted
from medassay.report.document import markdown_table, markdown_text
from medassay.report.pages.html import asset, environment
from medassay.report.tables import harmless
from medassay.selection.discipline import Recomputed, RecomputedModel
from medassay.selection.licence import FAMILIES, STATED
from medassay.selection.shortlist import Shortlist, ShortlistDocument, ShortlistRow


def files_of(shortlist: Shortlist, document: ShortlistDocument) -> dict[str, bytes]:
    """Return the files of a shortlist, with its document, by name."""
    page = (
        environment()
        .get_template("shortlist.html")
        .render(
            **document,
            more=more_columns_of(shortlist)[:-1],
            others=other_scores(shortlist.recomputed) if shortlist.recomputed else [],
            others_text=OTHER_SCORES,
        )
    )
    return {
        "index.html": page.encode(),
        "shortlist.csv": csv_text(shortlist).encode(),
        "shortlist.json": json.dumps(document, indent=1).encode() + b"\n",
        "shortlist.md": markdown(shortlist).encode(),
        "style.css": asset("style.css"),
    }


def columns_of(shortlist: Shortlist) -> list[str]:
    """Return the headings of the table of models."""
    columns = ("model", "qualifier", "billions", "window", "licence")
    return [*columns, *shortlist.steps.disciplines, "mean", "unknown"]


def more_columns_of(shortlist: Shortlist) -> list[str]:
    """Return the headings of what written tables hold besides: scores that no step asks for, and
    sources.
    """
    scores = {name for row in shortlist.rows for name in row.candidate.scores}
    return [*sorted(scores - set(shortlist.steps.disciplines)), "source"]


def cells_of(shortlist: Shortlist, row: ShortlistRow) -> list[str]:
    """Return a model as cells of that table; blank is unknown."""
    c = row.candidate
    size = None if c.parameters_b is None else f"{c.parameters_b:g}"
    cells = [c.qualifier, size, c.context_tokens, c.licence]
    scores = [c.scores.get(name) for name in shortlist.steps.disciplines]
    return [
        c.model,
        *("" if value is None else f"{value}" for value in cells),
        *("" if value is None else f"{value:.4f}" for value in scores),
        "" if row.mean is None else f"{row.mean:.6g}",
        ", ".join(row.unknown),
    ]


def csv_text(shortlist: Shortlist) -> str:
    """Return the models that stayed.

    Cells that a spreadsheet would run are quoted by an apostrophe.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")  # so that a bare \r in a name is quoted
    for cells in _whole_table(shortlist):
        writer.writerow(map(harmless, cells))
    return text.getvalue()


def _whole_table(shortlist: Shortlist) -> list[list[str]]:
    *names, source = more_columns_of(shortlist)
    table = [[*columns_of(shortlist), *names, source]]
    for row in shortlist.rows:
        scores = row.candidate.scores
        more = (f"{scores[name]:.4f}" if name in scores else "" for name in names)
        table.append([*cells_of(shortlist, row), *more, row.candidate.source or ""])
    return table


def markdown(shortlist: Shortlist) -> str:
    """Return the whole way: steps, what went and why, what stayed, licences, and what predictions
    say.
    """
    parts = [f"# Shortlist of {len(shortlist.rows)} of {shortlist.candidates} models", ""]
    for step in shortlist.taken:
        parts += [
            f"## {step.name}: {markdown_text(step.asks)}",
            "",
            f"{len(step.kept)} stay.",
            "",
        ]
        if step.removed:
            parts += [*markdown_table(["goes", "because"], step.removed), ""]
        if step.unknown:
            parts += [
                f"Unknown, kept: {', '.join(markdown_text(name) for name in step.unknown)}.",
                "",
            ]
    parts += ["## Shortlist", ""]
    if shortlist.rows:
        heads, *rows = _whole_table(shortlist)
        parts += markdown_table(heads, rows)
    else:
        parts.append("No model passes every step.")
    if shortlist.recomputed is not None:
        parts += ["", *_recomputed(shortlist.recomputed)]
    parts += ["", f"## Licences, as stated on {STATED}, not verified", ""]
    truth = {True: "yes", False: "no"}
    heads = ["family", "licences", "open source", "commercial use", "needs an API", "notes"]
    parts += markdown_table(
        heads,
        (
            (
                f.name,
                ", ".join(f.licences),
                truth[f.open_source],
                f.commercial,
                f.needs_api,
                f.notes,
            )
            for f in FAMILIES
        ),
    )
    return "\n".join(parts) + "\n"


def _recomputed(scores: Recomputed) -> list[str]:
    parts = ["## Recomputed from predictions", ""]
    if not scores.models:
        return [*parts, "No model of the shortlist has predictions in the file."]
    parts += markdown_table(
        ["model", "mean [95 % interval]", "rank range", "items", "blank"],
        (
            [
                row.model,
                interval(row),
                rank_range(row.rank_lo, row.rank_hi),
                str(row.n),
                str(row.blank),
            ]
            for row in scores.models
        ),
    )
    if sentences := other_scores(scores):
        parts += [
            "",
            OTHER_SCORES,
            "",
            *(f"- {markdown_text(sentence)}" for sentence in sentences),
        ]
    noise = [pair for pair in scores.pairs if pair.noise]
    if scores.pairs:
        parts += [
            "",
            (
                f"No difference is shown for {len(noise)} of"
                f" {counted(len(scores.pairs), 'pair')} (all tested at once, at most 5 % error)."
            ),
        ]
    if noise:
        pairs = (
            [p.first, p.second, f"{p.difference:+.4f} [{p.lo:+.4f}, {p.hi:+.4f}]"] for p in noise
        )
        parts += ["", *markdown_table(["first", "second", "difference [95 % interval]"], pairs)]
    return parts


OTHER_SCORES = (
    "Scores of the table that are not those of these predictions; the table is printed as its"
    " source has it, and keys may have been corrected since:"
)


def other_scores(scores: Recomputed) -> list[str]:
    """Return a line for each score of the table that is not that of the predictions."""
    return [
        f"{row.model}, {other.discipline}: {other.score:.4f} ({other.right} of {other.n} right),"
        f" the table has {other.table_score:.4f} ({other.table_right} of {other.n})"
        for row in scores.models
        for other in row.other_scores
    ]


def interval(row: RecomputedModel) -> str:
    """Return a mean with its interval."""
    if row.mean is None:
        return "–"
    return f"{row.mean:.4f} [{row.lo:.4f}, {row.hi:.4f}]"
