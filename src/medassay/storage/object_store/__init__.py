"""Object stores: the one door to runs, replies and sites at addresses such as `s3://bucket/runs`.

Everything works on a folder of this machine, which mirrors what is below an address.
"""

from medassay.storage.object_store.mirror import Mirror, is_address, mirror_of, with_addresses
from medassay.storage.object_store.remote import (
    carry_home,
    changing,
    fetch_runs,
    fetch_stores,
    left_behind,
    localize,
    open_workspace,
    using_stores,
)

__all__ = [
    "Mirror",
    "carry_home",
    "changing",
    "fetch_runs",
    "fetch_stores",
    "is_address",
    "left_behind",
    "localize",
    "mirror_of",
    "open_workspace",
    "using_stores",
    "with_addresses",
]
