"""Patterns that come from outside: compiled, and timed before they meet a hostile reply."""

import re
from collections.abc import Callable

from medassay.errors import InputError

_LIMIT = 1.0  # seconds; `spec` for closed items


def compile_pattern(pattern: str, refuse: Callable[[str], InputError]) -> re.Pattern[str]:
    """Return the compiled pattern, or raise what `refuse` makes of the problem.

    A pattern must compile and must decide each of a set of awkward texts within one second: a
    pattern with nested repeats would otherwise hang on a hostile model reply.
    """
    import regex

    try:
        compiled = re.compile(pattern)
        timed = regex.compile(pattern)
    except (re.error, regex.error) as error:
        raise refuse(f"'{pattern}' is not a Python regular expression: {error}") from None
    # A repeated run of each character that the pattern knows is what makes nested repeats explode.
    characters = sorted({c for c in pattern if c.isalnum()} | set("a1 -.,"))[:40]
    try:
        for character in characters:
            timed.search(character * 3000 + "!", timeout=_LIMIT)
    except TimeoutError:
        raise refuse(f"'{pattern}' is slow: a text of 3,000 '{character}' takes over 1 s") from None
    return compiled
