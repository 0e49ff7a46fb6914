"""`medassay report RUN`: the leaderboard as text or one JSON document."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from medassay.cli import location
from medassay.cli.likelihood import print_likelihoods
from medassay.cli.output import out, table_width, visible
from medassay.cli.records import print_records
from medassay.cli.rules import HELP
from medassay.cli.texts import print_texts
from medassay.core.wording import counted
from medassay.errors import InputError, UsageError

if TYPE_CHECKING:
    from medassay.core.records.leaderboard import Leaderboard
    from medassay.core.records.plan import DdxRules
    from medassay.storage.run import Run


def command(  # noqa: PLR0913, PLR0917 -- each is an option of the command
    runs: list[Path] = typer.Argument(
        ...,
        parser=location.read,
        metavar="run",
        help="The folder or address of a run, or the folder of a suite; several runs for --study.",
    ),
    domain: str = typer.Option("overall", help="The domain to show as text; 'all' for every one."),
    figure: str = typer.Option(
        "",
        help=(
            "Draw instead: forest (pairs of models), bars (every domain); of ranked diagnoses also"
            " quadrant, semantic, severity, top; of Relaxed Perplexity positions; needs --to."
        ),
    ),
    to: Path | None = typer.Option(
        None, help="The figure's file, .svg, .png or .pdf; with --study a new folder."
    ),
    by: str = typer.Option(
        "",
        help="Break down by category, year, language, answer_type, kind or tag (comma-separated).",
    ),
    rules: str = typer.Option(
        "", help=f"Ranked diagnoses: aggregate by other rules, comma-separated: {HELP}."
    ),
    study: str = typer.Option(
        "",
        help=(
            "extraction: health records by every metric, with families, passes, correlations,"
            " thinking or not."
        ),
    ),
    embeddings: str = typer.Option(
        "",
        help=(
            "--study: a sentence-transformers folder for the metric of meaning, or embedded:minilm."
        ),
    ),
    passes: str = typer.Option(
        "",
        "--pass",
        help="--study: thresholds, comma-separated: json_similarity=0.9,medication=1.",
    ),
    suite: bool = typer.Option(
        False,
        "--suite",
        help=(
            "The folder is one of a suite: all tables, ranks by metric, model cards; --to writes"
            " Markdown, CSV, LaTeX and a page."
        ),
    ),
    as_published: bool = typer.Option(
        False,
        "--as-published",
        help="--suite: ± standard errors; answers that are too short are left out of means.",
    ),
) -> None:
    """Print the leaderboard of a run, with intervals and ranks."""
    from medassay import pipeline
    from medassay.kinds.catalog import task_of_run
    from medassay.suite.run import is_suite_folder
    from medassay.summary.breakdown import breakdown

    of_runs = (figure, by, rules, study, embeddings, passes, domain != "overall")
    run = runs[0]
    if suite or as_published or is_suite_folder(run):
        _suite(run, to, as_published=as_published, others=any(of_runs))
        return
    chosen = _one(runs, study)
    if study:
        if figure or by or rules or domain != "overall":
            raise UsageError("--study goes with --to, --embeddings and --pass alone")
        _study(chosen, study, to, embeddings, passes)
        return
    if embeddings or passes:
        raise UsageError("--embeddings and --pass are for --study extraction")
    board = pipeline.leaderboard(chosen, ddx=_rules(chosen, rules))
    if bool(figure) != (to is not None):
        raise UsageError("--figure and --to go together: what to draw, and into which file")
    if to is not None:
        _draw(chosen, to, figure, _rules(chosen, rules))
        return
    groups = breakdown(chosen, by.split(","), task_of_run(chosen.manifest).scale) if by else None
    if out.json:
        document: dict[str, Any] = board.to_dict()
        if groups is not None:
            document["by"] = groups
        out.document(document)
        return
    if domain != "all" and domain not in board.domains:
        raise InputError(
            f"--domain: '{domain}' is not in this run; known are {', '.join(board.domains)}"
        )
    for name in _every(board) if domain == "all" else [domain]:
        print_leaderboard(board, chosen, name)
    for field, rows in (groups or {}).items():
        _print_groups(field, rows)


def _one(runs: list[Path], study: str) -> "Run":
    """Return the run to report on; several are joined for a study."""
    from medassay.runner.merge import join_runs
    from medassay.storage.run import open_run

    opened = [open_run(run) for run in runs]
    if len(opened) == 1:
        return opened[0]
    if not study:
        raise UsageError(
            "several runs are joined for --study extraction alone; name one run, or see `medassay"
            " compare`"
        )
    return join_runs(opened, opened[0].path.resolve().parent)


def _every(board: "Leaderboard") -> list[str]:
    """Return all rankings; of a run with one domain just that, which is the whole."""
    domains = [name for name in board.domains if name != "overall"]
    return domains if len(domains) == 1 else list(board.domains)


def _suite(folder: Path, to: Path | None, *, as_published: bool, others: bool) -> None:
    from medassay.cli.suite import report_suite

    if others:
        raise UsageError("--suite goes with --to and --as-published alone")
    report_suite(folder, to, as_published=as_published)


def _study(run: "Run", name: str, to: Path | None, embeddings: str, passes: str) -> None:
    from medassay.cli.extraction import STUDIES, report_extraction, thresholds_of

    if name not in STUDIES:
        raise UsageError(f"--study: '{name}' is unknown; known are {', '.join(STUDIES)}")
    report_extraction(run, to, embeddings, thresholds_of(passes))


def _rules(run: "Run", text: str) -> "DdxRules | None":
    """Return the rules of a run with those of the command line in their place; None without any."""
    from medassay.cli.rules import read_rules
    from medassay.core.records.plan import rules_from_dict

    if not text:
        return None
    return read_rules(text, rules_from_dict(run.manifest.get("ddx", {}).get("rules", {})))


def _draw(run: "Run", target: Path, name: str, rules: "DdxRules | None") -> None:
    """Write a figure of a run, as the board shows it."""
    from medassay import pipeline
    from medassay.storage.run import refuse_inside

    drawing = pipeline.figure(run, name, ddx=rules)
    refuse_inside(target)
    if target.exists():
        raise InputError(f"{target}: exists; nothing is overwritten")
    drawing.save(target)
    if out.json:
        out.document({"figure": str(target), "caption": drawing.caption})
    else:
        out.result(f"drew {target}: {drawing.caption}")


def tell_run(run: "Run") -> None:
    """Print the overall ranking and the place of a run that was just sealed."""
    from medassay import pipeline

    board = pipeline.leaderboard(run)
    if out.json:
        out.document(
            {"run": run.id, "path": location.location_text(run.path), "domains": board.domains}
        )
        return
    print_leaderboard(board, run, "overall")
    if deleted := run.manifest.get("deleted_items"):
        out.result(
            f"{counted(len(deleted), 'item')} of the run before"
            f" {'was' if len(deleted) == 1 else 'were'} deleted by law: not scored, not counted"
        )
    out.result(f"run {location.location_text(run.path)}")


def print_leaderboard(board: "Leaderboard", run: "Run", domain: str) -> None:
    """Print one ranking as a table, with what a reader must know beside it."""
    from rich.markup import escape
    from rich.table import Table

    from medassay.core.records.leaderboard import UNREAD_WARNING, scale_text, told_fallback

    rows = board.domains[domain]
    unit = scale_text(rows[0]["scale"], run.statistics["scale"]["better"])
    judged = any(row.get("agreement") is not None for row in rows)
    table = Table(
        title=f"{escape(visible(domain))}: {rows[0]['metric']}, {unit}, 95 % interval",
        title_justify="left",
    )
    columns = _columns(rows, board.lines(domain), judged=judged)
    for heading in columns:
        table.add_column(heading, no_wrap=heading in ("rank", "model", "score"), overflow="fold")
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*(escape(visible(cell)) for cell in cells))
    out.console().print(table)
    if board.ddx is not None:
        _print_ddx(rows, board.ddx)
    if "record" in rows[0]:
        print_records(rows)
    if "likelihood" in rows[0]:
        print_likelihoods(rows)
    if "text" in rows[0]:
        print_texts(rows, run.statistics["text"])
    for line in told_fallback(run.manifest.get("fallback", {})):
        out.result(line)
    for line in _cut_off(run, rows):
        out.result(visible(line))
    if warned := _unread_pairs(run, domain):
        out.result(
            f"⚠ {UNREAD_WARNING} in {len(warned)} pair{'s' if len(warned) > 1 else ''}:"
            f" {'; '.join(warned[:3])}{' and others' if len(warned) > 3 else ''}. `medassay study"
            " reading` shows the replies."
        )
    if any("scripted" in row["flags"] for row in rows):
        out.result("SCRIPTED: answers or judges were scripted; these numbers measure nothing.")
    _print_sentences(run, rows, domain)


def _columns(
    rows: list[dict[str, Any]], lines: list[tuple[str, str, str]], *, judged: bool
) -> dict[str, list[str]]:
    """Return the columns of a ranking.

    What is the same in every row, or least read, is left out where the terminal is narrow.
    """
    from medassay.core.records.leaderboard import units, unread_share

    def band(row: dict[str, Any]) -> str:
        second = row["second"]
        if not second:
            return "–"
        lo, hi = (units(second[end], row["scale"]) for end in ("lo", "hi"))
        return f"[{lo}, {hi}] {second['method']}"

    def notes(row: dict[str, Any]) -> str:
        marks = {
            "asked_again": f"asked again: {row.get('asked_again', 0)}",
            "not_ranked:cut_off": "not ranked: too many cut off",
            "not_ranked:too_few_items": "not ranked: fewer than 10 items or clusters",
        }
        return ", ".join(
            marks.get(flag, flag.replace("not_ranked:", "not ranked: ").replace("_", " "))
            for flag in row["flags"]
            if flag != "cut_off"  # a column of its own
        )

    cells = {
        "rank": [rank for rank, _, _ in lines],
        "model": [row["model"] for row in rows],
        "setting": [row["setting"] for row in rows],
        "mode": [row["mode"] for row in rows],
        "score": [score for *_, score in lines],
        "second interval": [band(row) for row in rows],
        "coverage": [f"{row['coverage']:.2f}" for row in rows],
        "unread": [f"{100 * unread_share(row['outcomes']):.1f} %" for row in rows],
    }
    if any(row.get("cut_off") for row in rows):
        cells["cut off"] = [f"{row['cut_off']} of {_n_replies(row)}" for row in rows]
    if judged:
        judging = [_judging(row) for row in rows]
        cells["agreement"] = [agreement for agreement, _ in judging]
        cells["false claims"] = [claims for _, claims in judging]
    cells["notes"] = [notes(row) for row in rows]
    if len(set(cells["mode"])) == 1:
        cells.pop("mode")
    if not any(cells["notes"]):
        cells.pop("notes")
    for name in ("second interval", "coverage", "setting"):
        if table_width(cells, _FOLDED) <= out.console().width:
            break
        if name != "setting" or len(set(cells["setting"])) == 1:
            cells.pop(name)
    return cells


_FOLDED = {"notes": 14, "setting": 10, "false claims": 12}  # characters, folded at blanks


def _n_replies(row: Mapping[str, Any]) -> int:
    counts: Mapping[str, int] = row["outcomes"]
    return sum(counts.values()) - counts["failed"]


def _cut_off(run: "Run", rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each model whose replies ended at its token limit."""
    totals: dict[str, tuple[int, int]] = {}
    for row in rows:
        cut, n = totals.get(row["model"], (0, 0))
        totals[row["model"]] = cut + row.get("cut_off", 0), n + _n_replies(row)
    for model, (cut, n) in totals.items():
        if cut:
            limit = run.manifest.get("sampling", {}).get(model, {}).get("max_tokens", "?")
            yield (
                f"⚠ {model}: {cut} of {n} replies were cut at max_tokens = {limit}; a larger"
                " max_tokens in its entry asks them anew."
            )


