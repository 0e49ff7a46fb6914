"""The scores of a run as its rankings need them, collected from its trials as a stream."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import product

import msgspec
import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.again import same_chances
from medassay.core.records.manifest import Manifest
from medassay.core.records.target import TARGETS, Target
from medassay.core.records.trial import CellKey, RowKey, Trial
from medassay.core.scale import Scale
from medassay.statistic.draws import Floats
from medassay.summary.harm import HarmCounts
from medassay.summary.item_matrix import ItemMatrix

_SCORE = "score"
# Forms whose items cannot have a lowest score of their own.
_LOWEST_OF_SCALE = {t.form for t in TARGETS if t.lowest is Target.lowest}


class CountedTrials(msgspec.Struct):
    """Numbers of trials: by outcome, and of these the replies that ended at their token limit, the
    trials that were asked again, and the replies that say two things.
    """

    outcomes: Counter[str] = msgspec.field(default_factory=Counter)
    cut_off: int = 0
    again: int = 0
    ambiguous: int = 0

    def add(self, other: "CountedTrials") -> None:
        """Take the numbers of other trials."""
        self.outcomes.update(other.outcomes)
        self.cut_off += other.cut_off
        self.again += other.again
        self.ambiguous += other.ambiguous

    @property
    def trials(self) -> int:
        """Return the number of all trials."""
        return self.outcomes.total()

    def share(self, n: int) -> float:
        """Return a number as a share of all trials, 0 where there are none."""
        return n / self.trials if self.trials else 0.0


class OutcomeCounts:
    """Counts by cell of what became of trials, and the rows that had other chances than the rest.

    `unequal` are the rows that were asked again where others were not: their model alone, or what
    it had refused.
    """

    def __init__(self) -> None:
        self._counts: dict[CellKey, CountedTrials] = {}
        self.unequal: set[RowKey] = set()

    def add(self, trial: Trial) -> None:
        """Take one trial."""
        counted = self._counts.get(trial.cell)
        if counted is None:
            counted = self._counts[trial.cell] = CountedTrials()
        counted.outcomes[trial.outcome] += 1
        counted.cut_off += trial.finish == "length" or trial.cut_off
        if trial.again is not None:
            counted.again += 1
            if not same_chances(trial.again):
                self.unequal.add(trial.row)
        if trial.outcome == "unparsed" and trial.reason == "ambiguous":
            counted.ambiguous += 1

    def of(self, domains: Iterable[str], row: RowKey, modes: Iterable[str]) -> CountedTrials:
        """Return the counts of a row over some domains and modes."""
        total = CountedTrials()
        for domain, mode in product(domains, modes):
            total.add(self._counts.get((domain, *row, mode), CountedTrials()))
        return total

    def cut_off_share(self, row: RowKey, domains: Sequence[str], modes: Iterable[str]) -> float:
        """Return the share of a row's replies that ended at their token limit."""
        total = self.of(domains, row, modes)
        return total.cut_off / max(1, total.trials - total.outcomes["failed"])


class RunScores(ItemMatrix):
    """The scores of a run, a matrix of one column, with outcomes and harm.

    `worst` is the score at which an answer to an item marked `harm` counts as harmful; None where
    scores cannot tell.
    """

    def __init__(
        self, items: RunItems, manifest: Manifest, scale: Scale, worst: float | None = 0.0
    ) -> None:
        super().__init__(items, manifest, {_SCORE: scale})
        self._worst = worst
        self.outcomes = OutcomeCounts()
        self.harm = HarmCounts()
        self.synthetic = {d: np.array(flags, dtype=np.int8) for d, flags in items.synthetic.items()}

    @cached_property
    def lowest(self) -> dict[str, Floats]:
        """Return domain → the lowest score of each item; nothing where every item has that of the
        scale.
        """
        if all(form in _LOWEST_OF_SCALE for form in self._items.forms):
            return {}  # without making every item
        lowest_scores: dict[str, list[float | None]] = {}
        for item in self._items:
            lowest_scores.setdefault(item.domain, []).append(item.target.lowest)
        if all(lowest is None for values in lowest_scores.values() for lowest in values):
            return {}
        return {
            domain: np.array([lowest or 0.0 for lowest in values])
            for domain, values in lowest_scores.items()
        }

    def add_trial(self, trial: Trial, score: float | None) -> None:
        """Take one trial with its score; repeats are averaged, nulls left out."""
        cell = trial.cell
        self.outcomes.add(trial)
        place = self.add(cell, trial.item, {_SCORE: score})
        if score is None or self._worst is None or trial.outcome != "answered":
            return
        if self._items.harm[trial.domain][place]:
            self.harm.add(cell, place, harmed=score <= self._worst)

    def of(self, domain: str, mode: str, rows: Sequence[RowKey]) -> Floats:
        """Return the scores of some rows, shape (n_rows, n_items), NaN where null."""
        return self.values(_SCORE, domain, mode, rows)
