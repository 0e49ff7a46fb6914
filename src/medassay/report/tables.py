"""Rankings and pairs of a board as tables for spreadsheets."""

import csv
import io
from collections.abc import Iterator
from typing import Any

from medassay.core.ranks import SIMULTANEOUS
from medassay.core.records.health_record import DRUG_DETAILS, GOING_ON, LEAVES, NUMBERS
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


def _table(columns: list[str], rows: Iterator[dict[str, Any]]) -> str:
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

    return _table(_OF_CASES, rows())


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


_OF_RECORDS = [
    *("domain", "mode", "model", "setting", "number", "estimate", "lo", "hi"),
    *("second_method", "second_lo", "second_hi", "n", "gold", "silver", "flags"),
]


def records_csv(board: Board) -> str:
    """Return every estimate on health records as one table: a row for each number, section and
    branch of a graph.
    """

    def rows() -> Iterator[dict[str, Any]]:
        for domain, rows_of_domain in board.statistics["domains"].items():
            for row in rows_of_domain:
                who = {name: row[name] for name in ("mode", "model", "setting")}
                marks = {"flags": " ".join(row["flags"])}
                marks |= {name: row["record"]["references"][name] for name in ("gold", "silver")}
                for number, estimate in _record_estimates(row["record"]):
                    second = {f"second_{k}": v for k, v in (estimate["second"] or {}).items()}
                    cells = {"domain": domain, "number": number, "estimate": estimate["score"]}
                    yield {**who, **estimate, **cells, **second, **marks}

    return _table(_OF_RECORDS, rows())


def _record_estimates(record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (number, estimate) of what is known of a row's records."""
    numbers = {name: record[name] for name in NUMBERS}
    numbers |= {f"similarity of {name}": estimate for name, estimate in record["sections"].items()}
    numbers |= {
        f"similarity of field {name}": estimate for name, estimate in record["fields"].items()
    }
    drugs = record.get("drugs", {})
    numbers |= {name: record.get(name) for name in LEAVES}
    numbers |= {f"{name} of drugs": drugs.get(name) for name in (*DRUG_DETAILS, GOING_ON)}
    for graph, graph_record in record["graphs"].items():
        numbers[graph] = graph_record["score"]
        numbers |= {
            f"{graph}/{root}": estimate for root, estimate in graph_record["branches"].items()
        }
    yield from ((name, estimate) for name, estimate in numbers.items() if estimate is not None)


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

    return _table(_COLUMNS, rows())


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

    return _table(columns, rows())


def times_csv(board: Board) -> str:
    """Return mean seconds, tokens and cost as one table."""
    return _table(_TIMES, (dict(row) for row in board.times))
