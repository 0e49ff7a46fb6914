"""The report of a suite: tables in the published layout, ranks by metric, differences between languages, a card for each model."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from medassay.core.ranks import NOT_SHOWN, SHOWN, rank_range
from medassay.core.wording import counted, listed
from medassay.report.document import (
    Grid,
    ReportDocument,
    Section,
    markdown_table,
    markdown_text,
)
from medassay.report.plot.matrix import rank_flow
from medassay.suite.catalog import BENCHMARKS
from medassay.suite.results import (
    SuiteResult,
    language_gaps,
    results_of,
    weighted_means,
)
from medassay.suite.run import ANSWERS, BenchmarkPart, SuiteRun

_COLUMNS = (
    *("group", "benchmark", "title", "metric", "better", "model", "setting", "value", "se", "lo", "hi"),
    *("second_lo", "second_hi", "second_method", "n", "left_out", "rank", "rank_lo", "rank_hi", "rank_by"),
    *("headline", "flags", "run"),
)  # fmt: skip
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


def shown(metric: str) -> str:
    """Return a metric as tables print it: its name in words, then its model and parameters as they are.

    Examples
    --------
    >>> shown("bits_per_byte"), shown("bertscore:roberta-large@0a1b"), shown("relaxed_perplexity_mean[l=2,s=4]")
    ('bits per byte', 'bertscore:roberta-large@0a1b', 'relaxed perplexity mean[l=2,s=4]')
    """
    end = re.search(r"[:\[]", metric)
    at = len(metric) if end is None else end.start()
    return metric[:at].replace("_", " ") + metric[at:]


def cell(one: SuiteResult | None, *, as_published: bool = False, items: int = 0) -> str:
    """Return a value with its interval, or as published with ± its standard error; with its rank where it has one.

    Where fewer than `items` have a value, it says of how many; where all answers were left out, that.
    """
    if one is None or one.value is None:
        return f"– (all {one.left_out} left out)" if one is not None and one.left_out else "–"
    part = f", {one.n} of {items}" if one.n < items else ""
    if as_published:
        error = "" if one.se is None else f" ± {number(one.se)}"
        return f"{number(one.value)}{error}{part}"
    lo, hi = one.lo, one.hi
    if lo == hi and one.second is not None:  # none of twelve is no proof of none at all
        lo, hi = one.second["lo"], one.second["hi"]
    band = "" if lo is None else f" [{number(lo)}, {number(hi)}]"
    place = "" if one.rank is None else f", {one.rank} ({one.rank_lo}–{one.rank_hi})"
    if one.rank_by == "pairs":
        place = f", {rank_range({'rank_lo': one.rank_lo, 'rank_hi': one.rank_hi})}"
    return f"{number(one.value)}{band}{part}{place}"


def suite_sheet(suite: SuiteRun, *, as_published: bool = False) -> ReportDocument:
    """Return the report of a suite."""
    results = results_of(suite, as_published=as_published)
    weighted, gaps = weighted_means(suite), language_gaps(suite)
    sections = [*_means(weighted), *_gaps(gaps)]
    headlines = [one for one in results if one.headline]
    closed = [one for one in headlines if not BENCHMARKS[one.benchmark].is_open]
    sections += _closed(closed, as_published=as_published)
    for part in suite.parts:
        own = [one for one in headlines if one.benchmark == part.benchmark]
        if own and BENCHMARKS[part.benchmark].is_open:
            sections.append(_open(part, own, as_published=as_published))
    sections += [_every_number(results), *_banks(suite)]
    models = sorted({one.model for one in results})
    return ReportDocument(
        name="suite",
        title=f"Suite {' and '.join(suite.record['suite'])}",
        reading=reading(suite, results),
        notes=list(notes(suite, as_published=as_published)),
        facts={"Models": ", ".join(models), "Suite": suite.folder.name},
        sections=sections,
        columns=_COLUMNS,
        lines=[_line(one) for one in results],
        data={
            "suite": suite.record["suite"],
            "plan": {k: v for k, v in suite.record["plan"].items() if k not in _PLACES},
            "as_published": as_published,
            "results": [one.to_dict() for one in results],
            "weighted": weighted,
            "languages": gaps,
            "unavailable": unavailable(suite),
            "banks": {part.benchmark: dict(part.bank) for part in suite.parts if part.bank},
        },
    )


def _line(one: SuiteResult) -> dict[str, Any]:
    """Return a result as one line of a CSV file."""
    second = {f"second_{key}": value for key, value in (one.second or {}).items()}
    return {**one.to_dict(), **second, "flags": " ".join(one.flags)}


def _flags(one: SuiteResult) -> str:
    return ", ".join(
        flag.replace("_", " ").replace("not ranked:", "not ranked: ") for flag in one.flags
    )


def _every_number(results: Sequence[SuiteResult]) -> Section:
    """Return every number that the runs of a suite hold, with its second interval and what is flagged."""
    several = len({one.setting for one in results}) > 1
    rows = [
        [
            one.title,
            shown(one.metric),
            f"{one.model}, {one.setting}" if several else one.model,
            cell(one),
            "–" if one.second is None else f"[{number(one.second['lo'])}, {number(one.second['hi'])}] {one.second['method']}",
            number(one.se),
            str(one.n),
            _flags(one),
        ]
        for one in results
    ]  # fmt: skip
    heads = ["benchmark", "metric", "model", "value, rank", "second interval"]
    return Section(
        title="Every number, with what is flagged",
        text="Metrics with their model, revision and parameters; beside the published numbers those that say how to read them.",
        grids=[
            Grid(heads=[*heads, "standard error", "items", "flags"], names=3, rows=rows, folded=True)
        ],
    )  # fmt: skip


def _banks(suite: SuiteRun) -> Iterator[Section]:
    """Yield where the items of each benchmark came from."""
    rows = [
        [
            BENCHMARKS[part.benchmark].title,
            part.bank["source"],
            str(part.bank["items"]),
            part.bank["content_sha256"],
        ]
        for part in suite.parts
        if part.bank
    ]
    if rows:
        yield Section(
            title="Question banks",
            text="Made from the files of the data folder when the suite ran; the content is the SHA-256 of all items.",
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
    """Return the suite in one paragraph: what was asked, what is absent, which metrics order models alike and which do not."""
    here = [p for p in suite.parts if ANSWERS in p.runs]
    models = {one.model for one in results}
    metrics = {one.metric for one in results if one.headline}
    said = (
        f"{counted(len(models), 'model')} on {len(here)} of {counted(len(suite.parts), 'benchmark')}, "
        f"{counted(len(metrics), 'metric')}."
    )
    first: dict[tuple[str, str], set[str]] = {}
    for one in results:
        if one.rank == 1 and one.headline:
            first.setdefault((one.benchmark, one.metric), set()).add(one.model)
    alone = Counter(next(iter(models)) for models in first.values() if len(models) == 1)
    if first:
        shared = len(first) - alone.total()
        said += f" In {shared} of {len(first)} rankings no model has the first place alone."
    if len(alone) > 1:
        most, times = max(sorted(alone.items()), key=lambda pair: pair[1])
        said += f" {most} is first alone by {times}, {len(alone) - 1} others by {alone.total() - times}: the metric decides."
    elif alone:
        said += f" {next(iter(alone))} is first in all others."
    ways = {one.rank_by for one in results if one.rank_by}
    if "pairs" in ways:
        said += " A rank such as 2–4 is the range that the test of all pairs leaves."
    if "intervals" in ways:
        said += " A rank such as 2 (1–3) comes from whether 95 % intervals overlap, which is no test of pairs."
    return said


def notes(suite: SuiteRun, *, as_published: bool) -> Iterator[str]:
    """Yield what a reader must know: what is unavailable, what stands in, warnings of banks, scripted numbers."""
    told: dict[str, None] = {}  # several benchmarks may warn of the same
    for part in suite.parts:
        told |= dict.fromkeys(_warnings(suite, part))
    yield from told
    for name, reason in unavailable(suite).items():
        yield f"{name}: unavailable: {reason}"
    chat = sorted(_in_conversation(suite))
    if chat:
        yield (
            f"{', '.join(chat)}: asked through a chat endpoint, so in a form of conversation, unlike models asked with plain prompts."
        )
    if as_published:
        yield "As published: values ± standard error; answers that are blank or too short are left out of means, and counted."
    else:
        yield "Values with 95 % intervals, then the rank with its range; 1 is best. Baselines are not ranked."
    if any(BENCHMARKS[part.benchmark].is_open for part in suite.parts):
        yield "BLEU without smoothing gives nothing to a right answer of fewer than four tokens; never rank by it."


def _warnings(suite: SuiteRun, part: BenchmarkPart) -> Iterator[str]:
    """Yield what a reader must know of one benchmark."""
    title = BENCHMARKS[part.benchmark].title
    if part.instead_of:
        yield f"{title} stands in for {BENCHMARKS[part.instead_of].title}: {part.why}"
    for kind, reason in part.absent.items():
        yield f"{title}, {kind}: unavailable: {reason}"
    for name in part.runs.values():
        run = suite.run(name)
        yield from (f"{title}: {b['limits']}" for b in run.manifest["banks"] if b["limits"])
        if any("scripted" in row["flags"] for row in run.statistics["domains"]["overall"]):
            yield "SCRIPTED: answers or judges were scripted; these numbers measure nothing."


def _in_conversation(suite: SuiteRun) -> set[str]:
    """Return the models that plain tasks could only ask through a chat endpoint."""
    found: set[str] = set()
    for part in suite.parts:
        if ANSWERS not in part.runs or not BENCHMARKS[part.benchmark].is_open:
            continue
        manifest = suite.run(part.runs[ANSWERS]).manifest
        if manifest["task"].endswith("_chat"):
            continue
        found |= {
            name
            for name, entry in manifest["models"].items()
            if entry["protocol"] == "chat"
            and entry["provider"] not in ("baseline", "fake", "replay")
        }
    return found


def unavailable(suite: SuiteRun) -> dict[str, str]:
    """Return the metrics that had no model here, with the reason."""
    found: dict[str, str] = {}
    for part in suite.parts:
        if ANSWERS in part.runs and BENCHMARKS[part.benchmark].is_open:
            told = suite.run(part.runs[ANSWERS]).statistics.get("text", {})
            found |= told.get("unavailable", {})
    return found


def whole_table(suite: SuiteRun) -> Section:
    """Return every number of a suite in one table: a line for each benchmark and metric, a column for each row."""
    every = results_of(suite)
    results = [one for one in every if one.headline]
    further = list(dict.fromkeys(shown(one.metric) for one in every if not one.headline))
    rows = list(dict.fromkeys((one.model, one.setting) for one in results))
    lines = list(dict.fromkeys((one.benchmark, one.title, one.metric) for one in results))
    by = {(one.benchmark, one.metric, one.model, one.setting): one for one in results}
    items: dict[str, int] = {}
    for one in results:
        items[one.benchmark] = max(one.n, items.get(one.benchmark, 0))
    several = len({setting for _, setting in rows}) > 1
    return Section(
        title="All numbers",
        text=f"The report has {counted(len(further), 'number')} more: {listed(further)}."
        if further
        else "",
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
                        shown(metric),
                        *(
                            cell(by.get((name, metric, *row)), items=items[name])
                            for row in rows
                        ),
                    ]
                    for name, title, metric in lines
                ],
            )
        ],
    )


def _closed(results: Sequence[SuiteResult], *, as_published: bool) -> Iterator[Section]:
    """Yield the accuracies of each published task, all its benchmarks in one table."""
    for group in dict.fromkeys(one.group for one in results):
        own = [one for one in results if one.group == group]
        rows = list(dict.fromkeys((one.model, one.setting) for one in own))
        titles = list(dict.fromkeys(one.title for one in own))
        cells = {
            (one.model, one.setting, one.title): cell(one, as_published=as_published)
            for one in own
        }
        layout = _by_model if len(rows) > len(titles) else _by_metric
        sizes = {one.title: one.n for one in own}
        caption = "accuracy; items: " + ", ".join(f"{name} {n}" for name, n in sizes.items())
        yield Section(title=group.capitalize(), grids=[layout(rows, titles, cells, caption)])


def _open(part: BenchmarkPart, own: Sequence[SuiteResult], *, as_published: bool) -> Section:
    benchmark = BENCHMARKS[part.benchmark]
    metrics = list(dict.fromkeys(one.metric for one in own))
    rows = list(dict.fromkeys((one.model, one.setting) for one in own))
    by = {(one.model, one.setting, one.metric): one for one in own}
    ranks = [
        {"model": one.model, "metric": shown(one.metric), "rank": one.rank}
        for one in own
        if one.rank is not None
    ]
    figure = None
    if len({one["model"] for one in ranks}) > 1 and len({one["metric"] for one in ranks}) > 1:
        order = [name for m in metrics if any(r["metric"] == (name := shown(m)) for r in ranks)]
        figure = (f"ranks-{part.benchmark}", rank_flow(ranks, order))
    left_out = max(one.left_out for one in own)
    items = max(one.n for one in own)
    caption = f"{benchmark.title}, {benchmark.group}: {items} items" + (
        f"; up to {counted(left_out, 'answer')} blank or too short" if left_out else ""
    )
    cells = {key: cell(one, as_published=as_published, items=items) for key, one in by.items()}
    layout = _by_model if len(rows) > len(metrics) else _by_metric
    grid = layout(rows, metrics, cells, caption)
    return Section(title=benchmark.title, figure=figure, grids=[grid])


def _by_metric(
    rows: Sequence[tuple[str, str]],
    metrics: Sequence[str],
    cells: Mapping[tuple[str, str, str], str],
    caption: str,
) -> Grid:
    """Return a table with a line for each metric or benchmark, for a few models."""
    several = len({setting for _, setting in rows}) > 1
    return Grid(
        heads=[
            "",
            *(f"{model}, {setting}" if several else model for model, setting in rows),
        ],
        rows=[
            [shown(metric), *(cells.get((*row, metric), "–") for row in rows)]
            for metric in metrics
        ],
        caption=caption,
    )


def _by_model(
    rows: Sequence[tuple[str, str]],
    metrics: Sequence[str],
    cells: Mapping[tuple[str, str, str], str],
    caption: str,
) -> Grid:
    """Return a table with a line for each model, as published, for many."""
    return Grid(
        heads=["model", "setting", *map(shown, metrics)],
        names=2,
        rows=[[*row, *(cells.get((*row, metric), "–") for metric in metrics)] for row in rows],
        caption=caption,
    )


def _means(weighted: Sequence[Mapping[str, Any]]) -> Iterator[Section]:
    for name in dict.fromkeys(one["suite"] for one in weighted):
        own = [one for one in weighted if one["suite"] == name]
        lacking = own[0]["lacking"]
        yield Section(
            title=f"Mean accuracy of {name}",
            text=f"Each benchmark by its number of items: {', '.join(own[0]['benchmarks'])}."
            + (f" Lacking: {', '.join(lacking)}." if lacking else ""),
            grids=[
                Grid(
                    heads=["model", "setting", "accuracy", "items"],
                    names=2,
                    rows=[
                        [
                            one["model"],
                            one["setting"],
                            f"{number(one['score'])} [{number(one['lo'])}, {number(one['hi'])}]",
                            str(one["n"]),
                        ]
                        for one in own
                    ],
                )
            ],
        )


def _gaps(gaps: Sequence[Mapping[str, Any]]) -> Iterator[Section]:
    if not gaps:
        return
    rows = [
        [
            f"{one['first']} − {one['second']}",
            one["model"],
            one["setting"],
            f"{one['difference']:+.3f} [{one['lo']:+.3f}, {one['hi']:+.3f}]",
            SHOWN if one["different"] else NOT_SHOWN,
            str(one["n"]),
        ]
        for one in gaps
    ]
    heads = ["languages", "model", "setting", "difference", "reading", "shared items"]
    yield Section(
        title="Difference between languages",
        text="The same questions in two languages, paired item by item; above 0 the first is answered better.",
        grids=[Grid(heads=heads, rows=rows, names=3)],
    )


def cards(suite: SuiteRun) -> dict[str, bytes]:
    """Return a card for each model by the name of its file: what it is, what it did on every benchmark, what limits that."""
    results = results_of(suite)
    entries: dict[str, Mapping[str, Any]] = {}
    for part in suite.parts:
        if ANSWERS in part.runs:
            entries |= suite.run(part.runs[ANSWERS]).manifest["models"]
    made: dict[str, bytes] = {}
    for model, entry in sorted(entries.items()):
        own = [one for one in results if one.model == model]
        text = "\n".join(_card(model, entry, own, list(notes(suite, as_published=False))))
        made[f"cards/{_file_name(model, made)}.md"] = (text + "\n").encode()
    return made


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
    model: str, entry: Mapping[str, Any], own: Iterable[SuiteResult], said: Sequence[str]
) -> Iterator[str]:
    yield f"# {markdown_text(model)}"
    yield ""
    yield from (f"- {name.replace('_', ' ')}: {markdown_text(str(entry[name]))}" for name in _TOLD if entry.get(name) not in (None, ""))  # fmt: skip
    yield ""
    yield "## Results"
    yield ""
    rows = [
        [
            one.title,
            shown(one.metric),
            one.setting,
            cell(one),
            number(one.se),
            str(one.n),
            _flags(one),
        ]
        for one in own
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
    yield "- Scores on exam-like questions and likeness to references are no evidence of clinical benefit."
    yield from (f"- {markdown_text(one)}" for one in said)


def _file_name(model: str, taken: Mapping[str, Any]) -> str:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", model).strip("-.") or "model"
    name, number_ = plain, 1
    while f"cards/{name}.md" in taken:
        number_ += 1
        name = f"{plain}-{number_}"
    return name
