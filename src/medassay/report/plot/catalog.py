"""Every figure: one line each."""

from collections.abc import Callable

from medassay.report.plot import (
    bars,
    curve,
    forest,
    items,
    matrix,
    panels,
    points,
    positions,
    reviews,
    trend,
)
from medassay.report.plot.figure import Figure

PLOTS: dict[str, Callable[..., Figure]] = {
    "agreement": forest.agreement,
    "bars": bars.bars,
    "before_after": bars.before_after,
    "case_density": points.case_density,
    "case_quadrant": points.case_quadrant,
    "checkpoint_curve": curve.checkpoint_curve,
    "forest": forest.forest,
    "heat_map": matrix.heat_map,
    "item_map": items.item_map,
    "panels": panels.panels,
    "positions": positions.positions,
    "quadrant": points.quadrant,
    "rank_flow": matrix.rank_flow,
    "review_trend": reviews.review_trend,
    "score_grid": matrix.score_grid,
    "stacked": bars.stacked,
    "trend": trend.trend,
    "violin_swarm": points.violin_swarm,
}
