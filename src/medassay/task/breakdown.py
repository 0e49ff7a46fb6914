"""Scores by a property of the items (category, year, language …), each with its interval."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from medassay.core.item import Item
from medassay.errors import InputError
from medassay.statistic.draws import seed_of
from medassay.statistic.interval.bootstrap import bootstrap_mean
from medassay.storage.jsonl import read_jsonl
from medassay.storage.run import Run
from medassay.task.scoring import RunItems

FIELDS = ("category", "year", "language", "answer_type", "kind")


def group_of(item: Item, field: str) -> str:
    """Return an item's group; a closed item's answer type names its form: "closed (choice)"."""
    if field == "answer_type":
        return f"{item.answer_type} ({item.form})" if item.form != "open" else "open"
    value = getattr(item, field)
    return "not given" if value is None else str(value)


def breakdown(run: Run, fields: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return field → rows (value, model, setting, mode, score, lo, hi, n, flags), over all domains.

    The mean is over items, repeats averaged first, nulls left out; `small_n` marks groups of fewer
    than 10 items or clusters.
    """
    for field in fields:
        if field not in FIELDS:
            raise InputError(f"--by: '{field}' is unknown; known are {', '.join(FIELDS)}")
    items = RunItems(run.path, run.manifest["domains"])
    groups: dict[tuple[str, str], dict[str, str]] = {}
    clusters: dict[tuple[str, str], str] = {}
    for item in items:
        groups[item.domain, item.id] = {field: group_of(item, field) for field in fields}
        own = f"item\x1f{item.domain}\x1f{item.id}"
        version = run.manifest["domains"][item.domain]
        clusters[item.domain, item.id] = f"{version}\x1f{item.cluster}" if item.cluster else own
    scores: dict[tuple[str, str, str], dict[tuple[str, str], list[float]]] = {}
    for record in read_jsonl(run.path / "scores.jsonl"):
        if record["score"] is not None:
            row = scores.setdefault((record["model"], record["setting"], record["mode"]), {})
            row.setdefault((record["domain"], record["item"]), []).append(record["score"])
    versions = "+".join(sorted(set(run.manifest["domains"].values())))
    made: dict[str, list[dict[str, Any]]] = {}
    for field in fields:
        made[field] = []
        for value in sorted({group[field] for group in groups.values()}):
            for (model, setting, mode), by_item in sorted(scores.items()):
                keys = sorted(k for k in by_item if groups[k][field] == value)
                if not keys:
                    continue
                estimate = bootstrap_mean(
                    [float(np.mean(by_item[k])) for k in keys],
                    seed=seed_of(versions, run.id, f"{field}={value}", mode),
                    clusters=[clusters[k] for k in keys],
                )
                made[field].append(
                    {"value": value, "model": model, "setting": setting, "mode": mode}
                    | estimate.to_dict()
                )
    return made
