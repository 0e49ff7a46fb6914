"""Metrics that need a model, computed for the answers of a run before it is sealed.

What was computed once is kept.

Whatever a metric says of a pair of texts lies in the workspace (`measures/`), so a run that is cut
off goes on where it was, and a second run with the same answers computes nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from medassay.bank.run_items import RunItems
from medassay.core.canonical import canonical
from medassay.core.records.manifest_object import MetricEntry
from medassay.core.records.task import Task
from medassay.core.records.trial import Trial
from medassay.errors import InputError, UnavailableError
from medassay.runner.engine.stage import Engine
from medassay.runner.progress import ProgressFactory, watching
from medassay.score.catalog import TEXT_MEASURES
from medassay.score.measure import Pair, TextMeasure, Values
from medassay.score.text import LEXICAL
from medassay.storage.jsonl import read_jsonl
from medassay.storage.measure import MeasureStore, pair_key
from medassay.storage.records import read_trials
from medassay.storage.run import Run

NONE = "none"
_BATCH = 64  # pairs handed to a metric at once
_WINDOW = 4096  # among which like lengths are looked for


class TextMeasures(msgspec.Struct, frozen=True):
    """The metrics of a run that need a model: those that are here, and why the others are not."""

    available: Mapping[str, TextMeasure]
    absent: Mapping[str, str]

    def to_dict(self) -> dict[str, MetricEntry]:
        """Return what a run remembers: id and columns with their scales, or why a metric is
        unavailable.
        """
        document: dict[str, MetricEntry] = {
            name: {"id": metric.id, "columns": {c: s.ends for c, s in metric.columns.items()}}
            for name, metric in self.available.items()
        }
        for name, why in self.absent.items():
            document[name] = {"unavailable": why}
        return document


def text_measures_of(options: Sequence[str], task: Task) -> TextMeasures:
    """Return the metrics of a task that need a model; `options` is what a plan says of them.

    Raises
    ------
    InputError
        When the plan names a metric that is unknown, or for a task without metrics.
    """
    if options and not task.metrics:
        raise InputError(f"plan: task '{task.name}' compares no texts; leave 'metrics' out")
    places = _places(options)
    names = [name for name in task.metrics if name not in LEXICAL]
    metrics: dict[str, TextMeasure] = {}
    absent: dict[str, str] = {}
    for name in dict.fromkeys((*names, *places)):
        if places.get(name) == NONE:
            continue
        try:
            metrics[name] = TEXT_MEASURES[name](places.get(name, ""))
        except UnavailableError as error:
            if name in places:
                raise InputError(f"plan: 'metrics': {error}") from None
            absent[name] = str(error)
    return TextMeasures(metrics, absent)


def _places(options: Sequence[str]) -> dict[str, str]:
    """Return metric → where its model is, of the metrics that a plan names."""
    places: dict[str, str] = {}
    for option in options:
        name, _, place = option.partition("=")
        if name not in TEXT_MEASURES:
            names_known = ", ".join(sorted(TEXT_MEASURES))
            raise InputError(
                f"plan: 'metrics': '{name}' is no metric that needs a model; known are"
                f" {names_known}"
            )
        places[name] = place
    return places


def _values(gauge: TextMeasure, pairs: Mapping[str, Pair]) -> dict[str, Values]:
    """Return key → values of pairs, by a metric that was prepared for their references."""
    return dict(zip(pairs, gauge.score(list(pairs.values())), strict=True))


def measure(
    run: Run,
    task: Task,
    items: RunItems,
    measures: TextMeasures,
    workspace: Path,
    watch: ProgressFactory | None,
    engine: Engine,
) -> None:
    """Compute what is not there yet, and add it to the run's scores as `measured`."""
    if not measures.available:
        return
    if task.parts:
        items = items.of_forms({form for form in task.parts if task.part(form).metrics})
    references = {item.reference_text for item in items}
    stores: dict[str, MeasureStore] = {}
    for name, gauge in measures.available.items():
        gauge.prepare(references)
        stores[name] = MeasureStore(workspace / "measures", _store_name(gauge))
        try:
            _compute(run, items, name, gauge, stores[name], watch, engine)
        finally:
            gauge.close()
    part = run.path / "scores.jsonl.part"
    with part.open("wb") as file:
        scores = read_jsonl(run.path / "scores.jsonl")
        for trial, score in zip(read_trials(run.path), scores, strict=True):
            pair = _pair(trial, items)
            if pair is not None:
                score |= {"measured": _measured(pair, measures, stores)}
            file.write(canonical(score) + b"\n")
    part.replace(run.path / "scores.jsonl")


