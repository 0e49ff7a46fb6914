"""`medassay import …`: runs of others."""

from pathlib import Path

import typer

from medassay.cli.bank import read_columns

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Make a run from finished predictions of others.",
)


@app.callback()
def _group() -> None:
    """Make a run from finished predictions of others."""


@app.command()
def csv(
    table: Path = typer.Argument(..., help="A CSV table, one row a prediction."),
    columns: str = typer.Option(
        ...,
        help="item=…,model=…,domain=… and prediction=…,key=… or score=…; also setting, mode, repeat, cluster.",
    ),
    to: Path | None = typer.Option(
        None, help="The run's folder; default: runs/import-<hash>-<n>."
    ),
) -> None:
    """Import a table of predictions: intervals, ranks and boards then work on it."""
    from medassay.cli.report import tell_run
    from medassay.exchange.predictions import import_predictions

    tell_run(import_predictions(table, read_columns(columns), to=to))


@app.command()
def healthbench(
    file: Path = typer.Argument(..., help="HealthBench results: one JSON object a line."),
    model: str = typer.Option(..., help="The model that gave the answers."),
    to: Path | None = typer.Option(
        None, help="The run's folder; default: runs/import-<hash>-<n>."
    ),
) -> None:
    """Import answers with a verdict for each criterion: scores, tags and every verdict on a board."""
    from medassay.cli.report import tell_run
    from medassay.exchange.healthbench import import_healthbench

    tell_run(import_healthbench(file, model=model, to=to))
