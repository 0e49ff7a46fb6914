"""Who may look: whoever opened the link that was printed, once, in one browser; nobody else, and no
page of another site.
"""

import hmac
import secrets
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.responses import PlainTextResponse, RedirectResponse, Response

from medassay.web.guard import host_of, is_loopback

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_TOKEN = "token"
_NO_LINK = (
    "This viewer opens by the link that the terminal printed. It works once, in one browser: to"
    " open another one, stop `medassay view` and start it again.\n"
)
_OTHER_HOST = "Open it under the address that the terminal printed.\n"
_OTHER_SITE = "Refused: this request comes from another site.\n"


class LinkGate:
    """Pass on what comes from the browser that opened the link.

    Parameters
    ----------
    address : at which the viewer is reached, without a path
    """

    def __init__(self, app: "ASGIApp", address: str) -> None:
        self._app = app
        self._address = address
        parts = urlsplit(address)
        self._host, self._secure = parts.hostname or "", parts.scheme == "https"
        # Cookies know no ports: two viewers on one machine must not take each other's.
        self._cookie = f"medassay-view-{parts.port or 0}"
        self._session = secrets.token_urlsafe(32)
        self.token = secrets.token_urlsafe(32)
        self._used = False

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        answer = self._refusal(scope, headers) or self._entry(scope, headers)
        await (answer or self._app)(scope, receive, send)

    def _refusal(self, scope: "Scope", headers: dict[bytes, str]) -> Response | None:
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("Here one only looks.\n", 405, {"allow": "GET, HEAD"})
        host = host_of(headers.get(b"host", ""))
        if host != self._host and not (is_loopback(host) and is_loopback(self._host)):
            return PlainTextResponse(_OTHER_HOST, 403)
        origin = headers.get(b"origin")
        own_origin = f"{scope['scheme']}://{headers.get(b'host', '')}"
        # A link on another site may lead here; nothing on it may load what is here.
        site, mode = headers.get(b"sec-fetch-site", ""), headers.get(b"sec-fetch-mode", "")
        if origin not in (None, own_origin) or (site == "cross-site" and mode != "navigate"):
            return PlainTextResponse(_OTHER_SITE, 403)
        return None

    def _entry(self, scope: "Scope", headers: dict[bytes, str]) -> Response | None:
        """Return what leads in by the link or keeps out; None for who is in."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        rest = [(name, value) for name, value in query if name != _TOKEN]
        tokens = [value for name, value in query if name == _TOKEN]
        inside = _same(_cookie(headers.get(b"cookie", ""), self._cookie), self._session)
        if not tokens:
            return None if inside else PlainTextResponse(_NO_LINK, 403)
        # Previews ask ahead of people: only who goes there enters.
        ahead = scope["method"] == "HEAD" or b"sec-purpose" in headers or b"purpose" in headers
        enters = not (self._used or ahead) and _same(tokens[0], self.token)
        if not (inside or enters):
            return PlainTextResponse(_NO_LINK, 403)
        # The link is good for one browser, and leaves its history and its address bar.
        to = Response(status_code=303, headers={"location": _target(scope["path"], rest)})
        if enters:
            self._used = True
            to.set_cookie(
                self._cookie,
                self._session,
                path="/",
                httponly=True,
                samesite="lax",
                secure=self._secure,
            )
        return to


def _target(path: str, query: list[tuple[str, str]]) -> str:
    clean = str(RedirectResponse("/" + path.lstrip("/")).headers["location"])  # escapes it
    return f"{clean}?{urlencode(query)}" if query else clean


def _cookie(header: str, name: str) -> str:
    """Return the value of a cookie.

    Cookies of all servers of this machine come together, and one that is oddly written must not
    hide ours: the parser of the standard library drops them all then.
    """
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return next((value for key, _, value in pairs if key == name), "")


def _same(text: str, expected: str) -> bool:
    return hmac.compare_digest(text.encode("utf-8", "replace"), expected.encode())
