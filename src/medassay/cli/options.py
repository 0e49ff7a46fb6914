"""Options that several commands share, and how lists in options are read."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.errors import InputError, UsageError

if TYPE_CHECKING:
    from medassay.core.records.item import Bank


def group(says: str) -> typer.Typer:
    """Return a group of commands that shows its help when none is named."""
    return typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=says)


def _engine_name(name: str) -> str:
    from medassay.runner.engine.catalog import refuse_unknown

    try:
        refuse_unknown(name)
    except InputError as error:
        raise UsageError(f"--engine: {error}") from None
    return name


TRUST_CODE = typer.Option(
    False, "--trust-code", help="Execute own code that made, or shall make, the numbers."
)
ENGINE = typer.Option(
    "local",
    callback=_engine_name,
    help="local: this process; ray: the workers of a Ray cluster, extra [ray].",
)
WORKSPACE = typer.Option(
    ".", help="Folder of responses/ and other stores, or an address as s3://bucket/work."
)
AGAIN = typer.Option(
    [],
    help=(
        "Ask once more what a name in the output stands for, or failed for all of which no reply"
        " could be used."
    ),
)


def listed(text: str) -> list[str]:
    """Return the parts of an option's comma-separated list."""
    return [part for part in (part.strip() for part in text.split(",")) if part]


def load_bank_argument(bank: str, *, check: bool = True) -> "Bank":
    """Return a bank by folder, or by name if it is shipped."""
    from medassay.bank.find import find_bank, is_shipped
    from medassay.bank.folder import load_bank

    # The workspace that `medassay demo` makes has the name of a bank that is shipped.
    if (Path(bank) / "bank.toml").exists() or (Path(bank).is_dir() and not is_shipped(bank)):
        return load_bank(bank, check=check)
    return find_bank(bank, Path.cwd(), Path("banks.lock"))
