"""A run made from a sealed one: its name, its manifest, and what cannot be made into one.

The source keeps its bytes.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from medassay.bank.check import form_of
from medassay.core.canonical import short_hash
from medassay.core.clock import now
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.target import Form
from medassay.core.records.task import Task
from medassay.core.records.verdict import Grader
from medassay.errors import IncompleteError, InputError
from medassay.judging.grader_text import hashed_id
from medassay.kinds.catalog import task_of_run
from medassay.runner.manifest import surroundings
from medassay.storage.jsonl import read_as, read_jsonl
from medassay.storage.object_store import fetch_runs
from medassay.storage.run import Run, create_run, latest, open_run

SURROUNDINGS = frozenset(
    [
        "schema_version",
        "run",
        "created_at",
        "code",
        "parsers",
        "scorers",
        "python",
        "packages",
        "machine",
    ]
)


def sealed_source(run: Run | str | Path, what: str) -> Run:
    """Return the run if it is sealed; `what` is what shall be done with it, for the error.

    Raises
    ------
    IncompleteError
        When the run is not finished.
    """
    source = run if isinstance(run, Run) else open_run(Path(run))
    if not source.sealed:
        raise IncompleteError(f"run {source.path.name}: not finished; only sealed runs are {what}")
    return source


class _DeletedLine(msgspec.Struct):
    domain: str
    id: str
    tombstone: str | None = None


def deleted_items(run: Run) -> list[dict[str, str]]:
    """Return domain and id of each item of a run that was deleted by law.

    Its answers cannot be scored any more.
    """
    lines = read_as(run.path / "items.jsonl", _DeletedLine)
    return [{"domain": line.domain, "item": line.id} for line in lines if line.tombstone]


def derived_run(
    source: Run, identity: ManifestObject, runs: Path, graders: Mapping[str, Grader]
) -> Run:
    """Return the unfinished run made from `source` in this way, or a new one.

    It names the items that were deleted from the source.
    """
    if deleted := deleted_items(source):
        identity = {**identity, "deleted_items": deleted}
    name = f"{source.id}-{short_hash(_named_by(identity, graders))}"
    fetch_runs(runs.parent, source.id)
    counter, last = latest(runs, name)
    if last is not None and not last.sealed:
        return last
    identity.pop("parsers", None)  # hashes in place of which there are revisions now
    manifest: ManifestObject = {**identity, "created_at": now(), **surroundings()}
    return create_run(runs, f"{name}-{counter + 1}", manifest)


def _named_by(identity: ManifestObject, graders: Mapping[str, Grader]) -> ManifestObject:
    """Return what the name of a derived run is the hash of: graders by the ids that they had before
    revisions.

    So a run that was begun then is found again; what later revisions change stands in the
    methodology.
    """
    named = identity.copy()
    named.pop("revisions", None)
    named.pop("judge_prompts", None)
    if graders:
        named["rubrics"] = {domain: hashed_id(grader) for domain, grader in graders.items()}
    return named


def forms_held(run: Run) -> set[Form]:
    """Return the forms of a run's items that were not deleted."""
    records = read_jsonl(run.path / "items.jsonl")
    return {form_of(record) for record in records if "tombstone" not in record}


def refuse_unscorable(run: Run, task: Task, forms: set[Form]) -> None:
    """Refuse a run with items of forms that a task cannot score, before anything is written.

    Parameters
    ----------
    forms : of the run's items that were not deleted
    """
    if not forms:
        raise InputError(f"run {run.id}: all its items were deleted; nothing is left to score")
    strange = forms - task.readers.keys()
    if strange:
        raise InputError(
            f"run {run.id}: holds items of form {', '.join(sorted(strange))}, which task "
            f"'{task.name}' cannot score; its forms are {', '.join(sorted(task.readers))}"
        )
    made_by = task_of_run(run.manifest)
    if made_by.asks != task.asks:
        raise InputError(
            f"run {run.id}: task '{made_by.name}' asked for likelihoods, not replies; '{task.name}'"
            " needs a run of its own"
            if made_by.asks != "reply"
            else (
                f"run {run.id}: task '{made_by.name}' asked for replies; '{task.name}' needs"
                " likelihoods: run its plan"
            )
        )
    if task.parser_before:  # takes answers as the run read them
        return
    read_by = made_by.readers
    for form in forms & read_by.keys():
        if read_by[form][0] is not None and read_by[form][0] != task.readers[form][0]:
            raise InputError(
                f"run {run.id}: task '{run.manifest.task}' reads answers otherwise than"
                f" '{task.name}' does; "
                f'run its plan with task = "{task.name}": stored replies are not asked for again'
            )
