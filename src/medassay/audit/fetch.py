"""A copy of a site from a web server, so that it is checked as a folder is.

What comes is hostile: names lead nowhere but below the folder, sizes are bounded, and no other
server is followed to.
"""

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from medassay.core.ledger import HEAD, LEDGER, SITE_SUMS, is_publication, status_of
from medassay.errors import InputError, IntegrityError, Transient
from medassay.runner.bridge import run_async
from medassay.storage.ledger import read_ledger
from medassay.storage.run import SUMS

if TYPE_CHECKING:
    import aiohttp

_AT_ONCE = 16
_LONGEST = 8 * 2**30  # bytes of one file
_LONGEST_LIST = 64 * 2**20  # bytes of a list that is read whole
_SECONDS = 60  # without a byte
_MISSING = (403, 404, 410)


def is_address(place: str | Path) -> bool:
    """Return whether a place is on a web server.

    Examples
    --------
    >>> is_address("https://example.org/board/"), is_address("runs/x-1")
    (True, False)
    """
    return bool(re.match("https?://", str(place), re.IGNORECASE))


def fetch_site(address: str, folder: Path) -> Path:
    """Return a folder with every file that the ledger, or a publication, lists at an address.

    Raises
    ------
    InputError
        When the address holds neither a site nor a publication.
    Transient
        When the server cannot be reached or breaks off.
    IntegrityError
        When a list names a file outside of the site.
    """
    try:
        parts = urlsplit(address)
        known = parts.port is None or parts.port > 0
    except ValueError:
        parts, known = urlsplit(""), False
    if not known or parts.query or parts.fragment or parts.username or not parts.hostname:
        raise InputError(f"{address}: expected http(s)://host/path/ of a site or a publication")
    base = re.sub(r"index\.html$", "", address).rstrip("/") + "/"
    return run_async(lambda: _Copy(base, folder).whole())


def listed_names(sums: bytes) -> list[str]:
    r"""Return the file names of a list of sums; each must stay below its folder.

    Raises
    ------
    IntegrityError
        Naming the line that does not.

    Examples
    --------
    >>> listed_names(b"00  data/x.csv\n")
    ['data/x.csv']
    """
    names = []
    for number, line in enumerate(sums.decode("utf-8", "replace").splitlines(), 1):
        name = line.partition("  ")[2]
        parts = PurePosixPath(name).parts
        if any(len(part.encode()) > 255 for part in parts):
            raise IntegrityError(f"{SUMS} line {number}: a name of {len(name)} characters")
        if not parts or name.startswith("/") or ".." in parts or "\0" in name or "\\" in name:
            raise IntegrityError(
                f"{SUMS} line {number}: '{name}' is no file of the publication"
            )
        names.append(name)
    return names


class _Copy:
    """One site being copied."""

    _session: "aiohttp.ClientSession"

    def __init__(self, base: str, folder: Path) -> None:
        self._base, self._folder = base, folder

    async def whole(self) -> Path:
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as self._session:
            if await self._fetch(LEDGER):
                await self._site()
                return self._folder
            if await self._fetch(f"data/{SUMS}"):
                await self._publication("")
                return self._folder
        raise InputError(
            f"{self._base}: neither {LEDGER} nor data/{SUMS} there; expected the address of a site "
            "or a publication"
        )

    async def _site(self) -> None:
        entries = read_ledger(self._folder)
        states = status_of(entries)
        for name in states:
            if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,199}", name):
                raise IntegrityError(f"{LEDGER}: '{name}' is no id of a publication")
        own = [HEAD, SITE_SUMS, "index.html", "log/index.html"]
        own += [f"status/{name}.json" for name in states]
        own += [f"status/{name}/index.html" for name in states]
        await self._all(own)
        for entry in entries:
            if is_publication(entry):
                prefix = f"p/{entry.record['publication']}/"
                (self._folder / prefix).mkdir(parents=True, exist_ok=True)
                if await self._fetch(f"{prefix}data/{SUMS}"):
                    await self._publication(prefix)

    async def _publication(self, prefix: str) -> None:
        sums = (self._folder / prefix / "data" / SUMS).read_bytes()
        await self._all([prefix + name for name in listed_names(sums)])

    async def _all(self, names: Iterable[str]) -> None:
        """Fetch files; those that are missing stay missing, as the check will find."""
        waiting = iter(names)

        async def work() -> None:
            for name in waiting:
                await self._fetch(name)

        await asyncio.gather(*(work() for _ in range(_AT_ONCE)))

    async def _fetch(self, name: str) -> bool:
        """Fetch one file; False when the server has none."""
        import aiohttp

        url = self._base + quote(name)
        target = self._folder / name
        try:
            async with self._session.get(url, allow_redirects=False) as reply:
                if reply.status in _MISSING:
                    return False
                if reply.status != 200:
                    where = reply.headers.get("Location", "")
                    more = f" to {where}; give that address" if where else ""
                    raise Transient(f"{url}: the server answers {reply.status}{more}")
                target.parent.mkdir(parents=True, exist_ok=True)
                left = _LONGEST_LIST if name == LEDGER or name.endswith(SUMS) else _LONGEST
                most = left
                with target.open("wb") as file:
                    async for block in reply.content.iter_chunked(1 << 18):
                        left -= len(block)
                        if left < 0:
                            raise IntegrityError(f"{url}: longer than {most} bytes")
                        file.write(block)
        except (aiohttp.ClientError, TimeoutError) as error:
            said = str(error)
            what = said if said and said != url else type(error).__name__
            raise Transient(f"{url}: {what}; nothing was checked") from None
        except (OSError, UnicodeError) as error:  # a name that no file here can have
            raise IntegrityError(f"{url}: cannot be kept: {type(error).__name__}") from None
        return True
