"""Verdicts → scores and agreement: what judges said of the answers of a run.

Source: specification of rubric judging, "Panel rules", "Agreement".
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from medassay.core.verdict import Judge
from medassay.judge.catalog import JUDGES
from medassay.judge.facts import KINDS, VERDICTS
from medassay.judge.panel import agreement, hallucinated, panel_score, self_preference
from medassay.statistic.agreement.alpha import alpha_estimate, krippendorff_alpha
from medassay.statistic.draws import count_rows
from medassay.statistic.interval.bootstrap import bootstrap_mean
from medassay.task.scoring import RunItems, score_record
from medassay.task.task import Task

LOW_AGREEMENT = 0.667
Cell = tuple[str, str, str, str]
TRIAL_KEY = ("domain", "model", "setting", "mode", "item", "repeat")


def judges_of(
    task: Task, banks: Sequence[Mapping[str, Any]], domains: Mapping[str, str]
) -> dict[str, Judge]:
    """Return the judge (rubric and reader) of each domain, as its bank's card asks for it."""
    if not task.judges:
        return {}
    [name] = set(task.judges.values())
    cards = {bank["version"]: bank for bank in banks}
    return {domain: JUDGES[name](cards[version]) for domain, version in domains.items()}


def judged_score(
    trial: Mapping[str, Any], verdicts: Sequence[Mapping[str, Any]], judge: Judge, n_seats: int
) -> dict[str, Any]:
    """Return the score record of a judged trial: the mean of all judges, null if one is missing."""
    per_judge = {v["judge"]: v["score"] for v in verdicts}
    value = panel_score(list(per_judge.values()), min_judges=n_seats)
    missing = sorted(name for name, score in per_judge.items() if score is None)
    because = f"judge failed: {', '.join(missing)}" if value is None else "judged"
    return score_record(trial, value, because, judge.id) | {"judges": per_judge}


def by_trial(
    verdicts: Iterator[dict[str, Any]],
) -> Iterator[tuple[tuple[Any, ...], list[dict[str, Any]]]]:
    """Yield (trial key, its verdicts), as the file holds them one after the other."""
    for key, group in groupby(verdicts, key=lambda v: tuple(v[k] for k in TRIAL_KEY)):
        yield key, list(group)


@dataclass
class _Cell:
    """What the verdicts of one cell come to."""

    answers: int = 0
    failures: int = 0
    unsupported: int = 0
    repaired: int = 0
    masked: int = 0
    pairwise: list[float] = field(default_factory=list)
    unanimous: list[float] = field(default_factory=list)
    ratings: list[np.ndarray[Any, Any]] = field(default_factory=list)
    units: list[int] = field(default_factory=list)  # the item of each rated fact
    claims: list[float] = field(default_factory=list)  # mean number of claims of an answer
    hallucinated: list[float] = field(default_factory=list)
    items: list[int] = field(default_factory=list)  # the item of each fully judged answer
    kinds: Counter[str] = field(default_factory=Counter)
    contradicted: int = 0
    rated: int = 0


