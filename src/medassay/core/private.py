"""Who may read what is written here: its owner alone, or the owner's group where `--shared` says
so; never everybody.

That holds for databases, journals, replies, runs, logs and keys, whatever the umask. A published
site is for everybody: see `open_to_all`.
"""

import os
from pathlib import Path


class FileAccess:
    """For whom files are made; set once from the global options."""

    shared = False

    @property
    def file_mode(self) -> int:
        """Return the mode of a file."""
        return 0o660 if self.shared else 0o600

    @property
    def folder_mode(self) -> int:
        """Return the mode of a folder; in a shared one, new files belong to its group."""
        return 0o2770 if self.shared else 0o700


access = FileAccess()


def make_folder(folder: Path) -> None:
    """Make a folder with what lies above it, if it is not there yet.

    One that is there keeps its mode.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=access.folder_mode)
    except FileExistsError:
        return
    folder.chmod(access.folder_mode)  # the umask has no say


def open_file(path: Path, flags: int) -> int:
    """Return the descriptor of a file that is made if it is not there yet."""
    file = os.open(path, flags | os.O_CREAT, 0o600)
    if access.shared and os.fstat(file).st_uid == os.geteuid():
        os.fchmod(file, access.file_mode)
    return file


def open_to_all(folder: Path) -> None:
    """Let everybody read a folder of a published site, where it is ours to say."""
    if folder.stat().st_uid == os.geteuid():
        folder.chmod(0o755)


def close_to_others(path: Path) -> None:
    """Make a file if it is not there yet, and take from one of ours whatever rights others have on
    it beyond those it shall have.
    """
    file = open_file(path, os.O_RDWR)
    try:
        status = os.fstat(file)
        mode = access.file_mode
        if status.st_uid == os.geteuid() and status.st_mode & 0o777 != mode:
            os.fchmod(file, mode)
    finally:
        os.close(file)
