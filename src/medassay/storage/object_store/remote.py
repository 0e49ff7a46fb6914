"""Workspaces, runs and sites in an object store: what is fetched before they are used, and carried
over afterwards.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from medassay.core.ledger import LEDGER
from medassay.errors import InputError
from medassay.storage.asked import INQUIRIES
from medassay.storage.object_store.mirror import Mirror, is_address, is_own, mirror_of, states
from medassay.storage.response import ResponseStore
from medassay.storage.run import JOURNALS, LEASES, LOCK, SEAL, SUMS, is_locked

STORES = ("responses", "measures", "retrieved", INQUIRIES)  # of a workspace
_RUN = re.compile(r"(?P<workspace>[a-z0-9+]+://.+)/(?P<run>runs/[^/]+)/?")


def open_workspace(place: str | Path, plan_hash: str) -> Path:
    """Return the folder of a workspace: of one in an object store, what a run of a plan needs is
    fetched first.
    """
    if not is_address(place):
        return Path(place)
    mirror = Mirror(str(place))
    mirror.pull("banks.lock")
    fetch_stores(mirror.folder)
    fetch_runs(mirror.folder, plan_hash)
    return mirror.folder


def fetch_runs(workspace: Path, plan_hash: str) -> None:
    """Fetch the runs whose names begin with a plan's hash.

    Those stay as they are that are sealed here or at work here.
    """
    if (mirror := mirror_of(workspace)) is None:
        return
    run_paths = (workspace / "runs").glob(f"{plan_hash}-*")
    own_runs = {run.name for run in run_paths if (run / SEAL).is_file() or is_locked(run / LOCK)}
    mirror.pull(
        "runs",
        accepts=lambda name: (
            name.startswith(f"runs/{plan_hash}-") and name.split("/")[1] not in own_runs
        ),
    )


def left_behind(run: Path) -> bool:
    """Return whether a run is sealed here, and its seal did not reach the object store."""
    mirror = mirror_of(run)
    if mirror is None or not (run / SEAL).is_file():
        return False
    return f"{mirror.name(run)}/{SEAL}" not in mirror.listed(mirror.name(run))


def _only_here(folder: Path) -> bool:
    """Return whether what this machine has of a run is newer than what the store has: at work here,
    or left behind.
    """
    return is_locked(folder / LOCK) or left_behind(folder)


def fetch_stores(workspace: Path) -> None:
    """Fetch the replies and measures that a workspace in an object store keeps."""
    if (mirror := mirror_of(workspace)) is not None:
        for name in STORES:
            mirror.pull(name)


def carry_home(run: Path) -> None:
    """Carry a finished run and what it added to its workspace over, if that is in an object store.

    The seal goes last.
    """
    mirror = mirror_of(run)
    if mirror is None:
        return
    _carry_stores(mirror)
    if (mirror.folder / "banks.lock").is_file():
        mirror.push(mirror.folder / "banks.lock")
    # Whoever sees the seal may rely on everything that it covers being there.
    mirror.push_new(mirror.name(run), last=(SUMS, SEAL))
    for name in (*JOURNALS, LEASES):
        mirror.remove(f"{mirror.name(run)}/{name}", accepts=lambda name_: "/driver-" not in name_)


def _carry_stores(mirror: Mirror) -> None:
    """Carry over what was added to the stores."""
    # Pieces of an interrupted process are taken over into a segment before they are removed; later
    # ones stay.
    pieces = {name for name in mirror.listed("responses") if "@" in name}
    mirror.pull("responses")
    ResponseStore(mirror.folder / "responses").close()
    for name in STORES:
        mirror.push_new(name)
    mirror.remove(
        "responses",
        accepts=lambda name: (
            name in pieces and not (mirror.folder / name.partition("@")[0]).exists()
        ),
    )


@contextmanager
def using_stores(workspace: str | Path) -> Iterator[Path]:
    """Yield the folder of a workspace for a study.

    From an address its stores are fetched, and what is new carried over.
    """
    if not is_address(workspace):
        yield Path(workspace)
        return
    mirror = Mirror(str(workspace))
    fetch_stores(mirror.folder)
    try:
        yield mirror.folder
    except BaseException:
        with suppress(OSError, InputError):  # the first reason is the one to tell
            _carry_stores(mirror)
        raise
    _carry_stores(mirror)


def localize(place: str | Path) -> Path:
    """Return a place on this machine: an address is fetched, and its folder returned.

    Raises
    ------
    InputError
        When there is nothing at the address.
    """
    if not is_address(place):
        return Path(place)
    # A run keeps its place in its workspace: what is made from it belongs beside it.
    match = _RUN.fullmatch(str(place))
    mirror, under = (
        (Mirror(match["workspace"]), match["run"]) if match else (Mirror(str(place)), "")
    )
    there = mirror.listed(under)
    if not there:
        raise InputError(f"{place}: nothing is there")
    if match and _only_here(mirror.folder / under):
        return mirror.folder / under
    mirror.pull(under)
    if {
        f"{under}/{SEAL}".lstrip("/"),
        LEDGER,
    } & there.keys():  # whole: nothing else belongs to it
        for path in states(mirror.folder / under):
            if mirror.name(path) not in there and not is_own(mirror.name(path)):
                path.chmod(0o644)
                path.unlink()
    return mirror.folder / under


@contextmanager
def changing(address: str, *, last: str = "") -> Iterator[Path]:
    """Yield the folder of what is at an address, and carry over what was changed or removed there,
    one file last.

    Where there is such a file, the folder holds nothing else than the address: what an attempt left
    that failed is removed first.

    Raises
    ------
    InputError
        When somebody else changed that file meanwhile; it was not carried over then.
    """
    mirror = Mirror(address)
    newer = {run.name for run in (mirror.folder / "runs").glob("*") if _only_here(run)}
    mirror.pull(accepts=lambda name: not (name.startswith("runs/") and name.split("/")[1] in newer))
    states_seen: dict[str, bytes] = {}
    if last:
        states_seen, there = mirror.contents(last), mirror.listed()
        for path in states(mirror.folder):
            if mirror.name(path) not in there:
                path.chmod(0o644)
                path.unlink()
    before = states(mirror.folder)
    yield mirror.folder

    def refuse_changed() -> None:
        if last and mirror.contents(last) != states_seen:
            raise InputError(
                f"{address}: {last} was changed by somebody else meanwhile; {last} was not carried"
                " over, do it again"
            )

    refuse_changed()
    after = states(mirror.folder)
    changed = [path for path, state in after.items() if before.get(path) != state]
    for path in sorted(changed, key=lambda path: (path.name == last, path)):
        if path.name == last:  # what came before it may have taken minutes
            refuse_changed()
        mirror.push(path)
    for path in before.keys() - after.keys():
        mirror.remove(mirror.name(path))
        mirror.settle(path)
