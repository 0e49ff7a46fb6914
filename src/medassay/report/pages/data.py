"""The data behind the board, what its columns hold, and how to cite and to check it."""

from collections.abc import Iterator, Mapping

from medassay.report import citation
from medassay.report.board import Board
from medassay.report.dictionary import COLUMNS
from medassay.report.pages.html import Page, render

FILES = {
    "leaderboard.csv": "every ranking as a table",
    "pairs.csv": "every pair of ranked rows: difference, interval, tests",
    "categories.csv": "the score of every row by category of the items",
    "times.csv": "mean seconds of generation, tokens and cost, with the machine",
    "answers.parquet": "every answer with its score, one row each",
    "dictionary.csv": "what every column of these tables holds",
    "trend.json": "scores over the publications of the site",
    "changes.json": "what changed since the publication before",
    "reruns.json": "what earlier audits found of publications of these banks",
    "board.json": "what the publisher says of the board",
    **citation.FILES,
    "run/trials.jsonl": "every answer",
    "run/scores.jsonl": "every score with its reason and scorer",
    "run/verdicts.jsonl": "every verdict of a judge, with its reply",
    "run/items.jsonl": "the items with their targets",
    "run/statistics.json": "estimates, ranks, pairs",
    "run/manifest.json": "what the run was made with",
    "run/findings.jsonl": "audit findings",
    "run/timings.jsonl": "seconds of generation",
    "run/MANIFEST.sha256": "SHA-256 of every file of the sealed run",
    "run/seal.json": "the seal",
}


def pages(board: Board) -> Iterator[Page]:
    """Yield the page."""
    yield render(
        "data.html",
        board,
        "data/",
        files=_files(board),
        columns=COLUMNS,
        cite=citation.citation_text(board),
    )


def _files(board: Board) -> Mapping[str, tuple[str, list[str]]]:
    """Return file → what it holds, and the names of the same table in other forms."""
    abouts = {**FILES, **board.kind_files}
    present = set(board.data_files)
    files = {}
    for name, about in abouts.items():
        if name in present:
            other = name.replace(".csv", ".parquet")
            files[name] = about, [other] if other != name and other in present else []
    return files
