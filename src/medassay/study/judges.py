"""Two judges on the same answers, or a judge and people: where they differ, and what it changes."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import asdict

from medassay.bank.builder import numbered_csv
from medassay.bank.run_items import RunItems
from medassay.core.records.estimate import Estimate
from medassay.core.records.target import Criteria, Criterion, Fact, Facts, Target
from medassay.core.records.trial import TrialKey
from medassay.core.records.verdict import FACT_VERDICTS, VerdictParts, verdict_of_body
from medassay.core.scale import Scale
from medassay.errors import InputError, IntegrityError
from medassay.kinds.catalog import judged_part, task_of_run
from medassay.kinds.graders import graders_of
from medassay.statistic.agreement.people import (
    Agreement,
    CorrectedMean,
    cohen_kappa,
    kappa_interval,
    prediction_powered_mean,
    score_agreement,
)
from medassay.statistic.draws import seed_of
from medassay.statistic.interval.bootstrap import bootstrap_mean
from medassay.storage.records import read_verdicts
from medassay.storage.run import Run

_FEWEST_OF_THE_RARER = 10  # labelled answers; below, the corrected interval is often too short
_LABELS: dict[str, tuple[str, ...]] = {"facts": FACT_VERDICTS, "criteria": ("not met", "met")}


class JudgeScores(msgspec.Struct, frozen=True, kw_only=True):
    """The mean score under each of two judges, and of their differences."""

    first: Estimate
    second: Estimate
    first_minus_second: Estimate


class Kappa(msgspec.Struct, frozen=True, kw_only=True):
    """Cohen's kappa; None where it is undefined."""

    value: float | None
    lo: float | None
    hi: float | None


class JudgeAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How two judges, or a judge and people, compare on the same answers.

    Attributes
    ----------
    facts, criteria : how many were labelled by both, where answers were judged part by part; then
        `confusion` (label of the first → of the second → count), `agreed` (share) and `kappa`, with
        an interval from resampling items
    """

    scores: JudgeScores
    agreement: Agreement
    facts: int | msgspec.UnsetType = msgspec.UNSET
    criteria: int | msgspec.UnsetType = msgspec.UNSET
    confusion: dict[str, dict[str, int]] | msgspec.UnsetType = msgspec.UNSET
    agreed: float | msgspec.UnsetType = msgspec.UNSET
    kappa: Kappa | msgspec.UnsetType = msgspec.UNSET


class JudgeComparison(JudgeAgreement, frozen=True, kw_only=True):
    """Two judges, each with the run in which it judged."""

    first: str
    second: str
    answers: int


class Corrected(CorrectedMean, frozen=True, kw_only=True):
    """A judge's mean corrected by people's labels; `approximate` where fewer than 10 labelled
    answers have another score than the most frequent.
    """

    approximate: bool


class PeopleComparison(JudgeAgreement, frozen=True, kw_only=True):
    """A judge and people.

    Attributes
    ----------
    unjudged : labelled answers to items whose answers no judge sees, which are left out
    plain : the judge's mean over all answers
    corrected : None below 30 labels
    """

    judge: str
    labelled: int
    unlabelled: int
    unjudged: int
    plain: Estimate
    corrected: Corrected | None
    judge_minus_human: Estimate


def compare_judges(first: tuple[Run, str], second: tuple[Run, str]) -> JudgeComparison:
    """Return how two judges (run, judge) compare on the answers that both judged.

    Raises
    ------
    InputError
        When a run has no such judge, or no answer was judged by both.
    """
    a, b = _verdicts(*first), _verdicts(*second)
    shared = sorted(set(a) & set(b))
    if not shared:
        raise InputError("no answer was judged by both; compare runs of the same answers")
    scales = [run.statistics.scale for run, _ in (first, second)]
    if scales[0] != scales[1]:
        scales_text = " and ".join(f"{s.lo:g} to {s.hi:g}" for s in scales)
        raise InputError(f"scores on different scales, {scales_text}, cannot be compared")
    names = [f"{run.id}: {judge}" for run, judge in (first, second)]
    seed = seed_of(first[0].id, second[0].id, "judges", "study")
    return JudgeComparison(
        first=names[0],
        second=names[1],
        answers=len(shared),
        **_compared(a, b, (shared, _clusters(first[0], shared)), seed),
    )


def compare_with_people(run: Run, judge: str, labels: Path) -> PeopleComparison:
    """Return how a judge compares with people's scores of some answers.

    Parameters
    ----------
    labels : CSV with the columns domain, model, setting, item, and either score (on the run's
        scale) or fact and verdict, a row for every target fact (entail, missing, contradict) or
        criterion (met, not met) of an answer; mode and repeat where they are not solo and 0. The
        labelled answers should be a random draw.
    """
    verdicts = _verdicts(run, judge)
    labelled = _labels(labels, run)
    people = _of_judged_items(labelled, run)
    unknown = sorted(set(people) - set(verdicts))
    if unknown:
        raise InputError(
            f"{labels.name}: {len(unknown)} labelled answers have no verdict of '{judge}', first "
            f"{' · '.join(map(str, unknown[0]))}"
        )
    chosen = sorted(people)
    if not chosen:
        raise InputError(f"{labels.name}: no labels of answers that judges see")
    human = [people[k].score for k in chosen]
    on_labelled = [verdicts[k].score for k in chosen]
    rest = [judgement.score for k, judgement in sorted(verdicts.items()) if k not in people]
    judged = judged_part(task_of_run(run.manifest))
    scale = next(
        (s.scale for s in run.statistics.by_metric if s.metric == judged.metric),
        run.statistics.scale,
    )
    missing = [k for k in sorted(verdicts) if k not in people]
    groups = _clusters(run, chosen), _clusters(run, missing)
    corrected = prediction_powered_mean(
        human, on_labelled, rest, clip=scale.bounds, clusters=groups
    )
    seed = seed_of(run.id, judge, "people", "study")
    # Where people gave the rarer verdict to few answers, the corrected interval is approximate.
    few = len(human) - max(Counter(human).values()) < _FEWEST_OF_THE_RARER
    return PeopleComparison(
        judge=judge,
        labelled=len(chosen),
        unlabelled=len(rest),
        unjudged=len(labelled) - len(people),
        plain=_mean([*on_labelled, *rest], [*groups[0], *groups[1]], seed),
        corrected=None if corrected is None else Corrected(**asdict(corrected), approximate=few),
        judge_minus_human=_mean(
            [j - h for j, h in zip(on_labelled, human, strict=True)], groups[0], seed
        ),
        **_compared(verdicts, people, (chosen, groups[0]), seed),
    )


class Judgement(msgspec.Struct, frozen=True):
    """What a judge, or people, say of one answer: its score and, where its parts were judged, facts
    or criteria → id of the part → place of its label in `_LABELS`.
    """

    score: float
    labels: Mapping[str, Mapping[str, int]] = msgspec.field(default_factory=dict)


def _of_judged_items(people: dict[TrialKey, Judgement], run: Run) -> dict[TrialKey, Judgement]:
    """Return people's labels but those of items that a rule scores, as multiple choice."""
    judged, items = task_of_run(run.manifest).graders, RunItems(run.path, run.manifest.domains)
    names = {key: (key[0], key[4]) for key in people}  # domain and item
    return {
        key: people[key]
        for key, name in names.items()
        if not items.holds(*name) or items.own_form(*name) in judged
    }


def _verdicts(run: Run, judge: str) -> dict[TrialKey, Judgement]:
    path = run.path / "verdicts.jsonl"
    if not path.exists():
        raise InputError(f"run {run.id}: has no verdicts; it was not judged")
    verdicts: dict[TrialKey, Judgement] = {}
    names = set()
    for verdict in read_verdicts(path):
        names.add(verdict.judge)
        if verdict.judge == judge and verdict.score is not None:
            verdicts[verdict.place] = Judgement(verdict.score, _labels_of(verdict.body))
    if judge not in names:
        raise InputError(
            f"run {run.id}: no judge '{judge}'; its judges are {', '.join(sorted(names))}"
        )
    return verdicts


