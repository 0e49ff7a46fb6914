"""`Figure`: typed data and a Vega-Lite specification, turned into SVG, PNG or PDF offline.

Needs the extra `[figures]` to be drawn; its data can be read without.
"""

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from medassay.errors import InputError
from medassay.report.plot.vega import Datum, VegaView

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_VERSION = "6.4"


class _Theme(msgspec.Struct, frozen=True, kw_only=True):
    """Colours of text, background, lines of the grid, axes, and of series one after the other."""

    text: str
    back: str
    line: str
    soft: str
    series: tuple[str, ...]

    @property
    def colours(self) -> tuple[str, ...]:
        """Return all colours, in an order that is the same for each theme."""
        return (self.text, self.back, self.line, self.soft, *self.series)


# Text 4.5:1 and marks 3:1 against their background, in both schemes.
_LIGHT = _Theme(
    text="#17202b",
    back="#fcfbf8",
    line="#d8d6cf",
    soft="#545e6b",
    series=(
        "#0a5c66",
        "#c2410c",
        "#6b3fa0",
        "#8a6100",
        "#2563a8",
        "#a02c6b",
        "#2e7d32",
        "#545e6b",
    ),
)
_DARK = _Theme(
    text="#e9ecef",
    back="#10171e",
    line="#33404c",
    soft="#a2adb9",
    series=(
        "#7fd0d8",
        "#ff9a73",
        "#c3a6ff",
        "#e3bd5b",
        "#8ab8f5",
        "#f394c4",
        "#7fd18b",
        "#a2adb9",
    ),
)
# Drawing takes a tenth of a second, so a figure is drawn once, in colours that stand for those of
# either scheme and that no specification names.
_STAND_INS = _Theme(
    text="#0f0e00",
    back="#0f0e01",
    line="#0f0e02",
    soft="#0f0e03",
    series=tuple(f"#0f0e1{n}" for n in range(len(_LIGHT.series))),
)
# In a tag, and not in the text of a label, whose ">" is written "&gt;".
_STAND_IN = re.compile(r'\b(fill|stroke|stop-color)="(#0f0e[01]\d)"(?=[^<>]*>)')
N_COLOURS = len(_LIGHT.series)  # more would repeat
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
FORMS = (".svg", ".png", ".pdf")
_HOME = "https://vega.github.io/vega-datasets/"  # put before links by the converter
_COUNTED = re.compile(r"\b(gradient_|clip)\d+")


