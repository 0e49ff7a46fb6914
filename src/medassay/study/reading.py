"""How the replies of runs were read: by which rules, what was left unread, where a second reading
says something else.

A reply that is read wrongly looks like an answer. So three things are watched: rows with more
unread replies than the others, replies on which a lenient parser disagrees with the one that
scores, and what people say of a sample.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from medassay.bank.builder import need_columns, numbered_csv
from medassay.bank.run_items import RunItems
from medassay.core.records.answer import OUTCOMES
from medassay.core.records.item import Item
from medassay.core.records.leaderboard import unread_share
from medassay.core.records.trial import Trial
from medassay.errors import InputError
from medassay.report.tables import csv_text
from medassay.statistic.draws import seed_of
from medassay.statistic.interval.wilson import wilson_interval
from medassay.statistic.test.holm import holm
from medassay.storage.records import read_trials
from medassay.storage.run import Run
from medassay.study.lenient import comparable, read_leniently

LABELS = "to-label.csv"  # a sample of replies for people
KEY = ("run", "domain", "item", "model", "setting", "mode", "repeat")
_LABEL_COLUMNS = (*KEY, "outcome", "reason", "read_as", "reply", "right")
_YES, _NO = ("yes", "y", "1", "true", "right"), ("no", "n", "0", "false", "wrong")
_LEVEL = 0.05
_EXAMPLES = 3  # of a cluster
_LISTED = 200  # disagreements that are told one by one
_CLUSTERS = 40
_SHOWN = 300  # characters of a reply
_HIDDEN = "(private)"
_RowKey = tuple[str, str, str, str, str]  # run, model, setting, mode, form


class _ReadingCounts(msgspec.Struct):
    """What was counted of one model in one setting, for one form of item."""

    outcomes: Counter[str] = msgspec.field(default_factory=Counter)
    rules: Counter[str] = msgspec.field(default_factory=Counter)
    disagreements: int = 0

    @property
    def n(self) -> int:
        """Return how many replies there are."""
        return sum(self.outcomes.values())

    @property
    def unread(self) -> int:
        """Return how many of them were left unread."""
        return round(unread_share(self.outcomes) * self.n)


class _Cluster(msgspec.Struct):
    """Unread replies that look alike."""

    n: int = 0
    rows: Counter[str] = msgspec.field(default_factory=Counter)
    examples: list[str] = msgspec.field(default_factory=list)


class ReplyToCheck(msgspec.Struct, frozen=True):
    """One reply as it was read, for a person to check."""

    key: tuple[str, ...]
    outcome: str
    reason: str
    read_as: str
    text: str


class ReadingRow(msgspec.Struct, frozen=True, kw_only=True):
    """How the replies of one model in one setting and mode were read, for one form of item.

    `unread` is a share with its interval, `others` that of the other rows of this mode and form
    (None without any), `p` of Fisher's exact test against them, `p_holm` over all rows; `rules` is
    rule or reason → replies.
    """

    run: str
    model: str
    setting: str
    mode: str
    form: str
    n: int
    outcomes: dict[str, int]
    rules: dict[str, int]
    unread: float
    lo: float
    hi: float
    others: float | None
    p: float
    disagreements: int
    p_holm: float
    differs: bool


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A reply in which a lenient second reading finds something else than the first."""

    run: str
    domain: str
    item: str
    model: str
    setting: str
    mode: str
    repeat: str
    outcome: str
    reason: str
    first: str | None
    second: str
    reply: str


class UnreadCluster(msgspec.Struct, frozen=True, kw_only=True):
    """Unread replies of one shape: how many by model and setting, and some of them."""

    outcome: str
    reason: str
    shape: str
    n: int
    rows: dict[str, int]
    examples: list[str]


class ErrorRate(msgspec.Struct, frozen=True, kw_only=True):
    """The share of readings that people found wrong, with Wilson's interval."""

    n: int
    wrong: int
    error: float
    lo: float
    hi: float


class RowErrorRate(ErrorRate, frozen=True, kw_only=True):
    """The share of wrong readings of one model in one setting."""

    model: str
    setting: str


