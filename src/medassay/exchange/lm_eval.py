"""Logs of lm-evaluation-harness: `samples_*.jsonl` beside `results_*.json`, read without importing
it.
"""

import hashlib
import json
import re
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from medassay.core.json import unchecked
from medassay.errors import InputError
from medassay.exchange.imported import ImportSource, file_digest
from medassay.exchange.prediction import (
    Prediction,
    PredictionFile,
    lenient_json,
    number_or_none,
)

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d{2}-\d{2}T[\d.:-]+)\.jsonl\Z")
_UNREADABLE = (msgspec.ValidationError, LookupError, TypeError, ValueError, OverflowError)


class _HarnessSample(msgspec.Struct):
    """One answer; the values of its metrics stand beside, each under its name."""

    doc_id: Any
    target: Any
    arguments: dict[str, Any] | list[Any]
    filter: str
    metrics: list[str]
    filtered_resps: Any
    doc: Any = None  # the row of the dataset that was asked, without the template of a model

    @property
    def requests(self) -> list[Sequence[Any]]:
        """Return the (context, continuation) of every request."""
        arguments = self.arguments
        requests = arguments.values() if isinstance(arguments, dict) else arguments
        return [
            list(request.values()) if isinstance(request, dict) else request for request in requests
        ]


class _HarnessResults(msgspec.Struct):
    """What a results file says of a run; nothing of it is checked yet."""

    model_name: Any = ""
    lm_eval_version: Any = "unknown"
    higher_is_better: Any = None
    n_samples: Any = msgspec.field(default=None, name="n-samples")

    @property
    def model(self) -> str:
        """Return the model's name, "" where none is told: the backend beside it serves many."""
        return self.model_name if isinstance(self.model_name, str) else ""

    def n_asked(self, task: str) -> int:
        """Return how many documents of a task were asked, 0 where it is not told."""
        tasks = self.n_samples
        counts = tasks.get(task) if isinstance(tasks, dict) else None
        n_asked = counts.get("effective") if isinstance(counts, dict) else None
        return n_asked if isinstance(n_asked, int) else 0

    def lower_is_better(self, task: str) -> set[str]:
        """Return the metrics of a task of which the harness says that less is better."""
        tasks = self.higher_is_better
        metrics = tasks.get(task) if isinstance(tasks, dict) else None
        return {k for k, v in metrics.items() if v is False} if isinstance(metrics, dict) else set()


def recognises(path: Path) -> bool:
    """Return whether a file or folder holds samples of lm-evaluation-harness."""
    if path.is_dir():
        return any(_NAME.match(file.name) for file in path.glob("samples_*.jsonl"))
    return path.is_file() and bool(_NAME.match(path.name))


def read(path: Path, *, metric: str = "", filter_name: str = "", model: str = "") -> PredictionFile:
    """Return the predictions of one samples file, or of the newest of each task in a folder.

    Parameters
    ----------
    metric : which metric is the score; default: the first of each task
    filter_name : which filter's rows to take; default: the first in each file
    model : the model's name; default: that of the results file beside the samples

    Raises
    ------
    InputError
        When there are no samples, no model's name or no such metric.
    """
    files = [path] if path.is_file() else _newest(path)
    if not files or not all(_NAME.match(file.name) for file in files):
        raise InputError(
            f"{path}: no samples_<task>_<time>.jsonl; expected the output of lm_eval --log_samples"
        )
    # Of all samples, also of those that a newer file of their task stands for.
    samples = files if path.is_file() else sorted(path.glob("samples_*.jsonl"))
    results = {file: _results(file) for file in samples}
    names = sorted({result.model for result in results.values()} - {""})
    if len(names) > 1 and not model:
        raise InputError(
            f"{path}: holds samples of several models ({', '.join(names)}); expected a folder for"
            " each, or --model where they are one"
        )
    result = results[files[0]]
    name = model or result.model
    if not name:
        raise InputError(
            f"{files[0].parent}: no results_*.json that names the model; name it with --model"
        )
    digest = hashlib.sha256("".join(file_digest(f) for f in files).encode()).hexdigest()
    version = str(result.lm_eval_version)
    limits = f"Imported from lm-evaluation-harness {version}: asked, answered and scored there."
    source = ImportSource(file=path, digest=digest, task="closed", limits=limits)
    return PredictionFile(
        source=source,
        predictions=(
            prediction
            for file in files
            for prediction in _predictions(file, results[file], name, metric, filter_name)
        ),
        remembered={
            "harness": "lm_eval",
            "version": version,
            "metric": metric or "the first of each task",
            "filter": filter_name or "the first of each task",
        },
    )


