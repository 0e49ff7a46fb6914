"""Health records: likeness and medication beside each other, field by field, thinking or not, and
what could harm.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypedDict

import msgspec

from medassay.core.records.health_record import (
    DRUG_DETAILS,
    FIELDS,
    LENGTH,
    MEDICATION,
    READ,
    SECTIONS,
    SIMILARITY,
)
from medassay.core.records.statistics import OVERALL
from medassay.kinds.kind import AnswerView, DataFile, Presentation
from medassay.kinds.record import columns
from medassay.kinds.record.board import record_view, shows_record
from medassay.kinds.record.files import records_csv
from medassay.kinds.record.parts import parts_of
from medassay.kinds.record.row import RecordRow
from medassay.kinds.record.summary import ThinkingDifference
from medassay.report.board import Board, ShownAnswer, ShownCell
from medassay.report.judge_graph import drawings
from medassay.report.pages.figures import figure_pages, shown_figure
from medassay.report.pages.html import Page, render
from medassay.report.plot.figure import Figure
from medassay.report.plot.forest import NamedDifference, forest
from medassay.report.plot.matrix import GridCell, score_grid
from medassay.report.texts import ENGLISH, Texts

SAID = {
    SIMILARITY: "JSON similarity",
    MEDICATION: "drugs in the right list",
    READ: "replies with JSON",
    LENGTH: "length, characters",
    "precision": "precision of leaves",
    "f1": "F1 of leaves",
    "lost_leaves": "leaves lost",
    "invented_leaves": "leaves invented",
    "dose": "doses that agree",
    "unit": "units that agree",
    "route": "routes that agree",
    "schedule": "schedules that agree",
    "going_on": "stopped drugs and doses that go on",
}
_SHOWN = 40  # rows of a figure
_LISTED = 2000  # rows of a table
_FEWEST = 10  # entries with a detail; below them one error is within chance


def pages(board: Board) -> Iterator[Page]:
    """Yield the page of every mode."""
    if "records" not in board.statistics.document:
        return
    graphs = {graph.name: graph.roots for graph in board.manifest.graphs}
    thinking = board.statistics.part("records", RecordsSummary).thinking
    gained = [SIMILARITY, MEDICATION, *(f"graph {name}" for name in graphs)]
    for mode in board.modes:
        rows = board.statistics.rows_as(RecordRow, OVERALL, mode)
        slug = board.slug(mode, "mode")
        pairs = [_page_order(pair) for pair in thinking.get(mode, [])]
        gains = [(pair.model, pair.differences) for pair in pairs]
        figures = {
            "fields": fields_figure(rows),
            "thinking": thinking_figure(gains, gained, board.texts),
        }
        placed = {}
        for name, figure in figures.items():
            if figure is not None:
                yield from figure_pages(figure, f"record-{name}-{slug}", board.texts)
                placed[name] = shown_figure(figure, f"record-{name}-{slug}", board.texts)
        yield render(
            "record/page.html",
            board,
            "record/" if mode == board.modes[0] else f"record/track/{slug}/",
            mode=mode,
            rows=rows,
            pairs=pairs,
            numbers=SAID,
            parts={
                "sections": {name: name.replace("_", " ") for name in SECTIONS},
                "fields": {name: field_name(name) for name in FIELDS},
            },
            graphs=graphs,
            drawings=drawings(board.manifest.graphs),
            figures=placed,
            stopped=list(_stopped(board, mode)),
            details=DRUG_DETAILS,
            small=_too_small(rows, board.texts),
        )


def _too_small(rows: Sequence[RecordRow], texts: Texts) -> str:
    """Return what of drugs a bank has too little of to show an error, with the number there is; ""
    where there is nothing.
    """
    counted = [row.record.drugs.counted for row in rows if row.record.drugs]
    if not counted:
        return ""
    sizes = {name: max(n.compared(name) for n in counted) for name in DRUG_DETAILS}
    sizes |= {
        "stopped drug": max(n.stopped for n in counted),
        "changed dose": max(n.changed for n in counted),
    }
    few = [f"{texts.said(name)} ({n})" for name, n in sizes.items() if n < _FEWEST]
    if not few:
        return ""
    return texts.said(f"Too few in these reports to show an error: {texts.listed(few)}.")


def fields_figure(rows: Sequence[RecordRow]) -> Figure | None:
    """Return the likeness of each field of the record by row, at most forty rows, in the order of
    the ranking.
    """
    cells = [
        GridCell(row=row.name, column=field_name(field), value=estimate.value)
        for row in rows[:_SHOWN]
        for field in FIELDS
        if (estimate := row.record.fields.get(field))
    ]
    return score_grid(cells, unit="JSON similarity") if cells else None


def field_name(field: str) -> str:
    """Return a field in words.

    Examples
    --------
    >>> field_name("relevant_metrics.value"), field_name("follow_up")
    ('relevant metrics: value', 'follow up')
    """
    return field.replace(".", ": ").replace("_", " ")


def thinking_figure(
    pairs: Sequence[tuple[str, Mapping[str, ThinkingDifference]]],
    names: Sequence[str],
    texts: Texts = ENGLISH,
) -> Figure | None:
    """Return what thinking first adds to the numbers named, model by model, at most forty rows;
    None where there are no pairs.

    Parameters
    ----------
    pairs : model, and its differences by number
    texts : the language in which the numbers are named
    """
    shares = [
        NamedDifference(
            name=f"{model}: {texts.said(SAID.get(name, name))}",
            diff=difference.difference,
            lo=difference.lo,
            hi=difference.hi,
            different=difference.different,
        )
        for model, differences in pairs
        for name in names
        if (difference := differences.get(name)) is not None
    ]
    return forest(shares[:_SHOWN], unit="points of 100", factor=100.0) if shares else None


class ThinkingGain(msgspec.Struct, frozen=True, kw_only=True):
    """What thinking first adds to each number of one model."""

    model: str
    thinking: str
    direct: str
    differences: dict[str, ThinkingDifference]


class RecordsSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a run tells of health records besides its rows, by mode."""

    thinking: dict[str, list[ThinkingGain]]


