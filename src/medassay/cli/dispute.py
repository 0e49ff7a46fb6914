"""`medassay dispute …`: numbers that somebody holds to be wrong."""

from pathlib import Path

import typer

from medassay.cli import location
from medassay.cli.options import group
from medassay.cli.output import out
from medassay.core.ledger import LEDGER
from medassay.core.records.dispute import DisputedThing

app = group("Enter that a number is disputed, what was checked, and what was decided.")
_SITE = typer.Argument(..., help="The folder or address of the site.")
_NUMBER = typer.Argument(..., help="The number of the dispute.")
_KEY = typer.Option(None, help="The private key that signs the log (`medassay keys new`).")


@app.command("open")
def open_(
    site: str = _SITE,
    publication: str = typer.Argument(..., help="The publication's id."),
    claim: str = typer.Option(..., help="What is held to be wrong, and why; readers see it."),
    model: str = typer.Option("", help="The model that the claim is about."),
    item: str = typer.Option("", help="The item that it is about: its id, or domain/id."),
    answer: str = typer.Option("", help="The answer that it is about: the sha256 of its page."),
    by: str = typer.Option("", help="Who claims it; readers see it."),
    key: Path | None = _KEY,
) -> None:
    """Open a dispute about a publication: the claim gets a page and a line of the log."""
    from medassay.publishing.disputes import open_dispute
    from medassay.storage.signature import Signer

    signer = None if key is None else Signer(key)
    with location.changing(site, last=LEDGER) as folder:
        number = open_dispute(
            folder,
            publication,
            claim,
            about=DisputedThing(model=model, item=item, answer=answer),
            by=by,
            signer=signer,
        )
    out.tell(
        {"dispute": number, "publication": publication, "page": f"dispute/{number}/index.html"},
        f"dispute {number} about {publication} is open: dispute/{number}/index.html",
    )


@app.command()
def answer(
    site: str = _SITE,
    number: int = _NUMBER,
    checked: str = typer.Option(..., help="What was checked, and what came out; readers see it."),
    key: Path | None = _KEY,
) -> None:
    """Say what was checked of an open dispute."""
    from medassay.publishing.disputes import answer_dispute
    from medassay.storage.signature import Signer

    signer = None if key is None else Signer(key)
    with location.changing(site, last=LEDGER) as folder:
        answer_dispute(folder, number, checked, signer=signer)
    out.tell({"dispute": number, "step": "answer"}, f"dispute {number}: what was checked is told")


@app.command()
def close(
    site: str = _SITE,
    number: int = _NUMBER,
    decision: str = typer.Option(
        ..., help="upheld (the number is wrong), rejected (it is right) or withdrawn."
    ),
    reason: str = typer.Option(..., help="Why; readers see it."),
    following: str | None = typer.Option(
        None, "--next", help="The publication that holds the correction."
    ),
    key: Path | None = _KEY,
) -> None:
    """Decide an open dispute; `medassay status` says what becomes of the publication."""
    from medassay.publishing.disputes import close_dispute
    from medassay.storage.signature import Signer

    signer = None if key is None else Signer(key)
    with location.changing(site, last=LEDGER) as folder:
        close_dispute(folder, number, decision, reason=reason, following=following, signer=signer)
    out.tell(
        {"dispute": number, "decision": decision, "reason": reason}, f"dispute {number}: {decision}"
    )
    if decision == "upheld":
        out.say("the publication keeps its status: change it with medassay status")
