"""`medassay demo`: the whole path on the demo bank with a small real model."""

import os
from importlib.resources import files
from pathlib import Path

import typer

from medassay.cli.output import out


def command(
    folder: Path = typer.Argument(
        Path("demo"), help="Workspace of the demo; a second run replays."
    ),
) -> None:
    """Run the demo plan and write its board: 60 items, SmolLM2-135M, three baselines."""
    from medassay import pipeline
    from medassay.audit.publish import publish
    from medassay.cli.report import print_leaderboard
    from medassay.cli.run import watch

    source = files("medassay.cli") / "demo_plan"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("plan.toml", "models.json"):
        (folder / name).write_text(
            (source / name).read_text(encoding="utf-8"), encoding="utf-8"
        )
    run = pipeline.run(folder / "plan.toml", secrets=os.environ, watch=watch)
    board = pipeline.leaderboard(run)
    page = publish(run, folder / "site")
    if out.json:
        out.document(
            {"run": run.id, "path": str(run.path), "board": str(page), "domains": board.domains}
        )
        return
    print_leaderboard(board, run, "overall")
    out.result(f"run   {run.path}")
    out.result(f"board {page}")
