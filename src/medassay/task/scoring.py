"""Trials → scores: reading the stored answers of a run and scoring each, as a stream."""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from medassay.bank.folder import ChosenItems, StoredItems
from medassay.core.item import Form, Item
from medassay.core.likelihood import likelihoods_of
from medassay.core.trial import Answer
from medassay.errors import IntegrityError
from medassay.score.catalog import PARTS, SCORERS
from medassay.score.scorer import Scorer
from medassay.score.text import text_likeness
from medassay.storage.jsonl import read_jsonl
from medassay.task.task import Task

T = TypeVar("T")
_REMEMBERED = 4096  # items


class RunItems:
    """The items of a run, found by domain and id; read from its items.jsonl when asked for.

    The file is sorted by domain and id, so an item's place in its domain is its place in the file
    less that of the domain's first item. `domains` gives each domain's bank version: clusters of
    two banks that happen to share a name are two clusters.
    """

    def __init__(self, folder: Path, domains: Mapping[str, str]) -> None:
        self._items = StoredItems(folder / "items.jsonl", frozenset(domains), imported=True)
        self._starts: dict[str, int] = {}
        self._read: dict[int, Item] = {}
        self._records: dict[int, dict[str, Any]] = {}
        self.clusters: dict[str, array[int]] = {}
        self.synthetic: dict[str, array[int]] = {}
        self.harm: dict[str, array[int]] = {}
        numbers: dict[tuple[str, str], int] = {}
        alone, last = 0, ("", "")
        for position, record in enumerate(self._items.scan()):
            domain, name, cluster = record["domain"], record["id"], record.get("cluster")
            if (domain, name) <= last:
                raise IntegrityError(
                    f"items.jsonl row {position + 1}: not sorted by domain and id"
                )
            last = (domain, name)
            self._starts.setdefault(domain, position)
            if cluster is None:
                alone -= 1
                number = alone
            else:
                number = numbers.setdefault((domains[domain], cluster), len(numbers))
            self.clusters.setdefault(domain, array("q")).append(number)
            self.harm.setdefault(domain, array("b")).append(record.get("harm", False))
            made = record.get("kind") == "synthetic"
            self.synthetic.setdefault(domain, array("b")).append(made)

    @property
    def domains(self) -> list[str]:
        """Return the domains, sorted."""
        return sorted(self.clusters)

    def place(self, domain: str, name: str) -> int:
        """Return the place of an item in its domain, counted from 0."""
        if domain in self._starts:
            start = self._starts[domain]
            end = start + len(self.clusters[domain])
            at = bisect_left(self._items.ids, name, start, end)
            if at < end and self._items.ids[at] == name:
                return at - start
        raise IntegrityError(f"items.jsonl: no item '{name}' in domain '{domain}'")

    def names(self, domain: str) -> list[str]:
        """Return the ids of a domain's items, sorted; none for a domain that is not there."""
        start = self._starts.get(domain, 0)
        return self._items.ids[start : start + len(self.clusters.get(domain, ()))]

    def position(self, domain: str, name: str) -> int:
        """Return the place of an item in the whole run, counted from 0."""
        return self._starts.get(domain, 0) + self.place(domain, name)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def record(self, domain: str, name: str) -> dict[str, Any]:
        """Return the file object of one item; lately used ones are not read again."""
        return self._lately(self._records, self._items.record, domain, name)

    def of(self, domains: Container[str], *, public: bool) -> Sequence[Item]:
        """Return the items of some domains, each read when it is asked for; with `public` none that is withheld."""
        heads = self._items.heads
        return ChosenItems(
            self._items,
            array(
                "Q",
                (
                    at
                    for at, (domain, _, form) in enumerate(heads)
                    if domain in domains and not (public and form == "withheld")
                ),
            ),
        )

    @property
    def withholding(self) -> bool:
        """Return whether any item is synthetic, so that its text must stay private."""
        return any(any(made) for made in self.synthetic.values())

    @property
    def forms(self) -> set[Form]:
        """Return the forms that occur."""
        return {form for _, _, form in set(self._items.heads)}

    def form(self, domain: str, name: str) -> Form:
        """Return the form of one item, without reading it."""
        return self._items.heads[self.position(domain, name)][2]

    def get(self, domain: str, name: str) -> Item:
        """Return one item; lately used ones are not read again, since every model answers them all."""
        return self._lately(self._read, self._items.__getitem__, domain, name)

    def _lately(
        self, kept: dict[int, T], read: Callable[[int], T], domain: str, name: str
    ) -> T:
        at = self.position(domain, name)
        if (found := kept.get(at)) is None:
            if len(kept) >= _REMEMBERED:
                kept.clear()
            found = kept[at] = read(at)
        return found


class Scoring:
    """The scorers of a task, applied to one answer at a time."""

    def __init__(self, task: Task) -> None:
        self._compares = bool(task.metrics)
        self._scorers = {
            form: SCORERS[name] if name else unjudged(task)
            for form, (_, name) in task.readers.items()
        }

    def record(self, item: Item, trial: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
        """Return the line of scores.jsonl for a trial: its key, its score, why, by which scorer, and its parts."""
        scorer = self._scorers[item.form]
        [score] = scorer.score([item], [answer])
        made = score_record(trial, score.value, score.because, scorer.id)
        if item.form in PARTS and answer.outcome != "failed":
            parts = PARTS[item.form](item, answer, trial.get("text", ""))
            made |= {"parts": parts} if parts else {}
        if self._compares and answer.value is not None:
            likeness = text_likeness(answer.value, item.reference_text)
            made["parts"] = {**made.get("parts", {}), "text": likeness}
        return made


def score_record(
    trial: Mapping[str, Any], score: float | None, because: str, scorer: str
) -> dict[str, Any]:
    """Return one line of scores.jsonl."""
    return {
        "schema_version": 1,
        "domain": trial["domain"],
        "model": trial["model"],
        "setting": trial["setting"],
        "mode": trial["mode"],
        "item": trial["item"],
        "repeat": trial["repeat"],
        "score": score,
        "because": because,
        "scorer": scorer,
    }


def unjudged(task: Task) -> Scorer:
    """Return what scores an answer that judges decide on: null until they have."""
    return Scorer(
        "judges", lambda item, answer: (None, "unjudged"), revision=1, scale=task.scale
    )


def must_judge(task: Task, trial: Mapping[str, Any], items: RunItems) -> bool:
    """Return whether a trial's score is the judges' to give."""
    return (
        bool(task.judges)
        and trial["outcome"] == "answered"
        and items.form(trial["domain"], trial["item"]) in task.judges
    )


def answer_of(trial: Mapping[str, Any]) -> Answer:
    """Return the answer in a trial record."""
    return Answer(
        item_id=trial["item"],
        outcome=trial["outcome"],
        value=trial.get("value"),
        reason=trial.get("reason", ""),
        likelihoods=likelihoods_of(trial.get("likelihoods", ()), trial.get("order")),
        drawn=trial.get("drawn"),
    )


def score_trials(
    folder: Path, items: RunItems, task: Task
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield every trial of a run with its score record, in the order of trials.jsonl."""
    scoring = Scoring(task)
    for trial in read_jsonl(folder / "trials.jsonl"):
        item = items.get(trial["domain"], trial["item"])
        yield trial, scoring.record(item, trial, answer_of(trial))
