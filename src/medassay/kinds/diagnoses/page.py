"""Ranked diagnoses: all model-prompts in one plane, each with its cases by quadrant, each case with
its sums.
"""

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypedDict

from markupsafe import Markup, escape

from medassay.core.records.estimate import RowEstimate
from medassay.core.records.statistics import OVERALL, Statistics
from medassay.kinds.diagnoses import columns
from medassay.kinds.diagnoses.board import case_views
from medassay.kinds.diagnoses.files import diagnoses_csv
from medassay.kinds.diagnoses.row import DiagnosesRow, DiagnosesSummary, ErrorGroup
from medassay.kinds.diagnoses.tasks import case_scores
from medassay.kinds.kind import DataFile, Presentation
from medassay.report.board import Board, ShownCase
from medassay.report.pages.figures import figure_in, figure_pages, shown_figure
from medassay.report.pages.html import Page, neutral, render
from medassay.report.plot.bars import Bar, bars
from medassay.report.plot.figure import Figure, drawable
from medassay.report.plot.points import (
    CasePoint,
    PlanePoint,
    SwarmPoint,
    case_density,
    case_quadrant,
    quadrant,
    violin_swarm,
)
from medassay.storage.run import Run

NAMES = {
    "top_right": "good severity, good semantics",
    "top_left": "bad severity, good semantics",
    "bottom_left": "bad severity, bad semantics",
    "bottom_right": "good severity, bad semantics",
    "axis": "on an axis",
    None: "not placed: a score is unknown",
}
_CORNERS = [name for name in NAMES if name not in ("axis", None)]
_SHOWN = 40  # model-prompts in a figure of all
_SWARM = 1500  # points drawn over one violin
_CROSSES = 5000
_LISTED = 2000  # rows of a table
_ROLES = re.compile(
    r' (?:role|aria-roledescription|aria-label)="[^"]*"'
)  # of a picture, without links
_LINK = '<a xlink:href="'


def pages(board: Board) -> Iterator[Page]:
    """Yield the overview of every mode, a page for each model-prompt and one for each case."""
    if "ddx" not in board.statistics.document:
        return
    for mode in board.modes:
        yield from _overview(board, mode)
        for row in _rows_of(board.statistics, mode):
            yield from _prompt(board, row)
    yield from _cases(board)


def _overview(board: Board, mode: str) -> Iterator[Page]:
    first = mode == board.modes[0]
    rows, slug = _rows_of(board.statistics, mode), board.slug(mode, "mode")
    figures = {"quadrant": plane_figure(board.statistics, mode)}
    for score in ("semantic", "severity"):
        scores: dict[tuple[str, str], list[float]] = {}
        for case in board.cases:
            value = getattr(case, score)
            if case.key.mode == mode and value is not None:
                scores.setdefault((case.key.model, case.key.setting), []).append(value)
        figures[score] = violin_figure(scores, rows, score)
    figures["top"] = top_figure(rows)
    placed = {}
    for name, figure in figures.items():
        if figure is not None:
            yield from figure_pages(figure, f"ddx-{name}-{slug}", board.texts)
            placed[name] = shown_figure(figure, f"ddx-{name}-{slug}", board.texts)
    yield render(
        "diagnoses/page.html",
        board,
        "ddx/" if first else f"ddx/track/{slug}/",
        mode=mode,
        rows=rows,
        figures=placed,
        document=_summary(board.statistics),
        against=(board.manifest.source or {}).get("names_against_labels"),
        names=NAMES,
    )


def plane_figure(statistics: Statistics, mode: str) -> Figure | None:
    """Return every model-prompt by its leading aggregates; None where no severity was judged."""
    summary = _summary(statistics)
    points = []
    rows = _rows_of(statistics, mode)
    named = _names(rows)
    for row in rows:
        severity, semantic = row.severity[summary.leading], row.semantic[summary.leading]
        if not severity or not semantic or severity.value is None or semantic.value is None:
            continue
        points.append(
            PlanePoint(
                label=named[row.key],
                x=severity.value,
                y=semantic.value,
                x_ends=_interval(severity),
                y_ends=_interval(semantic),
            )
        )
    if not points:
        return None
    limit = _limit(n for p in points for n in (p.x, p.y, *(p.x_ends or ()), *(p.y_ends or ())))
    return quadrant(
        points,
        x="severity",
        y="semantics",
        names=[NAMES[name] for name in _CORNERS],
        title=f"Weighted aggregates ({summary.leading_text})",
        limit=limit,
    )


def _interval(aggregate: RowEstimate) -> tuple[float, float] | None:
    return None if aggregate.lo is None or aggregate.hi is None else (aggregate.lo, aggregate.hi)


