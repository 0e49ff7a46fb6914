"""`medassay metrics …`: which metrics of texts are here, and how the others come."""

import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import typer

from medassay.cli.options import group
from medassay.cli.output import out
from medassay.errors import UsageError

app = group("Metrics of texts: which are here, how others come.")


@app.command("list")
def list_metrics() -> None:
    """Print every metric of texts, with the model it would use here, or why it is unavailable."""
    from medassay.errors import UnavailableError
    from medassay.score.catalog import TEXT_MEASURES
    from medassay.score.text import LEXICAL

    metrics = [(name, True, "needs no model") for name in LEXICAL]
    for name, make in TEXT_MEASURES.items():
        try:
            metrics.append((name, True, make("").id))
        except UnavailableError as error:
            metrics.append((name, False, str(error)))
    out.tell(
        {
            "metrics": [
                {"name": name, "available": is_here, "says": says}
                for name, is_here, says in metrics
            ]
        },
        *(
            f"{name:<16} {'here' if is_here else 'unavailable':<12} {says}"
            for name, is_here, says in metrics
        ),
    )


@app.command("install")
def install(
    what: str = typer.Argument(..., help="legacy: BLEURT, F1-RadGraph and CheXbert."),
    python: str = typer.Option(
        "", help="The Python to make the environment with; default: this one."
    ),
) -> None:
    """Make the environment of metrics whose libraries cannot live beside ours: 1.6 GB, in the
    user's data folder.
    """
    from medassay.score.legacy.client import legacy_folder
    from medassay.score.legacy.install_torch import install_torch

    if what != "legacy":
        raise UsageError(f"metrics install: '{what}' is unknown; known is legacy")
    folder = legacy_folder()
    if (folder / "ready").exists():
        out.result(f"{folder}: is there already")
        return
    lock = Path(str(files("medassay.score.legacy") / "requirements.txt"))
    interpreter = str(folder / "bin" / "python")
    pip = [interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]

    def run(*command: str) -> bool:
        return subprocess.run(command, check=False, stdout=sys.stderr).returncode == 0

    steps: tuple[tuple[str, Callable[[], bool]], ...] = (
        (
            "making an environment",
            lambda: run(python or sys.executable, "-m", "venv", "--clear", str(folder)),
        ),
        ("installing torch", lambda: install_torch(interpreter, out.say)),
        (
            "installing the metrics",
            lambda: run(*pip, "--require-hashes", "--no-deps", "-r", str(lock)),
        ),
    )
    for description, do in steps:
        out.say(f"{description} …")
        if not do():
            raise UsageError(
                f"metrics install: {description} failed, see above; the same command tries again"
            )
    (folder / "ready").touch()
    out.result(f"{folder}: ready; models are fetched apart, see `medassay metrics list`")
