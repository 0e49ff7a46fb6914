"""The sheet of the study of contexts: the published table, three panels, what each context adds to
each model, by category.
"""

from collections.abc import Iterator, Mapping

import msgspec

from medassay.core.ranks import NOT_SHOWN, SHOWN, rank_range
from medassay.core.records.leaderboard import UNREAD_WARNING
from medassay.report.document import Grid, ReportDocument, Section
from medassay.report.plot.forest import NamedDifference, forest
from medassay.report.plot.panels import PanelBar, panels
from medassay.statistic.interval.bootstrap import SMALL_N
from medassay.study.contexts import (
    ALL,
    ASKED_FOR,
    MEASURES,
    ContextRow,
    ContextsStudy,
    MeasureCorrelation,
    MeasureName,
    order_of,
)

_FACTOR: Mapping[MeasureName, float] = {"accuracy": 100.0, "judge": 1.0, "similarity": 1.0}
_DIGITS: Mapping[MeasureName, int] = {"accuracy": 1, "judge": 2, "similarity": 3}


def contexts_sheet(study: ContextsStudy) -> ReportDocument:
    """Return the study as a sheet."""
    sections = [_table(study), *_gain_sections(study), _agreement(study), *_retrieval(study)]
    sections.append(_categories(study))
    return ReportDocument(
        name="contexts",
        title="What contexts add",
        reading=reading(study),
        notes=list(_notes(study)),
        sections=[section for section in sections if section.grids or section.figure],
        columns=ContextRow.__struct_fields__,
        lines=msgspec.to_builtins(study.rows),
        data=msgspec.to_builtins(study),
    )


def _notes(study: ContextsStudy) -> Iterator[str]:
    metrics = study.metrics
    texts = {
        "accuracy": "accuracy is the share of right letters, in %",
        "judge": f"judge is {metrics.get('judge', '')}, 0 to 10",
        "similarity": f"similarity is {metrics.get('similarity', '')}",
    }
    text = "; ".join(texts[name] for name in MEASURES if name in metrics)
    yield f"{text[:1].upper()}{text[1:]}. Every item counts once. Runs: {', '.join(study.runs)}."
    if study.scripted:
        yield "SCRIPTED: answers or grades are a script's; these numbers measure nothing."
    yield (
        "Ranks are ranges: of five models, 2–4 says that one is shown to be better and one to be"
        " worse, with all pairs of a setting tested at once (at most 5 % error, about 5 % for"
        " grades). Toplines are upper bounds and get no rank."
    )
    yield (
        "Unread are replies in which no answer was read (unclear, cut off, declined); they score"
        " the worst."
    )
    yield (
        "Intervals are of 95 %, over conditions where items share one; each difference has its own."
        " A difference is told where that excludes 0 and Holm's p over all of them is at most 0.05."
    )


def _cell(row: ContextRow | None) -> str:
    """Return an estimate with interval and mark."""
    if row is None:
        return "–"
    factor, digits = _FACTOR[row.measure], _DIGITS[row.measure]
    value = f"{factor * row.score:.{digits}f}"
    if row.lo is None or row.hi is None:
        return f"{value} [no interval]"
    ends = f"[{factor * row.lo:.{digits}f}, {factor * row.hi:.{digits}f}]"
    place = "" if row.rank is None else f" rank {rank_range(row.rank_lo, row.rank_hi)}"
    return f"{value} {ends}{place}{' few' if row.few else ''}"


def _cells(row: ContextRow | None) -> tuple[str, str]:
    """Return an estimate, and the share of replies in which no answer was read."""
    unread = None if row is None else row.unread
    return _cell(row), "–" if unread is None else f"{100 * unread:.1f} %"


def _table(study: ContextsStudy) -> Section:
    rows = [row for row in study.rows if row.category == ALL]
    rows_by_key = {(row.model, row.setting, row.measure): row for row in rows}
    measures = [name for name in MEASURES if name in study.metrics]
    keys = sorted({key[:2] for key in rows_by_key}, key=lambda key: (key[0], order_of(key[1])))
    points = [
        PanelBar(
            measure=row.measure,
            model=row.model,
            beside=row.setting,
            score=_FACTOR[row.measure] * row.score,
            lo=_FACTOR[row.measure] * row.lo,
            hi=_FACTOR[row.measure] * row.hi,
        )
        for row in sorted(rows, key=lambda row: (row.model, order_of(row.setting)))
        if row.lo is not None and row.hi is not None
    ]
    units = {"accuracy": "accuracy, %", "judge": "judge, 0 to 10", "similarity": "similarity"}
    return Section(
        title="Every model in every setting",
        figure=("panels", panels(points, {name: units[name] for name in measures})),
        grids=[
            Grid(
                heads=[
                    "model",
                    "setting",
                    *(h for m in measures for h in (m, f"unread ({m})")),
                ],
                rows=[
                    [*key, *(c for m in measures for c in _cells(rows_by_key.get((*key, m))))]
                    for key in keys
                ],
                names=2,
            )
        ],
    )


