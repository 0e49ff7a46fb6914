"""A sealed run in the shared schema of Every Eval Ever (0.3.0): a record a model, and its answers.

Written as its datastore files them: `data/<collection>/<developer>/<model>/<uuid>.json` with
`<uuid>_samples.jsonl` beside it. The uuid follows from the seal, so the same run gives the same
files.
"""

import datetime as dt
import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from medassay.bank.run_items import RunItems
from medassay.core.canonical import canonical, sha256_hex
from medassay.core.records.manifest import Manifest, RunModel
from medassay.core.records.score import TrialScore
from medassay.core.records.statistics import LeaderboardRow
from medassay.core.records.trial import Trial
from medassay.kinds.catalog import task_of_run
from medassay.storage.records import read_scored_trials
from medassay.storage.run import Run, file_sha256

SCHEMA = "0.3.0"
ModeRow = tuple[str, str, str]  # model, setting, mode


def write_every_eval_ever(run: Run, to: Path) -> None:
    """Write a folder `to` with the records of every model, setting and mode of a run."""
    items = RunItems(run.path, run.manifest.domains)
    written: dict[ModeRow, Path] = {}
    counts: dict[ModeRow, int] = {}
    for row in _rows(run):
        folder = to / "data" / "/".join(_place(run, row[0]))
        folder.mkdir(parents=True, exist_ok=True)
        written[row] = folder / f"{_uuid(run, row)}_samples.jsonl"
        written[row].touch()
        counts[row] = 0
    for row, lines in _samples(run, items):
        with written[row].open("ab") as file:
            for line in lines:
                file.write(canonical(line) + b"\n")
                counts[row] += 1
    for row, samples in written.items():
        record = _record(run, row)
        record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": samples.relative_to(to).as_posix(),
            "hash_algorithm": "sha256",
            "checksum": file_sha256(samples),
            "total_rows": counts[row],
        }
        name = samples.name.replace("_samples.jsonl", ".json")
        samples.with_name(name).write_bytes(canonical(record) + b"\n")


def _rows(run: Run) -> list[ModeRow]:
    fields = {
        (*row.key, row.mode)
        for domain in run.statistics.domains
        for row in run.statistics.rows(domain)
    }
    return sorted(fields)


def _uuid(run: Run, row: ModeRow) -> uuid.UUID:
    digest = hashlib.sha256("\x1f".join((run.seal.root, *row)).encode()).digest()
    return uuid.UUID(bytes=digest[:16], version=4)


def _place(run: Run, model: str) -> tuple[str, str, str]:
    """Return collection, developer and model as folders."""
    developer, _, name = _model_id(run, model).partition("/")
    collection = "-".join(sorted({bank.name for bank in run.manifest.banks}))
    return _portable(collection), _portable(developer), _portable(name)


def _portable(name: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-. ")[:100]
    return safe if safe and safe != "data" else f"{safe}_"


def _model_id(run: Run, model: str) -> str:
    """Return developer/model: as sent where it has that form, else with the family before it."""
    entry = run.manifest.models[model]
    sent = entry.model or model
    developer, slash, name = sent.partition("/")
    if slash and developer and name and "/" not in name:
        return f"{_portable(developer)}/{_portable(name)}"
    return f"{_portable(entry.family or 'unknown')}/{_portable(sent)}"


def _model_info(run: Run, model: str, entry: RunModel) -> dict[str, Any]:
    owner = {"local": "self_deployed", "external": "externally_managed"}
    deployed = owner.get(entry.location, "unknown")
    imported = entry.provider == "import"
    return {
        "name": model,
        "id": _model_id(run, model) if model in run.manifest.models else model,
        "developer": entry.family or "unknown",
        "additional_details": {
            "deployment_type": "unknown" if imported else deployed,
            "model_availability": "open_weights" if entry.weights_digest else "unknown",
            "provider": entry.provider,
        },
    }


def _record(run: Run, row: ModeRow) -> dict[str, Any]:
    model = row[0]
    entry = run.manifest.models[model]
    sealed = dt.datetime.fromisoformat(run.seal.sealed_at)
    stamp = str(int(sealed.timestamp()))
    results = [
        _result(run, domain, stored)
        for domain in sorted(run.statistics.domains)
        for stored in run.statistics.rows(domain)
        if (*stored.key, stored.mode) == row and stored.score is not None
    ]
    code = run.manifest.code
    return {
        "schema_version": SCHEMA,
        "evaluation_id": _evaluation_id(run, row),
        "evaluation_timestamp": run.seal.sealed_at,
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_name": run.manifest.name or run.id,
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
            "additional_details": {"seal_root": run.seal.root, "run": run.id},
        },
        "eval_library": {
            "name": "medassay",
            "version": code.version,
            "additional_details": {
                "methodology": run.manifest.methodology,
                "template": run.manifest.template,
            },
        },
        "model_info": _model_info(run, model, entry),
        "evaluation_results": [{**result, **_generation(run, row)} for result in results],
    }


def _evaluation_id(run: Run, row: ModeRow) -> str:
    stamp = int(dt.datetime.fromisoformat(run.seal.sealed_at).timestamp())
    return "/".join((run.id, _model_id(run, row[0]), row[1], row[2], str(stamp)))


