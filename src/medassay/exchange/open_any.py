"""What a comparison or an export is given: a run, a publication, or a log of another harness."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from medassay.errors import InputError
from medassay.exchange.catalog import IMPORTS
from medassay.storage.run import PUBLISHED_RUN, Run


@contextmanager
def open_places(places: Sequence[Path]) -> Iterator[list[Run]]:
    """Give the run of each place; logs of other harnesses are imported for as long as this lasts.

    Raises
    ------
    InputError
        Naming the place that is none of these.
    """
    with tempfile.TemporaryDirectory(prefix="medassay-") as scratch:
        yield [_open(place, Path(scratch) / str(n)) for n, place in enumerate(places)]


def _open(place: Path, scratch: Path) -> Run:
    for folder in (place, place / PUBLISHED_RUN):
        if (folder / "manifest.json").is_file():
            return Run(folder)
    for importer in IMPORTS.values():
        if importer.recognises(place):
            return importer.load(place, to=scratch / (place.resolve().name or "log"))
    kinds = ", ".join(IMPORTS)
    raise InputError(
        f"{place}: neither a run nor a publication, nor a log of {kinds}; expected one of them"
    )
