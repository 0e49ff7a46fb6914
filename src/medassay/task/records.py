"""What a report says of structured health records besides the score: sections, medication, thinking or not.

Everything is over the reports that a row is ranked on, each report counting once, repeats averaged first.

Source: specification of health-record extraction, "Evaluation"; statistics 7.3.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from medassay.core.health_record import FIELDS, SECTIONS, asks_for_thoughts
from medassay.core.trial import Scale
from medassay.statistic.interval.ratio import ratio_estimate, ratio_p
from medassay.statistic.ranking.shared import Bools
from medassay.statistic.test.paired import difference_from_draws
from medassay.task.case_pool import CasePool
from medassay.task.case_table import CaseTable, Cell, Row
from medassay.task.scoring import RunItems

SIMILARITY, MEDICATION, READ, LENGTH = "similarity", "medication", "read", "characters"
COUNTED = (
    *("correct", "total", "stopped_as_current", "lost", "invented"),
    *("leaves", "missing", "extra"),
)
TASKS = ("record", "record_graph")
_FEWEST = 2  # reports of a paired comparison


def thinks(setting: str) -> bool | None:
    """Return whether the prompt of a row's setting asks for the six steps first; None if it does not say.

    Examples
    --------
    >>> thinks("zero_shot:health_record"), thinks("zero_shot:health_record_direct"), thinks("zero_shot")
    (True, False, None)
    """
    return asks_for_thoughts(setting.partition(":")[2])


class RecordScores:
    """Collects the parts of a run's scores as a stream, and computes what a report says of them."""

    key = "records"

    def __init__(self, items: RunItems, manifest: Mapping[str, Any]) -> None:
        self._items = items
        self._manifest = manifest
        self._graphs = {g["name"]: tuple(g["roots"]) for g in manifest.get("graphs", [])}
        self._numbers = (
            *(SIMILARITY, MEDICATION, READ, LENGTH),
            *SECTIONS,
            *map(_field, FIELDS),
            *(
                name
                for graph, roots in self._graphs.items()
                for name in (graph, *(_branch(graph, root) for root in roots))
            ),
        )
        self._table = CaseTable(items, manifest, self._numbers)
        self._counted: dict[Cell, Counter[str]] = {}
        self._references = {
            d: [items.get(d, n).origin for n in items.names(d)] for d in items.domains
        }

    def add(self, trial: Mapping[str, Any], score: Mapping[str, Any]) -> None:
        """Take one trial with its score record; a failed trial tells nothing."""
        parts = score.get("parts") or {}
        cell = (trial["domain"], trial["model"], trial["setting"], trial["mode"])
        self._table.add(cell, trial["item"], _values(parts) if parts else ())
        counted = self._counted.setdefault(cell, Counter())
        counted.update({name: parts[name] for name in COUNTED if name in parts})

    def row(self, domains: Sequence[str], row: Row, mode: str, used: Bools) -> dict[str, Any]:
        """Return what a report row says besides its rank, under the key `record`.

        `used` are the items that the row is ranked on, over the domains.
        """
        found = pooled_estimates(
            self._table.pool(domains, row, mode).only(used), frozenset([LENGTH])
        )
        counted: Counter[str] = Counter()
        for domain in domains:
            counted.update(self._counted.get((domain, *row, mode), {}))
        family = self._manifest["models"].get(row[0], {}).get("family", "unknown").casefold()
        origins = [o for d in domains for o in self._references[d] if o is not None]
        own = sum(o.standing == "silver" and o.family.casefold() == family for o in origins)
        record = {
            **{name: found.get(name) for name in (SIMILARITY, MEDICATION, READ, LENGTH)},
            "sections": {name: found[name] for name in SECTIONS if name in found},
            "fields": {name: found[_field(name)] for name in FIELDS if _field(name) in found},
            "graphs": {
                graph: {
                    "score": found.get(graph),
                    "branches": {root: found.get(_branch(graph, root)) for root in roots},
                }
                for graph, roots in self._graphs.items()
            },
            "counted": {name: counted[name] for name in COUNTED},
            "references": {
                "gold": sum(o.standing == "gold" for o in origins),
                "silver": sum(o.standing == "silver" for o in origins),
                "converted": sum(o.converted for o in origins),
                "of_own_family": own if family != "unknown" else 0,
            },
        }
        return {"record": record}

    def flags(self, row: Mapping[str, Any]) -> list[str]:
        """Return the marks of a row: silver references, and those by the maker of the tested model."""
        references = row["record"]["references"]
        marks = {"silver": "silver_references", "of_own_family": "reference_of_same_vendor"}
        return [mark for key, mark in marks.items() if references[key]]

    def document(self, used: Mapping[str, Mapping[Row, Bools]]) -> dict[str, Any]:
        """Return the graphs by their roots, and by mode each model with thinking minus the same model without.

        `used` are, by mode and row, the items that the row is ranked on.
        """
        return {
            "graphs": {graph: list(roots) for graph, roots in self._graphs.items()},
            "thinking": {mode: list(self._pairs(found, mode)) for mode, found in used.items()},
        }

    def _pairs(self, used: Mapping[Row, Bools], mode: str) -> Iterator[dict[str, Any]]:
        """Yield the paired differences of each model with and without thinking, with minus without."""
        for model, thinking, direct in thinking_pairs(used):
            both = used[model, thinking] & used[model, direct]
            pools = [
                self._table.pool(self._table.domains, (model, setting), mode).only(both)
                for setting in (thinking, direct)
            ]
            found = dict(paired_differences(pools[0], pools[1], self._numbers))
            for number, one in found.items():
                if (graph := number.partition("/")[0]) in self._graphs:
                    one["graph"] = graph
            yield {"model": model, "thinking": thinking, "direct": direct, "differences": found}


