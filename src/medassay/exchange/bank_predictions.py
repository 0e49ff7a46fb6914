"""A table of finished predictions on the items of a bank → a sealed run, as if the models had been
asked these items: same items, same history, and it joins with other imports on the bank.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from medassay.bank.folder import bank_heads, bank_record
from medassay.core.canonical import short_hash
from medassay.core.clock import now
from medassay.core.files import write_lines
from medassay.core.records.item import Bank, Item
from medassay.core.records.item_object import ItemObject
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import Plan
from medassay.core.records.target import Choice, Form, Given, Pattern, Range, Target
from medassay.core.records.task import Task
from medassay.core.wording import counted
from medassay.errors import InputError
from medassay.exchange.imported import (
    ImportSource,
    file_digest,
    imported_answer,
    imported_models,
    imported_trial,
    limits_with_grades,
    new_run,
    refuse_alike,
    seal_import,
    write_trials,
)
from medassay.exchange.logs import TRIAL_TABLE, UNSAFE, add_trial, check_prediction, distinct
from medassay.exchange.prediction import Prediction
from medassay.exchange.predictions import check_columns, read_predictions
from medassay.kinds.catalog import OWN_TASKS, TASKS, task_of_plan, tasks_together
from medassay.kinds.pattern.number import extract_number
from medassay.kinds.pattern.scorer import fits
from medassay.runner.manifest import bank_entry, import_methodology, surroundings, tasks_entry
from medassay.runner.revisions import revision_ids, revisions
from medassay.storage.run import Run

_NAMED = 5  # items of one message
# What is kept of an item whose answers come with scores: all but what counts as right.
_WITHOUT_TARGET = (
    *("id", "domain", "kind", "revision", "question", "context", "language", "category", "year"),
    *("cluster", "condition", "difficulty", "source", "licence", "harm"),
)


class BankImport(msgspec.Struct, frozen=True, kw_only=True):
    """A run made of predictions on a bank, and what of the bank they cover.

    Attributes
    ----------
    coverage : a line on how many of the items have an answer, and on each model that lacks some
    """

    run: Run
    coverage: Sequence[str]


def import_on_banks(
    table: Path | str,
    columns: Mapping[str, str],
    banks: Sequence[Bank],
    *,
    models: Mapping[str, ModelSpec] | None = None,
    runs: Path | str | None = None,
    to: Path | str | None = None,
) -> BankImport:
    """Return the sealed run made from a CSV table of predictions on the items of some banks.

    The run holds every item of each domain that the table has an answer in, so that imports of
    other models are of the same items: those of the tasks that are answered, or of the metric of
    the items that have scores. A prediction is read as a reply would be.

    Parameters
    ----------
    columns : as in `import_predictions`; domain and key may be left out, since the bank has them
    models : entries that say family, size and licence of models

    Raises
    ------
    InputError
        Naming the file, the row and what was expected: also for items that no bank has, answers
        that judges would have to score, and keys of choices other than the bank's. Nothing is
        left half-written.
    """
    table = Path(table)
    check_columns(columns, on_bank=True)
    source = ImportSource(file=table, digest=file_digest(table), task="")
    chosen = _ChosenItems(banks, scored="score" in columns)
    remembered = {"columns": dict(columns)}
    contents = sorted(bank.content_hash for bank in banks)
    coverage: list[str] = []

    def fill(folder: Path, name: str) -> None:
        coverage.extend(_fill(folder, name, source, columns, chosen, models or {}))

    run = new_run(
        [source.digest, remembered, contents],
        fill,
        runs=None if runs is None else Path(runs),
        to=None if to is None else Path(to),
    )
    return BankImport(run=run, coverage=coverage)


class _ChosenItems:
    """The items of some banks that predictions can be on, by domain and id."""

    def __init__(self, banks: Sequence[Bank], *, scored: bool) -> None:
        self.banks, self.scored = banks, scored
        # Domain → id → (bank, its position there, form).
        self.items: dict[str, dict[str, tuple[Bank, int, Form]]] = {}
        self._domains_of: dict[str, list[str]] = {}
        self.examples: set[str] = set()
        self.left_out: list[str] = []  # tasks or metrics of which no item was answered or scored
        self._metric = ""  # of the items that scores are given of; none where none is given
        for bank in banks:
            for position, (name, (domain, split, form)) in enumerate(bank_heads(bank)):
                if split != "test":
                    self.examples.add(name)
                    continue
                own = self.items.setdefault(domain, {})
                if own and next(iter(own.values()))[0] is not bank:
                    raise InputError(
                        f"banks '{next(iter(own.values()))[0].name}' and '{bank.name}' share the"
                        f" domain '{domain}'; import on them apart, or rename one"
                    )
                own[name] = bank, position, form
                self._domains_of.setdefault(name, []).append(domain)

    def keep(self, answered: Iterable[tuple[str, str]], file: str) -> None:
        """Leave out the tasks that none of some items, by domain and id, is of; of scores the items
        that medassay scores by another metric.

        Raises
        ------
        InputError
            When scores are given of items of several metrics: no mean is over these.
        """
        if self.scored:
            examples = {_metric_of(self.form(*place)): place[1] for place in answered}
            if len(examples) > 1:
                named = ", ".join(f"'{item}' ({m})" for m, item in sorted(examples.items()))
                raise InputError(
                    f"{file}: has scores of items that are scored by different metrics, as {named},"
                    " and an import of scores has one mean; write a table for each metric"
                )
            self._metric = next(iter(examples), "")
            metrics = {
                _metric_of(form) for own in self.items.values() for _, _, form in own.values()
            }
            self.left_out = sorted(metrics - {self._metric}) if self._metric else []
        elif self.task.parts:
            names = {self.task.part(self.form(*place)).name for place in answered}
            parts = {form: part for form, part in self.task.parts.items() if part.name in names}
            self.left_out = sorted({p.name for p in self.task.parts.values()} - names)
            self.task = TASKS[min(names)] if len(names) == 1 else tasks_together(parts)

    @cached_property
    def task(self) -> Task:
        """Return the task that reads and scores the predictions; items that judges would have to
        score are none of it.
        """
        if self.scored:
            return TASKS["closed"]
        forms = {form for items in self.items.values() for _, _, form in items.values()}
        task = task_of_plan(Plan(banks=("",), models=("",)), forms)
        if task.graders:
            raise InputError(
                f"bank '{self.banks[0].name}': its answers are scored by judges (task"
                f" '{task.name}'), which an import has none of; give scores: --columns score=…"
            )
        return task

    def domain_of(self, prediction: Prediction) -> str | None:
        """Return the domain of a prediction's item; None where no bank has it.

        Raises
        ------
        InputError
            When several domains have an item of this id, and the table does not say which is meant.
        """
        if prediction.domain:
            items = self.items.get(prediction.domain, {})
            return prediction.domain if prediction.item in items else None
        domains = self._domains_of.get(prediction.item, [])
        if len(domains) > 1:
            raise InputError(
                f"{prediction.where}: item '{prediction.item}' is in the domains"
                f" {', '.join(sorted(domains))}; add domain=… to --columns"
            )
        return domains[0] if domains else None

    def refuse_other_domain(self, prediction: Prediction) -> None:
        """Raise where a bank has an item, in another domain than a prediction says."""
        domains = self._domains_of.get(prediction.item, [])
        if prediction.domain and domains:
            raise InputError(
                f"{prediction.where}: item '{prediction.item}' is of {', '.join(sorted(domains))},"
                f" not of '{prediction.domain}'; mend the domain, or leave domain=… out"
            )

    def form(self, domain: str, name: str) -> Form:
        """Return the form of an item."""
        return self.items[domain][name][2]

    def item(self, domain: str, name: str) -> Item:
        """Return an item."""
        bank, position, _ = self.items[domain][name]
        return bank.items[position]

    def names(self, domain: str) -> list[str]:
        """Return the ids of a domain's items that are of the run, sorted."""
        return sorted(name for name in self.items[domain] if self.holds(domain, name))

    def forms(self, domains: Iterable[str]) -> set[Form]:
        """Return the forms that the run's items of some domains have in it: those that were scored
        elsewhere have no target.
        """
        if self.scored:
            return {Given.form}
        return {self.form(domain, name) for domain in domains for name in self.names(domain)}

    def holds(self, domain: str, name: str) -> bool:
        """Return whether an item is of the run."""
        form = self.form(domain, name)
        if self.scored:
            return self._metric in ("", _metric_of(form))
        return form in self.task.readers

    def record(self, domain: str, name: str) -> ItemObject:
        """Return the object of an item as the run holds it."""
        bank, position, _ = self.items[domain][name]
        record = bank_record(bank, position)
        if not self.scored:
            return record
        fields: Any = {key: value for key, value in record.items() if key in _WITHOUT_TARGET}
        stripped: ItemObject = fields
        return stripped


