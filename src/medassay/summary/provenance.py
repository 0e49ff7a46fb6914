"""Public and synthetic items apart: rankings of each kind, the gap between them, tools minus solo.

The two kinds measure different things: public items may have been learned, synthetic ones not.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from medassay.core.records.manifest import Manifest
from medassay.core.records.statistics import OVERALL
from medassay.core.records.statistics_object import (
    DifferenceObject,
    EstimateObject,
    ProvenanceObject,
)
from medassay.core.records.task import Task
from medassay.core.records.trial import RowKey
from medassay.statistic.draws import seed_of
from medassay.statistic.interval.bootstrap import percentile
from medassay.statistic.ranking.field import field_of
from medassay.statistic.ranking.pool import Options, PooledMeans, Stratum, means_of
from medassay.summary.scores import RunScores
from medassay.summary.tool_effect import tools_minus_solo

PUBLIC, SYNTHETIC = "public", "synthetic"
PROVENANCES = (PUBLIC, SYNTHETIC)


def options_of(manifest: Manifest, task: Task, mode: str, pool: str = OVERALL) -> Options:
    """Return how a field of a run is computed; `pool` names the draws that join domains."""
    plan, joined = manifest.plan, "+".join(sorted(set(manifest.domains.values())))
    return Options(
        pool_seed=seed_of(joined, manifest.seed_label, pool, mode),
        scale=task.scale,
        n_resamples=plan.n_resamples,
        rule=plan.rank_rule,
        percentile_only=plan.separation != "both",
        touching=plan.separation == "overlap",
        pooled_small=plan.pooled_small,
    )


class ProvenanceBreakdown:
    """The items of a run by kind, ready for rankings of each."""

    def __init__(self, scores: RunScores, manifest: Manifest, task: Task) -> None:
        self._scores, self._manifest, self._task = scores, manifest, task
        self._masks = {
            domain: {PUBLIC: flags == 0, SYNTHETIC: flags != 0}
            for domain, flags in scores.synthetic.items()
        }

    @property
    def both(self) -> bool:
        """Return whether there are items of both kinds."""
        return all(any(m[kind].any() for m in self._masks.values()) for kind in PROVENANCES)

    def document(
        self, rankings: Mapping[str, list[str]], unranked: Mapping[RowKey, str]
    ) -> ProvenanceObject:
        """Return `by_kind`: rankings of each kind, gaps and tools minus solo.

        Parameters
        ----------
        rankings : name of a ranking → its domains
        unranked : rows that never rank, with the reason
        """
        document: dict[str, dict[str, list[dict[str, Any]]]] = {kind: {} for kind in PROVENANCES}
        gaps: list[DifferenceObject] = []
        tools: list[DifferenceObject] = []
        for name, members in rankings.items():
            for mode in sorted(self._scores.modes):
                rows = self._scores.rows(mode)
                for kind in PROVENANCES:
                    strata = self._strata(members, mode, rows, kind)
                    if strata:
                        kind_rankings = self._ranked(strata, rows, mode, kind, unranked)
                        document[kind].setdefault(name, []).extend(kind_rankings)
                gaps += self._gaps(name, members, mode, rows)
            for kind in PROVENANCES:
                tools += self._tools(name, members, kind)
        return {
            "public": document[PUBLIC],
            "synthetic": document[SYNTHETIC],
            "gap": gaps,
            "tools_minus_solo": tools,
        }

    def _strata(
        self, members: list[str], mode: str, rows: list[RowKey], kind: str
    ) -> list[Stratum]:
        """Return the domains that have items of a kind, with those items alone.

        The kind is part of the seed: draws of the two kinds must be independent.
        """
        run_scores, strata = self._scores, []
        for domain in members:
            mask = self._masks[domain][kind]
            if mask.any():
                version, run = self._manifest.domains[domain], self._manifest.seed_label
                lowest = run_scores.lowest.get(domain)
                strata.append(
                    Stratum(
                        name=domain,
                        scores=run_scores.of(domain, mode, rows)[:, mask],
                        clusters=run_scores.clusters[domain][mask],
                        seed=seed_of(version, run, f"{domain}\x1f{kind}", mode),
                        lowest=None if lowest is None else lowest[mask],
                    )
                )
        return strata

    def _options(self, mode: str, kind: str) -> Options:
        return options_of(self._manifest, self._task, mode, f"{OVERALL}\x1f{kind}")

    def _ranked(
        self,
        strata: list[Stratum],
        rows: list[RowKey],
        mode: str,
        kind: str,
        unranked: Mapping[RowKey, str],
    ) -> Iterator[dict[str, Any]]:
        field = field_of(
            rows, strata, self._options(mode, kind), unranked=unranked, all_pairs=False
        )
        for standing in field.standings:
            plain: EstimateObject = standing.estimate.to_dict() if standing.estimate else {}
            rank = standing.rank
            yield {
                **self._row_fields(standing.row, mode),
                **{key: plain.get(key) for key in ("score", "lo", "hi", "second")},
                "n": plain.get("n", standing.n_own),
                "coverage": standing.coverage,
                "rank": rank.rank,
                "rank_lo": rank.lo,
                "rank_hi": rank.hi,
                "group": rank.group,
                **({"interval": plain.get("interval")} if field.ranges else {}),
                "flags": [
                    *(plain.get("flags") or ()),
                    *standing.marks,
                    *([f"not_ranked:{rank.reason}"] if rank.reason else ()),
                ],
            }

    def _row_fields(self, row: RowKey, mode: str) -> DifferenceObject:
        return {
            "model": row[0],
            "setting": row[1],
            "mode": mode,
            "metric": self._task.metric,
            "scale": self._task.scale.ends,
        }

    def _gaps(
        self, name: str, members: list[str], mode: str, rows: list[RowKey]
    ) -> Iterator[DifferenceObject]:
        """Yield public minus synthetic of every row over the domains that have items of both kinds.

        Other domains would add what sets domains apart, not kinds.
        """
        members = [d for d in members if all(self._masks[d][kind].any() for kind in PROVENANCES)]
        if not members:
            return
        for at, row in enumerate(rows):
            sides = [
                _means(self._strata(members, mode, rows, kind), at, self._options(mode, kind))
                for kind in PROVENANCES
            ]
            if sides[0] is None or sides[1] is None:
                continue
            gap = float(sides[0].values[0] - sides[1].values[0])
            ends = _ends(sides[0], sides[1])
            yield {
                "domain": name,
                **self._row_fields(row, mode),
                "public": float(sides[0].values[0]),
                "synthetic": float(sides[1].values[0]),
                "gap": gap,
                "lo": ends[0],
                "hi": ends[1],
                "n_public": sides[0].n,
                "n_synthetic": sides[1].n,
            }

    def _tools(self, name: str, members: list[str], kind: str) -> Iterator[DifferenceObject]:
        """Yield tools minus solo of every row asked both ways, paired over the items of a kind."""
        differences = tools_minus_solo(
            lambda mode, rows: self._strata(members, mode, rows, kind),
            self._scores,
            self._options("solo", kind),
        )
        for row, difference in differences:
            yield {"kind": kind, "domain": name, **self._row_fields(row, "tools"), **difference}


def _means(strata: list[Stratum], at: int, options: Options) -> PooledMeans | None:
    masks = [~np.isnan(s.scores[at]) for s in strata]
    if not any(mask.any() for mask in masks):
        return None
    return means_of(strata, [at], masks, options)


def _ends(means: PooledMeans, other: PooledMeans) -> tuple[float | None, float | None]:
    if means.draws is None or other.draws is None:
        return None, None
    lo, hi = percentile(means.draws[:, 0] - other.draws[:, 0])
    return float(lo), float(hi)
