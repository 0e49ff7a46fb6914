"""Two judges on the same answers, or a judge and people: where they differ, and what it changes."""

import csv
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from medassay.core.estimate import Estimate
from medassay.core.trial import Scale
from medassay.errors import InputError
from medassay.judge.facts import VERDICTS
from medassay.statistic.agreement.people import (
    cohen_kappa,
    kappa_interval,
    prediction_powered_mean,
)
from medassay.statistic.draws import seed_of
from medassay.statistic.interval.bootstrap import bootstrap_mean
from medassay.storage.jsonl import read_jsonl
from medassay.storage.run import Run
from medassay.task.judged import TRIAL_KEY

Key = tuple[Any, ...]


def compare_judges(first: tuple[Run, str], second: tuple[Run, str]) -> dict[str, Any]:
    """Return how two judges (run, judge) compare on the answers that both judged.

    Keys: `scores` (mean of each with interval, mean difference), and for target facts `confusion`
    (first judge's verdict → second's → count), `kappa` with interval from resampling items.

    Raises
    ------
    InputError
        When a run has no such judge, or no answer was judged by both.
    """
    a, b = _verdicts(*first), _verdicts(*second)
    shared = sorted(set(a) & set(b))
    if not shared:
        raise InputError("no answer was judged by both; compare runs of the same answers")
    names = [f"{run.id}: {judge}" for run, judge in (first, second)]
    seed = seed_of(first[0].id, second[0].id, "judges", "study")
    document: dict[str, Any] = {
        "first": names[0],
        "second": names[1],
        "answers": len(shared),
        "scores": _scores(
            [a[k]["score"] for k in shared], [b[k]["score"] for k in shared], shared, seed
        ),
    }
    if "facts" in a[shared[0]]["body"] and "facts" in b[shared[0]]["body"]:
        document |= _facts(a, b, shared, seed)
    return document


def compare_with_people(run: Run, judge: str, labels: Path) -> dict[str, Any]:
    """Return how a judge compares with people's scores of some answers.

    Parameters
    ----------
    labels : CSV with the columns domain, model, setting, item and score (on the run's scale); mode
        and repeat where they are not solo and 0. The labelled answers should be a random draw.

    Keys: `plain` (the judge's mean over all answers), `corrected` (prediction-powered; None below 30
    labels), `judge_minus_human` with interval.
    """
    verdicts = _verdicts(run, judge)
    people = _labels(labels)
    unknown = sorted(set(people) - set(verdicts))
    if unknown:
        raise InputError(
            f"{labels.name}: {len(unknown)} labelled answers have no verdict of '{judge}', first "
            f"{' · '.join(map(str, unknown[0]))}"
        )
    chosen = sorted(people)
    if not chosen:
        raise InputError(f"{labels.name}: no labels below the header")
    human = [people[k] for k in chosen]
    on_labelled = [verdicts[k]["score"] for k in chosen]
    rest = [v["score"] for k, v in sorted(verdicts.items()) if k not in people]
    scale = run.statistics["scale"]
    corrected = prediction_powered_mean(
        human, on_labelled, rest, clip=(scale["lo"], scale["hi"])
    )
    seed = seed_of(run.id, judge, "people", "study")
    return {
        "judge": judge,
        "labelled": len(chosen),
        "unlabelled": len(rest),
        "plain": _mean(
            [*on_labelled, *rest],
            [k[4] for k in (*chosen, *(k for k in sorted(verdicts) if k not in people))],
            seed,
        ),
        "corrected": None if corrected is None else asdict(corrected),
        "judge_minus_human": _mean(
            [j - h for j, h in zip(on_labelled, human, strict=True)],
            [k[4] for k in chosen],
            seed,
            signed=True,
        ),
    }


def _verdicts(run: Run, judge: str) -> dict[Key, dict[str, Any]]:
    path = run.path / "verdicts.jsonl"
    if not path.exists():
        raise InputError(f"run {run.id}: has no verdicts; it was not judged")
    found: dict[Key, dict[str, Any]] = {}
    seen = set()
    for verdict in read_jsonl(path):
        seen.add(verdict["judge"])
        if verdict["judge"] == judge and verdict["score"] is not None:
            found[tuple(verdict[k] for k in TRIAL_KEY)] = verdict
    if judge not in seen:
        raise InputError(
            f"run {run.id}: no judge '{judge}'; its judges are {', '.join(sorted(seen))}"
        )
    return found


def _labels(path: Path) -> dict[Key, float]:
    people: dict[Key, float] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, row in enumerate(csv.DictReader(file), 2):
                try:
                    key = (
                        *(row[k] for k in ("domain", "model", "setting")),
                        row.get("mode") or "solo",
                        row["item"],
                        int(row.get("repeat") or 0),
                    )
                    people[key] = float(row["score"])
                except (KeyError, TypeError, ValueError) as error:
                    raise InputError(
                        f"{path.name} row {number}: {error}; expected domain, model, setting, item "
                        "and a number as score"
                    ) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    return people


def _facts(
    a: Mapping[Key, Mapping[str, Any]],
    b: Mapping[Key, Mapping[str, Any]],
    shared: list[Key],
    seed: int,
) -> dict[str, Any]:
    said = [
        (VERDICTS.index(x["verdict"]), VERDICTS.index(y["verdict"]), f"{key[0]}\x1f{key[4]}")
        for key in shared
        for x, y in zip(a[key]["body"]["facts"], b[key]["body"]["facts"], strict=True)
    ]
    one, two = np.array([s[0] for s in said]), np.array([s[1] for s in said])
    counts = Counter((VERDICTS[x], VERDICTS[y]) for x, y, _ in said)
    interval = kappa_interval(one, two, [s[2] for s in said], seed=seed)
    return {
        "facts": len(said),
        "confusion": {x: {y: counts[x, y] for y in VERDICTS} for x in VERDICTS},
        "agreed": float((one == two).mean()),
        "kappa": {
            "value": cohen_kappa(one, two),
            "lo": None if interval is None else interval[0],
            "hi": None if interval is None else interval[1],
        },
    }


def _scores(a: list[float], b: list[float], keys: list[Key], seed: int) -> dict[str, Any]:
    items = [f"{k[0]}\x1f{k[4]}" for k in keys]
    differences = [x - y for x, y in zip(a, b, strict=True)]
    return {
        "first": _mean(a, items, seed),
        "second": _mean(b, items, seed),
        "first_minus_second": _mean(differences, items, seed, signed=True),
    }


def _mean(
    values: list[float], items: list[str], seed: int, *, signed: bool = False
) -> dict[str, Any]:
    most = max(1.0, *map(abs, values))
    scale = Scale(lo=-most if signed else 0.0, hi=most)
    estimate: Estimate = bootstrap_mean(values, seed=seed, clusters=items, scale=scale)
    return estimate.to_dict()
