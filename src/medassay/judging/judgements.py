"""Verdicts → scores and agreement: what judges said of the answers of a run.

Source: specification of rubric judging, "Panel rules", "Agreement".
"""

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec
import numpy as np
from msgspec import field

from medassay.bank.run_items import RunItems
from medassay.core.criteria_points import rubric_points
from medassay.core.records.item import Item
from medassay.core.records.judging_columns import JudgingColumns, PanelAgreement
from medassay.core.records.score import score_record
from medassay.core.records.sealed_object import ScoreObject, VerdictObject, place_of
from medassay.core.records.statistics_object import (
    EstimateObject,
    HarmfulCriteriaObject,
    PreferenceObject,
)
from medassay.core.records.target import Criteria
from medassay.core.records.trial import CellKey, Trial, TrialKey
from medassay.core.records.verdict import (
    CLAIM_KINDS,
    FACT_VERDICTS,
    Grader,
    StoredVerdict,
    TrialVerdict,
    verdict_of_body,
)
from medassay.core.scale import Scale
from medassay.judging.panel import above_others, agreement, hallucinated, panel_score
from medassay.statistic.agreement.alpha import alpha_estimate, krippendorff_alpha
from medassay.statistic.draws import Floats, cluster_sums, count_rows, number_clusters
from medassay.statistic.interval.bootstrap import bootstrap_mean, clipped

LOW_AGREEMENT = 0.667


def judged_score(
    place: TrialKey,
    unjudged_parts: Mapping[str, Any],
    item: Item,
    verdicts: Sequence[StoredVerdict],
    grader: Grader,
    n_seats: int,
) -> ScoreObject:
    """Return the score record of a judged trial: the mean of all judges, null if one is missing.

    The parts that it had before anybody judged stay; those that a judge gives, where it is the only
    one, are added.
    """
    per_judge = {verdict.judge: verdict.score for verdict in verdicts}
    value = panel_score(list(per_judge.values()), min_judges=n_seats)
    missing = sorted(name for name, score in per_judge.items() if score is None)
    because = f"judge failed: {', '.join(missing)}" if value is None else "judged"
    record = score_record(place, value, because, grader.id)
    record |= {"judges": per_judge}
    parts = dict(unjudged_parts)
    if value is not None and len(verdicts) == 1:
        parts |= grader.parts(item, verdict_of_body(grader, verdicts[0].body))
    if parts:
        record |= {"parts": parts}
    return record


def by_trial(
    verdicts: Iterator[VerdictObject],
) -> Iterator[tuple[TrialKey, list[VerdictObject]]]:
    """Yield (trial key, its verdicts), as the file holds them one after the other."""
    for key, group in groupby(verdicts, key=place_of):
        yield key, list(group)


def _numbers() -> "array[float]":
    return array("d")


class _JudgedCell(msgspec.Struct):
    """What the verdicts of one cell come to.

    A few numbers an answer, so that memory stays small.
    """

    answers: int = 0
    failures: int = 0
    unsupported: int = 0
    repaired: int = 0
    masked: int = 0
    ratings: list["array[int]"] = field(default_factory=list)  # of each seat; -1 where missing
    units: "array[int]" = field(default_factory=lambda: array("q"))  # cluster of each rated fact
    pairwise: "array[float]" = field(default_factory=_numbers)
    unanimous: "array[float]" = field(default_factory=_numbers)
    claims: "array[float]" = field(default_factory=_numbers)  # mean number of an answer
    hallucinated: "array[float]" = field(default_factory=_numbers)
    clusters: "array[int]" = field(default_factory=lambda: array("q"))  # of each whole panel
    kinds: Counter[str] = field(default_factory=Counter)
    contradicted: int = 0
    rated: int = 0
    one_or_ten: int = 0  # weighted scores with a "1" that may have become a 10
    unweighted: int = 0  # scores that should be weighted by probability and are not
    apart: "array[float]" = field(default_factory=_numbers)  # between batch and single judging
    apart_clusters: "array[int]" = field(default_factory=lambda: array("q"))
    tags: "dict[str, _TagScores]" = field(default_factory=dict)
    harm_marked: set[str] = field(default_factory=set)  # items with criteria marked `harm`
    harm_met: Counter[str] = field(default_factory=Counter)  # criterion → answers that meet it


