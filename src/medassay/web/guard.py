"""What every request passes first: where it comes from, how long it is, and what every reply says
to browsers.
"""

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src"
    " 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_SAFE = ("GET", "HEAD", "OPTIONS")
MOST_BYTES = 32 << 20  # of a request: an uploaded bank; forms are far smaller


class Guard:
    """Refuse requests from elsewhere, over plain HTTP or too long.

    Add the headers that protect what is shown.
    """

    def __init__(self, app: "ASGIApp", origin: str = "", root_path: str = "") -> None:
        self._app = app
        self._origin = origin
        self._root = root_path

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._root:
            scope = _below(scope, self._root)
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        secure = scope["scheme"] == "https"

        async def protected(message: "Message") -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                more = [pair for pair in _HEADERS if pair[0] not in there]
                # Pages are for one reader; style and script are asked after.
                if b"cache-control" not in there:
                    cache_rule = b"no-cache" if "/static/" in scope["path"] else b"no-store"
                    more.append((b"cache-control", cache_rule))
                if secure:
                    more.append((b"strict-transport-security", b"max-age=31536000"))
                message["headers"] = [*message["headers"], *more]
            await send(message)

        refused = self._refusal(scope, headers, secure=secure)
        if refused is not None:
            await refused(scope, receive, protected)
            return
        await self._app(scope, _limited(receive), protected)

    def _refusal(
        self, scope: "Scope", headers: dict[bytes, str], *, secure: bool
    ) -> PlainTextResponse | None:
        if not secure and not is_loopback((scope.get("client") or ("", 0))[0]):
            says = "Plain HTTP is served on this machine only: use HTTPS.\n"
            return PlainTextResponse(says, 403)
        # Another name for this machine is another site's, whose pages would then be of one origin
        # with ours.
        if not self._origin and not secure and not is_loopback(host_of(headers.get(b"host", ""))):
            says = "Open it as localhost, or start it with the address that people use: --url.\n"
            return PlainTextResponse(says, 403)
        length = headers.get(b"content-length", "0")
        if not length.isdigit() or int(length) > MOST_BYTES:
            return PlainTextResponse("The request is too long.\n", 413)
        if scope["method"] in _SAFE:
            return None
        ours = self._origin or f"{scope['scheme']}://{headers.get(b'host', '')}"
        theirs = headers.get(b"origin") or origin_of(headers.get(b"referer", ""))
        if theirs != ours:
            return PlainTextResponse("Refused: this request comes from another site.\n", 403)
        return None


def _below(scope: "Scope", root: str) -> "Scope":
    """Return a request as it stands below the path of a proxy, whether that has stripped its path
    or left it.
    """
    path = scope["path"]
    if path != root and not path.startswith(f"{root}/"):
        path = f"{root}{path}"
    return {**scope, "root_path": root, "path": path, "raw_path": path.encode()}


def _limited(receive: "Receive") -> "Receive":
    """Return what reads a request, up to the limit, whatever length it announced."""
    n_bytes = 0

    async def read() -> "Message":
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > MOST_BYTES:
            return {"type": "http.disconnect"}
        return message

    return read


def origin_of(address: str) -> str:
    """Return scheme, host and port of an address; "" for what is none."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def host_of(host: str) -> str:
    """Return the host of a Host header, without its port; "" for what is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Return whether an address is of this machine.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("10.0.0.1"), is_loopback("")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
