"""The tools of a run: what a model is told of them, and what a call gives: always a text, and how
it went.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from medassay.context.retrieval.index import Index
from medassay.context.retrieval.own import OwnRetriever
from medassay.context.tools import arxiv, pubmed, web
from medassay.context.tools.fetch import Fetcher, need_extractor
from medassay.context.tools.result import Status, ToolResult
from medassay.context.tools.schema import MOST_RESULTS, TOOLS, tool_schema
from medassay.context.tools.service import Asking
from medassay.core.canonical import canonical, short_hash
from medassay.core.json import storable
from medassay.core.records.completion import ToolCall
from medassay.core.records.context_config import LONGEST_RESULT, Tool, ToolRules
from medassay.core.secret import secrets as known
from medassay.errors import (
    InputError,
    MedassayError,
    ModelError,
    Permanent,
    ToolError,
    UnavailableError,
)

_LONGEST_QUERY = 1000  # characters


# What a search gives: an object for each result, with texts under its keys, or a number
Results = Sequence[Mapping[str, str | int]]


class Toolbox:
    """The tools of one run; lives as long as its event loop.

    Parameters
    ----------
    index : what doc_retrieval searches; `use` brings its embedder, `query_prefix` stands before
        each query
    secrets : values of the environment variables that the rules name
    fetcher : for tests, which serve pages on loopback
    """

    def __init__(
        self,
        rules: ToolRules,
        *,
        secrets: Mapping[str, str],
        index: Index | OwnRetriever | None = None,
        use: Callable[[Index | OwnRetriever], None] = lambda index: None,
        query_prefix: str = "",
        fetcher: Fetcher | None = None,
    ) -> None:
        self.rules = rules
        self._index, self._use, self._prefix = index, use, query_prefix
        self._opening, self._ready = asyncio.Lock(), False
        self._keys = {
            name: secrets.get(name, "")
            for name in (rules.search_key_env, rules.pubmed_key_env)
            if name
        }
        known.learn(self._keys.values())
        # What a stored result depends on besides the call: no key, and nothing of limits.
        self.id = short_hash(
            {
                "schema": json.loads(tool_schema(rules)),
                "search": [rules.search, rules.search_url],
                "pubmed": rules.pubmed_url,
                "arxiv": rules.arxiv_url,
                "index": None if index is None else [index.id, query_prefix],
                "hosts": [sorted(rules.allow), sorted(rules.deny)],
            }
        )
        self._fetcher = fetcher or Fetcher(allow=rules.allow, deny=rules.deny)
        pubmed_key = self._keys.get(rules.pubmed_key_env, "")
        search_key = self._keys.get(rules.search_key_env, "")
        self._pubmed = pubmed.service(rules.pubmed_url, pubmed_key)
        self._arxiv = arxiv.service(rules.arxiv_url)
        self._web = web.service()
        self._does: Mapping[str, Callable[[str, int], Awaitable[Results]]] = {
            "arxiv_search": lambda query, k: arxiv.search(
                Asking(self._arxiv, rules.timeout), rules.arxiv_url, query, k
            ),
            "doc_retrieval": self._passages,
            "pubmed_search": lambda query, k: pubmed.search(
                Asking(self._pubmed, rules.timeout), rules.pubmed_url, pubmed_key, query, k
            ),
            "web_search": lambda query, k: web.search(
                Asking(self._web, rules.timeout), rules, search_key, query, k
            ),
        }

    async def ready(self) -> None:
        """Bring what the tools need, before the first call that was never made before.

        A replay needs none of it.

        Raises
        ------
        Permanent
            When a key that the plan names is not set, or an extra or the embedder is not here.
        """
        async with self._opening:
            if self._ready:
                return
            for name, value in self._keys.items():
                wrong = "is not set" if not value else "holds a blank or a line end"
                if not value or not value.isprintable() or value != "".join(value.split()):
                    raise Permanent(
                        f"[tools]: the environment variable {name} {wrong}; it must hold the key"
                        " alone",
                        endpoint_wide=True,
                    )
            try:
                if "url_fetch" in self.rules.use:
                    need_extractor()
                if self._index is not None:
                    await asyncio.to_thread(self._use, self._index)
            except (InputError, UnavailableError) as error:
                raise Permanent(f"[tools]: {error}", endpoint_wide=True) from None
            self._ready = True

    async def call(self, call: ToolCall) -> ToolResult:
        """Return what a call gives; whatever goes wrong is a text too.

        A model's mistake, or an address that may not be reached, is `failed`; a service that does
        not answer in time, or at all, is `unavailable`.
        """
        try:
            result = await self._run(call)
        except TimeoutError:
            slow = f"{call.name}: no reply within {self.rules.timeout:g} s"
            unavailable = call.name != "url_fetch"  # a page that is slow is that page's fault
            return _error(slow, "unavailable" if unavailable else "failed")
        except ToolError as error:
            return _error(str(error), "unavailable" if error.unavailable else "failed")
        except ModelError as error:  # of the embedder of doc_retrieval
            return _error(f"{call.name}: {error}", "unavailable")
        except MedassayError as error:
            return _error(f"{call.name}: {error}", "failed")
        return ToolResult(text=_result_text(result), status="ok")

    async def _run(self, call: ToolCall) -> str | Results:
        tool = next((name for name in self.rules.use if name == call.name), None)
        if tool is None:
            names = ", ".join(sorted(self.rules.use))
            raise ToolError(f"there is no tool '{call.name[:60]}'; there are {names}")
        values = _arguments(tool, call.arguments)
        if tool == "url_fetch":
            url = _text(values, "url", 4096)
            async with asyncio.timeout(self.rules.timeout):
                return await self._fetcher.text(url)
        query, k = _text(values, "query", _LONGEST_QUERY), values.get("k", 5)
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_RESULTS:
            raise ToolError(f"'k': expected a whole number from 1 to {MOST_RESULTS}")
        return await self._does[tool](query, k)

    async def _passages(self, query: str, k: int) -> Results:
        assert self._index is not None  # the plan's check saw to it
        async with asyncio.timeout(self.rules.timeout):
            [passages] = await self._index.search([self._prefix + query], k)
        return [
            {"document": passage.document, "start": passage.start, "text": passage.text}
            for passage in passages
        ]

    async def close(self) -> None:
        """Close all connections."""
        for service in (self._pubmed, self._arxiv, self._web):
            await service.close()
        if self._index is not None:
            await self._index.close()


def _arguments(tool: Tool, arguments: str) -> dict[str, Any]:
    try:
        values = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise ToolError("the arguments are no JSON object")
    parameters = TOOLS[tool][1]["properties"]
    strange = sorted(str(name)[:40] for name in values if name not in parameters)
    if strange:
        raise ToolError(f"unknown argument {', '.join(strange)}; known are {', '.join(parameters)}")
    return values


def _result_text(value: str | Results) -> str:
    """Return what a call gave as text for the model: a page as it is, results as JSON, as many as
    there is room for.
    """
    if isinstance(value, str):
        return storable(value[:LONGEST_RESULT])
    elements = list(value)
    while len(text := canonical({"results": elements}).decode()) > LONGEST_RESULT:
        elements.pop()
    return text


def _text(arguments: Mapping[str, Any], name: str, most: int) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ToolError(f"'{name}': expected a text that is not blank")
    if len(value) > most:
        raise ToolError(f"'{name}': {len(value)} characters; at most {most} are taken")
    return storable(value).strip()


def _error(message: str, status: Status) -> ToolResult:
    text = storable(" ".join(message.split())[:500])
    return ToolResult(text=canonical({"error": f"{status}: {text}"}).decode(), status=status)