def _metric_of(form: Form) -> str:
    """Return the metric by which items of a form are scored where a plan names no task."""
    return TASKS[OWN_TASKS[form]].metric


def _fill(
    folder: Path,
    name: str,
    source: ImportSource,
    columns: Mapping[str, str],
    chosen: _ChosenItems,
    models: Mapping[str, ModelSpec],
) -> list[str]:
    """Write the run, and return what of the banks its predictions cover."""
    scratch = folder / "scratch.sqlite"
    base = sqlite3.connect(scratch)
    try:
        base.executescript(f"{UNSAFE}{TRIAL_TABLE}")
        _take_all(base, read_predictions(source.file, columns), chosen, source.file.name)
        answered = "SELECT DISTINCT domain, item FROM trial"
        with_value = f"{answered} WHERE score IS NOT NULL" if chosen.scored else answered
        chosen.keep(base.execute(with_value), source.file.name)
        strays = [place for place in base.execute(answered) if not chosen.holds(*place)]
        delete = "DELETE FROM trial WHERE domain = ? AND item = ?"
        n_dropped = base.executemany(delete, strays).rowcount if strays else 0
        domains = distinct(base, "domain")
        items = (chosen.record(domain, item) for domain in domains for item in chosen.names(domain))
        write_lines(folder / "items.jsonl", items)
        write_trials(folder, _trials(base, chosen))
        manifest = _manifest(base, source, columns, chosen, models)
        coverage = list(_coverage(base, chosen, domains))
        if n_dropped:
            rows = counted(n_dropped, "row")
            coverage.append(f"{rows} without a score, on items of other metrics, left out")
        if unknown := sorted(set(distinct(base, "model")) - models.keys()) if models else []:
            coverage.append(f"the models file says nothing of {', '.join(unknown)}")
    finally:
        base.close()
        scratch.unlink(missing_ok=True)
    seal_import(folder, name, manifest, chosen.task)
    return coverage


