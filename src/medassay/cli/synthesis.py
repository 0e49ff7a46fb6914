"""`medassay bank synthesize`, `paths`, `queue`, `decide`: making items, and people's word on each."""

import datetime as dt
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from medassay.cli.output import out
from medassay.errors import GateError, UsageError

if TYPE_CHECKING:
    from medassay.synthesis.synthesize import Made

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
    approve_all_by: str = typer.Option(
        "",
        "--approve-all-by",
        help="Note that this person accepts every item that passed the checks, unread by them, and release the bank. "
        "The bank's limits say so.",
    ),
) -> None:
    """Make items by a plan: every step is journalled, the same command resumes what was cut off."""
    from medassay.cli.run import watch
    from medassay.synthesis.synthesize import synthesize as make
    from medassay.synthesis.workshop import by_person

    workspace = Path.cwd()
    if approve_all_by:
        by_person(approve_all_by)
    if preview:
        _tell_preview(plan, to)
        return
    if not yes:
        confirm_paid(plan, to)
    made = make(plan, to, secrets=os.environ, workspace=workspace, watch=watch)
    released = None
    if approve_all_by:
        from medassay.synthesis.decide import ALL, decide
        from medassay.synthesis.items import undecided
        from medassay.synthesis.workshop import open_workshop

        with open_workshop(to) as workshop:
            if undecided(workshop):
                decide(
                    workshop, "accept", [ALL], who=approve_all_by, reason="accepted together"
                )
        try:
            released = release_workshop(to, "Items accepted together.")
        except GateError as error:  # the same items as before
            out.say(str(error))
    tell_made(to, made, released)


def release_workshop(
    folder: Path, reason: str, lock: Path = Path("banks.lock")
) -> dict[str, str]:
    """Release the accepted items of a workshop, and return where, which version, which content."""
    from medassay.synthesis.release import release_items
    from medassay.synthesis.workshop import open_workshop

    today = dt.datetime.now(dt.UTC).date()
    with open_workshop(folder) as workshop:
        bank, version, content = release_items(workshop, reason=reason, lock=lock, today=today)
    return {"bank": str(bank), "version": version, "content_sha256": content}


def tell_made(to: Path, made: "Made", released: dict[str, str] | None = None) -> None:
    """Print what a workshop holds after a pass, and what waits now."""
    from medassay.synthesis.items import WAITS, undecided
    from medassay.synthesis.workshop import read_workshop

    workshop = read_workshop(to)
    waiting = len(undecided(workshop))
    if out.json:
        more = {} if released is None else {"released": released}
        head = workshop.events[-1].hash
        out.document(
            {"workshop": str(to), **made.to_dict(), "waiting": waiting, "journal": head, **more}
        )
        return
    out.result(f"{to}: {made.items} items, {waiting} wait for a person")
    out.say(f"{made.calls} calls, {made.replayed} replies from the store")
    if made.letters:
        told = ", ".join(f"{letter} {n}" for letter, n in made.letters.items())
        out.result(f"right letters: {told}")
    for why, count in made.dropped.items():
        if why == WAITS:  # each is named below
            continue
        out.result(f"left out: {count} × {why}")
    for row in made.queue:
        out.result(f"queue: {row['step']}:{row['subject']}: {row['why']}")
    if released is not None:
        out.result(
            f"released {released['version']} {released['content_sha256']} in {released['bank']}"
        )
    if waiting:
        out.say(
            f"medassay bank queue {to} lists what waits, medassay bank decide {to} … notes what you decide"
        )


def _tell_preview(plan: Path, to: Path, *, to_stderr: bool = False) -> dict[str, Any]:
    from medassay.synthesis.synthesize import preview

    found = preview(plan, to, workspace=Path.cwd())
    if out.json and not to_stderr:
        out.document(found)
        return found
    tell = out.say if to_stderr else out.result
    for row in found["stages"]:
        tell(
            f"{row['stage']:18} {row['model']}: {row['calls']} calls (at most {row['most_calls']}), up to {row['tokens']:,} tokens, "
            f"{row['money']:.2f} {row['currency']} (at most {row['most_money']:.2f})"
        )
    if not found["stages"]:
        tell("nothing is to be asked that can be known by now")
    tell(
        f"in all {found['calls']} calls, {found['money']:.2f}; at most {found['most_calls']} calls, {found['most_money']:.2f}; "
        "stages that follow from these come on top"
    )
    return found


