"""Ed25519 keys and signatures of a site's ledger.

A signature is over the hash of a ledger's line, and so over every line before it. The private key
stays in a file of its own, which only its owner can read, outside the site.
"""

import os
import re
from pathlib import Path

from medassay.errors import InputError

_SAYS = b"medassay ledger line "  # no signature made here can be taken for one of another use


def new_key(path: Path) -> str:
    """Write a new private key into a file that must not exist, and return its public key.

    Returns
    -------
    str
        The 32 bytes of the public key in hexadecimal.

    Raises
    ------
    InputError
        If the file exists or its folder does not.
    OSError
        Naming the file, if the disk takes no more.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    if any((folder / "log.jsonl").is_file() for folder in path.resolve().parents):
        raise InputError(
            f"{path}: lies in a site, where everything is public; choose another place"
        )
    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(
            f"{path}: exists already; a key is never overwritten, choose another name"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
    except OSError as error:
        path.unlink()  # empty, it would be taken for a key that must not be overwritten
        error.filename = str(path)
        raise
    return key.public_key().public_bytes_raw().hex()


class Signer:
    """A private key read from its file."""

    def __init__(self, path: Path) -> None:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        expected = "expected a private Ed25519 key as `medassay keys new` writes it"
        try:
            key = load_pem_private_key(path.read_bytes(), None)
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise InputError(f"{path}: {expected}") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise InputError(f"{path}: another kind of key; {expected}")
        self._key = key
        self.path = path

    @property
    def public(self) -> str:
        """Return the public key in hexadecimal."""
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, line_hash: str) -> dict[str, str]:
        """Return the signature of a ledger's line by its hash."""
        value = self._key.sign(_SAYS + line_hash.encode())
        return {"key": self.public, "value": value.hex()}


def signed(signature: object, line_hash: str) -> bool:
    """Return whether a signature is whole and of this line.

    Examples
    --------
    >>> signed({"key": "00" * 32, "value": "00" * 64}, "00" * 32)
    False
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if not isinstance(signature, dict) or signature.keys() != {"key", "value"}:
        return False
    public, value = signature["key"], signature["value"]
    # Strictly one spelling: fromhex also takes capitals and spaces.
    if not re.fullmatch(r"[0-9a-f]{64}", str(public)) or not re.fullmatch(
        r"[0-9a-f]{128}", str(value)
    ):
        return False
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
    try:
        key.verify(bytes.fromhex(value), _SAYS + line_hash.encode())
    except InvalidSignature:
        return False
    return True