def _take_all(
    base: sqlite3.Connection, predictions: Iterator[Prediction], chosen: _ChosenItems, file: str
) -> None:
    """Put all predictions into the database; refuse those on items that no bank has, by name."""
    readers = chosen.task.readers
    unknown: dict[str, str] = {}
    judged: Counter[str] = Counter()
    n_taken = 0
    for prediction in predictions:
        domain = chosen.domain_of(prediction)
        if domain is None:
            chosen.refuse_other_domain(prediction)
            unknown.setdefault(prediction.item, prediction.where)
            continue
        if not chosen.scored and chosen.form(domain, prediction.item) not in readers:
            judged[prediction.item] += 1
            continue
        _take(base, prediction, domain, chosen)
        n_taken += 1
    banks = ", ".join(f"'{bank.name}'" for bank in chosen.banks)
    if unknown:
        named = ", ".join(f"'{item}' ({where})" for item, where in [*unknown.items()][:_NAMED])
        more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        examples = sorted(unknown.keys() & chosen.examples)
        hint = f" ('{examples[0]}' is an example there, split dev)" if examples else ""
        first = next(iter(next(iter(chosen.items.values()), {})), "")
        raise InputError(
            f"{file}: {counted(len(unknown), 'item')} not among those of bank {banks}: {named}"
            f"{more}{hint}; expected ids as '{first}', of {', '.join(sorted(chosen.items))}"
        )
    if judged:
        named = ", ".join(f"'{item}'" for item in sorted(judged)[:_NAMED])
        raise InputError(
            f"{file}: {counted(len(judged), 'item')} of bank {banks} that judges score, as {named};"
            " leave them out, or give scores: --columns score=…"
        )
    if not n_taken:
        raise InputError(f"{file}: holds no predictions")


def _take(
    base: sqlite3.Connection, prediction: Prediction, domain: str, chosen: _ChosenItems
) -> None:
    prediction = replace(prediction, domain=domain)
    check_prediction(prediction)
    target = chosen.item(domain, prediction.item).target if prediction.key else None
    if target is not None and not _is_key(str(prediction.key), target):
        raise InputError(
            f"{prediction.where}: item '{prediction.item}' has key '{prediction.key}' here and"
            f" '{target.text}' in the bank; is it the same question, and are its options in the"
            " same order?"
        )
    add_trial(base, prediction, prediction.item)


