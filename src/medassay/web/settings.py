"""`AppSettings`: how the review app is reached, and what it may open."""

from pathlib import Path

import msgspec

TITLE = "medassay review"


class AppSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the review app is reached.

    `origin` is the public address without a path (`https://review.example.org`), empty for the one
    that each request names; `root_path` is where a proxy has put the app below it. `lock` is where
    released banks register their versions.
    """

    origin: str = ""
    root_path: str = ""
    lock: Path = Path("banks.lock")
