"""From banks, runs and workshops to what people review: items, pairs, answers, preferences and
verdicts.

What reviewers see and what they must not (model, judge, run) are kept apart from the start.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from medassay.bank.folder import bank_records
from medassay.bank.run_items import RunItems
from medassay.bank.serialize import item_record
from medassay.core.records.item import Bank
from medassay.core.records.item_line import ItemLine, Statement, item_line
from medassay.core.records.item_object import ItemObject
from medassay.core.records.statistics import ScoreScale
from medassay.core.records.target import LETTERS
from medassay.core.records.task import Task
from medassay.core.records.trial import Trial, TrialLine
from medassay.errors import InputError
from medassay.review.sampling import draw_key, stratified_sample
from medassay.review.store.studies import NewEntry
from medassay.storage.jsonl import read_as
from medassay.storage.records import read_stored_verdicts, read_trials
from medassay.storage.run import Run

_SHOWN = ("context", "question", "path", "condition", "source", "rationale", "reference")
_PAIRED = ("context", "question", "options", "reference", "path")
_TRIAL = ("domain", "model", "setting", "mode", "item", "repeat")
MOST_TEXT = 200_000  # characters of a source text beside an item


def item_content(record: ItemObject) -> dict[str, Any]:
    """Return what a reviewer sees of an item, its key among it."""
    line = item_line(record)
    answers = [
        answer for key in ("regex", "range", "diagnoses", "record") if (answer := record.get(key))
    ]
    return {
        **{key: value for key in _SHOWN if (value := record.get(key))},
        "language": line.language,
        "options": [{"letter": LETTERS[at], "text": text} for at, text in enumerate(line.options)],
        **({"expected": line.expected} if line.expected else {}),
        "facts": _statements(line.facts or (), "f"),
        "criteria": _statements(line.criteria or (), "c"),
        **({"answer": answers[-1]} if answers else {}),
    }


def _statements(parts: Iterable[str | Statement], letter: str) -> list[dict[str, Any]]:
    """Return facts or criteria with their ids; those without get a letter and their number."""
    statements = [Statement(text=part) if isinstance(part, str) else part for part in parts]
    return [
        {"id": f"{letter}{at}" if statement.id is None else statement.id, "text": statement.text}
        for at, statement in enumerate(statements, 1)
    ]


def entries_of_records(
    records: Iterable[ItemObject],
    beside: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[NewEntry]:
    """Return items of a bank as entries of an item review.

    A quiz and its open form are one entry, that of the quiz.

    Parameters
    ----------
    beside : document → `graph` and `source_text`, shown next to the items made from it
    """
    more = beside or {}
    return [
        _item(first, more.get(_document(first), {}), others)
        for first, *others in _forms_of(filter(_is_shown, records))
    ]


def _forms_of(records: Iterable[ItemObject]) -> list[list[ItemObject]]:
    """Return the records by question, in their order: a quiz with its open form behind it, all else
    alone.
    """
    groups: dict[tuple[Any, ...], list[ItemObject]] = {}
    for record in records:
        line = item_line(record)
        base = line.id.removesuffix("-quiz").removesuffix("-open")
        key: tuple[Any, ...] = (line.id,)
        if line.meta.question:
            key = (str(line.meta.question), "")
        elif base != line.id:
            key = (base, line.question)
        groups.setdefault((*key, line.language), []).append(record)
    form_groups: list[list[ItemObject]] = []
    for group in groups.values():
        quiz = [record for record in group if record.get("options")]
        if len(quiz) == 1:
            form_groups.append([*quiz, *(record for record in group if record is not quiz[0])])
        else:
            form_groups += [[record] for record in group]
    return form_groups


def _is_shown(record: ItemObject) -> bool:
    return "commitment" not in record and "tombstone" not in record


def _item(
    record: ItemObject,
    beside: Mapping[str, Any],
    others: Sequence[ItemObject] = (),
) -> NewEntry:
    """Return an item as an entry, with what its other forms say otherwise."""
    line = item_line(record)
    content = {**item_content(record), **beside}
    hidden: dict[str, Any] = {
        "revision": line.revision,
        "domain": line.domain,
        "kind": line.kind,
    }
    if others:
        other_forms = [
            {
                key: str(other[key])
                for key in ("question", "reference")
                if other.get(key) and other[key] != record.get(key)
            }
            for other in others
        ]
        content |= {"other_forms": other_forms}
        hidden |= {"forms": {form.id: form.revision for form in map(item_line, others)}}
    return NewEntry(
        item=line.id,
        content=content,
        hidden=hidden,
        category=line.category or line.domain,
    )


def _document(record: ItemObject) -> str:
    """Return the name of the document that an item was made from, as its maker noted it."""
    return str(item_line(record).meta.question or "").rpartition("/")[0]


def pair_entries(derived: Bank, original: Bank) -> list[NewEntry]:
    """Return the items of a bank beside those of another that they were made from.

    Raises
    ------
    InputError
        When no item of one is found in the other.
    """
    before = {item.id: record for item, record in bank_records(original)}
    entries = []
    for _, record in bank_records(derived):
        line = item_line(record)
        noted = (line.meta.of, line.meta.question)
        names = [*(str(name) for name in noted if name is not None), line.id]
        name = next((name for name in names if name in before), None)
        if name is not None:
            what = str(line.meta.maker or "derived")
            entries.append(paired_entry(line, before[name], record, what))
    if not entries:
        raise InputError(
            f"no item of {derived.version} was made from one of {original.version}; expected the"
            " same ids, or `meta.of` with the id of the original"
        )
    return entries


def paired_entry(
    item: ItemLine, before: Mapping[str, Any], after: Mapping[str, Any], what: str
) -> NewEntry:
    """Return an original beside what was derived from it, as an entry; `item` names both, and
    `what` says how the second was derived.
    """
    return NewEntry(
        item=item.id,
        content={
            "what": what,
            "original": _side(before),
            "derived": _side(after),
            "original_language": before.get("language", item.language),
            "derived_language": after.get("language", item.language),
        },
        hidden={"revision": item.revision, "domain": item.domain},
        category=item.category or item.domain,
    )


def _side(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the texts of one side of a pair, in the order in which they are read."""
    side = []
    for key in (*_PAIRED, "expected"):
        value = record.get(key)
        if isinstance(value, list):
            value = "\n".join(f"{LETTERS[at]}. {text}" for at, text in enumerate(value))
        if value:
            side.append({"label": key, "text": str(value)})
    return side


