"""The mutable pages of a site, made anew from its ledger: the log, the status of each publication,
and the disputes.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from medassay.core.canonical import record_line
from medassay.core.ledger import (
    LEDGER,
    LedgerEntry,
    disputes_of,
    front_of,
    publications_in,
    status_of,
)
from medassay.core.records.dispute import Dispute
from medassay.core.records.identity import BoardIdentity
from medassay.report.feeds import ATOM, JSON_FEED, feed_files
from medassay.report.pages.html import environment
from medassay.report.texts import ENGLISH, Texts

UNKNOWN = "404.html"
ADDRESSED = frozenset([UNKNOWN, ATOM, JSON_FEED])  # files that need the address of the site


def site_files(
    entries: Sequence[LedgerEntry], identity: BoardIdentity | None = None, texts: Texts = ENGLISH
) -> Iterator[tuple[str, bytes]]:
    """Yield (address, content) of the log page, of every status page and document, and of every
    dispute; where the publisher gave an address, of the feeds and of the page of unknown addresses,
    too.

    Parameters
    ----------
    identity, texts : what the newest publication keeps of its publisher, and of its language
    """
    states = status_of(entries)
    newest = publications_in(entries)[-1].publication
    disputes = disputes_of(entries)
    yield (
        "log/index.html",
        _page(
            texts,
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
        history = [e for e in entries if e.event.publication == name and not e.is_dispute]
        up = f"../../p/{newest}/"
        demonstration = any(entry.event.demonstration for entry in history)
        status_page = _page(
            texts,
            "status.html",
            up=up,
            state=state,
            front=front_of(entries),
            history=history,
            disputes=[dispute for dispute in disputes if dispute.publication == name],
            demonstration=demonstration,
            identity=identity,
        )
        yield f"status/{name}/index.html", status_page
        yield f"status/{name}.json", record_line(state)
    if disputes:  # sites without any have no such pages
        yield from _dispute_pages(disputes, newest, identity, texts)
    if identity is not None and identity.address:
        # A server shows it under any address: only whole addresses lead from there.
        up = f"{identity.address}p/{newest}/"
        yield UNKNOWN, _page(texts, "unknown.html", up=up, identity=identity, demonstration=False)
        yield from feed_files(entries, identity)


def _dispute_pages(
    disputes: Sequence[Dispute], newest: str, identity: BoardIdentity | None, texts: Texts
) -> Iterator[tuple[str, bytes]]:
    shared = {"identity": identity, "demonstration": False}
    yield (
        "dispute/index.html",
        _page(texts, "disputes.html", up=f"../p/{newest}/", disputes=disputes[::-1], **shared),
    )
    for dispute in disputes:
        page = _page(texts, "dispute.html", up=f"../../p/{newest}/", dispute=dispute, **shared)
        yield f"dispute/{dispute.number}/index.html", page


def _page(texts: Texts, template: str, **values: Any) -> bytes:
    return environment(texts).get_template(template).render(**values).encode()
