"""The mutable pages of a site, made anew from its ledger: the log, and the status of each
publication.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from medassay.core.canonical import canonical
from medassay.core.ledger import (
    LEDGER,
    LedgerEntry,
    PublicationStatus,
    publications_in,
    status_of,
)
from medassay.report.pages.html import environment


def site_files(entries: Sequence[LedgerEntry]) -> Iterator[tuple[str, bytes]]:
    """Yield (address, content) of the log page and of every status page and document."""
    states = status_of(entries)
    newest = publications_in(entries)[-1].publication
    yield (
        "log/index.html",
        _page(
            "log.html",
            up=f"../p/{newest}/",
            entries=entries,
            states=states,
            ledger=LEDGER,
            demonstration=any(entry.event.demonstration for entry in entries),
        ),
    )
    for name, state in states.items():
        history = [e for e in entries if e.event.publication == name]
        up = f"../../p/{newest}/"
        demonstration = any(entry.event.demonstration for entry in history)
        status_page = _page(
            "status.html", up=up, state=state, history=history, demonstration=demonstration
        )
        yield f"status/{name}/index.html", status_page
        yield f"status/{name}.json", status_document(state)


def status_document(state: PublicationStatus) -> bytes:
    """Return the bytes of a status file."""
    return canonical(msgspec.to_builtins(state)) + b"\n"


def _page(template: str, **values: Any) -> bytes:
    return environment().get_template(template).render(**values).encode()
