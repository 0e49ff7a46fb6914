"""`medassay study …`: how far judges can be trusted."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from medassay.cli.output import out
from medassay.cli.place import ENGINE, WORKSPACE
from medassay.errors import InputError, UsageError

if TYPE_CHECKING:
    from medassay.study.long_table import LongRow

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Studies of judges, metrics, benchmarks and banks themselves.",
)


@app.command("injection")
def injection(
    judge: str = typer.Option(..., help="The judge, an entry of the models file."),
    models: Path = typer.Option(Path("models.json"), help="The models file."),
    workspace: str = WORKSPACE,
    engine: str = ENGINE,
) -> None:
    """Ask a judge about honest answers with and without hostile texts; count what moved."""
    from medassay.cli.run import watch
    from medassay.pipeline import find_bank
    from medassay.storage.remote import using_stores
    from medassay.study.injection import injection_study

    with using_stores(workspace) as folder:
        bank = find_bank("demo", folder, folder / "banks.lock")
        found = injection_study(
            judge,
            models,
            [item for item in bank.items if item.form == "open"],
            secrets=os.environ,
            workspace=folder,
            engine=engine,
            watch=watch,
        )
    if out.json:
        out.document(found)
        return
    out.result(
        f"{found['moved']} of {found['tried']} verdicts moved (at most "
        f"{100 * (found['upper_95'] or 0):.1f} % with 95 % confidence)"
    )
    if found["scripted"]:
        out.result("SCRIPTED: this judge is a script; the numbers measure nothing.")
    for kind, row in found["kinds"].items():
        out.result(f"  {kind:14} {row['moved']} of {row['tried']}")
    if found["moved_by"]:
        out.result(f"moved by {', '.join(found['moved_by'])}")
    if found["no_verdict"]:
        out.result(f"no verdict on {', '.join(found['no_verdict'])}")


@app.command("correlation")
def correlation(
    results: Path = typer.Argument(
        ...,
        help="A suite, or a CSV with dataset, metric, model, value (and direction: up or down).",
    ),
    to: Path | None = typer.Option(
        None, help="New folder for page, figures, Markdown, CSV, JSON."
    ),
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
    """Tell which benchmarks and metrics say the same of models, with intervals, order and clusters."""
    from medassay.cli.sheet import new_folder, tell_sheet
    from medassay.model.spec import load_models
    from medassay.study.correlation import correlation_sheet, correlation_study
    from medassay.study.long_table import chosen, read_external

    if to is not None:
        new_folder(to)
    rows, sizes = results_at(results)
    if models is not None:
        sizes = {name: s.size for name, s in load_models(models).items() if s.size is not None}
    found = correlation_study(
        chosen(rows, _listed(dataset), _listed(metric)),
        external=read_external(external) if external else (),
        sizes=sizes,
    )
    tell_sheet(correlation_sheet(found), to)


def results_at(place: Path) -> "tuple[list[LongRow], dict[str, float]]":
    """Return the numbers of a suite or of a CSV file, and the sizes of models where they are known."""
    from medassay.study.long_table import LongRow, read_long
    from medassay.suite.results import results_of
    from medassay.suite.run import is_suite_folder, open_suite

    if not is_suite_folder(place):
        if place.is_dir():
            raise InputError(f"{place}: no suite; expected the folder of one, or a CSV file")
        return read_long(place), {}
    suite = open_suite(place)
    found = [one for one in results_of(suite) if one.ranked and one.value is not None]
    several = len({one.setting for one in found}) > 1
    rows = [
        LongRow(
            dataset=one.title,
            metric=one.metric,
            model=f"{one.model}, {one.setting}" if several else one.model,
            value=one.value or 0.0,
            better=one.better,
            n=one.n,
        )
        for one in found
    ]
    return rows, suite_sizes(suite.folder)


def suite_sizes(folder: Path) -> dict[str, float]:
    """Return model → billions of parameters, of the entries that a suite asked."""
    from medassay.model.spec import load_models

    specs = load_models(folder / "models.json")
    return {name: spec.size for name, spec in specs.items() if spec.size is not None}


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


_METRIC = typer.Option(
    "", help="Metrics that need a model, comma-separated: bertscore=embedded:minilm,bleurt."
)


@app.command("metrics")
def metrics(  # noqa: PLR0913, PLR0917 -- each is an option of the command
    table: str = typer.Argument(
        ...,
        help="A CSV with answers and references, or a run whose answers are compared with references.",
    ),
    columns: str = typer.Option(
        "",
        help="Of the CSV: prediction=…,reference=…,item=…,model=…, where they are called otherwise.",
    ),
    people: str = typer.Option("", help="Columns of people's scores, comma-separated."),
    labels: Path | None = typer.Option(
        None,
        help="Another CSV that holds these, a line for each of the first, in the same order.",
    ),
    metric: str = _METRIC,
    rephraser: str = typer.Option(
        "", help="A model that rephrases the answers, to see which metrics break."
    ),
    to: Path | None = typer.Option(
        None, help="New folder for page, figures, Markdown, CSV, JSON."
    ),
    models: Path = typer.Option(Path("models.json"), help="The models file."),
    workspace: str = WORKSPACE,
    engine: str = ENGINE,
) -> None:
    """Check metrics on your own data: which say the same, which break under rephrasing, which agree with people."""
    from medassay.cli.bank import read_columns
    from medassay.cli.place import read
    from medassay.cli.run import watch
    from medassay.cli.sheet import new_folder, tell_sheet
    from medassay.core.plan import EngineRules
    from medassay.runner.engine.catalog import engine_of
    from medassay.runner.providing import named_secrets
    from medassay.storage.remote import using_stores
    from medassay.storage.run import open_run
    from medassay.study.answers import answers_of, gauges_named
    from medassay.study.checkup import checkup, checkup_sheet, read_answers
    from medassay.study.rephrase import Rephraser
    from medassay.study.stability import resilience_study

    if to is not None:
        new_folder(to)
    place = read(table)
    if place.is_dir():
        if columns or people or labels:
            raise UsageError("--columns, --people and --labels are for a CSV")
        answers = answers_of(open_run(place))
    else:
        answers = read_answers(place, read_columns(columns), _listed(people), labels)
    gauges = gauges_named(_listed(metric))
    with using_stores(workspace) as folder:
        model = steady = None
        if rephraser:
            model = Rephraser(
                rephraser,
                models,
                secrets=os.environ,
                workspace=folder,
                engine=engine,
                watch=watch,
            )
            if place.is_dir():
                model.refuse(open_run(place))
        named = {} if model is None else named_secrets(model.spec, os.environ)
        spread = engine_of(engine, EngineRules(), folder / "responses", named)
        if model is not None:
            steady = resilience_study(answers, model, gauges, folder, engine=spread)
        found = checkup(answers, gauges, folder, resilience=steady, engine=spread)
    tell_sheet(checkup_sheet(found), to)


@app.command("resilience")
def resilience(  # noqa: PLR0913, PLR0917 -- each is an option of the command
    run: str = typer.Argument(..., help="A run whose answers are compared with references."),
    rephraser: str = typer.Option(
        ..., help="The model that rephrases, an entry of the models file."
    ),
    metric: str = _METRIC,
    sample: int | None = typer.Option(
        None, min=1, help="Only so many answers of each model, drawn by a seed."
    ),
    to: Path | None = typer.Option(
        None, help="New folder for page, figure, Markdown, CSV, JSON."
    ),
    models: Path = typer.Option(Path("models.json"), help="The models file."),
    workspace: str = WORKSPACE,
    engine: str = ENGINE,
) -> None:
    """Tell how far each metric moves when answers are said in other words, six times each."""
    from medassay.cli.place import read
    from medassay.cli.run import watch
    from medassay.cli.sheet import new_folder, tell_sheet
    from medassay.core.plan import EngineRules
    from medassay.runner.engine.catalog import engine_of
    from medassay.runner.providing import named_secrets
    from medassay.storage.remote import using_stores
    from medassay.storage.run import open_run
    from medassay.study.answers import answers_of, gauges_named, some
    from medassay.study.rephrase import Rephraser
    from medassay.study.stability import resilience_sheet, resilience_study

    if to is not None:
        new_folder(to)
    found = open_run(read(run))
    answers = some(answers_of(found), sample)
    gauges = gauges_named(_listed(metric))
    with using_stores(workspace) as folder:
        model = Rephraser(
            rephraser,
            models,
            secrets=os.environ,
            workspace=folder,
            engine=engine,
            watch=watch,
        )
        model.refuse(found)
        named = named_secrets(model.spec, os.environ)
        spread = engine_of(engine, EngineRules(), folder / "responses", named)
        study = resilience_study(answers, model, gauges, folder, engine=spread)
    tell_sheet(resilience_sheet(study), to)


@app.command("consistency")
def consistency(
    run: Path = typer.Argument(
        ..., help="A run with repeats, its models asked at temperature 1, top_p 0.9."
    ),
    to: Path | None = typer.Option(
        None, help="New folder for page, figure, Markdown, CSV, JSON."
    ),
) -> None:
    """Tell how far each metric moves when a model is asked the same again (eleven times, as published)."""
    from medassay.cli.sheet import new_folder, tell_sheet
    from medassay.storage.run import open_run
    from medassay.study.answers import answers_of
    from medassay.study.stability import consistency_sheet, consistency_study

    if to is not None:
        new_folder(to)
    found = open_run(run)
    study = consistency_study(answers_of(found))
    cold = [n for n, told in found.manifest["sampling"].items() if not told["temperature"]]
    notes = (
        [f"{', '.join(cold)}: asked at temperature 0; draws may not differ."] if cold else []
    )
    tell_sheet(consistency_sheet(study, notes), to)


@app.command("settings")
def settings(
    runs: list[Path] = typer.Argument(
        ..., help="Runs over the same bank that differ in settings."
    ),
    to: Path | None = typer.Option(
        None, help="New folder for page, figures, Markdown, CSV, JSON."
    ),
) -> None:
    """Tell what chat template, worked examples and option order do to each model, paired item by item."""
    from medassay.cli.sheet import new_folder, tell_sheet
    from medassay.storage.run import open_run
    from medassay.study.settings import settings_sheet, settings_study

    if to is not None:
        new_folder(to)
    tell_sheet(settings_sheet(settings_study([open_run(run) for run in runs])), to)


@app.command("corrections")
def corrections(
    before: list[Path] = typer.Argument(
        ..., metavar="BEFORE…", help="Runs of the bank as it was."
    ),
    after: list[Path] = typer.Option(
        ..., "--after", help="A run of the corrected bank; may be given again."
    ),
    workshop: Path | None = typer.Option(
        None,
        help="The workshop of the corrections (`bank flaws --review`), for the histogram of their types.",
    ),
    to: Path | None = typer.Option(
        None, help="New folder for page, figures, Markdown, LaTeX, CSV, JSON."
    ),
) -> None:
    """Tell what corrections of a bank change: accuracy before and after, for each model and setting, paired by item."""
    from medassay.cli.sheet import new_folder, tell_sheet
    from medassay.storage.run import open_run
    from medassay.study.corrections import corrections_sheet, corrections_study
    from medassay.synthesis.reviewing import type_counts
    from medassay.synthesis.workshop import read_workshop

    if to is not None:
        new_folder(to)
    types = [] if workshop is None else type_counts(read_workshop(workshop))
    found = corrections_study(
        [open_run(run) for run in before], [open_run(run) for run in after], types
    )
    tell_sheet(corrections_sheet(found), to)


@app.command("contexts")
def contexts(
    runs: list[Path] = typer.Argument(
        ...,
        help="Runs of a quiz (accuracy), of judged answers (judge) and of answers compared with references (similarity), over "
        "settings such as zero_shot, rag, topline_path.",
    ),
    to: Path | None = typer.Option(
        None, help="New folder for page, figures, Markdown, LaTeX, CSV, JSON."
    ),
) -> None:
    """Tell what retrieved and given texts add to each model: model by setting by accuracy, judge and similarity."""
    from medassay.cli.sheet import new_folder, tell_sheet
    from medassay.storage.run import open_run
    from medassay.study.contexts import contexts_study
    from medassay.study.contexts_sheet import contexts_sheet

    if to is not None:
        new_folder(to)
    tell_sheet(contexts_sheet(contexts_study([open_run(run) for run in runs])), to)


@app.command("bank")
def bank(
    banks: list[Path] = typer.Argument(
        None, help="Folders of banks: duplicates, leaks, habits of keys."
    ),
    run: list[Path] = typer.Option(
        [],
        help="Runs with closed answers of several models: difficulty, discrimination, suspected keys.",
    ),
    to: Path | None = typer.Option(
        None, help="New folder for page, figure, Markdown, CSV, JSON."
    ),
) -> None:
    """Tell what answers and texts say of items: a list for review."""
    from medassay.bank.folder import load_bank
    from medassay.cli.sheet import new_folder, tell_sheet
    from medassay.storage.run import open_run
    from medassay.study.bank import bank_sheet, bank_study

    if to is not None:
        new_folder(to)
    found = bank_study([open_run(one) for one in run], [load_bank(one) for one in banks or []])
    tell_sheet(bank_sheet(found), to)


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
) -> None:
    """Say before a run how many items two models need to be told apart (80 % power, two-sided 5 %)."""
    from medassay.study.power import plan_items

    found = plan_items(difference, discordance=discordance, deviation=deviation, items=items)
    if out.json:
        out.document(found)
        return
    out.result(
        f"{found['items']} items by {found['test']} ({found['by_formula']} by the formula)"
    )
    if found["power"] is not None:
        out.result(f"{100 * found['power']:.1f} % power with {items} items")
    for row in found["nearby"]:
        out.result(f"  {row['difference']:g}  {row['items']}")


@app.command("steps")
def steps(
    judge: str = typer.Option(..., help="The judge, an entry of the models file."),
    to: Path = typer.Option(..., help="The file to write; it must not exist."),
    languages: str = typer.Option("en", help="Of en, de, es; comma-separated."),
    no_path: bool = typer.Option(
        False, "--no-path", help="For g_eval_no_path, where no reasoning path is shown."
    ),
    models: Path = typer.Option(Path("models.json"), help="The models file."),
    workspace: str = WORKSPACE,
) -> None:
    """Have a judge write the evaluation steps of G-Eval, once; a person reviews them, a plan names them."""
    from medassay.storage.remote import using_stores
    from medassay.storage.run import write_new
    from medassay.study.steps import write_steps

    if to.exists():
        raise UsageError(f"--to: {to} exists already; steps are written once")
    with using_stores(workspace) as folder:
        found = write_steps(
            judge,
            models,
            _listed(languages),
            with_path=not no_path,
            secrets=os.environ,
            workspace=folder,
        )
    to.parent.mkdir(parents=True, exist_ok=True)
    write_new(to, found.to_toml().encode())
    if out.json:
        out.document({"file": str(to), **found.to_dict()})
        return
    for language, text in found.texts.items():
        out.result(f"[{language}]\n{text}")
    out.say(
        f"written to {to}: read the steps, say in reviewed_by who did, and name the file in a plan "
        "(steps) or in `medassay judge --steps`"
    )


@app.command("judges")
def judges(
    run: Path = typer.Argument(..., help="A judged run."),
    first: str = typer.Option(..., help="A judge of the run."),
    second: str = typer.Option("", help="Another judge, of this run or of --other."),
    other: Path | None = typer.Option(
        None, help="Another run of the same answers, e.g. judged with another prompt version."
    ),
    people: Path | None = typer.Option(
        None,
        help="A CSV of people's labels: domain, model, setting, item, and score, or fact and verdict.",
    ),
) -> None:
    """Compare two judges, two prompt versions, or a judge and people on the same answers."""
    from medassay.storage.run import open_run
    from medassay.study.judges import compare_judges, compare_with_people

    found = open_run(run)
    if (people is None) == (not second):
        raise UsageError("name either --second (and --other), or --people")
    if people is not None:
        document = compare_with_people(found, first, people)
        _tell(document, lambda: _print_people(document))
        return
    against = open_run(other) if other else found
    document = compare_judges((found, first), (against, second))
    _tell(document, lambda: _print_judges(document))


def _tell(document: dict[str, Any], printed: Any) -> None:
    if out.json:
        out.document(document)
    else:
        printed()


def _print_people(found: dict[str, Any]) -> None:
    out.result(f"{found['judge']}: {found['labelled']} labelled, {found['unlabelled']} not")
    out.result(f"judge alone         {_shown(found['plain'])}")
    corrected = found["corrected"]
    if corrected is None:
        out.result("corrected by people: fewer than 30 labels")
    else:
        out.result(
            f"corrected by people {corrected['value']:.3f} [{corrected['lo']:.3f}, "
            f"{corrected['hi']:.3f}], weight of the judge {corrected['lam']:.2f}"
        )
    out.result(f"judge minus human   {_shown(found['judge_minus_human'])}")
    _print_agreement(found, "judge", "people")


def _print_judges(found: dict[str, Any]) -> None:
    scores = found["scores"]
    out.result(f"{found['answers']} answers")
    out.result(f"first   {found['first']}: {_shown(scores['first'])}")
    out.result(f"second  {found['second']}: {_shown(scores['second'])}")
    out.result(f"first minus second: {_shown(scores['first_minus_second'])}")
    _print_agreement(found, "first", "second")


def _print_agreement(found: dict[str, Any], first: str, second: str) -> None:
    """Print the agreement of scores and, where parts were judged, the confusion table and kappa."""
    agreement = found["agreement"]
    if agreement["alpha"] is not None:
        out.result(f"agreement of scores, alpha {_band(agreement, 'alpha')}")
    if "confusion" not in found:
        return
    if found["kappa"]["value"] is not None:
        out.result(
            f"kappa {_band(found['kappa'], 'value')}, agreed on {100 * found['agreed']:.1f} % of "
            f"{'facts' if 'facts' in found else 'criteria'}"
        )
    labels = list(found["confusion"])
    corner = f"{first} \\ {second}"
    out.result(f"{corner:16}" + "".join(f"{label:>12}" for label in labels))
    for label, row in found["confusion"].items():
        out.result(f"{label:16}" + "".join(f"{row[other]:>12}" for other in labels))


def _band(found: dict[str, Any], value: str) -> str:
    ends = "" if found["lo"] is None else f" [{found['lo']:.3f}, {found['hi']:.3f}]"
    return f"{found[value]:.3f}{ends}"


def _shown(estimate: dict[str, Any]) -> str:
    return f"{estimate['score']:.3f} [{estimate['lo']:.3f}, {estimate['hi']:.3f}]"
