"""`medassay compare A B [C …]`."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from medassay.cli import location
from medassay.cli.options import listed
from medassay.cli.output import out, table_width
from medassay.core.ranks import p_text
from medassay.core.scale import scale_text, units
from medassay.core.table import Table
from medassay.errors import GateError, InputError, UsageError

if TYPE_CHECKING:
    from medassay.exchange.compare import Comparison
    from medassay.exchange.compared_pairs import ComparedPair
    from medassay.exchange.gate import GateReport, GateRule
    from medassay.storage.run import Run
    from medassay.suite.run import SuiteRun

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
    [],
    metavar="RULE",
    help=(
        "Exit 1 unless the first model passes against the second; once for each rule:"
        " noninferior:M or equivalent:M (the difference and a margin), minimum:X (the score),"
        " each also @DOMAIN; harm:N (more harmful answers), cutoff:S (replies cut off), coverage:S"
        " (items with a score)."
    ),
)
_JUNIT = typer.Option(None, metavar="FILE", help="--gate: also write JUnit XML.")
_SUMMARY = typer.Option(
    None, metavar="FILE", help="--gate: also append a table in Markdown, as $GITHUB_STEP_SUMMARY."
)
_ANNOTATE = typer.Option(
    False, "--annotate", help="--gate: also print each rule as an annotation of GitHub."
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
    gate: list[str] = _GATE,
    by_domain: bool = _BY_DOMAIN,
    family: str = _FAMILY,
    metric: str = _METRIC,
    junit: Path | None = _JUNIT,
    summary: Path | None = _SUMMARY,
    annotate: bool = _ANNOTATE,
) -> None:
    """Compare models pair by pair on their common items: difference, tests, items that would
    tell.
    """
    from medassay.exchange.compare import compare
    from medassay.exchange.gate import hold, read_rule
    from medassay.exchange.open_any import open_places
    from medassay.suite.places import suites_among

    rules = [read_rule(text) for text in gate]
    held = _margin_of(rules, margin)
    if not rules and (junit is not None or summary is not None or annotate):
        raise UsageError("--junit, --summary and --annotate are for --gate; name a rule")
    if family not in ("board", "pair"):
        raise UsageError(f"--family: '{family}'; expected board or pair")
    pairs_of = partial(
        compare,
        margin=held,
        only=listed(",".join(only)),
        by_domain=by_domain or any(rule.domain for rule in rules),
        family="pair" if family == "pair" else "board",
        metric=metric,
    )
    if suites := suites_among(places):
        if rules:
            raise UsageError("--gate: holds one run; name that of one benchmark, or `suite report`")
        _compare_suites(suites, pairs_of, metric)
        return
    report = None
    with open_places(places) as runs:
        comparison = pairs_of(runs)
        scales = {s.metric: s.scale.ends for s in runs[0].statistics.by_metric}
        first = metric or runs[0].statistics.metric
        if rules:
            report = hold(comparison, runs, rules)
    if report is not None:
        _write_gate(report, junit, summary, annotate=annotate and not out.json)
    if out.json:
        told = comparison.pairs if report is None else report
        sys.stdout.write(json.dumps(msgspec.to_builtins(told), indent=1) + "\n")
    else:
        _print_all(comparison, scales, first)
    if report is not None:
        _end_gate(report)


def _margin_of(rules: "Sequence[GateRule]", margin: float | None) -> float | None:
    """Return the margin that readings are claimed against: that of the option, or of the rules."""
    from medassay.exchange.gate import HELD_TO_A_MARGIN

    margins = {rule.limit for rule in rules if rule.kind in HELD_TO_A_MARGIN}
    if margins and margin is not None and margins != {margin}:
        raise UsageError("--gate names its own margin; leave --margin out")
    return min(margins) if margins else margin


def _print_all(
    comparison: "Comparison", scales: "Mapping[str, Sequence[float | None]]", first: str
) -> None:
    """Print a table for each metric, and what must be known besides."""
    for name in dict.fromkeys(pair.metric or first for pair in comparison.pairs):
        pairs = [pair for pair in comparison.pairs if (pair.metric or first) == name]
        _print(pairs, scales[name], name if len(scales) > 1 else "")
    for note in comparison.notes:
        out.say(f"note: {note}")


def _write_gate(
    report: "GateReport", to_junit: Path | None, to_summary: Path | None, *, annotate: bool
) -> None:
    """Write the files of a gate, and print its annotations."""
    from medassay.exchange.gate_files import annotations, junit, markdown

    if to_junit is not None:
        # A pipe or device, as /dev/stdout, holds nothing that could be lost.
        if to_junit.is_file() and to_junit.read_bytes()[:5] not in (b"", b"<?xml"):
            raise InputError(
                f"--junit {to_junit}: exists, and is no XML; nothing is overwritten, choose another"
                " place"
            )
        to_junit.parent.mkdir(parents=True, exist_ok=True)
        to_junit.write_text(junit(report), encoding="utf-8")
    if to_summary is not None:
        with to_summary.open("a", encoding="utf-8") as file:
            file.write(markdown(report))
    for line in annotations(report) if annotate else ():
        out.result(line)


def _end_gate(report: "GateReport") -> None:
    """Say what became of each rule; fail where one did not pass."""
    for check in report.rules if not out.json else ():
        word = "passed" if check.passed else "not passed"
        out.result(f"gate {check.rule} {word}: {check.reason}")
    if report.passed:
        return
    if out.json:
        raise typer.Exit(GateError.exit_code)
    failed = [check for check in report.rules if not check.passed]
    reason = f": {failed[0].reason}" if len(failed) == 1 else ""
    raise GateError(f"gate {report.reason}{reason}")


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


def _print(pairs: "list[ComparedPair]", scale: Sequence[float | None], metric: str = "") -> None:
    """Print all pairs as a table with a forest of intervals, headed by the metric if it is one of
    several.
    """
    unit = "points of 100" if tuple(scale) == (0, 1) else f"scale {scale_text(scale)}"
    widest = max(max(map(abs, pair.ends)) for pair in pairs) or 1.0
    # Pairs that are tested together stand together: models that lack many items have tests apart.
    families: dict[tuple[str, str, int], list[ComparedPair]] = {}
    for pair in pairs:
        families.setdefault((pair.domain, pair.mode, pair.family), []).append(pair)
    for (domain, mode, family), pairs_of_mode in families.items():
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
    # Where there is no reading, neither an interval nor a p is read.
    ends = [(pair.diff, pair.diff) if pair.better is None else pair.ends for pair in pairs]
    cells = {
        "first": [pair.a for pair in pairs],
        "second": [pair.b for pair in pairs],
        "difference": [
            f"{units(pair.diff, scale)}{_interval(lo, hi, scale)}"
            for pair, (lo, hi) in zip(pairs, ends, strict=True)
        ],
        "": [
            forest_line(lo, pair.diff, hi, widest)
            for pair, (lo, hi) in zip(pairs, ends, strict=True)
        ],
        "unread": [" / ".join(f"{100 * share:.1f} %" for share in pair.unread) for pair in pairs],
        "n": [str(pair.n) for pair in pairs],
        "p": [
            "–"
            if pair.better is None or pair.p is None or pair.test is None
            else f"{p_text(pair.p)} {pair.test.replace('_', ' ')}"
            for pair in pairs
        ],
        "p (Holm)": [
            "–" if pair.better is None or pair.p_holm is None else p_text(pair.p_holm)
            for pair in pairs
        ],
        "reading": [pair.reading for pair in pairs],
    }
    for name in ("", "unread", "p", "p (Holm)", "n"):
        if table_width(cells, _FOLDED) <= out.console().width:
            break
        cells.pop(name)
    return cells


def _interval(lo: float, hi: float, scale: Sequence[float | None]) -> str:
    """Return an interval in brackets, "" for one of no width: differences that are all equal tell
    nothing of those of other items.
    """
    return f" [{units(lo, scale)}, {units(hi, scale)}]" if lo < hi else ""


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
