"""Serving the app: where it listens, and the link of the first admin."""

import ipaddress
import re
import signal
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from medassay.errors import InputError, UnavailableError
from medassay.review.store import accounts, links
from medassay.review.store.database import Database
from medassay.web.guard import is_loopback
from medassay.web.settings import AppSettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from medassay.viewer.place import ViewedPlace

Say = Callable[[str], None]


class ListenAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the server listens, and whose forwarded headers it believes."""

    host: str
    port: int
    proxies: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None


def serve_app(
    database: Database, settings: AppSettings, where: ListenAddress, *, say: Say, result: Say
) -> None:
    """Serve until stopped; the address goes to `result`, the rest to `say`.

    Raises
    ------
    InputError
        When it would be reached over plain HTTP from elsewhere, or the port is taken.
    """
    try:
        from medassay.web.app import guarded_app
    except ImportError as error:
        raise UnavailableError(
            f"the review app needs the extra [web] ({error.name} is missing): pip install"
            " 'medassay[web]'"
        ) from None
    _check(where)
    _check_proxies(where, settings)
    if _is_plain_to_others(where) and not where.proxies:
        raise InputError(
            f"{where.host}: plain HTTP is served on this machine only; give --certificate and"
            " --key, or --proxy with the address of the proxy that speaks HTTPS"
        )
    listener = bound(where)
    address = settings.origin or address_of(listener, where)
    with database.write() as db:
        if not accounts.has_admin(db):
            token = links.invite_first(db)
            say("nobody administers this server yet; this link works once, for seven days:")
            result(f"{address}{settings.root_path}/invite/{token}")
    say(f"medassay review: {address}{settings.root_path}/ (Ctrl-C stops)")
    _listen(guarded_app(database, settings), listener, where)


def serve_viewer(
    place: "ViewedPlace", where: ListenAddress, *, origin: str, say: Say, result: Say
) -> None:
    """Serve the viewer of runs until stopped; the link that opens it goes to `result`.

    Raises
    ------
    InputError
        As `serve_app`.
    """
    from medassay.web.viewer.app import guarded_viewer

    _check(where)
    if _is_plain_to_others(where):
        raise InputError(
            f"{where.host}: plain HTTP is served on this machine only; give --certificate and"
            " --key, or forward the port: see --help"
        )
    listener = bound(where)
    address = origin or address_of(listener, where)
    app, token = guarded_viewer(place, address)
    place.start()
    try:
        with suppress(KeyboardInterrupt):  # the way to end it
            say("medassay view: open this link, which works once (Ctrl-C stops)")
            result(f"{address}/?token={token}")
            _listen(app, listener, where)
    finally:
        listener.close()
        place.stop()


def address_of(listener: socket.socket, where: ListenAddress) -> str:
    """Return the address at which a server is reached."""
    port = listener.getsockname()[1]
    scheme = "https" if where.certificate else "http"
    host_shown = f"[{where.host}]" if ":" in where.host else where.host
    return f"{scheme}://{host_shown}:{port}"


def _listen(app: "ASGIApp", listener: socket.socket, where: ListenAddress) -> None:
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(where.proxies),
        forwarded_allow_ips=list(where.proxies),
        ssl_certfile=where.certificate,
        ssl_keyfile=where.key,
        timeout_graceful_shutdown=10,
    )
    server = uvicorn.Server(config)

    def end(*_: object) -> None:
        server.should_exit = True

    # The end of its terminal ends it as SIGTERM does; uvicorn itself does not hear of it.
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGHUP, end) if in_main else None
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()
        if in_main:
            signal.signal(signal.SIGHUP, before)


def _check(where: ListenAddress) -> None:
    if (where.certificate is None) != (where.key is None):
        raise InputError("--certificate and --key come together")
    for path in (where.certificate, where.key):
        if path is not None and not path.is_file():
            raise InputError(f"{path}: no such file; expected PEM")
    if where.certificate is not None:
        _check_certificate(where)


def _check_proxies(where: ListenAddress, settings: AppSettings) -> None:
    if settings.root_path and not re.fullmatch(r"(/[\w.~-]+)+", settings.root_path, re.ASCII):
        raise InputError(
            f"--root-path '{settings.root_path}'; expected it to begin with / and to have letters,"
            " digits and ._~- only"
        )
    for proxy in where.proxies:
        try:
            ipaddress.ip_network(proxy, strict=False)
        except ValueError:
            raise InputError(
                f"--proxy '{proxy}'; expected the address of one proxy or of its network, such as"
                " 10.0.0.5"
            ) from None


def _is_plain_to_others(where: ListenAddress) -> bool:
    return not (is_loopback(where.host) or where.certificate)


def checked_origin(url: str) -> str:
    """Return a public address without a path, as browsers write it: no default port, small letters.

    Raises
    ------
    InputError
        When it is none.

    Examples
    --------
    >>> checked_origin("https://Review.example.org:443/")
    'https://review.example.org'
    """
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    host = parts.hostname or ""
    plain = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username)
    if (
        parts.scheme not in ("https", "http")
        or not host.isprintable()
        or " " in host
        or not host
        or not plain
    ):
        raise InputError(f"--url '{url}'; expected https://… and no path")
    host_shown = f"[{host}]" if ":" in host else host
    usual = {"https": 443, "http": 80}[parts.scheme]
    return f"{parts.scheme}://{host_shown}" + ("" if port in (None, usual) else f":{port}")


def _check_certificate(where: ListenAddress) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(str(where.certificate), str(where.key))
    except (ssl.SSLError, OSError) as error:
        raise InputError(
            f"{where.certificate}, {where.key}: no certificate with its key"
            f" ({error.strerror or 'not PEM'})"
        ) from None


def bound(where: ListenAddress) -> socket.socket:
    """Return a socket that listens at an address.

    Raises
    ------
    InputError
        When there is no such address, or the port is taken.
    """
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    # TCP said outright: only then does asyncio send small replies at once (TCP_NODELAY), not 40 ms
    # later.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((where.host, where.port))
    except socket.gaierror:
        listener.close()
        raise InputError(f"--host '{where.host}': no address of this machine") from None
    except OSError as error:
        listener.close()
        raise InputError(
            f"{where.host}:{where.port}: {error.strerror}; choose another --port"
        ) from None
    # Whoever follows the printed link before the server is up waits a moment instead of being
    # refused.
    listener.listen()
    return listener
