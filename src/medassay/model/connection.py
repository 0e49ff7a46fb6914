"""Which connections to an endpoint are allowed, for every provider, embedder and judge: to the host
that its entry names, directly, and nowhere else. `session` opens them.

A key and the questions go along with each request. So no redirect is followed, no proxy of the
environment is used, and an entry that says that it is local is asked only at a loopback or private
address, or at a host that `trusted_hosts` of the models file names. The address is looked at where
the connection is made: a name that changes its address between two looks gains nothing.
"""

import os
import socket
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

from medassay.core.address import is_own
from medassay.core.records.model import ModelSpec
from medassay.core.secret import secrets
from medassay.errors import Permanent

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_LONGEST_ADDRESS = 200  # characters of an address that an endpoint names
_DEEPEST = 20  # errors behind one another
E = TypeVar("E", bound=BaseException)


class ElsewhereError(OSError):
    """Say that a host of a local entry is at an address elsewhere; nothing was sent there."""


def proxies_set() -> list[str]:
    """Return the variables of the environment that name a proxy, which no endpoint is asked
    through.
    """
    return sorted(n for n in os.environ if n.casefold() in _PROXIES and os.environ[n])


def is_bound(spec: ModelSpec) -> bool:
    """Return whether an entry may be asked at loopback and private addresses only.

    A vendor's without a `url` is, too.
    """
    if spec.location != "local" or spec.in_process or spec.is_scripted:
        return False
    return (urlsplit(spec.url).hostname or "").rstrip(".") not in spec.trusted_hosts


def why_elsewhere(spec: ModelSpec) -> str | None:
    """Return why the host of a local entry cannot be taken for one of this place, None if it
    can.
    """
    if not is_bound(spec):
        return None
    parts = urlsplit(spec.url)
    if not parts.hostname:
        return "it names no 'url', so that its vendor's own address would be asked"
    try:
        addresses = socket.getaddrinfo(parts.hostname, parts.port or 0, type=socket.SOCK_STREAM)
    except OSError:
        return f"its host '{parts.hostname}' has no address"
    for *_, place in addresses:
        if not is_own(str(place[0])):
            return f"its host '{parts.hostname}' is at {place[0]}, no loopback or private address"
    return None


def refuse_redirect(spec: ModelSpec, status: int, address: str, where: str | None) -> None:
    """Refuse a reply that sends on to another address.

    Raises
    ------
    Permanent
        With both addresses.
    """
    if not 300 <= status < 400:
        return
    try:
        to = _bare(urljoin(address, where)) if where else "no address"
    except ValueError:  # of what is no address
        to = _bare(where or "")
    raise Permanent(
        f"{spec.id}: HTTP {status}: {_bare(address)} sends on to {to}; redirects are not followed,"
        " since key and question would go along: if that address is right, make it the entry's"
        " 'url'",
        refused=True,
    )


def _bare(address: str) -> str:
    """Return an address for a message: without a query, which may hold a key."""
    return secrets.quote(address.partition("?")[0], _LONGEST_ADDRESS)


def refuse_elsewhere(address: str) -> None:
    """Refuse an address that is neither loopback nor private.

    Raises
    ------
    ElsewhereError
        With the address.
    """
    if not is_own(address):
        raise ElsewhereError(f"{address} is no loopback or private address")


def elsewhere(spec: ModelSpec, error: BaseException) -> Permanent | None:
    """Return what is said where a connection failed since a local entry's host is elsewhere, None
    for any other failure.
    """
    cause = caused_by(error, ElsewhereError)
    if cause is None:
        return None
    return Permanent(
        f"{spec.id}: marked local, but {cause}; nothing was sent there: if it is of this place,"
        " name its host in 'trusted_hosts' of the models file",
        endpoint_wide=True,
        refused=True,
    )


def caused_by(error: BaseException | None, kind: type[E]) -> E | None:
    """Return the error of a kind that is behind another one, as libraries wrap it; None if there is
    none.
    """
    for _ in range(_DEEPEST):
        if error is None or isinstance(error, kind):
            return error
        # aiohttp keeps what the operating system said in an attribute.
        error = error.__cause__ or getattr(error, "os_error", None) or error.__context__
    return None
