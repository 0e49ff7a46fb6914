"""The shape of a reply: what replies that could not be read have in common."""

import re

from medassay.core.reply.thoughts import strip_thoughts

_MOST = 24  # parts of a shape
_READ = 4_000  # characters of a reply that make its shape
_PART = re.compile(r"\n\s*|\d+(?:[.,]\d+)*|[A-Z](?![\w'])|[^\W\d_][\w'’-]*|[^\w\s]")
WORDS = "words"


def shape_of(text: str) -> str:
    """Return the shape of a text: runs of words as `words`, numbers as `9`, single capital letters
    as `X`, line ends as `⏎`; marks stay, nothing is told twice in a row, and thoughts are left out.

    Examples
    --------
    >>> shape_of("The answer is (B), 12.5 mg.")
    'words ( X ) , 9 words .'
    >>> shape_of("**B**"), shape_of("Both of them."), shape_of(" ")
    ('* X *', 'words .', 'empty')
    >>> shape_of("<think>A or B"), shape_of("<think>A?</think> B")
    ('only thoughts', 'X')
    """
    spoken = strip_thoughts(text)[0].strip()
    if not spoken and text.strip():
        return "only thoughts"
    parts: list[str] = []
    for match in _PART.finditer(spoken[:_READ]):
        part = _name(match[0])
        if parts and parts[-1] == part:
            continue
        if len(parts) == _MOST:
            return " ".join([*parts, "…"])
        parts.append(part)
    return " ".join(parts) or "empty"


def _name(part: str) -> str:
    if part[0] == "\n":
        return "⏎"
    if part[0].isdecimal():
        return "9"
    if part[0].isalpha():
        return "X" if len(part) == 1 and part.isupper() else WORDS
    return part
