"""What studies asked for before: how often each subject, under which token limit, and whether
anything came of it.

The replies are in the response store; this only says which of them count. Each inquiry adds one
file, which never changes, so that machines may write beside each other. Without these files nothing
is lost but that a raised limit asks everything anew.
"""

from collections.abc import Iterable
from pathlib import Path
from secrets import token_hex
from typing import Annotated

import msgspec

from medassay.core.log import log
from medassay.core.private import make_folder
from medassay.errors import InputError, IntegrityError
from medassay.storage.jsonl import read_as
from medassay.storage.run import write_new

INQUIRIES = "inquiries"  # of a workspace
_MAX_TIMES = 1_000_000  # times that anything is asked about


class LastAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """How one subject was asked about last.

    `basis` is the hash of what decides the replies besides the token limit; `times` counts the
    askings before it; `usable` says whether anything could be made of the replies.
    """

    basis: str
    times: Annotated[int, msgspec.Meta(ge=0, le=_MAX_TIMES)]
    max_tokens: Annotated[int, msgspec.Meta(ge=1)]
    usable: bool


def read_attempts(workspace: Path) -> dict[str, LastAttempt]:
    """Return how each subject was asked about last, by its basis.

    A file that is damaged is left out: the replies are stored all the same.

    Raises
    ------
    InputError
        When notes could not be written there: before anything is asked.
    """
    folder = workspace / INQUIRIES
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; expected a folder, or nothing; move it away")
    asked_entries: dict[str, LastAttempt] = {}
    for path in sorted(folder.glob("*.jsonl")):
        try:
            notes = [*read_as(path, LastAttempt)]
        except IntegrityError as error:
            log.warn("notes_damaged", file=f"{INQUIRIES}/{path.name}", why=str(error))
            continue
        for entry in notes:
            former = asked_entries.get(entry.basis)
            if former is None or entry.times >= former.times:
                asked_entries[entry.basis] = entry
    return asked_entries


def note_attempts(workspace: Path, entries: Iterable[LastAttempt]) -> None:
    """Write down how subjects were asked about, if there are any."""
    lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
    if lines:
        make_folder(workspace / INQUIRIES)
        write_new(workspace / INQUIRIES / f"{token_hex(8)}.jsonl", lines)