def run_entries(run: Run, form: str) -> list[NewEntry]:
    """Return the answers of a run as entries, who gave them hidden: one by one, in twos, or with a
    judge's verdict.

    Parameters
    ----------
    form : `answer`, `preference` or `judge`; or `item`: the items of the run

    Raises
    ------
    InputError
        When there are no answers, no second model, or no verdicts.
    """
    items = RunItems(run.path, run.manifest.domains)
    if not any(item.question.strip() for item in items):
        raise InputError(
            f"run {run.id}: its items have no questions, so that nobody could judge an answer;"
            " import a bank or a run of one"
        )
    if form == "item":
        # Each by itself: private ones are opened against their commitments one by one.
        return [_item(record, {}) for record in map(item_record, items) if _is_shown(record)]
    makers = {"answer": _answers, "preference": _preferences, "judge": _verdicts}
    if form not in makers:
        raise InputError(
            f"a run has no entries for the form '{form}'; expected item, {', '.join(makers)}"
        )
    entries = [*makers[form](run, items)]
    if not entries:
        why = {
            "answer": "no answer",
            "preference": "no item that two models answered",
            "judge": "no verdict; it was not judged",
        }
        raise InputError(f"run {run.id}: holds {why[form]}")
    return entries


def _trials(run: Run) -> Iterator[Trial]:
    """Yield the answers of models: a baseline says nothing that needs a physician."""
    baselines = run.manifest.baselines
    for trial in read_trials(run.path):
        if trial.outcome == "answered" and trial.text and trial.model not in baselines:
            yield trial


