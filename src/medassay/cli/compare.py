"""`medassay compare A B [C …]`."""

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from medassay.cli import location
from medassay.cli.options import listed
from medassay.cli.output import out, table_width
from medassay.core.ranks import p_text
from medassay.core.table import Table
from medassay.errors import GateError, UsageError

if TYPE_CHECKING:
    from medassay.exchange.compare import Comparison
    from medassay.exchange.compared_pairs import ComparedPair
    from medassay.storage.run import Run
    from medassay.suite.run import SuiteRun

_RULES = ("noninferior", "equivalent")


_PLACES = typer.Argument(
    ...,
    parser=location.read,
    metavar="places",
    help="Sealed runs, publications, suites, or logs of other harnesses (see import).",
)
_ONLY = typer.Option(
    [], help="Compare only these models, in this order; comma-separated, or once for each."
)
_MARGIN = typer.Option(
    None,
    help="What counts as equally good, in units of the score (0.02 = 2 points of 100).",
)
_GATE = typer.Option(
    "",
    help="noninferior:M or equivalent:M: exit 1 unless the first passes against the second.",
)
_BY_DOMAIN = typer.Option(False, "--by-domain", help="Compare each domain, too.")
_FAMILY = typer.Option(
    "board",
    help=(
        "--only: test all models of the runs at once (board), or just those that are named (pair)."
    ),
)


_METRIC = typer.Option("", help="Compare by this metric alone, of runs that have several.")


def command(
    places: list[Path] = _PLACES,
    only: list[str] = _ONLY,
    margin: float | None = _MARGIN,
    gate: str = _GATE,
    by_domain: bool = _BY_DOMAIN,
    family: str = _FAMILY,
    metric: str = _METRIC,
) -> None:
    """Compare models pair by pair on their common items: difference, tests, items that would
    tell.
    """
    from medassay.exchange.compare import compare
    from medassay.exchange.open_any import open_places
    from medassay.suite.places import suites_among

    rule, held = read_gate(gate) if gate else ("", margin)
    if gate and margin is not None and margin != held:
        raise UsageError("--gate names its own margin; leave --margin out")
    if family not in ("board", "pair"):
        raise UsageError(f"--family: '{family}'; expected board or pair")
    pairs_of = partial(
        compare,
        margin=held,
        only=listed(",".join(only)),
        by_domain=by_domain,
        family="pair" if family == "pair" else "board",
        metric=metric,
    )
    if suites := suites_among(places):
        if gate:
            raise UsageError("--gate: holds one run; name that of one benchmark, or `suite report`")
        _compare_suites(suites, pairs_of, metric)
        return
    with open_places(places) as runs:
        comparison = pairs_of(runs)
        scales = {s.metric: s.scale.ends for s in runs[0].statistics.by_metric}
        first = metric or runs[0].statistics.metric
    gate_result = comparison.gate(rule) if rule else None
    if out.json:
        sys.stdout.write(json.dumps(msgspec.to_builtins(comparison.pairs), indent=1) + "\n")
        if gate_result is not None and not gate_result[0]:
            raise typer.Exit(GateError.exit_code)
        return
    for name in dict.fromkeys(pair.metric or first for pair in comparison.pairs):
        pairs = [pair for pair in comparison.pairs if (pair.metric or first) == name]
        _print(pairs, scales[name], name if len(scales) > 1 else "")
    for note in comparison.notes:
        out.say(f"note: {note}")
    if gate_result is not None:
        passed, pair = gate_result
        scale = scales[pair.metric or first]
        lo, hi = (_units(end, scale) for end in pair.bounds_90 or (None, None))
        says = (
            f"{pair.a} against {pair.b}: 90 % interval [{lo}, {hi}], margin {_units(held, scale)}"
        )
        if not passed:
            raise GateError(f"gate {rule} not passed: {says}")
        out.result(f"gate {rule} passed: {says}")


def _compare_suites(
    suites: "list[SuiteRun]", pairs_of: "Callable[[list[Run]], Comparison]", metric: str
) -> None:
    """Print the pairs of models on each benchmark that all suites have."""
    from medassay.suite.places import shared_benchmarks

    documents = {}
    notes: dict[str, None] = {}
    for name, runs in shared_benchmarks(suites):
        different = list({run.id: run for run in runs}.values())
        comparison = pairs_of(different)
        notes |= dict.fromkeys(comparison.notes)
        documents[name] = msgspec.to_builtins(comparison.pairs)
        if out.json:
            continue
        scales = {s.metric: s.scale.ends for s in different[0].statistics.by_metric}
        first = metric or different[0].statistics.metric
        for shown in dict.fromkeys(pair.metric or first for pair in comparison.pairs):
            pairs = [pair for pair in comparison.pairs if (pair.metric or first) == shown]
            _print(pairs, scales[shown], f"{name}, {shown}")
    if out.json:
        sys.stdout.write(json.dumps(documents, indent=1) + "\n")
    for note in notes:
        out.say(f"note: {note}")