def _print_sentences(run: "Run", rows: list[dict[str, Any]], domain: str) -> None:
    """Print who is best, for each mode, and on what that rests."""
    from medassay.core.ranks import SIMULTANEOUS, board_sentence, small_domain_text

    statistics = run.statistics
    rule = statistics["rank_rule"]
    n_domains = len(run.manifest["domains"])
    for mode, fields in statistics["fields"].items():
        relations = fields[domain]
        rows_of_mode = [row for row in rows if row["mode"] == mode]
        sentence = board_sentence(rows_of_mode, relations, statistics)
        out.result(f"{mode}: {sentence}" if len(statistics["fields"]) > 1 else sentence)
        for entry in relations.get("small_domains", ()):
            out.result(f"⚠ {visible(small_domain_text(entry))}")
        text = (
            f"{relations['n_common']} of {relations['n_items']} items common to the ranked models"
        )
        if domain == "overall" and n_domains > 1:
            text += f"; mean of {n_domains} domains, each counted alike"
        if rule == SIMULTANEOUS:
            pairs = relations["n_ranked"] * (relations["n_ranked"] - 1) // 2
            tested = (
                f"all {pairs:,} pairs tested at once" if pairs > 1 else "the test of the one pair"
            )
            if pairs:
                text += f"; ranks are ranges, from {tested}"
        else:
            text += (
                f"; rule {rule}: rows share a rank (“=”) whose intervals overlap, in brackets the"
                " range of the rank"
            )
        out.result(f"{text}.")


