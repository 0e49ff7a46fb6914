"""Differential diagnosis: ranked lists by clinical closeness and severity; bad cases weigh more.

The unit is model × prompt. The score that ranks is the semantic score, 0 to 16; beside it stand the
severity score, both aggregates, top-k and quadrants, each with its interval.

Source: specification of differential-diagnosis scoring; statistics 7.10, "ddx aggregates".
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from medassay.bank.disease_names import load_disease_names
from medassay.bank.run_items import RunItems
from medassay.core.records.manifest_object import DiagnosisRules
from medassay.core.records.plan import AGGREGATING, DdxRules
from medassay.core.records.statistics_object import StatisticsObject
from medassay.core.records.target import Diagnoses
from medassay.core.records.task import Task
from medassay.core.scale import Scale
from medassay.errors import InputError
from medassay.kinds.diagnoses.scorer import BEST
from medassay.kinds.diagnoses.summary import CASE_KEYS, NAMES_ALONE, DdxCases
from medassay.storage.records import read_scored_trials, read_scores
from medassay.storage.run import Run
from medassay.summary.leaderboard import leaderboard_document
from medassay.summary.scores import RunScores

DDX = Task(
    name="ddx",
    metric="semantic_score",
    split="test",
    template="ddx",
    readers={"diagnoses": ("diagnoses", None)},
    graders={"diagnoses": "ddx"},
    n_judges=1,
    scale=Scale(hi=BEST),
)
# Names compared by rule, nobody asked: a lower bound of closeness, and no severity.
DDX_NAMES = Task(
    name=NAMES_ALONE,
    metric="semantic_score_by_names",
    split="test",
    template="ddx",
    readers={"diagnoses": ("diagnoses", None)},
    graders={"diagnoses": "ddx_names"},
    n_judges=0,
    scale=Scale(hi=BEST),
)


def remembered_rules(rules: DdxRules, golden: Iterable[str], base: Path) -> DiagnosisRules:
    """Return what a run remembers of its rules: with the files of names and the synonyms taken from
    them.

    Only names of the run's own golden diagnoses are taken, so that the run can be scored again
    alone.
    """
    diagnoses = set(golden)
    files: list[dict[str, str]] = []
    synonyms: dict[str, list[str]] = {}
    for name in rules.names:
        loaded = load_disease_names(base / name)
        files.append({"file": loaded.file, "sha256": loaded.sha256, "form": loaded.form})
        for key, names in loaded.synonyms(diagnoses).items():
            synonyms[key] = sorted({*synonyms.get(key, ()), *names})
    named = replace(rules, names=tuple(file["file"] for file in files))
    return {"rules": named.to_dict(), "files": files, "synonyms": synonyms}


def case_scores(run: Run, name: str, mode: str) -> dict[tuple[str, str], list[float]]:
    """Return (model, setting) → the scores of its lists, `semantic` or `severity`, unknown ones
    left out.
    """
    items = RunItems(run.path, run.manifest.domains)
    if run.manifest.tasks:
        items = items.of_forms({Diagnoses.form})
    cases = DdxCases(items, run.manifest)
    scores: dict[tuple[str, str], list[float]] = {}
    for score in read_scores(run.path):
        if not items.holds(score.domain, score.item):
            continue
        value = cases.numbers(score).get(name)
        if score.mode == mode and value is not None:
            scores.setdefault((score.model, score.setting), []).append(value)
    return scores


def aggregated_by(run: Run, rules: DdxRules) -> StatisticsObject:
    """Return the statistics of a sealed run with its lists aggregated by other rules.

    Nothing is written.

    Of the rules `preset`, `k`, `x0` and `semantic_max` count; the others decide on scores, which
    stay.

    Raises
    ------
    InputError
        When the run holds no ranked diagnoses, or the rules are wrong.
    """
    if run.manifest.ddx is None:
        raise InputError(f"run {run.id}: holds no ranked diagnoses; these rules are for task ddx")
    if run.manifest.tasks:
        raise InputError(
            f"run {run.id}: asks items of several kinds; these rules are for runs of task ddx alone"
        )
    if (problem := rules.problem()) is not None:
        raise InputError(problem)
    chosen = {name: getattr(rules, name) for name in AGGREGATING}
    changed_rules = replace(run.manifest.ddx_rules, **chosen)
    entry = msgspec.structs.replace(run.manifest.ddx, rules=changed_rules.to_dict())
    manifest = msgspec.structs.replace(run.manifest, ddx=entry)
    items = RunItems(run.path, run.manifest.domains)
    task = {DDX.name: DDX, DDX_NAMES.name: DDX_NAMES}[run.manifest.task]
    cases = DdxCases(items, manifest)
    scores = RunScores(items, manifest, task.scale, task.scale.lo)
    for trial, score in read_scored_trials(run.path):
        scores.add_trial(trial, score.score)
        cases.add(trial, score)
    document = leaderboard_document(scores, manifest, task, None, [cases])
    kept_of = {
        (name, row["model"], row["setting"], row["mode"]): row
        for name, rows in run.statistics.document["domains"].items()
        for row in rows
    }
    domains = {
        name: [
            kept_of[name, row["model"], row["setting"], row["mode"]]
            | {key: value for key, value in row.items() if key in CASE_KEYS}
            for row in rows
        ]
        for name, rows in document["domains"].items()
    }
    return {**run.statistics.document, "domains": domains, "ddx": document["ddx"]}
