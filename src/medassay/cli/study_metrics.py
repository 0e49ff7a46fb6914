"""`medassay study metrics`, `resilience`, `consistency`: what metrics say, and how steady they
are.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.cli.location import read
from medassay.cli.options import AGAIN, ENGINE, WORKSPACE, listed
from medassay.cli.sheet import refuse_taken, tell_sheet
from medassay.errors import UsageError

if TYPE_CHECKING:
    from medassay.study.rephrase import Rephraser

_METRIC = typer.Option(
    "", help="Metrics that need a model, comma-separated: bertscore=embedded:minilm,bleurt."
)


_TABLE = typer.Argument(
    ...,
    help=(
        "A CSV with answers and references, or a run whose answers are compared with references."
    ),
)
_COLUMNS = typer.Option(
    "",
    help=("Of the CSV: prediction=…,reference=…,item=…,model=…, where they are called otherwise."),
)
_PEOPLE = typer.Option("", help="Columns of people's scores, comma-separated.")
_LABELS = typer.Option(
    None,
    help="Another CSV that holds these, a line for each of the first, in the same order.",
)
_REPHRASER = typer.Option(
    "", help="A model that rephrases the answers, to see which metrics break."
)
_TO = typer.Option(None, help="New folder for page, figures, Markdown, CSV, JSON.")
_MODELS = typer.Option(Path("models.json"), help="The models file.")


def metrics(
    table: str = _TABLE,
    columns: str = _COLUMNS,
    people: str = _PEOPLE,
    labels: Path | None = _LABELS,
    metric: str = _METRIC,
    rephraser: str = _REPHRASER,
    to: Path | None = _TO,
    models: Path = _MODELS,
    again: list[str] = AGAIN,
    workspace: str = WORKSPACE,
    engine: str = ENGINE,
) -> None:
    """Check metrics on your own data: which say the same, which break under rephrasing, which agree
    with people.
    """
    from medassay.cli.bank import read_columns
    from medassay.core.records.plan import EngineRules
    from medassay.model.chats import named_secrets
    from medassay.runner.engine.catalog import engine_of
    from medassay.storage.object_store import using_stores
    from medassay.storage.run import open_run
    from medassay.study.answers import answers_of, gauges_named
    from medassay.study.item_check import checkup, checkup_sheet, read_answers
    from medassay.study.stability import resilience_study

    if again and not rephraser:
        raise UsageError("--again goes with --rephraser")
    refuse_taken(to)
    place = read(table)
    if place.is_dir():
        if columns or people or labels:
            raise UsageError("--columns, --people and --labels are for a CSV")
        answers = answers_of(open_run(place))
    else:
        answers = read_answers(place, read_columns(columns), listed(people), labels)
    measures = gauges_named(listed(metric))
    with using_stores(workspace) as folder:
        model = steady = None
        if rephraser:
            model = _rephraser(rephraser, models, folder, engine, again)
            if place.is_dir():
                model.refuse(open_run(place))
        named = {} if model is None else named_secrets(model.spec, os.environ)
        spread = engine_of(engine, EngineRules(), folder / "responses", named)
        if model is not None:
            steady = resilience_study(answers, model, measures, folder, engine=spread)
        result = checkup(answers, measures, folder, resilience=steady, engine=spread)
    tell_sheet(checkup_sheet(result), to)


def resilience(
    run: str = typer.Argument(..., help="A run whose answers are compared with references."),
    rephraser: str = typer.Option(
        ..., help="The model that rephrases, an entry of the models file."
    ),
    metric: str = _METRIC,
    sample: int | None = typer.Option(
        None, min=1, help="Only so many answers of each model, drawn by a seed."
    ),
    to: Path | None = typer.Option(None, help="New folder for page, figure, Markdown, CSV, JSON."),
    models: Path = typer.Option(Path("models.json"), help="The models file."),
    again: list[str] = AGAIN,
    workspace: str = WORKSPACE,
    engine: str = ENGINE,
) -> None:
    """Tell how far each metric moves when answers are said in other words, six times each."""
    from medassay.core.records.plan import EngineRules
    from medassay.model.chats import named_secrets
    from medassay.runner.engine.catalog import engine_of
    from medassay.storage.object_store import using_stores
    from medassay.storage.run import open_run
    from medassay.study.answers import answers_of, gauges_named, sample_answers
    from medassay.study.stability import resilience_sheet, resilience_study

    refuse_taken(to)
    opened = open_run(read(run))
    answers = sample_answers(answers_of(opened), sample)
    measures = gauges_named(listed(metric))
    with using_stores(workspace) as folder:
        model = _rephraser(rephraser, models, folder, engine, again)
        model.refuse(opened)
        named = named_secrets(model.spec, os.environ)
        spread = engine_of(engine, EngineRules(), folder / "responses", named)
        study = resilience_study(answers, model, measures, folder, engine=spread)
    tell_sheet(resilience_sheet(study), to)


def _rephraser(
    name: str, models: Path, workspace: Path, engine: str, again: list[str]
) -> "Rephraser":
    from medassay.cli.progress import watch
    from medassay.study.rephrase import Rephraser

    return Rephraser(
        name,
        models,
        secrets=os.environ,
        workspace=workspace,
        engine=engine,
        watch=watch,
        again=again,
    )


def consistency(
    run: Path = typer.Argument(
        ..., help="A run with repeats, its models asked at temperature 1, top_p 0.9."
    ),
    to: Path | None = typer.Option(None, help="New folder for page, figure, Markdown, CSV, JSON."),
) -> None:
    """Tell how far each metric moves when a model is asked the same again (eleven times, as
    published).
    """
    from medassay.storage.run import open_run
    from medassay.study.answers import answers_of
    from medassay.study.stability import consistency_sheet, consistency_study

    refuse_taken(to)
    opened = open_run(run)
    study = consistency_study(answers_of(opened))
    cold = [n for n, sampling in opened.manifest.sampling.items() if not sampling["temperature"]]
    notes = [f"{', '.join(cold)}: asked at temperature 0; draws may not differ."] if cold else []
    tell_sheet(consistency_sheet(study, notes), to)
