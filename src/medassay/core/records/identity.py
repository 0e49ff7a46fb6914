"""`BoardIdentity`: who stands behind a board, what it is for, and how it may be read."""

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from medassay.core.plan_file import read_toml
from medassay.core.wording import is_blank
from medassay.errors import InputError

_LONGEST = 4_000  # characters of a text
_LOGO = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\.(svg|png)")
_NEEDED = ("title", "purpose", "publisher", "contact")


class BoardIdentity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a publisher says of a board, in its `board.toml`.

    Attributes
    ----------
    title : name of the board
    purpose : what it measures, and for whom; two sentences
    publisher : who is responsible
    contact : an address for questions: e-mail or a page
    may_conclude, may_not_conclude : what follows from its numbers, and what does not
    dispute : how somebody who holds a number to be wrong says so
    licence : of the board's own texts and numbers
    logo : a file beside `board.toml`, `.svg` or `.png`
    address : where the site is served, `https://…`; feeds, the page of unknown addresses and social
        cards need it
    domains, settings : id → plain name
    """

    title: str
    purpose: str
    publisher: str
    contact: str
    may_conclude: str = ""
    may_not_conclude: str = ""
    dispute: str = ""
    licence: str = ""
    logo: str = ""
    address: str = ""
    domains: dict[str, str] = {}
    settings: dict[str, str] = {}

    @property
    def contact_link(self) -> str:
        """Return the address behind the contact: of a page, or an e-mail; "" for other words."""
        if re.fullmatch(r"https?://\S+", self.contact):
            return self.contact
        is_mail = re.fullmatch(r"[^\s@:/]+@[^\s@:/]+", self.contact)
        return f"mailto:{self.contact}" if is_mail else ""


def read_identity(path: Path) -> BoardIdentity:
    """Return what a `board.toml` says.

    Raises
    ------
    InputError
        Naming the file, the key, and what was expected.
    """
    document = read_toml(path, "it says who publishes a board", what="board")
    for key in _NEEDED:
        if key not in document:
            raise InputError(f"{path}: has no '{key}'; expected {', '.join(_NEEDED)} at least")
    identity = identity_of(document, str(path))
    for key in ("domains", "settings"):
        for name, text in getattr(identity, key).items():
            if is_blank(text):
                raise InputError(f"{path}: {key}.{name} is empty; expected its plain name")
    for key in ("title", "publisher", "contact", "licence", "address"):
        text = getattr(identity, key)
        if re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", text):
            raise InputError(f"{path}: '{key}' is {text!r:.80}; expected one line of visible text")
    if " " in identity.address:
        raise InputError(f"{path}: address '{identity.address:.80}' holds a blank")
    return identity


def identity_of(document: Mapping[str, object], where: str) -> BoardIdentity:
    """Return the identity in a document; `where` names it in errors.

    Raises
    ------
    InputError
        Naming the key that is wrong, and what was expected.
    """
    try:
        identity = msgspec.convert(document, BoardIdentity, strict=True)
    except msgspec.ValidationError as error:
        keys = ", ".join(BoardIdentity.__struct_fields__)
        raise InputError(f"{where}: {error}; the keys are {keys}") from None
    for key in BoardIdentity.__struct_fields__:
        value = getattr(identity, key)
        for text in value.values() if isinstance(value, dict) else (value,):
            if len(text) > _LONGEST:
                raise InputError(f"{where}: '{key}' has more than {_LONGEST:,} characters")
            if key in _NEEDED and not text.strip():
                raise InputError(f"{where}: '{key}' is empty")
    if identity.logo and not _LOGO.fullmatch(identity.logo):
        raise InputError(
            f"{where}: logo '{identity.logo:.60}'; expected the name of an .svg or .png beside it"
        )
    address = identity.address
    if address and not (_is_web(address) and address.endswith("/")):
        raise InputError(
            f"{where}: address '{address:.80}'; expected https://… where the site is served, with /"
            " at its end"
        )
    return identity


def _is_web(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    plain = not (parts.query or parts.fragment or parts.username)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and plain
