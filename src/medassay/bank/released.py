"""What each item was when its bank was last released, so that a changed item gets its next
revision.

`released.jsonl` in a bank's folder holds a line for each item: its id, its revision and the SHA-256
of its content (the item without revision and approval). It is written anew with every release.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from medassay.core.canonical import canonical
from medassay.core.json import parse_json
from medassay.core.records.item_object import ItemObject
from medassay.core.wording import some_of
from medassay.errors import InputError

FILE = "released.jsonl"
Released = dict[str, tuple[int, str]]  # item → revision, hash of its content


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """Items that a release changes, with their new revisions, adds and takes out."""

    changed: Mapping[str, int]
    added: Sequence[str]
    removed: Sequence[str]

    @property
    def text(self) -> str:
        """Return sentences for CHANGES.md, empty where all items are as before.

        Examples
        --------
        >>> Changes(changed={"a": 2}, added=["b", "c"], removed=[]).text
        'Changed: a (revision 2). Added: b and c.'
        """
        named = {
            "Changed": [f"{name} (revision {revision})" for name, revision in self.changed.items()],
            "Added": self.added,
            "Removed": self.removed,
        }
        return " ".join(f"{verb}: {some_of(names)}." for verb, names in named.items() if names)


def content_of(record: ItemObject) -> str:
    """Return the SHA-256 of what an item says, whatever its revision and whoever approved it."""
    content = {key: value for key, value in record.items() if key not in ("revision", "approval")}
    return hashlib.sha256(canonical(content)).hexdigest()


def read_released(folder: Path) -> Released | None:
    """Return what the items of a bank were at its last release, None where that was not written
    down.

    Raises
    ------
    InputError
        When a line is not one that a release writes.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    released: Released = {}
    for row, line in enumerate(path.read_bytes().splitlines(), 1):
        where = f"{folder.name}/{FILE} row {row}"
        entry = parse_json(line, where)
        try:
            name, revision, content = entry["id"], entry["revision"], entry["content_sha256"]
        except (KeyError, TypeError):
            raise InputError(
                f"{where}: expected id, revision and content_sha256; restore the file"
            ) from None
        if type(revision) is not int or not isinstance(name, str):
            raise InputError(f"{where}: expected a name and a whole number; restore the file")
        released[name] = (revision, content)
    return released


def write_released(folder: Path, records: Iterable[ItemObject]) -> None:
    """Write down what the items of a bank are at its release."""
    part = folder / f"{FILE}.part"
    with part.open("wb") as file:
        for record in records:
            entry = {
                "id": record["id"],
                "revision": record.get("revision", 1),
                "content_sha256": content_of(record),
            }
            file.write(canonical(entry) + b"\n")
    part.replace(folder / FILE)


def raise_revisions(folder: Path, released: Released) -> Changes:
    """Give each item that changed since the last release its next revision, in items.jsonl.

    An item whose revision was raised by hand keeps it, so that the same call again changes nothing.
    """
    path = folder / "items.jsonl"
    changed: dict[str, int] = {}
    added: list[str] = []
    present: set[str] = set()
    part = path.with_name(f"{path.name}.part")
    with path.open("rb") as old, part.open("wb") as new:
        for line in old:
            if not line.strip():
                continue
            record, kept_line = parse_json(line, path.name), line
            name = record["id"]
            present.add(name)
            if name not in released:
                added.append(name)
            elif content_of(record) != released[name][1]:
                changed[name] = max(record.get("revision", 1), released[name][0] + 1)
                if record.get("revision", 1) != changed[name]:
                    kept_line = canonical({**record, "revision": changed[name]}) + b"\n"
            new.write(kept_line if kept_line.endswith(b"\n") else kept_line + b"\n")
    if changed:
        part.replace(path)
    else:
        part.unlink()
    return Changes(
        changed=changed,
        added=added,
        removed=[name for name in released if name not in present],
    )
