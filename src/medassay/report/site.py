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
from medassay.core.records.identity import BoardIdentity
from medassay.report.feeds import ATOM, JSON_FEED, feed_files
from medassay.report.pages.html import environment

UNKNOWN = "404.html"
ADDRESSED = frozenset([UNKNOWN, ATOM, JSON_FEED])  # files that need the address of the site


def site_files(
    entries: Sequence[LedgerEntry], identity: BoardIdentity | None = None
) -> Iterator[tuple[str, bytes]]:
    """Yield (address, content) of the log page and of every status page and document; where the
    publisher gave an address, of the feeds and of the page of unknown addresses, too.

    Parameters
    ----------
    identity : what the newest publication keeps of its publisher
    """
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
            identity=identity,
            demonstration=any(entry.event.demonstration for entry in entries),
        ),
    )
    for name, state in states.items():
        history = [e for e in entries if e.event.publication == name]
        up = f"../../p/{newest}/"
        demonstration = any(entry.event.demonstration for entry in history)
        status_page = _page(
            "status.html",
            up=up,
            state=state,
            history=history,
            demonstration=demonstration,
            identity=identity,
        )
        yield f"status/{name}/index.html", status_page
        yield f"status/{name}.json", status_document(state)
    if identity is not None and identity.address:
        # A server shows it under any address: only whole addresses lead from there.
        up = f"{identity.address}p/{newest}/"
        yield UNKNOWN, _page("unknown.html", up=up, identity=identity, demonstration=False)
        yield from feed_files(entries, identity)


def status_document(state: PublicationStatus) -> bytes:
    """Return the bytes of a status file."""
    return canonical(msgspec.to_builtins(state)) + b"\n"


def _page(template: str, **values: Any) -> bytes:
    return environment().get_template(template).render(**values).encode()
