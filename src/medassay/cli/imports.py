"""`medassay import …`: runs of others."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from medassay.cli.bank import read_columns
from medassay.cli.leaderboard import tell_run
from medassay.cli.options import group, load_bank_argument
from medassay.errors import UsageError

if TYPE_CHECKING:
    from medassay.exchange.ddx import DdxSource

app = group("Make a run from finished predictions of others.")


_TO = typer.Option(None, help="The run's folder; default: runs/import-<hash>-<n>.")


@app.command()
def csv(
    table: Path = typer.Argument(..., help="A CSV table, one row a prediction."),
    columns: str = typer.Option(
        ...,
        help=(
            "item=…,model=…,domain=… and prediction=…,key=… or score=…; also setting, mode, repeat,"
            " cluster. With --bank: item=…,model=… and prediction=… or score=…."
        ),
    ),
    bank: list[str] = typer.Option(
        [],
        help=(
            "A bank's folder, or 'demo': predictions are on its items, which gives questions,"
            " domains, keys and a history; once for each."
        ),
    ),
    models: Path | None = typer.Option(
        None, help="A models file that says family, size and licence of the models, by their names."
    ),
    to: Path | None = _TO,
) -> None:
    """Import a table of predictions: intervals, ranks and boards then work on it."""
    from medassay.exchange.bank_predictions import import_on_banks
    from medassay.exchange.predictions import import_predictions, unlike_keys_lines
    from medassay.model.spec import load_entries

    names = read_columns(columns)
    # Also those that are not enabled: nobody is asked here.
    entries = {} if models is None else load_entries(models)
    if not bank:
        run = import_predictions(table, names, to=to, models=entries)
        limits = (bank.limits for bank in run.manifest.banks)
        tell_run(run, limits if "score" in names else unlike_keys_lines(run))
        return
    banks = [load_bank_argument(name) for name in bank]
    imported = import_on_banks(table, names, banks, models=entries, to=to)
    tell_run(imported.run, imported.coverage)


@app.command()
def ddx(
    path: Path = typer.Argument(
        ...,
        help=(
            "Kernel29's CSV: a table of labels, diagnoses_<bench>_<model>.csv, or a folder of"
            " these."
        ),
    ),
    names: list[Path] = typer.Option(
        [], help="A JSON file of disease names (RareBench, Orphanet, MONDO); may be repeated."
    ),
    rules: str = typer.Option(
        "",
        help=(
            "How to score and aggregate, comma-separated: preset=easy|medium|hard, or k=… and x0=…;"
            " semantic_max=16|published; unjudged=d_max|exclude_rank; rank_limit=5."
        ),
    ),
    golden: str = typer.Option(
        "one",
        help=(
            "Of several names that a case of raw replies has: the first is the golden diagnosis"
            " (one), or any of them (any)."
        ),
    ),
    to: Path | None = _TO,
) -> None:
    """Import ranked diagnoses: labels as given, or raw replies whose names are compared by rule."""
    from medassay.cli.rules import SCORING, read_rules
    from medassay.core.json import record_as
    from medassay.core.records.plan import AGGREGATING
    from medassay.exchange.ddx import DdxSource, import_ddx

    chosen = replace(
        read_rules(rules, names=(*AGGREGATING, *SCORING)),
        names=tuple(str(name.resolve()) for name in names),
    )
    if golden not in ("one", "any"):
        raise UsageError(f"--golden: '{golden}'; expected one or any")
    run = import_ddx(path, rules=chosen, golden="any" if golden == "any" else "one", to=to)
    tell_run(run, _name_lines(record_as(run.manifest.source, DdxSource, "manifest.json: source")))


def _name_lines(source: "DdxSource") -> Iterator[str]:
    """Yield which names are golden, which cases are left out, and how far names and labels
    agree.
    """
    from medassay.core.records.diagnosis import golden_sentence

    if notice := golden_sentence(source.golden, source.cases_with_several_diagnoses):
        yield notice
    if left_out := source.cases_without_golden_diagnosis:
        yield f"left out: {left_out} cases without a golden diagnosis"
    for model, ranks in source.names_against_ranks.items():
        yield (
            f"names against given ranks, {model}: {ranks.same} cases the same,"
            f" {ranks.names_lower} further down or not found by names, {ranks.names_higher}"
            " further up"
        )
    if (counts := source.names_against_labels) is not None:
        yield (
            f"names against labels: {counts.both} of {counts.both + counts.judge_only} Exact"
            f" Synonyms found by comparing names; {counts.names_only} names found whose label is"
            " another"
        )


@app.command()
def healthbench(
    files: list[Path] = typer.Argument(
        ...,
        help="HealthBench results, one JSON object a line: a file for each model, or a folder.",
    ),
    model: list[str] = typer.Option(
        [], help="The model that gave the answers, once a file; default: the file's name."
    ),
    to: Path | None = _TO,
) -> None:
    """Import answers with a verdict for each criterion: scores, tags and every verdict on a
    board.
    """
    from medassay.exchange.healthbench import import_healthbench

    tell_run(import_healthbench(files, models=model, to=to))


@app.command()
def inspect(
    logs: list[Path] = typer.Argument(
        ..., help="Logs of Inspect (.eval, or .json), or folders of them, at any depth."
    ),
    scorer: str = typer.Option(
        "", help="The score to take where a log has several; default: the first."
    ),
    to: Path | None = _TO,
) -> None:
    """Import finished evaluations of Inspect into one run: a task is a domain, epochs are
    repeats.
    """
    _load("inspect", logs, to, scorer=scorer)


@app.command("lm-eval")
def lm_eval(
    samples: list[Path] = typer.Argument(
        ...,
        help=(
            "samples_*.jsonl of lm-evaluation-harness, or folders of them, at any depth; of a"
            " folder the newest of each task."
        ),
    ),
    metric: str = typer.Option("", help="The metric to take; default: the first of each task."),
    filter_name: str = typer.Option(
        "", "--filter", help="The filter whose rows to take; default: the first."
    ),
    model: list[str] = typer.Option(
        [],
        help=(
            "The model's name, once for each log given; default: that of the results file beside"
            " the samples."
        ),
    ),
    to: Path | None = _TO,
) -> None:
    """Import samples of lm-evaluation-harness into one run: each task is a domain."""
    _load("lm-eval", samples, to, metric=metric, filter_name=filter_name, models=model)


@app.command()
def helm(
    folders: list[Path] = typer.Argument(
        ...,
        help=(
            "Run folders of HELM (per_instance_stats.json with run_spec.json), or folders of these,"
            " at any depth."
        ),
    ),
    metric: str = typer.Option("", help="The statistic to take; default: exact_match."),
    to: Path | None = _TO,
) -> None:
    """Import runs of HELM into one run: a scenario is a domain, train trials are repeats."""
    _load("helm", folders, to, metric=metric)


def _load(name: str, paths: list[Path], to: Path | None, **options: Any) -> None:
    from medassay.exchange.catalog import IMPORTS

    run = IMPORTS[name].load(*paths, to=to, **options)
    left_out = (run.manifest.source or {}).get("left_out", [])
    tell_run(run, (f"left out: {entry['file']}, {entry['reason']}" for entry in left_out))


@app.command()
def healthbranches(
    folder: Path = typer.Argument(..., help="A folder with questions.csv and raw_predictions.csv."),
    to: Path | None = _TO,
    extraction: str = typer.Option(
        "standard",
        help=(
            "standard: our rules for letters; paper: the published ones, to compare with published"
            " accuracies."
        ),
    ),
) -> None:
    """Import raw quiz predictions of HealthBranches: read by our parser, zero_shot and rag side by
    side.
    """
    from medassay.exchange.healthbranches import import_healthbranches

    tell_run(import_healthbranches(folder, to=to, extraction=extraction))
