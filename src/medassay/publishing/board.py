"""A sealed run made ready for pages: rankings, answers with their verdicts, failures, times."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

import msgspec

from medassay.bank.run_items import RunItems
from medassay.bank.stats import item_stats
from medassay.core.canonical import canonical, sha256_hex
from medassay.core.json import record_as
from medassay.core.records.item import Item
from medassay.core.records.sealed_object import ScoreObject, TrialObject, VerdictObject
from medassay.core.records.statistics import OVERALL, LeaderboardRow
from medassay.core.records.trial import TrialKey, TrialLine
from medassay.judging.judgements import by_trial
from medassay.kinds.catalog import presentations_of, task_of_run
from medassay.kinds.kind import AnswerView
from medassay.kinds.shown_answer import parts_shown, whole_item
from medassay.own_code.kept import FOLDER
from medassay.publishing.changes import read_changes
from medassay.publishing.identity import kept_identity
from medassay.publishing.language import kept_texts
from medassay.publishing.reruns import read_reruns
from medassay.publishing.times import from_sealed, shown_times, times_of
from medassay.publishing.trend import read_trend
from medassay.publishing.weak_spots import category_scores, worst_answers
from medassay.report.board import (
    VALIDATION,
    Board,
    ShownAnswer,
    ShownAnswers,
    ShownBank,
    ShownCell,
)
from medassay.report.plot.bars import StackedCount
from medassay.report.times import cost_totals
from medassay.runner.replication import rerun_of
from medassay.storage.jsonl import read_as, read_jsonl
from medassay.storage.run import Run

_CELL_PAGES = 5000
_MOST_CASES = 10_000  # above, pages of single cases would be more than anybody reads
_ANSWERS = 200_000  # as pages they are half a gigabyte
_EXAMPLES = 3
# Pairs of properties by which the items of a bank are drawn: by year where any item has one.
_BY_YEAR = ("year", "category")
_BY_DOMAIN = ("domain", "form")
_Said = Callable[[TrialKey], list[VerdictObject]]  # key of a trial → verdicts on it


def board_of(run: Run, name: str, *, compact: bool | None = None, front: bool = False) -> Board:
    """Return what the pages of a sealed run show.

    Parameters
    ----------
    compact : whether one page shows all cells; None: above 5,000 cells or 200,000 answers
    front : only for the rankings: times and failures are not read
    """
    if compact is None:
        rankings = (domain for domain in run.statistics.domains if domain != OVERALL)
        cells = sum(len(run.statistics.rows(domain)) for domain in rankings)
        compact = cells > _CELL_PAGES or run.statistics.n_trials > _ANSWERS
    items = RunItems(run.path, run.manifest.domains)
    times, failures = ({}, Counter()) if front else times_of(run, items)
    times |= from_sealed([] if run.seal.withheld is None else run.seal.withheld.times)
    rows = [] if front else shown_times(run, times)
    task = task_of_run(run.manifest)
    presentations = {
        statistics.metric: list(presentations_of(statistics.document).values())
        for statistics in run.statistics.by_metric
    }
    shown = [presentation for of_metric in presentations.values() for presentation in of_metric]
    views = [view for presentation in shown for view in presentation.views]
    few = not front and not compact and run.statistics.n_trials <= _MOST_CASES
    return Board(
        publication=name,
        cases=[
            case
            for presentation in shown
            if few and presentation.cases is not None
            for case in presentation.cases(run, _answers(run, items, views))
        ],
        kind_pages={p.folder: p.title for p in shown if p.pages is not None},
        kind_files={name: file.about for p in shown for name, file in p.files.items()},
        compact=compact,
        identity=kept_identity(run.path.parents[1]),
        by_category=[] if front else category_scores(run, items),
        worst_answers={} if front else worst_answers(run, items),
        trend=read_trend(run.path.parents[1]),
        changes=read_changes(run.path.parents[1]),
        texts=kept_texts(run.path.parents[1]),
        banks=_banks(run, items),
        rerun=rerun_of(run),
        reruns=read_reruns(run.path.parents[1]),
        documents=_documents(run.path.parents[1] / VALIDATION),
        date=run.seal.sealed_at[:10],
        manifest=run.manifest,
        manifest_document=run.manifest_document,
        own_code_published=(run.path / FOLDER).is_dir(),
        statistics=run.statistics,
        judged_task=next((t.name for t, _ in task.single_tasks if t.graders), run.manifest.task),
        row_types={
            metric: next((p.row_type for p in of_metric), LeaderboardRow)
            for metric, of_metric in presentations.items()
        },
        seal=run.seal,
        failures=failures,
        times=rows,
        cost_totals=cost_totals(rows),
        answers=lambda: _answers(run, items, views),
        lines=lambda: _lines(run),
    )


class _Score(msgspec.Struct):
    """What a score says, as the bytes it was written with."""

    score: msgspec.Raw
    because: msgspec.Raw = msgspec.Raw(b'"withheld"')


class _Panel(msgspec.Struct, omit_defaults=True):
    """The numbers that are kept of what judges said of a withheld item."""

    agreement: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    contradict_count: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    extra_false_claim_count: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    panel_scores: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Line(msgspec.Struct, omit_defaults=True):
    """An answer as a compact publication lists it; fields in the order of canonical JSON."""

    because: msgspec.Raw
    panel: _Panel
    score: msgspec.Raw
    sha256: str
    trial: msgspec.Raw
    verdicts: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def _documents(folder: Path) -> dict[str, str]:
    """Return name → text of the validation documents of a publication."""
    paths = (p for p in sorted(folder.glob("*")) if p.suffix in (".md", ".txt"))
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


def _banks(run: Run, items: RunItems) -> list[ShownBank]:
    """Return each bank with the statistics of its public items, and the first three of them."""
    domains: dict[str, set[str]] = {}
    for domain, version in run.manifest.domains.items():
        domains.setdefault(version, set()).add(domain)
    banks = []
    cards = run.manifest_document["banks"]
    for bank, card in zip(run.manifest.banks, cards, strict=True):
        own_items = items.of(domains.get(bank.version, ()), public=False)
        public = items.of(domains.get(bank.version, ()), public=True)
        pairs = {names: Counter[tuple[str, ...]]() for names in (_BY_YEAR, _BY_DOMAIN)}
        stats = item_stats(_counted(public, pairs)) if public else None
        over, by = _BY_YEAR if stats is not None and "year" in stats.by else _BY_DOMAIN
        examples = [items.record(i.domain, i.id) for i in public[:_EXAMPLES] if i.question]
        banks.append(
            ShownBank(
                card=card,
                asked=len(own_items),
                withheld=len(own_items) - len(public),
                stats=stats,
                over=over,
                by=by,
                counts=[
                    StackedCount(place=place, part=part, n=n)
                    for (place, part), n in sorted(pairs[over, by].items())
                ],
                examples=[whole_item(record) for record in examples],
            )
        )
    return banks


def _counted(
    items: Iterable[Item], pairs: Mapping[tuple[str, str], Counter[tuple[str, ...]]]
) -> Iterator[Item]:
    """Yield items, each counted by its values of pairs of properties on the way: reading those of a
    large run once more would take seconds.
    """
    for item in items:
        for names, counter in pairs.items():
            counter[tuple(str(getattr(item, name) or "–") for name in names)] += 1
        yield item


def _answers(run: Run, items: RunItems, views: Sequence[AnswerView]) -> ShownAnswers:
    """Yield each cell with its answers, one in memory at a time: a cell's must be read before the
    next cell is.
    """
    with (run.path / "trials.jsonl").open("rb") as lines:
        digests = (sha256_hex(line.removesuffix(b"\n")) for line in lines)
        records = zip(
            read_jsonl(run.path / "trials.jsonl"),
            read_jsonl(run.path / "scores.jsonl"),
            digests,
            strict=True,
        )
        stored = (
            (record_as(trial, TrialLine, "trials.jsonl"), trial, score, digest)
            for trial, score, digest in records
        )
        verdicts_of = verdicts_by_trial(run)
        for (domain, model, setting, mode), group in groupby(
            stored, key=lambda answer: answer[0].cell
        ):
            yield (
                ShownCell(domain=domain, model=model, setting=setting, mode=mode),
                (_shown_answer(items, views, verdicts_of, *answer) for answer in group),
            )


def _shown_answer(
    items: RunItems,
    views: Sequence[AnswerView],
    verdicts_of: _Said,
    line: TrialLine,
    trial: TrialObject,
    score: ScoreObject,
    digest: str,
) -> ShownAnswer:
    record = items.record(line.domain, line.item)
    return ShownAnswer(
        item=whole_item(record),
        line=line,
        trial=trial,
        score=score["score"],
        because=score.get("because", "withheld"),
        panel={k: score.get(k) for k in _Panel.__struct_fields__ if k in score},
        parts=score.get("parts", {}),
        sha256=digest,
        parts_shown=partial(parts_shown, views, record, trial),
        verdicts=[v for v in verdicts_of(line.place) if "tombstone" not in v],
    )


def _lines(run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield (model, line) of every answer as a compact publication lists it: canonical, the trial's
    bytes as they are.
    """
    verdicts_of = verdicts_by_trial(run)
    heads = read_as(run.path / "trials.jsonl", TrialLine)
    scores = read_as(run.path / "scores.jsonl", _Score)
    panels = read_as(run.path / "scores.jsonl", _Panel)
    encode = msgspec.json.Encoder().encode
    with (run.path / "trials.jsonl").open("rb") as lines:
        for line, head, score, panel in zip(lines, heads, scores, panels, strict=True):
            trial = line.removesuffix(b"\n")
            answer_line = _Line(
                because=score.because,
                panel=panel,
                score=score.score,
                sha256=sha256_hex(trial),
                trial=msgspec.Raw(trial),
            )
            if verdicts := [v for v in verdicts_of(head.place) if "tombstone" not in v]:
                answer_line.verdicts = msgspec.Raw(canonical(verdicts))
            yield head.model, encode(answer_line) + b"\n"


def verdicts_by_trial(run: Run) -> _Said:
    """Return what gives the verdicts on each trial by its key, asked in the order of the file."""
    path = run.path / "verdicts.jsonl"
    groups = by_trial(read_jsonl(path)) if path.exists() else iter(())
    waiting = next(groups, None)

    def verdicts_of_trial(key: TrialKey) -> list[VerdictObject]:
        nonlocal waiting
        if waiting is None or waiting[0] != key:
            return []
        current, waiting = waiting[1], next(groups, None)
        return current

    return verdicts_of_trial
