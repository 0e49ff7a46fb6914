"""`medassay export RUN --format …`."""

from pathlib import Path

import typer

from medassay.cli import location
from medassay.cli.output import out


def command(
    run: Path = typer.Argument(
        ...,
        parser=location.read,
        metavar="run",
        help="A sealed run, a publication, a suite, or another harness's log.",
    ),
    form: str = typer.Option(..., "--format", help="csv, jsonl, parquet or every-eval-ever."),
    to: Path | None = typer.Option(
        None,
        help=(
            "The file to write, for every-eval-ever and suites the folder; default: by the run's"
            " name."
        ),
    ),
) -> None:
    """Write every answer with its score for other tools. Private items are included."""
    from medassay.exchange.export import export
    from medassay.exchange.open_any import open_places
    from medassay.suite.places import runs_of, suites_among

    for suite in suites_among([run]):
        folder = to or Path(suite.folder.name)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [
            export(source, form, folder / (name if "-" in form else f"{name}.{form}"))
            for name, source in runs_of(suite)
        ]
        out.tell({"paths": [str(path) for path in paths]}, *(f"wrote {path}" for path in paths))
        return
    with open_places([run]) as [source]:
        target = to or Path(source.path.name if "-" in form else f"{source.path.name}.{form}")
        path = export(source, form, target)
    out.tell({"path": str(path)}, f"wrote {path}")
