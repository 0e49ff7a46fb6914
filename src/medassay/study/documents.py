"""The extraction study for records by a schema of the user's: what they are worth by every metric
at once, which fields are hard, and what the metrics say of each other.

Metrics of structure (the score of the run, precision, F1, the share that fits the schema), of words
(over the values of a record as plain text), and every field. Repeats are averaged per report first.

Source: specification of health-record extraction; text metrics; statistics 7.3.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from medassay.bank.run_items import RunItems
from medassay.core.records.item import Item
from medassay.core.records.target import Withheld
from medassay.core.records.trial import RowKey, Trial
from medassay.core.wording import listed
from medassay.errors import IncompleteError, InputError
from medassay.kinds.document.scorer import field_column, reference_of, value_of
from medassay.report.document import Grid, ReportDocument, Section
from medassay.report.plot.matrix import GridCell, score_grid
from medassay.score.text import text_likeness
from medassay.statistic.draws import seed_of
from medassay.statistic.interval.bootstrap import bootstrap_mean
from medassay.statistic.metric.correlation import pearson, tree
from medassay.storage.records import read_scored_trials
from medassay.storage.run import Run

TASK = "document"
STRUCTURE = ("score", "precision", "f1", "valid", "alone")
WORDS = ("levenshtein", "rougeL_unicode", "token_f1")
THRESHOLD = 0.8  # from which value on a report passes, where --pass names no other
_THRESHOLDS: Mapping[str, float] = {"valid": 1.0, "alone": 1.0}
_HARDEST = 10
_SHOWN = 40  # rows of the figure

# What one row answered: report → metric → values of its repeats.
_RowScores = dict[tuple[str, str], dict[str, list[float]]]


class DocumentNumber(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one row, and the share of reports that reach its threshold."""

    model: str
    setting: str
    mode: str
    metric: str
    value: float
    lo: float
    hi: float
    n: int
    threshold: float
    passed: float


def documents_sheet(run: Run, thresholds: Mapping[str, float] | None = None) -> ReportDocument:
    """Return the study of a sealed run of records by a schema.

    Parameters
    ----------
    thresholds : metric → value from which on a report passes, in place of 0.8 (1 for shares of
        whole replies)

    Raises
    ------
    IncompleteError
        When the run is not sealed.
    InputError
        When it is of another task, or a threshold names no metric of it.
    """
    if not run.sealed:
        raise IncompleteError(f"run {run.path.name}: not finished; the study needs a sealed run")
    code = run.manifest.own_code
    schema = None if code is None else code.own_code.schema
    if schema is None:
        raise InputError(f"run {run.id}: names no schema; the study needs a run of task '{TASK}'")
    fields = [field_column(part.path) for part in schema.fields]
    metrics = [*STRUCTURE, *WORDS, *fields]
    limits = {name: _THRESHOLDS.get(name, THRESHOLD) for name in metrics} | dict(thresholds or {})
    if unknown := sorted(limits.keys() - set(metrics)):
        raise InputError(f"--pass: '{unknown[0]}' is unknown; known are {', '.join(metrics)}")
    rows = _rows(run)
    numbers = list(_numbers(rows, metrics, limits))
    clusters = _clusters(rows, [*STRUCTURE, *WORDS])
    scripted = any("scripted" in row.flags for row in run.statistics.rows("overall"))
    return ReportDocument(
        name="documents",
        title=f"Records by a schema: run {run.id}",
        reading=_reading(numbers, fields, clusters),
        notes=[
            "Each report counts once; intervals are of each row alone, 95 %.",
            *(
                ["SCRIPTED: answers were scripted; these numbers measure nothing."]
                if scripted
                else []
            ),
        ],
        facts={"Run": run.id, "Metric of the run": run.statistics.metric},
        sections=[
            _table("Metrics", numbers, [*STRUCTURE, *WORDS]),
            _fields_section(numbers, fields),
            _hardest(rows),
        ],
        columns=DocumentNumber.__struct_fields__,
        lines=msgspec.to_builtins(numbers),
        data={
            "run": run.id,
            "numbers": msgspec.to_builtins(numbers),
            "clusters": clusters,
            "thresholds": limits,
        },
    )


def _rows(run: Run) -> dict[tuple[RowKey, str], _RowScores]:
    """Return (row, mode) → its reports; failed trials tell nothing, of withheld ones scores do."""
    items = RunItems(run.path, run.manifest.domains)
    rows: dict[tuple[RowKey, str], _RowScores] = {}
    for trial, score in read_scored_trials(run.path):
        if trial.outcome == "failed" or score.score is None:
            continue
        row = rows.setdefault((trial.row, trial.mode), {})
        values = row.setdefault((trial.domain, trial.item), {})
        values_of_trial = {"score": score.score, **(score.parts or {})}
        item = items.get(trial.domain, trial.item)
        if not isinstance(item.target, Withheld):
            values_of_trial |= _words(item, trial)
        for name, value in values_of_trial.items():
            if isinstance(value, int | float):
                values.setdefault(name, []).append(float(value))
    return rows


