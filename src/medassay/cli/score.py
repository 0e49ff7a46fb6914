"""`medassay score RUN`: score stored answers and verdicts anew."""

from pathlib import Path

import typer

from medassay.cli.output import out


def command(
    run: Path = typer.Argument(..., help="The folder of a sealed run."),
    contradiction_penalty: float | None = typer.Option(
        None, help="λ of target facts, 0 to 1; default: as the banks say."
    ),
) -> None:
    """Score the stored answers of a run with today's scorers; nothing earlier is overwritten."""
    from medassay import pipeline
    from medassay.cli.report import print_leaderboard

    found = pipeline.rescore(run, contradiction_penalty=contradiction_penalty)
    board = pipeline.leaderboard(found)
    if out.json:
        out.document({"run": found.id, "path": str(found.path), "domains": board.domains})
        return
    print_leaderboard(board, found, "overall")
    out.result(f"run {found.path}")
