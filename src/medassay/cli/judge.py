"""`medassay judge RUN`: judge the stored answers of a run again."""

import os
import sys
from pathlib import Path

import typer

from medassay.cli import location
from medassay.cli.options import ENGINE, listed
from medassay.cli.output import out
from medassay.errors import UsageError


def command(  # noqa: PLR0913, PLR0917 -- each is an option of the command
    run: Path = typer.Argument(
        ..., parser=location.read, metavar="run", help="The folder or address of a sealed run."
    ),
    panel: str = typer.Option(
        "",
        help="The judges: entries of the models file, comma-separated (three for target facts).",
    ),
    task: str = typer.Option(
        "",
        help="How to judge: open, leaderboard, g_eval, prometheus …; default: the run's task.",
    ),
    models: Path = typer.Option(Path("models.json"), help="The models file with the judges."),
    substitute: str = typer.Option(
        "", help="A judge of a fourth family, in place of a judge of the tested model's family."
    ),
    allow_own: bool = typer.Option(
        False, "--allow-own", help="Let a model judge itself; the board says so."
    ),
    steps: Path | None = typer.Option(
        None, help="Evaluation steps of G-Eval from `medassay study steps`, reviewed."
    ),
    graph: list[str] = typer.Option(
        [], help="Tasks of graphs: a graph by name or file; the first one's score counts."
    ),
    preview: bool = typer.Option(
        False, "--plan", help="Say what would be asked and cost; call nothing."
    ),
    yes: bool = typer.Option(False, "--yes", help="Do not ask before paid calls."),
    accept_failures: bool = typer.Option(
        False, "--accept-failures", help="Seal although verdicts are missing; null and counted."
    ),
    again: str = typer.Option(
        "",
        help=(
            "In place of --panel: ask judges of the run once more where nothing in their reply"
            " could be used: unusable, or unusable:JUDGE for one alone; all other verdicts stay."
        ),
    ),
    engine: str = ENGINE,
) -> None:
    """Judge stored answers again; no tested model is asked, nothing earlier is overwritten."""
    from medassay.cli.leaderboard import tell_run
    from medassay.cli.progress import watch
    from medassay.cli.run import confirm, print_preview
    from medassay.runner.again import (
        JudgingOptions,
        is_paid,
        judge_again,
        judge_run,
        preview_again,
    )
    from medassay.runner.preview import priced
    from medassay.runner.retrying import told_unusable

    if bool(panel) == bool(again):
        raise UsageError(
            "either --panel names who judges, or --again what its judges are asked once more"
        )
    if again:
        if not yes and is_paid(run):
            if not sys.stdin.isatty():
                raise UsageError(
                    "judges of this run cost money, or have no price; --yes is needed where nobody"
                    " can be asked"
                )
            typer.confirm(
                "Judges of this run cost money, or have no price. Go on?", abort=True, err=True
            )
        judged = judge_again(
            run,
            again,
            models_file=models,
            secrets=os.environ,
            watch=watch,
            accept_failures=accept_failures,
            engine=engine,
        )
        tell_run(judged)
        for line in told_unusable(judged):
            out.say(line)
        return

    sitting = JudgingOptions(
        judges=listed(panel),
        models_file=models,
        task=task,
        substitute=substitute,
        allow_own=allow_own,
        steps=steps,
        graphs=graph,
    )
    if preview:
        print_preview(preview_again(run, sitting))
        return
    if not yes and priced(models, (*sitting.judges, substitute)):
        confirm(preview_again(run, sitting))
    judged = judge_run(
        run,
        sitting,
        secrets=os.environ,
        watch=watch,
        accept_failures=accept_failures,
        engine=engine,
    )
    tell_run(judged)
