"""Serving the app: where it listens, and the link of the first admin."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from medassay.errors import InputError, UnavailableError
from medassay.review.store import accounts
from medassay.review.store.database import Database
from medassay.web.guard import is_loopback
from medassay.web.settings import Settings

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where the server listens, and whose forwarded headers it believes."""

    host: str
    port: int
    proxies: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None


def serve_app(
    database: Database, settings: Settings, where: Listening, *, say: Say, result: Say
) -> None:
    """Serve until stopped; the address goes to `result`, the rest to `say`.

    Raises
    ------
    InputError
        When it would be reached over plain HTTP from elsewhere, or the port is taken.
    """
    try:
        import uvicorn

        from medassay.web.app import build_app
    except ImportError as error:
        raise UnavailableError(
            f"the review app needs the extra [web] ({error.name} is missing): pip install 'medassay[web]'"
        ) from None
    _check(where, settings)
    listener = _bound(where)
    port = listener.getsockname()[1]
    scheme = "https" if where.certificate else "http"
    shown = f"[{where.host}]" if ":" in where.host else where.host
    address = settings.origin or f"{scheme}://{shown}:{port}"
    with database.write() as db:
        if not accounts.has_admin(db):
            token = accounts.invite_first(db)
            say("nobody administers this server yet; this link works once, for seven days:")
            result(f"{address}{settings.root_path}/invite/{token}")
    say(f"medassay review: {address}{settings.root_path}/ (Ctrl-C stops)")
    config = uvicorn.Config(
        build_app(database, settings),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(where.proxies),
        forwarded_allow_ips=list(where.proxies),
        ssl_certfile=where.certificate,
        ssl_keyfile=where.key,
        timeout_graceful_shutdown=10,
    )
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        listener.close()


def _check(where: Listening, settings: Settings) -> None:
    if (where.certificate is None) != (where.key is None):
        raise InputError("--certificate and --key come together")
    for path in (where.certificate, where.key):
        if path is not None and not path.is_file():
            raise InputError(f"{path}: no such file; expected PEM")
    if settings.origin and not settings.origin.startswith(("https://", "http://")):
        raise InputError(f"--url '{settings.origin}'; expected https://…")
    if settings.root_path and not settings.root_path.startswith("/"):
        raise InputError(f"--root-path '{settings.root_path}'; expected it to begin with /")
    if not (is_loopback(where.host) or where.certificate or where.proxies):
        raise InputError(
            f"{where.host}: plain HTTP is served on this machine only; give --certificate and --key, or --proxy with "
            "the address of the proxy that speaks HTTPS"
        )


def _bound(where: Listening) -> socket.socket:
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    # TCP said outright: only then does asyncio send small replies at once (TCP_NODELAY), not 40 ms later.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((where.host, where.port))
    except OSError as error:
        listener.close()
        raise InputError(
            f"{where.host}:{where.port}: {error.strerror}; choose another --port"
        ) from None
    return listener