def _gain_sections(study: ContextsStudy) -> Iterator[Section]:
    """Yield a section for each model: what each context adds to it."""
    for number, model in enumerate(sorted({gain.model for gain in study.gains}), 1):
        own_gains = [gain for gain in study.gains if gain.model == model]
        points = [
            NamedDifference(
                name=f"{gain.measure}: {gain.setting}",
                diff=gain.value,
                lo=gain.lo,
                hi=gain.hi,
                different=gain.different,
            )
            for gain in own_gains
        ]
        rows = [
            [
                gain.setting,
                gain.measure,
                f"{gain.value:+.1f} [{gain.lo:+.1f}, {gain.hi:+.1f}]",
                f"{gain.p_holm:.3f}",
                (SHOWN if gain.different else NOT_SHOWN)
                + (f"; ⚠ {UNREAD_WARNING}" if gain.unread_outweighs else ""),
                " / ".join(f"{100 * share:.1f} %" for share in gain.unread),
                str(gain.n),
            ]
            for gain in own_gains
        ]
        heads = [
            "setting",
            "measure",
            "minus zero_shot",
            "p (Holm)",
            "reading",
            "unread",
            "items",
        ]
        yield Section(
            title=f"What each context adds to {model}",
            figure=(f"gains-{number}", forest(points, unit="points of 100 of the scale")),
            grids=[Grid(heads=heads, rows=rows, names=2)],
        )


def _agreement(study: ContextsStudy) -> Section:
    rows = [
        [
            correlation.setting,
            f"{correlation.first} and {correlation.second}",
            "–" if correlation.rho is None else f"{correlation.rho:+.2f}{_ends(correlation)}",
            str(correlation.n),
        ]
        for correlation in study.correlations
    ]
    heads = ["setting", "measures", "Spearman's rho", "models"]
    return Section(
        title="Do the measures order models alike?",
        grids=[Grid(heads=heads, rows=rows, names=2)] if rows else [],
    )


def _ends(estimate: MeasureCorrelation) -> str:
    if estimate.lo is None:
        return " [too few models for an interval]"
    return f" [{estimate.lo:+.2f}, {estimate.hi:+.2f}]"


def _retrieval(study: ContextsStudy) -> Iterator[Section]:
    lines = [
        [
            source.model,
            f"{source.setting}, {source.measure}",
            f"{100 * source.score:.1f}"
            + (
                ""
                if source.lo is None or source.hi is None
                else f" [{100 * source.lo:.1f}, {100 * source.hi:.1f}]"
            ),
            str(source.n),
        ]
        for source in study.sources
    ]
    heads = ["model", "setting", "own source retrieved, %", "items"]
    yield Section(
        title="Did the search find the right text?",
        grids=[Grid(heads=heads, rows=lines, names=2)] if lines else [],
    )
    long = [
        [
            long_context.model,
            long_context.setting,
            f"{long_context.long} of {long_context.answers}",
        ]
        for long_context in study.long
    ]
    heads = ["model", "setting", f"longer than {ASKED_FOR} characters"]
    yield Section(
        title="Answers longer than asked for",
        grids=[Grid(heads=heads, rows=long, names=2)] if long else [],
    )


def _categories(study: ContextsStudy) -> Section:
    rows = [row for row in study.rows if row.category != ALL]
    measures = [name for name in MEASURES if name in study.metrics]
    rows_by_key = {(r.category, r.model, r.setting, r.measure): r for r in rows}
    keys = sorted(
        {key[:3] for key in rows_by_key}, key=lambda key: (key[0], key[1], order_of(key[2]))
    )
    lines = []
    for key in keys:
        cells = [rows_by_key.get((*key, measure)) for measure in measures]
        n = max(cell.n for cell in cells if cell is not None)
        lines.append([*key, *(_cell(cell) for cell in cells), str(n)])
    heads = ["category", "model", "setting", *measures, "items"]
    few = f"“few” marks fewer than {SMALL_N} items or conditions: not ranked."
    return Section(
        title="By category",
        text=few,
        grids=[Grid(heads=heads, rows=lines, names=3, folded=len(lines) > 60)] if lines else [],
    )


def reading(study: ContextsStudy) -> str:
    """Return the study in one paragraph."""
    gains = study.gains
    if not gains:
        return "No model was asked both with a context and without."
    sure = [gain for gain in gains if gain.different]
    sentences = [f"Against zero-shot {len(sure)} of {len(gains)} differences are shown."]
    for measure, setting in sorted(
        {(gain.measure, gain.setting) for gain in sure},
        key=lambda pair: (MEASURES.index(pair[0]), order_of(pair[1])),
    ):
        own_gains = [o for o in gains if (o.measure, o.setting) == (measure, setting)]
        more = sum(gain.different and gain.value > 0 for gain in own_gains)
        less = sum(gain.different and gain.value < 0 for gain in own_gains)
        sentences.append(
            f"{setting} raises {measure} of {more} and lowers it of {less} of {len(own_gains)}"
            " models."
        )
    if doubtful := sum(gain.unread_outweighs for gain in sure):
        sentences.append(
            f"{doubtful} of these {len(sure)} differ by less than the shares of their unread"
            " replies do: see how they were read (`medassay study reading`) before saying so."
        )
    return " ".join(sentences)
