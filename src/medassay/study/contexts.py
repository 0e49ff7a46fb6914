"""What models make of contexts: accuracy, judge and similarity of every model in every setting, and what each context adds.

Settings stand side by side: zero-shot, with retrieved text, and the toplines with path, source text, or both, which are upper bounds
and get no rank. Every item counts once, whatever its category, as published; ranks are of the models of one setting.

Source: specification of tasks and prompts, 14.2; statistics, 7.3, 7.4 and 7.7.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
from scipy.stats import rankdata

from medassay.core.estimate import Estimate
from medassay.core.trial import Scale, Setting
from medassay.errors import IncompleteError, InputError
from medassay.publication.plot.forest import forest
from medassay.publication.plot.panels import panels
from medassay.publication.sheet import Grid, Section, Sheet
from medassay.score.metric import UNBOUNDED
from medassay.statistic.draws import number_clusters, seed_of
from medassay.statistic.interval.bootstrap import SMALL_N, bootstrap_mean
from medassay.statistic.metric.correlation import FEWEST, pearson_intervals, spearman
from medassay.statistic.ranking.shared import rank
from medassay.statistic.test.holm import holm
from medassay.statistic.test.paired import paired_difference
from medassay.storage.jsonl import read_jsonl
from medassay.storage.run import Run
from medassay.task.catalog import task_of_run
from medassay.task.scoring import RunItems

Measure = Literal["accuracy", "judge", "similarity"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
SETTINGS: tuple[str, ...] = get_args(Setting)
BARE = "zero_shot"
ALL = "all"
ASKED_FOR = 150  # characters of an open answer
_LIKENESS = ("bge_m3", "bertscore", "moverscore", "chrf")  # the first that a run has
_LEVEL = 0.05
_FACTOR: Mapping[Measure, float] = {"accuracy": 100.0, "judge": 1.0, "similarity": 1.0}
_DIGITS: Mapping[Measure, int] = {"accuracy": 1, "judge": 2, "similarity": 3}
_COLUMNS = (
    *("model", "setting", "category", "measure", "metric", "score", "lo", "hi"),
    *("n", "rank", "few", "run"),
)
# Of rows that no ranking has, whatever their numbers; too few items are a category's own affair.
_NOT_RANKED = {
    f"not_ranked:{reason}" for reason in ("baseline", "fake", "generated", "topline")
}
Row = tuple[str, str]  # model, setting


@dataclass(frozen=True, kw_only=True)
class Column:
    """One measure of one run: estimates by category and row, and the value of every item for differences."""

    measure: Measure
    metric: str
    run: Run
    scale: Scale
    values: Mapping[Row, Mapping[tuple[str, str], float]]
    clusters: Mapping[tuple[str, str], int]
    unranked: frozenset[Row] = field(default=frozenset())
    long: Mapping[Row, tuple[int, int]] = field(default_factory=dict)

    @cached_property
    def estimates(self) -> dict[str, dict[Row, Estimate]]:
        """Return category → row → mean over its items, drawn by clusters; of a single item there is none."""
        made: dict[str, dict[Row, Estimate]] = {}
        for row, values in self.values.items():
            places: dict[str, list[tuple[str, str]]] = {ALL: sorted(values)}
            for item in places[ALL]:
                places.setdefault(item[0], []).append(item)
            if len(places) == 2:  # one category is the whole
                places = {ALL: places[ALL]}
            for category, items in places.items():
                if len(items) > 1:
                    one = self._estimate(row, category, items)
                    made.setdefault(category, {})[row] = one
        return made

    def _estimate(self, row: Row, category: str, items: Sequence[tuple[str, str]]) -> Estimate:
        return bootstrap_mean(
            [self.values[row][item] for item in items],
            seed=seed_of(self.measure, category),
            scale=self.scale,
            clusters=number_clusters(np.array([self.clusters[item] for item in items])),
        )


def contexts_study(runs: Sequence[Run]) -> dict[str, Any]:
    """Return accuracy, judge and similarity by model, setting and category, with what each context adds.

    Returns
    -------
    dict
        rows (model, setting, category, measure, metric, score, lo, hi, n, rank, few, run), gains (paired, setting minus
        zero_shot, in points of 100 of the scale), correlations of two measures over models by setting, sources (how often
        the own source was retrieved), long (open answers beyond 150 characters), metrics, runs.

    Raises
    ------
    InputError
        When two runs hold the same row, or a run measures none of the three.
    """
    columns = [column for run in runs for column in _columns(run)]
    _refuse_twice(columns)
    gains = [gain for column in columns for gain in _gains(column)]
    for gain, p in zip(gains, holm([one["p"] for one in gains]) if gains else (), strict=True):
        # Few conditions make intervals too short, and many differences find one by chance: both must agree.
        gain |= {"p_holm": p, "different": gain["different"] and p <= _LEVEL}
    return {
        "runs": [run.id for run in runs],
        "metrics": {column.measure: column.metric for column in columns},
        "rows": [row for column in columns for row in _rows(column)],
        "gains": gains,
        "correlations": [*_correlations(columns)],
        "sources": [source for run in runs for source in _sources(run)],
        "long": [
            {"model": m, "setting": s, "long": n, "answers": of}
            for column in columns
            for (m, s), (n, of) in sorted(column.long.items())
        ],
    }


def _columns(run: Run) -> Iterator[Column]:
    """Yield what a run measures: its own score, and of texts compared with references a likeness."""
    if not run.sealed:
        raise IncompleteError(f"run {run.id}: not finished; run its plan again to resume it")
    measure, metric = _measure(run)
    mode = (
        "solo" if "solo" in run.statistics["fields"] else next(iter(run.statistics["fields"]))
    )
    unranked = {
        (row["model"], row["setting"])
        for row in run.statistics["domains"]["overall"]
        if row["mode"] == mode and _NOT_RANKED & set(row["flags"])
    }
    items = RunItems(run.path, run.manifest["domains"])
    values, long = _values(run, mode, measure, metric)
    scale = task_of_run(run.manifest).scale if measure != "similarity" else UNBOUNDED
    yield Column(
        measure=measure,
        metric=metric,
        run=run,
        scale=scale,
        values=values,
        clusters={
            (domain, name): number
            for domain, numbers in items.clusters.items()
            for name, number in zip(items.names(domain), numbers, strict=True)
        },
        unranked=frozenset(unranked),
        long=long if measure != "accuracy" else {},
    )


def _measure(run: Run) -> tuple[Measure, str]:
    """Return which of the three a run measures, and by which metric."""
    metric = run.statistics["metric"]
    if "text" in run.statistics:
        known = run.statistics["text"]["metrics"]
        return "similarity", next(name for name in _LIKENESS if name in known)
    if run.manifest["task"].startswith("g_eval"):
        return "judge", metric
    if metric == "accuracy":
        return "accuracy", metric
    raise InputError(
        f"run {run.id}: measures {metric}; expected a quiz (accuracy), answers graded by G-Eval, or answers compared with references"
    )


def _values(
    run: Run, mode: str, measure: Measure, metric: str
) -> tuple[dict[Row, dict[tuple[str, str], float]], dict[Row, tuple[int, int]]]:
    """Return the value of every item in every row, repeats averaged, and how many answers are longer than asked for."""
    found: dict[Row, dict[tuple[str, str], list[float]]] = {}
    long: dict[Row, list[int]] = {}
    trials = read_jsonl(run.path / "trials.jsonl")
    for trial, score in zip(trials, read_jsonl(run.path / "scores.jsonl"), strict=True):
        if trial["mode"] != mode:
            continue
        row = (trial["model"], trial["setting"])
        value = score["score"]
        if measure == "similarity" and trial["outcome"] == "answered":
            said = {**score.get("parts", {}).get("text", {}), **score.get("measured", {})}
            value = said.get(metric)
        if value is not None:
            place = found.setdefault(row, {})
            place.setdefault((trial["domain"], trial["item"]), []).append(value)
        if trial["outcome"] == "answered":
            counted = long.setdefault(row, [0, 0])
            counted[0] += len(trial.get("value") or "") > ASKED_FOR
            counted[1] += 1
    means = {row: {i: sum(v) / len(v) for i, v in of.items()} for row, of in found.items()}
    return means, {row: (n, of) for row, (n, of) in long.items()}


def _refuse_twice(columns: Sequence[Column]) -> None:
    owners: dict[tuple[str, Row], str] = {}
    for column in columns:
        for row in column.estimates[ALL]:
            other = owners.setdefault((column.measure, row), column.run.id)
            if other != column.run.id:
                raise InputError(
                    f"runs {other} and {column.run.id} both hold {column.measure} of {row[0]} in {row[1]}; leave one out"
                )


def is_topline(setting: str) -> bool:
    """Return whether a setting is an upper bound, which gets no rank."""
    return setting.startswith("topline")


def _order(setting: str) -> tuple[int, str]:
    kind = setting.partition(":")[0]
    return (SETTINGS.index(kind) if kind in SETTINGS else len(SETTINGS), setting)


def _rows(column: Column) -> Iterator[dict[str, Any]]:
    for category, estimates in sorted(
        column.estimates.items(), key=lambda o: (o[0] != ALL, o[0])
    ):
        for setting in sorted({setting for _, setting in estimates}, key=_order):
            own = {m: e for (m, s), e in sorted(estimates.items()) if s == setting}
            ranks = _ranks(column, setting, own)
            for model, one in own.items():
                yield {
                    "model": model,
                    "setting": setting,
                    "category": category,
                    "measure": column.measure,
                    "metric": column.metric,
                    "score": one.value,
                    # One condition varies in no draw: nothing is known of how sure the number is.
                    "lo": one.lo if one.n_clusters > 1 else None,
                    "hi": one.hi if one.n_clusters > 1 else None,
                    "n": one.n,
                    "rank": ranks.get(model),
                    "few": min(one.n, one.n_clusters) < SMALL_N,
                    "run": column.run.id,
                }


def _ranks(column: Column, setting: str, own: Mapping[str, Estimate]) -> dict[str, int]:
    """Return the shared rank group of each model of a setting, 1 the best; nothing for toplines and unranked rows."""
    if is_topline(setting):
        return {}
    given = {m: one for m, one in own.items() if (m, setting) not in column.unranked}
    return {m: one.group for m, one in rank(given).items() if one.group is not None}


def _gains(column: Column) -> Iterator[dict[str, Any]]:
    """Yield each setting minus zero-shot, paired over the items that both have."""
    # Likeness has no scale of its own, but means much where it is 1 and nothing at 0.
    factor = 100.0 if column.measure == "similarity" else 100 / column.scale.hi
    for model, setting in sorted(column.values, key=lambda row: (row[0], _order(row[1]))):
        bare = column.values.get((model, BARE), {})
        kind, _, template = setting.partition(":")
        if kind == BARE or template:
            continue
        with_, shared = column.values[model, setting], sorted(bare)
        shared = [item for item in shared if item in with_]
        if len({column.clusters[item] for item in shared}) < 2:
            continue
        found = paired_difference(
            np.array([with_[item] for item in shared]),
            np.array([bare[item] for item in shared]),
            seed=seed_of(model, setting, column.measure),
            clusters=number_clusters(np.array([column.clusters[item] for item in shared])),
        )
        yield {
            "model": model,
            "setting": setting,
            "measure": column.measure,
            **{name: factor * getattr(found, name) for name in ("value", "lo", "hi")},
            "p": found.p,
            "different": found.different,
            "n": len(shared),
        }


def _correlations(columns: Sequence[Column]) -> Iterator[dict[str, Any]]:
    """Yield Spearman's rho of two measures over the models of a setting, with an interval where models suffice."""
    score: dict[tuple[str, str], dict[str, float]] = {}  # measure, setting → model → score
    for column in columns:
        for (model, setting), estimate in column.estimates[ALL].items():
            score.setdefault((column.measure, setting), {})[model] = estimate.value
    for setting in sorted({setting for _, setting in score}, key=_order):
        for one, other in combinations(MEASURES, 2):
            first, second = score.get((one, setting), {}), score.get((other, setting), {})
            models = sorted(first.keys() & second.keys())
            if len(models) < FEWEST:
                continue
            table = np.array([(first[model], second[model]) for model in models])
            ranks = np.column_stack([rankdata(table[:, at]) for at in (0, 1)])
            lo, hi = pearson_intervals(ranks, seed=seed_of(setting, one, other))
            yield {
                "setting": setting,
                "first": one,
                "second": other,
                "rho": spearman(table).values[0][1],
                "lo": lo[0][1],
                "hi": hi[0][1],
                "n": len(models),
            }