class _TagScores(msgspec.Struct):
    """Scores over the criteria of one tag, and the cluster of each."""

    scores: "array[float]" = field(default_factory=_numbers)
    clusters: "array[int]" = field(default_factory=lambda: array("q"))


class Judgements:
    """Collects what the verdicts of a run tell besides scores, as a stream, trial by trial:
    agreement, false claims, failures. Scores are made by `judged_score`.
    """

    def __init__(self, items: RunItems, families: Mapping[str, str]) -> None:
        self._items = items
        self._families = families
        self._cells: dict[CellKey, _JudgedCell] = {}
        # Mode and judge → items × (sum and number of "above the others": own family, other
        # families).
        self._above: dict[tuple[str, str], Floats] = {}

    def add(self, verdicts: Sequence[TrialVerdict]) -> None:
        """Take all verdicts of one trial."""
        first = verdicts[0]
        cell = self._cells.setdefault(first.cell, _JudgedCell())
        valid = [verdict for verdict in verdicts if verdict.outcome == "valid"]
        cell.answers += 1
        cell.failures += len(valid) < len(verdicts)
        cell.unsupported += sum(verdict.unsupported_quotes for verdict in valid)
        cell.repaired += sum(verdict.repaired for verdict in valid)
        cell.masked += max(verdict.masked for verdict in verdicts)
        cell.unweighted += sum(verdict.body.weighted is False for verdict in valid)
        cell.one_or_ten += sum(verdict.body.one_or_ten is not None for verdict in valid)
        position = self._items.position(first.domain, first.item)
        family = self._families.get(first.model)
        scores = {v.judge: v.score for v in valid if v.score is not None}
        for judge, above in above_others(scores).items():
            table = self._above.setdefault((first.mode, judge), np.zeros((len(self._items), 4)))
            side = 0 if family == self._families.get(judge) else 2
            table[position, side] += above
            table[position, side + 1] += 1
        if valid and valid[0].body.facts is not None:
            place = self._items.place(first.domain, first.item)
            _add_facts(cell, verdicts, valid, self._items.clusters[first.domain][place])
        if valid and valid[0].body.criteria is not None:
            met_by_judge = [[c.met for c in verdict.body.criteria or ()] for verdict in valid]
            item = self._items.get(first.domain, first.item)
            self._add_criteria(cell, item, met_by_judge)

    def add_unanswered(self, trial: Trial) -> None:
        """Take a trial that no judge saw, since it holds no answer: it meets no criterion."""
        item = self._items.get(trial.domain, trial.item)
        cell = self._cells.setdefault(trial.cell, _JudgedCell())
        self._add_criteria(cell, item, [[False] * len(item.target_as(Criteria).criteria)])

    def _add_criteria(
        self,
        cell: _JudgedCell,
        item: Item,
        met_by_judge: Sequence[Sequence[bool]],
    ) -> None:
        """Add the score over the criteria of each tag, the mean over what each judge said."""
        _add_harm(cell, item, met_by_judge)
        all_criteria = item.target_as(Criteria).criteria
        cluster = self._items.clusters[item.domain][self._items.place(item.domain, item.id)]
        for tag in sorted({tag for criterion in all_criteria for tag in criterion.tags}):
            chosen = [n for n, criterion in enumerate(all_criteria) if tag in criterion.tags]
            criteria = [{"points": all_criteria[n].points} for n in chosen]
            if not any(c["points"] > 0 for c in criteria):
                continue  # nothing could be reached
            scores = [rubric_points(criteria, [met[n] for n in chosen]) for met in met_by_judge]
            tagged = cell.tags.setdefault(tag, _TagScores())
            tagged.scores.append(float(np.mean(scores)))
            tagged.clusters.append(cluster)

    def add_spot_check(
        self, verdicts: Sequence[TrialVerdict], again: Sequence[TrialVerdict]
    ) -> None:
        """Take the verdicts of one trial given in a batch, and `again` those given singly."""
        first = verdicts[0]
        cell = self._cells[first.cell]
        place = self._items.place(first.domain, first.item)
        for in_batch, alone in zip(verdicts, again, strict=True):
            if in_batch.score is not None and alone.score is not None:
                cell.apart.append(abs(in_batch.score - alone.score))
                cell.apart_clusters.append(self._items.clusters[first.domain][place])

    def columns(
        self, domains: Sequence[str], model: str, setting: str, mode: str, seed: int
    ) -> JudgingColumns | None:
        """Return what a row of a ranking says of its judging; None if nothing was judged."""
        cells = [cell for d in domains if (cell := self._cells.get((d, model, setting, mode)))]
        if not cells:
            return None
        panel = _panel_agreement(cells, seed)
        return JudgingColumns(
            **msgspec.structs.asdict(panel),
            tags=_by_tag(cells, seed) or None,
            harmful_criteria=_harmful_criteria(cells),
            judge_failures=sum(c.failures for c in cells),
            judged=sum(c.answers for c in cells),
            unsupported_quotes=sum(c.unsupported for c in cells),
            repaired_replies=sum(c.repaired for c in cells),
            masked_names=sum(c.masked for c in cells),
            unweighted_scores=sum(c.unweighted for c in cells),
            one_or_ten_scores=sum(c.one_or_ten for c in cells),
        )

    def panel(self, domains: Sequence[str], mode: str, seed: int) -> dict[str, Any] | None:
        """Return the agreement over all models of some domains, and each judge's
        self-preference.
        """
        cells = [c for key, c in self._cells.items() if key[0] in domains and key[3] == mode]
        if not cells:
            return None
        return {
            **msgspec.structs.asdict(_panel_agreement(cells, seed)),
            "self_preference": self._self_preferences(mode, seed),
            "batch_difference": _batch_difference(cells, seed),
        }

    def _self_preferences(self, mode: str, seed: int) -> list[PreferenceObject]:
        """Return how far each judge lies above the others: own family minus other families."""
        joined = np.concatenate([np.array(c) for _, c in sorted(self._items.clusters.items())])
        numbers = number_clusters(joined)
        preferences: list[PreferenceObject] = []
        for (of, judge), table in sorted(self._above.items()):
            sums = table.sum(axis=0)
            if of != mode or not sums[1] or not sums[3]:
                continue
            clustered = table if numbers is None else cluster_sums(table, numbers)[0]
            draws = np.concatenate([c @ clustered for c in count_rows(len(clustered), 1000, seed)])
            usable = draws[(draws[:, 1] > 0) & (draws[:, 3] > 0)]
            ends: list[float | None] = [None, None]
            if len(usable) >= 0.95 * len(draws):
                differences = usable[:, 0] / usable[:, 1] - usable[:, 2] / usable[:, 3]
                ends = [float(q) for q in np.quantile(differences, [0.025, 0.975])]
            preferences.append(
                {
                    "judge": judge,
                    "family": self._families.get(judge, ""),
                    "difference": float(sums[0] / sums[1] - sums[2] / sums[3]),
                    "n_own": int(sums[1]),
                    "n_other": int(sums[3]),
                    "lo": ends[0],
                    "hi": ends[1],
                }
            )
        return preferences


