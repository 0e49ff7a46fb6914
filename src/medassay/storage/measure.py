"""Values of metrics by the hash of the texts they compare, and what retrieval found by the hash of
a question, so that none is computed twice.

Each metric or retrieval has one append-only file.

A line is `{"key": …, "values": […]}`. A torn last line is dropped, and its values are computed
again.
"""

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from medassay.core.canonical import canonical, sha256_hex, short_hash
from medassay.core.private import make_folder, open_file
from medassay.errors import IntegrityError

_BLOCK = 1 << 16
Values = tuple[float | None, ...]


def pair_key(prediction: str, reference: str) -> str:
    """Return the key of a pair of texts."""
    return sha256_hex(canonical([prediction, reference]))[:32]


def _end_of_lines(file: BinaryIO) -> int:
    """Return the bytes of a file up to its last line break."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - _BLOCK)
        file.seek(start)
        if (place := file.read(end - start).rfind(b"\n")) >= 0:
            return start + place + 1
        end = start
    return 0


class MeasureStore:
    """The values of one metric in a workspace; keys may come again, the first value stays."""

    def __init__(self, folder: Path, metric: str) -> None:
        name = "".join(c if c.isalnum() else "-" for c in metric.partition("@")[0])[:40]
        self._path = folder / f"{name}-{short_hash(metric)}.jsonl"
        self._known: dict[str, Values] = {}
        # Reading changes nothing: somebody else may be writing, and a viewer only looks.
        n_bytes = 0
        if self._path.exists():
            with self._path.open("rb") as lines:
                for line in lines:
                    if not line.endswith(b"\n"):
                        break
                    n_bytes += len(line)
                    try:
                        record = json.loads(line)
                        self._known.setdefault(record["key"], tuple(record["values"]))
                    except (ValueError, LookupError, TypeError):
                        raise IntegrityError(
                            f"{folder.name}/{self._path.name} at byte {n_bytes - len(line)}:"
                            " damaged; remove the file, what it holds is computed again"
                        ) from None

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def get(self, key: str) -> Values | None:
        """Return the values of a key, None if there are none yet."""
        return self._known.get(key)

    def put(self, values: Mapping[str, Sequence[float | None]]) -> None:
        """Append values and hand them to the disk before they count."""
        new = {key: tuple(values) for key, values in values.items() if key not in self._known}
        lines = (canonical({"key": key, "values": list(v)}) + b"\n" for key, v in new.items())
        make_folder(self._path.parent)
        with open(open_file(self._path, os.O_RDWR | os.O_APPEND), "a+b") as file:
            # Others write between their locks whole lines only: what is torn now, a kill left.
            fcntl.flock(file, fcntl.LOCK_EX)
            file.truncate(_end_of_lines(file))
            file.write(b"".join(lines))
            file.flush()
            os.fsync(file.fileno())
        self._known |= new