def _labels_of(parts: VerdictParts) -> dict[str, dict[str, int]]:
    labels = {}
    if parts.facts is not None:
        labels["facts"] = {fact.id: FACT_VERDICTS.index(fact.verdict) for fact in parts.facts}
    if parts.criteria is not None:
        labels["criteria"] = {criterion.id: int(criterion.met) for criterion in parts.criteria}
    return labels


class _LabelRow(msgspec.Struct):
    """A row of a table of labels: a score of an answer, or a verdict on a fact or criterion."""

    domain: str
    model: str
    setting: str
    item: str
    mode: str = ""
    repeat: str = ""
    fact: str = ""
    verdict: str | None = None
    score: str = ""

    @property
    def place(self) -> TrialKey:
        """Return the answer that it is about; `repeat` is a number."""
        domain, model, setting, item = (
            text.strip() for text in (self.domain, self.model, self.setting, self.item)
        )
        return (domain, model, setting, self.mode or "solo", item, int(self.repeat.strip() or 0))


def _labels(path: Path, run: Run) -> dict[TrialKey, Judgement]:
    """Return people's labels of answers, or of their parts."""
    totals: dict[TrialKey, float] = {}
    parts: dict[TrialKey, dict[str, str]] = {}
    scale = judged_part(task_of_run(run.manifest)).scale
    for at, (number, cells) in enumerate(numbered_csv(path)):
        where = f"{path.name} row {number}"
        if not at:
            _check_header(path, cells)
        row = msgspec.convert(cells, _LabelRow)
        if not re.fullmatch("[0-9]{1,9}", row.repeat.strip() or "0"):
            raise InputError(f"{where}: repeat '{row.repeat}'; expected a whole number from 0")
        key = row.place
        if row.verdict is not None:
            labels, part = parts.setdefault(key, {}), row.fact.strip()
            if part in labels:
                raise InputError(f"{where}: a second label of '{part}' of item '{key[4]}'")
            labels[part] = row.verdict.strip().lower()
            continue
        try:
            score = float(row.score)
        except ValueError:
            raise InputError(f"{where}: score '{row.score}'; expected a number") from None
        if not scale.least <= score <= scale.hi:
            raise InputError(
                f"{where}: score {score:g}; expected {scale.lo:g} to {scale.hi:g}, the scale of"
                " the run"
            )
        if key in totals:
            raise InputError(f"{where}: a second label of item '{key[4]}' of '{key[1]}'")
        totals[key] = score
    if parts:
        return _scored(parts, run, path.name)
    return {key: Judgement(score) for key, score in totals.items()}


def _check_header(path: Path, row: Mapping[str, str]) -> None:
    needed = {"score", "verdict"} <= row.keys()
    needed_keys = {"domain", "model", "setting", "item"}
    needed_keys |= {"fact", "verdict"} if "verdict" in row else {"score"}
    missing = sorted(needed_keys - row.keys())
    if missing or needed:
        problem = "score and verdict" if needed else f"no column {', '.join(missing)}"
        raise InputError(
            f"{path.name}: {problem}; found {', '.join(row)}; expected domain, model, setting,"
            " item, and either score, or fact and verdict"
        )


