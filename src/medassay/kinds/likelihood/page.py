"""Likelihoods: choices with lengths allowed for, perplexities, and statements at any point of
completions.
"""

from collections.abc import Iterator, Sequence

from medassay.core.records.statistics import OVERALL, Statistics
from medassay.kinds.kind import AnswerView, Presentation
from medassay.kinds.likelihood import columns
from medassay.kinds.likelihood.board import likelihood_view, shows_likelihood
from medassay.kinds.likelihood.columns import SETTING
from medassay.kinds.likelihood.row import LikelihoodRow
from medassay.report.board import Board
from medassay.report.pages.figures import figure_pages, shown_figure
from medassay.report.pages.html import Page, render
from medassay.report.plot.figure import Figure
from medassay.report.plot.positions import PositionPoint, positions
from medassay.storage.run import Run

SAID = {
    "choices": "Each option was appended to the question; the likeliest counts as the answer.",
    "alone": "Each reference was scored by itself, without its question.",
    "conditional": "Each reference was scored after its question.",
    "relaxed": (
        "Completions were drawn, and every statement was sought at every position of them: how"
        " likely a model is to say it at some point, whatever comes before."
    ),
}
ROLES = {"must": "must have", "nice": "nice to have"}


def pages(board: Board) -> Iterator[Page]:
    """Yield the page of every mode."""
    if "likelihood" not in board.statistics.document:
        return
    document = board.statistics.document["likelihood"]
    for mode in board.modes:
        rows = board.statistics.rows_as(LikelihoodRow, OVERALL, mode)
        slug = board.slug(mode, "mode")
        placed = {}
        for role in ROLES:
            figure = positions_figure(rows, role)
            if figure is not None:
                yield from figure_pages(figure, f"likelihood-{role}-{slug}", board.texts)
                placed[role] = shown_figure(figure, f"likelihood-{role}-{slug}", board.texts)
        names = list(dict.fromkeys(n for row in rows for n in row.likelihood.metrics))
        settings = [SETTING.findall(name) for name in names]
        yield render(
            "likelihood/page.html",
            board,
            "likelihood/" if mode == board.modes[0] else f"likelihood/track/{slug}/",
            mode=mode,
            rows=[row for row in rows if row.likelihood.metrics],
            without=[row for row in rows if not row.likelihood.metrics],
            says=SAID[document["asks"]],
            document=document,
            told=next((setting[0] for setting in settings if setting), ""),
            names={name: SETTING.sub("", name) for name in names},
            figures=placed,
            roles=ROLES,
        )


def positions_figure(rows: Sequence[LikelihoodRow], role: str) -> Figure | None:
    """Return the log-probability along completions of each row, None where nothing was drawn."""
    points = [
        PositionPoint(
            row=row.name, place=point.at, score=point.score, lo=point.lo, hi=point.hi, n=point.n
        )
        for row in rows
        for point in row.likelihood.positions.get(role, ())
    ]
    return positions(points, unit="log-probability, nats") if points else None


def _positions(run: Run, statistics: Statistics, mode: str) -> Figure | None:
    return positions_figure(statistics.rows_as(LikelihoodRow, OVERALL, mode), "must")


PRESENTATION = Presentation(
    title="Likelihoods",
    folder="likelihood",
    row_type=LikelihoodRow,
    pages=pages,
    tables=columns.tables,
    figures={"positions": _positions},
    views=(
        AnswerView(
            template="likelihood/answer.html",
            shows=shows_likelihood,
            view=likelihood_view,
            replaces_reply=True,
        ),
    ),
)