def _unread_pairs(run: "Run", domain: str) -> list[str]:
    """Return the pairs of ranked rows whose unread shares differ by more than their scores."""
    return [
        f"{', '.join(pair['first'])} ({100 * pair['unread'][0]:.1f} % unread) and"
        f" {', '.join(pair['second'])} ({100 * pair['unread'][1]:.1f} %)"
        for fields in run.statistics["fields"].values()
        for pair in fields[domain]["pairs"]
        if pair.get("unread_outweighs")
    ]


def _print_ddx(rows: list[dict[str, Any]], document: Mapping[str, Any]) -> None:
    """Print both aggregates of ranked diagnoses, their plain means, and top-k."""
    from rich.markup import escape
    from rich.table import Table

    from medassay.core.records.leaderboard import honest_ends
    from medassay.kinds.diagnoses.scorer import BEST

    def cell_text(estimate: dict[str, Any] | None, factor: float = 1.0, digits: int = 2) -> str:
        if not estimate:
            return "–"
        ends = honest_ends(estimate)
        numbers = [factor * n for n in (estimate["score"], ends["lo"], ends["hi"])]
        return "{} [{}, {}]".format(*(f"{n:.{digits}f}" for n in numbers))

    leading = document["leading"]
    weights = document["presets"][leading]
    highest = 2 * BEST / document["semantic_max"] - 1
    table = Table(
        title=(
            f"weighted aggregates, −1 to 1 (semantic to {highest:.3g}), {leading}: k ="
            f" {weights['k']:g}, x0 = {weights['x0']:g}; means of 16; top-k in %"
        ),
        title_justify="left",
    )
    for heading in (
        "model",
        "prompt",
        "semantic",
        "severity",
        "semantic mean",
        "severity mean",
    ):
        table.add_column(heading, overflow="fold")
    for heading in ("top 1", "top 3", "top 5", "n", "unjudged"):
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [
            row["model"],
            row["prompt"],
            *(cell_text(row[name][leading]) for name in ("semantic", "severity")),
            *(cell_text(row[f"{name}_mean"], digits=1) for name in ("semantic", "severity")),
            *(cell_text(row[f"top{k}"], 100.0, 1) for k in (1, 3, 5)),
            str((row["semantic_mean"] or row)["n"]),
            f"{row['unjudged']} of {row['labels']}",
        ]
        table.add_row(*(escape(visible(cell)) for cell in cells))
    out.console().print(table)
    if any(row.get("names") for row in rows):
        names = Table(
            title="names in lists: a list of one right name scores 16, over all places it does not",
            title_justify="left",
        )
        for heading in ("model", "prompt"):
            names.add_column(heading, overflow="fold")
        for heading in ("names a list", "short lists, %", "semantic mean", "over all places"):
            names.add_column(heading, justify="right")
        for row in rows:
            cells = [
                *(row["model"], row["prompt"], cell_text(row["names"], digits=1)),
                *(
                    cell_text(row["short_lists"], 100.0, 1),
                    cell_text(row["semantic_mean"], digits=1),
                ),
                cell_text(row["all_places_mean"], digits=1),
            ]
            names.add_row(*(escape(visible(cell)) for cell in cells))
        out.console().print(names)


