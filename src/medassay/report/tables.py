"""Rankings and pairs of a board as tables for spreadsheets."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from medassay.core.ranks import SIMULTANEOUS
from medassay.report.board import Board

_TIMES = [
    *("role", "model", "setting", "mode", "kind", "items", "replies", "mean_seconds"),
    *("seconds_lo", "seconds_hi"),
    *("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"),
    "without_tokens",
    *("cost", "currency", "price_known"),
    *("location", "engine", "quantisation", "gpu", "cpu", "memory_gib"),
]
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_COLUMNS = [
    "domain",
    "mode",
    "model",
    "setting",
    "metric",
    "score",
    "lo",
    "hi",
    "interval",
    "second_method",
    "second_lo",
    "second_hi",
    "n",
    "n_common",
    "coverage",
    "rank",
    "rank_lo",
    "rank_hi",
    "group",
    "unparsed_rate",
    "ambiguous_rate",
    "unread_rate",
    "cut_off",
    "agreement",
    "unanimous",
    "hallucination_rate",
    "hallucination_lo",
    "hallucination_hi",
    "contradict_rate",
    "judge_failures",
    "flags",
]


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a table with a heading; keys of rows that are no column are left out."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: harmless(value) for name, value in row.items()})
    return text.getvalue()


def harmless(value: Any) -> Any:
    """Return a cell that no spreadsheet runs as a formula: what models write comes from outside.

    Examples
    --------
    >>> harmless("=1+1"), harmless("-0.5"), harmless(-0.5)
    ("'=1+1", "'-0.5", -0.5)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def leaderboard_csv(board: Board) -> str:
    """Return every ranking as one table."""

    def rows() -> Iterator[dict[str, Any]]:
        for domain, rows_of_domain in board.statistics["domains"].items():
            for row in rows_of_domain:
                second = row["second"] or {}
                ends = {f"second_{key}": second.get(key) for key in ("method", "lo", "hi")}
                rate = row.get("hallucination_rate") or {}
                ends |= {f"hallucination_{key}": rate.get(key) for key in ("lo", "hi")}
                ends["hallucination_rate"] = rate.get("score")
                yield {**row, **ends, "domain": domain, "flags": " ".join(row["flags"])}

    return csv_text(_COLUMNS, rows())


def pairs_csv(board: Board) -> str:
    """Return every pair of ranked rows as one table."""
    columns = [
        "domain",
        "mode",
        "first",
        "first_setting",
        "second",
        "second_setting",
        "difference",
        "lo",
        "hi",
        "test",
        "p",
        "p_holm",
        *(
            ("se", "better")
            if board.statistics["rank_rule"] == SIMULTANEOUS
            else ("p_max_t", "different", "separated", "ordered", "note")
        ),
        "unread_first",
        "unread_second",
        "unread_outweighs",
    ]

    def rows() -> Iterator[dict[str, Any]]:
        for mode, fields in board.statistics["fields"].items():
            for domain, field in fields.items():
                for pair in field["pairs"]:
                    names = {
                        "first": pair["first"][0],
                        "first_setting": pair["first"][1],
                        "second": pair["second"][0],
                        "second_setting": pair["second"][1],
                    }
                    if "unread" in pair:
                        names["unread_first"], names["unread_second"] = pair["unread"]
                    yield {**pair, **names, "domain": domain, "mode": mode}

    return csv_text(columns, rows())


def times_csv(board: Board) -> str:
    """Return mean seconds, tokens and cost as one table."""
    return csv_text(_TIMES, (dict(row) for row in board.times))
