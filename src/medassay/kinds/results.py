"""A sealed run as rankings and as figures: for notebooks, reports and files."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medassay.core.records.leaderboard import Leaderboard
from medassay.core.records.plan import DdxRules
from medassay.errors import IncompleteError, InputError
from medassay.kinds.diagnoses.tasks import aggregated_by, case_scores
from medassay.storage.run import Run, open_run

if TYPE_CHECKING:
    from medassay.report.plot.figure import Figure


def leaderboard(run: Run | str | Path, *, ddx: DdxRules | None = None) -> Leaderboard:
    """Return the rankings of a sealed run.

    `ddx` are other rules for the aggregates of ranked diagnoses (preset, k and x0, semantic_max).
    """
    opened = run if isinstance(run, Run) else open_run(Path(run))
    if not opened.sealed:
        raise IncompleteError(f"run {opened.id}: not finished; run its plan again to resume it")
    statistics: dict[str, Any] = opened.statistics
    if ddx is not None:
        statistics = aggregated_by(opened, ddx)
    return Leaderboard(
        run=opened.id,
        domains=statistics["domains"],
        by_kind=statistics.get("by_kind"),
        ddx=statistics.get("ddx"),
    )


def figure(run: Run | str | Path, name: str = "forest", *, ddx: DdxRules | None = None) -> "Figure":
    """Return a figure of a sealed run, for notebooks and files: the bytes are those of the board.

    Parameters
    ----------
    name : "forest", pairs of models over all domains; "bars", every model in every domain; of
        ranked diagnoses also "quadrant", "semantic" and "severity" (violins), "top"; of Relaxed
        Perplexity "positions"
    ddx : other rules for the aggregates of ranked diagnoses

    Raises
    ------
    InputError
        When there is no such figure, or nothing to draw.
    """
    from medassay.report.pages.compare import pairs_figure
    from medassay.report.plot.bars import bars

    opened = run if isinstance(run, Run) else open_run(Path(run))
    board = leaderboard(opened)
    drawing: Figure | None
    mode = sorted(opened.statistics["fields"], key=lambda mode_: (mode_ != "solo", mode_))[0]
    if name == "forest":
        drawing = pairs_figure(opened.statistics, mode)
    elif name == "bars":
        rows = [
            {**row, "domain": domain, "model": f"{row['model']} · {row['setting']}"}
            for domain, rows_of_domain in board.domains.items()
            for row in rows_of_domain
            if domain != "overall" and row["mode"] == mode and row["score"] is not None
        ]
        hundred = bool(rows) and rows[0]["scale"] == [0, 1]
        unit = f"{rows[0]['metric']}, %" if hundred else "score"
        drawing = bars(rows, by="domain", group="model", unit=unit, factor=100 if hundred else 1)
    elif name in DDX_FIGURES and "ddx" in opened.statistics:
        statistics = aggregated_by(opened, ddx) if ddx else opened.statistics
        drawing = ddx_figure(opened, statistics, name, mode)
    elif name == "positions" and "likelihood" in opened.statistics:
        from medassay.kinds.likelihood.page import positions_figure

        drawing = positions_figure(
            [r for r in board.domains["overall"] if r["mode"] == mode], "must"
        )
    else:
        names = ["forest", "bars", *(DDX_FIGURES if "ddx" in opened.statistics else ())]
        names += ["positions"] if "likelihood" in opened.statistics else []
        raise InputError(f"figure '{name}': expected {', '.join(names)}")
    if drawing is None or not drawing.rows:
        raise InputError(
            f"run {opened.id}: nothing to draw as {name}: too few models, or no such score"
        )
    return drawing


DDX_FIGURES = ("quadrant", "semantic", "severity", "top")


def ddx_figure(run: Run, statistics: Mapping[str, Any], name: str, mode: str) -> "Figure | None":
    """Return a figure of ranked diagnoses, None where there is nothing to draw."""
    from medassay.kinds.diagnoses import page as ddx

    rows = [r for r in statistics["domains"]["overall"] if r["mode"] == mode]
    if name == "quadrant":
        return ddx.plane_figure(statistics, mode)
    if name == "top":
        return ddx.top_figure(rows)
    return ddx.violin_figure(case_scores(run, name, mode), rows, name)