def top_figure(rows: Sequence[DiagnosesRow]) -> Figure | None:
    """Return the share of cases with the golden diagnosis among the first 1, 3 and 5, at most forty
    rows.
    """
    named = _names(rows)
    points = [
        Bar(
            place=named[row.key],
            group=f"top {k}",
            score=share.value,
            lo=share.ends[0],
            hi=share.ends[1],
            n=share.n,
        )
        for row in rows[:_SHOWN]
        for k, share in row.tops.items()
        if share and share.value is not None
    ]
    if not points:
        return None
    return bars(points, by="model", group="k", unit="cases, %", factor=100)


def _limit(values: Iterator[float]) -> float:
    return max(1.05, 1.05 * max((abs(value) for value in values), default=1.0))


def _names(rows: Sequence[DiagnosesRow]) -> dict[tuple[str, str], str]:
    """Return (model, setting) → the model, with its prompt where there are several.

    A setting that all share is left out: of `zero_shot:ddx_steps` the template tells the prompts
    apart.
    """
    settings = {row.setting for row in rows}
    common = len({setting.partition(":")[0] for setting in settings}) == 1
    names = {}
    for row in rows:
        prompt = row.setting.partition(":")[2] if common else row.setting
        name = f"{row.model} · {prompt or row.setting}"
        names[row.key] = name if len(settings) > 1 else row.model
    return names


def violin_figure(
    scores: Mapping[tuple[str, str], Sequence[float]],
    rows: Sequence[DiagnosesRow],
    score: str,
) -> Figure | None:
    """Return the raw scores of every model-prompt, at most forty, in the order of the ranking.

    Parameters
    ----------
    scores : (model, setting) → scores of its cases, in the order of the run's records
    score : semantic or severity
    """
    named = _names(rows)
    keys = [row.key for row in rows[:_SHOWN]]
    jitter = random.Random(score)
    groups = {key: jitter.sample(scores[key], len(scores[key])) for key in keys if key in scores}
    points = [
        SwarmPoint(
            group=named[key],
            value=value,
            jitter=round(jitter.uniform(-1, 1), 3) if number < _SWARM else None,
        )
        for key, values in groups.items()
        for number, value in enumerate(values)
    ]
    if not points:
        return None
    return violin_swarm(points, value=f"{score} score", bandwidth=1.0, extent=(-0.5, 16.5))


def _prompt(board: Board, row: DiagnosesRow) -> Iterator[Page]:
    """Yield the page of one model-prompt: best, median and worst case, all cases by quadrant, its
    errors.
    """
    key = (*row.key, row.mode)
    cases = [c for c in board.cases if (c.key.model, c.key.setting, c.key.mode) == key]
    path = board.prompt_path(*key)
    up = "../" * path.count("/")
    places: dict[str | None, list[ShownCase]] = {name: [] for name in NAMES}
    for case in cases:
        places[case.quadrant].append(case)
    many = _density(cases)
    density = None
    if many is not None:
        name = f"ddx-cases-{anchor_of(board, cases[0])}"
        yield from figure_pages(many, name, board.texts)
        density = shown_figure(many, name, board.texts)
    yield render(
        "diagnoses/prompt.html",
        board,
        path,
        row=row,
        document=_summary(board.statistics),
        errors=_errors(board, key),
        picked=_example_cases(cases),
        places={
            NAMES[name]: (len(coordinates), sorted(coordinates, key=_by_score)[:_LISTED])
            for name, coordinates in places.items()
            if coordinates
        },
        drawings=_linked(board, cases, up) if drawable() and density is None else None,
        density=density,
        n_cases=len(cases),
        anchor=lambda case: anchor_of(board, case),
    )


def anchor_of(board: Board, case: ShownCase) -> str:
    """Return the id, on the page of a case, of one list."""
    path = board.prompt_path(case.key.model, case.key.setting, case.key.mode)
    repeat = case.answer.line.repeat
    place = path.removeprefix("ddx/").strip("/").replace("/", "--")
    return place + (f"-r{repeat}" if repeat else "")


def _by_score(case: ShownCase) -> tuple[float, float, str]:
    return (case.y or 0.0, case.x or 0.0, case.name)


