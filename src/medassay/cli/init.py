"""`medassay init FOLDER`: a starter folder."""

from importlib.resources import files
from pathlib import Path

import typer

from medassay.cli.output import out
from medassay.errors import InputError

_FILES = ("plan.toml", "models.json")


def command(folder: Path = typer.Argument(Path(), help="Where; made if need be.")) -> None:
    """Write a plan and a models file with example entries for common endpoints."""
    source = files("medassay.cli") / "starter"
    existing = [name for name in _FILES if (folder / name).exists()]
    if existing:
        raise InputError(f"{folder}: {', '.join(existing)} exists; nothing was written")
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        (folder / name).write_text((source / name).read_text(encoding="utf-8"), encoding="utf-8")
    out.tell(
        {"path": str(folder), "files": list(_FILES)},
        f"{folder}: wrote {' and '.join(_FILES)}",
        'Set "enabled": true for the models you have, then: medassay run plan.toml --plan',
    )