def _sources(run: Run) -> Iterator[dict[str, Any]]:
    """Yield how often what was retrieved held the source of the item's condition."""
    for row in run.statistics["domains"]["overall"]:
        if "own_source" in row:
            kept = {key: row[key] for key in ("model", "setting", "mode")}
            yield {**kept, "run": run.id, "measure": _measure(run)[0], **row["own_source"]}


def contexts_sheet(study: Mapping[str, Any]) -> Sheet:
    """Return the study as a sheet."""
    sections = [_table(study), *_gain_sections(study), _agreement(study), *_retrieval(study)]
    sections.append(_categories(study))
    return Sheet(
        name="contexts",
        title="What contexts add",
        reading=reading(study),
        notes=list(_notes(study)),
        sections=[section for section in sections if section.grids or section.figure],
        columns=list(_COLUMNS),
        lines=[
            {**row, "rank": "" if row["rank"] is None else row["rank"]} for row in study["rows"]
        ],
        data=study,
    )


def _notes(study: Mapping[str, Any]) -> Iterator[str]:
    metrics = study["metrics"]
    said = {
        "accuracy": "accuracy is the share of right letters, in %",
        "judge": f"judge is {metrics.get('judge', '')}, 0 to 10",
        "similarity": f"similarity is {metrics.get('similarity', '')}",
    }
    told = "; ".join(said[name] for name in MEASURES if name in metrics)
    yield f"{told[:1].upper()}{told[1:]}. Every item counts once. Runs: {', '.join(study['runs'])}."
    yield "1st and 2nd are shared ranks among the models of a setting: equal marks cannot be told apart. Toplines are upper bounds and get none."
    yield "Intervals are of 95 %, over conditions where items share one; each difference has its own. A difference is told where that excludes 0 and Holm's p over all of them is at most 0.05."