def _question_content(items: RunItems, domain: str, item: str) -> dict[str, Any]:
    content = item_content(items.record(domain, item))
    content.pop("path", None)  # of the item, not of the answer
    return content


def _named(trial: TrialLine) -> dict[str, Any]:
    """Return what names a trial beside an entry."""
    return {name: getattr(trial, name) for name in _TRIAL}


def _scale_of(run: Run, task: Task) -> ScoreScale:
    """Return the scale of the scores that a task gives."""
    scales = {statistics.metric: statistics.scale for statistics in run.statistics.by_metric}
    return scales.get(task.metric, run.statistics.scale)


def _answers(run: Run, items: RunItems) -> Iterator[NewEntry]:
    from medassay.kinds.catalog import task_of_run  # the review server needs no kinds

    task = task_of_run(run.manifest)
    for trial in _trials(run):
        scale = _scale_of(run, task.part(items.own_form(trial.domain, trial.item)))
        yield NewEntry(
            item=trial.item,
            content={
                **_question_content(items, trial.domain, trial.item),
                "shown_answer": trial.text,
            },
            hidden={
                "run": run.id,
                "trial": _named(trial),
                "scale": {"lo": scale.lo, "hi": scale.hi},
            },
            category=trial.domain,
        )


def _preferences(run: Run, items: RunItems) -> Iterator[NewEntry]:
    """Yield two answers to one question: every item once for each two neighbours in an order of its
    own.
    """
    of: dict[tuple[Any, ...], list[Trial]] = defaultdict(list)
    for trial in _trials(run):
        if trial.repeat == 0:
            of[trial.domain, trial.item, trial.mode].append(trial)
    for (domain, name, _), trials in sorted(of.items()):
        trials.sort(
            key=lambda trial: draw_key(run.id, "pair", domain, name, trial.model, trial.setting)
        )
        for first, second in zip(trials[::2], trials[1::2], strict=False):
            yield NewEntry(
                item=name,
                content={
                    **_question_content(items, domain, name),
                    "answers": [first.text, second.text],
                },
                hidden={
                    "run": run.id,
                    "first": _named(first),
                    "second": _named(second),
                },
                category=domain,
            )


def _verdicts(run: Run, items: RunItems) -> Iterator[NewEntry]:
    if not (run.path / "verdicts.jsonl").exists():
        return
    texts = {trial.place: trial.text for trial in _trials(run)}
    from medassay.kinds.catalog import judged_part, task_of_run

    scale = _scale_of(run, judged_part(task_of_run(run.manifest)))
    for verdict, _ in read_stored_verdicts(run.path / "verdicts.jsonl"):
        if verdict.outcome != "valid" or verdict.place not in texts:
            continue
        yield NewEntry(
            item=verdict.item,
            content={
                **_question_content(items, verdict.domain, verdict.item),
                "shown_answer": texts[verdict.place],
            },
            hidden={
                "run": run.id,
                "judge": verdict.judge,
                "trial": _named(verdict),
                "verdict": {
                    "score": verdict.score,
                    "lo": scale.lo,
                    "hi": scale.hi,
                    "body": verdict.body,
                },
            },
            category=verdict.domain,
        )


def private_run(run: Run) -> bool:
    """Return whether a run holds private items with their texts."""
    lines = read_as(run.path / "items.jsonl", _PrivateLine)
    return any(line.kind == "synthetic" and line.commitment is None for line in lines)


class _PrivateLine(msgspec.Struct):
    kind: str = "public"
    commitment: str | None = None


def sampled(entries: Sequence[NewEntry], n: int, seed: str) -> list[NewEntry]:
    """Return a seeded sample of entries in which every category is present, all of them where `n`
    is 0.

    Raises
    ------
    InputError
        When there are fewer entries than that, or more categories.
    """
    if not n:
        return [*entries]
    names = {f"{at}\x1f{entry.item}": entry for at, entry in enumerate(entries)}
    categories = {name: entry.category for name, entry in names.items()}
    return [names[name] for name in stratified_sample(categories, n, seed)]
