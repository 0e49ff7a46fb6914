"""Runs of HELM: `per_instance_stats.json` beside `run_spec.json`, read without importing it."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec

from medassay.core.canonical import sha256_hex
from medassay.core.json import record_as
from medassay.errors import InputError
from medassay.exchange.imported import ImportSource, file_digest
from medassay.exchange.prediction import (
    Prediction,
    PredictionFile,
    lenient_json,
    number_or_none,
)

STATS, SPEC, STATE = "per_instance_stats.json", "run_spec.json", "scenario_state.json"
_FIRST = ("exact_match", "quasi_exact_match", "medcalc_bench_accuracy", "ehr_sql_precision")


class _Adapter(msgspec.Struct):
    model: str


class _Spec(msgspec.Struct):
    name: str
    adapter_spec: _Adapter


class _StatName(msgspec.Struct):
    name: str
    perturbation: Any = None


class _Stat(msgspec.Struct):
    name: _StatName
    mean: Any = None


class _Instance(msgspec.Struct):
    """What was measured of one answer."""

    instance_id: str | int
    stats: list[_Stat]
    train_trial_index: int = 0
    perturbation: Any = None


class _HelmText(msgspec.Struct):
    text: str = ""


class _Reference(msgspec.Struct):
    output: _HelmText
    tags: list[str] = []


class _Asked(msgspec.Struct):
    id: str | int
    input: _HelmText
    references: list[_Reference] = []
    perturbation: Any = None


class _Result(msgspec.Struct):
    completions: list[_HelmText] = []


class _RequestState(msgspec.Struct):
    instance: _Asked
    result: _Result | None = None
    train_trial_index: int = 0
    reference_index: int | None = None  # where each option is asked about by itself


class _ScenarioState(msgspec.Struct):
    request_states: list[_RequestState]


def recognises(path: Path) -> bool:
    """Return whether a path is a run folder of HELM, or its file of statistics."""
    folder = path.parent if path.name == STATS else path
    return (folder / STATS).is_file() and (folder / SPEC).is_file()


def read(path: Path, *, metric: str = "") -> PredictionFile:
    """Return the predictions of one run: the scenario is the domain, train trials are repeats.

    Parameters
    ----------
    metric : which statistic is the score; default: exact_match, or another accuracy that is there

    Raises
    ------
    InputError
        When files are missing or hold no such statistic. Perturbed instances are left out.
    """
    folder = path.parent if path.name == STATS else path
    if not recognises(folder):
        raise InputError(f"{folder}: no {STATS} with {SPEC}; expected a run folder of HELM")
    expected = (
        f"{folder}: no run of HELM; expected {SPEC} with name and adapter_spec.model, and {STATS}"
        " with a list of stats for each instance"
    )
    spec = record_as(lenient_json((folder / SPEC).read_bytes(), SPEC), _Spec, expected, InputError)
    documents = lenient_json((folder / STATS).read_bytes(), STATS)
    stats = record_as(documents, list[_Instance], expected, InputError)
    names = list(dict.fromkeys(stat.name.name for row in stats for stat in row.stats))
    metric_taken = metric or next((name for name in _FIRST if name in names), "")
    if metric_taken not in names:
        missing = f"no statistic '{metric_taken}'" if metric else "none of the usual statistics"
        raise InputError(
            f"{folder}: {missing}; there are {', '.join(names[:20])}: choose with --metric"
        )
    digest = sha256_hex("".join(file_digest(folder / name) for name in (SPEC, STATS)).encode())
    limits = "Imported from HELM: asked, answered and scored there."
    if metric_taken not in _FIRST:  # HELM does not say which way its statistics are read
        limits += f" Of its statistic {metric_taken} more is taken as better."
    source = ImportSource(file=folder, digest=digest, task="closed", limits=limits)
    return PredictionFile(
        source=source,
        predictions=_predictions(folder, stats, metric_taken, spec),
        remembered={"harness": "helm", "version": "unknown", "metric": metric_taken},
    )


def _predictions(
    folder: Path, stats: list[_Instance], metric: str, spec: _Spec
) -> Generator[Prediction, None, None]:
    replies = _texts_by_instance(folder)
    scenario, _, arguments = spec.name.partition(":")
    if not replies:  # then the arguments alone tell what was asked, as subject=anatomy
        asked = (a for a in arguments.split(",") if a and not a.startswith("model="))
        scenario = ":".join(filter(None, (scenario, ",".join(asked))))
    measured = {(str(r.instance_id), r.train_trial_index) for r in stats if not r.perturbation}
    if unmeasured := [place for place in replies if place not in measured]:
        raise InputError(
            f"{folder / STATS}: nothing of {len(unmeasured):,} of {len(replies):,} answers that"
            f" {STATE} has, first '{unmeasured[0][0]}'; one of the files is of another run, or cut"
        )
    for number, row in enumerate(stats, 1):
        if row.perturbation:
            continue
        means = [
            stat.mean
            for stat in row.stats
            if stat.name.name == metric and not stat.name.perturbation
        ]
        place = (str(row.instance_id), row.train_trial_index)
        question, reference, text = replies.get(place, (None, None, ""))
        where = f"{STATS} instance {number}"
        yield Prediction(
            where=where,
            domain=scenario,
            model=spec.adapter_spec.model,
            item=place[0],
            repeat=place[1],
            text=text,
            score=number_or_none(means[0] if means else None, where),
            question=question,
            reference=reference,
        )


def _texts_by_instance(folder: Path) -> dict[tuple[str, int], tuple[str | None, str | None, str]]:
    """Return question, right reference and reply of each instance, where HELM kept them."""
    path = folder / STATE
    if not path.is_file():
        return {}
    expected = f"{path}: expected request_states with instance and result"
    document = record_as(
        lenient_json(path.read_bytes(), STATE), _ScenarioState, expected, InputError
    )
    replies: dict[tuple[str, int], tuple[str | None, str | None, str]] = {}
    for state in document.request_states:
        instance = state.instance
        if instance.perturbation:
            continue
        right = [r.output.text for r in instance.references if "correct" in r.tags]
        completions = state.result.completions if state.result else []
        replies[str(instance.id), state.train_trial_index] = (
            instance.input.text,
            "; ".join(right) or None,
            # Where each option is asked about by itself, no text is the answer.
            completions[0].text.strip() if completions and state.reference_index is None else "",
        )
    return replies
