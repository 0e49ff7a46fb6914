"""`medassay import …`: runs of others."""

from pathlib import Path

import typer

from medassay.cli.bank import read_columns
from medassay.cli.output import out

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
    from medassay import pipeline
    from medassay.cli.report import print_leaderboard
    from medassay.exchange.predictions import import_predictions

    run = import_predictions(table, read_columns(columns), to=to)
    board = pipeline.leaderboard(run)
    if out.json:
        out.document({"run": run.id, "path": str(run.path), "domains": board.domains})
        return
    print_leaderboard(board, run, "overall")
    out.result(f"run {run.path}")