def _example_cases(cases: Sequence[ShownCase]) -> dict[str, ShownCase]:
    """Return the best, the median and the worst case by the semantic score, then by severity."""
    scored_cases = sorted((c for c in cases if c.semantic is not None), key=_by_score)
    if not scored_cases:
        return {}
    return {
        "Best": scored_cases[-1],
        "Median": scored_cases[(len(scored_cases) - 1) // 2],
        "Worst": scored_cases[0],
    }


def _errors(board: Board, key: tuple[str, str, str]) -> dict[str, list[ErrorGroup]]:
    """Return grouping → its groups with their scores, lowest semantic score first."""
    errors: dict[str, list[ErrorGroup]] = {}
    for error in _summary(board.statistics).errors:
        if (error.model, error.prompt, error.mode) == key:
            errors.setdefault(error.by, []).append(error)
    for groups in errors.values():
        groups.sort(key=_semantic_place)
    return errors


def _semantic_place(group: ErrorGroup) -> float:
    """Return the mean semantic score of a group; one without a score stands last."""
    mean = group.semantic_mean
    return math.inf if mean is None or mean.value is None else mean.value


class LinkedPlane(TypedDict):
    """The plane of all cases, as a figure and as mark-up for light and dark pages."""

    figure: Figure
    light: Markup
    dark: Markup


def _linked(board: Board, cases: Sequence[ShownCase], up: str) -> LinkedPlane | None:
    """Return the plane of all cases, light and dark, as mark-up whose crosses lead to their
    cases.
    """
    placed = [(case, case.x, case.y) for case in cases if case.x is not None and case.y is not None]
    if not placed:
        return None
    heads = {case.name.rpartition("-")[0] for case, _, _ in placed}
    start = len(heads.pop()) + 1 if len(heads) == 1 and "" not in heads else 0
    points = []
    for case, x, y in placed:
        listed = "; ".join(f"{row['rank']}. {row['name']}" for row in case.rows[:5])
        repeat = case.answer.line.repeat
        page = f"{up}{board.case_path(case.key.domain, case.name)}index.html"
        points.append(
            CasePoint(
                x=x,
                y=y,
                label=case.name[start:] + (f" r{repeat}" if repeat else ""),
                says=board.texts.said(f"{case.name}: {case.golden}. Listed: {listed or 'nothing'}"),
                case=case.name,
                href=f"{page}#{anchor_of(board, case)}",
            )
        )
    limit = _limit(n for _, x, y in placed for n in (x, y))
    names = [NAMES[name] for name in _CORNERS]
    plane = case_quadrant(points, x="severity", y="semantics", names=names, limit=limit)
    figure = figure_in(board.texts, plane)
    return {
        "figure": figure,
        "light": _figure_markup(figure, dark=False),
        "dark": _figure_markup(figure, dark=True),
    }


def _figure_markup(figure: Figure, *, dark: bool) -> Markup:
    """Return a figure as mark-up for a page: its links are named after their cases.

    The converter has escaped every text of its own.
    """
    svg = _ROLES.sub("", figure.svg(dark=dark))
    first, *others = svg.replace("<svg ", '<svg role="group" ', 1).split(_LINK)
    linked = [
        f'<a data-case="{escape(row["case"])}" aria-label="{escape(neutral(row["says"]))}"'
        f' href="{rest}'
        for row, rest in zip(figure.rows, others, strict=True)
    ]
    return Markup("".join([first, *linked]))


def _density(cases: Sequence[ShownCase]) -> Figure | None:
    """Return how many cases lie where, of more than can be told apart one by one; None of fewer."""
    points = [(c.x, c.y) for c in cases if c.x is not None and c.y is not None]
    if len(points) <= _CROSSES:
        return None
    limit = _limit(n for point in points for n in point)
    names = [NAMES[name] for name in _CORNERS]
    return case_density(points, x="severity", y="semantics", names=names, limit=limit)


def _cases(board: Board) -> Iterator[Page]:
    """Yield the page of each case: what every model-prompt listed, and how its scores come
    about.
    """
    by_item: dict[tuple[str, str], list[ShownCase]] = {}
    for case in board.cases:
        by_item.setdefault((case.key.domain, case.name), []).append(case)
    for (domain, item), cases in sorted(by_item.items()):
        yield render(
            "diagnoses/case.html",
            board,
            board.case_path(domain, item),
            domain=domain,
            item=cases[0].item,
            name=item,
            cases=[(anchor_of(board, c), c) for c in cases],
            golden=cases[0],
            names=NAMES,
        )


def _violin(run: Run, statistics: Statistics, mode: str, *, score: str) -> Figure | None:
    return violin_figure(case_scores(run, score, mode), _rows_of(statistics, mode), score)


def _rows_of(statistics: Statistics, mode: str) -> list[DiagnosesRow]:
    return statistics.rows_as(DiagnosesRow, OVERALL, mode)


def _summary(statistics: Statistics) -> DiagnosesSummary:
    return statistics.part("ddx", DiagnosesSummary)


PRESENTATION = Presentation(
    title="Diagnoses",
    folder="ddx",
    row_type=DiagnosesRow,
    pages=pages,
    tables=columns.tables,
    files={
        "diagnoses.csv": DataFile(about="every estimate on ranked diagnoses", text=diagnoses_csv)
    },
    figures={
        "quadrant": lambda run, statistics, mode: plane_figure(statistics, mode),
        "semantic": partial(_violin, score="semantic"),
        "severity": partial(_violin, score="severity"),
        "top": lambda run, statistics, mode: top_figure(_rows_of(statistics, mode)),
    },
    cases=case_views,
)
