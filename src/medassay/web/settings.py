"""`AppSettings`: how the review app is reached."""

import msgspec

TITLE = "medassay review"


class AppSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the review app is reached.

    `origin` is the public address without a path (`https://review.example.org`), empty for the one
    that each request names; `root_path` is where a proxy has put the app below it.
    """

    origin: str = ""
    root_path: str = ""
