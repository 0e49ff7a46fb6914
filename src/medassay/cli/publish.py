"""`medassay publish RUN --to DIR`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.cli import location
from medassay.cli.options import TRUST_CODE
from medassay.cli.output import out
from medassay.core.ledger import LEDGER
from medassay.core.wording import counted, listed

if TYPE_CHECKING:
    from medassay.storage.run import Run


def command(
    runs: list[Path] = typer.Argument(
        ...,
        parser=location.read,
        metavar="runs",
        help="Sealed runs; several of the same banks and methodology are joined.",
    ),
    to: str = typer.Option(
        ..., help="The folder or address of the site; the publication goes to p/<id>/."
    ),
    called: str | None = typer.Option(
        None, "--id", help="Id of the publication; default: the run's id."
    ),
    reason: str = typer.Option(
        "", help="Why bank or methodology changed since the last publication; readers see it."
    ),
    validation: Path | None = typer.Option(
        None,
        help=(
            "A folder of .md or .txt documents: methodology, study, limitations, replies to"
            " criticism."
        ),
    ),
    compact: bool | None = typer.Option(
        None,
        "--compact/--no-compact",
        help=(
            "One page that reads the answers from files, not a page a cell; default: above 5,000"
            " cells or 200,000 answers."
        ),
    ),
    require_api: bool = typer.Option(
        False, "--require-api", help="Refuse models that others cannot call."
    ),
    with_code: bool = typer.Option(
        False, "--with-code", help="Publish own code that made the numbers, too."
    ),
    trust_code: bool = TRUST_CODE,
    key: Path | None = typer.Option(
        None, help="The private key that signs the log (`medassay keys new`)."
    ),
    yes: bool = typer.Option(False, "--yes", help="Do not ask before anything becomes public."),
) -> None:
    """Write the board of runs as a static site; what is published never changes.

    In a terminal it asks first.
    """
    from medassay.publishing.publish import About, publish
    from medassay.storage.run import open_run
    from medassay.storage.signature import Signer

    signer = None if key is None else Signer(key)
    opened = [open_run(run) for run in runs]
    asks = not yes and not out.json and sys.stdin.isatty()
    if asks:
        out.say(f"becomes public: {_what_is_public(opened)}")
        typer.confirm("Make that public?", abort=True)
    about = About(
        reason=reason,
        validation=validation,
        compact=compact,
        require_api=require_api,
        with_code=with_code,
        trust_code=trust_code,
    )
    with location.changing(to, last=LEDGER) as folder:
        page = publish(opened, folder, publication=called, signer=signer, about=about)
    if not asks:
        out.say(f"now public: {_what_is_public(opened)}")
    out.tell(
        {"path": location.location_text(page.parent), "page": location.location_text(page)},
        f"board {location.location_text(page)}",
    )


def _what_is_public(runs: "Sequence[Run]") -> str:
    """Return what everybody will be able to read."""
    banks = {bank.version: bank for run in runs for bank in run.manifest.banks}
    named = listed(
        [f"{version} ({counted(bank.items, 'item')})" for version, bank in banks.items()]
    )
    models = {name for run in runs for name in run.manifest.models}
    return (
        f"the questions, reports and targets of {named}, and all replies and scores of"
        f" {counted(len(models), 'model')} in {listed([run.id for run in runs])}. Of synthetic"
        " items only commitments and scores."
    )
