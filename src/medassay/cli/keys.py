"""`medassay keys …`: the key that signs a site's ledger."""

from pathlib import Path

import typer

from medassay.cli.options import group
from medassay.cli.output import out

app = group("Make and show the key that signs a log.")


@app.command()
def new(
    file: Path = typer.Argument(..., help="Where the private key goes; outside of every site."),
) -> None:
    """Write a new private Ed25519 key, readable by its owner only, and print its public key."""
    from medassay.storage.signature import new_key

    _tell(new_key(file), file)
    out.say(
        "keep the file secret and safe; give readers the public key by another way than the site"
    )


@app.command()
def show(file: Path = typer.Argument(..., help="A private key.")) -> None:
    """Print the public key of a private one."""
    from medassay.storage.signature import Signer

    _tell(Signer(file).public, file)


def _tell(public: str, file: Path) -> None:
    out.tell({"public_key": public, "file": str(file)}, f"public key {public}")
