"""Date and time as records and tables say them."""

import datetime as dt


def now() -> str:
    """Return the time now in UTC, to the second."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
