"""`medassay suite run | report | list`: benchmarks together, over some models."""

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer
from msgspec.structs import replace

from medassay.cli import location
from medassay.cli.options import ENGINE, TRUST_CODE, group, listed
from medassay.cli.output import out
from medassay.cli.sheet import refuse_taken, tell_sheet
from medassay.core.table import Table
from medassay.errors import GateError, InputError, UsageError

if TYPE_CHECKING:
    from medassay.core.records.model import ModelSpec
    from medassay.suite.plan import SuitePlan

app = group("Suites of benchmarks: ask models all of them, report every metric.")


@app.command("run")
def run(
    suite: str = typer.Argument(
        ...,
        help="A plan of a suite, a TOML file; or suites and benchmarks, comma-separated.",
    ),
    model: str = typer.Option(
        "",
        help=(
            "Without a plan: models, comma-separated: entries of models.json, folders of weights,"
            " embedded:smollm2."
        ),
    ),
    limit: int | None = typer.Option(
        None, help="Without a plan: test items of each benchmark; default: all."
    ),
    data: Path = typer.Option(
        Path("data"), envvar="MEDASSAY_DATA", help="The folder of data sets."
    ),
    judge: str = typer.Option(
        "", help="Without a plan: a model that grades open answers as Prometheus does."
    ),
    metric: str = typer.Option(
        "",
        help=(
            "Without a plan: where models of metrics are, comma-separated: bertscore=FOLDER,"
            " bleurt=none."
        ),
    ),
    workspace: str = typer.Option(
        "", help="Folder of suites/, runs/ and responses/; default: the plan's folder."
    ),
    preview: bool = typer.Option(
        False, "--plan", help="Say what all runs would ask and cost; banks are made, none is asked."
    ),
    yes: bool = typer.Option(False, "--yes", help="Do not ask before paid calls."),
    fresh: bool = typer.Option(
        False,
        "--fresh",
        help="Ask all of it anew and hold it against the stored runs; exit 1 beyond tolerance.",
    ),
    accept_failures: bool = typer.Option(
        False, "--accept-failures", help="Seal although trials failed; they are null and counted."
    ),
    trust_code: bool = TRUST_CODE,
    engine: str = ENGINE,
) -> None:
    """Ask models every task of a suite; the same command resumes what was interrupted."""
    plan = Path(suite) if suite.endswith(".toml") else None
    named = suite if plan is None else ""
    options = SuiteOptions(suite=named, model=model, limit=limit, judge=judge, metric=metric)
    how = ExecutionOptions(
        preview=preview,
        yes=yes,
        fresh=fresh,
        accept_failures=accept_failures,
        trust_code=trust_code,
        engine=engine,
    )
    run_command(plan, options, data, workspace, how)


@app.command("report")
def report(
    folder: Path = typer.Argument(
        ..., parser=location.read, metavar="suite", help="The folder or address of a suite."
    ),
    to: Path | None = typer.Option(
        None,
        help=(
            "New folder for page, Markdown, CSV, LaTeX, model cards, and results in lm-eval's form."
        ),
    ),
    as_published: bool = typer.Option(
        False,
        "--as-published",
        help="± standard errors; answers that are too short are left out of means.",
    ),
    gate: float | None = typer.Option(
        None,
        help=(
            "Of checkpoints: exit 1 unless the last one of every curve is shown to be not worse"
            " than the best before it by this margin (0.02 = 2 points of 100)."
        ),
    ),
) -> None:
    """Print all tables of a suite, with ranks by metric."""
    if gate is not None and not 0 < gate < 1:
        raise UsageError(f"--gate {gate:g}: expected a margin between 0 and 1")
    report_suite(folder, to, as_published=as_published)
    if gate is not None:
        _hold_gate(folder, gate)


def _hold_gate(folder: Path, margin: float) -> None:
    """Say whether the last checkpoints hold a margin; a gate error where they do not."""
    from medassay.suite.curve import curve_gate, curves
    from medassay.suite.run import open_suite

    result = curve_gate(curves(open_suite(folder)), margin)
    if not result.passed:
        says = "; ".join(
            f"{point.model} on {point.benchmark} against {point.best}: "
            + (
                "no bound can be claimed"
                if point.lower_bound is None
                else f"90 % lower bound {100 * point.lower_bound:+.1f}"
            )
            for point in result.failed[:5]
        )
        raise GateError(f"gate of {100 * margin:g} points not passed: {says}")
    out.say(f"gate of {100 * margin:g} points passed: {result.checked} curves")


@app.command("join")
def join(
    suites: list[Path] = typer.Argument(
        ..., parser=location.read, metavar="suites", help="The folders of two suites or more."
    ),
    workspace: Path = typer.Option(
        Path(), help="The workspace that the joined suite is written to."
    ),
) -> None:
    """Write the suite that holds the rows of several: other models, other benchmarks, or both."""
    from medassay.suite.join import join_suites
    from medassay.suite.run import open_suite

    if len(suites) < 2:
        raise UsageError("name two suites at least")
    joined = join_suites([open_suite(suite) for suite in suites], workspace)
    out.tell(
        {"path": str(joined.folder)},
        f"suite {joined.folder}: {len(joined.parts)} benchmarks of {len(suites)} suites",
    )


