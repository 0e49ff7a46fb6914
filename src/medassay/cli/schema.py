"""`medassay schema [NAME]`: the JSON Schemas of medassay's files."""

from importlib.resources import files

import typer

from medassay.cli.output import out
from medassay.errors import InputError

SHIPPED = files("medassay") / "schemas"


def shipped() -> list[str]:
    """Return the names of the schemas."""
    return sorted(path.name.partition(".")[0] for path in SHIPPED.iterdir() if path.is_file())


def schema_text(name: str) -> str:
    """Return the text of a schema."""
    return (SHIPPED / f"{name}.schema.json").read_text(encoding="utf-8")


def command(
    name: str = typer.Argument("", help="Of which file; without it, the names of all."),
) -> None:
    """Print the JSON Schema of a file: plan, suite, models, item, trial, score, and others.

    `medassay init` writes those of plan and models file beside them, so that editors complete.
    """
    from medassay.core.json import parse_json

    names = shipped()
    if not name:
        out.tell({"schemas": names}, *names)
        return
    if name not in names:
        raise InputError(f"schema '{name}' is unknown; known are {', '.join(names)}")
    text = schema_text(name)
    out.tell(parse_json(text.encode(), name), text.rstrip("\n"))
