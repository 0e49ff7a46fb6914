"""The report of a suite: tables in the published layout, ranks by metric, differences between
languages, a card for each model.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from medassay.core.canonical import short_hash
from medassay.core.ranks import NOT_SHOWN, SHOWN, rank_range
from medassay.core.records.statistics import OVERALL
from medassay.core.wording import counted, listed
from medassay.report.document import (
    Grid,
    ReportDocument,
    Section,
    markdown_table,
    markdown_text,
)
from medassay.report.plot.curve import checkpoint_curve
from medassay.report.plot.matrix import MetricRank, rank_flow
from medassay.report.plot.trend import LinePoint
from medassay.suite.benchmark import Benchmark
from medassay.suite.curve import CurvePoint, curves
from medassay.suite.lm_eval import lm_eval_documents
from medassay.suite.results import (
    OWN_WEIGHTS,
    LanguageGap,
    SuiteResult,
    WeightedMean,
    has_mean,
    language_gaps,
    results_of,
    weighted_means,
)
from medassay.suite.run import ANSWERS, BenchmarkPart, SuiteRun

_COLUMNS = (
    *("group", "benchmark", "title", "metric", "better", "model", "setting"),
    *("value", "se", "lo", "hi", "second_lo", "second_hi", "second_method"),
    *("n", "left_out", "rank", "rank_lo", "rank_hi", "rank_by"),
    *("headline", "flags", "run"),
)
_PLACES = ("metrics", "models_file")  # of one machine
_LARGE = 1000.0


def number(value: float | None) -> str:
    """Return a number as published tables print it: three decimals, large ones by four digits.

    Examples
    --------
    >>> number(0.41667), number(9123456.0), number(None)
    ('0.417', '9.123e+06', '–')
    """
    if value is None:
        return "–"
    return f"{value:.3f}" if abs(value) < _LARGE else f"{value:.4g}"


def metric_label(metric: str) -> str:
    """Return a metric as tables print it: its name in words, then its model and parameters as they
    are.

    Examples
    --------
    >>> metric_label("bits_per_byte"), metric_label("bertscore:roberta-large@0a1b")
    ('bits per byte', 'bertscore:roberta-large@0a1b')
    >>> metric_label("relaxed_perplexity_mean[l=2,s=4]")
    'relaxed perplexity mean[l=2,s=4]'
    """
    end = re.search(r"[:\[]", metric)
    at = len(metric) if end is None else end.start()
    return metric[:at].replace("_", " ") + metric[at:]


def cell(result: SuiteResult | None, *, as_published: bool = False, items: int = 0) -> str:
    """Return a value with its interval, or as published with ± its standard error.

    With its rank where it has one.

    Where fewer than `items` have a value, it says of how many; where all answers were left out,
    that.
    """
    if result is None or result.value is None:
        return (
            f"– (all {result.left_out} left out)" if result is not None and result.left_out else "–"
        )
    part = f", {result.n} of {items}" if result.n < items else ""
    if as_published:
        error = "" if result.se is None else f" ± {number(result.se)}"
        return f"{number(result.value)}{error}{part}"
    lo, hi = result.lo, result.hi
    if lo == hi and result.second is not None:  # none of twelve is no proof of none at all
        lo, hi = result.second.lo, result.second.hi
    band = "" if lo is None else f" [{number(lo)}, {number(hi)}]"
    place = "" if result.rank is None else f", {result.rank} ({result.rank_lo}–{result.rank_hi})"
    if result.rank_by == "pairs":
        place = f", {rank_range(result.rank_lo, result.rank_hi)}"
    return f"{number(result.value)}{band}{part}{place}"


def suite_sheet(suite: SuiteRun, *, as_published: bool = False) -> ReportDocument:
    """Return the report of a suite."""
    results = results_of(suite, as_published=as_published)
    weighted, gaps = weighted_means(suite), language_gaps(suite)
    points = curves(suite)
    sections = [*_means(weighted), *_curves(suite, points), *_gaps(gaps)]
    headlines = [result for result in results if result.headline]
    metrics = {result.benchmark: set[str]() for result in headlines}
    for result in headlines:
        metrics[result.benchmark].add(result.metric)
    single = {  # with one number a row: all of a group stand in one table
        name for name, own in metrics.items() if not suite.benchmark(name).is_open and len(own) == 1
    }
    closed = [result for result in headlines if result.benchmark in single]
    sections += _closed(closed, as_published=as_published)
    for part in suite.parts:
        own_results = [result for result in headlines if result.benchmark == part.benchmark]
        if own_results and part.benchmark not in single:
            benchmark = suite.benchmark(part.benchmark)
            sections.append(_open(benchmark, own_results, as_published=as_published))
    sections += [_every_number(results), *_banks(suite)]
    models = sorted({result.model for result in results})
    return ReportDocument(
        name="suite",
        title=f"Suite {' and '.join(suite.record['suite'] or [p.benchmark for p in suite.parts])}",
        reading=reading(suite, results),
        notes=list(notes(suite, as_published=as_published)),
        facts={"Models": ", ".join(models), "Suite": suite.folder.name},
        sections=sections,
        columns=_COLUMNS,
        lines=[_line(result) for result in results],
        data={
            "suite": suite.record["suite"],
            "plan": {k: v for k, v in suite.record["plan"].items() if k not in _PLACES},
            "as_published": as_published,
            "results": msgspec.to_builtins(results),
            "weighted": msgspec.to_builtins(weighted),
            "languages": msgspec.to_builtins(gaps),
            **({"checkpoints": msgspec.to_builtins(points)} if points else {}),
            "unavailable": unavailable(suite),
            "banks": {part.benchmark: part.bank.to_dict() for part in suite.parts if part.bank},
        },
    )


def _line(result: SuiteResult) -> dict[str, Any]:
    """Return a result as one line of a CSV file."""
    document = msgspec.to_builtins(result)
    second = {f"second_{key}": value for key, value in (document["second"] or {}).items()}
    return {**document, **second, "flags": " ".join(result.flags)}


def _flags(result: SuiteResult) -> str:
    return ", ".join(
        flag.replace("_", " ").replace("not ranked:", "not ranked: ") for flag in result.flags
    )


def _every_number(results: Sequence[SuiteResult]) -> Section:
    """Return every number that the runs of a suite hold, with its second interval and what is
    flagged.
    """
    several = len({result.setting for result in results}) > 1
    rows = [
        [
            result.title,
            metric_label(result.metric),
            f"{result.model}, {result.setting}" if several else result.model,
            cell(result),
            _second_interval(result),
            number(result.se),
            str(result.n),
            _flags(result),
        ]
        for result in results
    ]
    heads = ["benchmark", "metric", "model", "value, rank", "second interval"]
    return Section(
        title="Every number, with what is flagged",
        text=(
            "Metrics with their model, revision and parameters; beside the published numbers those "
            "that say how to read them."
        ),
        grids=[
            Grid(
                heads=[*heads, "standard error", "items", "flags"],
                names=3,
                rows=rows,
                folded=True,
            )
        ],
    )


def _second_interval(result: SuiteResult) -> str:
    """Return the second interval with its method, a dash where there is none."""
    if result.second is None:
        return "–"
    lo, hi = number(result.second.lo), number(result.second.hi)
    return f"[{lo}, {hi}] {result.second.method}"


def _banks(suite: SuiteRun) -> Iterator[Section]:
    """Yield where the items of each benchmark came from."""
    rows = [
        [
            suite.benchmark(part.benchmark).shown_title,
            part.bank.source,
            str(part.bank.items),
            part.bank.content_sha256,
        ]
        for part in suite.parts
        if part.bank
    ]
    if rows:
        yield Section(
            title="Question banks",
            text=(
                "Sets are made from the files of the data folder when the suite runs, one's own are"
                " taken where they lie; the content is the SHA-256 of all items."
            ),
            grids=[
                Grid(
                    heads=["benchmark", "source", "items in the bank", "content"],
                    names=2,
                    rows=rows,
                    folded=True,
                )
            ],
        )


def reading(suite: SuiteRun, results: Sequence[SuiteResult]) -> str:
    """Return the suite in one paragraph: what was asked, what is absent, which metrics order models
    alike and which do not.
    """
    here = [p for p in suite.parts if ANSWERS in p.runs]
    models = {result.model for result in results}
    metrics = {result.metric for result in results if result.headline}
    sentences = (
        f"{counted(len(models), 'model')} on {len(here)} of"
        f" {counted(len(suite.parts), 'benchmark')}, {counted(len(metrics), 'metric')}."
    )
    first: dict[tuple[str, str], set[str]] = {}
    for result in results:
        if result.rank == 1 and result.headline:
            first.setdefault((result.benchmark, result.metric), set()).add(result.model)
    alone = Counter(next(iter(models)) for models in first.values() if len(models) == 1)
    if first:
        shared = len(first) - alone.total()
        sentences += f" In {shared} of {len(first)} rankings no model has the first place alone."
    if len(alone) > 1:
        most, times = max(sorted(alone.items()), key=lambda pair: pair[1])
        sentences += (
            f" {most} is first alone by {times}, {len(alone) - 1} others by"
            f" {alone.total() - times}: the metric decides."
        )
    elif alone:
        sentences += f" {next(iter(alone))} is first in all others."
    ways = {result.rank_by for result in results if result.rank_by}
    if "pairs" in ways:
        sentences += " A rank such as 2–4 is the range that the test of all pairs leaves."
    if "intervals" in ways:
        sentences += (
            " A rank such as 2 (1–3) comes from whether 95 % intervals overlap, which is no test of"
            " pairs."
        )
    return sentences


def notes(suite: SuiteRun, *, as_published: bool) -> Iterator[str]:
    """Yield what a reader must know: what is unavailable, what stands in, warnings of banks,
    scripted numbers.
    """
    notes: dict[str, None] = {}  # several benchmarks may warn of the same
    for part in suite.parts:
        notes |= dict.fromkeys(_warnings(suite, part))
    yield from notes
    for name, reason in unavailable(suite).items():
        yield f"{name}: unavailable: {reason}"
    for part in suite.parts:
        benchmark, run = suite.benchmark(part.benchmark), part.runs.get(ANSWERS)
        if benchmark.weight and run is not None and not has_mean(suite.run(run)):
            yield (
                f"{benchmark.shown_title}: has a weight, and is in no mean: its scores are not on"
                " the scale 0 to 1, or of several metrics."
            )
    chat = sorted(_in_conversation(suite))
    if chat:
        yield (
            f"{', '.join(chat)}: asked through a chat endpoint, so in a form of conversation,"
            " unlike models asked with plain prompts."
        )
    if as_published:
        yield (
            "As published: values ± standard error; answers that are blank or too short are left"
            " out of means, and counted."
        )
    else:
        yield (
            "Values with 95 % intervals, then the rank with its range; 1 is best. Baselines are not"
            " ranked."
        )
    if any(suite.benchmark(part.benchmark).is_open for part in suite.parts):
        yield (
            "BLEU without smoothing gives nothing to a right answer of fewer than four tokens;"
            " never rank by it."
        )


def _warnings(suite: SuiteRun, part: BenchmarkPart) -> Iterator[str]:
    """Yield what a reader must know of one benchmark."""
    title = suite.benchmark(part.benchmark).shown_title
    if part.instead_of:
        yield f"{title} stands in for {suite.benchmark(part.instead_of).shown_title}: {part.why}"
    for kind, reason in part.absent.items():
        yield f"{title}, {kind}: unavailable: {reason}"
    for name in part.runs.values():
        run = suite.run(name)
        recorded = run.manifest.own_code
        if recorded is not None and recorded.parts:
            names = listed([code.shown for code in recorded.own_code.parts.values()])
            yield f"{title}: own code {names} made these numbers."
        yield from (f"{title}: {b.limits}" for b in run.manifest.banks if b.limits)
        if any("scripted" in row.flags for row in run.statistics.rows(OVERALL)):
            yield "SCRIPTED: answers or judges were scripted; these numbers measure nothing."


def _in_conversation(suite: SuiteRun) -> set[str]:
    """Return the models that plain tasks could only ask through a chat endpoint."""
    models_found: set[str] = set()
    for part in suite.parts:
        if ANSWERS not in part.runs or not suite.benchmark(part.benchmark).is_open:
            continue
        manifest = suite.run(part.runs[ANSWERS]).manifest
        if manifest.task.endswith("_chat"):
            continue
        models_found |= {
            name
            for name, entry in manifest.models.items()
            if entry.protocol == "chat" and entry.provider not in ("baseline", "fake", "replay")
        }
    return models_found


def unavailable(suite: SuiteRun) -> dict[str, str]:
    """Return the metrics that had no model here, with the reason."""
    reasons: dict[str, str] = {}
    for part in suite.parts:
        if ANSWERS in part.runs and suite.benchmark(part.benchmark).is_open:
            text_document = suite.run(part.runs[ANSWERS]).statistics.document.get("text", {})
            reasons |= text_document.get("unavailable", {})
    return reasons


def short_sheet(suite: SuiteRun) -> ReportDocument:
    """Return what is told right after a run: the means by the weights of its plan, and every number
    in one table.
    """
    means = [mean for mean in weighted_means(suite) if mean.suite == OWN_WEIGHTS]
    return replace(suite_sheet(suite), sections=[*_means(means), _whole_table(suite)])


def _whole_table(suite: SuiteRun) -> Section:
    """Return every number of a suite in one table: a line for each benchmark and metric, a column
    for each row.
    """
    every = results_of(suite)
    results = [result for result in every if result.headline]
    further = list(
        dict.fromkeys(metric_label(result.metric) for result in every if not result.headline)
    )
    rows = list(dict.fromkeys((result.model, result.setting) for result in results))
    lines = list(
        dict.fromkeys((result.benchmark, result.title, result.metric) for result in results)
    )
    by = {
        (result.benchmark, result.metric, result.model, result.setting): result
        for result in results
    }
    items: dict[str, int] = {}
    for result in results:
        items[result.benchmark] = max(result.n, items.get(result.benchmark, 0))
    several = len({setting for _, setting in rows}) > 1
    return Section(
        title="All numbers",
        text=(
            f"The report has {counted(len(further), 'number')} more: {listed(further)}."
            if further
            else ""
        ),
        grids=[
            Grid(
                heads=[
                    "benchmark",
                    "metric",
                    *(", ".join(row) if several else row[0] for row in rows),
                ],
                names=2,
                rows=[
                    [
                        title,
                        metric_label(metric),
                        *(cell(by.get((name, metric, *row)), items=items[name]) for row in rows),
                    ]
                    for name, title, metric in lines
                ],
            )
        ],
    )


def _closed(results: Sequence[SuiteResult], *, as_published: bool) -> Iterator[Section]:
    """Yield the accuracies of each published task, all its benchmarks in one table."""
    for group in dict.fromkeys(result.group for result in results):
        own_results = [result for result in results if result.group == group]
        rows = list(dict.fromkeys((result.model, result.setting) for result in own_results))
        titles = list(dict.fromkeys(result.title for result in own_results))
        cells = {
            (result.model, result.setting, result.title): cell(result, as_published=as_published)
            for result in own_results
        }
        sizes = {result.title: result.n for result in own_results}
        names = sorted({metric_label(result.metric) for result in own_results})
        caption = f"{listed(names)}; items: "
        caption += ", ".join(f"{name} {n}" for name, n in sizes.items())
        yield Section(title=group.capitalize(), grids=[_grid(rows, titles, cells, caption)])


def _open(
    benchmark: Benchmark, own_results: Sequence[SuiteResult], *, as_published: bool
) -> Section:
    metrics = list(dict.fromkeys(result.metric for result in own_results))
    rows = list(dict.fromkeys((result.model, result.setting) for result in own_results))
    by = {(result.model, result.setting, result.metric): result for result in own_results}
    ranks = [
        MetricRank(model=result.model, metric=metric_label(result.metric), rank=result.rank)
        for result in own_results
        if result.rank is not None
    ]
    figure = None
    if len({rank.model for rank in ranks}) > 1 and len({rank.metric for rank in ranks}) > 1:
        order = [name for m in metrics if any(r.metric == (name := metric_label(m)) for r in ranks)]
        figure = (f"ranks-{own_results[0].benchmark}", rank_flow(ranks, order))
    left_out = max(result.left_out for result in own_results)
    items = max(result.n for result in own_results)
    caption = f"{benchmark.shown_title}, {benchmark.group}: {items} items" + (
        f"; up to {counted(left_out, 'answer')} blank or too short" if left_out else ""
    )
    cells = {
        key: cell(result, as_published=as_published, items=items) for key, result in by.items()
    }
    grid = _grid(rows, metrics, cells, caption)
    return Section(title=benchmark.shown_title, figure=figure, grids=[grid])


def _grid(
    rows: Sequence[tuple[str, str]],
    metrics: Sequence[str],
    cells: Mapping[tuple[str, str, str], str],
    caption: str,
) -> Grid:
    """Return a table with a line for each model where they are many, as published, else for each
    metric or benchmark.
    """
    if len(rows) > len(metrics):
        return Grid(
            heads=["model", "setting", *map(metric_label, metrics)],
            names=2,
            rows=[[*row, *(cells.get((*row, metric), "–") for metric in metrics)] for row in rows],
            caption=caption,
        )
    several = len({setting for _, setting in rows}) > 1
    return Grid(
        heads=["", *(f"{model}, {setting}" if several else model for model, setting in rows)],
        rows=[
            [metric_label(metric), *(cells.get((*row, metric), "–") for row in rows)]
            for metric in metrics
        ],
        caption=caption,
    )


def _means(weighted: Sequence[WeightedMean]) -> Iterator[Section]:
    for name in dict.fromkeys(mean.suite for mean in weighted):
        own_means = [mean for mean in weighted if mean.suite == name]
        lacking = own_means[0].lacking
        by_weights = name == OWN_WEIGHTS
        how = (
            "By the weights of the plan" if by_weights else "Each benchmark by its number of items"
        )
        rows = [
            [
                mean.model,
                mean.setting,
                f"{number(mean.score)} [{number(mean.lo)}, {number(mean.hi)}]",
                str(mean.n),
            ]
            for mean in own_means
        ]
        heads = ["model", "setting", "mean" if by_weights else "accuracy", "items"]
        yield Section(
            title="Weighted mean" if by_weights else f"Mean accuracy of {name}",
            text=f"{how}: {', '.join(own_means[0].benchmarks)}."
            + (f" Lacking: {', '.join(lacking)}." if lacking else ""),
            grids=[Grid(heads=heads, names=2, rows=rows)],
        )


def _curves(suite: SuiteRun, points: Sequence[CurvePoint]) -> Iterator[Section]:
    """Yield the checkpoints of each training: a curve, and each against the one before it."""
    for series in dict.fromkeys(point.series for point in points):
        own_points = [point for point in points if point.series == series]
        several = len({point.setting for point in own_points}) > 1
        lines = [
            LinePoint(
                row=suite.benchmark(point.benchmark).shown_title
                + (f", {point.setting}" if several else ""),
                place=point.step,
                score=point.score,
                lo=point.lo,
                hi=point.hi,
            )
            for point in own_points
        ]
        rows = [
            [
                line.row,
                f"{point.step:,}",
                point.model,
                f"{number(point.score)} [{number(point.lo)}, {number(point.hi)}]",
                _difference(point),
                str(point.n),
            ]
            for line, point in zip(lines, own_points, strict=True)
        ]
        heads = ["benchmark", "step", "checkpoint", "score", "minus the one before", "items"]
        yield Section(
            title=f"Checkpoints of {series}",
            text=(
                "Each checkpoint with its 95 % interval; differences are paired, item by item, each"
                " alone with its 95 % interval."
            ),
            figure=(f"checkpoints-{short_hash(series)}", checkpoint_curve(lines, series=series)),
            grids=[Grid(heads=heads, names=3, rows=rows)],
        )


def _difference(point: CurvePoint) -> str:
    if point.difference is None:
        return "–"
    return f"{point.difference:+.3f} [{point.difference_lo:+.3f}, {point.difference_hi:+.3f}]"


def lm_eval_files(suite: SuiteRun) -> dict[str, bytes]:
    """Return the results of each row in lm-evaluation-harness's form, by the name of its file."""
    results_by_file: dict[str, bytes] = {}
    for (model, setting), document in lm_eval_documents(suite, results_of(suite)).items():
        stem = _file_name(f"results_{model}_{setting}", [*results_by_file])
        text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
        results_by_file[f"lm-eval/{stem}.json"] = text.encode()
    return results_by_file


