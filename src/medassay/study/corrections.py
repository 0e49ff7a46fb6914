"""What corrections of a bank change in the scores: accuracy before and after, for each model and
setting, paired by item.

Items keep their ids when they are corrected; removed ones have a score before only. So both
versions are scored whole, and the difference is taken over the items that both have, drawn by
cluster.

Source: specification of bank synthesis, 10.1 (accuracy before and after refinement, histogram of
types).
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from medassay.bank.check import form_of
from medassay.core.ranks import NOT_SHOWN, SHOWN
from medassay.core.records.estimate import Estimate
from medassay.core.records.item_object import ItemObject
from medassay.core.records.target import OPEN_FORMS, Withheld
from medassay.core.records.trial import RowKey
from medassay.core.wording import counted
from medassay.errors import InputError
from medassay.report.document import Grid, ReportDocument, Section
from medassay.report.plot.bars import StackedCount, stacked
from medassay.report.plot.figure import Figure
from medassay.report.plot.forest import NamedDifference, forest
from medassay.report.plot.panels import PanelBar, panels
from medassay.statistic.draws import number_clusters, seed_of
from medassay.statistic.interval.bootstrap import bootstrap_mean
from medassay.statistic.test.holm import holm
from medassay.statistic.test.paired import Difference, paired_difference
from medassay.storage.jsonl import read_jsonl
from medassay.storage.records import read_scored_trials
from medassay.storage.run import Run

_LEVEL = 0.05
_COMPARED = (
    *("question", "context", "options", "expected"),
    *("range", "regex", "extract", "locale", "path"),
)
_TYPE_NAMES = {
    0: "0 rewrite or remove",
    1: "1 key or option",
    2: "2 question",
    3: "3 pathway",
}
Place = tuple[str, str]  # domain, item


class _Version:
    """The scores of closed items in the runs of one version of a bank."""

    def __init__(self, runs: Sequence[Run], when: str) -> None:
        self.records: dict[Place, ItemObject] = {}
        self.scores: dict[RowKey, dict[Place, float]] = {}
        self.banks: set[tuple[str, str, str]] = set()
        self.scripted = False
        for run in runs:
            run.refuse_unfinished()
            self.banks |= {(b.name, b.version, b.content_sha256) for b in run.manifest.banks}
            self.scripted |= any(m.provider == "fake" for m in run.manifest.models.values())
            for record in read_jsonl(run.path / "items.jsonl"):
                if form_of(record) not in (*OPEN_FORMS, Withheld.form):
                    self.records[record["domain"], record["id"]] = record
            self._add(run)
        if not self.scores:
            raise InputError(
                f"runs {when}: no closed item was answered in the mode solo; expected runs of"
                " closed items"
            )
        if len({name for name, *_ in self.banks}) < len(self.banks):
            versions = ", ".join(sorted(version for _, version, _ in self.banks))
            raise InputError(f"runs {when} are of several versions: {versions}; expected one")

    def _add(self, run: Run) -> None:
        scores: dict[RowKey, dict[Place, list[float]]] = {}
        for trial, score in read_scored_trials(run.path):
            place = (trial.domain, trial.item)
            if trial.mode == "solo" and place in self.records and score.score is not None:
                of = scores.setdefault(trial.row, {})
                of.setdefault(place, []).append(score.score)
        for row, values in scores.items():
            if row in self.scores:
                raise InputError(
                    f"run {run.id}: '{row[0]}' in the setting {row[1]} is in another run, too;"
                    " expected each once"
                )
            self.scores[row] = {place: sum(v) / len(v) for place, v in values.items()}

    def estimate(self, row: RowKey, when: str) -> Estimate:
        """Return the accuracy of a row over all its items."""
        places = sorted(self.scores[row])
        return bootstrap_mean(
            [self.scores[row][place] for place in places],
            seed=seed_of(*row, when),
            clusters=number_clusters(np.array([self.cluster(place) for place in places])),
        )

    def cluster(self, place: Place) -> str:
        """Return what an item is drawn with."""
        return str(self.records[place].get("cluster") or "\x1f".join(place))


class CorrectionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model in one setting: its accuracy before and after, in percent, with intervals.

    The difference is in points, over the items that both versions have; it has no interval where
    these are of one cluster, which varies in no draw. `before_changed` and `after_changed` are
    accuracies on the changed items alone.
    """

    model: str
    setting: str
    before: float
    after: float
    before_lo: float | None
    after_lo: float | None
    before_hi: float | None
    after_hi: float | None
    n_before: int
    n_after: int
    difference: float | None
    lo: float | None
    hi: float | None
    p_holm: float | None
    different: bool
    n_shared: int
    n_changed: int
    before_changed: float | None
    after_changed: float | None


class TypeCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many corrections of one type were proposed, by what people decided of them."""

    type: int
    decision: str
    n: int


class CorrectionsStudy(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracy before and after corrections of a bank.

    `banks` are (name, version, hash of the content) before and after; `changed`, `removed` and
    `added` ids of items.
    """

    banks: dict[str, list[tuple[str, str, str]]]
    rows: list[CorrectionRow]
    changed: list[str]
    removed: list[str]
    added: list[str]
    types: list[TypeCount]
    scripted: bool


def corrections_study(
    before: Sequence[Run], after: Sequence[Run], types: Sequence[tuple[int, str, int]] = ()
) -> CorrectionsStudy:
    """Return accuracy before and after corrections of a bank, for every model and setting that both
    have.

    Parameters
    ----------
    types : (type, decision, how many) of the corrections that were proposed

    Raises
    ------
    InputError
        When the versions are one, runs are of several, or no row is in both.
    """
    first, second = _Version(before, "before"), _Version(after, "after")
    if first.banks == second.banks:
        raise InputError("the runs before and after are of one version of the bank; expected two")
    rows = sorted(first.scores.keys() & second.scores.keys())
    if not rows:
        raise InputError(
            "no model was asked in one setting before and after; expected the same plan on both"
            " versions"
        )
    shared = sorted(first.records.keys() & second.records.keys())
    if not shared:
        raise InputError(
            "no item is in the runs before and after; expected two versions of one bank"
        )
    changed = [
        place
        for place in shared
        if any(first.records[place].get(k) != second.records[place].get(k) for k in _COMPARED)
    ]
    differences = [_difference(first, second, row) for row in rows]
    tested = [difference.p for difference in differences if difference is not None]
    adjusted = iter(holm(tested) if tested else ())
    return CorrectionsStudy(
        banks={"before": sorted(first.banks), "after": sorted(second.banks)},
        rows=[
            _row(
                (first, second),
                row,
                changed,
                difference,
                None if difference is None else float(next(adjusted)),
            )
            for row, difference in zip(rows, differences, strict=True)
        ],
        changed=[item for _, item in changed],
        removed=sorted(item for _, item in first.records.keys() - second.records.keys()),
        added=sorted(item for _, item in second.records.keys() - first.records.keys()),
        types=[TypeCount(type=kind, decision=decision, n=n) for kind, decision, n in types],
        scripted=first.scripted or second.scripted,
    )


def _shared(first: _Version, second: _Version, row: RowKey) -> list[Place]:
    """Return the items that a row has a score of in both versions."""
    return sorted(first.scores[row].keys() & second.scores[row].keys())


def _difference(first: _Version, second: _Version, row: RowKey) -> Difference | None:
    """Return after − before, None where all items that both have are of one cluster."""
    shared = _shared(first, second, row)
    clusters = [first.cluster(place) for place in shared]
    if len(set(clusters)) < 2:
        return None
    return paired_difference(
        np.array([second.scores[row][place] for place in shared]),
        np.array([first.scores[row][place] for place in shared]),
        seed=seed_of(*row, "corrections"),
        clusters=number_clusters(np.array(clusters)),
    )


def _row(
    versions: tuple[_Version, _Version],
    row: RowKey,
    changed: Sequence[Place],
    difference: Difference | None,
    p_holm: float | None,
) -> CorrectionRow:
    first, second = versions
    old, new = first.scores[row], second.scores[row]
    shared = _shared(first, second, row)
    places = [place for place in changed if place in old and place in new]
    before, after = first.estimate(row, "before"), second.estimate(row, "after")
    before_ends, after_ends = _percent_ends(before), _percent_ends(after)
    plain = float(np.mean([new[place] - old[place] for place in shared])) if shared else None
    value = plain if difference is None else difference.value
    return CorrectionRow(
        model=row[0],
        setting=row[1],
        before=100 * before.value,
        after=100 * after.value,
        before_lo=before_ends[0],
        after_lo=after_ends[0],
        before_hi=before_ends[1],
        after_hi=after_ends[1],
        n_before=before.n,
        n_after=after.n,
        difference=None if value is None else 100 * value,
        lo=None if difference is None else 100 * difference.lo,
        hi=None if difference is None else 100 * difference.hi,
        p_holm=p_holm,
        different=difference is not None
        and difference.different
        and p_holm is not None
        and p_holm <= _LEVEL,
        n_shared=len(shared),
        n_changed=len(places),
        before_changed=100 * float(np.mean([old[p] for p in places])) if places else None,
        after_changed=100 * float(np.mean([new[p] for p in places])) if places else None,
    )


def _percent_ends(estimate: Estimate) -> tuple[float, float] | tuple[None, None]:
    """Return the ends of an interval in percent; a single cluster varies in no draw."""
    return (100 * estimate.lo, 100 * estimate.hi) if estimate.n_clusters > 1 else (None, None)


