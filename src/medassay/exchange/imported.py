"""What every import shares: a folder that becomes a run whole or not at all, and its manifest."""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from medassay.bank.run_items import RunItems
from medassay.core.canonical import canonical, short_hash
from medassay.core.clock import now
from medassay.core.files import whole_folder
from medassay.core.parser import Extraction
from medassay.core.records.answer import Answer
from medassay.core.records.completion import Completion
from medassay.core.records.item import Item
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import Plan
from medassay.core.records.target import Form
from medassay.core.records.task import Task
from medassay.core.records.trial import TRIAL_KEY, TrialKey
from medassay.core.records.verdict import Grader, Verdict
from medassay.core.wording import as_seen
from medassay.errors import InputError
from medassay.judging.queue import Answers
from medassay.kinds.catalog import PARSERS, TASKS
from medassay.kinds.read_answer import prompt_as_shown, read_answer
from medassay.runner.finish import finish
from medassay.runner.judge_stage import verdict_fields
from medassay.runner.manifest import import_methodology, surroundings
from medassay.runner.revisions import revision_ids, revisions
from medassay.runner.write import write_judged_scores, write_scores
from medassay.storage.run import (
    Run,
    create_run,
    file_sha256,
    latest,
    open_run,
    refuse_inside,
)

# What an entry says of a model itself, not of how it is asked.
_TOLD = (
    *("model", "version", "family", "licence", "size", "context", "quantisation"),
    *("engine", "engine_version"),
)


# What the limits of an import say where its scores are not all 0 or 1. The metric keeps the name
# under which they are compared with other runs of the same items.
_GRADED = "Scores are as they came, some between 0 and 1: what is called accuracy is their mean."


class ImportSource(msgspec.Struct, frozen=True, kw_only=True):
    """A file of somebody else's results.

    `forms` are those of its items; None where they may be any that its task takes.
    """

    file: Path
    digest: str
    task: str
    forms: Collection[Form] | None = None
    licence: str = "as of the imported file"
    limits: str = "Imported predictions: the questions are not here."
    title: str = ""

    @property
    def name(self) -> str:
        """Return what the run and its bank are called: by default as the file."""
        return self.title or self.file.stem


def refuse_alike(names: Iterable[str], what: str) -> None:
    """Refuse names that look the same and are written with other characters ("é" is one, or two).

    Raises
    ------
    InputError
        Saying `what` they name, and the name.
    """
    by_look: dict[str, str] = {}
    for name in names:
        if by_look.setdefault(as_seen(name), name) != name:
            raise InputError(
                f"two {what} are called '{name:.60}', written with other characters; write both in"
                " one way (Unicode NFC, without characters of no width)"
            )


def file_digest(file: Path) -> str:
    """Return the SHA-256 of a file, or say that it cannot be read, or not twice."""
    if file.is_fifo():
        raise InputError(
            f"{file}: a pipe can be read once only; write it to a file, and import that"
        )
    try:
        return file_sha256(file)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None


def new_run(
    identity: Sequence[Any],
    fill: Callable[[Path, str], None],
    *,
    runs: Path | None,
    to: Path | None,
) -> Run:
    """Return the run that `fill` makes in a draft folder; what fails leaves nothing behind.

    Parameters
    ----------
    identity : what names the run, with a counter, in the folder `runs`
    runs : default: runs/
    fill : takes the draft folder and the name of the run
    to : the run's own folder instead
    """
    if to is None:
        runs, name = runs or Path("runs"), f"import-{short_hash(list(identity))}"
        to = runs / f"{name}-{latest(runs, name)[0] + 1}"
    if to.exists():
        raise InputError(f"{to}: exists; choose another folder with --to, nothing was written")
    refuse_inside(to)
    with whole_folder(to) as draft:
        fill(draft, to.name)
    return open_run(to)


def imported_answer(item: Item, text: str, parser: str, mode: Extraction = "standard") -> Answer:
    """Return what a reply that came with an import says, read as that of a model would be."""
    return read_answer(item, prompt_as_shown(item), Completion(text=text), PARSERS[parser], mode)


def imported_trial(
    place: TrialKey, text: str, outcome: str, value: str | None, reason: str
) -> dict[str, Any]:
    """Return the line of trials.jsonl of an answer that came with an import."""
    return {
        "schema_version": 1,
        **dict(zip(TRIAL_KEY, place, strict=True)),
        "text": text,
        "finish": "stop",
        "outcome": outcome,
        "value": value,
        "reason": reason,
    }


