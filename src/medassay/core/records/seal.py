"""`Seal`: what makes a finished run unchangeable."""

from typing import Any

import msgspec


class WithheldSeal(msgspec.Struct, frozen=True, kw_only=True):
    """What the seal of a public copy says of the run it was made from.

    Attributes
    ----------
    items : number of items that are withheld in the copy
    root, seal : of the run
    times : what the replies to these items took, summed
    """

    items: int
    root: str
    seal: str
    times: list[dict[str, Any]] = []


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """The seal of a run, as its file holds it.

    Attributes
    ----------
    count, root : number of records, and the root of the Merkle tree over them
    items_root : root of the tree over the hashes of the items, by which the others are proven where
        one was deleted; absent in earlier seals
    sums_sha256 : hash of the file with the sums of all others
    previous : hash of the seal before, where something was deleted since
    hash : of the seal itself, without this field
    """

    run: str
    sealed_at: str
    count: int
    root: str
    sums_sha256: str
    hash: str
    items_root: str | None = None
    previous: str | None = None
    withheld: WithheldSeal | None = None
