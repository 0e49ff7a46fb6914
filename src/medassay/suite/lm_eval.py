"""A suite in the form of results that lm-evaluation-harness writes, for leaderboards that read it.

Source: https://github.com/EleutherAI/lm-evaluation-harness, `results_*.json` of version 0.4.
"""

from typing import Any

from medassay.suite.results import SuiteResult
from medassay.suite.run import ANSWERS, SuiteRun

_NAMES = {"accuracy": "acc"}  # ours → theirs


def lm_eval_documents(
    suite: SuiteRun, results: list[SuiteResult]
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return (model, setting) → its results: task → `metric,filter` → value, with standard errors.

    The filter is "none". `medassay` holds what that form has no place for: intervals, runs.
    """
    banks = {part.benchmark: part for part in suite.parts if ANSWERS in part.runs}
    rows = dict.fromkeys((result.model, result.setting) for result in results)
    documents: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        tasks: dict[str, dict[str, Any]] = {}
        intervals: dict[str, dict[str, list[float | None]]] = {}
        for result in results:
            if (result.model, result.setting) != row or result.value is None:
                continue
            name = _NAMES.get(result.metric, result.metric)
            task = tasks.setdefault(result.benchmark, {"alias": result.title})
            task[f"{name},none"] = result.value
            task[f"{name}_stderr,none"] = "N/A" if result.se is None else result.se
            intervals.setdefault(result.benchmark, {})[name] = [result.lo, result.hi]
        documents[row] = {
            "results": tasks,
            "configs": {
                name: {"task": name, "num_fewshot": _shots(suite, name, row[1])} for name in tasks
            },
            "versions": {name: banks[name].bank.content_sha256 for name in tasks},
            "n-samples": {
                name: {
                    "original": banks[name].bank.items,
                    "effective": max(r.n for r in results if r.benchmark == name),
                }
                for name in tasks
            },
            "higher_is_better": {
                name: {
                    _NAMES.get(r.metric, r.metric): r.better == "high"
                    for r in results
                    if r.benchmark == name
                }
                for name in tasks
            },
            "config": {"model": row[0], "model_args": ""},
            "model_name": row[0],
            "medassay": {
                "setting": row[1],
                "suite": suite.folder.name,
                "intervals": intervals,
                "runs": {name: banks[name].runs[ANSWERS] for name in tasks},
            },
        }
    return documents


def _shots(suite: SuiteRun, name: str, setting: str) -> int:
    return suite.benchmark(name).few_shot_k if setting.startswith("few_shot") else 0
