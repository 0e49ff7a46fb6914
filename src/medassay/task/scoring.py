"""Trials → scores: reading the stored answers of a run and scoring each, as a stream."""

from collections.abc import Iterator
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
    """The items of a run, found by domain and id; read from its items.jsonl when asked for."""

    def __init__(self, folder: Path, domains: frozenset[str]) -> None:
        self._items = StoredItems(folder / "items.jsonl", domains, imported=True)
        self._at: dict[tuple[str, str], int] = {}
        self.clusters: dict[tuple[str, str], str | None] = {}
        for position, (item, _) in enumerate(self._items.scan()):
            self._at[item.domain, item.id] = position
            self.clusters[item.domain, item.id] = item.cluster

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def get(self, domain: str, name: str) -> Item:
        """Return one item."""
        try:
            return self._items[self._at[domain, name]]
        except KeyError:
            raise IntegrityError(f"items.jsonl: no item '{name}' in domain '{domain}'") from None


def answer_of(trial: dict[str, Any]) -> Answer:
    """Return the answer in a trial record."""
    return Answer(
        item_id=trial["item"],
        outcome=trial["outcome"],
        value=trial.get("value"),
        reason=trial.get("reason", ""),
    )


def score_trials(folder: Path, items: RunItems, task: Task) -> Iterator[tuple[dict[str, Any], Score, Scorer]]:
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
