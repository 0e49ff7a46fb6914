"""`medassay run PLAN`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.cli.options import ENGINE, TRUST_CODE
from medassay.cli.output import out
from medassay.cli.preview import confirm_code, confirm_cost, print_preview
from medassay.cli.progress import watch
from medassay.errors import GateError, UsageError

if TYPE_CHECKING:
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
    from medassay.cli.suite import ExecutionOptions, SuiteOptions, run_command
    from medassay.core.plan_file import is_suite
    from medassay.core.records.plan import load_plan
    from medassay.runner.preview import has_prices
    from medassay.runner.preview import preview as preview_plan
    from medassay.runner.retrying import own_code_lines, unusable_lines

    options = SuiteOptions(suite=suite, model=model, limit=limit, judge=judge, metric=metric)
    if plan is None or is_suite(plan):
        if again:
            raise UsageError("--again is for plans of one task; a suite is asked anew with --fresh")
        how = ExecutionOptions(
            preview=preview,
            yes=yes,
            fresh=fresh,
            accept_failures=accept_failures,
            trust_code=trust_code,
            engine=engine,
        )
        run_command(plan, options, data or Path("data"), workspace or "", how)
        return
    if options != SuiteOptions():
        raise UsageError("--suite, --model, --limit, --judge and --metric go without a plan")
    if preview:
        print_preview(preview_plan(plan, workspace=workspace, fresh=fresh))
        return
    trusted = trust_code
    if not trust_code and (task := load_plan(plan).own) is not None:
        trusted = confirm_code(task, plan.resolve().parent, str(plan))
    if not yes and has_prices(plan):
        confirm_cost(preview_plan(plan, workspace=workspace, fresh=fresh), again=again)
    result = pipeline.run(
        plan,
        secrets=os.environ,
        workspace=workspace,
        watch=watch,
        fresh=fresh,
        accept_failures=accept_failures,
        again=again,
        engine=engine,
        trust_code=trusted,
        tell=out.say,
    )
    tell_run(result)
    for line in (*own_code_lines(result), *unusable_lines(result)):
        out.say(line)
    if fresh:
        tell_rerun(result)


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
