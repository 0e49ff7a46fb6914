"""Differential diagnosis: ranked lists by clinical closeness and severity; bad cases weigh more.

The unit is model × prompt. The score that ranks is the semantic score, 0 to 16; beside it stand the
severity score, both aggregates, top-k and quadrants, each with its interval.

Source: specification of differential-diagnosis scoring; statistics 7.10, "ddx aggregates".
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medassay.bank.disease_names import load_disease_names
from medassay.core.plan import DdxRules, rules_from_dict
from medassay.core.trial import Scale
from medassay.errors import InputError
from medassay.score.ddx import BEST
from medassay.statistic.draws import Floats, number_clusters, seed_of
from medassay.statistic.interval.ratio import drawn_sums, linearised, ratio_estimate
from medassay.statistic.metric.reliability import (
    PRESETS,
    relative_weights,
    rescale,
    score_maximum,
)
from medassay.statistic.ranking.field import ALL_PAIRS_UP_TO
from medassay.statistic.test.holm import holm
from medassay.statistic.test.paired import difference_from_draws
from medassay.storage.jsonl import read_jsonl
from medassay.storage.run import Run
from medassay.task.kinds import drawn_as
from medassay.task.scoring import RunItems
from medassay.task.task import Task

DDX = Task(
    name="ddx",
    metric="semantic_score",
    split="test",
    template="ddx",
    readers={"diagnoses": ("diagnoses", None)},
    judges={"diagnoses": "ddx"},
    n_judges=1,
    scale=Scale(hi=BEST),
)
# Names compared by rule, nobody asked: a lower bound of closeness, and no severity.
DDX_NAMES = Task(
    name="ddx_names",
    metric="semantic_score_by_names",
    split="test",
    template="ddx",
    readers={"diagnoses": ("diagnoses", None)},
    judges={"diagnoses": "ddx_names"},
    n_judges=0,
    scale=Scale(hi=BEST),
)
UNJUDGED_MARK = 0.05  # above this share of labels the row carries a mark
TOPS = (1, 3, 5)
QUADRANTS = ("top_right", "top_left", "bottom_left", "bottom_right", "axis")
_SMALLEST_GROUP = 2
Row = tuple[str, str]
Cell = tuple[str, str, str, str]


def remembered_rules(
    rules: DdxRules, golden: Iterable[Sequence[str]], base: Path
) -> dict[str, Any]:
    """Return what a run remembers of its rules: with the files of names and the synonyms taken from them.

    Only names of the run's own golden diagnoses are taken, so that the run can be scored again alone.
    """
    diagnoses = [names for names in golden if names]
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
    """Return (model, setting) → the scores of its lists, `semantic` or `severity`, unknown ones left out."""
    cases = DdxCases(RunItems(run.path, run.manifest["domains"]), run.manifest)
    found: dict[tuple[str, str], list[float]] = {}
    for record in read_jsonl(run.path / "scores.jsonl"):
        value = cases.numbers(record)[_COLUMNS.index(name)]
        if record["mode"] == mode and value is not None:
            found.setdefault((record["model"], record["setting"]), []).append(value)
    return found


def aggregated_by(run: Run, rules: DdxRules) -> dict[str, Any]:
    """Return the statistics of a sealed run with its lists aggregated by other rules; nothing is written.

    Of the rules `preset`, `k`, `x0` and `semantic_max` count; the others decide on scores, which stay.

    Raises
    ------
    InputError
        When the run holds no ranked diagnoses, or the rules are wrong.
    """
    if "ddx" not in run.manifest:
        raise InputError(
            f"run {run.id}: holds no ranked diagnoses; these rules are for task ddx"
        )
    if (problem := rules.problem()) is not None:
        raise InputError(problem)
    kept = rules_from_dict(run.manifest["ddx"]["rules"])
    chosen = {name: getattr(rules, name) for name in ("preset", "k", "x0", "semantic_max")}
    ddx = {**run.manifest["ddx"], "rules": replace(kept, **chosen).to_dict()}
    items = RunItems(run.path, run.manifest["domains"])
    cases = DdxCases(items, {**run.manifest, "ddx": ddx})
    trials = read_jsonl(run.path / "trials.jsonl")
    for trial, score in zip(trials, read_jsonl(run.path / "scores.jsonl"), strict=True):
        cases.add(trial, score)
    domains = {
        name: [
            row
            | cases.row(
                items.domains if name == "overall" else [name],
                (row["model"], row["setting"]),
                row["mode"],
            )
            for row in rows
        ]
        for name, rows in run.statistics["domains"].items()
    }
    return {**run.statistics, "domains": domains}


def quadrant(severity: float | None, semantic: float | None) -> str | None:
    """Return where a case lies, x severity and y semantic, both rescaled; None if one is unknown.

    Examples
    --------
    >>> quadrant(0.625, 0.03), quadrant(-0.1, 0.5), quadrant(0.0, 0.5)
    ('top_right', 'top_left', 'axis')
    """
    if severity is None or semantic is None:
        return None
    if severity == 0 or semantic == 0:
        return "axis"
    return f"{'top' if semantic > 0 else 'bottom'}_{'right' if severity > 0 else 'left'}"


def _empty(n: int) -> Floats:
    return np.zeros((n, len(_COLUMNS)))


_COLUMNS = ("semantic", "severity", "shift", *(f"top{k}" for k in TOPS))


@dataclass
class _Cases:
    """The cases of one cell: sums and counts over repeats, one row an item and one column a number."""

    sums: Floats
    counts: Floats
    unjudged: int = 0
    labels: int = 0
    golden: dict[int, str] = field(default_factory=dict)  # place → golden severity

    def values(self) -> Floats:
        """Return the mean over repeats, NaN where nothing is known."""
        with np.errstate(invalid="ignore"):
            return np.where(self.counts > 0, self.sums / np.maximum(self.counts, 1), np.nan)


class DdxCases:
    """Collects the scores of a run's cases as a stream, and computes what a report says of them."""

    def __init__(self, items: RunItems, manifest: Mapping[str, Any]) -> None:
        self._items = items
        self._manifest = manifest
        self.rules = rules_from_dict(manifest["ddx"]["rules"])
        self._semantic_max = score_maximum(self.rules.semantic_max)
        # What a missing list gets for severity: the worst, unless nobody was asked for any.
        self._none_at_all = 0.0 if manifest["task"] == DDX.name else None
        self._clusters = {d: np.array(found) for d, found in items.clusters.items()}
        self._cells: dict[Cell, _Cases] = {}

    @property
    def scales(self) -> dict[str, Scale]:
        """Return the scale of both rescaled scores; the semantic one may exceed 1."""
        return {
            "semantic": Scale(lo=-1.0, hi=float(rescale(BEST, self._semantic_max))),
            "severity": Scale(lo=-1.0, hi=1.0),
        }

    @property
    def presets(self) -> dict[str, tuple[float, float]]:
        """Return name → (k, x0), one's own as `free`."""
        if self.rules.k is None or self.rules.x0 is None:
            return PRESETS
        return {**PRESETS, "free": (self.rules.k, self.rules.x0)}

    @property
    def leading(self) -> str:
        """Return the preset that leads in figures and pairs."""
        return "free" if "free" in self.presets else self.rules.preset

    def add(self, trial: Mapping[str, Any], score: Mapping[str, Any]) -> None:
        """Take one trial with its score record: null counts for nothing, no list scores 0 and 0."""
        domain = trial["domain"]
        cell = (domain, trial["model"], trial["setting"], trial["mode"])
        n = len(self._clusters[domain])
        if cell not in self._cells:
            self._cells[cell] = _Cases(_empty(n), _empty(n))
        cases, place = self._cells[cell], self._items.place(domain, trial["item"])
        for column, value in enumerate(self.numbers(score)):
            if value is not None:
                cases.sums[place, column] += value
                cases.counts[place, column] += 1
        parts = score.get("parts", {})
        cases.unjudged += parts.get("unjudged", 0)
        cases.labels += 2 * parts.get("n_considered", 0)
        if parts.get("golden_severity"):
            cases.golden[place] = parts["golden_severity"]

    def numbers(self, score: Mapping[str, Any]) -> list[float | None]:
        """Return the numbers of one score record in the order of the columns; None where unknown."""
        if score["score"] is None:
            return [None] * len(_COLUMNS)
        parts = score.get("parts", {})
        hit = parts.get("hit")
        return [
            score["score"],
            parts.get("severity") if parts else self._none_at_all,
            parts.get("severity_shift"),
            *(float(hit is not None and hit <= k) for k in TOPS),
        ]

    def row(self, domains: Sequence[str], row: Row, mode: str) -> dict[str, Any]:
        """Return what a report row says besides its rank."""
        pool = self._pool(domains, row, mode)
        made: dict[str, Any] = {"prompt": row[1]}
        estimates = self._estimates(pool)
        for name in ("semantic", "severity"):
            made[name] = {key: estimates.get((name, key)) for key in (*self.presets, "mean")}
            made[f"{name}_mean"] = estimates.get((name, "raw"))
        made |= {f"top{k}": estimates.get((f"top{k}", "mean")) for k in TOPS}
        places = Counter(self._quadrant(values) for values in pool.values)
        made["quadrants"] = {name: places[name] for name in QUADRANTS}
        cells = [c for d in domains if (c := self._cells.get((d, *row, mode)))]
        made["unjudged"] = sum(c.unjudged for c in cells)
        made["labels"] = sum(c.labels for c in cells)
        return made

    def document(self, rows: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
        """Return rules, pairs of model-prompts by mode, and where they err, over all domains."""
        domains = sorted(self._clusters)
        return {
            "semantic_max": self._semantic_max,
            "leading": self.leading,
            "presets": {name: {"k": k, "x0": x0} for name, (k, x0) in self.presets.items()},
            "pairs": {mode: self._pairs(domains, found, mode) for mode, found in rows.items()},
            "errors": [
                error
                for mode, found in rows.items()
                for row in found
                for error in self._errors(domains, row, mode)
            ],
        }

    def _quadrant(self, values: Floats) -> str | None:
        semantic, severity = values[:2]
        return quadrant(
            None if np.isnan(severity) else float(rescale(severity)),
            None if np.isnan(semantic) else float(rescale(semantic, self._semantic_max)),
        )

    def _pool(self, domains: Sequence[str], row: Row, mode: str) -> "_Pool":
        run, versions = drawn_as(self._manifest), self._manifest["domains"]
        strata = []
        for domain in domains:
            cases = self._cells.get((domain, *row, mode))
            if cases is not None:
                seed = seed_of(versions[domain], run, domain, mode)
                strata.append(_Stratum(cases.values(), self._clusters[domain], seed))
        return _Pool(strata, self._manifest["plan"]["n_resamples"])

    def _estimates(self, pool: "_Pool") -> dict[tuple[str, str], dict[str, Any]]:
        """Return (number, aggregate) → estimate as plain values; what has no case is left out."""
        made: dict[tuple[str, str], dict[str, Any]] = {}
        for known, group in pool.alike():
            wanted: list[tuple[tuple[str, str], Floats, Floats, Scale, dict[str, Any]]] = []
            for number in group:
                values = known.column(number)
                ones = np.ones(len(values))
                if number not in self.scales:
                    scale = _SHIFT if number == "shift" else Scale()
                    wanted.append(((number, "mean"), values, ones, scale, {}))
                    continue
                wanted.append(((number, "raw"), values, ones, Scale(hi=BEST), {}))
                scale, shown = self.scales[number], self._rescaled(number, values)
                wanted.append(((number, "mean"), shown, ones, scale, {}))
                for preset, (k, x0) in self.presets.items():
                    weights = relative_weights(shown, k=k, x0=x0)
                    more = {"k": k, "x0": x0}
                    wanted.append(((number, preset), weights * shown, weights, scale, more))
            sums = known.sums(np.column_stack([c for _, *two, _, _ in wanted for c in two]))
            for at, (key, up, down, scale, more) in enumerate(wanted):
                draws = sums[:, 2 * at] / sums[:, 2 * at + 1]
                found = ratio_estimate(up, down, draws, clusters=known.clusters, scale=scale)
                made[key] = found.to_dict() | {"scale": [scale.lo, scale.hi]} | more
        return made

    def _rescaled(self, number: str, values: Floats) -> Floats:
        return rescale(values, self._semantic_max if number == "semantic" else BEST)

    def _pairs(
        self, domains: Sequence[str], rows: Sequence[Row], mode: str
    ) -> dict[str, list[dict[str, Any]]]:
        """Return the differences of the leading aggregates, first minus second, on common cases."""
        if not 2 <= len(rows) <= ALL_PAIRS_UP_TO:
            return {"semantic": [], "severity": []}
        pools = {row: self._pool(domains, row, mode) for row in rows}
        made: dict[str, list[dict[str, Any]]] = {}
        for number in ("semantic", "severity"):
            made[number] = []
            remembered: dict[tuple[Row, bytes], tuple[Floats, Floats]] = {}
            for first, second in combinations(rows, 2):
                both = pools[first].known(number) & pools[second].known(number)
                if both.sum() < _SMALLEST_GROUP:
                    continue
                sides = []
                for row in (first, second):
                    key = (row, both.tobytes())
                    if key not in remembered:
                        remembered[key] = self._side(pools[row].only(both), number)
                    sides.append(remembered[key])
                (one, one_draws), (other, other_draws) = sides
                found = difference_from_draws(
                    one,
                    other,
                    one_draws - other_draws,
                    clusters=pools[first].only(both).clusters,
                )
                made[number].append(
                    {
                        "first": list(first),
                        "second": list(second),
                        "difference": found.value,
                        "lo": found.lo,
                        "hi": found.hi,
                        "n": int(both.sum()),
                        "p": found.p,
                        "test": found.test,
                        "different": found.different,
                    }
                )
            adjusted = holm([pair["p"] for pair in made[number]])
            for pair, p in zip(made[number], adjusted, strict=True):
                pair["p_holm"] = float(p)
        return made

    def _side(self, pool: "_Pool", number: str) -> tuple[Floats, Floats]:
        """Return linearised values whose mean is the leading aggregate, and its draws."""
        k, x0 = self.presets[self.leading]
        shown = self._rescaled(number, pool.column(number))
        weights = relative_weights(shown, k=k, x0=x0)
        sums = pool.sums(np.column_stack([weights * shown, weights]))
        return linearised(weights * shown, weights), sums[:, 0] / sums[:, 1]

    def _errors(self, domains: Sequence[str], row: Row, mode: str) -> list[dict[str, Any]]:
        """Return scores and signed severity difference by group of cases, with intervals.

        Groups are golden severity, category and golden diagnosis; names only of public items.
        """
        pool = self._pool(domains, row, mode)
        made = []
        for by, labels in self._groups(domains, row, mode).items():
            for value in sorted({label for label in labels if label is not None}):
                chosen = np.array([label == value for label in labels])
                found = self._estimates(pool.only(chosen))
                made.append(
                    {
                        "model": row[0],
                        "prompt": row[1],
                        "mode": mode,
                        "by": by,
                        "value": value,
                        "n": int(chosen.sum()),
                        "semantic_mean": found.get(("semantic", "raw")),
                        "severity_mean": found.get(("severity", "raw")),
                        "severity_shift": found.get(("shift", "mean")),
                        "top5": found.get(("top5", "mean")),
                    }
                )
        return made

    def _groups(
        self, domains: Sequence[str], row: Row, mode: str
    ) -> dict[str, list[str | None]]:
        """Return grouping → the group of each case, in the order of a pool's items."""
        made: dict[str, list[str | None]] = {
            "golden_severity": [],
            "category": [],
            "golden_diagnosis": [],
        }
        for domain in domains:
            cases = self._cells.get((domain, *row, mode))
            if cases is None:
                continue
            for place, name in enumerate(self._items.names(domain)):
                item = self._items.get(domain, name)
                public = item.kind == "public" and item.form == "diagnoses"
                made["golden_severity"].append(cases.golden.get(place))
                made["category"].append(item.category if public else None)
                made["golden_diagnosis"].append(item.diagnoses[0] if public else None)
        return made


_SHIFT = Scale(lo=-4.0, hi=4.0)  # of levels 1 to 5


@dataclass(frozen=True)
class _Stratum:
    """The cases of one row in one domain, with the seed of the domain's draws."""

    values: Floats
    clusters: NDArray[np.int64]
    seed: int


class _Pool:
    """The cases of one row over some domains, drawn domain by domain."""

    def __init__(self, strata: Sequence[_Stratum], n_resamples: int) -> None:
        self._strata = [stratum for stratum in strata if len(stratum.values)]
        self._n_resamples = n_resamples

    @property
    def values(self) -> Floats:
        """Return all cases, shape (n_cases, n_numbers)."""
        return np.concatenate([np.empty((0, len(_COLUMNS))), *(s.values for s in self._strata)])

    @property
    def clusters(self) -> NDArray[np.int64] | None:
        """Return the cluster of each case, None if every case is its own."""
        return number_clusters(np.concatenate([s.clusters for s in self._strata]))

    def column(self, number: str) -> Floats:
        """Return one number of every case."""
        return self.values[:, _COLUMNS.index(number)]

    def known(self, number: str) -> NDArray[np.bool_]:
        """Return for which cases a number is known."""
        return ~np.isnan(self.column(number))

    def only(self, chosen: NDArray[np.bool_]) -> "_Pool":
        """Return the pool of some cases; draws are over these alone."""
        kept, at = [], 0
        for stratum in self._strata:
            mask = chosen[at : at + len(stratum.values)]
            at += len(stratum.values)
            kept.append(_Stratum(stratum.values[mask], stratum.clusters[mask], stratum.seed))
        return _Pool(kept, self._n_resamples)

    def alike(self) -> "list[tuple[_Pool, list[str]]]":
        """Return the numbers in groups that are known for the same cases, each with these cases."""
        groups: dict[bytes, list[str]] = {}
        for number in _COLUMNS:
            known = self.known(number)
            if known.any():
                groups.setdefault(known.tobytes(), []).append(number)
        return [(self.only(self.known(found[0])), found) for found in groups.values()]

    def sums(self, columns: Floats) -> Floats:
        """Return the sum of every column in every draw, shape (n_resamples, n_columns)."""
        total = np.zeros((self._n_resamples, columns.shape[1]))
        at = 0
        for stratum in self._strata:
            own = columns[at : at + len(stratum.values)]
            at += len(stratum.values)
            clusters = number_clusters(stratum.clusters)
            total += drawn_sums(own, clusters, self._n_resamples, stratum.seed)
        return total
