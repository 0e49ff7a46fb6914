"""The three pictures of `docs/why.md`, drawn from simulations with a fixed seed.

    python website/pictures.py

writes `docs/why-*.svg`, each for light and dark pages; a test holds the files to it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from medassay.report.plot.figure import Figure
from medassay.statistic.interval.wilson import wilson_interval

DOCS = Path(__file__).parents[1] / "docs"
_SEED = 20261126


def items_figure() -> Figure:
    """Return intervals of one accuracy at several numbers of items."""
    rows = []
    for n in (20, 50, 200, 1000):
        lo, hi = wilson_interval(round(0.7 * n), n)
        rows.append({"y": f"{n:,} questions", "x": 70, "lo": 100 * lo, "hi": 100 * hi})
    return _intervals(
        "items",
        "One accuracy, four numbers of questions",
        "Accuracy of 70 % with its 95 % interval (Wilson).",
        rows,
    )


def equal_models_figure() -> Figure:
    """Return a board of ten models that are all right with probability 0.7."""
    right = np.random.default_rng(_SEED).binomial(100, 0.7, size=10)
    rows = []
    for place, n_right in enumerate(sorted(map(int, right), reverse=True), 1):
        lo, hi = wilson_interval(n_right, 100)
        rows.append({"y": f"place {place:2}", "x": n_right, "lo": 100 * lo, "hi": 100 * hi})
    return _intervals(
        "equal",
        "Ten equally good models",
        "Each is right with probability 0.7 (the line); 100 questions. The order is chance.",
        rows,
        line=70.0,
    )


def winners(n_boards: int = 2000) -> tuple[float, float]:
    """Return, over boards of ten such models, the mean accuracy of the first and of the last."""
    right = np.random.default_rng(_SEED).binomial(100, 0.7, size=(n_boards, 10))
    return float(right.max(axis=1).mean()), float(right.min(axis=1).mean())


def limits_figure() -> Figure:
    """Return what a token limit makes of a model that is right in eight of ten."""
    rng = np.random.default_rng(_SEED)
    tokens = rng.lognormal(np.log(220), 0.7, size=2000)
    right = rng.random(2000) < 0.8
    rows = []
    for limit in (64, 128, 256, 512, 1024):
        read = tokens <= limit
        shares = {"right": read & right, "wrong": read & ~right, "cut off": ~read}
        for name, mask in shares.items():
            row = {"limit": f"{limit:,}", "share": float(100 * mask.mean()), "reply": name}
            rows.append({**row, "place": list(shares).index(name)})
    return Figure(
        name="limits",
        title="The same model under five token limits",
        description="Stacked bars: share of replies that are right, wrong, or cut off.",
        caption="A model that is right in eight of ten questions, if it may finish.",
        columns={"limit": "max_tokens", "reply": "reply", "share": "%"},
        rows=rows,
        spec={
            "width": 420,
            "height": 190,
            "mark": {"type": "bar"},
            "encoding": {
                "y": {"field": "limit", "sort": None, "title": "max_tokens"},
                "x": {
                    "field": "share",
                    "type": "quantitative",
                    "title": "replies, %",
                    "scale": {"domain": [0, 100]},
                },
                "order": {"field": "place"},
                "color": {
                    "field": "reply",
                    "type": "nominal",
                    "sort": ["right", "wrong", "cut off"],
                    "title": None,
                    "legend": {"orient": "top"},
                },
            },
        },
    )


def _intervals(
    name: str,
    title: str,
    caption: str,
    rows: Sequence[Mapping[str, Any]],
    *,
    line: float | None = None,
) -> Figure:
    y = {"field": "y", "sort": None, "title": None, "axis": {"ticks": False, "domain": False}}
    x = {"type": "quantitative", "title": "right, %", "scale": {"domain": [40, 100]}}
    layers: list[dict[str, Any]] = [
        {
            "mark": {"type": "rule", "size": 2},
            "encoding": {"y": y, "x": {"field": "lo", **x}, "x2": {"field": "hi"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {"y": y, "x": {"field": "x", **x}},
        },
    ]
    if line is not None:
        layers.insert(
            0,
            {
                "mark": {"type": "rule", "strokeDash": [4, 4]},
                "encoding": {"x": {"datum": line, **x}},
            },
        )
    return Figure(
        name=name,
        title=title,
        description=f"{title}: points with intervals on a scale from 40 to 100 percent.",
        caption=caption,
        columns={"y": "", "x": "right, %", "lo": "from", "hi": "to"},
        rows=rows,
        spec={"width": 420, "height": 26 * len(rows), "layer": layers},
    )


FIGURES = (items_figure, equal_models_figure, limits_figure)


def pictures() -> dict[str, str]:
    """Return the files with their content."""
    drawn = {}
    for figure in (make() for make in FIGURES):
        for scheme in ("light", "dark"):
            drawn[f"why-{figure.name}-{scheme}.svg"] = figure.svg(dark=scheme == "dark")
    return drawn


if __name__ == "__main__":
    for name, svg in pictures().items():
        (DOCS / name).write_text(svg, encoding="utf-8")
    print("mean accuracy of the first and the last of ten equal models:", winners())