def _gaps(gaps: Sequence[LanguageGap]) -> Iterator[Section]:
    if not gaps:
        return
    rows = [
        [
            f"{gap.first} − {gap.second}",
            gap.model,
            gap.setting,
            f"{gap.difference:+.3f} [{gap.lo:+.3f}, {gap.hi:+.3f}]",
            SHOWN if gap.different else NOT_SHOWN,
            str(gap.n),
        ]
        for gap in gaps
    ]
    heads = ["languages", "model", "setting", "difference", "reading", "shared items"]
    yield Section(
        title="Difference between languages",
        text=(
            "The same questions in two languages, paired item by item; above 0 the first is"
            " answered better."
        ),
        grids=[Grid(heads=heads, rows=rows, names=3)],
    )


def cards(suite: SuiteRun) -> dict[str, bytes]:
    """Return a card for each model by the name of its file: what it is, what it did on every
    benchmark, what limits that.
    """
    results = results_of(suite)
    entries: dict[str, Mapping[str, Any]] = {}
    for part in suite.parts:
        if ANSWERS in part.runs:
            entries |= suite.run(part.runs[ANSWERS]).manifest_document["models"]
    card_files: dict[str, bytes] = {}
    for model, entry in sorted(entries.items()):
        own_results = [result for result in results if result.model == model]
        text = "\n".join(_card(model, entry, own_results, list(notes(suite, as_published=False))))
        card_files[f"cards/{_file_name(model, card_files)}.md"] = (text + "\n").encode()
    return card_files


