"""`medassay judge RUN`: judge the stored answers of a run again."""

import os
from pathlib import Path

import typer

from medassay.cli import location
from medassay.cli.leaderboard import tell_run
from medassay.cli.options import ENGINE, TRUST_CODE, listed
from medassay.cli.output import out
from medassay.cli.progress import watch
from medassay.errors import UsageError

_RUN = typer.Argument(
    ..., parser=location.read, metavar="run", help="The folder or address of a sealed run."
)
_PANEL = typer.Option(
    "",
    help="The judges: entries of the models file, comma-separated (three for target facts).",
)
_TASK = typer.Option(
    "",
    help="How to judge: open, leaderboard, g_eval, prometheus …; default: the run's task.",
)
_MODELS = typer.Option(Path("models.json"), help="The models file with the judges.")
_SUBSTITUTE = typer.Option(
    "", help="A judge of a fourth family, in place of a judge of the tested model's family."
)
_ALLOW_OWN = typer.Option(False, "--allow-own", help="Let a model judge itself; the board says so.")
_STEPS = typer.Option(
    None, help="Evaluation steps of G-Eval from `medassay study steps`, reviewed."
)
_GRAPH = typer.Option(
    [], help="Tasks of graphs: a graph by name or file; the first one's score counts."
)
_PREVIEW = typer.Option(False, "--plan", help="Say what would be asked and cost; call nothing.")
_YES = typer.Option(False, "--yes", help="Do not ask before paid calls.")
_ACCEPT_FAILURES = typer.Option(
    False, "--accept-failures", help="Seal although verdicts are missing; null and counted."
)
_AGAIN = typer.Option(
    "",
    help=(
        "In place of --panel: ask judges of the run once more where nothing in their reply"
        " could be used: unusable, or unusable:JUDGE for one alone; all other verdicts stay."
    ),
)


def command(
    run: Path = _RUN,
    panel: str = _PANEL,
    task: str = _TASK,
    models: Path = _MODELS,
    substitute: str = _SUBSTITUTE,
    allow_own: bool = _ALLOW_OWN,
    steps: Path | None = _STEPS,
    graph: list[str] = _GRAPH,
    preview: bool = _PREVIEW,
    yes: bool = _YES,
    accept_failures: bool = _ACCEPT_FAILURES,
    again: str = _AGAIN,
    trust_code: bool = TRUST_CODE,
    engine: str = ENGINE,
) -> None:
    """Judge stored answers again; no tested model is asked, nothing earlier is overwritten."""
    from medassay.cli.preview import confirm, confirm_cost, print_preview
    from medassay.model.spec import load_models
    from medassay.runner.preview import priced
    from medassay.runner.rejudge import (
        JudgingOptions,
        is_paid,
        judge_again,
        judge_run,
        preview_again,
    )
    from medassay.runner.retrying import unusable_lines

    if bool(panel) == bool(again):
        raise UsageError(
            "either --panel names who judges, or --again what its judges are asked once more"
        )
    if again:
        if not yes and is_paid(run):
            why = "judges of this run cost money, or have no price"
            confirm(
                f"{why.capitalize()}. Go on?", f"{why}; --yes is needed where nobody can be asked"
            )
        judged = judge_again(
            run,
            again,
            models_file=models,
            secrets=os.environ,
            watch=watch,
            accept_failures=accept_failures,
            engine=engine,
            trust_code=trust_code,
        )
        tell_run(judged)
        for line in unusable_lines(judged):
            out.say(line)
        return
    options = JudgingOptions(
        judges=listed(panel),
        models_file=models,
        task=task,
        substitute=substitute,
        allow_own=allow_own,
        steps=steps,
        graphs=graph,
        trust_code=trust_code,
    )
    if preview:
        print_preview(preview_again(run, options))
        return
    if not yes and priced(load_models(models), (*options.judges, substitute)):
        confirm_cost(preview_again(run, options))
    judged = judge_run(
        run,
        options,
        secrets=os.environ,
        watch=watch,
        accept_failures=accept_failures,
        engine=engine,
    )
    tell_run(judged)
