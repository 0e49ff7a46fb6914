"""What may be removed from a workspace: unfinished, superseded and orphaned files.

Never what a site, a ledger or a kept run names.
"""

import datetime as dt
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from medassay.core.json import unchecked
from medassay.core.ledger import LEDGER
from medassay.errors import IntegrityError
from medassay.storage.run import LEASES, LOCK, STUDIES, Run, is_locked

Kind = Literal["unfinished", "superseded", "orphaned"]
_HALF = (".part", ".new")  # files that a process was writing when it ended
_RUN_NAME = re.compile(rb'"run":"([^"]+)"')
_LEASE_SECONDS = 600.0  # a lease is renewed every few seconds


class Leftover(msgspec.Struct, frozen=True):
    """A file or folder that may go, why, and how many bytes it takes."""

    path: Path
    kind: Kind
    why: str
    size: int


def leftovers(workspace: Path, sites: Sequence[Path] = ()) -> list[Leftover]:
    """Return what may be removed from a workspace, by kind and name.

    Unfinished are runs without a seal at which nobody works; what was answered stays in the
    response store. Superseded are sealed runs of a plan of which there is a later sealed one.
    Orphaned are half-written files and folders of studies that ended.

    Parameters
    ----------
    sites : sites elsewhere, whose runs are kept as those of sites below the workspace are
    """
    runs = [Run(path.parent) for path in sorted((workspace / "runs").glob("*/manifest.json"))]
    published = set(_published(workspace, sites))
    gone = {run.path for run in _superseded(runs, published)}
    leftovers_found = [
        _leftover(run.path, "unfinished", "not sealed, nobody works at it")
        for run in runs
        if not run.sealed and not at_work(run.path)
    ]
    leftovers_found += [
        _leftover(path, "superseded", "a later run of its plan is sealed") for path in sorted(gone)
    ]
    leftovers_found += [
        _leftover(path, "orphaned", "half written when its process ended")
        for path in _half_written(workspace)
        if not any(path.is_relative_to(leftover.path) for leftover in leftovers_found)
    ]
    leftovers_found += [
        _leftover(path, "orphaned", "of a study that ended")
        for path in sorted((workspace / STUDIES).glob("*"))
        if not at_work(path)
    ]
    return leftovers_found


def remove(leftovers_chosen: Iterable[Leftover]) -> int:
    """Remove leftovers; return how many bytes that frees."""
    freed = 0
    for leftover in leftovers_chosen:
        if leftover.path.is_dir():
            for path in [leftover.path, *leftover.path.rglob("*")]:
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode | 0o700)  # sealed files are read-only
            shutil.rmtree(leftover.path)
        else:
            leftover.path.unlink(missing_ok=True)
        freed += leftover.size
    return freed


def at_work(folder: Path) -> bool:
    """Return whether a process works on a run: on this machine, or on another one that keeps a
    lease.
    """
    now = dt.datetime.now(dt.UTC).timestamp()
    leases = [path for path in (folder / LEASES).glob("*") if path.is_file()]
    young = any(now - path.stat().st_mtime < _LEASE_SECONDS for path in leases)
    return young or is_locked(folder / LOCK)


def _superseded(runs: Sequence[Run], published: set[str]) -> Iterator[Run]:
    """Yield sealed runs with a later sealed one of their plan that no site and no run that stays
    names.
    """
    sealed = [run for run in runs if run.sealed]
    named = {name for run in runs for name in _sources(run)}
    for run in sealed:
        stem, _, counter = run.path.name.rpartition("-")
        later = [
            other
            for other in sealed
            if other.path.name.rpartition("-")[0] == stem
            and counter.isdigit()
            and int(other.path.name.rpartition("-")[2]) > int(counter)
        ]
        if later and run.id not in published and run.id not in named:
            yield run


class _Sources(msgspec.Struct, frozen=True):
    """How manifests of all versions name the runs that a run was made from."""

    again_of: Any = None
    judged_from: Any = None
    rescored_from: Any = None
    fresh_of: Any = None


def _sources(run: Run) -> Iterator[str]:
    """Yield the runs that a run names, as far as it can be read: it is offered for removal too."""
    with suppress(IntegrityError):
        for source in msgspec.structs.astuple(unchecked(run.manifest_document, _Sources)):
            name = source.get("run") if isinstance(source, dict) else source
            if isinstance(name, str):
                yield name


def _published(workspace: Path, sites: Sequence[Path]) -> Iterator[str]:
    """Yield the runs that sites hold, as their ledgers and the publications themselves name
    them.
    """
    ledgers = [*workspace.rglob(LEDGER), *(site / LEDGER for site in sites)]
    for ledger in ledgers:
        for path in (ledger, *ledger.parent.glob("p/*/data/**/manifest.json")):
            yield from (name.decode() for name in _RUN_NAME.findall(path.read_bytes()))


def _half_written(workspace: Path) -> Iterator[Path]:
    for folder in ("runs", "responses", "measures", "retrieved", "spend"):
        for path in sorted((workspace / folder).rglob("*")):
            if path.is_file() and path.name.endswith(_HALF):
                holder = next((p for p in path.parents if (p / LOCK).is_file()), None)
                if holder is None or not at_work(holder):
                    yield path


def _leftover(path: Path, kind: Kind, why: str) -> Leftover:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return Leftover(path, kind, why, sum(file.stat().st_size for file in files))
