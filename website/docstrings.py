"""What the reference makes of docstrings, for griffe (mkdocstrings).

Ours say `name : what it is` in one line, where numpydoc expects `name : type` and the text below:
types stand in the code and need no second place. The entries are rewritten before they are read.
"""

import re
from typing import Any

from griffe import Alias, Extension, Module, Object

_SECTIONS = ("Attributes", "Parameters")
_ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(, \*{0,2}\w+)*) : (?P<text>.+)")


class OneLineEntries(Extension):
    """Turns `name : text` into the form of numpydoc."""

    def on_package(self, *, pkg: Module, **more: Any) -> None:
        """Rewrite the docstrings of a package once all of it is there."""
        _rewrite(pkg, set())


def _rewrite(found: Object, seen: set[str]) -> None:
    if found.docstring is not None and found.path not in seen:
        seen.add(found.path)
        found.docstring.value = numpydoc(found.docstring.value)
    for member in found.members.values():
        if not isinstance(member, Alias):
            _rewrite(member, seen)


def numpydoc(text: str) -> str:
    r"""Return a docstring in which entries have their text below their name.

    Examples
    --------
    >>> numpydoc("Say.\n\nParameters\n----------\na, b : of one\n    length\n").split("\n")[4:]
    ['a', '    of one', '    length', 'b', '    of one', '    length', '']
    """
    blocks: list[list[str]] = []
    section = ""
    lines = text.split("\n")
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if following and not following.strip("-"):
            section = line.strip()
        entry = _ENTRY.fullmatch(line.strip()) if section in _SECTIONS else None
        if entry is not None and not line.startswith(" "):
            blocks.append([entry["names"], f"    {entry['text']}"])
        elif blocks and line.startswith("    ") and section in _SECTIONS:
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return "\n".join(_spread(block) for block in blocks)


def _spread(block: list[str]) -> str:
    """Return an entry of several names as one of each."""
    if len(block) == 1:
        return block[0]
    return "\n".join("\n".join([name, *block[1:]]) for name in block[0].split(", "))
