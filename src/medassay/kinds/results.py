"""A sealed run as rankings and as figures: for notebooks, reports and files."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from medassay.core.records.leaderboard import Leaderboard
from medassay.core.records.plan import DdxRules
from medassay.core.records.statistics import OVERALL, Statistics
from medassay.errors import InputError
from medassay.kinds.catalog import presentations_of
from medassay.kinds.diagnoses.tasks import aggregated_by
from medassay.storage.run import Run, open_run

if TYPE_CHECKING:
    from medassay.report.plot.figure import Figure


def leaderboard(run: Run | str | Path, *, ddx: DdxRules | None = None) -> Leaderboard:
    """Return the rankings of a sealed run.

    Parameters
    ----------
    ddx : other rules for the aggregates of ranked diagnoses (preset, k and x0, semantic_max), a
        `medassay.core.records.plan.DdxRules`

    Raises
    ------
    IncompleteError
        When the run is not finished.

    Examples
    --------
    >>> import medassay
    >>> from medassay import leaderboard
    >>> print(leaderboard(medassay.example_run()))
               1  70.8 [47.6, 86.7] n=24        careful · zero_shot
               2  33.3 [16.2, 56.4] n=24        hasty · zero_shot
    """
    opened = run if isinstance(run, Run) else open_run(run)
    if ddx is None:
        return opened.leaderboard
    opened.refuse_unfinished()
    return Leaderboard.of(opened.id, aggregated_by(opened, ddx))


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

    Examples
    --------
    >>> import medassay
    >>> from medassay import figure
    >>> forest = figure(medassay.example_run())
    >>> len(forest.rows), forest.name
    (1, 'forest')
    """
    from medassay.report.pages.compare import pairs_figure
    from medassay.report.plot.bars import Bar, bars

    opened = run if isinstance(run, Run) else open_run(run)
    opened.refuse_unfinished()
    drawing: Figure | None
    statistics = opened.statistics.by_metric[0]  # of several metrics the first
    mode = statistics.modes[0]
    if name == "forest":
        drawing = pairs_figure(statistics, mode)
    elif name == "bars":
        rows = [
            Bar(place=domain, group=row.name, score=row.score, lo=row.lo, hi=row.hi, n=row.n)
            for domain in statistics.domains
            for row in statistics.rows(domain, mode)
            if domain != OVERALL and row.score is not None
        ]
        hundred = bool(rows) and statistics.scale.is_share
        unit = f"{statistics.metric}, %" if hundred else "score"
        drawing = bars(rows, by="domain", group="model", unit=unit, factor=100 if hundred else 1)
    else:
        figures: dict[str, Callable[[Run, Statistics, str], Figure | None]] = {}
        statistics_of: dict[str, Statistics] = {}
        for of_metric in opened.statistics.by_metric:
            for presentation in presentations_of(of_metric.document).values():
                figures.update(presentation.figures)
                statistics_of.update(dict.fromkeys(presentation.figures, of_metric))
        if name not in figures:
            expected = ", ".join(("forest", "bars", *figures))
            raise InputError(f"figure '{name}': expected {expected}")
        statistics = statistics_of[name]
        if ddx:
            statistics = Statistics(aggregated_by(opened, ddx))
        drawing = figures[name](opened, statistics, mode)
    if drawing is None or not drawing.rows:
        raise InputError(
            f"run {opened.id}: nothing to draw as {name}: too few models, or no such score"
        )
    return drawing
