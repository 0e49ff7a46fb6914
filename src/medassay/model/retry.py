"""Asking an endpoint again after a failure, with waits that grow."""

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import stamina

Backoff = Callable[[Exception], "bool | float"]


def retries(
    on: type[Exception] | Backoff,
    *,
    attempts: int | None = None,
    wait_jitter: float = 1.0,
) -> "AsyncIterator[stamina.Attempt]":
    """Return the attempts to enter one after another: the next one waits, 0.4 s at first, then
    longer, up to 30 s.

    Parameters
    ----------
    on : after which errors it is asked again, or what says so, and how many seconds to wait
    attempts : at most so many; None: as long as `on` says
    wait_jitter : the largest random part of a wait, in seconds
    """
    import stamina  # slow to import, and most runs see no failure
    import stamina.instrumentation

    # A retry is not news: progress counts what failed in the end.
    stamina.instrumentation.set_on_retry_hooks([])
    return aiter(
        stamina.retry_context(
            on=on,
            attempts=attempts,
            timeout=None,
            wait_initial=0.4,
            wait_max=30.0,
            wait_jitter=wait_jitter,
        )
    )