def confirm_paid(plan: Path, to: Path) -> None:
    """Show what making items may cost where any of its models has a price, and ask; refuse where nobody can be asked."""
    from medassay.synthesis.synthesize import has_prices

    if not has_prices(plan):
        return
    found = _tell_preview(plan, to, to_stderr=True)
    if not found["stages"] and (to / "journal.jsonl").is_file():
        return  # nothing is left that could be asked
    if not sys.stdin.isatty():
        raise UsageError("this costs money; --yes is needed where nobody can be asked")
    typer.confirm("Go on?", abort=True, err=True)


def paths(
    graph: Path = typer.Argument(
        ...,
        help="A decision graph: JSON (tree or edges), CSV, TSV or text of arrows, GraphML, Mermaid.",
    ),
    most: int = typer.Option(2, "--max-per-leaf", min=1, help="Ways kept to one leaf."),
    svg: Path | None = typer.Option(None, help="Write the picture of the graph here."),
) -> None:
    """Print the ways through a decision graph, from its root to its ends."""
    from medassay.publication.decision_graph import draw_decision_graph
    from medassay.synthesis.graph_file import load_graph
    from medassay.synthesis.pathway import count_paths, told_count
    from medassay.synthesis.pathway import paths as walk

    found = load_graph(graph)
    counts, kept = count_paths(found, most), walk(found, most)
    if svg is not None:
        svg.write_text(draw_decision_graph(found), encoding="utf-8")
    if out.json:
        rows = [
            {"steps": path.steps, "contents": path.contents, "text": path.text} for path in kept
        ]
        out.document(
            {
                "condition": found.condition,
                "nodes": counts.nodes,
                "leaves": counts.leaves,
                "ways": counts.ways if counts.ways < 2**53 else told_count(counts.ways),
                "paths": rows,
                "max_per_leaf": most,
            }
        )
        return
    for path in kept:
        out.result(path.text)
    out.say(
        f"{counts.nodes} nodes, {counts.leaves} leaves, {told_count(counts.ways)} ways, {counts.kept} kept (at most {most} a leaf)"
    )


def queue(folder: Path = _WORKSHOP) -> None:
    """Print what waits for a person: drafts, corrections, and what no model could finish."""
    from medassay.synthesis.decide import waiting
    from medassay.synthesis.workshop import read_workshop

    rows = waiting(read_workshop(folder))
    if out.json:
        out.document({"workshop": str(folder), "waiting": rows})
        return
    for row in rows:
        out.result(f"{row['handle']}  [{row['what']}]  {' '.join(row['why'].split())[:160]}")
    out.say(
        f"{len(rows)} wait; medassay bank decide {folder} accept|change|keep|remove NAME… --by WHO"
    )


def decide(
    folder: Path = _WORKSHOP,
    verb: str = typer.Argument(
        ..., help="accept, change, keep (what was there before), or remove."
    ),
    names: list[str] = typer.Argument(
        ...,
        metavar="NAME…",
        help="Ids of items, entries of the queue, or 'all' for every item that waits.",
    ),
    by: str = typer.Option(
        ..., "--by", help="Who decides; it stands in the journal and in the items."
    ),
    reason: str = typer.Option("", help="Why."),
    with_: Path | None = typer.Option(
        None, "--with", help="For change: a JSON file with what shall stand there."
    ),
) -> None:
    """Note what a person decides about items, corrections, or entries of the queue."""
    from medassay.core.jsontext import parse_json
    from medassay.synthesis.decide import VERBS
    from medassay.synthesis.decide import decide as note
    from medassay.synthesis.workshop import open_workshop, read_workshop

    known = [one for one in VERBS if one == verb]
    if not known:
        raise UsageError(f"'{verb}'; expected {', '.join(VERBS)}")
    change = None if with_ is None else parse_json(with_.read_bytes(), str(with_))
    read_workshop(folder)
    with open_workshop(folder) as workshop:
        handles = note(workshop, known[0], names, who=by, reason=reason, change=change)
        head = workshop.events[-1].hash
    if out.json:
        out.document({"decided": handles, "verb": verb, "by": by, "journal": head})
    else:
        out.result(f"{verb}: {len(handles)} noted, by {by}; journal {head}")


