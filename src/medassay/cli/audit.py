"""`medassay audit …`: what only the holder of the private store can show."""

import json
from pathlib import Path

import typer

from medassay.cli.options import group
from medassay.cli.output import out

app = group("Open what a publication withholds.")


@app.command("open")
def open_(
    item: str = typer.Argument(..., help="The id of a synthetic item."),
    run: Path = typer.Option(..., help="The private run that holds its text."),
    publication: Path | None = typer.Option(
        None, help="The public folder p/<id> whose commitments it must match."
    ),
    model: str = typer.Option("", help="Only the answers of this model; default: of all."),
) -> None:
    """Show a synthetic item and the answers to it, and prove that they are what was published."""
    from medassay.publishing.opening import open_item
    from medassay.storage.run import open_run

    opened_items = open_item(open_run(run), item, model=model, publication=publication)
    lines = []
    for opened_item in opened_items:
        matches = "" if opened_item.public is None else ", as published"
        lines += [
            opened_item.what,
            json.dumps(opened_item.record, ensure_ascii=False, indent=1),
            f"salt {opened_item.salt}",
            f"sha256(salt, canonical record) = {opened_item.commitment}{matches}",
        ]
    out.tell({"item": item, "opened": [opened.to_dict() for opened in opened_items]}, *lines)
    if publication is None:
        out.say("no --publication given: nothing was compared with what is public")