def corrections_sheet(study: CorrectionsStudy) -> ReportDocument:
    """Return the study as a sheet: bars before and after, differences, and the histogram of
    types.
    """
    return ReportDocument(
        name="corrections",
        title="What corrections of the bank change",
        reading=_reading(study),
        notes=[*_notes(study)],
        sections=[*_sections(study)],
        columns=list(CorrectionRow.__struct_fields__),
        lines=msgspec.to_builtins(study.rows),
        data=msgspec.to_builtins(study),
    )


def _reading(study: CorrectionsStudy) -> str:
    sure = [row for row in study.rows if row.different]
    up = sum((row.difference or 0) > 0 for row in sure)
    return (
        f"{counted(len(study.changed), 'item')}"
        f" {'was' if len(study.changed) == 1 else 'were'} changed, {len(study.removed)}"
        f" removed. Of {counted(len(study.rows), 'row')} of model and setting {up} rose and"
        f" {len(sure) - up} fell by more than chance, on the items that both versions have."
    )


def _notes(study: CorrectionsStudy) -> Iterator[str]:
    for when, banks in study.banks.items():
        yield f"{when}: {', '.join(f'{version} ({content[:16]})' for _, version, content in banks)}"
    if study.scripted:
        yield "SCRIPTED: answers are a script's; these numbers measure nothing."
    yield (
        "Intervals are of 95 %, over clusters of items. A difference is told where its interval"
        " excludes 0 and Holm's p over all rows is at most 0.05."
    )
    yield (
        "Items are corrected because models were wrong on them: that they do better afterwards is"
        " partly regression to the mean."
    )


def _sections(study: CorrectionsStudy) -> Iterator[Section]:
    rows = study.rows
    yield Section(
        title="Accuracy before and after",
        figure=("before-after", _bars(rows)),
        grids=[_table(rows)],
    )
    points = [
        NamedDifference(
            name=f"{row.model}, {row.setting}",
            diff=row.difference,
            lo=row.lo,
            hi=row.hi,
            different=row.different,
        )
        for row in rows
        if row.difference is not None and row.lo is not None and row.hi is not None
    ]
    if points:
        figure = ("differences", forest(points, unit="points of 100"))
        yield Section(title="Differences", figure=figure)
    if study.types:
        counts = [
            StackedCount(place=_TYPE_NAMES[count.type], part=count.decision, n=count.n)
            for count in study.types
        ]
        cells = [[count.place, count.part, str(count.n)] for count in counts]
        yield Section(
            title="Types of corrections",
            text=(
                "What the reviewing model proposed, and what people decided; an item may have two"
                " types."
            ),
            figure=("types", stacked(counts, over="type", by="decision", step=130)),
            grids=[Grid(heads=["type", "decision", "corrections"], rows=cells, names=2)],
        )


def _bars(rows: Sequence[CorrectionRow]) -> Figure:
    settings = list(dict.fromkeys(row.setting for row in rows))
    points = [
        PanelBar(
            measure=row.setting,
            model=row.model,
            beside=when,
            score=score,
            lo=score if lo is None else lo,
            hi=score if hi is None else hi,
        )
        for row in rows
        for when, score, lo, hi in (
            ("before", row.before, row.before_lo, row.before_hi),
            ("after", row.after, row.after_lo, row.after_hi),
        )
    ]
    return panels(points, {name: f"{name}: accuracy, %" for name in settings}, beside="version")


def _table(rows: Sequence[CorrectionRow]) -> Grid:
    heads = [
        "model",
        "setting",
        "before",
        "after",
        "after − before",
        "p (Holm)",
        "reading",
        "on changed items",
    ]
    lines = [
        [
            row.model,
            row.setting,
            _interval(row.before, row.before_lo, row.before_hi),
            _interval(row.after, row.after_lo, row.after_hi),
            _interval(row.difference, row.lo, row.hi, sign="+"),
            "–" if row.p_holm is None else f"{row.p_holm:.3f}",
            SHOWN if row.different else NOT_SHOWN,
            (
                "–"
                if row.before_changed is None
                else (f"{row.before_changed:.1f} → {row.after_changed:.1f} (n={row.n_changed})")
            ),
        ]
        for row in rows
    ]
    return Grid(heads=heads, rows=lines, names=2)


def _interval(value: float | None, lo: float | None, hi: float | None, sign: str = "") -> str:
    if value is None:
        return "–"
    if lo is None or hi is None:
        return f"{value:{sign}.1f} [one cluster: no interval]"
    return f"{value:{sign}.1f} [{lo:{sign}.1f}, {hi:{sign}.1f}]"
