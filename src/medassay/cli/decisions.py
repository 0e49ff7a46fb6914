"""`medassay bank queue`, `decide`, `votes`: what waits for people, and their word on it."""

from pathlib import Path

import typer

from medassay.cli.output import out
from medassay.errors import UsageError

_WORKSHOP = typer.Argument(..., metavar="WORKSHOP", help="The folder in which items are made.")


def queue(folder: Path = _WORKSHOP) -> None:
    """Print what waits for a person: drafts, corrections, and what no model could finish."""
    from medassay.synthesis.decide import waiting
    from medassay.synthesis.project import read_workshop

    rows = waiting(read_workshop(folder))
    out.tell(
        {"workshop": str(folder), "waiting": rows},
        *(
            f"{row['handle']}  [{row['what']}]  {' '.join(row['why'].split())[:160]}"
            for row in rows
        ),
    )
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
    from medassay.core.json import parse_json
    from medassay.synthesis.decide import VERBS
    from medassay.synthesis.decide import decide as note
    from medassay.synthesis.project import open_workshop, read_workshop

    matches = [verb_known for verb_known in VERBS if verb_known == verb]
    if not matches:
        raise UsageError(f"'{verb}'; expected {', '.join(VERBS)}")
    change = None if with_ is None else parse_json(with_.read_bytes(), str(with_))
    read_workshop(folder)
    with open_workshop(folder) as workshop:
        handles = note(workshop, matches[0], names, who=by, reason=reason, change=change)
        head = workshop.events[-1].hash
    out.tell(
        {"decided": handles, "verb": verb, "by": by, "journal": head},
        f"{verb}: {len(handles)} noted, by {by}; journal {head}",
    )


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
    """Tell by how many evaluators items were found right, how often all agree, and whether the set
    passes; exit 1 if not.
    """
    from medassay.statistic.agreement.votes import margin_of_error
    from medassay.synthesis.project import open_workshop, read_workshop
    from medassay.synthesis.votes import acceptance, decide_by_votes, read_ballot

    ballot = read_ballot(sheet)
    margin = None if population is None else margin_of_error(len(ballot), population)
    result = acceptance(ballot, least_all=min_all)
    noted: dict[str, int] = {}
    if workshop is not None:
        read_workshop(workshop)
        with open_workshop(workshop) as opened:
            passed, removed = decide_by_votes(opened, ballot, result, sheet)
        noted = {"noted_accepted": passed, "noted_removed": removed}
    table = result.table
    lines = [
        *(
            f"right for at least {at} of {table.n_evaluators}: {count}"
            for at, count in enumerate(table.at_least, 1)
        ),
        f"all agree, right or wrong: {table.unanimous}",
    ]
    if margin is not None:
        lines.append(f"margin of error, of {population} items: {100 * margin:.2f} points")
    verdict = "accepted" if result.accepted else "not accepted"
    lines += [
        f"pairs of evaluators that agree: {100 * table.pairwise:.1f}",
        f"the set is {verdict}: {100 * table.all_of_them.value:.1f} % for all,"
        f" {100 * min_all:g} % needed",
    ]
    if noted:
        lines.append(f"noted: {passed} accepted, {removed} removed")
    more = noted if margin is None else {"margin": margin, **noted}
    out.tell({**result.to_dict(), **more}, *lines)
    if not result.accepted:
        raise typer.Exit(1)