def flaws(
    runs: list[Path] = typer.Argument(
        ..., metavar="RUN…", help="Sealed runs of one bank, with the setting zero_shot."
    ),
    large: str = typer.Option(
        "",
        help="The two large models, comma-separated; default: the two of the largest stated size.",
    ),
    review: str = typer.Option(
        "",
        help="A model of another family that reviews each flawed item and proposes the simplest change.",
    ),
    bank: Path | None = typer.Option(None, help="--review: the bank's folder."),
    to: Path | None = typer.Option(None, help="--review: the workshop of the corrections."),
    models: Path = typer.Option(Path("models.json"), help="--review: the models file."),
    tools: Path | None = typer.Option(
        None,
        help="--review: a TOML file with a table [tools], as in a plan: the reviewer may search.",
    ),
) -> None:
    """Find items that are hard or flawed: wrong for both large models and for at least half of the small ones."""
    from medassay.cli.run import watch
    from medassay.storage.run import open_run
    from medassay.synthesis.flaws import flaws_of_runs
    from medassay.synthesis.reviewing import Commission, review_flaws

    named = [name.strip() for name in large.split(",") if name.strip()]
    found = flaws_of_runs([open_run(run) for run in runs], named)
    document = found.to_dict()
    if review:
        if bank is None or to is None:
            raise UsageError("--review needs --bank and --to")
        wanted = Commission(
            reviewer=review, models_file=models, bank=bank, tools=_tool_rules(tools)
        )
        document |= review_flaws(
            found, wanted, to, secrets=os.environ, workspace=Path.cwd(), watch=watch
        )
    elif bank is not None or to is not None or tools is not None:
        raise UsageError("--bank, --to and --tools go with --review")
    if out.json:
        out.document(document)
        return
    out.result(
        f"{found.selected.items} items; wrong for {' and '.join(found.large)}: {len(found.selected.candidates)}; wrong also for at "
        f"least half of {len(found.small)} small models: {len(found.selected.flaws)}"
    )
    if found.unsized:
        out.say(
            f"sizes not stated, taken as small: {', '.join(found.unsized)}; --large names the large ones"
        )
    for one in found.selected.flaws:
        types = document.get("reviewed", {}).get(one.item[1])
        told = (
            "" if types is None else f"; proposed type {', '.join(map(str, types)) or 'none'}"
        )
        out.result(
            f"  {one.item[1]}: {len(one.wrong_small)} of {one.n_small} small models wrong{told}"
        )
    for name, why in document.get("queue", {}).items():
        out.result(f"  no usable review of {name}: {why}")
    if to is not None:
        out.say(f"nothing is changed before a person decides: medassay bank queue {to}")


def _tool_rules(path: Path | None) -> Any:
    if path is None:
        return None
    from dataclasses import fields

    from pydantic import TypeAdapter

    from medassay.core.lookup import ToolRules
    from medassay.core.plan_file import read_toml, typed
    from medassay.errors import InputError

    given = read_toml(path, "--tools names a TOML file with a table [tools]").get("tools", {})
    known = {one.name for one in fields(ToolRules)}
    rules = typed(TypeAdapter(ToolRules), given, known, f"{path}: [tools]")
    if (problem := rules.problem()) is not None:
        raise InputError(f"{path}: {problem}")
    if "doc_retrieval" in rules.use:
        raise InputError(
            f"{path}: 'tools.use': doc_retrieval searches an index of a plan; leave it out here"
        )
    return rules


