"""`medassay suite run | report | list`: benchmarks together, over some models."""

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.cli import location
from medassay.cli.options import listed
from medassay.cli.output import out
from medassay.core.table import Table
from medassay.errors import InputError, UsageError

if TYPE_CHECKING:
    from medassay.core.records.model import ModelSpec
    from medassay.suite.plan import SuitePlan

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Suites of benchmarks: ask models all of them, report every metric.",
)


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
    accept_failures: bool = typer.Option(
        False, "--accept-failures", help="Seal although trials failed; they are null and counted."
    ),
) -> None:
    """Ask models every task of a suite; the same command resumes what was interrupted."""
    options = SuiteOptions(model=model, limit=limit, judge=judge, metric=metric)
    plan = Path(suite) if suite.endswith(".toml") else None
    if plan is None:
        options = replace(options, suite=suite)
    run_command(plan, options, data, workspace, accept_failures=accept_failures)


@app.command("report")
def report(
    folder: Path = typer.Argument(
        ..., parser=location.read, metavar="suite", help="The folder or address of a suite."
    ),
    to: Path | None = typer.Option(
        None, help="New folder for page, Markdown, CSV, LaTeX and model cards."
    ),
    as_published: bool = typer.Option(
        False,
        "--as-published",
        help="± standard errors; answers that are too short are left out of means.",
    ),
) -> None:
    """Print all tables of a suite, with ranks by metric."""
    report_suite(folder, to, as_published=as_published)


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


@dataclass(frozen=True)
class SuiteOptions:
    """What the options of the command line ask of a suite."""

    suite: str = ""
    model: str = ""
    limit: int | None = None
    judge: str = ""
    metric: str = ""


def run_command(
    path: Path | None,
    options: SuiteOptions,
    data: Path,
    workspace: str,
    *,
    accept_failures: bool,
) -> None:
    """Run a suite, and print its values in one table."""
    from medassay.cli.progress import watch
    from medassay.cli.sheet import tell_sheet
    from medassay.suite.report import suite_sheet, whole_table
    from medassay.suite.run import SuiteContext, run_suite

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
        workspace=Path(workspace or base),
        secrets=os.environ,
        watch=watch,
        tell=out.say,
        accept_failures=accept_failures,
    )
    result = run_suite(plan, specs, context)
    tell_sheet(replace(suite_sheet(result), sections=[whole_table(result)]), None)
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
    from medassay.core.plan_file import RecordError
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
    from medassay.cli.sheet import new_folder, tell_sheet
    from medassay.suite.report import cards, suite_sheet
    from medassay.suite.run import open_suite

    if to is not None:
        new_folder(to)
    suite = open_suite(folder)
    tell_sheet(suite_sheet(suite, as_published=as_published), to, cards(suite))


def _entry_of(name: str, specs: Collection[str]) -> str:
    """Return the id of an entry: a folder of weights is called by its own name."""
    return name if name in specs else Path(name).resolve().name
