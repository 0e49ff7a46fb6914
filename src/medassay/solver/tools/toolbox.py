"""The tools of a run: what a model is told of them, and what a call gives: always a text, and how it went."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from medassay.core.canonical import canonical, short_hash
from medassay.core.lookup import LONGEST_RESULT, Tool, ToolRules
from medassay.core.trial import ToolCall
from medassay.errors import GateError, InputError, MedassayError, ModelError, ToolError
from medassay.solver.retrieve.index import Index
from medassay.solver.tools import arxiv, pubmed, web
from medassay.solver.tools.fetch import Fetcher, need_extractor
from medassay.solver.tools.schema import MOST_RESULTS, TOOLS, tool_schema

Status = Literal["ok", "failed", "unavailable"]
_LONGEST_QUERY = 1000  # characters


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a call gave: a text for the model, and whether it went well."""

    text: str
    status: Status


class Toolbox:
    """The tools of one run; lives as long as its event loop.

    Parameters
    ----------
    index : what doc_retrieval searches, with its embedder
    secrets : values of the environment variables that the rules name
    fetcher : for tests, which serve pages on loopback
    """

    def __init__(
        self,
        rules: ToolRules,
        *,
        index: Index | None,
        secrets: Mapping[str, str],
        fetcher: Fetcher | None = None,
    ) -> None:
        self.rules = rules
        self._index = index
        self._keys = {
            name: secrets.get(name, "")
            for name in (rules.search_key_env, rules.pubmed_key_env)
            if name
        }
        # What a stored result depends on besides the call: no key, and nothing of limits.
        self.id = short_hash(
            {
                "schema": json.loads(tool_schema(rules)),
                "search": [rules.search, rules.search_url],
                "pubmed": rules.pubmed_url,
                "arxiv": rules.arxiv_url,
                "index": None if index is None else index.id,
            }
        )
        self._fetcher = fetcher or Fetcher(allow=rules.allow, deny=rules.deny)
        self._pubmed = pubmed.service(rules.pubmed_url, self._key(rules.pubmed_key_env))
        self._arxiv = arxiv.service(rules.arxiv_url)
        self._web = web.service()
        self._does: Mapping[str, Callable[[str, int], Awaitable[Any]]] = {
            "arxiv_search": lambda query, k: arxiv.search(
                self._arxiv, rules.arxiv_url, query, k
            ),
            "doc_retrieval": self._passages,
            "pubmed_search": lambda query, k: pubmed.search(
                self._pubmed, rules.pubmed_url, self._key(rules.pubmed_key_env), query, k
            ),
            "web_search": lambda query, k: web.search(
                self._web, rules, self._key(rules.search_key_env), query, k
            ),
        }

    def _key(self, name: str) -> str:
        return self._keys.get(name, "")

    def check(self) -> None:
        """Refuse to begin without what the tools need.

        Raises
        ------
        InputError
            When a key that the plan names is not set.
        UnavailableError
            When an extra is not installed.
        """
        for name, value in self._keys.items():
            if not value:
                raise InputError(
                    f"plan: [tools]: the environment variable {name} is not set; it must hold the key"
                )
        if "url_fetch" in self.rules.use:
            need_extractor()

    async def call(self, call: ToolCall) -> Result:
        """Return what a call gives; whatever goes wrong is a text too.

        A model's mistake, or an address that may not be reached, is `failed`; a service that does not answer in time, or at all,
        is `unavailable`.
        """
        try:
            async with asyncio.timeout(self.rules.timeout):
                found = await self._run(call)
        except TimeoutError:
            slow = f"{call.name}: no reply within {self.rules.timeout:g} s"
            unavailable = call.name != "url_fetch"  # a page that is slow is that page's fault
            return _error(slow, "unavailable" if unavailable else "failed")
        except ToolError as error:
            return _error(str(error), "unavailable" if error.unavailable else "failed")
        except ModelError as error:  # of the embedder of doc_retrieval
            return _error(f"{call.name}: {error}", "unavailable")
        except GateError as error:
            return _error(str(error), "failed")
        except MedassayError as error:
            return _error(f"{call.name}: {error}", "failed")
        text = found if isinstance(found, str) else canonical({"results": found}).decode()
        return Result(text=text[:LONGEST_RESULT] if text else '{"results":[]}', status="ok")

    async def _run(self, call: ToolCall) -> Any:
        if call.name not in self.rules.use:
            known = ", ".join(sorted(self.rules.use))
            raise ToolError(f"there is no tool '{call.name[:60]}'; there are {known}")
        given = _arguments(call)
        if call.name == "url_fetch":
            return await self._fetcher.text(_text(given, "url", 4096))
        query, k = _text(given, "query", _LONGEST_QUERY), given.get("k", 5)
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_RESULTS:
            raise ToolError(f"'k': expected a whole number from 1 to {MOST_RESULTS}")
        return await self._does[call.name](query, k)

    async def _passages(self, query: str, k: int) -> list[dict[str, Any]]:
        assert self._index is not None  # the plan's check saw to it
        [found] = await self._index.search([query], k)
        return [
            {"document": one.document, "start": one.start, "text": one.text} for one in found
        ]

    async def close(self) -> None:
        """Close all connections."""
        for service in (self._pubmed, self._arxiv, self._web):
            await service.close()
        if self._index is not None:
            await self._index.close()


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise ToolError("the arguments are no JSON object")
    wanted = TOOLS[_named(call.name)][1]["properties"]
    strange = sorted(str(name)[:40] for name in given if name not in wanted)
    if strange:
        raise ToolError(f"unknown argument {', '.join(strange)}; known are {', '.join(wanted)}")
    return given


def _named(name: str) -> Tool:
    return next(tool for tool in TOOLS if tool == name)


def _text(given: Mapping[str, Any], name: str, most: int) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ToolError(f"'{name}': expected a text that is not blank")
    if len(value) > most:
        raise ToolError(f"'{name}': {len(value)} characters; at most {most} are taken")
    return value.encode("utf-8", "replace").decode("utf-8").strip()


def _error(told: str, status: Status) -> Result:
    shown = " ".join(told.split())[:500]
    return Result(text=canonical({"error": f"{status}: {shown}"}).decode(), status=status)


def counted(statuses: Sequence[str]) -> dict[str, int]:
    """Return the numbers of calls, of failures (unavailable ones among them), and of unavailable ones."""
    return {
        "calls": len(statuses),
        "failed": sum(status != "ok" for status in statuses),
        "unavailable": sum(status == "unavailable" for status in statuses),
    }
