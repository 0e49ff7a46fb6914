"""The data behind the board, and how to check it."""

from collections.abc import Iterator

from medassay.report import citation
from medassay.report.board import Board
from medassay.report.pages.html import Page, render

FILES = {
    "leaderboard.csv": "every ranking as a table",
    "times.csv": "mean seconds of generation, tokens and cost, with the machine",
    "trend.json": "scores over the publications of the site",
    "pairs.csv": "every pair of ranked rows: difference, interval, tests",
    "MANIFEST.sha256": "SHA-256 of every file of this publication",
    "run/trials.jsonl": "every answer",
    "run/scores.jsonl": "every score with its reason and scorer",
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
    more = {**board.kind_files}
    if board.reruns:
        more["reruns.json"] = "what earlier audits found of publications of these banks"
    if board.changes is not None:
        more["changes.json"] = "what changed since the publication before"
    if board.identity is not None:
        more |= {"board.json": "what the publisher says of the board", **citation.FILES}
    cite = citation.citation_text(board)
    yield render("data.html", board, "data/", files={**FILES, **more}, cite=cite)