def _cell(row: Mapping[str, Any] | None) -> str:
    """Return an estimate with interval and mark."""
    if row is None:
        return "–"
    factor, digits = _FACTOR[row["measure"]], _DIGITS[row["measure"]]
    value = f"{factor * row['score']:.{digits}f}"
    if row["lo"] is None:
        return f"{value} [one condition: no interval]"
    lo, hi = (f"{factor * row[key]:.{digits}f}" for key in ("lo", "hi"))
    mark = {1: " 1st", 2: " 2nd"}.get(row["rank"] or 0, "")
    return f"{value} [{lo}, {hi}]{mark}{' few' if row['few'] else ''}"


def _table(study: Mapping[str, Any]) -> Section:
    rows = [row for row in study["rows"] if row["category"] == ALL]
    found = {(row["model"], row["setting"], row["measure"]): row for row in rows}
    measures = [name for name in MEASURES if name in study["metrics"]]
    keys = sorted({key[:2] for key in found}, key=lambda key: (key[0], _order(key[1])))
    drawn = [
        {
            **{key: row[key] for key in ("measure", "model", "setting")},
            **{key: _FACTOR[row["measure"]] * row[key] for key in ("score", "lo", "hi")},
        }
        for row in sorted(rows, key=lambda row: (row["model"], _order(row["setting"])))
        if row["lo"] is not None
    ]
    units = {"accuracy": "accuracy, %", "judge": "judge, 0 to 10", "similarity": "similarity"}
    return Section(
        title="Every model in every setting",
        figure=("panels", panels(drawn, {name: units[name] for name in measures})),
        grids=[
            Grid(
                heads=["model", "setting", *measures],
                rows=[
                    [*key, *(_cell(found.get((*key, measure))) for measure in measures)]
                    for key in keys
                ],
                names=2,
            )
        ],
    )


