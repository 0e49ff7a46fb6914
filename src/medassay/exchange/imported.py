"""What every import shares: a folder that becomes a run whole or not at all, and its manifest."""

import datetime as dt
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from medassay.core.canonical import short_hash
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import Plan
from medassay.errors import InputError
from medassay.kinds.catalog import TASKS
from medassay.runner.manifest import import_methodology, surroundings
from medassay.runner.revisions import revision_ids, revisions
from medassay.storage.run import Run, latest, open_run, refuse_inside

# What an entry says of a model itself, not of how it is asked.
_TOLD = (
    *("model", "version", "family", "licence", "size", "context", "quantisation"),
    *("engine", "engine_version"),
)


class ImportSource(msgspec.Struct, frozen=True, kw_only=True):
    """A file of somebody else's results."""

    file: Path
    digest: str
    task: str
    licence: str = "as of the imported file"
    limits: str = "Imported predictions: the questions are not here."
    title: str = ""

    @property
    def name(self) -> str:
        """Return what the run and its bank are called: by default as the file."""
        return self.title or self.file.stem


def file_digest(file: Path) -> str:
    """Return the SHA-256 of a file, or say that it cannot be read."""
    try:
        with file.open("rb") as data:
            return hashlib.file_digest(data, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None


def new_run(
    identity: Sequence[Any], fill: Callable[[Path, str], None], *, runs: Path, to: Path | None
) -> Run:
    """Return the run that `fill` makes in a draft folder; what fails leaves nothing behind.

    Parameters
    ----------
    identity : what names the run, with a counter, in the folder `runs`
    fill : takes the draft folder and the name of the run
    to : the run's own folder instead
    """
    if to is None:
        name = f"import-{short_hash(list(identity))}"
        to = runs / f"{name}-{latest(runs, name)[0] + 1}"
    if to.exists():
        raise InputError(f"{to}: exists; choose another folder with --to, nothing was written")
    refuse_inside(to)
    to.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{to.name}-", dir=to.parent))
    draft.chmod(0o755)
    try:
        fill(draft, to.name)
        draft.rename(to)
    finally:
        if draft.exists():
            shutil.rmtree(draft)
    return open_run(to)


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
    content = content or source.digest
    version = f"import-{content[:12]}"
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
            TASKS[source.task], rank_rule=plan["rank_rule"], separation=plan["separation"]
        ),
        "revisions": revision_ids(revisions(TASKS[source.task])),
        "created_at": dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **surroundings(),
    }
