"""What a command would ask, cost and execute: shown beforehand, and asked where it matters."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.cli.output import out
from medassay.errors import UsageError

if TYPE_CHECKING:
    from medassay.core.records.own_code import OwnTask
    from medassay.core.records.preview import Preview


def confirm(question: str, refusal: str) -> None:
    """Ask, and stop where the answer is no; refuse where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError(refusal)
    typer.confirm(question, abort=True, err=True)


def confirm_cost(cost: "Preview", *, again: str = "") -> None:
    """Show what would be paid and ask; refuse where nobody can be asked.

    Parameters
    ----------
    again : what is asked once more besides, of which nobody counts the cost
    """
    if cost.money == 0 and not cost.unpriced and not again:
        return
    if again:
        out.say(f"replies that could not be used ({again}) are asked once more, besides:")
    print_preview(cost, to_stderr=True)
    names = ", ".join(cost.unpriced)
    why = f"nobody knows what {names} will cost" if names else "this costs money"
    confirm("Go on?", f"{why}; --yes is needed where nobody can be asked")


def print_preview(cost: "Preview", *, to_stderr: bool = False) -> None:
    """Print calls, tokens and money, by model and in all."""
    if out.json and not to_stderr:
        out.tell(cost)
        return
    tell = out.say if to_stderr else out.result
    for line in cost.lines:
        tell(line)


def confirm_code(task: "OwnTask", base: Path, where: str) -> bool:
    """Say which code a task of the user's would execute, and ask; refuse where nobody can be asked.

    Parameters
    ----------
    base : the folder that its files are relative to
    where : names the plan

    Returns
    -------
    bool
        Whether it may be executed; False for tasks without code.
    """
    from medassay.own_code.find import described, own_code

    code = own_code(task, base)
    if not code.parts:
        return False
    for line in described(code):
        out.say(line)
    confirm(
        "Execute this code?",
        f"{where}: executes code that is no part of medassay; read it, then say --trust-code",
    )
    return True
