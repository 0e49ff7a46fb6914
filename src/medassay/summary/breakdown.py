"""Scores by a property of the items (category, year, language …), each with its interval."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from medassay.bank.run_items import RunItems
from medassay.core.keyed import keyed
from medassay.core.ranks import SIMULTANEOUS
from medassay.core.records.estimate import Estimate, Second
from medassay.core.records.item import Item
from medassay.core.records.statistics import OVERALL, LeaderboardRow
from medassay.core.scale import Scale
from medassay.errors import InputError
from medassay.statistic.draws import Floats, number_clusters, seed_of
from medassay.statistic.interval.bootstrap import bootstrap_mean, clipped
from medassay.statistic.interval.effective import effective_interval
from medassay.storage.records import read_scores
from medassay.storage.run import Run

FIELDS = ("category", "year", "language", "answer_type", "kind", "tag")


class GroupScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of a row over the items of one group.

    `value` is what these have in common; `metric` is given where the run has several.
    """

    value: str
    model: str
    setting: str
    mode: str
    scale: Sequence[float | None]
    estimate: Estimate
    metric: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values, those of the estimate among them."""
        names = keyed(self, "value", "model", "setting", "mode", "scale")
        metric = {"metric": self.metric} if self.metric else {}
        return {**names, **metric, **self.estimate.to_dict()}


class _TaggedRow(LeaderboardRow, frozen=True, kw_only=True):
    tags: dict[str, Estimate] | None = None  # type: ignore[assignment]


def group_of(item: Item, field: str) -> str:
    """Return an item's group; an answer type names its form: "closed (choice)", "open (rubric)"."""
    if field == "answer_type":
        return item.form if item.form == item.answer_type else f"{item.answer_type} ({item.form})"
    value = getattr(item, field)
    return "not given" if value is None else str(value)


def breakdown(
    run: Run,
    fields: Sequence[str],
    scale: Scale,
    items: RunItems | None = None,
    metric: str = "",
) -> dict[str, list[GroupScore]]:
    """Return field → scores of rows by group, over all domains.

    `items` are those of one of the run's metrics, which is then named; None takes all.

    `tag` breaks down by the tags of criteria, as the run's statistics hold them.

    The mean is over items, repeats averaged first, nulls left out; `small_n` marks groups of fewer
    than 10 items or clusters.
    """
    for field in fields:
        if field not in FIELDS:
            raise InputError(f"--by: '{field}' is unknown; known are {', '.join(FIELDS)}")
    items = items or RunItems(run.path, run.manifest.domains)
    groups: dict[tuple[str, str], dict[str, str]] = {}
    clusters: dict[tuple[str, str], str] = {}
    of_items = [field for field in fields if field != "tag"]
    for item in items:
        groups[item.domain, item.id] = {field: group_of(item, field) for field in of_items}
        own_cluster = f"item\x1f{item.domain}\x1f{item.id}"
        version = run.manifest.domains[item.domain]
        clusters[item.domain, item.id] = (
            f"{version}\x1f{item.cluster}" if item.cluster else own_cluster
        )
    scores: dict[tuple[str, str, str], dict[tuple[str, str], list[float]]] = {}
    for score in read_scores(run.path):
        if score.score is not None and (score.domain, score.item) in groups:
            row = scores.setdefault((*score.row, score.mode), {})
            row.setdefault((score.domain, score.item), []).append(score.score)
    versions = "+".join(sorted(set(run.manifest.domains.values())))
    rows_by_field: dict[str, list[GroupScore]] = {}
    for field in fields:
        if field == "tag":
            rows_by_field[field] = [row for row in _tags(run) if metric in ("", row.metric)]
            continue
        rows_by_field[field] = []
        for value in sorted({group[field] for group in groups.values()}):
            for (model, setting, mode), by_item in sorted(scores.items()):
                keys = sorted(k for k in by_item if groups[k][field] == value)
                if not keys:
                    continue
                estimate = bootstrap_mean(
                    [float(np.mean(by_item[k])) for k in keys],
                    seed=seed_of(versions, run.id, f"{field}={value}", mode),
                    clusters=[clusters[k] for k in keys],
                    scale=scale,
                )
                if run.manifest.plan.rank_rule == SIMULTANEOUS:
                    means = np.array([float(np.mean(by_item[k])) for k in keys])
                    printed = _as_printed(estimate, means, [clusters[k] for k in keys], scale)
                    estimate = estimate if printed is None else printed
                group_score = GroupScore(
                    value=value,
                    model=model,
                    setting=setting,
                    mode=mode,
                    scale=scale.ends,
                    estimate=clipped(estimate, scale) if scale.floor is not None else estimate,
                    metric=metric,
                )
                rows_by_field[field].append(group_score)
    return rows_by_field


def _as_printed(
    estimate: Estimate, scores: Floats, clusters: Sequence[str], scale: Scale
) -> Estimate | None:
    """Return an estimate with the interval that boards print, that of the draws as its second; None
    where there is none.
    """
    interval = effective_interval([(scores, number_clusters(clusters))], scale=scale)
    if interval.ends is None:
        return None
    lo, hi = interval.ends
    return replace(
        estimate,
        lo=lo,
        hi=hi,
        interval=interval.method,
        second=Second(method="percentile", lo=estimate.lo, hi=estimate.hi),
        flags=tuple(f for f in estimate.flags if f not in ("degenerate", "intervals_differ")),
    )


def _tags(run: Run) -> Iterator[GroupScore]:
    rows = run.statistics.rows_as(_TaggedRow, OVERALL)
    for tag in sorted({tag for row in rows for tag in row.tags or ()}):
        for row in rows:
            if row.tags is not None and tag in row.tags:
                yield GroupScore(
                    value=tag,
                    model=row.model,
                    setting=row.setting,
                    mode=row.mode,
                    scale=row.scale,
                    estimate=row.tags[tag],
                    metric=row.metric if len(run.statistics.by_metric) > 1 else "",
                )
