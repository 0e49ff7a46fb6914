"""The one place that catches everything: what one unit does wrong fails that unit, not the run, and
what a library raises of its own becomes one of our errors.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from medassay.errors import NotAsked


@contextmanager
def caught() -> Iterator[list[Exception]]:
    """Yield a list that holds the error, once the block has failed.

    Raises
    ------
    NotAsked
        As it is: the unit was never begun and stays for the next start.

    Examples
    --------
    >>> with caught() as errors:
    ...     1 / 0
    >>> errors
    [ZeroDivisionError('division by zero')]
    """
    errors: list[Exception] = []
    try:
        yield errors
    except NotAsked:
        raise
    except Exception as error:  # noqa: BLE001 -- a defect of ours, or of a library, is data here
        errors.append(error)