class CheckedReadings(ErrorRate, frozen=True, kw_only=True):
    """The share of wrong readings over all that people checked, and by model and setting."""

    rows: list[RowErrorRate]


class ReadingStudy(msgspec.Struct, frozen=True, kw_only=True):
    """The study: rows, at most 200 disagreements, clusters of unread replies, the largest first,
    and, where people checked replies, `labels`.
    """

    runs: list[str]
    rows: list[ReadingRow]
    disagreements: list[Disagreement]
    clusters: list[UnreadCluster]
    labels: CheckedReadings | msgspec.UnsetType = msgspec.UNSET


def reading_study(
    runs: Sequence[Run], *, labels: Path | None = None, sample: int = 100
) -> tuple[ReadingStudy, list[ReplyToCheck]]:
    """Return how replies were read, and a sample of public ones for people to check.

    Parameters
    ----------
    labels : a table like the one this study writes (`to-label.csv`), with yes or no in the column
        `right`
    sample : how many replies are drawn, each as likely as any other

    Raises
    ------
    InputError
        When no run holds a reply in words, or labels are of no reply of these runs.
    """
    readings = _Readings(_Sample(sample, seed_of(*(run.id for run in runs), "reading")))
    labels_read = {} if labels is None else _read_labels(labels)
    unknown = set(labels_read)
    for run in runs:
        for trial, item in _replies(run):
            readings.add(run, trial, item)
            unknown.discard(_key(run, trial))
    if not readings.rows:
        raise InputError(
            "no run holds a reply in words: imported scores and likelihoods are not read"
        )
    if unknown:
        first = dict(zip(KEY, min(unknown), strict=True))
        raise InputError(
            f"--labels: no reply of these runs: {', '.join(f'{k} {v}' for k, v in first.items())}"
        )
    study = ReadingStudy(
        runs=[run.id for run in runs],
        rows=_rows(readings.rows),
        disagreements=readings.disagreements,
        clusters=_clusters(readings.clusters),
        labels=_error_rates(labels_read) if labels_read else msgspec.UNSET,
    )
    return study, sorted(readings.sample.replies, key=lambda reply: reply.key)


class _Sample:
    """Replies drawn from a stream, each with the same chance (reservoir sampling)."""

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._random, self._seen = size, random.Random(seed), 0
        self.replies: list[ReplyToCheck] = []

    def offer(self, key: tuple[str, ...], trial: Trial) -> None:
        """Take a reply, or leave it out."""
        self._seen += 1
        at = self._seen - 1 if self._seen <= self._size else self._random.randrange(self._seen)
        if at >= self._size:
            return
        reply = ReplyToCheck(key, trial.outcome, trial.reason, trial.value or "", trial.text or "")
        self.replies[at : at + 1] = [reply]


class _Readings:
    """What is counted over all replies, one at a time."""

    def __init__(self, sample: _Sample) -> None:
        self.sample = sample
        self.rows: dict[_RowKey, _ReadingCounts] = {}
        self.clusters: dict[tuple[str, str, str], _Cluster] = {}
        self.disagreements: list[Disagreement] = []

    def add(self, run: Run, trial: Trial, item: Item) -> None:
        """Count one reply; nothing of a synthetic item is shown."""
        private = item.kind == "synthetic"
        row = self.rows.setdefault(
            (run.id, trial.model, trial.setting, trial.mode, item.form),
            _ReadingCounts(),
        )
        row.outcomes[trial.outcome] += 1
        row.rules[_rule(trial)] += 1
        if trial.outcome != "answered":
            _gather(self.clusters, trial, private=private)
        second = read_leniently(item, trial.text or "", order=trial.order)
        first = trial.value if trial.outcome == "answered" else None
        if second is not None and second != comparable(item, first):
            row.disagreements += 1
            if len(self.disagreements) < _LISTED:
                self.disagreements.append(_disagreement(run, trial, second, private=private))
        if not private:
            self.sample.offer(_key(run, trial), trial)


