"""How the replies of runs were read: by which rules, what was left unread, where a second reading
says something else.

A reply that is read wrongly looks like an answer. So three things are watched: rows with more
unread replies than the others, replies on which a lenient parser disagrees with the one that
scores, and what people say of a sample.
"""

import csv
import io
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import fisher_exact

from medassay.bank.builder import need_columns, read_csv
from medassay.bank.run_items import RunItems
from medassay.core.records.answer import OUTCOMES
from medassay.core.records.item import Item
from medassay.core.records.leaderboard import unread_share
from medassay.core.records.trial import Trial
from medassay.errors import IncompleteError, InputError
from medassay.report.tables import harmless
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
ReadingRow = tuple[str, str, str, str, str]  # run, model, setting, mode, form


@dataclass
class _ReadingCounts:
    """What was counted of one model in one setting, for one form of item."""

    outcomes: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    disagreements: int = 0


@dataclass
class _Cluster:
    """Unread replies that look alike."""

    n: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ReplyToCheck:
    """One reply as it was read, for a person to check."""

    key: tuple[str, ...]
    outcome: str
    reason: str
    read_as: str
    text: str


def reading_study(
    runs: Sequence[Run], *, labels: Path | None = None, sample: int = 100
) -> tuple[dict[str, Any], list[ReplyToCheck]]:
    """Return how replies were read, and a sample of public ones for people to check.

    Parameters
    ----------
    labels : a table like the one this study writes (`to-label.csv`), with yes or no in the column
        `right`
    sample : how many replies are drawn, each as likely as any other

    Returns
    -------
    dict
        rows (run, model, setting, mode, form, n, outcomes, rules, unread with lo and hi, unread of
        the others, p, p_holm, differs, disagreements), disagreements (up to 200), clusters (shape,
        outcome, reason, n, rows, examples), labels (n, wrong, error with lo and hi, by row) where
        there are any.

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
    document: dict[str, Any] = {
        "runs": [run.id for run in runs],
        "rows": _documents(readings.rows),
        "disagreements": readings.disagreements,
        "clusters": _clusters(readings.clusters),
    }
    if labels_read:
        document["labels"] = _error_rates(labels_read)
    return document, sorted(readings.sample.replies, key=lambda reply: reply.key)


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
        self.rows: dict[ReadingRow, _ReadingCounts] = {}
        self.clusters: dict[tuple[str, str, str], _Cluster] = {}
        self.disagreements: list[dict[str, Any]] = []

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
    if not run.sealed:
        raise IncompleteError(f"run {run.id}: not finished; run its plan again to resume it")
    items = RunItems(run.path, run.manifest["domains"])
    baselines = {
        name for name, spec in run.manifest["models"].items() if spec.get("provider") == "baseline"
    }
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


def _disagreement(run: Run, trial: Trial, second: str, *, private: bool) -> dict[str, Any]:
    first = trial.value if trial.outcome == "answered" else None
    return {
        **dict(zip(KEY, _key(run, trial), strict=True)),
        "outcome": trial.outcome,
        "reason": trial.reason,
        "first": None if first is None else _excerpt(str(first), private=private),
        "second": _excerpt(second, private=private),
        "reply": _excerpt(trial.text or "", private=private),
    }


_PIECE = re.compile(
    r"(?P<letter>\b[^\W\d_]\b)|(?P<word>[^\W\d_]+)|(?P<number>\d+)|(?P<line>\n+)|"
    r"(?P<blank>[^\S\n]+)|(?P<mark>.)"
)


def shape(text: str) -> str:
    """Return how a text begins: words as w, W where capitalised, letters as L, numbers as 9, marks
    as they are.

    Examples
    --------
    >>> shape("E(Note: This choice is based on 12 cases"), shape("The most likely"), shape("G")
    ('L(W: W w…', 'W w…', 'L')
    """
    marks: list[str] = []
    for piece in _PIECE.finditer(text.strip()[:160]):
        kind = piece.lastgroup
        if kind == "letter":
            marks.append("L")
        elif kind == "word":
            marks.append("W" if piece[0][:1].isupper() else "w")
        elif kind == "number":
            marks.append("9")
        elif kind == "line":
            marks.append("⏎")
        else:
            marks.append(" " if kind == "blank" else piece[0])
    joined = "".join(marks)
    running = re.search(r"w(?: [wW9L],?)+", joined)
    return joined[: running.start()] + "w…" if running else joined[:40]


def _gather(clusters: dict[tuple[str, str, str], _Cluster], trial: Trial, *, private: bool) -> None:
    key = (trial.outcome, trial.reason or "–", shape(trial.text or ""))
    cluster = clusters.setdefault(key, _Cluster())
    cluster.n += 1
    cluster.rows[f"{trial.model}, {trial.setting}"] += 1
    if len(cluster.examples) < _EXAMPLES and not private:
        cluster.examples.append(_excerpt(trial.text or "", private=private))


def _clusters(clusters: Mapping[tuple[str, str, str], _Cluster]) -> list[dict[str, Any]]:
    """Return the largest clusters; what is left over is told as one."""
    ordered = sorted(clusters.items(), key=lambda pair: (-pair[1].n, pair[0]))
    largest = [
        {
            "outcome": outcome,
            "reason": reason,
            "shape": form,
            "n": cluster.n,
            "rows": dict(cluster.rows.most_common()),
            "examples": cluster.examples,
        }
        for (outcome, reason, form), cluster in ordered[:_CLUSTERS]
    ]
    if rest := ordered[_CLUSTERS:]:
        total: Counter[str] = Counter()
        for _, cluster in rest:
            total.update(cluster.rows)
        largest.append(
            {
                "outcome": "",
                "reason": "",
                "shape": f"{len(rest)} further shapes",
                "n": sum(cluster.n for _, cluster in rest),
                "rows": dict(total.most_common()),
                "examples": [],
            }
        )
    return largest


def _documents(rows: Mapping[ReadingRow, _ReadingCounts]) -> list[dict[str, Any]]:
    """Return the rows, each held against the others of its mode and form.

    p adjusted by Holm over all.
    """
    documents: list[dict[str, Any]] = []
    for key, row in sorted(rows.items()):
        n = sum(row.outcomes.values())
        unread = round(unread_share(row.outcomes) * n)
        alike = [o for k, o in rows.items() if k != key and k[3:] == key[3:]]
        others_n = sum(sum(o.outcomes.values()) for o in alike)
        others = sum(round(unread_share(o.outcomes) * sum(o.outcomes.values())) for o in alike)
        lo, hi = wilson_interval(unread, n)
        p = 1.0
        if others_n:
            table = [[unread, n - unread], [others, others_n - others]]
            p = float(fisher_exact(np.array(table)).pvalue)
        documents.append(
            {
                **dict(zip(("run", "model", "setting", "mode", "form"), key, strict=True)),
                "n": n,
                "outcomes": {name: row.outcomes[name] for name in OUTCOMES},
                "rules": dict(row.rules.most_common()),
                "unread": unread / n,
                "lo": lo,
                "hi": hi,
                "others": others / others_n if others_n else None,
                "p": p,
                "disagreements": row.disagreements,
            }
        )
    for row_document, p in zip(
        documents, holm([document["p"] for document in documents]), strict=True
    ):
        row_document |= {"p_holm": float(p), "differs": bool(p <= _LEVEL)}
    return documents


def _read_labels(path: Path) -> dict[tuple[str, ...], bool]:
    """Return reply → whether a person found it read rightly.

    Lines without a word in `right` are left out.
    """
    labels: dict[tuple[str, ...], bool] = {}
    for number, row in enumerate(read_csv(path), 2):
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


def _error_rates(labels: Mapping[tuple[str, ...], bool]) -> dict[str, Any]:
    """Return the share of readings that people found wrong, over all and by model and setting."""
    by_row: dict[tuple[str, str], list[bool]] = {}
    for key, right in labels.items():
        named = dict(zip(KEY, key, strict=True))
        by_row.setdefault((named["model"], named["setting"]), []).append(right)
    return {
        **_error_rate(labels.values()),
        "rows": [
            {"model": model, "setting": setting, **_error_rate(flags)}
            for (model, setting), flags in sorted(by_row.items())
        ],
    }


def _error_rate(flags: Iterable[bool]) -> dict[str, Any]:
    flags = list(flags)
    wrong = flags.count(False)
    lo, hi = wilson_interval(wrong, len(flags))
    return {"n": len(flags), "wrong": wrong, "error": wrong / len(flags), "lo": lo, "hi": hi}


def labels_csv(replies: Iterable[ReplyToCheck]) -> str:
    """Return a table for people: what each reply was read as, and an empty column for yes or no."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_LABEL_COLUMNS)
    for reply in replies:
        cells = (*reply.key, reply.outcome, reply.reason, reply.read_as, reply.text, "")
        writer.writerow([harmless(cell) for cell in cells])
    return text.getvalue()