@app.command("list")
def list_suites() -> None:
    """Print the suites with their benchmarks."""
    from medassay.suite.catalog import BENCHMARKS, SUITES

    tables = (
        Table(
            rows=[(name, BENCHMARKS[name].title, BENCHMARKS[name].group) for name in names],
            text=("benchmark", "data set", "kind"),
            title=suite,
        )
        for suite, names in SUITES.items()
    )
    out.tell({"suites": {name: list(names) for name, names in SUITES.items()}}, *tables)


class SuiteOptions(msgspec.Struct, frozen=True):
    """What the options of the command line ask of a suite."""

    suite: str = ""
    model: str = ""
    limit: int | None = None
    judge: str = ""
    metric: str = ""


class ExecutionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a suite is run; each is an option of the command line."""

    preview: bool = False
    yes: bool = False
    fresh: bool = False
    accept_failures: bool = False
    trust_code: bool = False
    engine: str = "local"


def run_command(
    path: Path | None, options: SuiteOptions, data: Path, workspace: str, how: ExecutionOptions
) -> None:
    """Run a suite, and print its values in one table."""
    from medassay.cli.preview import confirm_code, confirm_cost, print_preview
    from medassay.cli.progress import watch
    from medassay.runner.preview import priced
    from medassay.suite.report import short_sheet
    from medassay.suite.run import SuiteContext, preview_suite, run_suite

    if "://" in workspace:
        raise UsageError(
            "a suite is run in a folder; a workspace in an object store is for plans of one task"
        )
    if path is not None and options != SuiteOptions():
        raise UsageError("leave --model, --limit, --judge and --metric out: the plan says these")
    base = Path.cwd() if path is None else path.resolve().parent
    plan, specs = _plan_of_options(options) if path is None else _plan_in_file(path)
    context = SuiteContext(
        data=data,
        base=base,
        workspace=Path(workspace or base),
        secrets=os.environ,
        watch=watch,
        tell=out.say,
        accept_failures=how.accept_failures,
        fresh=how.fresh,
        engine=how.engine,
        trust_code=how.trust_code,
    )
    if how.preview:
        print_preview(preview_suite(plan, specs, context))
        return
    tasks = [benchmark.own for benchmark in plan.benchmark if benchmark.own is not None]
    if not how.trust_code:
        # A list: all code is shown and asked about before any of it is executed.
        executes = [confirm_code(task, base, str(path)) for task in tasks]
        context = replace(context, trust_code=any(executes))
    if not how.yes and priced(specs, specs):
        confirm_cost(preview_suite(plan, specs, context))
    result = run_suite(plan, specs, context)
    tell_sheet(short_sheet(result), None)
    if not out.json:
        out.result(
            f"suite {result.folder}; page, files and cards: medassay suite report"
            f" {result.folder} --to FOLDER"
        )


def _plan_in_file(path: Path) -> "tuple[SuitePlan, dict[str, ModelSpec]]":
    """Return the plan in a file, and the models that it names."""
    from medassay.suite.plan import load_suite_plan
    from medassay.suite.run import suite_models

    plan = load_suite_plan(path)
    models = path.resolve().parent / plan.models_file
    return plan, suite_models(models, (*plan.models, *listed(plan.judge)))


def _plan_of_options(options: SuiteOptions) -> "tuple[SuitePlan, dict[str, ModelSpec]]":
    """Return the plan that options name, and its models."""
    from medassay.core.record_check import RecordError
    from medassay.suite.plan import SuitePlan
    from medassay.suite.run import suite_models

    if not options.suite or not options.model:
        raise UsageError(
            "name a plan, or for a suite `medassay suite run SUITE --model MODEL`; see"
            " `medassay suite run --help`"
        )
    named = listed(options.model)
    specs = suite_models(Path("models.json"), (*named, *listed(options.judge)))
    try:
        plan = SuitePlan(
            suite=tuple(listed(options.suite)),
            models=tuple(_entry_of(name, specs) for name in named),
            limit=options.limit,
            judge=_entry_of(options.judge, specs) if options.judge else "",
            metrics=tuple(listed(options.metric)),
        )
    except RecordError as error:
        raise InputError(f"suite: {error.problem}") from None
    return plan, specs


def report_suite(folder: Path, to: Path | None, *, as_published: bool = False) -> None:
    """Print the report of a suite, and write its files where a folder is named."""
    from medassay.suite.report import cards, lm_eval_files, suite_sheet
    from medassay.suite.run import open_suite

    refuse_taken(to)
    suite = open_suite(folder)
    more = {} if to is None else {**cards(suite), **lm_eval_files(suite)}
    tell_sheet(suite_sheet(suite, as_published=as_published), to, more)


def _entry_of(name: str, specs: Collection[str]) -> str:
    """Return the id of an entry: a folder of weights is called by its own name."""
    return name if name in specs else Path(name).resolve().name
