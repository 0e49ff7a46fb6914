"""A copy of a site from a web server, so that it is checked as a folder is.

What comes is hostile: names lead nowhere but below the folder, sizes are bounded, and no other
server is followed to.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import msgspec

from medassay.core.ledger import LEDGER, SITE_SUMS
from medassay.errors import InputError, IntegrityError, Transient
from medassay.runner.event_loop import run_async
from medassay.storage.ledger import read_ledger
from medassay.storage.run import SUMS

if TYPE_CHECKING:
    import aiohttp

_AT_ONCE = 16
_LONGEST_LIST = 64 * 2**20  # bytes of a list that is read whole
_SECONDS = 60  # without a byte
_PROGRESS_INTERVAL = 5.0  # seconds
_MISSING = (403, 404, 410)


class ReadLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a server is read at most: seconds and bytes in all, and files."""

    seconds: float = 1800.0
    bytes: int = 20 * 2**30
    files: int = 1_000_000


def is_address(place: str | Path) -> bool:
    """Return whether a place is on a web server.

    Examples
    --------
    >>> is_address("https://example.org/board/"), is_address("runs/x-1")
    (True, False)
    """
    return bool(re.match("https?://", str(place), re.IGNORECASE))


def fetch_site(
    address: str,
    folder: Path,
    bounds: ReadLimits,
    tell: Callable[[str], None] = lambda line: None,
) -> Path:
    """Return a folder with every file that the ledger, or a publication, lists at an address.

    Parameters
    ----------
    tell : called every five seconds with how far it is

    Raises
    ------
    InputError
        When the address holds neither a site nor a publication.
    Transient
        When the server cannot be reached, breaks off, or takes longer than the bound.
    IntegrityError
        When a list names a file outside of the site, or there is more than the bounds allow.
    """
    try:
        parts = urlsplit(address)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        parts, has_port = urlsplit(""), False
    if not has_port or parts.query or parts.fragment or parts.username or not parts.hostname:
        raise InputError(f"{address}: expected http(s)://host/path/ of a site or a publication")
    base = re.sub(r"index\.html$", "", address).rstrip("/") + "/"
    return run_async(lambda: _Copy(base, folder, bounds, tell).within())


def listed_names(sums: bytes, file: str = SUMS) -> list[str]:
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
            raise IntegrityError(f"{file} line {number}: a name of {len(name)} characters")
        if not parts or name.startswith("/") or ".." in parts or "\0" in name or "\\" in name:
            raise IntegrityError(f"{file} line {number}: '{name}' is no file of this place")
        names.append(name)
    return names


class _Copy:
    _session: "aiohttp.ClientSession"

    def __init__(
        self, base: str, folder: Path, bounds: ReadLimits, tell: Callable[[str], None]
    ) -> None:
        self._base, self._folder = base, folder
        self._bounds, self._tell = bounds, tell
        self._bytes = self._files = 0

    async def within(self) -> Path:
        """Return the copy, within the bound of time."""
        telling = asyncio.create_task(self._progress())
        try:
            async with asyncio.timeout(self._bounds.seconds):
                return await self._whole()
        except TimeoutError:
            raise Transient(
                f"{self._base}: not read within {self._bounds.seconds:g} s ({self._amount_text()});"
                " nothing was checked: allow more by --most-seconds, or verify a copy in a folder"
            ) from None
        finally:
            telling.cancel()

    def _amount_text(self) -> str:
        return f"{self._files:,} files, {self._bytes / 1e6:,.1f} MB so far"

    async def _progress(self) -> None:
        while True:
            await asyncio.sleep(_PROGRESS_INTERVAL)
            self._tell(f"{self._base}: {self._amount_text()}")

    async def _whole(self) -> Path:
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=_SECONDS)
        # As the files are: what is packed could unpack to more than any bound.
        plain = {"Accept-Encoding": "identity"}
        async with aiohttp.ClientSession(
            timeout=timeout, headers=plain, auto_decompress=False
        ) as self._session:
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
        if await self._fetch(SITE_SUMS):
            own_files = listed_names((self._folder / SITE_SUMS).read_bytes(), SITE_SUMS)
            await self._all(name for name in own_files if name != LEDGER and name[:2] != "p/")
        for entry in entries:
            if entry.event.is_publication:
                prefix = f"p/{entry.event.publication}/"
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
        self._files += 1
        if self._files > self._bounds.files:
            raise IntegrityError(
                f"{self._base}: lists more than {self._bounds.files:,} files; nothing was checked:"
                " allow more by --most-files"
            )
        try:
            async with self._session.get(url, allow_redirects=False) as reply:
                if reply.status in _MISSING:
                    return False
                if reply.status != 200:
                    where = reply.headers.get("Location", "")
                    more = f" to {where}; give that address" if where else ""
                    raise Transient(f"{url}: the server answers {reply.status}{more}")
                if reply.headers.get("Content-Encoding", "identity") != "identity":
                    raise Transient(f"{url}: comes packed, though it was asked for as it is")
                target.parent.mkdir(parents=True, exist_ok=True)
                listing = name in (LEDGER, SITE_SUMS) or name.endswith(SUMS)
                n_left = _LONGEST_LIST if listing else self._bounds.bytes
                with target.open("wb") as file:
                    async for block in reply.content.iter_chunked(1 << 18):
                        n_left -= len(block)
                        self._bytes += len(block)
                        if n_left < 0:
                            raise IntegrityError(f"{url}: a list longer than any")
                        if self._bytes > self._bounds.bytes:
                            raise IntegrityError(
                                f"{self._base}: more than {self._bounds.bytes:,} bytes; nothing was"
                                " checked: allow more by --most-bytes"
                            )
                        file.write(block)
        except (aiohttp.ClientError, TimeoutError) as error:
            message = str(error)
            what = message if message and message != url else type(error).__name__
            raise Transient(f"{url}: {what}; nothing was checked") from None
        except (OSError, UnicodeError) as error:  # a name that no file here can have
            raise IntegrityError(f"{url}: cannot be kept: {type(error).__name__}") from None
        return True