def _scored(
    parts: Mapping[TrialKey, Mapping[str, str]], run: Run, name: str
) -> dict[TrialKey, Judgement]:
    """Return labels of facts or criteria with the score that the run's rubric gives them."""
    manifest = run.manifest
    task = task_of_run(manifest)
    kind = next((k for k in _LABELS if k in task.graders.values()), None)
    if kind is None:
        raise InputError(
            f"{name}: labels of facts, but task '{task.name}' is judged as a whole; expected scores"
        )
    graders = graders_of(task, manifest)
    items = RunItems(run.path, manifest.domains)
    scored: dict[TrialKey, Judgement] = {}
    for key, parts_said in parts.items():
        try:
            item = items.get(key[0], key[4])
        except IntegrityError:
            raise InputError(
                f"{name}: no item '{key[4]}' in domain '{key[0]}' of run {run.id}"
            ) from None
        ids = [part.id for part in _parts_of(item.target)]
        strange = sorted(parts_said.keys() - set(ids))
        if strange or not ids:
            raise InputError(
                f"{name}: item '{item.id}' has no {', '.join(strange) or kind}; expected a row for "
                f"each of {', '.join(ids) or 'none'}"
            )
        labels = _LABELS[kind]
        for part in ids:
            if parts_said.get(part) not in labels:
                raise InputError(
                    f"{name}: item '{item.id}', {part}: verdict '{parts_said.get(part, '')}';"
                    f" expected one of {', '.join(labels)} for each of {', '.join(ids)}"
                )
        body = {
            "claims": [],
            kind: [
                {"id": part, "verdict": parts_said[part], "met": parts_said[part] == "met"}
                for part in ids
            ],
        }
        grader = graders[key[0]]
        score = grader.score(item, verdict_of_body(grader, body))
        assert score is not None, "a valid verdict has a score"
        scored[key] = Judgement(score, {kind: {p: labels.index(parts_said[p]) for p in ids}})
    return scored


def _parts_of(target: Target) -> Sequence[Fact | Criterion]:
    """Return what of a target people and judges label one by one."""
    if isinstance(target, Facts):
        return target.facts
    return target.criteria if isinstance(target, Criteria) else ()


def _compared(
    a: Mapping[TrialKey, Judgement],
    b: Mapping[TrialKey, Judgement],
    of: tuple[list[TrialKey], list[int]],
    seed: int,
) -> dict[str, Any]:
    """Return scores under each, their agreement, and where parts were judged the confusion
    table.
    """
    shared, items = of
    scores_one, two = [a[k].score for k in shared], [b[k].score for k in shared]
    compared: dict[str, Any] = {
        "scores": _scores(scores_one, two, items, seed),
        "agreement": score_agreement(scores_one, two, items, seed=seed),
    }
    for kind, labels in _LABELS.items():
        if all(kind in judgements[shared[0]].labels for judgements in (a, b)):
            compared |= _confusion(a, b, of, seed, (kind, labels))
    return compared


def _confusion(
    a: Mapping[TrialKey, Judgement],
    b: Mapping[TrialKey, Judgement],
    of: tuple[list[TrialKey], list[int]],
    seed: int,
    parts: tuple[str, tuple[str, ...]],
) -> dict[str, Any]:
    kind, labels = parts
    pairs = [
        (label, b[key].labels[kind][part], cluster)
        for key, cluster in zip(*of, strict=True)
        for part, label in a[key].labels[kind].items()
        if part in b[key].labels[kind]
    ]
    first_ratings, two = np.array([s[0] for s in pairs]), np.array([s[1] for s in pairs])
    counts = Counter((labels[x], labels[y]) for x, y, _ in pairs)
    interval = kappa_interval(first_ratings, two, [s[2] for s in pairs], seed=seed)
    return {
        kind: len(pairs),
        "confusion": {x: {y: counts[x, y] for y in labels} for x in labels},
        "agreed": float((first_ratings == two).mean()),
        "kappa": Kappa(
            value=cohen_kappa(first_ratings, two),
            lo=None if interval is None else interval[0],
            hi=None if interval is None else interval[1],
        ),
    }


def _clusters(run: Run, keys: list[TrialKey]) -> list[int]:
    """Return the cluster of each answer: answers to one item, or to items of one case, share it."""
    items = RunItems(run.path, run.manifest.domains)
    return [items.clusters[k[0]][items.place(k[0], k[4])] for k in keys]


def _scores(a: list[float], b: list[float], items: list[int], seed: int) -> JudgeScores:
    differences = [x - y for x, y in zip(a, b, strict=True)]
    return JudgeScores(
        first=_mean(a, items, seed),
        second=_mean(b, items, seed),
        first_minus_second=_mean(differences, items, seed),
    )


def _mean(values: list[float], items: list[int], seed: int) -> Estimate:
    most = max(1.0, *map(abs, values))
    scale = Scale(lo=-most, hi=most)
    return bootstrap_mean(values, seed=seed, clusters=items, scale=scale)
