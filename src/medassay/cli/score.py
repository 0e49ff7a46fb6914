"""`medassay score RUN`: score stored answers and verdicts anew."""

from pathlib import Path

import typer

from medassay.cli import location
from medassay.cli.options import ENGINE, TRUST_CODE


def command(
    run: Path = typer.Argument(
        ..., parser=location.read, metavar="run", help="The folder or address of a sealed run."
    ),
    contradiction_penalty: float | None = typer.Option(
        None, help="λ of target facts, 0 to 1; default: as the banks say."
    ),
    trust_code: bool = TRUST_CODE,
    engine: str = ENGINE,
) -> None:
    """Score the stored answers of a run with today's scorers; nothing earlier is overwritten."""
    from medassay.cli.leaderboard import tell_run
    from medassay.runner.rescore import rescore

    rescored = rescore(
        run, contradiction_penalty=contradiction_penalty, engine=engine, trust_code=trust_code
    )
    tell_run(rescored)