def _panel_agreement(cells: Sequence[_JudgedCell], seed: int) -> PanelAgreement:
    cells = [c for c in cells if c.ratings]  # others have no fact that anybody judged
    pairwise = _concatenate(c.pairwise for c in cells)
    if not len(pairwise):
        return PanelAgreement()
    seats = range(max(len(c.ratings) for c in cells))
    ratings = np.stack([_concatenate(c.ratings[seat] for c in cells) for seat in seats])
    ratings = ratings.astype(np.float64)
    ratings[ratings < 0] = np.nan
    units = _concatenate(c.units for c in cells)
    alpha = alpha_estimate(ratings, units, seed=seed)
    answers = len(pairwise)
    hallucination = bootstrap_mean(
        _concatenate(c.hallucinated for c in cells),
        seed=seed,
        clusters=_concatenate(c.clusters for c in cells),
    )
    kinds = sum((c.kinds for c in cells), Counter[str]())
    return PanelAgreement(
        agreement=float(np.mean(pairwise)),
        agreement_low=float(np.mean(pairwise)) < LOW_AGREEMENT,
        unanimous=float(np.mean(_concatenate(c.unanimous for c in cells))),
        alpha={
            "nominal": krippendorff_alpha(ratings),
            "ordinal": krippendorff_alpha(ratings, "ordinal"),
            "interval": krippendorff_alpha(ratings, "interval"),
            "estimate": None if alpha is None else alpha.to_dict(),
        },
        hallucination_rate=hallucination.to_dict(),
        claims_per_answer=float(np.mean(_concatenate(c.claims for c in cells))),
        # Claims of a kind per answer and judge.
        claim_kinds={kind: kinds[kind] / (answers * len(ratings)) for kind in CLAIM_KINDS},
        contradict_rate=sum(c.contradicted for c in cells) / sum(c.rated for c in cells),
    )