def _is_key(key: str, target: Target) -> bool:
    """Return whether a key of a table can be that of the bank; of texts nobody can tell."""
    if isinstance(target, Choice):
        right = target.options[target.place]
        return key.casefold() in (str(target.expected).casefold(), right.casefold())
    if isinstance(target, Pattern) and key not in (target.regex, target.text):
        return fits(target, key) is not False
    if isinstance(target, Range) and key != target.text:
        number, _ = extract_number(key, locale=target.locale)
        return number is None or target.lo <= number <= target.hi
    return True


def _trials(base: sqlite3.Connection, chosen: _ChosenItems) -> Iterator[dict[str, Any]]:
    """Yield the trials in sealed order, each prediction read as a reply to its item."""
    order = "domain, model, setting, mode, item, repeat"
    for domain, model, setting, mode, name, repeat, text, score in base.execute(
        f"SELECT * FROM trial ORDER BY {order}"
    ):
        if chosen.scored:
            is_given = score is not None
            outcome, reason = ("answered", "imported") if is_given else ("failed", "no score given")
            value = repr(score) if is_given else None
        else:
            item = chosen.item(domain, name)
            answer = imported_answer(item, text, chosen.task.readers[item.form][0] or "")
            outcome, value, reason = answer.outcome, answer.value, answer.reason
        place = (domain, model, setting, mode, name, repeat)
        yield imported_trial(place, text or "", outcome, value, reason)


def _coverage(
    base: sqlite3.Connection, chosen: _ChosenItems, domains: Sequence[str]
) -> Iterator[str]:
    """Yield on how many items there are predictions, and which row lacks how many."""
    items = {(domain, name) for domain in domains for name in chosen.names(domain)}
    rows: dict[tuple[str, str, str], set[tuple[str, str]]] = {}
    for model, setting, mode, domain, name in base.execute(
        "SELECT DISTINCT model, setting, mode, domain, item FROM trial ORDER BY model"
    ):
        rows.setdefault((model, setting, mode), set()).add((domain, name))
    n_complete = sum(answered == items for answered in rows.values())
    banks = ", ".join(bank.version for bank in chosen.banks)
    yield (
        f"{counted(len(items), 'item')} of {banks}: {n_complete} of {counted(len(rows), 'row')}"
        " with a prediction for each"
    )
    left_out = sorted(chosen.items.keys() - set(domains))
    if left_out:
        yield f"domains without any prediction, left out: {', '.join(left_out)}"
    if chosen.left_out:
        what = "metrics without any score" if chosen.scored else "tasks without any prediction"
        yield f"{what}, left out: {', '.join(chosen.left_out)}"
    for (model, setting, mode), answered in rows.items():
        if missing := sorted(items - answered):
            named = ", ".join(name for _, name in missing[:_NAMED])
            more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
            yield (
                f"{model} ({setting}, {mode}): {len(answered):,} of {len(items):,} items; missing:"
                f" {named}{more}"
            )


def _manifest(
    base: sqlite3.Connection,
    source: ImportSource,
    columns: Mapping[str, str],
    chosen: _ChosenItems,
    models: Mapping[str, ModelSpec],
) -> ManifestObject:
    task, names = chosen.task, distinct(base, "model")
    for column in ("model", "setting", "mode"):
        refuse_alike(distinct(base, column), f"{column}s")
    domains = {
        domain: next(iter(chosen.items[domain].values()))[0].version
        for domain in distinct(base, "domain")
    }
    banks = [bank for bank in chosen.banks if bank.version in domains.values()]
    plan = Plan(banks=tuple(bank.name for bank in banks), models=tuple(names)).to_dict()
    plan |= {"settings": distinct(base, "setting"), "modes": distinct(base, "mode")}
    ids = revision_ids(revisions(task, forms=chosen.forms(domains)))
    return {
        "kind": "import",
        "name": source.name,
        "plan": plan,
        "task": task.name,
        **tasks_entry(task),
        "source": {
            "file": source.file.name,
            "sha256": source.digest,
            "columns": dict(columns),
            "scored": chosen.scored,
        },
        "banks": [
            {**entry, "limits": limits_with_grades(entry["limits"], base)}
            for entry in map(bank_entry, banks)
        ],
        "domains": domains,
        "models": imported_models(names, models),
        "template": "none",
        "methodology": import_methodology(
            task, ids, rank_rule=plan["rank_rule"], separation=plan["separation"]
        ),
        "revisions": ids,
        # Draws follow from the banks alone: a model's interval is the same whoever stands beside
        # it, and models that are imported one by one rank as those that are imported together.
        "drawn_as": short_hash(["import", sorted(bank.content_hash for bank in banks)]),
        "created_at": now(),
        **surroundings(),
    }
