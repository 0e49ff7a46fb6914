"""Files of other people that are small: read as far as they may be, and no device or pipe."""

import codecs
import os
import stat
from pathlib import Path

from medassay.errors import InputError

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def utf16_problem(data: bytes) -> str:
    """Return what to do with bytes that are a text in UTF-16, which Windows calls Unicode; "" with
    others.
    """
    return "is UTF-16; save it as UTF-8" if data.startswith(_UTF16) else ""


def read_small(path: Path, most: int, where: str, *, absent: str = "") -> bytes:
    """Return the bytes of a file.

    Parameters
    ----------
    most : bytes that it may have
    where : names it in errors
    absent : what to do where there is none

    Raises
    ------
    InputError
        When it is not there, no plain file, or too large.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        raise InputError(f"{where}: no such file{absent}") from None
    except OSError as error:
        raise InputError(f"{where}: cannot be read ({error.strerror})") from None
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise InputError(f"{where}: no plain file")
        data = file.read(most + 1)
    if len(data) > most:
        raise InputError(f"{where}: more than {most:,} bytes, the most that are read")
    return data
