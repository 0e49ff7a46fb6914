"""`medassay run --suite …` and `medassay report SUITE --suite`."""

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from medassay.cli.options import listed
from medassay.cli.output import out
from medassay.errors import InputError, UsageError


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
    workspace: Path | None,
    *,
    accept_failures: bool,
) -> None:
    """Run a suite, and print its values in one table."""
    from medassay.cli.progress import watch
    from medassay.cli.sheet import tell_sheet
    from medassay.core.plan_file import RecordError
    from medassay.suite.plan import SuitePlan, load_suite_plan
    from medassay.suite.report import suite_sheet, whole_table
    from medassay.suite.run import SuiteContext, run_suite, suite_models

    if path is None:
        if not options.suite or not options.model:
            raise UsageError("name a plan, or --suite and --model; see --help")
        named = listed(options.model)
        models = Path("models.json")
        specs = suite_models(models, (*named, *listed(options.judge)))
        try:
            plan = SuitePlan(
                suite=tuple(listed(options.suite)),
                models=tuple(_entry_of(name, specs) for name in named),
                limit=options.limit,
                judge=_entry_of(options.judge, specs) if options.judge else "",
                metrics=tuple(listed(options.metric)),
            )
        except RecordError as error:
            raise InputError(f"--suite: {error.problem}") from None
    else:
        if options != SuiteOptions():
            raise UsageError("--suite, --model, --limit, --judge and --metric go without a plan")
        plan = load_suite_plan(path)
        models = path.resolve().parent / plan.models_file
        specs = suite_models(models, (*plan.models, *listed(plan.judge)))
    context = SuiteContext(
        data=data,
        workspace=workspace or (Path.cwd() if path is None else path.resolve().parent),
        secrets=os.environ,
        watch=watch,
        tell=out.say,
        accept_failures=accept_failures,
    )
    result = run_suite(plan, specs, context)
    tell_sheet(replace(suite_sheet(result), sections=[whole_table(result)]), None)
    if not out.json:
        out.result(
            f"suite {result.folder}; page, files and cards: medassay report {result.folder} --suite"
            " --to FOLDER"
        )


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