class Judgements:
    """Collects the verdicts of a run as a stream, trial by trial."""

    def __init__(self, items: RunItems, families: Mapping[str, str]) -> None:
        self._items = items
        self._families = families
        self._cells: dict[Cell, _Cell] = {}
        self._scores: dict[
            str, dict[str, dict[str, float]]
        ] = {}  # mode → answer → judge → score
        self._models: dict[str, tuple[str, int]] = {}  # answer → tested model, item

    def add(self, verdicts: Sequence[Mapping[str, Any]]) -> None:
        """Take all verdicts of one trial."""
        first = verdicts[0]
        domain = first["domain"]
        cell = self._cells.setdefault(
            (domain, first["model"], first["setting"], first["mode"]), _Cell()
        )
        item = self._items.clusters[domain][self._items.place(domain, first["item"])]
        valid = [v for v in verdicts if v["outcome"] == "valid"]
        cell.answers += 1
        cell.failures += len(valid) < len(verdicts)
        for verdict in valid:
            cell.unsupported += verdict["unsupported_quotes"]
            cell.repaired += verdict["repaired"]
        cell.masked += max((v.get("masked", 0) for v in verdicts), default=0)
        name = "\x1f".join(str(first[k]) for k in TRIAL_KEY)
        self._models[name] = (first["model"], item)
        given = {v["judge"]: v["score"] for v in valid}
        self._scores.setdefault(first["mode"], {})[name] = given
        if valid and "facts" in valid[0]["body"]:
            _add_facts(cell, verdicts, valid, item)

    def row(
        self, domains: Sequence[str], model: str, setting: str, mode: str, seed: int
    ) -> dict[str, Any]:
        """Return what a report row says of its judging; empty if nothing was judged."""
        cells = [
            found for d in domains if (found := self._cells.get((d, model, setting, mode)))
        ]
        if not cells:
            return {}
        return self._summary(cells, seed) | {
            "judge_failures": sum(c.failures for c in cells),
            "judged": sum(c.answers for c in cells),
            "unsupported_quotes": sum(c.unsupported for c in cells),
            "repaired_replies": sum(c.repaired for c in cells),
            "masked_names": sum(c.masked for c in cells),
        }

    def panel(self, domains: Sequence[str], mode: str, seed: int) -> dict[str, Any] | None:
        """Return the agreement over all models of some domains, and each judge's self-preference."""
        cells = [c for key, c in self._cells.items() if key[0] in domains and key[3] == mode]
        if not cells:
            return None
        return self._summary(cells, seed) | {
            "self_preference": self._self_preferences(mode, seed)
        }

    def _summary(self, cells: Sequence[_Cell], seed: int) -> dict[str, Any]:
        pairwise = [share for c in cells for share in c.pairwise]
        if not pairwise:
            return {
                "agreement": None,
                "agreement_low": False,
                "unanimous": None,
                "alpha": None,
                "hallucination_rate": None,
                "claims_per_answer": None,
                "claim_kinds": None,
                "contradict_rate": None,
            }
        ratings = np.concatenate([r for c in cells for r in c.ratings], axis=1)
        units = np.array([u for c in cells for u in c.units])
        found = alpha_estimate(ratings, units, seed=seed)
        answers = len(pairwise)
        hallucination = bootstrap_mean(
            [h for c in cells for h in c.hallucinated],
            seed=seed,
            clusters=[i for c in cells for i in c.items],
        )
        kinds = sum((c.kinds for c in cells), Counter[str]())
        return {
            "agreement": float(np.mean(pairwise)),
            "agreement_low": float(np.mean(pairwise)) < LOW_AGREEMENT,
            "unanimous": float(np.mean([share for c in cells for share in c.unanimous])),
            "alpha": {
                "nominal": krippendorff_alpha(ratings),
                "ordinal": krippendorff_alpha(ratings, "ordinal"),
                "interval": krippendorff_alpha(ratings, "interval"),
                "estimate": None if found is None else found.to_dict(),
            },
            "hallucination_rate": hallucination.to_dict(),
            "claims_per_answer": float(np.mean([n for c in cells for n in c.claims])),
            # Claims of a kind per answer and judge.
            "claim_kinds": {kind: kinds[kind] / (answers * len(ratings)) for kind in KINDS},
            "contradict_rate": sum(c.contradicted for c in cells) / sum(c.rated for c in cells),
        }

    def _self_preferences(self, mode: str, seed: int) -> list[dict[str, Any]]:
        scores = self._scores.get(mode, {})
        found = []
        for judge in sorted({name for given in scores.values() for name in given}):
            family = self._families.get(judge, "")
            own = {a: self._families.get(self._models[a][0]) == family for a in scores}
            lists = self_preference(scores, own, judge)
            if not lists[0] or not lists[1]:
                continue
            estimate = self._difference(scores, own, judge, seed)
            found.append(
                {
                    "judge": judge,
                    "family": family,
                    "difference": float(np.mean(lists[0]) - np.mean(lists[1])),
                    "n_own": len(lists[0]),
                    "n_other": len(lists[1]),
                    "lo": None if estimate is None else estimate[0],
                    "hi": None if estimate is None else estimate[1],
                }
            )
        return found

    def _difference(
        self,
        scores: Mapping[str, Mapping[str, float]],
        own: Mapping[str, bool],
        judge: str,
        seed: int,
    ) -> tuple[float, float] | None:
        """Return the percentile interval of a self-preference, items drawn whole."""
        places = {
            item: at for at, item in enumerate(sorted({i for _, i in self._models.values()}))
        }
        sums = np.zeros((len(places), 4))  # own sum, own n, other sum, other n
        for answer, given in scores.items():
            for side, values in enumerate(self_preference({answer: given}, own, judge)):
                at = places[self._models[answer][1]]
                sums[at, 2 * side] += sum(values)
                sums[at, 2 * side + 1] += len(values)
        drawn = np.concatenate([c @ sums for c in count_rows(len(places), 1000, seed)])
        kept = drawn[(drawn[:, 1] > 0) & (drawn[:, 3] > 0)]
        if len(kept) < 0.95 * len(drawn):
            return None
        lo, hi = np.quantile(kept[:, 0] / kept[:, 1] - kept[:, 2] / kept[:, 3], [0.025, 0.975])
        return float(lo), float(hi)


def _add_facts(
    cell: _Cell,
    verdicts: Sequence[Mapping[str, Any]],
    valid: Sequence[Mapping[str, Any]],
    item: int,
) -> None:
    n_facts = len(valid[0]["body"]["facts"])
    ratings = np.full((len(verdicts), n_facts), np.nan)
    for row, verdict in enumerate(verdicts):
        if verdict["outcome"] == "valid":
            ratings[row] = [VERDICTS.index(f["verdict"]) for f in verdict["body"]["facts"]]
    cell.ratings.append(ratings)
    cell.units += [item] * n_facts
    for verdict in valid:
        cell.rated += n_facts
        cell.contradicted += sum(f["verdict"] == "contradict" for f in verdict["body"]["facts"])
    if len(valid) < len(verdicts):
        return  # agreement and false claims are of whole panels only
    said = agreement([[f["verdict"] for f in v["body"]["facts"]] for v in valid])
    cell.pairwise.append(said.pairwise)
    cell.unanimous.append(said.unanimous)
    counts = [len(v["body"]["claims"]) for v in valid]
    cell.claims.append(sum(counts) / len(counts))
    cell.hallucinated.append(float(hallucinated(counts)))
    cell.items.append(item)
    cell.kinds.update(c["kind"] for v in valid for c in v["body"]["claims"])
