"""url_fetch: the text of a page at an address that a model names. Hostile ground.

http and https alone; every address that a name resolves to must be public, and the one that is
connected to is checked once more where the socket is made, so that a name which changes its address
gains nothing. Redirects are followed by hand, each checked like the first. No cookies, no
credentials, no proxy, no connection kept. Bytes, time and unpacked bytes are bounded.
"""

import asyncio
import codecs
import json
import os
import socket
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from medassay.core.address import is_public
from medassay.core.records.context_config import LONGEST_RESULT
from medassay.errors import GateError, ToolError, UnavailableError

if TYPE_CHECKING:
    from aiohappyeyeballs import AddrInfoType

MOST_BYTES = 4 * 2**20  # of a page, unpacked; what follows is not read
TIMEOUT = 20.0  # seconds, redirects and extraction included
_REDIRECTS = 5
_LONGEST_URL = 2048
_BLOCK = 2**16
_MOVED = frozenset([301, 302, 303, 307, 308])
_MARKUP = ("text/html", "application/xhtml+xml")
_PLAIN = (
    "text/plain",
    "text/markdown",
    "text/csv",
    "text/xml",
    "application/xml",
    "application/json",
)
_CODECS = frozenset(
    (
        *(
            "ascii",
            "big5",
            "cp1250",
            "cp1251",
            "cp1252",
            "cp1253",
            "cp1254",
            "cp1257",
            "euc_jp",
        ),
        *(
            "euc_kr",
            "gb18030",
            "gb2312",
            "gbk",
            "iso8859-1",
            "iso8859-15",
            "iso8859-2",
            "koi8-r",
        ),
        *("iso8859-5", "iso8859-7", "iso8859-9", "shift_jis", "utf-16", "utf-8"),
    )
)
_HEADERS = {
    "User-Agent": "medassay (evaluation of medical language models)",
    "Accept": "text/html, text/plain;q=0.9, */*;q=0.1",
    "Accept-Encoding": "gzip, deflate",
}
# getaddrinfo: no such name, as against no network to ask in.
_NO_NAME = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
_NO_NETWORK = frozenset({100, 101, 113})  # ENETDOWN, ENETUNREACH, EHOSTUNREACH
_KEPT_IN_CHILD = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "VIRTUAL_ENV")
AddressGate = Callable[[str, int], bool]  # says whether an address and port may be connected to


def public_only(address: str, port: int) -> bool:
    """Return whether an address is public, whatever the port: the gate of the product."""
    return is_public(address)


class _PublicResolver(AbstractResolver):
    """Resolves a name, and refuses it when any of its addresses may not be reached."""

    def __init__(self, gate: AddressGate, inner: AbstractResolver) -> None:
        self._gate = gate
        self._inner = inner
        self.resolved = False

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a name; see aiohttp's `AbstractResolver`."""
        addresses = await self._inner.resolve(host, port, family)
        self.resolved = True
        for address in addresses:
            if not self._gate(address["host"], address["port"]):
                raise GateError(_refusal_text(f"{host} is at {address['host']}"))
        return addresses

    async def close(self) -> None:
        """Free the inner resolver."""
        await self._inner.close()


def _refusal_text(what: str) -> str:
    return (
        f"url_fetch: {what}, which is no public address; only pages of the public internet are"
        " fetched"
    )


class Fetcher:
    """Fetches pages.

    Parameters
    ----------
    allow, deny : hosts, each with all below it; where there are any in `allow` no other is reached
    gate, resolver : for tests, which serve pages on loopback; no plan and no option leads here
    """

    def __init__(
        self,
        *,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        gate: AddressGate = public_only,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._allow, self._deny = allow, deny
        self._gate = gate
        self._resolver = resolver
        self._online = False  # whether any name was ever resolved

    async def text(self, url: str) -> str:
        """Return the text of a page, at most 20,000 characters.

        Raises
        ------
        GateError
            When the address, or one that it redirects to, may not be reached. Nothing was sent
            there.
        ToolError
            When there is no page, none with text, or none within the bounds.
        """
        try:
            async with asyncio.timeout(TIMEOUT):
                return await self._text(url)
        except TimeoutError:
            raise ToolError(f"url_fetch: no whole page within {TIMEOUT:g} s") from None

    async def _text(self, url: str) -> str:
        resolver = _PublicResolver(self._gate, self._resolver or aiohttp.ThreadedResolver())
        connector = aiohttp.TCPConnector(
            resolver=resolver,
            use_dns_cache=False,
            force_close=True,
            socket_factory=self._socket,
            limit=1,
        )
        async with aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_HEADERS,
            auto_decompress=False,
            trust_env=False,
            requote_redirect_url=False,
        ) as session:
            for _ in range(_REDIRECTS + 1):
                self._check(url)
                try:
                    kind, charset, data, moved = await _get(session, url)
                except aiohttp.ClientConnectorError as error:
                    self._online = self._online or resolver.resolved
                    raise _unreached(error, online=self._online) from None
                self._online = True
                if moved is None:
                    return (await _text_of(kind, charset, data))[:LONGEST_RESULT]
                url = moved
        raise ToolError(f"url_fetch: more than {_REDIRECTS} redirects")

    def _check(self, url: str) -> None:
        """Refuse an address by how it is written."""
        if len(url) > _LONGEST_URL or not url.isprintable() or " " in url.strip():
            raise GateError(
                f"url_fetch: no address; expected http(s)://host/…, at most {_LONGEST_URL}"
                " characters"
            )
        try:
            parts, target = urlsplit(url.strip()), URL(url.strip())
            # As the client will ask for it, so that no other way to write a host passes a list.
            host, port = (target.raw_host or "").rstrip("."), parts.port
        except ValueError:
            raise GateError("url_fetch: no address; expected http(s)://host/…") from None
        plain = host and port != 0 and "%" not in host and "\\" not in url
        if parts.scheme not in ("http", "https") or not plain:
            raise GateError(
                f"url_fetch: '{url[:80]}': only http and https addresses with a host are fetched"
            )
        if parts.username is not None or parts.password is not None:
            raise GateError("url_fetch: an address with a user name is not fetched")
        if _matches(host, self._deny) or (self._allow and not _matches(host, self._allow)):
            raise GateError(f"url_fetch: host '{host}' is not among those that may be reached")
        literal = ":" in host or host.replace(".", "").isdigit()
        port = port or (443 if parts.scheme == "https" else 80)
        if literal and not self._gate(host, port):
            raise GateError(_refusal_text(f"'{host}'"))

    def _socket(self, info: "AddrInfoType") -> socket.socket:
        """Make the socket of a connection, or refuse: the last word, whatever was resolved
        before.
        """
        family, kind, protocol, _, place = info
        if not self._gate(place[0], place[1]):
            raise GateError(_refusal_text(f"'{place[0]}'"))
        return socket.socket(family=family, type=kind, proto=protocol)