def _replies(run: Run) -> Iterator[tuple[Trial, Item]]:
    """Yield the replies in words of a sealed run with their items.

    Withheld and failed ones hold no words.
    """
    run.refuse_unfinished()
    items = RunItems(run.path, run.manifest.domains)
    baselines = {name for name, spec in run.manifest.models.items() if spec.provider == "baseline"}
    for trial in read_trials(run.path):
        words = trial.text is not None and trial.likelihoods is None and trial.drawn is None
        if words and trial.outcome != "failed" and trial.model not in baselines:
            yield trial, items.get(trial.domain, trial.item)


def _key(run: Run, trial: Trial) -> tuple[str, ...]:
    return (run.id, *(str(getattr(trial, name)) for name in KEY[1:]))


def _rule(trial: Trial) -> str:
    """Return by which rule or form an answer was read, or why none was, with its outcome where that
    is not `answered`.
    """
    reason = trial.reason or "–"
    return reason if trial.outcome == "answered" else f"{trial.outcome}: {reason}"


def _excerpt(text: str, *, private: bool) -> str:
    if private:
        return _HIDDEN
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 60]} … {text[-50:]}"


def _disagreement(run: Run, trial: Trial, second: str, *, private: bool) -> Disagreement:
    first = trial.value if trial.outcome == "answered" else None
    return Disagreement(
        run=run.id,
        domain=trial.domain,
        item=trial.item,
        model=trial.model,
        setting=trial.setting,
        mode=trial.mode,
        repeat=str(trial.repeat),
        outcome=trial.outcome,
        reason=trial.reason,
        first=None if first is None else _excerpt(str(first), private=private),
        second=_excerpt(second, private=private),
        reply=_excerpt(trial.text or "", private=private),
    )


_PIECE = re.compile(
    r"(?P<letter>\b[^\W\d_]\b)|(?P<word>[^\W\d_]+)|(?P<number>\d+)|(?P<line>\n+)|"
    r"(?P<blank>[^\S\n]+)|(?P<mark>.)"
)
_MARKS = {"letter": "L", "number": "9", "line": "⏎", "blank": " "}  # in a shape; others stay


def shape(text: str) -> str:
    """Return how a text begins: words as w, W where capitalised, letters as L, numbers as 9, marks
    as they are.

    Examples
    --------
    >>> shape("E(Note: This choice is based on 12 cases"), shape("The most likely"), shape("G")
    ('L(W: W w…', 'W w…', 'L')
    """
    joined = ""
    for piece in _PIECE.finditer(text.strip()[:160]):
        word = "W" if piece[0][:1].isupper() else "w"
        kind = piece.lastgroup or ""
        joined += word if kind == "word" else _MARKS.get(kind, piece[0])
    running = re.search(r"w(?: [wW9L],?)+", joined)
    return joined[: running.start()] + "w…" if running else joined[:40]


def _gather(clusters: dict[tuple[str, str, str], _Cluster], trial: Trial, *, private: bool) -> None:
    key = (trial.outcome, trial.reason or "–", shape(trial.text or ""))
    cluster = clusters.setdefault(key, _Cluster())
    cluster.n += 1
    cluster.rows[f"{trial.model}, {trial.setting}"] += 1
    if len(cluster.examples) < _EXAMPLES and not private:
        cluster.examples.append(_excerpt(trial.text or "", private=private))


def _clusters(clusters: Mapping[tuple[str, str, str], _Cluster]) -> list[UnreadCluster]:
    """Return the largest clusters; what is left over is told as one."""
    ordered = sorted(clusters.items(), key=lambda pair: (-pair[1].n, pair[0]))
    largest = [
        UnreadCluster(
            outcome=outcome,
            reason=reason,
            shape=form,
            n=cluster.n,
            rows=dict(cluster.rows.most_common()),
            examples=cluster.examples,
        )
        for (outcome, reason, form), cluster in ordered[:_CLUSTERS]
    ]
    if rest := ordered[_CLUSTERS:]:
        total: Counter[str] = Counter()
        for _, cluster in rest:
            total.update(cluster.rows)
        largest.append(
            UnreadCluster(
                outcome="",
                reason="",
                shape=f"{len(rest)} further shapes",
                n=sum(cluster.n for _, cluster in rest),
                rows=dict(total.most_common()),
                examples=[],
            )
        )
    return largest