class Figure(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One figure.

    `rows` are its data, `columns` their names in the table that stands beside it; `caption` says
    the finding, `description` what can be seen; `spec` is Vega-Lite without data and colours.
    `words` are values of the data that are words of ours, and not names; `locale` is how numbers
    are written, as d3-format knows it, empty for English.
    """

    name: str
    title: str
    description: str
    caption: str
    columns: Mapping[str, str]
    rows: Sequence[Mapping[str, Datum]]
    spec: VegaView
    words: Sequence[str] = ()
    locale: Mapping[str, str | Sequence[str] | Sequence[int]] = msgspec.field(default_factory=dict)

    def specification(self, *, dark: bool = False) -> dict[str, Any]:
        """Return the whole Vega-Lite specification, data and colours among it."""
        return self._specification(_DARK if dark else _LIGHT)

    def _specification(self, theme: _Theme) -> dict[str, Any]:
        axis = {
            "labelColor": theme.text,
            "titleColor": theme.text,
            "gridColor": theme.line,
            "domainColor": theme.soft,
            "tickColor": theme.soft,
            "labelLimit": 320,
        }
        config = {
            "background": theme.back,
            "font": "sans-serif",
            "axis": axis,
            "legend": {
                "labelColor": theme.text,
                "titleColor": theme.text,
                "symbolBaseFillColor": theme.text,
                "symbolBaseStrokeColor": theme.text,
            },
            "header": {"labelColor": theme.text, "titleColor": theme.text},
            "view": {"stroke": theme.line},
            "text": {"color": theme.text},
            "rule": {"color": theme.text},
            "point": {"color": theme.series[0]},
            "line": {"color": theme.series[0]},
            "bar": {"color": theme.series[0]},
            "circle": {"color": theme.series[0]},
            "tick": {"color": theme.text},
            "title": {"color": theme.text, "fontSize": 13},
            "area": {"color": theme.series[0]},
            "range": {"category": list(theme.series)},
            **({"locale": {"number": self.locale}} if self.locale else {}),
        }
        return {
            "$schema": _SCHEMA,
            "description": self.description,
            "data": {"values": [{k: _drawable(v) for k, v in row.items()} for row in self.rows]},
            "config": config,
            **_drawable(dict(self.spec)),
        }

    def svg(self, *, dark: bool = False) -> str:
        """Return the figure as SVG with title and description; equal data give equal bytes."""
        theme = _DARK if dark else _LIGHT
        colours = dict(zip(_STAND_INS.colours, theme.colours, strict=True))
        return _STAND_IN.sub(lambda match: f'{match[1]}="{colours[match[2]]}"', self._drawing)

    @cached_property
    def _drawing(self) -> str:
        """Return the figure in the colours that stand for those of a scheme."""
        specification = self._specification(_STAND_INS)
        svg_text = str(_converter().vegalite_to_svg(specification, vl_version=_VERSION))
        svg_text = svg_text.replace(_HOME, "")  # links are relative to the page
        numbers: dict[str, str] = {}  # its ids count on from drawing to drawing
        svg_text = _COUNTED.sub(
            lambda m: numbers.setdefault(m[0], f"{m[1]}{len(numbers)}"), svg_text
        )
        start = svg_text.index(">") + 1
        title, description = (escape(t, quote=False) for t in (self.title, self.description))
        words = f"<title>{title}</title><desc>{description}</desc>"
        return svg_text[:start].replace("<svg ", '<svg role="img" ', 1) + words + svg_text[start:]

    def save(self, path: str | Path, *, dark: bool = False) -> Path:
        """Write the figure; the ending of the name says the form.

        Raises
        ------
        InputError
            When the ending is none of svg, png, pdf, or the extra is not installed.
        """
        target = Path(path)
        if target.suffix not in FORMS:
            raise InputError(f"{target}: expected a name that ends in {', '.join(FORMS)}")
        if target.suffix == ".svg":
            data = self.svg(dark=dark).encode()
        elif target.suffix == ".png":
            data = _converter().svg_to_png(self.svg(dark=dark), scale=2)
        else:
            data = _converter().svg_to_pdf(self.svg(dark=dark))
        target.write_bytes(data)
        return target

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        """Return both drawings, of which a page shows that of its own scheme."""
        light, dark = (
            f"data:image/svg+xml;base64,{b64encode(self.svg(dark=is_dark).encode()).decode()}"
            for is_dark in (False, True)
        )
        return (
            f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
            f'<img src="{light}" alt="{escape(self.title, quote=True)}"></picture>'
        )

    def __str__(self) -> str:
        lines = [self.title, self.caption]
        for row in self.rows[:20]:
            cells = {label: row.get(key) for key, label in self.columns.items()}
            lines.append(json.dumps(cells, ensure_ascii=False))
        return "\n".join(lines)


def _drawable(value: Any) -> Any:
    """Return text that an SVG may hold: control and other characters without shape are spelled
    out.
    """
    if isinstance(value, dict):
        return {key: _drawable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_drawable(inner) for inner in value]
    if not isinstance(value, str) or value.isprintable():
        return value
    return "".join(c if c.isprintable() else f"U+{ord(c):04X}" for c in value)


def drawable() -> bool:
    """Return whether figures can be drawn here."""
    from importlib.util import find_spec

    return find_spec("vl_convert") is not None


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise InputError("figures need an extra: pip install 'medassay[figures]'") from None
    return vl_convert