def imported_verdict(
    place: TrialKey, judge: str, item: Item, grader: Grader, verdict: Verdict, **more: Any
) -> dict[str, Any]:
    """Return the line of verdicts.jsonl of a verdict that nobody was asked for."""
    return {
        "schema_version": 1,
        **dict(zip(TRIAL_KEY, place, strict=True)),
        "judge": judge,
        "seat": 0,
        **more,
        "rubric": grader.id,
        **verdict_fields(verdict),
        "masked": 0,
        "cut": 0,
        "score": grader.score(item, verdict),
    }


def write_trials(folder: Path, trials: Iterable[Mapping[str, Any]]) -> None:
    """Write the answers of an import, in sealed order; nobody knows how long they took."""
    with (
        (folder / "trials.jsonl").open("wb") as lines,
        (folder / "timings.jsonl").open("wb") as timings,
    ):
        for trial in trials:
            lines.write(canonical(trial) + b"\n")
            timings.write(b"{}\n")


def seal_import(
    folder: Path,
    name: str,
    manifest: ManifestObject,
    task: Task,
    graders: Mapping[str, Grader] | None = None,
) -> None:
    """Score the answers in a draft folder, and seal it as a run; with graders by their verdicts."""
    run = create_run(folder.parent, folder.name, {**manifest, "run": name})
    items = RunItems(run.path, run.manifest.domains)
    write_scores(run, task, items)
    if graders:
        write_judged_scores(run, Answers(run, items, task), graders, 1)
    finish(run, task, items, [])


def limits_with_grades(limits: str, base: sqlite3.Connection) -> str:
    """Return the limits of an import of scores, which a scratch database holds."""
    is_graded = "SELECT EXISTS (SELECT 1 FROM trial WHERE score NOT IN (0, 1))"
    return f"{limits} {_GRADED}".strip() if base.execute(is_graded).fetchone()[0] else limits


def imported_models(
    models: Sequence[str], entries: Mapping[str, ModelSpec]
) -> dict[str, dict[str, Any]]:
    """Return the entries of imported models: their names, and what a models file says of them
    besides how they are asked.

    Raises
    ------
    InputError
        When the file names none of them.
    """
    if entries and not set(models) & entries.keys():
        raise InputError(
            f"--models: names none of {', '.join(models[:5])}; expected entries whose id is the"
            f" name in the table, found {', '.join([*entries][:5])}"
        )
    return {
        model: {
            "id": model,
            "provider": "import",
            "location": "external",
            **_known_of(entries, model),
        }
        for model in models
    }


def _known_of(entries: Mapping[str, ModelSpec], model: str) -> dict[str, Any]:
    entry = entries.get(model)
    if entry is None:
        return {}
    values = {name: getattr(entry, name) for name in _TOLD}
    return {"location": entry.location} | {k: v for k, v in values.items() if v}


def import_manifest(
    source: ImportSource,
    *,
    domains: Sequence[str],
    models: Sequence[str],
    settings: Sequence[str],
    n_items: int,
    content: str | None,
    entries: Mapping[str, ModelSpec] | None = None,
    **more: Any,
) -> ManifestObject:
    """Return the manifest of an import; `more` is added to what it remembers of its source.

    Parameters
    ----------
    content : SHA-256 of the items by their content, which stands for the version of a bank: imports
        of the same items are one series and join. None where the files say too little to know the
        items again: then the hash of the source stands for them.
    entries : say more of some models than their names
    """
    for names, what in ((domains, "domains"), (models, "models"), (settings, "settings")):
        refuse_alike(names, what)
    content = content or source.digest
    version = f"import-{content[:12]}"
    ids = revision_ids(revisions(TASKS[source.task], forms=source.forms))
    plan = Plan(banks=(version,), models=tuple(models), task=source.task).to_dict()
    plan["settings"] = list(settings)
    return {
        "kind": "import",
        "name": source.name,
        "plan": plan,
        "task": source.task,
        "source": {"file": source.file.name, "sha256": source.digest, **more},
        "banks": [
            {
                "name": source.name,
                "version": version,
                "content_sha256": content,
                "title": source.title or source.file.name,
                "licence": source.licence,
                "limits": source.limits,
                "domains": list(domains),
                "may_leave": True,
                "items": n_items,
            }
        ],
        "domains": dict.fromkeys(domains, version),
        "models": imported_models(models, entries or {}),
        "template": "none",
        "methodology": import_methodology(
            TASKS[source.task], ids, rank_rule=plan["rank_rule"], separation=plan["separation"]
        ),
        "revisions": ids,
        "created_at": now(),
        **surroundings(),
    }
