"""pubmed_search: titles and abstracts by NCBI's E-utilities."""

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


async def search(service: Asking, url: str, key: str, query: str, k: int) -> list[dict[str, str]]:
    """Return PMID, title and abstract of the k most relevant articles."""
    common = {"db": "pubmed", "retmode": "xml", "tool": "medassay"}
    common |= {"api_key": key} if key else {}
    parameters = {**common, "term": query, "retmax": str(k), "sort": "relevance"}
    answer = read_xml(
        await service.ask(ServiceRequest(url=f"{url.rstrip('/')}/esearch.fcgi", params=parameters)),
        _NAME,
    )
    if answer.tag != "eSearchResult":
        raise ToolError(f"{_NAME}: its reply is no eSearchResult")
    ids = [(element.text or "").strip() for element in answer.findall("./IdList/Id")][:k]
    ids = [identifier for identifier in ids if identifier.isdigit()]
    if not ids:
        return []
    fetched = read_xml(
        await service.ask(
            ServiceRequest(
                url=f"{url.rstrip('/')}/efetch.fcgi",
                params={**common, "id": ",".join(ids), "rettype": "abstract"},
            )
        ),
        _NAME,
    )
    if fetched.tag != "PubmedArticleSet":
        raise ToolError(f"{_NAME}: its reply is no PubmedArticleSet")
    return [_article(article) for article in fetched.findall("./PubmedArticle")][:k]


def _article(article: Element) -> dict[str, str]:
    parts = article.findall(".//Abstract/AbstractText")
    abstract = " ".join(
        f"{part.get('Label')}: {_text(part)}" if part.get("Label") else _text(part)
        for part in parts
    )
    return {
        "pmid": short(_text(article.find(".//MedlineCitation/PMID")), 20),
        "title": short(_text(article.find(".//ArticleTitle")), _TITLE),
        "abstract": short(abstract, _ABSTRACT),
    }


def _text(element: Element | None) -> str:
    """Return all text of an element, that of its marks (italics and the like) among it."""
    return "" if element is None else "".join(element.itertext()).strip()