def _rows(counts: Mapping[_RowKey, _ReadingCounts]) -> list[ReadingRow]:
    """Return the rows, each held against the others of its mode and form.

    p adjusted by Holm over all.
    """
    keys = sorted(counts)
    tests = {key: _against_others(key, counts) for key in keys}
    adjusted = holm([p for _, p in tests.values()])
    return [
        _row(key, counts[key], *tests[key], float(p_holm))
        for key, p_holm in zip(keys, adjusted, strict=True)
    ]


def _against_others(
    key: _RowKey, counts: Mapping[_RowKey, _ReadingCounts]
) -> tuple[float | None, float]:
    """Return the unread share of the other rows of this mode and form, None without any, and p of
    Fisher's exact test against them.
    """
    from scipy.stats import fisher_exact

    n, unread = counts[key].n, counts[key].unread
    others = [other for k, other in counts.items() if k != key and k[3:] == key[3:]]
    others_n, others_unread = sum(o.n for o in others), sum(o.unread for o in others)
    if not others_n:
        return None, 1.0
    table = [[unread, n - unread], [others_unread, others_n - others_unread]]
    return others_unread / others_n, float(fisher_exact(np.array(table)).pvalue)


def _row(
    key: _RowKey, counts: _ReadingCounts, others: float | None, p: float, p_holm: float
) -> ReadingRow:
    run, model, setting, mode, form = key
    lo, hi = wilson_interval(counts.unread, counts.n)
    return ReadingRow(
        run=run,
        model=model,
        setting=setting,
        mode=mode,
        form=form,
        n=counts.n,
        outcomes={name: counts.outcomes[name] for name in OUTCOMES},
        rules=dict(counts.rules.most_common()),
        unread=counts.unread / counts.n,
        lo=lo,
        hi=hi,
        others=others,
        p=p,
        disagreements=counts.disagreements,
        p_holm=p_holm,
        differs=p_holm <= _LEVEL,
    )


def _read_labels(path: Path) -> dict[tuple[str, ...], bool]:
    """Return reply → whether a person found it read rightly.

    Lines without a word in `right` are left out.
    """
    labels: dict[tuple[str, ...], bool] = {}
    for number, row in numbered_csv(path):
        need_columns(path, row, {*KEY, "right"})
        text = row["right"].strip().casefold()
        if not text:
            continue
        if text not in (*_YES, *_NO):
            raise InputError(
                f"{path.name} row {number}, column right: '{row['right']}'; expected yes or no"
            )
        key = tuple(row[name].removeprefix("'") for name in KEY)
        if key in labels:
            raise InputError(f"{path.name} row {number}: the same reply as a row before")
        labels[key] = text in _YES
    if not labels:
        raise InputError(f"{path.name}: no row has yes or no in the column right")
    return labels


def _error_rates(labels: Mapping[tuple[str, ...], bool]) -> CheckedReadings:
    """Return the share of readings that people found wrong, over all and by model and setting."""
    by_row: dict[tuple[str, str], list[bool]] = {}
    for key, right in labels.items():
        _, _, _, model, setting, *_ = key
        by_row.setdefault((model, setting), []).append(right)
    rows = [
        RowErrorRate(model=model, setting=setting, **msgspec.to_builtins(_error_rate(flags)))
        for (model, setting), flags in sorted(by_row.items())
    ]
    return CheckedReadings(rows=rows, **msgspec.to_builtins(_error_rate(list(labels.values()))))


def _error_rate(flags: Sequence[bool]) -> ErrorRate:
    wrong = flags.count(False)
    lo, hi = wilson_interval(wrong, len(flags))
    return ErrorRate(n=len(flags), wrong=wrong, error=wrong / len(flags), lo=lo, hi=hi)


def labels_csv(replies: Iterable[ReplyToCheck]) -> str:
    """Return a table for people: what each reply was read as, and an empty column for yes or no."""
    lines = ((*r.key, r.outcome, r.reason, r.read_as, r.text, "") for r in replies)
    rows = (dict(zip(_LABEL_COLUMNS, line, strict=True)) for line in lines)
    return csv_text(_LABEL_COLUMNS, rows)
