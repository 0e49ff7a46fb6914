"""Counts and lists as people say them: numbers agree with their nouns, long lists end."""

import unicodedata
from collections.abc import Sequence

_NAMED = 20  # names that a sentence gives before it counts the rest


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun in the right form.

    Examples
    --------
    >>> counted(1, "review"), counted(1_234, "review"), counted(0, "entry", "entries")
    ('1 review', '1,234 reviews', '0 entries')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(names: Sequence[str], word: str = "and") -> str:
    """Return names as one says them.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"], "or")
    ('a', 'a and b', 'a, b or c')
    """
    return f" {word} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def some_of(names: Sequence[str], most: int = _NAMED) -> str:
    """Return the first names of a list, and how many more there are.

    Examples
    --------
    >>> some_of(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    if len(names) <= most:
        return listed(names)
    return f"{', '.join(names[:most])} and {len(names) - most:,} more"


def is_blank(text: str) -> bool:
    r"""Return whether a text has nothing that can be seen.

    Examples
    --------
    >>> is_blank(" \u200b\n"), is_blank("0")
    (True, False)
    """
    return not any(c.isprintable() and not c.isspace() for c in text)


def as_seen(text: str) -> str:
    r"""Return a text in one writing of what is seen: letters composed (NFC), without characters of
    no width, every blank as a space.

    Examples
    --------
    >>> as_seen("cafe\u0301\u200b\u00a01") == "caf\u00e9 1"
    True
    """
    if text.isascii():
        return text
    kinds = ((c, unicodedata.category(c)) for c in text)
    seen = "".join(" " if kind == "Zs" else c for c, kind in kinds if kind != "Cf")
    return unicodedata.normalize("NFC", seen)


def visible(text: str) -> str:
    r"""Return text with the characters spelled out that steer a terminal or change how others are
    shown; lines stay lines.

    Examples
    --------
    >>> visible("a\u202eb\nc")
    'a\\u202eb\nc'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)
