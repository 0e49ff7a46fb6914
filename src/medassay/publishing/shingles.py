"""Whether anything that becomes public holds a stretch of a synthetic item's text.

The allow-list (`publishing/redaction.py`) says what may be published; this looks at the bytes that
would be, whoever wrote them: eight words in a row are found wherever they stand, also across
mark-up.
"""

import html
import re
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

WORDS = 8
_WORD = re.compile(r"[^\W_]+")
_TAG = re.compile(r"<[^<>]{0,2000}>")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[nrt\"\\/bf])")


def shingles(text: str, size: int = WORDS) -> Iterator[str]:
    """Yield every run of `size` words, without case and marks, joined by blanks.

    Examples
    --------
    >>> list(shingles("Dose: 5 mg/kg, äh?", 4))
    ['dose 5 mg kg', '5 mg kg äh']
    """
    # Word by word: a file that becomes public may be of any size, and a list of its words takes
    # twenty times as much.
    window: deque[str] = deque(maxlen=size)
    for match in _WORD.finditer(text):
        window.append(match[0].casefold())
        if len(window) == size:
            yield " ".join(window)


class PrivateShingles(msgspec.Struct):
    """The stretches of text that must not become public, and what each stands in."""

    stretches: dict[str, str] = msgspec.field(default_factory=dict)

    def add(self, text: str, where: str) -> None:
        """Keep every eight words of a text secret."""
        for stretch in shingles(text):
            self.stretches.setdefault(stretch, where)

    def allow(self, text: str) -> None:
        """Take out what a text holds that is public anyway."""
        for stretch in shingles(text):
            self.stretches.pop(stretch, None)

    def secret_source(self, text: str) -> str | None:
        """Return what the first secret stretch in a text stands in, None if there is none."""
        if not self.stretches:
            return None
        for plain in _readings(text):
            for stretch in shingles(plain):
                if stretch in self.stretches:
                    return self.stretches[stretch]
        return None


def _readings(text: str) -> Iterable[str]:
    """Return a text as it stands, and as a reader of JSON or of a page would see it."""
    yield text
    if "\\" in text:
        yield _ESCAPE.sub(_unescaped, text)
    if "<" in text or "&" in text:
        yield html.unescape(_TAG.sub("", text))
        yield html.unescape(_TAG.sub(" ", text))


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if code[0] == "u" else " "


def leaking_file(folder: Path, secrets: PrivateShingles) -> tuple[Path, str] | None:
    """Return the first file of a folder that holds a secret stretch, and what that stands in."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        name = path.relative_to(folder).as_posix().replace("/", " ")
        source = secrets.secret_source(name) or secrets.secret_source(
            path.read_bytes().decode("utf-8", "replace")
        )
        if source:
            return path, source
    return None
