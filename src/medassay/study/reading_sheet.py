"""The study of reading as a sheet: shares by row, clusters of unread replies, disagreements, and
what people found.
"""

from collections.abc import Iterator

import msgspec

from medassay.report.document import Grid, ReportDocument, Section
from medassay.report.plot.bars import Bar, bars
from medassay.study.reading import ReadingRow, ReadingStudy

_COLUMNS = (
    *(
        "run",
        "model",
        "setting",
        "mode",
        "form",
        "n",
        "answered",
        "unparsed",
        "truncated",
        "refused",
    ),
    *("unread", "lo", "hi", "others", "p", "p_holm", "differs", "disagreements"),
)
_FOLDED = 30  # rows from which on a table stands behind a click


def reading_sheet(study: ReadingStudy) -> ReportDocument:
    """Return the study as a sheet."""
    sections = [
        _rows(study),
        _rules(study),
        _clusters(study),
        _disagreements(study),
        *_labels(study),
    ]
    return ReportDocument(
        name="reading",
        title="How replies were read",
        reading=reading(study),
        notes=list(_notes(study)),
        sections=[section for section in sections if section.grids or section.text],
        columns=list(_COLUMNS),
        lines=[{**msgspec.to_builtins(row), **row.outcomes} for row in study.rows],
        data=msgspec.to_builtins(study),
    )


def reading(study: ReadingStudy) -> str:
    """Return the study in one paragraph."""
    rows = study.rows
    n = sum(row.n for row in rows)
    unread = sum(round(row.unread * row.n) for row in rows)
    disagree = sum(row.disagreements for row in rows)
    sentences = [
        f"{unread:,} of {n:,} replies were left unread ({100 * unread / n:.1f} %); on {disagree:,}"
        " a second, lenient parser says something else."
    ]
    if differing := [row for row in rows if row.differs]:
        names = "; ".join(
            f"{row.model}, {row.setting} ({100 * row.unread:.1f} %, others"
            f" {100 * (row.others or 0):.1f} %)"
            for row in sorted(differing, key=lambda row: -row.unread)[:5]
        )
        more = f" and {len(differing) - 5} more" if len(differing) > 5 else ""
        sentences.append(f"Unread by more or less than chance: {names}{more}.")
    else:
        sentences.append("No row's unread share differs from the others' by more than chance.")
    if labels := study.labels:
        sentences.append(
            f"Of {labels.n} readings that people checked {labels.wrong} are wrong:"
            f" {100 * labels.error:.1f} % [{100 * labels.lo:.1f}, {100 * labels.hi:.1f}]."
        )
    return " ".join(sentences)


def _notes(study: ReadingStudy) -> Iterator[str]:
    yield (
        f"Runs: {', '.join(study.runs)}. Unread: unparsed, truncated or refused; failed calls"
        " are no replies."
    )
    yield (
        "Differs: Fisher's exact test of a row against the others of its mode and form, Holm's p at"
        " most 0.05. Rows answer the same items: the test takes them as independent."
    )
    yield (
        "A disagreement is a reason to look, not an error: the lenient parser takes the first"
        " letter, any list, the last number."
    )
    if not study.labels:
        yield (
            "To measure the parser's errors: fill the column `right` of to-label.csv (written with"
            " --to) and give it as --labels."
        )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _rows(study: ReadingStudy) -> Section:
    points = [
        Bar(
            place=f"{row.setting} · {row.form}",
            group=row.model,
            score=row.unread,
            lo=row.lo,
            hi=row.hi,
            n=row.n,
        )
        for row in study.rows
    ]
    lines = [
        [
            row.model,
            row.setting,
            row.form,
            str(row.n),
            f"{_percent(row.unread)} [{100 * row.lo:.1f}, {100 * row.hi:.1f}]",
            _percent(row.others),
            *(str(row.outcomes[name]) for name in ("unparsed", "truncated", "refused")),
            str(row.disagreements),
            _against(row),
        ]
        for row in study.rows
    ]
    heads = [
        "model",
        "setting",
        "form",
        "replies",
        "unread",
        "others",
        "unparsed",
        "truncated",
        "refused",
        "disagreements",
        "against the others",
    ]
    return Section(
        title="Unread replies by row",
        figure=(
            "unread",
            bars(points, by="setting", group="model", unit="unread, %", factor=100.0),
        ),
        grids=[Grid(heads=heads, rows=lines, names=3)],
    )


def _against(row: ReadingRow) -> str:
    """Return whether a row's share differs from the others', and how sure that is.

    Nothing where there are no others.
    """
    if row.others is None:
        return "–"
    p = "p < 0.001" if row.p_holm < 0.001 else f"p {row.p_holm:.3f}"
    if not row.differs:
        return p
    return f"⚠ more, {p}" if row.unread > row.others else f"fewer, {p}"


def _rules(study: ReadingStudy) -> Section:
    lines = [
        [row.model, row.setting, row.form, rule, str(n), _percent(n / row.n)]
        for row in study.rows
        for rule, n in row.rules.items()
    ]
    heads = ["model", "setting", "form", "rule or reason", "replies", "share"]
    return Section(
        title="By which rules",
        grids=[Grid(heads=heads, rows=lines, names=4, folded=len(lines) > _FOLDED)],
    )


def _clusters(study: ReadingStudy) -> Section:
    lines = [
        [
            cluster.shape,
            cluster.outcome,
            cluster.reason,
            ", ".join(f"{name} {n}" for name, n in list(cluster.rows.items())[:3]),
            " ‖ ".join(" ".join(text.split())[:120] for text in cluster.examples),
            str(cluster.n),
        ]
        for cluster in study.clusters
    ]
    heads = ["shape", "outcome", "reason", "most in", "examples", "replies"]
    return Section(
        title="Unread replies that look alike",
        text="" if lines else "Every reply was read.",
        grids=(
            [Grid(heads=heads, rows=lines, names=5, folded=len(lines) > _FOLDED)] if lines else []
        ),
    )


def _disagreements(study: ReadingStudy) -> Section:
    lines = [
        [
            disagreement.model,
            disagreement.setting,
            disagreement.item,
            disagreement.first or f"– ({disagreement.outcome})",
            disagreement.second,
            " ".join(disagreement.reply.split())[:160],
        ]
        for disagreement in study.disagreements
    ]
    total = sum(row.disagreements for row in study.rows)
    heads = ["model", "setting", "item", "read as", "second reading", "reply"]
    return Section(
        title="Where a second reading disagrees",
        text=f"{len(lines)} of {total:,} are listed." if total > len(lines) else "",
        grids=(
            [Grid(heads=heads, rows=lines, names=6, folded=len(lines) > _FOLDED)] if lines else []
        ),
    )


def _labels(study: ReadingStudy) -> Iterator[Section]:
    if not study.labels:
        return
    lines = [
        [
            row.model,
            row.setting,
            f"{row.wrong} of {row.n}",
            f"{_percent(row.error)} [{100 * row.lo:.1f}, {100 * row.hi:.1f}]",
        ]
        for row in study.labels.rows
    ]
    heads = ["model", "setting", "wrong", "error rate"]
    yield Section(
        title="Readings that people checked",
        text=(
            "Wilson's interval, 95 %. Of the replies that were labelled; a sample drawn by chance"
            " speaks for all."
        ),
        grids=[Grid(heads=heads, rows=lines, names=2)],
    )