def _measured(
    pair: Pair, measures: TextMeasures, stores: Mapping[str, MeasureStore]
) -> dict[str, float | None]:
    measured: dict[str, float | None] = {}
    for name, gauge in measures.available.items():
        values = stores[name].get(pair_key(*pair)) or (None,) * len(gauge.columns)
        measured |= dict(zip(gauge.columns, values, strict=True))
    return measured


def _compute(
    run: Run,
    items: RunItems,
    name: str,
    gauge: TextMeasure,
    store: MeasureStore,
    watch: ProgressFactory | None,
    engine: Engine,
) -> None:
    """Compute what one metric says of the pairs of a run that it has not compared before."""
    sizes: Counter[tuple[str, str]] = Counter()
    for chunk in _missing(run, items, store):
        sizes[name, "pairs"] += len(chunk)
    if not sizes:
        return
    with watching(watch, f"pairs by {name}", sizes, Counter()) as progress:
        batches = (
            pair_group for pairs in _missing(run, items, store) for pair_group in _alike(pairs)
        )
        for values in engine.spread(partial(_values, gauge), batches):
            store.put(values)
            progress.advance(name, "pairs", "answered", len(values))


def _missing(run: Run, items: RunItems, store: MeasureStore) -> Iterator[dict[str, Pair]]:
    """Yield key → pair of what is not in a store, some at a time.

    A pair that two models share comes once.
    """
    seen_keys: set[str] = set()
    pairs: dict[str, Pair] = {}
    for trial in read_trials(run.path):
        pair = _pair(trial, items)
        if pair is None or (key := pair_key(*pair)) in store or key in seen_keys:
            continue
        seen_keys.add(key)
        pairs[key] = pair
        if len(pairs) >= _WINDOW:
            yield pairs
            pairs = {}
    if pairs:
        yield pairs


def _pair(trial: Trial, items: RunItems) -> Pair | None:
    if trial.outcome != "answered" or not items.holds(trial.domain, trial.item):
        return None
    return str(trial.value), items.get(trial.domain, trial.item).reference_text


def compared(
    pairs: Sequence[Pair], gauge: TextMeasure, folder: Path, engine: Engine
) -> list[Values]:
    """Return what a metric says of some pairs, in order.

    What was computed once is kept in `folder`.
    """
    gauge.prepare({reference for _, reference in pairs})
    store = MeasureStore(folder, _store_name(gauge))
    missing = {k: p for p in pairs if (k := pair_key(*p)) not in store}
    try:
        for values in engine.spread(partial(_values, gauge), _alike(missing)):
            store.put(values)
    finally:
        gauge.close()
    return [store.get(pair_key(*pair)) or () for pair in pairs]


def _alike(pairs: Mapping[str, Pair]) -> Iterator[dict[str, Pair]]:
    """Yield pairs in batches of like lengths, so that little is spent on padding."""
    ordered = sorted(
        pairs.items(), key=lambda keyed_pair: len(keyed_pair[1][0]) + len(keyed_pair[1][1])
    )
    for at in range(0, len(ordered), _BATCH):
        yield dict(ordered[at : at + _BATCH])


def _store_name(gauge: TextMeasure) -> str:
    return f"{gauge.id} {gauge.context}".strip()
