"""`medassay clean [WORKSPACE]`."""

from enum import StrEnum
from pathlib import Path

import typer

from medassay.cli.output import out
from medassay.cli.preview import confirm
from medassay.errors import InputError


class LeftoverKind(StrEnum):
    """What is looked for."""

    unfinished = "unfinished"
    superseded = "superseded"
    orphaned = "orphaned"


def command(
    workspace: Path = typer.Argument(Path(), help="The folder of runs/ and responses/."),
    only: LeftoverKind | None = typer.Option(None, help="Only what is of this kind."),
    site: list[Path] = typer.Option(
        [],
        help="A site elsewhere whose runs are kept, as those of sites below the workspace are.",
    ),
    yes: bool = typer.Option(False, "--yes", help="Remove without asking."),
) -> None:
    """Show what nobody needs any more (unfinished and superseded runs, orphaned files), and remove
    it after asking.

    Runs that a site, its ledger or a later run names are kept, and replies that were paid for
    always are.
    """
    from medassay.storage.leftover import leftovers, remove

    if not (workspace / "runs").is_dir() and not (workspace / "responses").is_dir():
        raise InputError(f"{workspace}: no workspace; expected a folder with runs/ or responses/")
    chosen = [
        leftover for leftover in leftovers(workspace, site) if only is None or leftover.kind == only
    ]
    size = sum(leftover.size for leftover in chosen)
    if out.json and not yes:
        rows = [
            {
                "path": str(leftover.path),
                "kind": leftover.kind,
                "why": leftover.why,
                "bytes": leftover.size,
            }
            for leftover in chosen
        ]
        out.document({"leftovers": rows, "bytes": size})
        return
    tell = out.say if out.json else out.result
    for leftover in chosen:
        tell(
            f"{leftover.kind}: {leftover.path.relative_to(workspace)}: {leftover.why},"
            f" {_units(leftover.size)}"
        )
    if not chosen:
        tell("nothing to remove")
    if chosen and not yes:
        confirm(
            f"Remove these {len(chosen)} for good ({_units(size)})?",
            "--yes is needed to remove these where nobody can be asked",
        )
    freed = remove(chosen)
    out.tell(
        {"removed": [str(leftover.path) for leftover in chosen], "bytes": freed},
        *([f"{len(chosen)} removed, {_units(freed)} freed"] if chosen else []),
    )


def _units(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size} bytes"
