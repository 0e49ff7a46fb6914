"""Rankings and pairs of a board as tables for spreadsheets."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from medassay.core.ranks import SIMULTANEOUS
from medassay.core.records.estimate import Estimate, RowEstimate
from medassay.core.records.statistics import LeaderboardRow
from medassay.core.table import Cell
from medassay.report.board import Board

_TIMES = [
    *("role", "model", "setting", "mode", "kind", "items", "replies", "mean_seconds"),
    *("seconds_lo", "seconds_hi"),
    *("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens"),
    "without_tokens",
    *("cost", "currency", "price_known"),
    *("location", "engine", "quantisation", "gpu", "cpu", "memory_gib"),
]
_OF_CATEGORIES = [
    *("category", "mode", "model", "setting", "metric", "estimate", "lo", "hi", "interval"),
    *("second_method", "second_lo", "second_hi", "n", "flags"),
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


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> str:
    """Return a table with a heading; keys of rows that are no column are left out."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: harmless(value) for name, value in row.items()})
    return text.getvalue()


def named_row(domain: str, row: LeaderboardRow) -> dict[str, str]:
    """Return the cells that say which row of which ranking a line is about."""
    return {"domain": domain, "mode": row.mode, "model": row.model, "setting": row.setting}


def estimate_cells(estimate: Estimate | RowEstimate) -> dict[str, Cell]:
    """Return an estimate as cells: `estimate`, its interval and second interval, and n."""
    second = {} if estimate.second is None else msgspec.structs.asdict(estimate.second)
    return {
        "estimate": estimate.value,
        "lo": estimate.lo,
        "hi": estimate.hi,
        "n": estimate.n,
        **{f"second_{name}": value for name, value in second.items()},
    }


def harmless(value: Cell) -> Cell:
    """Return a cell that no spreadsheet runs as a formula: what models write comes from outside.

    Whole numbers are written without a point, as in the JSON beside.

    Examples
    --------
    >>> harmless("=1+1"), harmless("-0.5"), harmless(-0.5), harmless(1.0)
    ("'=1+1", "'-0.5", -0.5, 1)
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def plain(cell: str) -> str:
    """Return the text that `harmless` made a cell of.

    Examples
    --------
    >>> plain("'=1+1"), plain("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def categories_csv(board: Board) -> str:
    """Return the scores of every row by category of the items as one table."""
    return csv_text(
        _OF_CATEGORIES,
        (
            {
                **msgspec.structs.asdict(score),
                **msgspec.structs.asdict(score.estimate),
                **estimate_cells(score.estimate),
                "metric": score.metric or board.statistics.metric,
                "interval": score.estimate.interval or "percentile",
                "flags": " ".join(score.estimate.flags),
            }
            for score in board.by_category
        ),
    )


def leaderboard_csv(board: Board) -> str:
    """Return every ranking as one table."""

    def rows() -> Iterator[dict[str, Cell]]:
        for domain, documents in board.statistics.document["domains"].items():
            for document, row in zip(documents, board.statistics.rows(domain), strict=True):
                second, rate = row.second, row.hallucination_rate
                yield {
                    **document,
                    "domain": domain,
                    "flags": " ".join(row.flags),
                    "second_method": None if second is None else second.method,
                    "second_lo": None if second is None else second.lo,
                    "second_hi": None if second is None else second.hi,
                    "hallucination_rate": None if rate is None else rate.value,
                    "hallucination_lo": None if rate is None else rate.lo,
                    "hallucination_hi": None if rate is None else rate.hi,
                }

    return csv_text(_COLUMNS, rows())


_WITHOUT_P = {"test": None, "p": None, "p_holm": None}


def pairs_csv(board: Board) -> str:
    """Return every pair of ranked rows as one table."""
    columns = [
        "domain",
        "mode",
        *(["metric"] if board.metrics else []),
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
            if board.statistics.rank_rule == SIMULTANEOUS
            else ("p_max_t", "different", "separated", "ordered", "note")
        ),
        "unread_first",
        "unread_second",
        "unread_outweighs",
    ]

    def rows() -> Iterator[dict[str, Cell]]:
        for statistics in board.statistics.by_metric:
            for mode, fields in statistics.document["fields"].items():
                for domain in fields:
                    relations = statistics.relations(domain, mode)
                    for pair in relations.pairs:
                        unread = pair.unread or (None, None)
                        yield {
                            **msgspec.structs.asdict(pair),
                            **({} if relations.has_p else _WITHOUT_P),
                            "first": pair.first[0],
                            "first_setting": pair.first[1],
                            "second": pair.second[0],
                            "second_setting": pair.second[1],
                            "domain": domain,
                            "mode": mode,
                            "metric": statistics.metric,
                            "unread_first": unread[0],
                            "unread_second": unread[1],
                        }

    return csv_text(columns, rows())


def times_csv(board: Board) -> str:
    """Return mean seconds, tokens and cost as one table."""
    return csv_text(_TIMES, (msgspec.structs.asdict(row) for row in board.times))
