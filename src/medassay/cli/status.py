"""`medassay status SITE PUBLICATION STATE`."""

from pathlib import Path

import typer

from medassay.cli.output import out


def command(
    site: Path = typer.Argument(..., help="The site folder."),
    publication: str = typer.Argument(..., help="The publication's id."),
    state: str = typer.Argument(..., help="current, superseded, corrected or retracted."),
    reason: str = typer.Option(..., help="Why; readers see it."),
    following: str | None = typer.Option(
        None, "--next", help="The publication to read instead."
    ),
) -> None:
    """Say that a publication is superseded, corrected or retracted; its bytes stay as they are."""
    from medassay.audit.publish import set_status

    set_status(site, publication, state, reason=reason, following=following)
    if out.json:
        out.document({"publication": publication, "status": state, "reason": reason})
    else:
        out.result(f"{publication} is {state}")