def _words(item: Item, trial: Trial) -> dict[str, float]:
    """Return the metrics of words of one record; 0 for what is no record."""
    record = value_of(trial.answer)
    if record is None:
        return dict.fromkeys(WORDS, 0.0)
    likeness = text_likeness(plain_text(record), plain_text(reference_of(item)))
    return {name: likeness[name] for name in WORDS}


def plain_text(value: Any) -> str:
    r"""Return the values of a record as plain text, a line each, in the order of its keys.

    Examples
    --------
    >>> plain_text({"b": ["x", None], "a": {"c": 1}})
    'x\n1'
    """
    if isinstance(value, Mapping):
        return "\n".join(filter(None, (plain_text(part) for part in value.values())))
    if isinstance(value, list | tuple):
        return "\n".join(filter(None, map(plain_text, value)))
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _numbers(
    rows: Mapping[tuple[RowKey, str], _RowScores],
    metrics: Sequence[str],
    limits: Mapping[str, float],
) -> Iterator[DocumentNumber]:
    for ((model, setting), mode), row in sorted(rows.items()):
        reports = [values for _, values in sorted(row.items())]
        for metric in metrics:
            repeats = [values[metric] for values in reports if values.get(metric)]
            means = np.array([sum(values) / len(values) for values in repeats])
            if not len(means):
                continue
            seed = seed_of("documents", model, setting, mode, metric)
            estimate = bootstrap_mean(means, seed=seed)
            yield DocumentNumber(
                model=model,
                setting=setting,
                mode=mode,
                metric=metric,
                value=estimate.value,
                lo=estimate.lo,
                hi=estimate.hi,
                n=len(means),
                threshold=limits[metric],
                passed=float((means >= limits[metric]).mean()),
            )


def _table(title: str, numbers: Sequence[DocumentNumber], metrics: Sequence[str]) -> Section:
    rows = [
        [
            number.model,
            number.setting,
            number.metric.replace("_", " "),
            f"{100 * number.value:.1f} [{100 * number.lo:.1f}, {100 * number.hi:.1f}]",
            f"{100 * number.passed:.0f} % from {number.threshold:g}",
            str(number.n),
        ]
        for number in numbers
        if number.metric in metrics
    ]
    heads = ["model", "setting", "metric", "mean, %", "reports that pass", "reports"]
    return Section(title=title, grids=[Grid(heads=heads, rows=rows, names=3)])


def _fields_section(numbers: Sequence[DocumentNumber], fields: Sequence[str]) -> Section:
    """Return every field of every row, as a map and as a table."""
    cells = [
        GridCell(
            row=f"{number.model}, {number.setting}",
            column=number.metric.removeprefix("field "),
            value=number.value,
        )
        for number in numbers
        if number.metric in fields
    ]
    names = list(dict.fromkeys(cell.row for cell in cells))[:_SHOWN]
    shown = [cell for cell in cells if cell.row in names]
    figure = ("documents-fields", score_grid(shown, unit="agreement")) if shown else None
    text = "Agreement with the reference by its rule, mean over the reports that expect any."
    return replace(_table("Fields", numbers, fields), text=text, figure=figure)


def _hardest(rows: Mapping[tuple[RowKey, str], _RowScores]) -> Section:
    """Return the reports with the lowest mean score over all rows."""
    scores: dict[tuple[str, str], list[float]] = {}
    for row in rows.values():
        for report, values in row.items():
            scores.setdefault(report, []).extend(values["score"])
    means = {report: sum(own) / len(own) for report, own in scores.items()}
    lowest = sorted(means.items(), key=lambda pair: (pair[1], pair[0]))[:_HARDEST]
    return Section(
        title="Hardest reports",
        text="By the mean score over all rows.",
        grids=[
            Grid(
                heads=["domain", "report", "mean score, %"],
                names=2,
                rows=[[domain, name, f"{100 * mean:.1f}"] for (domain, name), mean in lowest],
            )
        ],
    )


def _clusters(
    rows: Mapping[tuple[RowKey, str], _RowScores], metrics: Sequence[str]
) -> list[list[str]]:
    """Return the metrics that say the same over all answers: 1 − |r| below one half."""
    table = [
        [np.mean(values[name]) if values.get(name) else np.nan for name in metrics]
        for row in rows.values()
        for values in row.values()
    ]
    if not table:
        return []
    joined = tree(pearson(np.array(table)).values)
    return [[metrics[at] for at in cluster] for cluster in joined.clusters]


def _reading(
    numbers: Sequence[DocumentNumber], fields: Sequence[str], clusters: Sequence[Sequence[str]]
) -> str:
    """Return the study in one paragraph: which fields are hard, and which metrics say the same."""
    told = [number for number in numbers if number.metric in fields]
    means = {
        name: float(np.mean([n.value for n in told if n.metric == name]))
        for name in dict.fromkeys(n.metric for n in told)
    }
    hardest = [name.removeprefix("field ") for name in sorted(means, key=lambda n: means[n])[:3]]
    same = [listed(cluster) for cluster in clusters if len(cluster) > 1]
    text = f"Lowest over all rows: {listed(hardest)}." if hardest else "No field was expected."
    return text + (f" Metrics that say the same: {'; '.join(same)}." if same else "")
