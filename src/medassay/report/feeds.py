"""What happened on a site, for readers of feeds: Atom (RFC 4287) and JSON Feed 1.1."""

import json
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

import msgspec

from medassay.core.ledger import LedgerEntry
from medassay.core.records.dispute import DisputeStep
from medassay.core.records.identity import BoardIdentity
from medassay.core.wording import listed

ATOM, JSON_FEED = "feed.xml", "feed.json"
_SPACE = "http://www.w3.org/2005/Atom"
_MOST = 100  # entries of a feed, the newest


class FeedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One publication, one change of the status of one, or one step of a dispute about one."""

    id: str
    at: str
    title: str
    text: str
    address: str


def feed_files(
    entries: Sequence[LedgerEntry], identity: BoardIdentity
) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of both feeds; they need the address at which the site is served."""
    news = [_entry(entry, identity) for entry in entries][::-1][:_MOST]
    yield ATOM, _atom(news, identity)
    yield JSON_FEED, _json(news, identity)


def _entry(entry: LedgerEntry, identity: BoardIdentity) -> FeedEntry:
    event = entry.event
    place = f"{identity.address}p/{event.publication}/"
    if entry.is_dispute:
        step = msgspec.convert(entry.record, DisputeStep)
        decision = f", {step.decision}" if step.decision else ""
        title = f"{event.publication}: dispute {step.dispute} {step.step}{decision}"
        text = step.claim or step.checked or step.reason
        place = f"{identity.address}dispute/{step.dispute}/"
    elif event.is_publication:
        what = "audit" if event.rerun is not None else "publication"
        title = f"{what[0].upper()}{what[1:]} {event.publication}"
        text = f"Question bank {listed(event.banks)}. Data root {event.root}."
    else:
        title = f"{event.publication}: {event.status}"
        instead = f" Read instead: {identity.address}p/{event.next}/" if event.next else ""
        text = f"{event.reason}{instead}"
        place = f"{identity.address}status/{event.publication}/"
    # The hash of the line names it wherever the site moves.
    return FeedEntry(
        id=f"urn:sha256:{entry.hash}", at=event.at, title=title, text=text, address=place
    )


def _atom(news: Sequence[FeedEntry], identity: BoardIdentity) -> bytes:
    ElementTree.register_namespace("", _SPACE)
    feed = ElementTree.Element(f"{{{_SPACE}}}feed")

    def add(parent: ElementTree.Element, tag: str, text: str = "", **keys: str) -> None:
        element = ElementTree.SubElement(parent, f"{{{_SPACE}}}{tag}", keys)
        element.text = _storable(text) or None

    add(feed, "id", identity.address)
    add(feed, "title", identity.title)
    add(feed, "subtitle", identity.purpose)
    add(feed, "updated", news[0].at)
    add(feed, "link", rel="self", href=f"{identity.address}{ATOM}")
    add(feed, "link", rel="alternate", href=identity.address)
    author = ElementTree.SubElement(feed, f"{{{_SPACE}}}author")
    add(author, "name", identity.publisher)
    for item in news:
        element = ElementTree.SubElement(feed, f"{{{_SPACE}}}entry")
        add(element, "id", item.id)
        add(element, "title", item.title)
        add(element, "updated", item.at)
        add(element, "link", rel="alternate", href=item.address)
        add(element, "summary", item.text)
    ElementTree.indent(feed, " ")
    text: bytes = ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _storable(text: str) -> str:
    """Return text without the control characters that no XML may hold."""
    return "".join(c for c in text if c.isprintable() or c in "\n\t")


def _json(news: Sequence[FeedEntry], identity: BoardIdentity) -> bytes:
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": identity.title,
        "description": identity.purpose,
        "home_page_url": identity.address,
        "feed_url": f"{identity.address}{JSON_FEED}",
        "authors": [{"name": identity.publisher}],
        "items": [
            {
                "id": item.id,
                "url": item.address,
                "title": item.title,
                "content_text": item.text,
                "date_published": item.at,
            }
            for item in news
        ],
    }
    return json.dumps(feed, ensure_ascii=False, indent=1).encode() + b"\n"
