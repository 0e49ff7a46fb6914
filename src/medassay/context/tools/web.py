"""web_search: titles, addresses and snippets by the provider that a plan names: SearxNG, Brave or
Tavily.
"""

from collections.abc import Callable, Mapping

from medassay.context.tools.service import Asking, Service, ServiceRequest, read_json, short
from medassay.core.records.context_config import ToolRules
from medassay.errors import ToolError

_NAME = "web_search"
_TITLE, _URL, _SNIPPET = 300, 500, 1000  # characters
Ask = Callable[[ToolRules, str, str, int], ServiceRequest]


def _searxng(rules: ToolRules, key: str, query: str, k: int) -> ServiceRequest:
    return ServiceRequest(
        url=f"{rules.search_url.rstrip('/')}/search",
        params={"q": query, "format": "json"},
        headers={"Authorization": f"Bearer {key}"} if key else {},
    )


def _brave(rules: ToolRules, key: str, query: str, k: int) -> ServiceRequest:
    return ServiceRequest(
        url=rules.search_url or "https://api.search.brave.com/res/v1/web/search",
        params={"q": query, "count": str(k)},
        headers={"X-Subscription-Token": key, "Accept": "application/json"},
    )


def _tavily(rules: ToolRules, key: str, query: str, k: int) -> ServiceRequest:
    return ServiceRequest(
        url=rules.search_url or "https://api.tavily.com/search",
        headers={"Authorization": f"Bearer {key}"},
        body={"query": query, "max_results": k},
    )


# Provider → how it is asked, where its results are, and the name of the snippet there.
PROVIDERS: Mapping[str, tuple[Ask, tuple[str, ...], str]] = {
    "brave": (_brave, ("web", "results"), "description"),
    "searxng": (_searxng, ("results",), "content"),
    "tavily": (_tavily, ("results",), "content"),
}


def service() -> Service:
    """Return the service; its provider says by 429 when it is asked too often."""
    return Service(_NAME)


async def search(
    service: Asking, rules: ToolRules, key: str, query: str, k: int
) -> list[dict[str, str]]:
    """Return title, address and snippet of the first k results."""
    asking, place, snippet = PROVIDERS[rules.search]
    answer = read_json(await service.ask(asking(rules, key, query, k)), _NAME)
    for name in place:
        answer = answer.get(name) if isinstance(answer, dict) else None
    if answer is None and rules.search == "brave":  # says nothing of results where there are none
        return []
    if not isinstance(answer, list):
        raise ToolError(f"{_NAME}: its reply holds no results")
    rows = [row for row in answer if isinstance(row, dict)][:k]
    return [
        {
            "title": short(row.get("title"), _TITLE),
            "url": short(row.get("url"), _URL),
            "snippet": short(row.get(snippet), _SNIPPET),
        }
        for row in rows
    ]
