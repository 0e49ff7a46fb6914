"""What stands in a folder that is verified: plain files and folders, each known by a list, and
nothing else.

Everything is looked at by its own entry, never by what a link leads to, and before any file is
opened: a pipe would be waited for without end, a link would show files of somebody else.
"""

import os
import stat
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from medassay.publishing.report import Mismatch

# What a web server or its host wants beside a site's own files; nothing of the site points there.
_OF_THE_HOST = frozenset(
    [
        "robots.txt",
        "CNAME",
        "favicon.ico",
        "favicon.png",
        "favicon.svg",
        ".nojekyll",
        ".lock",
    ]
)
_WELL_KNOWN = ".well-known/"
_KINDS = {
    stat.S_IFLNK: "a link; its place must hold the file itself",
    stat.S_IFIFO: "a pipe, no file",
    stat.S_IFSOCK: "a socket, no file",
    stat.S_IFBLK: "a device, no file",
    stat.S_IFCHR: "a device, no file",
}


def files_in(folder: Path, may_be_empty: Collection[str] = ()) -> set[str]:
    """Return the names of all files below a folder, relative to it.

    Parameters
    ----------
    may_be_empty : names of folders in it that may hold nothing

    Raises
    ------
    Mismatch
        Naming the first entry that is neither a plain file nor a folder; that shares its bytes with
        a name elsewhere; that another one differs from by case alone; or that is an empty folder.
    """
    names: set[str] = set()
    links: Counter[tuple[int, int]] = Counter()
    expected: dict[tuple[int, int], tuple[int, str]] = {}
    twins: dict[str, str] = {}
    for name, entry_status in _entries(folder, "", frozenset(may_be_empty)):
        alike = unicodedata.normalize("NFC", name).casefold()
        if twins.setdefault(alike, name) != name:
            raise Mismatch(
                f"{name}: differs from {twins[alike]} by case alone; many systems hold one of them"
            )
        if stat.S_ISDIR(entry_status.st_mode):
            continue
        if (kind := _KINDS.get(stat.S_IFMT(entry_status.st_mode))) is not None:
            raise Mismatch(f"{name}: {kind}")
        names.add(name)
        if entry_status.st_nlink > 1:
            place = (entry_status.st_dev, entry_status.st_ino)
            links[place] += 1
            expected[place] = (entry_status.st_nlink, name)
    for place, (count, name) in expected.items():
        if links[place] < count:
            raise Mismatch(
                f"{name}: a hard link to a file elsewhere, through which it can be changed; copy it"
            )
    return names


def _entries(
    folder: Path, under: str, may_be_empty: frozenset[str]
) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder / under) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    if not listed and under and under.rstrip("/") not in may_be_empty:
        raise Mismatch(f"{under.rstrip('/')}: an empty folder, which no list names")
    for entry in listed:
        name, status = under + entry.name, entry.stat(follow_symlinks=False)
        yield name, status
        if stat.S_ISDIR(status.st_mode):
            yield from _entries(folder, f"{name}/", may_be_empty)


def of_the_host(name: str) -> bool:
    """Return whether a file at the root of a site belongs to the web server's host, and to no
    publication.
    """
    return name in _OF_THE_HOST or name.startswith(_WELL_KNOWN)
