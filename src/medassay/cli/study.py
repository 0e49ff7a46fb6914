"""`medassay study …`: of judges, metrics, benchmarks and banks.

Those of judges, metrics and extraction stand in modules of their own.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.cli import extraction, study_judges, study_metrics
from medassay.cli.options import group, listed
from medassay.cli.output import out
from medassay.cli.sheet import refuse_taken, tell_sheet
from medassay.errors import InputError

if TYPE_CHECKING:
    from medassay.study.long_table import LongRow

app = group("Studies of judges, metrics, benchmarks and banks themselves.")
_ELSEWHERE: dict[str, Callable[..., None]] = {
    "extraction": extraction.extraction,
    "injection": study_judges.injection,
    "judges": study_judges.judges,
    "steps": study_judges.steps,
    "consistency": study_metrics.consistency,
    "metrics": study_metrics.metrics,
    "resilience": study_metrics.resilience,
}
for _name, _command in _ELSEWHERE.items():
    app.command(_name)(_command)


@app.command("correlation")
def correlation(
    results: Path = typer.Argument(
        ...,
        help="A suite, or a CSV with dataset, metric, model, value (and direction: up or down).",
    ),
    to: Path | None = typer.Option(None, help="New folder for page, figures, Markdown, CSV, JSON."),
    dataset: str = typer.Option("", help="Only these data sets, comma-separated."),
    metric: str = typer.Option("", help="Only these metrics, comma-separated."),
    external: Path | None = typer.Option(
        None,
        help="Scores from elsewhere (arena Elo, say): a CSV with model, name, value, source, date.",
    ),
    models: Path | None = typer.Option(
        None, help="A models file with sizes: small and larger models are told apart."
    ),
) -> None:
    """Tell which benchmarks and metrics say the same of models, with intervals, order and
    clusters.
    """
    from medassay.study.correlation import correlation_study
    from medassay.study.correlation_sheet import correlation_sheet
    from medassay.study.long_table import chosen, read_external

    refuse_taken(to)
    rows, sizes = results_at(results)
    if models is not None:
        sizes = _sizes(models)
    result = correlation_study(
        chosen(rows, listed(dataset), listed(metric)),
        external=read_external(external) if external else (),
        sizes=sizes,
    )
    tell_sheet(correlation_sheet(result), to)


def results_at(place: Path) -> "tuple[list[LongRow], dict[str, float]]":
    """Return the numbers of a suite or of a CSV file, and the sizes of models where they are
    known.
    """
    from medassay.study.long_table import LongRow, read_long
    from medassay.suite.results import results_of
    from medassay.suite.run import is_suite_folder, open_suite

    if not is_suite_folder(place):
        if place.is_dir():
            raise InputError(f"{place}: no suite; expected the folder of one, or a CSV file")
        return read_long(place), {}
    suite = open_suite(place)
    numbers = [
        number
        for number in results_of(suite)
        if number.ranked and number.headline and number.value is not None
    ]
    several = len({number.setting for number in numbers}) > 1
    rows = [
        LongRow(
            dataset=number.title,
            metric=number.metric,
            model=f"{number.model}, {number.setting}" if several else number.model,
            value=number.value or 0.0,
            better=number.better,
            n=number.n,
            task=number.group,
        )
        for number in numbers
    ]
    return rows, _sizes(suite.folder / "models.json")


def _sizes(models: Path) -> dict[str, float]:
    """Return model → billions of parameters, of the entries of a models file that say it."""
    from medassay.model.spec import load_models

    return {name: spec.size for name, spec in load_models(models).items() if spec.size is not None}


@app.command("settings")
def settings(
    runs: list[Path] = typer.Argument(..., help="Runs over the same bank that differ in settings."),
    to: Path | None = typer.Option(None, help="New folder for page, figures, Markdown, CSV, JSON."),
) -> None:
    """Tell what chat template, worked examples and option order do to each model, paired item by
    item.
    """
    from medassay.storage.run import open_run
    from medassay.study.settings import settings_sheet, settings_study

    refuse_taken(to)
    tell_sheet(settings_sheet(settings_study([open_run(run) for run in runs])), to)


@app.command("corrections")
def corrections(
    before: list[Path] = typer.Argument(..., metavar="BEFORE…", help="Runs of the bank as it was."),
    after: list[Path] = typer.Option(
        ..., "--after", help="A run of the corrected bank; may be given again."
    ),
    workshop: Path | None = typer.Option(
        None,
        help=(
            "The workshop of the corrections (`bank flaws --review`), for the histogram of their"
            " types."
        ),
    ),
    to: Path | None = typer.Option(
        None, help="New folder for page, figures, Markdown, LaTeX, CSV, JSON."
    ),
) -> None:
    """Tell what corrections of a bank change: accuracy before and after, for each model and
    setting, paired by item.
    """
    from medassay.storage.run import open_run
    from medassay.study.corrections import corrections_sheet, corrections_study
    from medassay.synthesis.project import read_workshop
    from medassay.synthesis.reviewing import type_counts

    refuse_taken(to)
    types = [] if workshop is None else type_counts(read_workshop(workshop))
    result = corrections_study(
        [open_run(run) for run in before], [open_run(run) for run in after], types
    )
    tell_sheet(corrections_sheet(result), to)


@app.command("contexts")
def contexts(
    runs: list[Path] = typer.Argument(
        ...,
        help=(
            "Runs of a quiz (accuracy), of judged answers (judge) and of answers compared with"
            " references (similarity), over settings such as zero_shot, rag, topline_path."
        ),
    ),
    to: Path | None = typer.Option(
        None, help="New folder for page, figures, Markdown, LaTeX, CSV, JSON."
    ),
) -> None:
    """Tell what retrieved and given texts add to each model: model by setting by accuracy, judge
    and similarity.
    """
    from medassay.storage.run import open_run
    from medassay.study.contexts import contexts_study
    from medassay.study.contexts_sheet import contexts_sheet

    refuse_taken(to)
    tell_sheet(contexts_sheet(contexts_study([open_run(run) for run in runs])), to)


@app.command("reading")
def reading(
    runs: list[Path] = typer.Argument(..., help="Sealed runs, imports among them."),
    labels: Path | None = typer.Option(
        None,
        help=(
            "A CSV in which a person said of replies whether they were read rightly (to-label.csv,"
            " filled)."
        ),
    ),
    sample: int = typer.Option(
        100, min=1, help="How many replies are drawn for people, into to-label.csv."
    ),
    to: Path | None = typer.Option(
        None, help="New folder for page, figures, Markdown, CSV, JSON, and to-label.csv."
    ),
) -> None:
    """Tell how replies were read: rules, unread ones, where a second parser disagrees, and the
    parser's error rate.
    """
    from medassay.storage.run import open_run
    from medassay.study.reading import LABELS, labels_csv, reading_study
    from medassay.study.reading_sheet import reading_sheet

    refuse_taken(to)
    result, examples = reading_study([open_run(run) for run in runs], labels=labels, sample=sample)
    tell_sheet(reading_sheet(result), to, {LABELS: labels_csv(examples).encode()})


@app.command("bank")
def bank(
    banks: list[Path] = typer.Argument(
        None, help="Folders of banks: duplicates, leaks, habits of keys."
    ),
    run: list[Path] = typer.Option(
        [],
        help=(
            "Runs with closed answers of several models: difficulty, discrimination, suspected"
            " keys."
        ),
    ),
    to: Path | None = typer.Option(None, help="New folder for page, figure, Markdown, CSV, JSON."),
) -> None:
    """Tell what answers and texts say of items: a list for review."""
    from medassay.bank.folder import load_bank
    from medassay.storage.run import open_run
    from medassay.study.bank import bank_study
    from medassay.study.bank_sheet import bank_sheet

    refuse_taken(to)
    result = bank_study([open_run(path) for path in run], [load_bank(path) for path in banks or []])
    tell_sheet(bank_sheet(result), to)


@app.command("power")
def power(
    difference: float = typer.Option(
        ...,
        help="The difference worth finding, in units of the score (0.05 = 5 points of 100).",
    ),
    discordance: float | None = typer.Option(
        None,
        help="Right or wrong: the share of items that just one of the two answers rightly.",
    ),
    deviation: float | None = typer.Option(
        None, help="Graded scores: the standard deviation of the items' differences."
    ),
    items: int | None = typer.Option(None, help="Also tell the power with so many items."),
    models: int = typer.Option(
        2, min=2, help="How many models the board will rank: all pairs are tested at once."
    ),
) -> None:
    """Say before a run with how many items its board shows the better of two models to be better
    (80 % power).
    """
    from medassay.study.power import plan_items

    plan = plan_items(
        difference,
        discordance=discordance,
        deviation=deviation,
        items=items,
        models=models,
    )
    lines = [
        f"{_items(plan.items)} for a difference of {difference:g}, on a board of {models} models"
        " (80 % power, at most 5 % error for the whole table)"
    ]
    if plan.power is not None:
        least = "no difference is shown"
        if plan.shown is not None:
            least = f"differences from {plan.shown:.3g} on"
        lines += [
            f"{100 * plan.power:.1f} % power with {items:,} items",
            f"with {items:,} items and 80 % power: {least}",
        ]
    lines += [f"  {size.difference:g}  {_items(size.items)}" for size in plan.nearby]
    out.tell(plan, *lines)


def _items(n: int | None) -> str:
    return "more than 10 million items" if n is None else f"{n:,} items"
