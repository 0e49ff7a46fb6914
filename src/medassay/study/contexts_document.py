"""The sheet of the study of contexts: the published table, three panels, what each context adds to each model, by category."""

from collections.abc import Iterator, Mapping
from typing import Any

from medassay.core.ranks import NOT_SHOWN, SHOWN, rank_range
from medassay.core.records.leaderboard import UNREAD_WARNING
from medassay.report.document import Grid, ReportDocument, Section
from medassay.report.plot.forest import forest
from medassay.report.plot.panels import panels
from medassay.statistic.interval.bootstrap import SMALL_N
from medassay.study.contexts import ALL, ASKED_FOR, MEASURES, Measure, order_of

_FACTOR: Mapping[Measure, float] = {"accuracy": 100.0, "judge": 1.0, "similarity": 1.0}
_DIGITS: Mapping[Measure, int] = {"accuracy": 1, "judge": 2, "similarity": 3}
_COLUMNS = (
    *("model", "setting", "category", "measure", "metric", "score", "lo", "hi"),
    *("n", "rank", "rank_lo", "rank_hi", "few", "unread", "run"),
)
_RANKS = ("rank", "rank_lo", "rank_hi")


def contexts_sheet(study: Mapping[str, Any]) -> ReportDocument:
    """Return the study as a sheet."""
    sections = [_table(study), *_gain_sections(study), _agreement(study), *_retrieval(study)]
    sections.append(_categories(study))
    return ReportDocument(
        name="contexts",
        title="What contexts add",
        reading=reading(study),
        notes=list(_notes(study)),
        sections=[section for section in sections if section.grids or section.figure],
        columns=list(_COLUMNS),
        lines=[
            {name: "" if row[name] is None and name in _RANKS else row[name] for name in row}
            for row in study["rows"]
        ],
        data=study,
    )


def _notes(study: Mapping[str, Any]) -> Iterator[str]:
    metrics = study["metrics"]
    said = {
        "accuracy": "accuracy is the share of right letters, in %",
        "judge": f"judge is {metrics.get('judge', '')}, 0 to 10",
        "similarity": f"similarity is {metrics.get('similarity', '')}",
    }
    told = "; ".join(said[name] for name in MEASURES if name in metrics)
    yield f"{told[:1].upper()}{told[1:]}. Every item counts once. Runs: {', '.join(study['runs'])}."
    if study["scripted"]:
        yield "SCRIPTED: answers or grades are a script's; these numbers measure nothing."
    yield "Ranks are ranges: of five models, 2–4 says that one is shown to be better and one to be worse, with all pairs of a setting tested at once (at most 5 % error, about 5 % for grades). Toplines are upper bounds and get no rank."
    yield "Unread are replies in which no answer was read (unclear, cut off, declined); they score the worst."
    yield "Intervals are of 95 %, over conditions where items share one; each difference has its own. A difference is told where that excludes 0 and Holm's p over all of them is at most 0.05."


def _cell(row: Mapping[str, Any] | None) -> str:
    """Return an estimate with interval and mark."""
    if row is None:
        return "–"
    factor, digits = _FACTOR[row["measure"]], _DIGITS[row["measure"]]
    value = f"{factor * row['score']:.{digits}f}"
    if row["lo"] is None:
        return f"{value} [no interval]"
    lo, hi = (f"{factor * row[key]:.{digits}f}" for key in ("lo", "hi"))
    place = "" if row["rank"] is None else f" rank {rank_range(row)}"
    return f"{value} [{lo}, {hi}]{place}{' few' if row['few'] else ''}"


