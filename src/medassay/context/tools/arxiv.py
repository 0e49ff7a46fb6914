"""arxiv_search: titles and abstracts by arXiv's Atom API."""

from typing import Any
from xml.etree.ElementTree import Element

from medassay.context.tools.service import (
    Asking,
    Service,
    ServiceRequest,
    is_host,
    read_xml,
    short,
)
from medassay.errors import ToolError

_NAME = "arxiv_search"
_HOST = "export.arxiv.org"
_ATOM = "{http://www.w3.org/2005/Atom}"
_TITLE, _ABSTRACT = 400, 4000  # characters


def service(url: str) -> Service:
    """Return the service: one call in three seconds, as arXiv asks."""
    return Service(_NAME, rate=1 if is_host(url, _HOST) else None, per=3.0)


async def search(asked: Asking, url: str, query: str, k: int) -> list[dict[str, Any]]:
    """Return id, title and abstract of the k most relevant articles."""
    wanted = {
        "search_query": " AND ".join(f"all:{word}" for word in _words(query)),
        "start": "0",
        "max_results": str(k),
        "sortBy": "relevance",
    }
    feed = read_xml(await asked.ask(ServiceRequest(url=url, params=wanted)), _NAME)
    if feed.tag != f"{_ATOM}feed":
        raise ToolError(f"{_NAME}: its reply is no Atom feed")
    return [
        {
            "id": short(_text(one, "id").rpartition("/abs/")[2], 40),
            "title": short(_text(one, "title"), _TITLE),
            "abstract": short(_text(one, "summary"), _ABSTRACT),
        }
        for one in feed.findall(f"{_ATOM}entry")[:k]
    ]


def _words(query: str) -> list[str]:
    """Return the words of a query; marks, which have a meaning to arXiv, part them."""
    found = "".join(c if c.isalnum() else " " for c in query).split()
    if not found:
        raise ToolError(f"{_NAME}: the query holds no words")
    return found[:20]


def _text(one: Element, name: str) -> str:
    return one.findtext(f"{_ATOM}{name}") or ""
