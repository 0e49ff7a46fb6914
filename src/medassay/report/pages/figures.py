"""Figures on pages: files for light and dark, and what the template needs to show them."""

from collections.abc import Iterator
from typing import Any

from medassay.report.pages.html import Page
from medassay.report.plot.figure import Figure, drawable


def figure_pages(figure: Figure, name: str) -> Iterator[Page]:
    """Yield both files of a figure.

    None where figures cannot be drawn, and the page then says so.
    """
    if drawable():
        yield f"figure/{name}.svg", figure.svg()
        yield f"figure/{name}-dark.svg", figure.svg(dark=True)


def figure_context(figure: Figure, name: str) -> dict[str, Any]:
    """Return what a template shows of a figure."""
    return {"figure": figure, "file": name if drawable() else None}