def _newest(folder: Path) -> list[Path]:
    """Return the newest samples of each task, by name."""
    newest: dict[str, Path] = {}
    for file in sorted(folder.glob("samples_*.jsonl")):
        if match := _NAME.match(file.name):
            current = newest.get(match["task"])
            if current is None or match["time"] > _time(current):
                newest[match["task"]] = file
    return [newest[task] for task in sorted(newest)]


def _time(file: Path) -> str:
    match = _NAME.match(file.name)
    return match["time"] if match else ""


def _results(samples: Path) -> _HarnessResults:
    """Return the results document written with a samples file."""
    path = samples.parent / f"results_{_time(samples)}.json"
    if not path.is_file():
        return _HarnessResults()
    results = lenient_json(path.read_bytes(), path.name)
    return unchecked(results if isinstance(results, dict) else {}, _HarnessResults)


def _predictions(
    file: Path, results: _HarnessResults, model: str, metric: str, filter_name: str
) -> Generator[Prediction, None, None]:
    match = _NAME.match(file.name)
    task = match["task"] if match else file.stem
    lower = results.lower_is_better(task)
    filter_wanted = filter_name
    n_taken = 0
    for number, row in enumerate(_rows(file), 1):
        where = f"{file.name} row {number}"
        try:
            sample = msgspec.convert(row, _HarnessSample)
            filter_wanted = filter_wanted or sample.filter
            if sample.filter != filter_wanted:
                continue
            chosen = metric or sample.metrics[0]
            if chosen not in sample.metrics:
                listed = ", ".join(sample.metrics)
                raise InputError(f"{where}: no metric '{chosen}'; it has {listed}")
            if chosen in lower:
                raise InputError(
                    f"{where}: of '{chosen}' less is better, and it would be ranked as if more"
                    " were; choose another metric with --metric"
                )
            yield Prediction(
                where=where,
                domain=task,
                model=model,
                item=str(sample.doc_id),
                text=_answer(sample),
                score=number_or_none(row[chosen], where),
                question=str(sample.requests[0][0]),
                reference=str(sample.target),
                content=json.dumps(sample.doc, sort_keys=True) if sample.doc else "",
            )
        except _UNREADABLE:
            raise InputError(
                f"{where}: no sample of lm-evaluation-harness; expected doc_id, target, arguments, "
                "filter, metrics and their values"
            ) from None
        n_taken += 1
    if filter_name and not n_taken:
        raise InputError(f"{file.name}: no rows of filter '{filter_name}'")
    if n_taken < results.n_asked(task):
        raise InputError(
            f"{file.name}: holds {n_taken} of the {results.n_asked(task)} samples that its results"
            " are of; expected the whole file"
        )


def _rows(file: Path) -> Iterator[Any]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            yield lenient_json(line, f"{file.name} row {number}")


def _answer(sample: _HarnessSample) -> str:
    """Return what was answered: the reply, or the continuation of the highest likelihood."""
    replies, requests = sample.filtered_resps, sample.requests
    if len(requests) > 1 and all(isinstance(r, list | tuple) for r in replies):
        best = max(range(len(replies)), key=lambda n: float(replies[n][0]))
        return str(requests[best][1]).strip()
    first = replies[0] if isinstance(replies, list) and replies else replies
    while isinstance(first, list) and first:
        first = first[0]
    return str(first)
