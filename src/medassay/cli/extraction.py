"""`medassay study extraction`: the study's tables in a terminal, and its files."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from medassay.cli import location
from medassay.cli.options import listed
from medassay.cli.output import out
from medassay.cli.sheet import refuse_taken, tell_sheet, write_folder
from medassay.core.ranks import NOT_SHOWN, SHOWN
from medassay.core.table import Table
from medassay.errors import UsageError

if TYPE_CHECKING:
    from medassay.core.records.estimate import Estimate
    from medassay.storage.run import Run
    from medassay.study.extraction_tables import ExtractionRow, ExtractionStudy, Metric

STUDIES = ("extraction",)
_ABREAST = 6  # rows of the ranking side by side


def extraction(
    runs: list[Path] = typer.Argument(
        ...,
        parser=location.read,
        metavar="run",
        help=(
            "A run of health records, or of records by a schema, by its folder or address; several"
            " are joined."
        ),
    ),
    to: Path | None = typer.Option(None, help="New folder for page, figures, Markdown, CSV, JSON."),
    embeddings: str = typer.Option(
        "",
        help="A sentence-transformers folder for the metric of meaning, or embedded:minilm.",
    ),
    passes: str = typer.Option(
        "", "--pass", help="Thresholds, comma-separated: json_similarity=0.9,medication=1."
    ),
) -> None:
    """Tell what health records are worth by every metric at once: families, passes, correlations,
    thinking or not.
    """
    report_extraction(opened_or_joined(runs), to, embeddings, thresholds_of(passes))


def opened_or_joined(runs: "Sequence[Path]", *, for_study: bool = True) -> "Run":
    """Return a run, or several joined, which only the study takes."""
    from medassay.runner.merge import join_runs
    from medassay.storage.run import open_run

    opened = [open_run(run) for run in runs]
    if len(opened) == 1:
        return opened[0]
    if not for_study:
        raise UsageError(
            "several runs are joined for `medassay study extraction` alone; name one run, or see"
            " `medassay compare`"
        )
    return join_runs(opened, opened[0].path.resolve().parent)


def thresholds_of(text: str) -> dict[str, float]:
    """Return `metric=value,…` as a mapping."""
    limits: dict[str, float] = {}
    for part in listed(text):
        name, sign, value = (side.strip() for side in part.partition("="))
        if name in limits:
            raise UsageError(f"--pass: '{name}' is given twice")
        try:
            limits[name] = float(value if sign else "none")
        except ValueError:
            raise UsageError(
                f"--pass: '{part}'; expected metric=value, separated by commas"
            ) from None
    return limits


def report_extraction(
    run: "Run", to: Path | None, embeddings: str, thresholds: Mapping[str, float]
) -> None:
    """Print the study, and write its files into a new folder where one is named."""
    from medassay.study.documents import TASK, documents_sheet
    from medassay.study.extraction import extraction_study
    from medassay.study.extraction_files import files_of

    refuse_taken(to)
    if run.manifest.task == TASK:
        if embeddings:
            raise UsageError("--embeddings: is for health records; leave it out")
        tell_sheet(documents_sheet(run, thresholds), to)
        return
    study = extraction_study(run, embeddings=embeddings, thresholds=thresholds)
    if to is not None:
        write_folder(to, files_of(study))
    page = [] if to is None else [f"study {to / 'index.html'}"]
    scripted = "SCRIPTED: answers or judges were scripted; these numbers measure nothing."
    out.tell(study, _parts(study), *([scripted] if study.scripted else []), *page)


def _parts(study: "ExtractionStudy") -> Iterator[str | Table]:
    from medassay.core.records.estimate import percent_text
    from medassay.study.extraction_files import reading

    rows, families = study.rows, [*study.families]
    table = []
    for row in rows:
        estimates = [*(row.families[name] for name in families), row.metrics["composite"]]
        table.append((row.model, row.setting, str(row.n), *map(percent_text, estimates)))
    yield Table(
        rows=table,
        text=("model", "setting", "reports", *families, "composite"),
        title="families, % with 95 % intervals",
    )
    for at in range(0, len(rows), _ABREAST):
        yield _metrics(study.metrics, rows[at : at + _ABREAST])
    for pair in study.thinking:
        for name in ("json_similarity", "medication", "composite"):
            if (gain := pair.differences.get(name)) is not None:
                verdict = SHOWN if gain.different else NOT_SHOWN
                told = f"{gain.points} points, {verdict}, n={gain.n}"
                yield f"thinking − direct, {pair.model}, {name}: {told}"
    clusters = "; ".join(", ".join(c) for c in study.correlation.clusters)
    yield f"metrics that say the same (1 − |r| below 0.5): {clusters}"
    yield reading(study)


def _metrics(metrics: "Sequence[Metric]", rows: "Sequence[ExtractionRow]") -> Table:
    """Return every metric of some rows: mean, and how many reports reach its threshold."""
    heads = [f"{row.model} {row.setting.partition(':')[2] or row.setting}" for row in rows]
    table = []
    for metric in metrics:
        cells = (_short(row.metrics[metric.name], row.passed[metric.name]) for row in rows)
        table.append((metric.name.replace("_", " "), f"{metric.threshold:g}", *cells))
    return Table(
        rows=table,
        text=("metric", "threshold", *heads),
        title="metrics, % (share of reports from the threshold on)",
    )


def _short(estimate: "Estimate | None", passed: "Estimate | None") -> str:
    if estimate is None or passed is None:
        return "–"
    return f"{100 * estimate.value:.1f} ({100 * passed.value:.0f})"
