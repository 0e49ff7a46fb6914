"""`medassay publish RUN --to DIR`."""

from pathlib import Path

import typer

from medassay.cli.output import out


def command(
    run: Path = typer.Argument(..., help="The folder of a sealed run."),
    to: Path = typer.Option(..., help="The site folder; the publication goes to p/<id>/."),
    called: str | None = typer.Option(
        None, "--id", help="Id of the publication; default: the run's id."
    ),
    compact: bool | None = typer.Option(
        None,
        "--compact/--no-compact",
        help="One page that reads the answers from files, not a page a cell; default: above 5,000 cells.",
    ),
    key: Path | None = typer.Option(
        None, help="The private key that signs the log (`medassay keys new`)."
    ),
) -> None:
    """Write a run's board as a static site; what is published never changes."""
    from medassay.audit.publish import publish
    from medassay.storage.run import open_run
    from medassay.storage.signature import Signer

    signer = None if key is None else Signer(key)
    found = open_run(run)
    banks = ", ".join(bank["version"] for bank in found.manifest["banks"])
    page = publish(found, to, publication=called, signer=signer, compact=compact)
    out.say(
        f"public are now: all questions, targets, replies and scores of {banks} in run {found.id}"
    )
    if out.json:
        out.document({"path": str(page.parent), "page": str(page)})
    else:
        out.result(f"board {page}")
