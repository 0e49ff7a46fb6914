"""Ranked diagnoses as a file for spreadsheets."""

from collections.abc import Iterator
from typing import Any

from medassay.report.board import Board
from medassay.report.tables import csv_text

_OF_CASES = [
    *(
        "domain",
        "mode",
        "model",
        "prompt",
        "number",
        "weights",
        "k",
        "x0",
        "estimate",
        "lo",
        "hi",
    ),
    *("second_method", "second_lo", "second_hi", "scale_lo", "scale_hi", "n"),
]


def diagnoses_csv(board: Board) -> str:
    """Return every estimate on ranked diagnoses as one table: a row for each number and its
    weights.
    """

    def rows() -> Iterator[dict[str, Any]]:
        for domain, rows_of_domain in board.statistics["domains"].items():
            for row in rows_of_domain:
                who = {name: row[name] for name in ("mode", "model", "prompt")}
                for number, weights, estimate in _estimates(row):
                    yield {
                        **who,
                        **estimate,
                        "domain": domain,
                        "number": number,
                        "weights": weights,
                        "estimate": estimate["score"],
                        "scale_lo": estimate["scale"][0],
                        "scale_hi": estimate["scale"][1],
                        **{f"second_{k}": v for k, v in (estimate["second"] or {}).items()},
                    }

    return csv_text(_OF_CASES, rows())


def _estimates(row: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (number, weights, estimate) of one model-prompt, of what is known."""
    for number in ("semantic", "severity"):
        for weights, estimate in row[number].items():
            if estimate is not None:
                yield f"{number}, rescaled", "none" if weights == "mean" else weights, estimate
    means = ("semantic_mean", "severity_mean", "all_places_mean", "names", "short_lists")
    for number in (*means, "top1", "top3", "top5"):
        if row.get(number) is not None:
            yield number, "none", row[number]