def _cells(row: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return an estimate, and the share of replies in which no answer was read."""
    return _cell(row), "–" if row is None else f"{100 * row['unread']:.1f} %"


def _table(study: Mapping[str, Any]) -> Section:
    rows = [row for row in study["rows"] if row["category"] == ALL]
    found = {(row["model"], row["setting"], row["measure"]): row for row in rows}
    measures = [name for name in MEASURES if name in study["metrics"]]
    keys = sorted({key[:2] for key in found}, key=lambda key: (key[0], order_of(key[1])))
    drawn = [
        {
            **{key: row[key] for key in ("measure", "model", "setting")},
            **{key: _FACTOR[row["measure"]] * row[key] for key in ("score", "lo", "hi")},
        }
        for row in sorted(rows, key=lambda row: (row["model"], order_of(row["setting"])))
        if row["lo"] is not None
    ]
    units = {"accuracy": "accuracy, %", "judge": "judge, 0 to 10", "similarity": "similarity"}
    return Section(
        title="Every model in every setting",
        figure=("panels", panels(drawn, {name: units[name] for name in measures})),
        grids=[
            Grid(
                heads=[
                    "model",
                    "setting",
                    *(h for m in measures for h in (m, f"unread ({m})")),
                ],
                rows=[
                    [*key, *(c for m in measures for c in _cells(found.get((*key, m))))]
                    for key in keys
                ],
                names=2,
            )
        ],
    )


def _gain_sections(study: Mapping[str, Any]) -> Iterator[Section]:
    """Yield a section for each model: what each context adds to it."""
    for number, model in enumerate(sorted({one["model"] for one in study["gains"]}), 1):
        own = [one for one in study["gains"] if one["model"] == model]
        points = [
            {
                "name": f"{one['measure']}: {one['setting']}",
                "diff": one["value"],
                **{key: one[key] for key in ("lo", "hi", "different")},
            }
            for one in own
        ]
        rows = [
            [
                one["setting"],
                one["measure"],
                f"{one['value']:+.1f} [{one['lo']:+.1f}, {one['hi']:+.1f}]",
                f"{one['p_holm']:.3f}",
                _reading_of(one),
                " / ".join(f"{100 * share:.1f} %" for share in one["unread"]),
                str(one["n"]),
            ]
            for one in own
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


def _reading_of(gain: Mapping[str, Any]) -> str:
    told = SHOWN if gain["different"] else NOT_SHOWN
    return f"{told}; ⚠ {UNREAD_WARNING}" if gain["unread_outweighs"] else told


def _agreement(study: Mapping[str, Any]) -> Section:
    rows = [
        [
            one["setting"],
            f"{one['first']} and {one['second']}",
            "–" if one["rho"] is None else f"{one['rho']:+.2f}{_ends(one)}",
            str(one["n"]),
        ]
        for one in study["correlations"]
    ]
    heads = ["setting", "measures", "Spearman's rho", "models"]
    return Section(
        title="Do the measures order models alike?",
        grids=[Grid(heads=heads, rows=rows, names=2)] if rows else [],
    )


def _ends(one: Mapping[str, Any]) -> str:
    if one["lo"] is None:
        return " [too few models for an interval]"
    return f" [{one['lo']:+.2f}, {one['hi']:+.2f}]"


def _retrieval(study: Mapping[str, Any]) -> Iterator[Section]:
    found = [
        [
            one["model"],
            f"{one['setting']}, {one['measure']}",
            f"{100 * one['score']:.1f}"
            + ("" if one["lo"] is None else f" [{100 * one['lo']:.1f}, {100 * one['hi']:.1f}]"),
            str(one["n"]),
        ]
        for one in study["sources"]
    ]
    heads = ["model", "setting", "own source retrieved, %", "items"]
    yield Section(
        title="Did the search find the right text?",
        grids=[Grid(heads=heads, rows=found, names=2)] if found else [],
    )
    long = [
        [one["model"], one["setting"], f"{one['long']} of {one['answers']}"]
        for one in study["long"]
    ]
    heads = ["model", "setting", f"longer than {ASKED_FOR} characters"]
    yield Section(
        title="Answers longer than asked for",
        grids=[Grid(heads=heads, rows=long, names=2)] if long else [],
    )


def _categories(study: Mapping[str, Any]) -> Section:
    rows = [row for row in study["rows"] if row["category"] != ALL]
    measures = [name for name in MEASURES if name in study["metrics"]]
    found = {(r["category"], r["model"], r["setting"], r["measure"]): r for r in rows}
    keys = sorted(
        {key[:3] for key in found}, key=lambda key: (key[0], key[1], order_of(key[2]))
    )
    lines = []
    for key in keys:
        cells = [found.get((*key, measure)) for measure in measures]
        n = max(cell["n"] for cell in cells if cell is not None)
        lines.append([*key, *(_cell(cell) for cell in cells), str(n)])
    heads = ["category", "model", "setting", *measures, "items"]
    few = f"“few” marks fewer than {SMALL_N} items or conditions: not ranked."
    return Section(
        title="By category",
        text=few,
        grids=[Grid(heads=heads, rows=lines, names=3, folded=len(lines) > 60)] if lines else [],
    )


def reading(study: Mapping[str, Any]) -> str:
    """Return the study in one paragraph."""
    gains = study["gains"]
    if not gains:
        return "No model was asked both with a context and without."
    sure = [one for one in gains if one["different"]]
    said = [f"Against zero-shot {len(sure)} of {len(gains)} differences are shown."]
    for measure, setting in sorted(
        {(one["measure"], one["setting"]) for one in sure},
        key=lambda pair: (MEASURES.index(pair[0]), order_of(pair[1])),
    ):
        own = [o for o in gains if (o["measure"], o["setting"]) == (measure, setting)]
        more = sum(one["different"] and one["value"] > 0 for one in own)
        less = sum(one["different"] and one["value"] < 0 for one in own)
        said.append(
            f"{setting} raises {measure} of {more} and lowers it of {less} of {len(own)} models."
        )
    if doubtful := sum(one["unread_outweighs"] for one in sure):
        said.append(
            f"{doubtful} of these {len(sure)} differ by less than the shares of their unread replies do: see how they were read (`medassay study "
            "reading`) before saying so."
        )
    return " ".join(said)
