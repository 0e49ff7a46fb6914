"""Differential diagnosis: a ranked list scored by clinical closeness and by severity.

Source: specification of differential-diagnosis scoring (the Kernel29 method). `rare` is a frequency
and yet ranks above critical: kept for comparability, see `core.diagnosis.SEVERITY_MAPS`.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from medassay.core.records.diagnosis import EXACT, FARTHEST, RELATIONS, SEVERITY_MAPS, Diagnosis
from medassay.core.records.plan import DdxRules
from medassay.core.records.verdict import VerdictBody

RANK_LIMIT = 5
BEST = float((FARTHEST - 1) ** 2)  # of both scores: every rank at distance 1
Unjudged = Literal["d_max", "exclude_rank"]


class CalculationStep(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the calculation; a distance is None where the rank is left out of that score."""

    rank: int
    weight: float
    semantic_distance: int | None
    severity_distance: int | None


class DdxScore(msgspec.Struct, frozen=True, kw_only=True):
    """Both scores of one case, in [0, 16]; None where nobody can know.

    `all_places` is the semantic score with every place up to the limit in the denominator, so that
    a place without a name earns 0, where `semantic` counts the places that hold one. `n` counts all
    ranks given, `n_considered` those within the limit, `hit` is the best rank with the golden
    diagnosis (of all ranks), `unjudged` counts labels that are missing. `severity_shift` is the
    weighted mean of predicted − golden severity, None without judged severities.
    """

    semantic: float | None
    severity: float | None
    n: int
    n_considered: int
    hit: int | None
    unjudged: int
    severity_shift: float | None
    steps: tuple[CalculationStep, ...]
    all_places: float | None = None


def score_case(
    relations: Sequence[str | None],
    severities: Sequence[str | None],
    golden_severity: str | None,
    *,
    ranks: Sequence[int] | None = None,
    rank_limit: int = RANK_LIMIT,
    unjudged: Unjudged = "d_max",
    severity_map: str = "published",
) -> DdxScore:
    """Score one ranked list: Σ w (5 − D)² / Σ w over the ranks present, with w = (K + 1 − rank) /
    K.

    Parameters
    ----------
    relations : of each name to the golden diagnosis, best rank first; None is unjudged
    severities : of each name; None is unjudged
    golden_severity : of the golden diagnosis; None is unknown, and so is the severity score then
    ranks : distinct, from 1, gaps allowed; default 1, 2, 3 …. Ranks above `rank_limit` are ignored
    unjudged : `d_max` takes a missing label as distance 5, `exclude_rank` leaves its rank out of
        that score; where that leaves no rank the score is None
    severity_map : `published`, or `separate` (see `core.records.diagnosis`)

    Returns
    -------
    DdxScore
        An empty list scores 0 and 0.

    Raises
    ------
    ValueError
        For unknown labels, lists of unequal length, ranks below 1 or twice.

    Examples
    --------
    >>> case = score_case(["Exact Synonym", "Exact Disease Group", "Broad Disease Group"], ["rare",
    ...     "rare", "severe"], "rare")
    >>> case.semantic, case.severity, case.hit, case.all_places
    (8.25, 13.0, 1, 6.6)
    """
    placed = list(range(1, len(relations) + 1)) if ranks is None else list(ranks)
    _check(relations, severities, golden_severity, placed, rank_limit, unjudged, severity_map)
    apart = SEVERITY_MAPS[severity_map]
    semantic: list[tuple[int, int]] = []
    severity: list[tuple[int, int]] = []
    shifts: list[tuple[int, int]] = []
    steps: list[CalculationStep] = []
    missing, hit, considered = 0, None, 0
    for rank, relation, level in sorted(zip(placed, relations, severities, strict=True)):
        if relation == EXACT and hit is None:
            hit = rank
        if rank > rank_limit:
            continue
        considered += 1
        weight = rank_limit + 1 - rank  # whole numbers: a score of exactly 8 lies on the axis
        missing += (relation is None) + (level is None)
        far = None if unjudged == "exclude_rank" else FARTHEST
        near = far if relation is None else RELATIONS[relation]
        alike = far
        if level is not None and golden_severity is not None:
            alike = apart.distance(golden_severity, level)
            shifts.append((weight, apart.shift(golden_severity, level)))
        if near is not None:
            semantic.append((weight, near))
        if alike is not None:
            severity.append((weight, alike))
        steps.append(
            CalculationStep(
                rank=rank,
                weight=weight / rank_limit,
                semantic_distance=near,
                severity_distance=alike,
            )
        )
    return DdxScore(
        semantic=_weighted(semantic, considered),
        severity=None if golden_severity is None else _weighted(severity, considered),
        n=len(placed),
        n_considered=considered,
        hit=hit,
        unjudged=missing,
        severity_shift=_mean(shifts) if shifts else None,
        steps=tuple(steps),
        all_places=_weighted(semantic, considered, rank_limit * (rank_limit + 1) / 2),
    )