def read_gate(text: str) -> tuple[str, float]:
    """Return rule and margin of a gate, or say what is expected."""
    rule, _, margin = text.partition(":")
    try:
        value = float(margin)
    except ValueError:
        value = 0.0
    if rule not in _RULES or not 0 < value < float("inf"):
        raise UsageError(
            f"--gate '{text}': expected {' or '.join(_RULES)} with a margin, e.g. noninferior:0.02"
        )
    return rule, value


def _units(value: float | None, scale: Sequence[float | None]) -> str:
    from medassay.core.scale import units

    return units(value, scale)


def _print(pairs: "list[ComparedPair]", scale: Sequence[float | None], metric: str = "") -> None:
    """Print all pairs as a table with a forest of intervals, headed by the metric if it is one of
    several.
    """
    from medassay.core.scale import scale_text

    unit = "points of 100" if tuple(scale) == (0, 1) else f"scale {scale_text(scale)}"
    widest = max(max(map(abs, pair.ends)) for pair in pairs) or 1.0
    for domain, mode in dict.fromkeys((pair.domain, pair.mode) for pair in pairs):
        pairs_of_mode = [pair for pair in pairs if (pair.domain, pair.mode) == (domain, mode)]
        family = pairs_of_mode[0].family
        title = (
            "this pair alone is tested"
            if family == 1
            else f"{family:,} pairs tested at once, as are their 95 % intervals"
        )
        columns = _columns(pairs_of_mode, scale, widest)
        headings = ["difference", "", "n", "p (Holm)"]
        if table_width(columns, _FOLDED) <= out.console().width:
            headings += ["first", "second"]
        out.table(
            Table(
                rows=list(zip(*columns.values(), strict=True)),
                text=list(columns),
                title=(
                    f"{metric + ': ' if metric else ''}{domain}, {mode}: first minus second,"
                    f" {unit}; {title}"
                ),
                unfolded=headings,
            )
        )


def _columns(
    pairs: "list[ComparedPair]", scale: Sequence[float | None], widest: float
) -> dict[str, list[str]]:
    """Return the columns of a table of pairs.

    What is least read is left out where the terminal is narrow.
    """
    ends = [pair.ends for pair in pairs]
    cells = {
        "first": [pair.a for pair in pairs],
        "second": [pair.b for pair in pairs],
        "difference": [
            f"{_units(pair.diff, scale)} [{_units(lo, scale)}, {_units(hi, scale)}]"
            for pair, (lo, hi) in zip(pairs, ends, strict=True)
        ],
        "": [
            forest_line(lo, pair.diff, hi, widest)
            for pair, (lo, hi) in zip(pairs, ends, strict=True)
        ],
        "unread": [" / ".join(f"{100 * share:.1f} %" for share in pair.unread) for pair in pairs],
        "n": [str(pair.n) for pair in pairs],
        "p": [f"{p_text(pair.p)} {pair.test.replace('_', ' ')}" for pair in pairs],
        "p (Holm)": ["–" if pair.p_holm is None else p_text(pair.p_holm) for pair in pairs],
        "reading": [pair.reading for pair in pairs],
    }
    for name in ("", "unread", "p", "p (Holm)", "n"):
        if table_width(cells, _FOLDED) <= out.console().width:
            break
        cells.pop(name)
    return cells


_FOLDED = {
    "p": 18,
    "reading": 20,
}  # characters, folded at blanks; names stay whole as long as they can


def forest_line(lo: float, value: float, hi: float, widest: float, width: int = 21) -> str:
    """Return an interval drawn on a line with its zero.

    Examples
    --------
    >>> forest_line(-0.1, 0.1, 0.3, 0.4)
    '        ──│─●─────   '
    """
    half = width // 2

    def at(x: float) -> int:
        return min(width - 1, max(0, half + round(x / widest * half)))

    marks = [" "] * width
    for column in range(at(lo), at(hi) + 1):
        marks[column] = "─"
    marks[half] = "│"
    marks[at(value)] = "●"
    return "".join(marks)