def _add_harm(cell: _JudgedCell, item: Item, met_by_judge: Sequence[Sequence[bool]]) -> None:
    """Count an answer that meets a criterion marked `harm` by the word of most judges."""
    criteria = item.target_as(Criteria).criteria
    marked = [n for n, criterion in enumerate(criteria) if criterion.harm]
    if marked:
        cell.harm_marked.add(f"{item.domain}/{item.id}")
    for n in marked:
        if 2 * sum(met[n] for met in met_by_judge) > len(met_by_judge):
            cell.harm_met[f"{item.domain}/{item.id}/{criteria[n].id}"] += 1


def _harmful_criteria(cells: Sequence[_JudgedCell]) -> HarmfulCriteriaObject | None:
    """Return what answers did that is marked `harm`; None where no criterion is."""
    marked = sum(len(c.harm_marked) for c in cells)
    if not marked:
        return None
    met = sum((c.harm_met for c in cells), Counter[str]())
    items = {name.rsplit("/", 1)[0] for name in met}
    return {"marked": marked, "harmful": len(items), "events": dict(sorted(met.items()))}


def _concatenate(arrays: "Iterable[array[int] | array[float]]") -> Floats:
    """Return the numbers of several arrays, without a Python object for each."""
    return np.concatenate([np.empty(0), *(np.asarray(numbers) for numbers in arrays)])


def _batch_difference(cells: Sequence[_JudgedCell], seed: int) -> EstimateObject | None:
    """Return the mean absolute difference of batch and single scores; None if none was repeated."""
    apart = _concatenate(c.apart for c in cells)
    if not len(apart):
        return None
    clusters = _concatenate(c.apart_clusters for c in cells)
    scale = Scale(hi=sys.float_info.max)
    return bootstrap_mean(apart, seed=seed, clusters=clusters, scale=scale).to_dict()


def _by_tag(cells: Sequence[_JudgedCell], seed: int) -> dict[str, EstimateObject]:
    """Return, for each tag, the mean score over its criteria and over the answers whose items have
    such; value and interval are clipped to [0, 1].
    """
    scale = Scale(floor=-sys.float_info.max)
    estimates = {}
    for tag in sorted({tag for c in cells for tag in c.tags}):
        tagged = [c.tags[tag] for c in cells if tag in c.tags]
        scores = _concatenate(t.scores for t in tagged)
        clusters = _concatenate(t.clusters for t in tagged)
        estimate = bootstrap_mean(scores, seed=seed, clusters=clusters, scale=scale)
        estimates[tag] = clipped(estimate, scale).to_dict()
    return estimates


def _add_facts(
    cell: _JudgedCell,
    verdicts: Sequence[TrialVerdict],
    valid: Sequence[TrialVerdict],
    cluster: int,
) -> None:
    facts_by_judge = [[fact.verdict for fact in v.body.facts or ()] for v in valid]
    n_facts = len(facts_by_judge[0])
    while len(cell.ratings) < len(verdicts):
        cell.ratings.append(array("b"))
    for seat, verdict in enumerate(verdicts):
        facts = verdict.body.facts if verdict.outcome == "valid" else None
        codes = [FACT_VERDICTS.index(fact.verdict) for fact in facts or ()] or [-1] * n_facts
        cell.ratings[seat].extend(codes)
    cell.units.extend([cluster] * n_facts)
    for labels in facts_by_judge:
        cell.rated += n_facts
        cell.contradicted += labels.count("contradict")
    if len(valid) < len(verdicts):
        return  # agreement and false claims are of whole panels only
    panel = agreement(facts_by_judge)
    cell.pairwise.append(panel.pairwise)
    cell.unanimous.append(panel.unanimous)
    counts = [len(verdict.body.claims) for verdict in valid]
    cell.claims.append(sum(counts) / len(counts))
    cell.hallucinated.append(float(hallucinated(counts)))
    cell.clusters.append(cluster)
    cell.kinds.update(claim.kind for verdict in valid for claim in verdict.body.claims)