def _weighted(
    distances: Sequence[tuple[int, int]], considered: int, weights: float | None = None
) -> float | None:
    """Return Σ w (5 − D)² over the places with a name, by Σ w over them, or by `weights`."""
    if not distances:
        return None if considered else 0.0
    total = sum(w * (FARTHEST - d) ** 2 for w, d in distances)
    return total / (sum(w for w, _ in distances) if weights is None else weights)


def _mean(values: Sequence[tuple[int, int]]) -> float:
    return sum(w * value for w, value in values) / sum(w for w, _ in values)


class DiagnosesBody(VerdictBody, frozen=True, kw_only=True):
    """A ranked list with its labels.

    Attributes
    ----------
    golden_severity_by : bank or judge, "" where nobody gave it
    diagnoses : best rank first
    severities_read : whether any severity was given
    strange_ids : ids in the replies that were not asked for
    """

    golden: str
    golden_severity: str | None
    golden_severity_by: str
    diagnoses: list[Diagnosis]
    severities_read: bool
    strange_ids: int


def score_labels(body: DiagnosesBody, rules: DdxRules) -> DdxScore:
    """Return the score of a list with its labels."""
    listed = body.diagnoses
    return score_case(
        [diagnosis.relation for diagnosis in listed],
        [diagnosis.severity for diagnosis in listed],
        body.golden_severity,
        ranks=[diagnosis.rank for diagnosis in listed],
        rank_limit=rules.rank_limit,
        unjudged=rules.unjudged,
        severity_map=rules.severity_map,
    )


def _check(
    relations: Sequence[str | None],
    severities: Sequence[str | None],
    golden_severity: str | None,
    ranks: Sequence[int],
    rank_limit: int,
    unjudged: str,
    severity_map: str,
) -> None:
    if not len(relations) == len(severities) == len(ranks):
        raise ValueError(
            f"{len(relations)} relations, {len(severities)} severities, {len(ranks)} ranks; "
            "expected one each"
        )
    if rank_limit < 1:
        raise ValueError(f"rank_limit {rank_limit}; expected at least 1")
    if unjudged not in ("d_max", "exclude_rank"):
        raise ValueError(f"unjudged '{unjudged}'; expected d_max or exclude_rank")
    if severity_map not in SEVERITY_MAPS:
        raise ValueError(f"severity_map '{severity_map}'; expected {', '.join(SEVERITY_MAPS)}")
    levels = SEVERITY_MAPS[severity_map].levels
    for label in (*severities, golden_severity):
        if label is not None and label not in levels:
            raise ValueError(f"severity '{label}'; expected {', '.join(levels)}, or None")
    for label in relations:
        if label is not None and label not in RELATIONS:
            raise ValueError(f"relation '{label}'; expected {', '.join(RELATIONS)}, or None")
    for rank in ranks:
        if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
            raise ValueError(f"rank {rank!r}; expected whole numbers from 1")
    if len(set(ranks)) != len(ranks):
        raise ValueError("a rank occurs twice")