def _gain_sections(study: Mapping[str, Any]) -> Iterator[Section]:
    """Yield a section for each model: what each context adds to it."""
    for number, model in enumerate(sorted({one["model"] for one in study["gains"]}), 1):
        own = [one for one in study["gains"] if one["model"] == model]
        points = [
            {
                "name": f"{one['measure']}: {one['setting']}",
                "diff": one["value"],
                **{key: one[key] for key in ("lo", "hi", "different")},
            }
            for one in own
        ]
        rows = [
            [
                one["setting"],
                one["measure"],
                f"{one['value']:+.1f} [{one['lo']:+.1f}, {one['hi']:+.1f}]",
                f"{one['p_holm']:.3f}",
                "different" if one["different"] else "not separable",
                str(one["n"]),
            ]
            for one in own
        ]
        heads = ["setting", "measure", "minus zero_shot", "p (Holm)", "reading", "items"]
        yield Section(
            title=f"What each context adds to {model}",
            figure=(f"gains-{number}", forest(points, unit="points of 100 of the scale")),
            grids=[Grid(heads=heads, rows=rows, names=2)],
        )


def _agreement(study: Mapping[str, Any]) -> Section:
    rows = [
        [
            one["setting"],
            f"{one['first']} and {one['second']}",
            "–" if one["rho"] is None else f"{one['rho']:+.2f}{_ends(one)}",
            str(one["n"]),
        ]
        for one in study["correlations"]
    ]
    heads = ["setting", "measures", "Spearman's rho", "models"]
    return Section(
        title="Do the measures order models alike?",
        grids=[Grid(heads=heads, rows=rows, names=2)] if rows else [],
    )