def _page_order(pair: ThinkingGain) -> ThinkingGain:
    """Return a pair with its numbers in the order of the page: the whole, the sections, the
    graphs.
    """
    first = [*SAID, *SECTIONS, *(f"field {name}" for name in FIELDS)]
    place = {name: at for at, name in enumerate(first)}
    differences = sorted(
        pair.differences.items(),
        key=lambda named_difference: place.get(named_difference[0], len(first)),
    )
    return msgspec.structs.replace(pair, differences=dict(differences))


class ListedAsCurrent(TypedDict):
    """A drug that was stopped in a report and is listed as current, with the way to the answer."""

    key: ShownCell
    answer: ShownAnswer
    drug: str
    link: str


def _stopped(board: Board, mode: str) -> Iterator[ListedAsCurrent]:
    """Yield every drug that was stopped in a report and is listed as current, with the way to the
    answer.
    """
    n_stopped = 0
    for key, answers in board.answers():
        if key.mode != mode:
            continue
        for answer in answers:
            parts = parts_of(answer.parts)
            if parts is None or not parts.going_on:
                continue
            views = (part.view for part in answer.parts_shown())
            for drug in (drug for view in views for drug in view.get("going_on", ())):
                n_stopped += 1
                if n_stopped <= _LISTED:
                    where = board.cell_link(key)
                    yield {"key": key, "answer": answer, "drug": drug, "link": where}


PRESENTATION = Presentation(
    title="Health records",
    folder="record",
    row_type=RecordRow,
    pages=pages,
    tables=columns.tables,
    files={"records.csv": DataFile(about="every estimate on health records", text=records_csv)},
    views=(AnswerView(template="record/answer.html", shows=shows_record, view=record_view),),
)