def _matches(host: str, names: Sequence[str]) -> bool:
    host = host.casefold()
    return any(host == name or host.endswith(f".{name}") for name in names)


async def _get(
    session: aiohttp.ClientSession, url: str
) -> tuple[str, str | None, bytes, str | None]:
    """Return media type, charset and body of a page, or where it has moved."""
    try:
        async with session.get(url, allow_redirects=False) as response:
            if response.status in _MOVED and "Location" in response.headers:
                return "", None, b"", urljoin(url, response.headers["Location"])
            if response.status != 200:
                raise ToolError(f"url_fetch: HTTP {response.status}")
            kind = response.content_type.casefold()
            if kind not in (*_MARKUP, *_PLAIN):
                raise ToolError(f"url_fetch: {kind[:80]} is no text")
            encoding = response.headers.get("Content-Encoding", "identity").strip().casefold()
            return kind, response.charset, await _body(response, encoding), None
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientError, OSError, ValueError) as error:
        message = " ".join(str(error).split())[:200]
        raise ToolError(f"url_fetch: {type(error).__name__}: {message}") from None


def _unreached(error: aiohttp.ClientConnectorError, *, online: bool) -> GateError | ToolError:
    """Tell an address that is not there from a network that is not there.

    A machine without a network may say "no such name" of every name; so that is believed once any
    name was found.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, GateError):
            return cause
        cause = cause.__cause__ or cause.__context__
    number = error.os_error.errno
    if isinstance(error.os_error, socket.gaierror):
        if number in _NO_NAME and online:
            return ToolError("url_fetch: there is no such host")
        return ToolError("url_fetch: names cannot be resolved: no network", unavailable=True)
    if number in _NO_NETWORK:
        return ToolError("url_fetch: there is no way to the network", unavailable=True)
    return ToolError(f"url_fetch: no connection: {error.os_error.strerror or 'refused'}")


async def _body(response: aiohttp.ClientResponse, encoding: str) -> bytes:
    """Return the body as far as the bound goes, unpacked block by block."""
    if encoding not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise ToolError(f"url_fetch: packed as '{encoding[:40]}', which was not asked for")
    packed = encoding not in ("identity", "")
    unpack = zlib.decompressobj(wbits=47) if packed else None  # 47: gzip or zlib, as it says
    body, read = bytearray(), 0
    async for block in response.content.iter_chunked(_BLOCK):
        read += len(block)
        remaining = MOST_BYTES - len(body)
        if unpack is None:
            body += block[:remaining]
        else:
            try:
                body += unpack.decompress(block, remaining)
            except zlib.error:
                raise ToolError("url_fetch: the page is packed, and damaged") from None
        if len(body) >= MOST_BYTES or read >= MOST_BYTES:
            break
    return bytes(body)


async def _text_of(kind: str, charset: str | None, data: bytes) -> str:
    if kind in _MARKUP:
        text, _ = await extract_document(data)
    else:
        text = data.decode(_codec(charset), "replace")
    text = text.strip()
    if not text:
        raise ToolError("url_fetch: the page holds no text")
    return text


def _codec(charset: str | None) -> str:
    """Return the codec of a charset that pages have.

    UTF-8 for any other, since some codecs hang, fail, or are no charsets.
    """
    try:
        codec_name = codecs.lookup(charset or "utf-8").name
    except (LookupError, ValueError):
        return "utf-8"
    return codec_name if codec_name in _CODECS else "utf-8"


async def extract_document(page: bytes) -> tuple[str, list[tuple[int, str]]]:
    """Return the text of markup, and level and title of its headings, by a process of its own that
    is ended when the time is over.
    """
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "medassay.context.tools.page_text",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _KEPT_IN_CHILD if name in os.environ},
    )
    try:
        output, _ = await child.communicate(page)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        raise ToolError("url_fetch: the page's text cannot be extracted")
    document = json.loads(output)
    return document["text"], [(level, title) for level, title in document["headings"]]


def need_extractor() -> None:
    """Refuse to begin without the library that extracts text.

    Raises
    ------
    UnavailableError
        Saying how to get it.
    """
    from importlib.util import find_spec

    if find_spec("trafilatura") is None:
        raise UnavailableError("url_fetch needs the extra: pip install 'medassay[tools]'")