def _ends(one: Mapping[str, Any]) -> str:
    if one["lo"] is None:
        return " [too few models for an interval]"
    return f" [{one['lo']:+.2f}, {one['hi']:+.2f}]"


def _retrieval(study: Mapping[str, Any]) -> Iterator[Section]:
    found = [
        [
            one["model"],
            f"{one['setting']}, {one['measure']}",
            f"{100 * one['score']:.1f}"
            + ("" if one["lo"] is None else f" [{100 * one['lo']:.1f}, {100 * one['hi']:.1f}]"),
            str(one["n"]),
        ]
        for one in study["sources"]
    ]
    heads = ["model", "setting", "own source retrieved, %", "items"]
    yield Section(
        title="Did the search find the right text?",
        grids=[Grid(heads=heads, rows=found, names=2)] if found else [],
    )
    long = [
        [one["model"], one["setting"], f"{one['long']} of {one['answers']}"]
        for one in study["long"]
    ]
    heads = ["model", "setting", f"longer than {ASKED_FOR} characters"]
    yield Section(
        title="Answers longer than asked for",
        grids=[Grid(heads=heads, rows=long, names=2)] if long else [],
    )


def _categories(study: Mapping[str, Any]) -> Section:
    rows = [row for row in study["rows"] if row["category"] != ALL]
    measures = [name for name in MEASURES if name in study["metrics"]]
    found = {(r["category"], r["model"], r["setting"], r["measure"]): r for r in rows}
    keys = sorted({key[:3] for key in found}, key=lambda key: (key[0], key[1], _order(key[2])))
    lines = []
    for key in keys:
        cells = [found.get((*key, measure)) for measure in measures]
        n = max(cell["n"] for cell in cells if cell is not None)
        lines.append([*key, *(_cell(cell) for cell in cells), str(n)])
    heads = ["category", "model", "setting", *measures, "items"]
    few = f"“few” marks fewer than {SMALL_N} items or conditions: not ranked."
    return Section(
        title="By category",
        text=few,
        grids=[Grid(heads=heads, rows=lines, names=3, folded=len(lines) > 60)] if lines else [],
    )


def reading(study: Mapping[str, Any]) -> str:
    """Return the study in one paragraph."""
    gains = study["gains"]
    if not gains:
        return "No model was asked both with a context and without."
    sure = [one for one in gains if one["different"]]
    said = [f"Against zero-shot {len(sure)} of {len(gains)} differences are more than chance."]
    for measure, setting in sorted(
        {(one["measure"], one["setting"]) for one in sure},
        key=lambda pair: (MEASURES.index(pair[0]), _order(pair[1])),
    ):
        own = [o for o in gains if (o["measure"], o["setting"]) == (measure, setting)]
        more = sum(one["different"] and one["value"] > 0 for one in own)
        less = sum(one["different"] and one["value"] < 0 for one in own)
        said.append(
            f"{setting} raises {measure} of {more} and lowers it of {less} of {len(own)} models."
        )
    return " ".join(said)