def _judging(row: dict[str, Any]) -> tuple[str, str]:
    """Return judge agreement and hallucination rate as text, dashes where nothing was judged."""
    from medassay.core.records.leaderboard import honest_ends

    agreement, rate = row.get("agreement"), row.get("hallucination_rate")
    ends = None if rate is None else honest_ends(rate)
    return (
        "–" if agreement is None else f"{agreement:.2f}",
        (
            "–"
            if rate is None or ends is None
            else f"{100 * rate['score']:.1f} % [{100 * ends['lo']:.1f}, {100 * ends['hi']:.1f}]"
        ),
    )


def _print_groups(field: str, rows: list[dict[str, Any]]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from medassay.core.records.leaderboard import units

    table = Table(title=f"by {field}", title_justify="left")
    for heading in (field, "model", "setting", "score", "notes"):
        table.add_column(heading)
    for row in rows:
        score, lo, hi = (units(row[key], row["scale"]) for key in ("score", "lo", "hi"))
        text = f"{score} [{lo}, {hi}] n={row['n']}"
        cells = [
            row["value"],
            row["model"],
            row["setting"],
            text,
            ", ".join(row["flags"]).replace("_", " "),
        ]
        table.add_row(*(escape(visible(cell)) for cell in cells))
    out.console().print(table)
