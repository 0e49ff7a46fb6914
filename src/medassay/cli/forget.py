"""`medassay forget ITEM`: what the law wants gone."""

import typer

from medassay.cli import location
from medassay.cli.output import out
from medassay.cli.preview import confirm
from medassay.core.clock import now


def command(
    item: str = typer.Argument(..., help="The id of the item."),
    reason: str = typer.Option(..., help="Why; it stands in every run that held the item."),
    domain: str = typer.Option("", help="Only the item of this domain."),
    workspace: str = typer.Option(".", help="Folder or address of runs/ and responses/."),
    yes: bool = typer.Option(False, "--yes", help="Do not ask before deleting."),
) -> None:
    """Delete an item's text and every reply about it from runs and response store.

    Hashes and scores stay.
    """
    from medassay.publishing.tombstone import forget

    if not yes:
        confirm(
            f"Delete the text of '{item}' and every reply about it for good?",
            "this deletes for good; --yes is needed where nobody can be asked",
        )
    at = now()
    with location.changing(workspace) as folder:
        forgotten = forget(item, folder, domain=domain, reason=reason, at=at)
    out.tell(
        {"item": item, "replies": forgotten.replies, "runs": forgotten.runs},
        f"{forgotten.replies} stored replies deleted; tombstones in {', '.join(forgotten.runs)}",
    )
    out.say(
        "banks, published sites, backups and versions that an object store keeps are yours to"
        " clean: nothing there was changed"
    )
