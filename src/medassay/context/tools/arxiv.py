"""arxiv_search: titles and abstracts by arXiv's Atom API."""

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


async def search(service: Asking, url: str, query: str, k: int) -> list[dict[str, str]]:
    """Return id, title and abstract of the k most relevant articles."""
    parameters = {
        "search_query": " AND ".join(f"all:{word}" for word in _words(query)),
        "start": "0",
        "max_results": str(k),
        "sortBy": "relevance",
    }
    feed = read_xml(await service.ask(ServiceRequest(url=url, params=parameters)), _NAME)
    if feed.tag != f"{_ATOM}feed":
        raise ToolError(f"{_NAME}: its reply is no Atom feed")
    return [
        {
            "id": short(_text(entry, "id").rpartition("/abs/")[2], 40),
            "title": short(_text(entry, "title"), _TITLE),
            "abstract": short(_text(entry, "summary"), _ABSTRACT),
        }
        for entry in feed.findall(f"{_ATOM}entry")[:k]
    ]


def _words(query: str) -> list[str]:
    """Return the words of a query; marks, which have a meaning to arXiv, part them."""
    words = "".join(c if c.isalnum() else " " for c in query).split()
    if not words:
        raise ToolError(f"{_NAME}: the query holds no words")
    return words[:20]


def _text(entry: Element, name: str) -> str:
    return entry.findtext(f"{_ATOM}{name}") or ""