def votes(
    sheet: Path = typer.Argument(
        ..., help="A CSV with item, evaluator, vote (1 or 0): at least three votes an item."
    ),
    min_all: float = typer.Option(
        0.7,
        "--min-all",
        help="The set passes when all evaluators found at least this share right.",
    ),
    workshop: Path | None = typer.Option(
        None, help="Note what the votes decide about the drafts of this workshop."
    ),
    population: int | None = typer.Option(
        None,
        help="How many items these were drawn from: prints the margin of error of a share.",
    ),
) -> None:
    """Tell by how many evaluators items were found right, how often all agree, and whether the set passes; exit 1 if not."""
    from medassay.statistic.agreement.votes import margin_of_error
    from medassay.synthesis.votes import acceptance, decide_by_votes, read_ballot
    from medassay.synthesis.workshop import open_workshop, read_workshop

    ballot = read_ballot(sheet)
    margin = None if population is None else margin_of_error(len(ballot), population)
    found = acceptance(ballot, least_all=min_all)
    noted: dict[str, int] = {}
    if workshop is not None:
        read_workshop(workshop)
        with open_workshop(workshop) as opened:
            passed, removed = decide_by_votes(opened, ballot, found, sheet)
        noted = {"noted_accepted": passed, "noted_removed": removed}
    if out.json:
        out.document(
            {**found.to_dict(), **({} if margin is None else {"margin": margin}), **noted}
        )
    else:
        k = found.table.n_evaluators
        for at, one in enumerate(found.table.at_least, 1):
            out.result(f"right for at least {at} of {k}: {one}")
        out.result(f"all agree, right or wrong: {found.table.unanimous}")
        if margin is not None:
            out.result(f"margin of error, of {population} items: {100 * margin:.2f} points")
        out.result(f"pairs of evaluators that agree: {100 * found.table.pairwise:.1f}")
        verdict = "accepted" if found.accepted else "not accepted"
        out.result(
            f"the set is {verdict}: {100 * found.table.all_of_them.value:.1f} % for all, {100 * min_all:g} % needed"
        )
        if noted:
            out.result(
                f"noted: {noted['noted_accepted']} accepted, {noted['noted_removed']} removed"
            )
    if not found.accepted:
        raise typer.Exit(1)


def duplicates(
    banks: list[str] = typer.Argument(
        ..., metavar="BANK…", help="Folders of banks, or names of shipped ones."
    ),
    across: bool = typer.Option(False, "--across", help="Only pairs of different banks."),
) -> None:
    """Find items that ask the same, in one bank or in several; exit 1 if there are any. Quiz and open form of one question are none."""
    from medassay.bank.near import NearIndex, compared_text
    from medassay.cli.bank import load

    names: list[tuple[int, str, str]] = []  # place of the bank, its name, the item
    texts: list[str] = []
    for place, name in enumerate(banks):
        bank = load(name)
        for item in bank.items:
            names.append((place, bank.name, item.id))
            texts.append(compared_text(item))
    index = NearIndex(texts)
    pairs = {  # equal texts stand for each other: what one is near to, all are
        (min(a, b), max(a, b)): near
        for near in index.pairs()
        for a in index.equal_to(near.first)
        for b in index.equal_to(near.second) or [near.second]
        if a != b and _are_two(names[a], names[b], across=across)
    }
    found = sorted(
        (-near.similarity, names[a], names[b], near.by) for (a, b), near in pairs.items()
    )
    if out.json:
        rows = [
            {"first": list(a[1:]), "second": list(b[1:]), "similarity": round(-s, 4), "by": by}
            for s, a, b, by in found
        ]
        out.document({"items": len(texts), "pairs": rows})
    else:
        for similarity, first, second, by in found:
            out.result(
                f"{-similarity:.3f} {' '.join(first[1:])}  {' '.join(second[1:])} ({by})"
            )
        out.say(f"{len(found)} pairs among {len(texts)} items")
    if found:
        raise typer.Exit(1)


def _are_two(
    first: tuple[int, str, str], second: tuple[int, str, str], *, across: bool
) -> bool:
    """Return whether two items may be duplicates: quiz and open form of one question of a bank are one question."""
    if first[0] != second[0]:
        return True
    bases = {name.removesuffix("-quiz").removesuffix("-open") for *_, name in (first, second)}
    return not across and len(bases) == 2


def export(
    bank: str = typer.Argument(..., help="A bank's folder, or a shipped one's name."),
    form: str = typer.Option(
        ..., "--format", help="csv, parquet, hf (a Hugging Face data set) or lm-eval (tasks)."
    ),
    to: Path | None = typer.Option(
        None, help="New folder; default: by the bank's version and the format."
    ),
) -> None:
    """Write a bank for other tools, with card and licence; private items are refused."""
    from medassay.cli.bank import load
    from medassay.exchange.bank_export import export_bank

    found = load(bank)
    made = export_bank(found, form, to or Path(f"{found.version}-{form}"))
    files = sorted(str(path.relative_to(made)) for path in made.rglob("*") if path.is_file())
    if out.json:
        out.document({"path": str(made), "files": files})
    else:
        out.result(f"{made}: {', '.join(files)}")
