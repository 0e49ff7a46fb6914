"""How a connection to an endpoint is opened: over aiohttp, or over a vendor's own library, by the
rules of `connection`. Both libraries are slow to import: who only reads runs does without.
"""

import socket
import ssl
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from medassay.core.records.model import ModelSpec
from medassay.model.connection import is_bound, refuse_elsewhere, refuse_redirect

if TYPE_CHECKING:
    import httpx2
    from aiohappyeyeballs import AddrInfoType

_CONNECT = 30.0  # seconds


def open_session(spec: ModelSpec, headers: dict[str, str]) -> aiohttp.ClientSession:
    """Return what asks an endpoint over aiohttp."""
    resolver = _LocalResolver() if is_bound(spec) else None
    connector = aiohttp.TCPConnector(
        limit=0,
        ttl_dns_cache=300,
        resolver=resolver,
        socket_factory=_own_socket if is_bound(spec) else None,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=spec.timeout),
        headers=headers,
        trust_env=False,
    )


def open_client(spec: ModelSpec) -> "httpx2.AsyncClient":
    """Return what asks an endpoint over a vendor's own library, which would follow redirects and
    proxies by itself.
    """
    import httpcore2
    import httpx2

    # The operating system's certificates, and those of SSL_CERT_FILE, as for every other endpoint.
    trusted = ssl.create_default_context()

    class Network(httpcore2.AnyIOBackend):
        """Connects to addresses that were looked at."""

        async def connect_tcp(self, host: str, port: int, *rest: Any, **options: Any) -> Any:
            if is_bound(spec):
                resolved = await _LocalResolver().resolve(host, port)
                host = resolved[0]["host"]
            return await super().connect_tcp(host, port, *rest, **options)

    async def refuse(response: httpx2.Response) -> None:
        where = response.headers.get("Location")
        refuse_redirect(spec, response.status_code, str(response.request.url), where)

    transport = httpx2.AsyncHTTPTransport(verify=trusted, trust_env=False)
    # The transport takes no backend, its pool does.
    transport._pool = httpcore2.AsyncConnectionPool(
        ssl_context=trusted, network_backend=Network(), max_connections=None
    )
    return httpx2.AsyncClient(
        transport=transport,
        timeout=httpx2.Timeout(spec.timeout, connect=_CONNECT),
        follow_redirects=False,
        trust_env=False,
        event_hooks={"response": [refuse]},
    )


class _LocalResolver(AbstractResolver):
    """Resolves a name, and refuses it when any of its addresses is neither loopback nor private."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a name; see aiohttp's `AbstractResolver`."""
        resolved = await aiohttp.ThreadedResolver().resolve(host, port, family)
        for address in resolved:
            refuse_elsewhere(address["host"])
        return resolved

    async def close(self) -> None:
        """Nothing to free."""


def _own_socket(info: "AddrInfoType") -> socket.socket:
    """Make the socket of a connection, or refuse: the last word, whatever was resolved before."""
    family, kind, protocol, _, place = info
    refuse_elsewhere(place[0])
    return socket.socket(family=family, type=kind, proto=protocol)
