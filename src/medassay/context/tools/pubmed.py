"""pubmed_search: titles and abstracts by NCBI's E-utilities."""

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

_NAME = "pubmed_search"
_HOST = "eutils.ncbi.nlm.nih.gov"
_TITLE, _ABSTRACT = 400, 4000  # characters


def service(url: str, key: str) -> Service:
    """Return the service: three calls a second, ten with a key, as NCBI asks."""
    rate = (10 if key else 3) if is_host(url, _HOST) else None
    return Service(_NAME, rate=rate)


async def search(asked: Asking, url: str, key: str, query: str, k: int) -> list[dict[str, Any]]:
    """Return PMID, title and abstract of the k most relevant articles."""
    common = {"db": "pubmed", "retmode": "xml", "tool": "medassay"}
    common |= {"api_key": key} if key else {}
    wanted = {**common, "term": query, "retmax": str(k), "sort": "relevance"}
    found = read_xml(
        await asked.ask(ServiceRequest(url=f"{url.rstrip('/')}/esearch.fcgi", params=wanted)),
        _NAME,
    )
    if found.tag != "eSearchResult":
        raise ToolError(f"{_NAME}: its reply is no eSearchResult")
    ids = [(one.text or "").strip() for one in found.findall("./IdList/Id")][:k]
    ids = [one for one in ids if one.isdigit()]
    if not ids:
        return []
    fetched = read_xml(
        await asked.ask(
            ServiceRequest(
                url=f"{url.rstrip('/')}/efetch.fcgi",
                params={**common, "id": ",".join(ids), "rettype": "abstract"},
            )
        ),
        _NAME,
    )
    if fetched.tag != "PubmedArticleSet":
        raise ToolError(f"{_NAME}: its reply is no PubmedArticleSet")
    return [_article(one) for one in fetched.findall("./PubmedArticle")][:k]


def _article(one: Element) -> dict[str, Any]:
    parts = one.findall(".//Abstract/AbstractText")
    abstract = " ".join(
        f"{part.get('Label')}: {_text(part)}" if part.get("Label") else _text(part)
        for part in parts
    )
    return {
        "pmid": short(_text(one.find(".//MedlineCitation/PMID")), 20),
        "title": short(_text(one.find(".//ArticleTitle")), _TITLE),
        "abstract": short(abstract, _ABSTRACT),
    }


def _text(one: Element | None) -> str:
    """Return all text of an element, that of its marks (italics and the like) among it."""
    return "" if one is None else "".join(one.itertext()).strip()
