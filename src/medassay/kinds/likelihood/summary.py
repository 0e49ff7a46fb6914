"""What tasks of likelihoods tell besides the score: lengths allowed for, perplexities of the
corpus, every combination.

Estimates are over the items that a row is ranked on, each counting once whatever its domain,
repeats averaged first.

Source: specification of perplexity; tasks and prompts, 14.1; statistics 7.3.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.records.manifest import Manifest
from medassay.core.records.relaxed import MODES, RelaxedSetting
from medassay.core.records.score import TrialScore
from medassay.core.records.task import Task
from medassay.core.records.trial import CellKey, RowKey, Trial
from medassay.core.scale import PERPLEXITY, Scale
from medassay.kinds.likelihood.choice_scorer import SHARES
from medassay.kinds.likelihood.perplexity import SIZES, finite_exp
from medassay.kinds.likelihood.relaxed_perplexity import ROLES
from medassay.statistic.interval.ratio import ratio_estimate
from medassay.statistic.ranking.shared import Bools
from medassay.summary.item_matrix import ItemMatrix
from medassay.summary.pooled import CasePool, pooled_means

_ANY = Scale(lo=-math.inf, hi=math.inf)
_COND = "_cond"


@dataclass(frozen=True)
class _Number:
    """One number of a row: its published name, the scale of its estimate, and where it stands in a
    score's parts.
    """

    name: str
    scale: Scale
    path: tuple[str, ...]


class LikelihoodScores:
    """Collects the parts of a run's scores as a stream, and computes what a report says of them."""

    key = "likelihood"

    def __init__(self, items: RunItems, manifest: Manifest, task: Task) -> None:
        self._asks = task.asks
        self._suffix = _COND if task.asks == "conditional" else ""
        setting = manifest.plan.relaxed_perplexity
        self._setting = RelaxedSetting(**setting) if setting else RelaxedSetting()
        step, last = self._setting.stride, self._setting.max_tokens
        self._positions = range(0, last + 1, step) if self._asks == "relaxed" else range(0)
        self._numbers = {number.name: number for number in self._columns()}
        if self._asks in ("alone", "conditional"):
            columns = dict.fromkeys(SIZES, PERPLEXITY)
        else:
            columns = {name: number.scale for name, number in self._numbers.items()}
        self._table = ItemMatrix(items, manifest, columns)
        self._sizes: dict[tuple[str, int], tuple[int, int]] = {}  # item → words and bytes
        self._unlike: set[CellKey] = set()  # cells whose texts are not those of the others
        self._impossible: dict[CellKey, int] = {}
        # Cell → completions kept, distinct ones, answers.
        self._sample_counts: dict[CellKey, list[int]] = {}

    def _columns(self) -> Iterator[_Number]:
        if self._asks == "choices":
            yield from (_Number(name, Scale(), (name,)) for name in SHARES)
        elif self._asks == "relaxed":
            for role in ROLES:
                for mode in MODES:
                    name = self._setting.name(mode)
                    yield _Number(_of_role(name, role), PERPLEXITY, (role, mode))
                    yield _Number(
                        _of_role(f"{name} nats per position", role),
                        _ANY,
                        ("per_position", role, mode),
                    )
                for at in self._positions:
                    yield _Number(_place(role, at), _ANY, ("log_p", role, str(at)))
            yield _Number("targets above 1", _ANY, ("above_one",))

    def add(self, trial: Trial, score: TrialScore) -> None:
        """Take one trial with its score record.

        A failed trial, and a reply that was read, tell nothing.
        """
        parts = score.parts or {}
        cell = trial.cell
        if self._asks in ("alone", "conditional"):
            values = {name: parts[name] for name in SIZES if name in parts}
            is_known = bool(values) and parts["nats"] is not None and parts["bytes"] > 0
            place = self._table.add(cell, trial.item, values if is_known else {})
            if values:
                size = (parts["words"], parts["bytes"])
                if self._sizes.setdefault((cell[0], place), size) != size:
                    self._unlike.add(cell)
        else:
            by_place = _by_place(parts, self._setting.stride)
            number_values = {
                name: _at(by_place, number.path) for name, number in self._numbers.items()
            }
            self._table.add(cell, trial.item, number_values)
        if parts.get("impossible") or ("nats" in parts and parts["nats"] is None):
            self._impossible[cell] = self._impossible.get(cell, 0) + 1
        if "distinct" in parts:
            counted = self._sample_counts.setdefault(cell, [0, 0, 0])
            for at, n in enumerate((parts["kept"], parts["distinct"], 1)):
                counted[at] += n

    def row(self, domains: Sequence[str], row: RowKey, mode: str, used: Bools) -> dict[str, Any]:
        """Return what a row of a ranking says besides its rank, under the key `likelihood`.

        `used` are the items that the row is ranked on, over the domains.
        """
        pool = self._table.pool(domains, row, mode).only(used)
        cells = [(domain, *row, mode) for domain in domains]
        columns: dict[str, Any] = {
            "metrics": (
                self._perplexities(pool)
                if self._asks in ("alone", "conditional")
                else self._means(pool)
            ),
            "impossible": sum(self._impossible.get(cell, 0) for cell in cells),
        }
        if self._asks in ("alone", "conditional"):
            sizes = {name: _total(pool, name) for name in ("words", "bytes", "tokens")}
            columns |= sizes
            columns["bytes_per_word"] = sizes["bytes"] / sizes["words"] if sizes["words"] else None
            columns["texts_differ"] = any(cell in self._unlike for cell in cells)
        if self._asks == "relaxed":
            counts, distinct, n = (
                sum(self._sample_counts.get(c, [0] * 3)[at] for c in cells) for at in range(3)
            )
            columns["kept"] = counts / n if n else None
            columns["distinct"] = distinct / n if n else None
            columns["positions"] = {
                role: list(self._along(pool, role, columns["metrics"])) for role in ROLES
            }
        return {"likelihood": columns}

    def _means(self, pool: CasePool) -> dict[str, dict[str, Any]]:
        """Return name → mean over the items, with interval and median.

        A null where an item has none is counted.
        """
        estimates = pooled_means(pool)
        means: dict[str, dict[str, Any]] = {}
        for name in (name for name in self._numbers if name in estimates):
            values = pool.column(name)[pool.known(name)]
            scale = pool.columns[name]
            means[name] = estimates[name].to_dict() | {
                "median": None if scale.unit else float(np.median(values)),
                "nulls": len(pool.values) - len(values),
                "scale": scale.ends,
            }
        return means

    def _along(
        self, pool: CasePool, role: str, means: dict[str, dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """Yield the mean log-probability at each position over the items that reach it.

        `means` gives up its estimates.
        """
        for at in self._positions:
            estimate = means.pop(_place(role, at), {})
            values = pool.column(_place(role, at))
            values = values[~np.isnan(values)]
            if len(values):
                yield {
                    "at": at,
                    "score": float(values.mean()),
                    "lo": estimate.get("lo"),
                    "hi": estimate.get("hi"),
                    "n": len(values),
                }

    def _perplexities(self, pool: CasePool) -> dict[str, dict[str, Any]]:
        """Return name → perplexity of the corpus, each with its interval.

        The ends are carried through the exponential.
        """
        pool_known = pool.only(pool.known("nats"))
        if not len(pool_known.values) or not pool_known.strata.has_interval:
            return {}
        nats, words, size = (pool_known.column(name) for name in ("nats", "words", "bytes"))
        sums = pool_known.strata.sums(np.column_stack([nats, words, size]))
        estimates = {}
        for name, below, at, is_shown in (
            ("word_perplexity", words, 1, finite_exp),
            ("byte_perplexity", size, 2, finite_exp),
            ("bits_per_byte", size, 2, _bits),
            ("nats_per_word", words, 1, _same),
        ):
            draws = sums[:, 0] / sums[:, at]
            estimate = ratio_estimate(nats, below, draws, pool_known.strata, scale=PERPLEXITY)
            plain = estimate.to_dict()
            for key in ("score", "lo", "hi"):
                plain[key] = is_shown(plain[key])
            if plain["second"]:
                plain["second"] = plain["second"] | {
                    key: is_shown(max(0.0, plain["second"][key])) for key in ("lo", "hi")
                }
            estimates[name + self._suffix] = plain | {"scale": PERPLEXITY.ends}
        return estimates

    def flags(self, row: Mapping[str, Any]) -> list[str]:
        """Return the marks of a row: texts that are not those of the other rows, and impossible
        ones.
        """
        likelihood = row["likelihood"]
        marks = ["texts_differ"] if likelihood.get("texts_differ") else []
        return [*marks, *(["impossible_targets"] if likelihood["impossible"] else [])]

    def document(self, used: Mapping[str, Mapping[RowKey, Bools]]) -> dict[str, Any]:
        """Return what was asked, and under which setting completions were drawn."""
        relaxed = {"setting": self._setting.to_dict()} if self._asks == "relaxed" else {}
        return {"asks": self._asks, **relaxed}


def _of_role(name: str, role: str) -> str:
    """Return a metric's name for what would be nice to have.

    What an answer must have is the metric itself.
    """
    return name if role == "must" else f"{name} (nice to have)"


def _place(role: str, at: int) -> str:
    """Return the name of the number that stands at one position of completions."""
    return f"{role} at {at}"


def _by_place(parts: Mapping[str, Any], stride: int) -> Mapping[str, Any]:
    """Return parts with the log-probabilities along completions by the position they stand at."""
    if "log_p" not in parts:
        return parts
    placed = {
        role: {str(at * stride): value for at, value in enumerate(values)}
        for role, values in parts["log_p"].items()
    }
    return {**parts, "log_p": placed}


def _at(parts: Mapping[str, Any], path: Sequence[str]) -> float | None:
    value: Any = parts
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return None if value is None else float(value)


def _total(pool: CasePool, number: str) -> int:
    return int(np.nansum(pool.column(number)))


def _bits(nats: float) -> float:
    return nats / math.log(2)


def _same(nats: float) -> float:
    return nats
