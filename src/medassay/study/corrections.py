"""What corrections of a bank change in the scores: accuracy before and after, for each model and
setting, paired by item.

Items keep their ids when they are corrected; removed ones have a score before only. So both
versions are scored whole, and the difference is taken over the items that both have, drawn by
cluster.

Source: specification of bank synthesis, 10.1 (accuracy before and after refinement, histogram of
types).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from medassay.bank.check import form_of
from medassay.core.ranks import NOT_SHOWN, SHOWN
from medassay.core.records.estimate import Estimate
from medassay.core.records.item import OPEN_FORMS
from medassay.core.records.trial import RowKey
from medassay.core.wording import counted
from medassay.errors import IncompleteError, InputError
from medassay.report.document import Grid, ReportDocument, Section
from medassay.report.plot.bars import stacked
from medassay.report.plot.figure import Figure
from medassay.report.plot.forest import forest
from medassay.report.plot.panels import panels
from medassay.statistic.draws import number_clusters, seed_of
from medassay.statistic.interval.bootstrap import bootstrap_mean
from medassay.statistic.test.holm import holm
from medassay.statistic.test.paired import paired_difference
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
        self.records: dict[Place, dict[str, Any]] = {}
        self.scores: dict[RowKey, dict[Place, float]] = {}
        self.banks: set[tuple[str, str, str]] = set()
        self.scripted = False
        for run in runs:
            if not run.sealed:
                raise IncompleteError(
                    f"run {run.id}: not finished; run its plan again to resume it"
                )
            self.banks |= {(b.name, b.version, b.content_sha256) for b in run.manifest.banks}
            self.scripted |= any(m.provider == "fake" for m in run.manifest.models.values())
            for record in read_jsonl(run.path / "items.jsonl"):
                if form_of(record) not in (*OPEN_FORMS, "withheld"):
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


def corrections_study(
    before: Sequence[Run], after: Sequence[Run], types: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Return accuracy before and after corrections of a bank, for every model and setting that both
    have.

    Parameters
    ----------
    types : how many corrections were proposed, each row with type, decision and n

    Returns
    -------
    dict
        rows (model, setting, before, after, each with lo and hi, in percent; difference with lo,
        hi, p_holm, different in points;
        on the changed items before_changed and after_changed), changed, removed, added (ids),
        types, banks, scripted.

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
    changed = [p for p in shared if _content(first.records[p]) != _content(second.records[p])]
    rows_made = [_row(first, second, row, changed) for row in rows]
    tested = [row for row in rows_made if row["p"] is not None]
    for row, p in zip(tested, holm([row["p"] for row in tested]) if tested else (), strict=True):
        row |= {"p_holm": p, "different": row["different"] and p <= _LEVEL}
    for row in rows_made:
        row.pop("p")
    return {
        "banks": {"before": sorted(first.banks), "after": sorted(second.banks)},
        "rows": rows_made,
        "changed": [item for _, item in changed],
        "removed": sorted(item for _, item in first.records.keys() - second.records.keys()),
        "added": sorted(item for _, item in second.records.keys() - first.records.keys()),
        "types": [dict(row) for row in types],
        "scripted": first.scripted or second.scripted,
    }


def _content(record: Mapping[str, Any]) -> list[Any]:
    return [record.get(key) for key in _COMPARED]


def _row(
    first: _Version, second: _Version, row: RowKey, changed: Sequence[Place]
) -> dict[str, Any]:
    """Return a row; its difference has no interval where all its items are of one cluster, which
    varies in no draw.
    """
    old, new = first.scores[row], second.scores[row]
    shared = sorted(old.keys() & new.keys())
    places_own = [place for place in changed if place in old and place in new]
    ends = {"before": first.estimate(row, "before"), "after": second.estimate(row, "after")}
    sure = {when: estimate.n_clusters > 1 for when, estimate in ends.items()}
    return {
        "model": row[0],
        "setting": row[1],
        **{when: 100 * estimate.value for when, estimate in ends.items()},
        **{
            f"{when}_lo": 100 * estimate.lo if sure[when] else None
            for when, estimate in ends.items()
        },
        **{
            f"{when}_hi": 100 * estimate.hi if sure[when] else None
            for when, estimate in ends.items()
        },
        **{f"n_{when}": estimate.n for when, estimate in ends.items()},
        **_difference(first, row, old, new, shared),
        "n_shared": len(shared),
        "n_changed": len(places_own),
        "before_changed": (
            100 * float(np.mean([old[p] for p in places_own])) if places_own else None
        ),
        "after_changed": 100 * float(np.mean([new[p] for p in places_own])) if places_own else None,
    }


def _difference(
    first: _Version,
    row: RowKey,
    old: Mapping[Place, float],
    new: Mapping[Place, float],
    shared: Sequence[Place],
) -> dict[str, Any]:
    clusters = [first.cluster(place) for place in shared]
    nothing = {"lo": None, "hi": None, "p": None, "p_holm": None, "different": False}
    if len(set(clusters)) < 2:
        value = float(np.mean([new[p] - old[p] for p in shared])) if shared else None
        return {"difference": None if value is None else 100 * value, **nothing}
    difference = paired_difference(
        np.array([new[place] for place in shared]),
        np.array([old[place] for place in shared]),
        seed=seed_of(*row, "corrections"),
        clusters=number_clusters(np.array(clusters)),
    )
    ends = {"difference": difference.value, "lo": difference.lo, "hi": difference.hi}
    scaled = {name: 100 * value for name, value in ends.items()}
    return {**scaled, "p": difference.p, "p_holm": None, "different": difference.different}


def corrections_sheet(study: Mapping[str, Any]) -> ReportDocument:
    """Return the study as a sheet: bars before and after, differences, and the histogram of
    types.
    """
    columns = list(study["rows"][0]) if study["rows"] else ["model", "setting"]
    return ReportDocument(
        name="corrections",
        title="What corrections of the bank change",
        reading=_reading(study),
        notes=[*_notes(study)],
        sections=[*_sections(study)],
        columns=columns,
        lines=study["rows"],
        data=study,
    )


def _reading(study: Mapping[str, Any]) -> str:
    sure = [row for row in study["rows"] if row["different"]]
    up = sum(row["difference"] > 0 for row in sure)
    return (
        f"{counted(len(study['changed']), 'item')}"
        f" {'was' if len(study['changed']) == 1 else 'were'} changed, {len(study['removed'])}"
        f" removed. Of {counted(len(study['rows']), 'row')} of model and setting {up} rose and"
        f" {len(sure) - up} fell by more than chance, on the items that both versions have."
    )


def _notes(study: Mapping[str, Any]) -> Iterator[str]:
    for when, banks in study["banks"].items():
        yield f"{when}: {', '.join(f'{version} ({content[:16]})' for _, version, content in banks)}"
    if study["scripted"]:
        yield "SCRIPTED: answers are a script's; these numbers measure nothing."
    yield (
        "Intervals are of 95 %, over clusters of items. A difference is told where its interval"
        " excludes 0 and Holm's p over all rows is at most 0.05."
    )
    yield (
        "Items are corrected because models were wrong on them: that they do better afterwards is"
        " partly regression to the mean."
    )


def _sections(study: Mapping[str, Any]) -> Iterator[Section]:
    rows = study["rows"]
    yield Section(
        title="Accuracy before and after",
        figure=("before-after", _bars(rows)),
        grids=[_table(rows)],
    )
    points = [
        {
            "name": f"{row['model']}, {row['setting']}",
            "diff": row["difference"],
            **{key: row[key] for key in ("lo", "hi", "different")},
        }
        for row in rows
        if row["lo"] is not None
    ]
    if points:
        figure = ("differences", forest(points, unit="points of 100"))
        yield Section(title="Differences", figure=figure)
    if study["types"]:
        counts = [{**row, "type": _TYPE_NAMES[row["type"]]} for row in study["types"]]
        cells = [[row["type"], row["decision"], str(row["n"])] for row in counts]
        yield Section(
            title="Types of corrections",
            text=(
                "What the reviewing model proposed, and what people decided; an item may have two"
                " types."
            ),
            figure=("types", stacked(counts, over="type", by="decision", step=130)),
            grids=[Grid(heads=["type", "decision", "corrections"], rows=cells, names=2)],
        )


def _bars(rows: Sequence[Mapping[str, Any]]) -> Figure:
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    points = [
        {
            "measure": row["setting"],
            "model": row["model"],
            "version": when,
            "score": row[when],
            **{
                end: row[f"{when}_{end}"] if row[f"{when}_{end}"] is not None else row[when]
                for end in ("lo", "hi")
            },
        }
        for row in rows
        for when in ("before", "after")
    ]
    return panels(points, {name: f"{name}: accuracy, %" for name in settings}, beside="version")


def _table(rows: Sequence[Mapping[str, Any]]) -> Grid:
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
            row["model"],
            row["setting"],
            *(_interval(row[w], row[f"{w}_lo"], row[f"{w}_hi"]) for w in ("before", "after")),
            _interval(row["difference"], row["lo"], row["hi"], sign="+"),
            "–" if row["p_holm"] is None else f"{row['p_holm']:.3f}",
            SHOWN if row["different"] else NOT_SHOWN,
            (
                "–"
                if row["before_changed"] is None
                else (
                    f"{row['before_changed']:.1f} → {row['after_changed']:.1f}"
                    f" (n={row['n_changed']})"
                )
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
