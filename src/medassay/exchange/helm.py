"""Runs of HELM: `per_instance_stats.json` beside `run_spec.json`, read without importing it."""

import hashlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

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
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


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
    spec = lenient_json((folder / SPEC).read_bytes(), SPEC)
    stats = lenient_json((folder / STATS).read_bytes(), STATS)
    try:
        domain, model = str(spec["name"]).partition(":")[0], str(spec["adapter_spec"]["model"])
        names = list(dict.fromkeys(s["name"]["name"] for row in stats for s in row["stats"]))
    except _UNREADABLE:
        raise InputError(
            f"{folder}: no run of HELM; expected {SPEC} with name and adapter_spec.model, and"
            f" {STATS} with a list of stats for each instance"
        ) from None
    metric_taken = metric or next((name for name in _FIRST if name in names), "")
    if metric_taken not in names:
        raise InputError(
            f"{folder}: no statistic '{metric_taken}'; there are {', '.join(names[:20])}: choose"
            " with --metric"
        )
    digest = hashlib.sha256(
        "".join(file_digest(folder / name) for name in (SPEC, STATS)).encode()
    ).hexdigest()
    limits = "Imported from HELM: asked, answered and scored there."
    source = ImportSource(file=folder, digest=digest, task="closed", limits=limits)
    return PredictionFile(
        source=source,
        predictions=_predictions(folder, stats, metric_taken, domain=domain, model=model),
        remembered={"harness": "helm", "version": "unknown", "metric": metric_taken},
    )


def _predictions(
    folder: Path, stats: list[dict[str, Any]], metric: str, *, domain: str, model: str
) -> Generator[Prediction, None, None]:
    replies = _texts_by_instance(folder)
    for number, row in enumerate(stats, 1):
        where = f"{STATS} instance {number}"
        if row.get("perturbation"):
            continue
        try:
            values = [s for s in row["stats"] if s["name"]["name"] == metric]
            values = [s for s in values if not s["name"].get("perturbation")]
            mean = values[0]["mean"] if values else None
            name, trial = str(row["instance_id"]), int(row.get("train_trial_index", 0))
        except _UNREADABLE:
            raise InputError(
                f"{where}: expected instance_id, train_trial_index and stats"
            ) from None
        question, reference, text = replies.get((name, trial), (None, None, ""))
        yield Prediction(
            where=where,
            domain=domain,
            model=model,
            item=name,
            repeat=trial,
            text=text,
            score=number_or_none(mean, where),
            question=question,
            reference=reference,
        )


def _texts_by_instance(folder: Path) -> dict[tuple[str, int], tuple[str | None, str | None, str]]:
    """Return question, right reference and reply of each instance, where HELM kept them."""
    path = folder / STATE
    if not path.is_file():
        return {}
    document = lenient_json(path.read_bytes(), STATE)
    replies: dict[tuple[str, int], tuple[str | None, str | None, str]] = {}
    try:
        for state in document["request_states"]:
            instance = state["instance"]
            if instance.get("perturbation"):
                continue
            right = [
                r["output"]["text"]
                for r in instance.get("references", [])
                if "correct" in r.get("tags", [])
            ]
            completions = (state.get("result") or {}).get("completions") or [{}]
            key = (str(instance["id"]), int(state.get("train_trial_index", 0)))
            replies[key] = (
                str(instance["input"]["text"]),
                "; ".join(right) or None,
                str(completions[0].get("text", "")).strip(),
            )
    except _UNREADABLE:
        raise InputError(f"{path}: expected request_states with instance and result") from None
    return replies