_TOLD = (
    *("provider", "model", "version", "family", "location", "size", "context", "licence"),
    *(
        "quantisation",
        "engine",
        "engine_version",
        "dtype",
        "temperature",
        "top_p",
        "max_tokens",
    ),
)


def _card(
    model: str,
    entry: Mapping[str, str | float | None],
    own_results: Iterable[SuiteResult],
    sentences: Sequence[str],
) -> Iterator[str]:
    yield f"# {markdown_text(model)}"
    yield ""
    yield from (
        f"- {name.replace('_', ' ')}: {markdown_text(str(entry[name]))}"
        for name in _TOLD
        if entry.get(name) not in (None, "")
    )
    yield ""
    yield "## Results"
    yield ""
    rows = [
        [
            result.title,
            metric_label(result.metric),
            result.setting,
            cell(result),
            number(result.se),
            str(result.n),
            _flags(result),
        ]
        for result in own_results
    ]
    yield from markdown_table(
        [
            "benchmark",
            "metric",
            "setting",
            "value [95 % interval], rank",
            "standard error",
            "items",
            "flags",
        ],
        rows,
    )
    yield ""
    yield "## Limits"
    yield ""
    yield (
        "- Scores on exam-like questions and likeness to references are no evidence of clinical"
        " benefit."
    )
    yield from (f"- {markdown_text(sentence)}" for sentence in sentences)


def _file_name(model: str, names_taken: Collection[str]) -> str:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-.") or "model"
    name, number_ = plain, 1
    while any(taken.rpartition("/")[2].rpartition(".")[0] == name for taken in names_taken):
        number_ += 1
        name = f"{plain}-{number_}"
    return name