def pooled_estimates(
    pool: CasePool, unbounded: frozenset[str] = frozenset()
) -> dict[str, dict[str, Any]]:
    """Return every number of a pool with its interval; what has no report, or no interval, is left out.

    Numbers are shares, except for `unbounded` ones.
    """
    made: dict[str, dict[str, Any]] = {}
    for known, numbers in pool.alike():
        if not known.strata.has_interval:
            continue
        columns = [known.column(number) for number in numbers]
        ones = np.ones(len(columns[0]))
        sums = known.strata.sums(np.column_stack([*columns, ones]))
        for at, (number, values) in enumerate(zip(numbers, columns, strict=True)):
            draws = sums[:, at] / sums[:, -1]
            scale = Scale(hi=sys.float_info.max) if number in unbounded else Scale()
            made[number] = ratio_estimate(
                values, ones, draws, known.strata, scale=scale
            ).to_dict()
    return made


def paired_differences(
    first: CasePool, second: CasePool, numbers: Iterable[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each number's mean in both pools, and the paired difference, with thinking minus without."""
    for number in numbers:
        both = first.known(number) & second.known(number)
        if both.sum() < _FEWEST or not (pool := first.only(both)).strata.has_interval:
            continue
        one, other = pool.column(number), second.only(both).column(number)
        sums = pool.strata.sums(np.column_stack([one - other, np.ones(len(one))]))
        draws = sums[:, 0] / sums[:, 1]
        found = difference_from_draws(one, other, draws, clusters=pool.strata.clusters)
        yield (
            number,
            {
                "thinking": float(one.mean()),
                "direct": float(other.mean()),
                "difference": found.value,
                "lo": found.lo,
                "hi": found.hi,
                "p": ratio_p(one - other, pool.strata),
                "different": found.different,
                "n": len(one),
            },
        )


def thinking_pairs(rows: Iterable[Row]) -> Iterator[tuple[str, str, str]]:
    """Yield (model, setting with thinking, setting without) of rows that differ in nothing else."""
    known = sorted(rows)
    for model, setting in known:
        base = setting.partition(":")[0]
        without = [
            s
            for m, s in known
            if m == model and s.partition(":")[0] == base and thinks(s) is False
        ]
        if thinks(setting) is True and without:
            yield model, setting, without[0]


def _values(parts: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    """Yield the numbers of one score by name, None for what is not known."""
    yield SIMILARITY, parts["similarity"]
    yield READ, float(parts["read"])
    yield LENGTH, float(parts["characters"])
    yield MEDICATION, parts["correct"] / parts["total"] if parts["total"] else None
    yield from parts["sections"].items()
    yield from ((_field(name), value) for name, value in parts["fields"].items())
    for graph, said in parts.get("graphs", {}).items():
        yield graph, said["score"]
        yield from ((_branch(graph, root), value) for root, value in said["branches"].items())


def _field(name: str) -> str:
    """Return the name of a field's number: some fields are whole sections, and have these's name."""
    return f"field {name}"


def _branch(graph: str, root: str) -> str:
    return f"{graph}/{root}"
