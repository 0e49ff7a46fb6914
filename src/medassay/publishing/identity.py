"""What a publisher says of a board, kept in each publication: `data/board.json` and the logo."""

from pathlib import Path
from typing import cast

import msgspec

from medassay.core.canonical import canonical
from medassay.core.records.identity import BoardIdentity, identity_of, read_identity
from medassay.core.small_file import read_small
from medassay.errors import InputError, IntegrityError
from medassay.publishing.secret_text import refuse_secret
from medassay.storage.run import read_document

BOARD_FILE = "board.toml"  # beside the folder of a site
KEPT = Path("data/board.json")  # of a publication
_LARGEST_LOGO = 200_000
_KINDS = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<"}


def write_identity(publication: Path, board_file: Path) -> None:
    """Keep what a `board.toml` says, and its logo, in a publication that is being made.

    Raises
    ------
    InputError
        Naming the file and what is wrong with it.
    GateError
        When something in it looks like a secret: it would become public.
    """
    identity = read_identity(board_file)
    document = {"schema_version": 1, **msgspec.to_builtins(identity)}
    data = canonical(document) + b"\n"
    refuse_secret(data, str(board_file))
    (publication / KEPT).write_bytes(data)
    if identity.logo:
        path = board_file.parent / identity.logo
        logo = read_small(path, _LARGEST_LOGO, str(path))
        if not logo.lstrip().startswith(_KINDS[path.suffix]):
            raise InputError(f"{path}: is no {path.suffix[1:].upper()}")
        refuse_secret(logo, str(path))
        (publication / f"logo{path.suffix}").write_bytes(logo)


def kept_identity(publication: Path) -> BoardIdentity | None:
    """Return what a publication keeps of its publisher, None where it keeps nothing.

    Raises
    ------
    IntegrityError
        When the file is damaged.
    """
    if not (publication / KEPT).exists():
        return None
    document = cast(dict[str, object], read_document(publication / KEPT))
    document.pop("schema_version", None)
    try:
        return identity_of(document, KEPT.as_posix())
    except InputError as error:
        raise IntegrityError(str(error)) from None
