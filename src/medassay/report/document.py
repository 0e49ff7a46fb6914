"""A sheet: one finding with its figures and tables, as a page, Markdown, LaTeX, CSV and JSON.

Reports of suites and studies are sheets.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from medassay.report.pages.html import asset, environment, neutral
from medassay.report.plot.figure import Figure, drawable
from medassay.report.tables import csv_text

_MARKDOWN = str.maketrans({c: f"\\{c}" for c in "\\|*_`<>[]"} | {"\n": " ", "\r": " "})
_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"±": r"$\pm$", "−": "$-$", "–": "--", "≤": r"$\leq$", "≥": r"$\geq$", "×": r"$\times$"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "\n": " "}
)


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """A table of texts; the first `names` columns name the row."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    names: int = 1  # columns that name a row
    folded: bool = False  # on the page behind a click


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a sheet: a heading, a paragraph, at most one figure, any number of tables."""

    title: str
    text: str = ""
    figure: tuple[str, Figure] | None = None  # name of its file, and what is drawn
    grids: Sequence[Grid] = ()


class ReportDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A sheet.

    `name` is that of its files, `reading` the finding in one paragraph, `notes` what a reader must
    know, `columns` and `lines` the numbers behind it, for spreadsheets, `data` everything, for
    programs.
    """

    name: str
    title: str
    reading: str
    sections: Sequence[Section]
    columns: Sequence[str]
    lines: Sequence[Mapping[str, Any]]
    data: Mapping[str, Any]
    notes: Sequence[str] = ()
    facts: Mapping[str, str] = msgspec.field(default_factory=dict)

    def files(self) -> dict[str, bytes]:
        """Return the files by name; figures are left out where they cannot be drawn."""
        page = environment().get_template("sheet.html")
        figures = dict(s.figure for s in self.sections if s.figure is not None)
        files_made = {
            "index.html": page.render(sheet=self, drawn=drawable()).encode(),
            f"{self.name}.md": self.markdown().encode(),
            f"{self.name}.tex": self.latex().encode(),
            f"{self.name}.csv": csv_text(self.columns, self.lines).encode(),
            f"{self.name}.json": (
                json.dumps(
                    {"schema_version": 1, **self.data}, indent=1, ensure_ascii=False
                ).encode()
                + b"\n"
            ),
            "style.css": asset("style.css"),
        }
        for name, figure in figures.items() if drawable() else ():
            files_made[f"{name}.svg"] = figure.svg().encode()
            files_made[f"{name}-dark.svg"] = figure.svg(dark=True).encode()
        return files_made

    def markdown(self) -> str:
        """Return the sheet as Markdown."""
        parts = [f"# {markdown_text(self.title)}", "", markdown_text(self.reading), ""]
        for name, value in self.facts.items():
            parts.append(f"- {markdown_text(name)}: {markdown_text(value)}")
        parts += [f"- {markdown_text(note)}" for note in self.notes]
        for section in self.sections:
            parts += ["", f"## {markdown_text(section.title)}"]
            if section.text:
                parts += ["", markdown_text(section.text)]
            if section.figure is not None and drawable():
                name, figure = section.figure
                parts += ["", f"![{markdown_text(figure.caption)}]({name}.svg)"]
            for grid in section.grids:
                caption = [markdown_text(grid.caption), ""] if grid.caption else []
                parts += ["", *caption, *markdown_table(grid.heads, grid.rows)]
        return "\n".join(parts) + "\n"

    def latex(self) -> str:
        """Return the tables as LaTeX; they need the package booktabs."""
        parts = [f"% {latex_text(self.title)}. Needs \\usepackage{{booktabs}}."]
        for section in self.sections:
            for grid in section.grids:
                parts += ["", *_latex_table(grid, grid.caption or section.title)]
        return "\n".join(parts) + "\n"


def markdown_text(text: str) -> str:
    """Return text that is nothing but text in Markdown and in a terminal: no mark, no link, nothing
    that steers.
    """
    return str(neutral(text)).translate(_MARKDOWN).replace("://", ":\\//")


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"| {' | '.join(map(markdown_text, heads))} |"
    yield f"| {' | '.join(['---'] * len(heads))} |"
    for row in rows:
        yield f"| {' | '.join(map(markdown_text, row))} |"


def _latex_table(grid: Grid, caption: str) -> Iterator[str]:
    columns = "l" * grid.names + "r" * (len(grid.heads) - grid.names)
    yield r"\begin{table}"
    yield rf"\caption{{{latex_text(caption)}}}"
    yield rf"\begin{{tabular}}{{{columns}}}"
    yield r"\toprule"
    yield " & ".join(map(latex_text, grid.heads)) + r" \\"
    yield r"\midrule"
    for row in grid.rows:
        yield " & ".join(map(latex_text, row)) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"
    yield r"\end{table}"


def latex_text(text: str) -> str:
    """Return a text as LaTeX shows it, in one line."""
    return " ".join(str(neutral(text)).split()).translate(_LATEX)
