"""Write files of lines, and folders that come to be whole."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from medassay.core.canonical import canonical

# A disk, a quota or a limit of the system that takes no more.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records to a file, a line each.

    Raises
    ------
    OSError
        Naming the file, when the disk takes no more of it; whatever `records` raise.
    """
    with naming(path), path.open("wb") as file:
        file.writelines(canonical(record) + b"\n" for record in records)


def write_synced(path: Path, data: bytes) -> None:
    """Write a file, which is on the disk when this returns.

    Raises
    ------
    OSError
        Naming the file.
    """
    with naming(path), path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_whole(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write a file in one step: at any time it is there whole, or as it was before.

    Raises
    ------
    OSError
        Naming the file; no draft stays then.
    """
    draft = path.with_name(f"{path.name}.part")
    try:
        write_synced(draft, data)
        if mode is not None:
            draft.chmod(mode)
        draft.replace(path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error of a full disk name a file: Python names none that was open already."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL:
            error.filename = str(path)
        raise


@contextmanager
def whole_folder(to: Path) -> Iterator[Path]:
    """Yield a draft folder; it is renamed to `to` at the end, or removed if the block raises."""
    to.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{to.name}-", dir=to.parent))
    draft.chmod(0o755)
    try:
        yield draft
        draft.rename(to)
    finally:
        if draft.exists():
            shutil.rmtree(draft)
