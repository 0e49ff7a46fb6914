"""`medassay status SITE PUBLICATION STATE`."""

from pathlib import Path

import typer

from medassay.cli import location
from medassay.cli.output import out
from medassay.core.ledger import LEDGER


def command(
    site: str = typer.Argument(..., help="The folder or address of the site."),
    publication: str = typer.Argument(..., help="The publication's id."),
    state: str = typer.Argument(..., help="current, superseded, corrected or retracted."),
    reason: str = typer.Option(..., help="Why; readers see it."),
    following: str | None = typer.Option(None, "--next", help="The publication to read instead."),
    key: Path | None = typer.Option(
        None, help="The private key that signs the log (`medassay keys new`)."
    ),
) -> None:
    """Say that a publication is superseded, corrected or retracted; its bytes stay as they are."""
    from medassay.publishing.history import set_status
    from medassay.storage.signature import Signer

    signer = None if key is None else Signer(key)
    with location.changing(site, last=LEDGER) as folder:
        set_status(folder, publication, state, reason=reason, following=following, signer=signer)
    out.tell(
        {"publication": publication, "status": state, "reason": reason}, f"{publication} is {state}"
    )
