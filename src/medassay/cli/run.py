"""`medassay run PLAN`."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.cli.options import ENGINE, TRUST_CODE
from medassay.cli.output import out
from medassay.cli.progress import watch
from medassay.errors import GateError, UsageError

if TYPE_CHECKING:
    from medassay.core.records.preview import ModelPreview, Preview, TaskPreview
    from medassay.storage.run import Run


_PLAN = typer.Argument(None, help="The plan, a TOML file.")
_PREVIEW = typer.Option(False, "--plan", help="Say what the run would ask and cost; call nothing.")
_YES = typer.Option(False, "--yes", help="Do not ask before paid calls.")
_FRESH = typer.Option(
    False,
    "--fresh",
    help=(
        "Call the models again and hold the run against the stored one: differences become"
        " findings, exit 1 beyond tolerance."
    ),
)
_ACCEPT_FAILURES = typer.Option(
    False,
    "--accept-failures",
    help=(
        "Seal although trials failed, or too few of a judge's verdicts can be used; they are"
        " null and counted."
    ),
)
_AGAIN = typer.Option(
    "",
    help=(
        "Ask once more what could not be used: empty, truncated, refused (replies), unusable"
        " (verdicts), comma-separated, with :MODEL for one alone. Of a sealed run this makes a"
        " new one. What failed is asked, too."
    ),
)
_WORKSPACE = typer.Option(
    None,
    help=(
        "Folder of runs/, responses/, banks.lock, or an address as s3://bucket/work; default:"
        " the plan's folder."
    ),
)
# Spellings of before `medassay suite run`.
_SUITE = typer.Option("", hidden=True)
_MODEL = typer.Option("", hidden=True)
_LIMIT = typer.Option(None, hidden=True)
_DATA = typer.Option(None, envvar="MEDASSAY_DATA", hidden=True)
_JUDGE = typer.Option("", hidden=True)
_METRIC = typer.Option("", hidden=True)


def command(
    plan: Path | None = _PLAN,
    preview: bool = _PREVIEW,
    yes: bool = _YES,
    fresh: bool = _FRESH,
    accept_failures: bool = _ACCEPT_FAILURES,
    again: str = _AGAIN,
    workspace: str | None = _WORKSPACE,
    trust_code: bool = TRUST_CODE,
    engine: str = ENGINE,
    suite: str = _SUITE,
    model: str = _MODEL,
    limit: int | None = _LIMIT,
    data: Path | None = _DATA,
    judge: str = _JUDGE,
    metric: str = _METRIC,
) -> None:
    """Ask all models of a plan; the same command resumes what was interrupted."""
    from medassay import pipeline
    from medassay.cli.leaderboard import tell_run
    from medassay.cli.suite import SuiteOptions, run_command
    from medassay.runner.preview import has_prices
    from medassay.runner.preview import preview as preview_plan
    from medassay.runner.retrying import unusable_lines
    from medassay.suite.plan import is_suite

    options = SuiteOptions(suite=suite, model=model, limit=limit, judge=judge, metric=metric)
    if plan is None or is_suite(plan):
        if preview or fresh or again or engine != "local":
            raise UsageError("--plan, --fresh, --again and --engine are for plans of one task")
        run_command(
            plan, options, data or Path("data"), workspace or "", accept_failures=accept_failures
        )
        return
    if options != SuiteOptions():
        raise UsageError("--suite, --model, --limit, --judge and --metric go without a plan")
    if preview:
        print_preview(preview_plan(plan, workspace=workspace))
        return
    trust_code = trust_code or _agreed(plan)
    if not yes and has_prices(plan):
        confirm(preview_plan(plan, workspace=workspace), again=again)
    result = pipeline.run(
        plan,
        secrets=os.environ,
        workspace=workspace,
        watch=watch,
        fresh=fresh,
        accept_failures=accept_failures,
        again=again,
        engine=engine,
        trust_code=trust_code,
        tell=out.say,
    )
    tell_run(result)
    for line in unusable_lines(result):
        out.say(line)
    if fresh:
        tell_rerun(result)


def _agreed(plan: Path) -> bool:
    """Say which own code a plan would execute, and ask; refuse where nobody can be asked.

    Returns
    -------
    bool
        Whether it may be executed; False for plans without own code.
    """
    from medassay.core.records.plan import load_plan
    from medassay.own_code.find import described, own_code_of

    own = own_code_of(load_plan(plan), plan.resolve().parent)
    if own is None or not own.parts:
        return False
    for line in described(own):
        out.say(line)
    if not sys.stdin.isatty():
        raise UsageError(
            f"{plan}: executes code that is no part of medassay; read it, then say --trust-code"
        )
    typer.confirm("Execute this code?", abort=True, err=True)
    return True


def tell_rerun(run: "Run") -> None:
    """Say how a fresh run differs from the stored one.

    A gate error where it leaves the tolerance.
    """
    from medassay.runner.replication import rerun_of

    rerun = rerun_of(run)
    if rerun is None:
        out.say("no stored run of this plan to hold it against; this one is the first")
        return
    beyond = rerun.beyond
    says = f"{rerun.differing} of {rerun.trials} trials differ from run {rerun.of.run}"
    if beyond:
        cells = ", ".join(f"{cell.model} in {cell.domain}" for cell in beyond[:5])
        more = f" and {len(beyond) - 5} more" if len(beyond) > 5 else ""
        raise GateError(f"{says}; beyond tolerance: {cells}{more}; the run is sealed, see findings")
    out.say(f"{says}, within tolerance")


def confirm(cost: "Preview", *, again: str = "") -> None:
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
