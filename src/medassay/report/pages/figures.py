"""Figures on pages: files for light and dark, in the language of the board, and what the template
needs to show them.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from medassay.report.pages.html import Page
from medassay.report.plot.figure import Figure, drawable
from medassay.report.texts import ENGLISH, Texts

_NUMBER = re.compile(r"-?\d+\.\d+")


def figure_pages(figure: Figure, name: str, texts: Texts) -> Iterator[Page]:
    """Yield both files of a figure.

    None where figures cannot be drawn, and the page then says so.
    """
    if drawable():
        drawing = figure_in(texts, figure)
        yield f"figure/{name}.svg", drawing.svg()
        yield f"figure/{name}-dark.svg", drawing.svg(dark=True)


class ShownFigure(msgspec.Struct, frozen=True, kw_only=True):
    """What a template shows of a figure; `file` is the name of its drawings, None without any."""

    figure: Figure
    file: str | None


def shown_figure(figure: Figure, name: str, texts: Texts) -> ShownFigure:
    """Return what a template shows of a figure."""
    return ShownFigure(figure=figure_in(texts, figure), file=name if drawable() else None)


def figure_in(texts: Texts, figure: Figure) -> Figure:
    """Return a figure with its words and numbers in another language.

    Titles of axes and legends are words, and of the data what the figure says are; every other
    value is a name and stays.
    """
    if texts is ENGLISH:
        return figure
    return replace(
        figure,
        title=texts.said(figure.title),
        description=texts.said(figure.description),
        caption=texts.said(figure.caption),
        words=[texts.said(word) for word in figure.words],
        rows=[_translated(row, figure.words, texts) for row in figure.rows],
        spec=_translated(figure.spec, figure.words, texts),
        locale={
            "decimal": texts.catalogue.decimal,
            "thousands": texts.catalogue.thousands,
            "grouping": [3],
            "currency": ["", ""],
        },
    )


def _translated(value: Any, words: Any, texts: Texts, key: str = "") -> Any:
    """Return a part of a figure in another language; `key` is where it stands."""
    if isinstance(value, dict):
        return {name: _translated(inner, words, texts, name) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_translated(inner, words, texts, key) for inner in value]
    if not isinstance(value, str) or key == "field":
        return value
    if key == "title" or value in words:
        return texts.said(value)
    # Numbers that a cell shows as they stand; of a name as "3.5" the point stays.
    return texts.number(value) if key == "shown" and _NUMBER.fullmatch(value) else value
