"""What a report says of structured health records besides the score: sections, medication, thinking
or not.

Estimates are over the reports that a row is ranked on, each report counting once whatever its
domain, repeats averaged first; drugs and leaves are counted over all answers.

Source: specification of health-record extraction, "Evaluation"; statistics 7.3.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from medassay.bank.run_items import RunItems
from medassay.core.protocols import RowAddition
from medassay.core.records.health_record import (
    AS_PUBLISHED,
    DRUG_DETAILS,
    FIELDS,
    GOING_ON,
    LEAVES,
    LENGTH,
    MEDICATION,
    NUMBERS,
    READ,
    SECTIONS,
    SIMILARITY,
    asks_for_thoughts,
)
from medassay.core.records.manifest import Manifest
from medassay.core.records.score import TrialScore
from medassay.core.records.trial import CellKey, RowKey, Trial
from medassay.core.scale import Scale
from medassay.kinds.record.parts import (
    DrugParts,
    GraphScore,
    RecordParts,
    ReferenceParts,
    parts_of,
)
from medassay.statistic.interval.ratio import ratio_p
from medassay.statistic.ranking.shared import Bools
from medassay.statistic.test.paired import difference_from_draws
from medassay.summary.item_matrix import ItemMatrix
from medassay.summary.pooled import CasePool, pooled_means

COUNTED = (
    *("correct", "total", "stopped_as_current", "lost", "invented"),
    *("leaves", "missing", "extra"),
)
STOPPED = ("stopped", "matched", "as_current", "perhaps", "changed", "old_dose")
TASKS = ("record", "record_graph")
_LENGTHS = Scale(hi=sys.float_info.max)  # all other numbers are shares
_FEWEST = 2  # reports of a paired comparison


def thinks(setting: str) -> bool | None:
    """Return whether the prompt of a row's setting asks for the six steps first.

    None if it does not say.

    Examples
    --------
    >>> thinks("zero_shot:health_record"), thinks("zero_shot:health_record_direct"), thinks(
    ...     "zero_shot")
    (True, False, None)
    """
    return asks_for_thoughts(setting.partition(":")[2])


class RecordScores:
    """Collects the parts of a run's scores as a stream, and computes what a report says of them."""

    key = "records"

    def __init__(self, items: RunItems, manifest: Manifest) -> None:
        self._items = items
        self._manifest = manifest
        self._graphs = {graph.name: tuple(graph.roots) for graph in manifest.graphs}
        self._numbers = (
            *NUMBERS,
            AS_PUBLISHED,
            *LEAVES,
            *DRUG_DETAILS,
            GOING_ON,
            *SECTIONS,
            *map(_field, FIELDS),
            *(
                name
                for graph, roots in self._graphs.items()
                for name in (graph_number(graph), *(_branch(graph, root) for root in roots))
            ),
        )
        columns = {name: _LENGTHS if name == LENGTH else Scale() for name in self._numbers}
        self._table = ItemMatrix(items, manifest, columns)
        self._counted: dict[CellKey, Counter[str]] = {}
        # Cell → place → what the score says of its reference: items may be withheld or deleted by
        # now.
        self._references: dict[CellKey, dict[int, ReferenceParts]] = {}

    def add(self, trial: Trial, score: TrialScore) -> None:
        """Take one trial with its score record; a failed trial tells nothing."""
        parts = parts_of(score.parts)
        cell = trial.cell
        judged = graphs_of(trial, parts, self._graphs)
        values = {} if parts is None else dict(_values(parts, judged))
        place = self._table.add(cell, trial.item, values)
        counted = self._counted.setdefault(cell, Counter())
        if parts is not None:
            counted.update({name: getattr(parts, name) for name in COUNTED})
            counted.update(_counted_drugs(parts.drugs))
            if parts.reference is not None:
                self._references.setdefault(cell, {})[place] = parts.reference

    def row(self, domains: Sequence[str], row: RowKey, mode: str, used: Bools) -> RowAddition:
        """Return what a row of a ranking says besides its rank, under the key `record`.

        Marked are silver references, and those by the maker of the tested model. `used` are the
        items that the row is ranked on, over the domains.
        """
        pool = self._table.pool(domains, row, mode)
        # Without a single reference nothing is ranked, and what was read is told of all reports.
        means = pooled_means(pool.only(used) if used.any() else pool)
        estimates = {name: mean.to_dict() for name, mean in means.items()}
        counted: Counter[str] = Counter()
        for domain in domains:
            counted.update(self._counted.get((domain, *row, mode), {}))
        references = [
            reference
            for domain in domains
            for reference in self._references.get((domain, *row, mode), {}).values()
        ]
        n_silver = sum(r.standing == "silver" for r in references)
        n_own = sum(self._is_own(r, row[0]) for r in references)
        drugs = {}
        if any(name in counted for name in STOPPED):  # scores of earlier versions do not tell
            drugs = {
                **{name: estimates.get(name) for name in (*DRUG_DETAILS, GOING_ON)},
                "counted": {
                    name: counted[name]
                    for name in (*STOPPED, *(f"{d}_{s}" for d in DRUG_DETAILS for s in _SIDES))
                },
            }
        record = {
            **{name: estimates.get(name) for name in (*NUMBERS, AS_PUBLISHED, *LEAVES)},
            "sections": {name: estimates[name] for name in SECTIONS if name in estimates},
            "fields": {
                name: estimates[_field(name)] for name in FIELDS if _field(name) in estimates
            },
            "graphs": {
                graph: {
                    "score": estimates.get(graph_number(graph)),
                    "branches": {root: estimates.get(_branch(graph, root)) for root in roots},
                }
                for graph, roots in self._graphs.items()
            },
            "counted": {name: counted[name] for name in COUNTED},
            "references": {
                "gold": sum(r.standing == "gold" for r in references),
                "silver": n_silver,
                "converted": sum(r.converted for r in references),
                "of_own_family": n_own,
            },
            **({"drugs": drugs} if drugs else {}),
        }
        marks = {"silver_references": n_silver, "reference_of_same_vendor": n_own}
        return RowAddition(
            columns={"record": record}, flags=[mark for mark, n in marks.items() if n]
        )

    def _is_own(self, reference: ReferenceParts, model: str) -> bool:
        """Return whether a tested model, or one of its vendor, wrote a reference."""
        if reference.standing != "silver":
            return False
        family = self._manifest.family_of(model)
        alike = family != "unknown" and reference.family.casefold() == family
        return alike or reference.maker == model

    def document(self, used: Mapping[str, Mapping[RowKey, Bools]]) -> dict[str, Any]:
        """Return the graphs by their roots, and by mode each model with thinking minus the same
        model without.

        `used` are, by mode and row, the items that the row is ranked on.
        """
        return {
            "graphs": {graph: list(roots) for graph, roots in self._graphs.items()},
            "thinking": {
                mode: list(self._pairs(used_by_row, mode)) for mode, used_by_row in used.items()
            },
        }

    def _pairs(self, used: Mapping[RowKey, Bools], mode: str) -> Iterator[dict[str, Any]]:
        """Yield the paired differences of each model with and without thinking, with minus
        without.
        """
        for model, thinking, direct in thinking_pairs(used):
            common = used[model, thinking] & used[model, direct]
            pools = [
                self._table.pool(self._table.domains, (model, setting), mode).only(common)
                for setting in (thinking, direct)
            ]
            differences = {
                number: msgspec.to_builtins(difference)
                for number, difference in paired_differences(pools[0], pools[1], self._numbers)
            }
            yield {
                "model": model,
                "thinking": thinking,
                "direct": direct,
                "differences": differences,
            }


class ThinkingDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A number's means with thinking and without, and their paired difference, with minus
    without.
    """

    thinking: float
    direct: float
    difference: float
    lo: float
    hi: float
    p: float
    different: bool
    n: int

    @property
    def points(self) -> str:
        """Return the difference in points of 100 with its interval: `+4.0 [-1.0, +9.0]`."""
        values = (100 * n for n in (self.difference, self.lo, self.hi))
        return "{:+.1f} [{:+.1f}, {:+.1f}]".format(*values)


def paired_differences(
    first: CasePool, second: CasePool, numbers: Iterable[str]
) -> Iterator[tuple[str, ThinkingDifference]]:
    """Yield each number's mean in both pools, and the paired difference, with thinking minus
    without.
    """
    for number in numbers:
        common = first.known(number) & second.known(number)
        if common.sum() < _FEWEST or not (pool := first.only(common)).strata.has_interval:
            continue
        values, other = pool.column(number), second.only(common).column(number)
        sums = pool.strata.sums(np.column_stack([values - other, np.ones(len(values))]))
        draws = sums[:, 0] / sums[:, 1]
        difference = difference_from_draws(values, other, draws, clusters=pool.strata.clusters)
        yield (
            number,
            ThinkingDifference(
                thinking=float(values.mean()),
                direct=float(other.mean()),
                difference=difference.value,
                lo=difference.lo,
                hi=difference.hi,
                p=ratio_p(values - other, pool.strata),
                different=difference.different,
                n=len(values),
            ),
        )


def thinking_pairs(rows: Iterable[RowKey]) -> Iterator[tuple[str, str, str]]:
    """Yield (model, setting with thinking, setting without) of rows that differ in nothing else."""
    rows_known = sorted(rows)
    for model, setting in rows_known:
        base = setting.partition(":")[0]
        without = [
            s
            for m, s in rows_known
            if m == model and s.partition(":")[0] == base and thinks(s) is False
        ]
        if thinks(setting) is True and without:
            yield model, setting, without[0]


def graphs_of(
    trial: Trial, parts: RecordParts | None, graphs: Mapping[str, Sequence[str]]
) -> Mapping[str, GraphScore]:
    """Return graph → score and branches of one answer.

    What is no answer (blank, refused, cut off) nobody judged: it has nothing by any graph, as it
    has by the score. A failed call tells nothing, and neither does a judge that failed.
    """
    if trial.outcome in ("answered", "failed"):
        return {} if parts is None else parts.graphs
    return {
        name: GraphScore(score=0.0, branches=dict.fromkeys(roots, 0.0))
        for name, roots in graphs.items()
    }


def _values(
    parts: RecordParts, judged: Mapping[str, GraphScore]
) -> Iterator[tuple[str, float | None]]:
    """Yield the numbers of one score by name, None for what is not known."""
    yield READ, float(parts.read)
    yield LENGTH, float(parts.characters)
    if parts.similarity is None:
        return
    yield SIMILARITY, parts.similarity
    yield AS_PUBLISHED, parts.as_published
    yield from _leaves(parts, parts.similarity)
    yield MEDICATION, parts.medication
    if (drugs := parts.drugs) is not None:
        for name in DRUG_DETAILS:
            compared = drugs.compared[name]
            yield name, drugs.agree[name] / compared if compared else None
        yield GOING_ON, drugs.going_on
    yield from parts.sections.items()
    yield from ((_field(name), value) for name, value in parts.fields.items())
    for graph, scores in judged.items():
        yield graph_number(graph), scores.score
        yield from ((_branch(graph, root), value) for root, value in scores.branches.items())


def _leaves(parts: RecordParts, recall: float) -> Iterator[tuple[str, float]]:
    """Yield precision, F1 and the shares of lost and invented leaves of one reply.

    The published similarity is a recall: what is alike, of what is expected. Precision is the same
    sum of what the reply holds: the expected leaves that it has, and those beyond. A reply without
    a leaf has a precision of 0.
    """
    leaves = parts.leaves
    held = leaves - parts.missing + parts.extra
    precision = recall * leaves / held if held else 0.0
    total = precision + recall
    yield "precision", precision
    yield "f1", 2 * precision * recall / total if total else 0.0
    yield "lost_leaves", parts.missing / leaves if leaves else 0.0
    yield "invented_leaves", parts.extra / held if held else 0.0


_SIDES = ("agree", "compared")


def _counted_drugs(drugs: DrugParts | None) -> dict[str, int]:
    if drugs is None:
        return {}
    counts = {name: getattr(drugs, name) for name in STOPPED}
    return counts | {
        f"{name}_{side}": getattr(drugs, side)[name] for side in _SIDES for name in DRUG_DETAILS
    }


def graph_number(graph: str) -> str:
    """Return the name of a graph's score among numbers: a graph may be called what a number is
    called.

    Examples
    --------
    >>> graph_number("medication")
    'graph medication'
    """
    return f"graph {graph}"


def _field(name: str) -> str:
    """Return the name of a field's number: some fields are whole sections, and have these's
    name.
    """
    return f"field {name}"


def _branch(graph: str, root: str) -> str:
    return f"{graph_number(graph)}/{root}"
