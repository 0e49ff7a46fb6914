"""What tasks of likelihoods tell besides the score: lengths allowed for, perplexities of the
corpus, every combination.

Estimates are over the items that a row is ranked on, each counting once whatever its domain,
repeats averaged first.

Source: specification of perplexity; tasks and prompts, 14.1; statistics 7.3.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.json import record_as
from medassay.core.protocols import RowAddition
from medassay.core.records.manifest import Manifest
from medassay.core.records.relaxed import MODES, RelaxedSetting
from medassay.core.records.score import TrialScore
from medassay.core.records.statistics_object import EstimateObject
from medassay.core.records.task import Task
from medassay.core.records.trial import CellKey, RowKey, Trial
from medassay.core.scale import PERPLEXITY, Scale
from medassay.kinds.likelihood.choice_scorer import SHARES
from medassay.kinds.likelihood.parts import LikelihoodParts
from medassay.kinds.likelihood.perplexity import SIZES, finite_exp
from medassay.kinds.likelihood.relaxed_perplexity import ROLES
from medassay.statistic.interval.ratio import ratio_estimate
from medassay.statistic.ranking.shared import Bools
from medassay.summary.item_matrix import ItemMatrix
from medassay.summary.pooled import CasePool, pooled_means

_ANY = Scale(lo=-math.inf, hi=math.inf)
_COND = "_cond"


class _Number(msgspec.Struct, frozen=True):
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
        # How many completions the answers of a cell kept, and how many of them are distinct.
        self._sample_counts: defaultdict[CellKey, Counter[str]] = defaultdict(Counter)

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
        where = "scores.jsonl: parts of likelihoods"
        parts = record_as(score.parts or {}, LikelihoodParts, where)
        cell = trial.cell
        if self._asks in ("alone", "conditional"):
            place = self._table.add(cell, trial.item, parts.sizes)
            if parts.has_text:
                size = (parts.words, parts.bytes)
                if self._sizes.setdefault((cell[0], place), size) != size:
                    self._unlike.add(cell)
        else:
            values_by_place = {**(score.parts or {}), "log_p": self._by_place(parts)}
            number_values = {
                name: _at(values_by_place, number.path) for name, number in self._numbers.items()
            }
            self._table.add(cell, trial.item, number_values)
        if parts.impossible or parts.nats is None:
            self._impossible[cell] = self._impossible.get(cell, 0) + 1
        if parts.distinct is not msgspec.UNSET:
            counts = self._sample_counts[cell]
            counts.update(kept=parts.kept, distinct=parts.distinct, answers=1)

    def _by_place(self, parts: LikelihoodParts) -> dict[str, dict[str, float | None]]:
        """Return the log-probabilities along completions by the position they stand at."""
        stride = self._setting.stride
        return {
            role: {str(at * stride): value for at, value in enumerate(values)}
            for role, values in parts.log_p.items()
        }

    def row(self, domains: Sequence[str], row: RowKey, mode: str, used: Bools) -> RowAddition:
        """Return what a row of a ranking says besides its rank, under the key `likelihood`.

        Marked are texts that are not those of the other rows, and impossible ones. `used` are the
        items that the row is ranked on, over the domains.
        """
        pool = self._table.pool(domains, row, mode).only(used)
        cells = [(domain, *row, mode) for domain in domains]
        scores_texts = self._asks in ("alone", "conditional")
        metrics = self._perplexities(pool) if scores_texts else self._means(pool)
        texts_differ = scores_texts and any(cell in self._unlike for cell in cells)
        impossible = sum(self._impossible.get(cell, 0) for cell in cells)
        columns: dict[str, Any] = {"metrics": metrics, "impossible": impossible}
        if scores_texts:
            words, size = _total(pool, "words"), _total(pool, "bytes")
            columns |= {
                "words": words,
                "bytes": size,
                "tokens": _total(pool, "tokens"),
                "bytes_per_word": size / words if words else None,
                "texts_differ": texts_differ,
            }
        if self._asks == "relaxed":
            counts = sum((self._sample_counts[cell] for cell in cells), Counter())
            n = counts["answers"]
            columns |= {
                **{key: counts[key] / n if n else None for key in ("kept", "distinct")},
                "positions": {role: list(self._along(pool, role, metrics)) for role in ROLES},
            }
        marks = {"texts_differ": texts_differ, "impossible_targets": impossible}
        return RowAddition(
            columns={"likelihood": columns}, flags=[mark for mark, holds in marks.items() if holds]
        )

    def _means(self, pool: CasePool) -> dict[str, EstimateObject]:
        """Return name → mean over the items, with interval and median.

        A null where an item has none is counted.
        """
        estimates = pooled_means(pool)
        means: dict[str, EstimateObject] = {}
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
        self, pool: CasePool, role: str, means: dict[str, EstimateObject]
    ) -> Iterator[EstimateObject]:
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

    def _perplexities(self, pool: CasePool) -> dict[str, EstimateObject]:
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
            ("bits_per_byte", size, 2, lambda nats: nats / math.log(2)),
            ("nats_per_word", words, 1, lambda nats: nats),
        ):
            draws = sums[:, 0] / sums[:, at]
            estimate = ratio_estimate(nats, below, draws, pool_known.strata, scale=PERPLEXITY)
            plain = estimate.to_dict() | {
                "score": is_shown(estimate.value),
                "lo": is_shown(estimate.lo),
                "hi": is_shown(estimate.hi),
                "scale": PERPLEXITY.ends,
            }
            if (second := estimate.second) is not None:
                lo, hi = (is_shown(max(0.0, end)) for end in (second.lo, second.hi))
                plain |= {"second": {"method": second.method, "lo": lo, "hi": hi}}
            estimates[name + self._suffix] = plain
        return estimates

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


def _at(parts: Mapping[str, Any], path: Sequence[str]) -> float | None:
    value: Any = parts
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return None if value is None else float(value)


def _total(pool: CasePool, number: str) -> int:
    return int(np.nansum(pool.column(number)))
