"""Places on the command line: folders of this machine, or addresses in an object store."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from medassay.core.ledger import LEDGER
from medassay.errors import UsageError


def read(place: str) -> Path:
    """Return where a run, a publication or a site can be read on this machine.

    From an address it is fetched.
    """
    if "://" not in place:
        return Path(place)
    from medassay.storage.object_store import localize

    return localize(place)


@contextmanager
def changing(place: str, *, last: str = "") -> Iterator[Path]:
    """Yield the folder of something that is about to change.

    What changed is carried over to an address, one file last.
    """
    if "://" not in place:
        yield Path(place)
        return
    if place.lower().startswith(("http://", "https://")):
        raise UsageError(
            f"{place}: a web server can only be read; expected a folder, or an address in an object"
            " store"
        )
    from medassay.cli.output import out
    from medassay.runner.engine.lease import await_dead, held
    from medassay.storage.object_store import Mirror
    from medassay.storage.object_store import changing as changing_store

    if last != LEDGER:
        with changing_store(place, last=last) as folder:
            yield folder
        return
    site = Mirror(place).folder
    await_dead(site, out.say)
    with held(site), changing_store(place, last=last) as folder:
        _remove_unpublished(folder)
        yield folder


def _remove_unpublished(site: Path) -> None:
    """Remove publications of which the ledger knows nothing: carrying them over was interrupted."""
    from medassay.storage.ledger import read_ledger

    publications = {entry.event.publication for entry in read_ledger(site)}
    for folder in (site / "p").glob("*"):
        if folder.name not in publications:
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
            shutil.rmtree(folder)


def location_text(path: Path) -> str:
    """Return what a place is called: its address where it is in an object store, else the path."""
    from medassay.storage.object_store import mirror_of

    mirror = mirror_of(path)
    return str(path) if mirror is None else mirror.called(path)
