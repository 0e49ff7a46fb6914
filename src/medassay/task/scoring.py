"""Trials → scores: reading the stored answers of a run and scoring each, as a stream."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from medassay.bank.folder import StoredItems
from medassay.core.item import Item
from medassay.core.trial import Answer, Score
from medassay.errors import IntegrityError
from medassay.score.catalog import SCORERS
from medassay.score.scorer import Scorer
from medassay.storage.jsonl import read_jsonl
from medassay.task.task import Task


class RunItems:
    """The items of a run, found by domain and id; read from its items.jsonl when asked for.

    The file is sorted by domain and id, so an item's place in its domain is its place in the file
    less that of the domain's first item. `domains` gives each domain's bank version: clusters of
    two banks that happen to share a name are two clusters.
    """

    def __init__(self, folder: Path, domains: Mapping[str, str]) -> None:
        self._items = StoredItems(folder / "items.jsonl", frozenset(domains), imported=True)
        self._starts: dict[str, int] = {}
        self.clusters: dict[str, array[int]] = {}
        numbers: dict[tuple[str, str], int] = {}
        alone, last = 0, ("", "")
        for position, (item, _) in enumerate(self._items.scan()):
            if (item.domain, item.id) <= last:
                raise IntegrityError(
                    f"items.jsonl row {position + 1}: not sorted by domain and id"
                )
            last = (item.domain, item.id)
            self._starts.setdefault(item.domain, position)
            if item.cluster is None:
                alone -= 1
                number = alone
            else:
                number = numbers.setdefault((domains[item.domain], item.cluster), len(numbers))
            self.clusters.setdefault(item.domain, array("q")).append(number)

    def place(self, domain: str, name: str) -> int:
        """Return the place of an item in its domain, counted from 0."""
        if domain in self._starts:
            start = self._starts[domain]
            end = start + len(self.clusters[domain])
            at = bisect_left(self._items.ids, name, start, end)
            if at < end and self._items.ids[at] == name:
                return at - start
        raise IntegrityError(f"items.jsonl: no item '{name}' in domain '{domain}'")

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def record(self, domain: str, name: str) -> dict[str, Any]:
        """Return the file object of one item."""
        place = self.place(domain, name)
        return self._items.record(self._starts[domain] + place)

    def get(self, domain: str, name: str) -> Item:
        """Return one item."""
        place = self.place(domain, name)
        return self._items[self._starts[domain] + place]


def answer_of(trial: dict[str, Any]) -> Answer:
    """Return the answer in a trial record."""
    return Answer(
        item_id=trial["item"],
        outcome=trial["outcome"],
        value=trial.get("value"),
        reason=trial.get("reason", ""),
    )


def score_trials(
    folder: Path, items: RunItems, task: Task
) -> Iterator[tuple[dict[str, Any], Score, Scorer]]:
    """Yield every trial of a run with its score and scorer, in the order of trials.jsonl."""
    scorers = {form: SCORERS[name] for form, (_, name) in task.readers.items()}
    for trial in read_jsonl(folder / "trials.jsonl"):
        item = items.get(trial["domain"], trial["item"])
        scorer = scorers[item.form]
        [score] = scorer.score([item], [answer_of(trial)])
        yield trial, score, scorer


def score_record(trial: dict[str, Any], score: Score, scorer: Scorer) -> dict[str, Any]:
    """Return one line of scores.jsonl."""
    return {
        "schema_version": 1,
        "domain": trial["domain"],
        "model": trial["model"],
        "setting": trial["setting"],
        "mode": trial["mode"],
        "item": trial["item"],
        "repeat": trial["repeat"],
        "score": score.value,
        "because": score.because,
        "scorer": scorer.id,
    }