def _judge_prompts(manifest: Manifest) -> list[str]:
    """Return the ids of the prompts that judges were asked.

    Of earlier runs those of their graders, which were hashes of prompt and code.
    """
    if manifest.judge_prompts is not None:
        return sorted({prompt_id for ids in manifest.judge_prompts.values() for prompt_id in ids})
    return sorted({*manifest.rubrics.values()})


def _result(run: Run, domain: str, row: LeaderboardRow) -> dict[str, Any]:
    lo, hi = row.scale
    second = row.second
    metric: dict[str, Any] = {
        "metric_id": row.metric,
        "metric_name": row.metric,
        "metric_unit": "proportion" if [lo, hi] == [0, 1] else "points",
        "lower_is_better": run.statistics.scale.better == "low",
        "score_type": "continuous",
        # Single answers may lie below the scale where points are taken off; their mean does not.
        "min_score": lo,
        "max_score": "Infinity" if hi is None else hi,
    }
    if run.manifest.judges and (not run.manifest.tasks or row.judge_failures is not None):
        metric["llm_scoring"] = {
            "judges": [
                {"model_info": _model_info(run, judge.id, judge)} for judge in run.manifest.judges
            ],
            "input_prompt": ", ".join(_judge_prompts(run.manifest)),
            "aggregation_method": "average",
        }
    details = {
        "second_interval": (f"{second.method} [{second.lo}, {second.hi}]" if second else "none"),
        "coverage": str(row.coverage),
        "rank": (f"{row.rank} ({row.rank_lo}-{row.rank_hi})" if row.rank else "not ranked"),
        "flags": " ".join(row.flags),
    }
    return {
        "evaluation_result_id": f"{domain}/{row.metric}",
        "evaluation_name": domain,
        "source_data": {
            "dataset_name": ", ".join(sorted({b.version for b in run.manifest.banks})),
            "source_type": "other",
        },
        "metric_config": metric,
        "score_details": {
            "score": row.score,
            "details": details,
            "uncertainty": {
                "confidence_interval": {
                    "lower": row.lo,
                    "upper": row.hi,
                    "confidence_level": run.statistics.level,
                    "method": row.interval or "percentile",
                },
                "num_samples": row.n,
                "num_bootstrap_samples": run.statistics.n_resamples,
            },
        },
    }


def _generation(run: Run, row: ModeRow) -> dict[str, Any]:
    model, setting, mode = row
    spec = run.manifest_document["models"][model]
    arguments = {
        key: spec[key]
        for key in ("temperature", "top_p", "max_tokens")
        if isinstance(spec.get(key), int | float) and spec[key]
    }
    return {
        "generation_config": {
            "generation_args": arguments,
            "additional_details": {
                "setting": setting,
                "mode": mode,
                "seed": str(run.manifest.plan.seed),
            },
        }
    }


def _samples(run: Run, items: RunItems) -> Iterator[tuple[ModeRow, Iterator[dict[str, Any]]]]:
    """Yield row and sample lines of one cell after another; answers without a score have none."""
    task = task_of_run(run.manifest)
    by_metric = {statistics.metric: statistics.scale for statistics in run.statistics.by_metric}

    def measure(trial: Trial) -> tuple[str, float | None]:
        """Return the metric of an answer, and its best score."""
        metric = task.part(items.own_form(trial.domain, trial.item)).metric
        metric = metric if metric in by_metric else run.statistics.metric
        scale = by_metric[metric]
        return metric, scale.hi if scale.better == "high" else scale.lo

    def cell(pair: tuple[Trial, TrialScore]) -> tuple[str, ModeRow]:
        trial = pair[0]
        return trial.domain, (trial.model, trial.setting, trial.mode)

    for (domain, row), trials_of_cell in groupby(read_scored_trials(run.path), key=cell):
        yield (
            row,
            (
                _sample(run, row, items.record(domain, trial.item), trial, score, measure(trial))
                for trial, score in trials_of_cell
                if score.score is not None
            ),
        )


def _sample(
    run: Run,
    row: ModeRow,
    item: Mapping[str, Any],
    trial: Trial,
    score: TrialScore,
    measure: tuple[str, float | None],
) -> dict[str, Any]:
    metric, best = measure
    question = "\n\n".join(item[key] for key in ("context", "question") if item.get(key))
    reference = _reference(item)
    return {
        "schema_version": SCHEMA,
        "evaluation_id": _evaluation_id(run, row),
        "model_id": _model_id(run, row[0]),
        "evaluation_name": trial.domain,
        "evaluation_result_id": f"{trial.domain}/{metric}",
        "sample_id": f"{trial.item}#{trial.repeat}" if trial.repeat else trial.item,
        "sample_hash": sha256_hex((question + "".join(reference)).encode()),
        "interaction_type": "single_turn",
        "input": {
            "raw": question,
            "reference": reference,
            "choices": list(item["options"]) if "options" in item else None,
        },
        "output": {"raw": [trial.text or ""]},
        "messages": None,
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": trial.value or "",
                "extraction_method": f"{trial.outcome}: {trial.reason}",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": score.score, "is_correct": score.score == best},
    }


def _reference(item: Mapping[str, Any]) -> list[str]:
    if "facts" in item:
        return [fact if isinstance(fact, str) else fact["text"] for fact in item["facts"]]
    for key in ("expected", "regex", "reference"):
        if key in item:
            return [str(item[key])]
    if "range" in item:
        return [f"{item['range']['lo']} to {item['range']['hi']}"]
    return []
