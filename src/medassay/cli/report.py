"""`medassay report RUN`: the leaderboard as text or one JSON document."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.cli import location
from medassay.cli.extraction import STUDIES, opened_or_joined, report_extraction, thresholds_of
from medassay.cli.leaderboard import group_table, leaderboard_parts
from medassay.cli.output import out
from medassay.cli.rules import HELP, read_rules
from medassay.core.table import Table
from medassay.errors import InputError, UsageError

if TYPE_CHECKING:
    from medassay.core.records.leaderboard import Leaderboard
    from medassay.core.records.plan import DdxRules
    from medassay.storage.run import Run
    from medassay.summary.breakdown import GroupScore


_RUNS = typer.Argument(
    ...,
    parser=location.read,
    metavar="run",
    help="The folder or address of a run.",
)
_DOMAIN = typer.Option("overall", help="The domain to show as text; 'all' for every one.")
_FIGURE = typer.Option(
    "",
    help=(
        "Draw instead: forest (pairs of models), bars (every domain); of ranked diagnoses also"
        " quadrant, semantic, severity, top; of Relaxed Perplexity positions; needs --to."
    ),
)
_TO = typer.Option(None, help="The figure's file, .svg, .png or .pdf.")
_BY = typer.Option(
    "",
    help="Break down by category, year, language, answer_type, kind or tag (comma-separated).",
)
_RULES = typer.Option(
    "", help=f"Ranked diagnoses: aggregate by other rules, comma-separated: {HELP}."
)
_PROVISIONAL = typer.Option(
    False,
    "--provisional",
    help="Of a run that is not finished: what is there by now, without ranks and intervals.",
)
# Spellings of before `medassay study extraction` and `medassay suite report`.
_STUDY = typer.Option("", hidden=True)
_EMBEDDINGS = typer.Option("", hidden=True)
_PASSES = typer.Option("", "--pass", hidden=True)
_SUITE = typer.Option(False, "--suite", hidden=True)
_AS_PUBLISHED = typer.Option(False, "--as-published", hidden=True)


def command(
    runs: list[Path] = _RUNS,
    domain: str = _DOMAIN,
    figure: str = _FIGURE,
    to: Path | None = _TO,
    by: str = _BY,
    rules: str = _RULES,
    provisional: bool = _PROVISIONAL,
    study: str = _STUDY,
    embeddings: str = _EMBEDDINGS,
    passes: str = _PASSES,
    suite: bool = _SUITE,
    as_published: bool = _AS_PUBLISHED,
) -> None:
    """Print the leaderboard of a run, with intervals and ranks."""
    from medassay.kinds.breakdowns import breakdowns
    from medassay.kinds.results import leaderboard
    from medassay.suite.run import is_suite_folder

    of_runs = (figure, by, rules, study, embeddings, passes, domain != "overall")
    run = runs[0]
    if provisional:
        if any(of_runs) or suite or as_published or len(runs) > 1:
            raise UsageError("--provisional is of one run, and goes with nothing else")
        _tell_provisional(run)
        return
    if suite or as_published or is_suite_folder(run):
        _suite(run, to, as_published=as_published, others=any(of_runs))
        return
    chosen = opened_or_joined(runs, for_study=bool(study))
    if study:
        if figure or by or rules or domain != "overall":
            raise UsageError("--study goes with --to, --embeddings and --pass alone")
        if study not in STUDIES:
            raise UsageError(f"--study: '{study}' is unknown; known are {', '.join(STUDIES)}")
        report_extraction(chosen, to, embeddings, thresholds_of(passes))
        return
    if embeddings or passes:
        raise UsageError("--embeddings and --pass are for --study extraction")
    chosen_rules = read_rules(rules, chosen.manifest.ddx_rules) if rules else None
    board = leaderboard(chosen, ddx=chosen_rules)
    if bool(figure) != (to is not None):
        raise UsageError("--figure and --to go together: what to draw, and into which file")
    if to is not None:
        _draw(chosen, to, figure, chosen_rules)
        return
    groups = breakdowns(chosen, by.split(",")) if by else None
    if domain != "all" and domain not in board.domains:
        raise InputError(
            f"--domain: '{domain}' is not in this run; known are {', '.join(board.domains)}"
        )
    by_group = {}
    if groups is not None:
        by_group = {"by": {name: [row.to_dict() for row in rows] for name, rows in groups.items()}}
    out.tell({**board.to_dict(), **by_group}, _parts(board, chosen, domain, groups or {}))


def _tell_provisional(folder: Path) -> None:
    """Print what a run says by now."""
    from medassay.storage.run import open_run
    from medassay.summary.provisional import provisional

    run = open_run(folder)
    rows = provisional(run)
    cells = [
        (
            row.model,
            row.setting,
            row.mode,
            row.scorer or "–",
            f"{row.answered:,}",
            f"{row.unread:,}",
            f"{row.failed:,}",
            f"{row.scored:,}",
            "–" if row.mean is None else f"{row.mean:.4g}",
        )
        for row in rows
    ]
    table = Table(
        rows=cells,
        text=("model", "setting", "mode", "scorer"),
        numbers=("answered", "unread", "failed", "scored", "mean so far"),
        title=f"provisional: {run.id}",
        notes=[
            "provisional: no ranks and no intervals, since which items are answered first is no"
            " random draw"
            if not run.sealed
            else "the run is finished: `medassay report` has its ranks and intervals"
        ],
    )
    out.tell({"run": run.id, "finished": run.sealed, "rows": rows}, table)


def _parts(
    board: "Leaderboard", run: "Run", domain: str, groups: "Mapping[str, list[GroupScore]]"
) -> Iterator[str | Table]:
    for name in _every(board) if domain == "all" else [domain]:
        yield from leaderboard_parts(board, run, name)
    for field, rows in groups.items():
        for metric in dict.fromkeys(row.metric for row in rows):
            yield group_table(field, [row for row in rows if row.metric == metric])


def _every(board: "Leaderboard") -> list[str]:
    """Return all rankings; of a run with one domain just that, which is the whole."""
    domains = [name for name in board.domains if name != "overall"]
    return domains if len(domains) == 1 else list(board.domains)


def _suite(folder: Path, to: Path | None, *, as_published: bool, others: bool) -> None:
    from medassay.cli.suite import report_suite

    if others:
        raise UsageError("--suite goes with --to and --as-published alone")
    report_suite(folder, to, as_published=as_published)


def _draw(run: "Run", target: Path, name: str, rules: "DdxRules | None") -> None:
    """Write a figure of a run, as the board shows it."""
    from medassay.kinds.results import figure
    from medassay.storage.run import refuse_inside

    drawing = figure(run, name, ddx=rules)
    refuse_inside(target)
    if target.exists():
        raise InputError(f"{target}: exists; nothing is overwritten")
    drawing.save(target)
    out.tell(
        {"figure": str(target), "caption": drawing.caption}, f"drew {target}: {drawing.caption}"
    )
