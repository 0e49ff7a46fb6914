"""Asking a configured service: politely, within bounds, and with a word of why where it does not
serve.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import aiohttp
import msgspec
from aiolimiter import AsyncLimiter

from medassay.core.json import storable
from medassay.errors import ToolError

_MOST_BYTES = 4 * 2**20
_AGAIN = frozenset([408, 429, 500, 502, 503, 504])
_MOST_SENDS = 3
_LONGEST_WAIT = 10.0  # seconds that a Retry-After may ask for
_AT_ONCE = 8  # calls of one service


class ServiceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a service; `body` is sent as JSON, by POST."""

    url: str
    params: Mapping[str, str] = msgspec.field(default_factory=dict)
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: Any = None


class Service:
    """One service; `rate` calls in `per` seconds, None for one's own mirror, which sets its own."""

    def __init__(self, name: str, *, rate: float | None = None, per: float = 1.0) -> None:
        self._name = name
        self._limiter = None if rate is None else AsyncLimiter(rate, per)
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, request: ServiceRequest, clock: "Asking") -> bytes:
        """Return the body of a reply.

        Raises
        ------
        ToolError
            Unavailable where the service cannot be reached or does not serve, after two retries.
        TimeoutError
            When the time of the call is over.
        """
        message, wait = "", 0.0
        for retry in range(_MOST_SENDS):
            if retry:
                async with clock:
                    await asyncio.sleep(wait)
            async with self._at_once:
                if self._limiter is not None:
                    await self._limiter.acquire()
                async with clock:
                    status, data, retry_after = await self._once(request)
            if status == 200:
                return data
            if status == 400:
                raise ToolError(f"{self._name}: does not take this query (HTTP 400)")
            message = f"HTTP {status}" if status else data.decode()
            if status and status not in _AGAIN:
                break
            wait = min(_LONGEST_WAIT, max(retry_after, 0.25 * 2**retry))
        raise ToolError(f"{self._name}: unavailable: {message}", unavailable=True)

    async def _once(self, request: ServiceRequest) -> tuple[int, bytes, float]:
        """Return status, body, and the seconds asked to wait.

        Status 0 and a reason where there was no reply.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), headers={"User-Agent": "medassay"}
            )
        method = "GET" if request.body is None else "POST"
        try:
            async with self._session.request(
                method,
                request.url,
                params=dict(request.params),
                headers=dict(request.headers),
                json=request.body,
                allow_redirects=False,
            ) as reply:
                data = bytearray()
                async for block in reply.content.iter_chunked(2**16):
                    data += block
                    if len(data) > _MOST_BYTES:
                        return 0, b"a reply beyond bounds", 0.0
                return reply.status, bytes(data), _seconds(reply.headers.get("Retry-After"))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # Never the error's own text: it may hold the address with a key.
            return 0, type(error).__name__.encode(), 0.0

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


class Asking:
    """One call of a tool: the time that it may still take, counted while it asks and not while it
    waits for its turn.

    Waiting in our own queue is no fault of a service, and must not make it unavailable.
    """

    def __init__(self, service: Service, seconds: float) -> None:
        self._service = service
        self._left = seconds
        self._running: tuple[float, asyncio.Timeout] | None = None

    async def ask(self, request: ServiceRequest) -> bytes:
        """Return the body of a reply; see `Service.ask`."""
        return await self._service.ask(request, self)

    async def __aenter__(self) -> None:
        """Let the clock run."""
        timeout = asyncio.timeout(max(0.0, self._left))
        self._running = (time.monotonic(), timeout)
        await timeout.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        """Stop the clock; raises `TimeoutError` where the time was over."""
        assert self._running is not None
        started, timeout = self._running
        self._left -= time.monotonic() - started
        await timeout.__aexit__(*error)


def _seconds(value: str | None) -> float:
    try:
        return max(0.0, float(value or 0))
    except ValueError:
        return 0.0


def is_host(url: str, host: str) -> bool:
    """Return whether an address is of a host, so that its rules of politeness hold."""
    return urlsplit(url).hostname == host


def read_json(data: bytes, name: str) -> Any:
    """Return the JSON of a reply."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise ToolError(f"{name}: its reply is not JSON") from None


def read_xml(data: bytes, name: str) -> ElementTree.Element:
    """Return the XML of a reply.

    One that declares entities, which could swell or name files, is refused.
    """
    try:
        text = data.decode("utf-8-sig")
        if "<!ENTITY" in text:
            raise ToolError(f"{name}: its reply declares entities")
        return ElementTree.fromstring(text)
    except (ValueError, ElementTree.ParseError, RecursionError):
        raise ToolError(f"{name}: its reply is not well-formed XML") from None


def short(value: Any, most: int) -> str:
    r"""Return a text on one line, at most so long.

    Lone surrogates, which are no characters, become "?".

    Examples
    --------
    >>> short("  a\n b ", 10), short(None, 5), short("abcdef", 4)
    ('a b', '', 'abc…')
    """
    text = " ".join(str(value).split()) if isinstance(value, str) else ""
    text = storable(text)
    return text if len(text) <= most else text[: most - 1] + "…"
