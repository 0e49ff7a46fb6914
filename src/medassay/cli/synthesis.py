"""`medassay bank synthesize` and `paths`: making items, and the ways through a decision graph."""

import datetime as dt
import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.cli.output import out
from medassay.cli.preview import confirm
from medassay.errors import GateError

if TYPE_CHECKING:
    from medassay.synthesis.steps import SynthesisPreview
    from medassay.synthesis.synthesize import SynthesisResult

_WORKSHOP = typer.Argument(..., metavar="WORKSHOP", help="The folder in which items are made.")


def synthesize(
    plan: Path = typer.Argument(
        ...,
        help="The plan, a TOML file with one of [pathways], [proposals], [exam], [translation].",
    ),
    to: Path = typer.Option(
        ..., "--to", help="The workshop: a new folder, or the one that is gone on with."
    ),
    preview: bool = typer.Option(
        False, "--plan", help="Say what would be asked and what it costs; call nothing."
    ),
    yes: bool = typer.Option(False, "--yes", help="Do not ask before paid calls."),
    again: list[str] = typer.Option(
        [],
        help=(
            "Ask once more for a step in the queue, by its handle as `medassay bank queue` lists"
            " it, or failed for all of them; what a person decided about stays."
        ),
    ),
    approve_all_by: str = typer.Option(
        "",
        "--approve-all-by",
        help=(
            "Note that this person accepts every item that passed the checks, unread by them, and"
            " release the bank. The bank's limits say so."
        ),
    ),
) -> None:
    """Make items by a plan: every step is journalled, and the same command resumes an interrupted
    one.
    """
    from medassay.cli.progress import watch
    from medassay.synthesis.project import by_person
    from medassay.synthesis.synthesize import synthesize as make

    workspace = Path.cwd()
    if approve_all_by:
        by_person(approve_all_by)
    if preview:
        _tell_preview(plan, to)
        return
    if not yes:
        confirm_paid(plan, to)
    result = make(plan, to, secrets=os.environ, workspace=workspace, watch=watch, again=again)
    released = None
    if approve_all_by:
        from medassay.synthesis.decide import ALL, decide
        from medassay.synthesis.items import undecided
        from medassay.synthesis.project import open_workshop

        with open_workshop(to) as workshop:
            if undecided(workshop):
                decide(workshop, "accept", [ALL], who=approve_all_by, reason="accepted together")
        try:
            released = release_workshop(to, "Items accepted together.")
        except GateError as error:  # the same items as before
            out.say(str(error))
    tell_made(to, result, released)


def release_workshop(folder: Path, reason: str, lock: Path = Path("banks.lock")) -> dict[str, str]:
    """Release the accepted items of a workshop, and return where, which version, which content."""
    from medassay.synthesis.project import open_workshop
    from medassay.synthesis.release import release_items

    today = dt.datetime.now(dt.UTC).date()
    with open_workshop(folder) as workshop:
        bank, version, content = release_items(workshop, reason=reason, lock=lock, today=today)
    return {"bank": str(bank), "version": version, "content_sha256": content}


def tell_made(to: Path, result: "SynthesisResult", released: dict[str, str] | None = None) -> None:
    """Print what a workshop holds after a pass, and what waits now."""
    from medassay.synthesis.items import WAITS, undecided
    from medassay.synthesis.project import read_workshop

    workshop = read_workshop(to)
    waiting = len(undecided(workshop))
    lines = [f"{to}: {result.items} items, {waiting} wait for a person"]
    if result.letters:
        letters = ", ".join(f"{letter} {n}" for letter, n in result.letters.items())
        lines.append(f"right letters: {letters}")
    # What waits is named in the queue.
    lines += [f"left out: {n} × {why}" for why, n in result.dropped.items() if why != WAITS]
    lines += [f"queue: {row['step']}:{row['subject']}: {row['why']}" for row in result.queue]
    more = {}
    if released is not None:
        more = {"released": released}
        lines.append(
            f"released {released['version']} {released['content_sha256']} in {released['bank']}"
        )
    document = {"workshop": str(to), **result.to_dict(), "waiting": waiting}
    out.say(f"{result.calls} calls, {result.replayed} replies from the store")
    out.tell({**document, "journal": workshop.events[-1].hash, **more}, *lines)
    if waiting:
        out.say(
            f"medassay bank queue {to} lists what waits, medassay bank decide {to} … notes what you"
            " decide"
        )


def _tell_preview(plan: Path, to: Path, *, to_stderr: bool = False) -> "SynthesisPreview":
    from medassay.synthesis.synthesize import preview

    amounts = preview(plan, to)
    if out.json and not to_stderr:
        out.tell(amounts)
        return amounts
    tell = out.say if to_stderr else out.result
    for stage in amounts.stages:
        price = f"{stage.money:.2f} {stage.currency} (at most {stage.most_money:.2f})"
        tell(
            f"{stage.stage:18} {stage.model}: {stage.calls} calls (at most {stage.most_calls}),"
            f" up to {stage.tokens:,} tokens, {price if stage.price_known else 'price unknown'}"
        )
    if not amounts.stages:
        tell("nothing is to be asked that can be known by now")
    unknown = sorted({stage.model for stage in amounts.stages if not stage.price_known})
    besides = f"price unknown: {', '.join(unknown)}; " if unknown else ""
    tell(
        f"in all {amounts.calls} calls, {amounts.money:.2f}; at most {amounts.most_calls}"
        f" calls, {amounts.most_money:.2f}; {besides}stages that follow from these come on top"
    )
    return amounts


def confirm_paid(plan: Path, to: Path) -> None:
    """Show what making items may cost where any of its models has a price, and ask.

    Refuse where nobody can be asked.
    """
    from medassay.synthesis.synthesize import has_prices

    if not has_prices(plan):
        return
    amounts = _tell_preview(plan, to, to_stderr=True)
    if not amounts.stages and (to / "journal.jsonl").is_file():
        return  # nothing is left that could be asked
    confirm(
        "Go on?",
        "this costs money, or an entry has no price; --yes is needed where nobody can be asked",
    )


def paths(
    graph: Path = typer.Argument(
        ...,
        help=(
            "A decision graph: JSON (tree or edges), CSV, TSV or text of arrows, GraphML, Mermaid."
        ),
    ),
    most: int = typer.Option(2, "--max-per-leaf", min=1, help="Ways kept to one leaf."),
    svg: Path | None = typer.Option(None, help="Write the picture of the graph here."),
) -> None:
    """Print the ways through a decision graph, from its root to its ends."""
    from medassay.report.decision_graph import draw_decision_graph
    from medassay.synthesis.graph_file import load_graph
    from medassay.synthesis.pathway import count_paths, count_text
    from medassay.synthesis.pathway import paths as walk

    loaded = load_graph(graph)
    counts, shown_paths = count_paths(loaded, most), walk(loaded, most)
    if svg is not None:
        svg.write_text(draw_decision_graph(loaded), encoding="utf-8")
    rows = [
        {"steps": path.steps, "contents": path.contents, "text": path.text} for path in shown_paths
    ]
    out.tell(
        {
            "condition": loaded.condition,
            "nodes": counts.nodes,
            "leaves": counts.leaves,
            "ways": counts.ways if counts.ways < 2**53 else count_text(counts.ways),
            "paths": rows,
            "max_per_leaf": most,
        },
        *(path.text for path in shown_paths),
    )
    out.say(
        f"{counts.nodes} nodes, {counts.leaves} leaves, {count_text(counts.ways)} ways,"
        f" {counts.kept} kept (at most {most} a leaf)"
    )
