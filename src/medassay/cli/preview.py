"""What a command would ask, cost and execute: shown beforehand, and asked where it matters."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.cli.output import out
from medassay.errors import UsageError

if TYPE_CHECKING:
    from medassay.core.records.own_code import OwnTask
    from medassay.core.records.preview import ModelPreview, Preview, TaskPreview


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
    if not sys.stdin.isatty():
        names = ", ".join(cost.unpriced)
        why = f"nobody knows what {names} costs (no price)" if names else "this costs money"
        raise UsageError(f"{why}; --yes is needed where nobody can be asked")
    typer.confirm("Go on?", abort=True, err=True)


def print_preview(cost: "Preview", *, to_stderr: bool = False) -> None:
    """Print calls, tokens and money, by model and in all."""
    if out.json and not to_stderr:
        out.tell(cost)
        return
    from medassay.core.records.leaderboard import fallback_lines

    tell = out.say if to_stderr else out.result
    tasks = map(_task_text, cost.tasks)
    for line in (*tasks, *cost.own_code, *fallback_lines(cost.fallback), *cost.limits):
        tell(line)
    for model in cost.models:
        price = f"{model.money:.4f} {model.currency}" if model.price_known else "price unknown"
        tell(
            f"{model.model}: {model.calls} calls, {model.stored} stored, at most "
            f"{model.tokens} tokens, {price}"
            + _reply_limit_text(model, "at most " if len(cost.tasks) > 1 else "")
            + (f", replicas with --engine ray: {model.replicas}" if model.replicas else "")
        )
    money = f", {cost.money:.4f} in money" if cost.money or not cost.unpriced else ""
    besides = f"; price unknown: {', '.join(cost.unpriced)}" if cost.unpriced else ""
    tell(f"in all: {cost.calls} calls, at most {cost.tokens} tokens{money}{besides}")
    if spent := cost.spent:
        tell(
            f"spent by now: {spent.calls} calls, {spent.tokens} tokens, {spent.money:.4f} in money"
        )
    for warning in cost.warnings or ():
        tell(f"warning: {warning}")


def _task_text(task: "TaskPreview") -> str:
    """Return which items a task asks, and how their answers are scored."""
    forms = ", ".join(f"{n} {form}" for form, n in task.items.items())
    n = sum(task.items.values())
    by = f"{task.metric}, by judges" if task.judged else task.metric
    return f"task {task.task}: {n} item{'s' * (n > 1)} ({forms}), scored by {by}"


def _reply_limit_text(model: "ModelPreview", at_most: str) -> str:
    """Return what is sent of the length of a reply; several tasks may each have a limit."""
    if not model.max_tokens:
        return ""
    ends = " or ".join(repr(text) for text in model.stop or ())
    return f", max_tokens {at_most}{model.max_tokens}" + (
        f", stop at {ends}" if ends else ", no stop text"
    )


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
    if not sys.stdin.isatty():
        raise UsageError(
            f"{where}: executes code that is no part of medassay; read it, then say --trust-code"
        )
    typer.confirm("Execute this code?", abort=True, err=True)
    return True
