"""Numbers in the cells of a table of questions, which people write with a point or a comma."""

import re
from collections.abc import Iterable

from medassay.bank.spreadsheet import NumberCell
from medassay.errors import InputError

_DIGITS = r"[-−+]?\d[\d.,]*"
_NUMBER = re.compile(
    rf"\s*({_DIGITS})\s*(?:(±|\+/-)\s*({_DIGITS})|(?:-|–|—|\.\.|to|bis)\s*({_DIGITS}))?\s*",
    re.IGNORECASE,
)
_NO_THOUSANDS = re.compile(r",\d{1,2}(?!\d)|,\d{4}|(?<!\d)0,\d")  # a comma that groups none
# Languages that write 4,5 and those that write 4.5; of others nobody here knows.
_DECIMAL_COMMA = (
    *("de", "es", "fr", "it", "pt", "nl", "da", "sv", "nb", "nn", "no", "fi", "is", "pl", "cs"),
    *("sk", "sl", "hr", "sr", "bg", "ro", "hu", "el", "tr", "ru", "uk", "lt", "lv", "et", "id"),
    *("vi", "ca", "gl", "eu"),
)
_DECIMAL_POINT = (
    *("en", "zh", "ja", "ko", "th", "he", "hi", "bn"),
    # Where a country writes otherwise than most of its language (Unicode's CLDR).
    *("es-mx", "es-us", "es-pr", "es-do", "es-gt", "es-hn", "es-ni", "es-pa", "es-pe", "es-sv"),
    *("es-419", "de-ch", "de-li", "it-ch"),
)


def is_number(text: str) -> bool:
    """Return whether a cell holds a number, or a range of numbers."""
    return isinstance(text, NumberCell) or _NUMBER.fullmatch(text) is not None


def show_decimal_comma(texts: Iterable[str]) -> bool:
    """Return whether a number in some cells has a comma that groups no thousands, as 2,5."""
    return any(_NUMBER.fullmatch(text) and _NO_THOUSANDS.search(text) for text in texts)


def has_decimal_comma(language: str) -> bool | None:
    """Return whether a language writes 4,5; None where nobody here knows."""
    for name in (language, language.partition("-")[0]):
        if name in _DECIMAL_POINT:
            return False
        if name in _DECIMAL_COMMA:
            return True
    return None


def read_range(text: str, where: str, *, comma: bool | None) -> tuple[float, float]:
    """Return both ends of "4.5", "3.5 - 5", or "4.5 ± 0.5".

    Raises
    ------
    InputError
        Where a text is none of these, or can be read in two ways.
    """
    if isinstance(text, NumberCell):
        return float(text), float(text)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise InputError(
            f"{where}: '{text:.40}'; expected a number, two with a dash between them, or one ± how"
            " far off still counts"
        )
    value = read_number(match[1], where, comma=comma)
    if match[2]:
        width = read_number(match[3], where, comma=comma)
        # As decimals are meant: 4.5 ± 0.2 begins at 4.3, not at 4.299…
        return round(value - width, 12), round(value + width, 12)
    return value, value if match[4] is None else read_number(match[4], where, comma=comma)


def read_number(text: str, where: str, *, comma: bool | None) -> float:
    """Return a number written with a decimal point or comma.

    Parameters
    ----------
    comma : whether commas are decimal; None where nobody knows, and what then reads in two ways is
        refused

    Raises
    ------
    InputError
        Where it can be read in two ways: "1.500" where commas are decimal, "1,500" where points
        are.
    """
    if isinstance(text, NumberCell):
        return float(text)
    if comma is None:
        with_point, with_comma = (read_number(text, where, comma=sign) for sign in (False, True))
        if with_point != with_comma:
            raise InputError(
                f"{where}: '{text}' can be read as {with_point:g} and as {with_comma:g}; --language"
                " says how its numbers are written, or write them without thousands"
            )
        return with_point
    decimal, grouping = (",", ".") if comma else (".", ",")
    plain = text.strip().replace("−", "-")
    if not re.fullmatch(_DIGITS, plain):
        raise InputError(f"{where}: '{text:.40}' is no number")
    if grouping in plain:
        whole, _, fraction = plain.partition(decimal)
        groups = whole.split(grouping)
        # No thousands begin with a zero: "0.125" is one number in every language.
        is_grouped = all(len(group) == 3 for group in groups[1:]) and groups[0].lstrip("+-") != "0"
        if decimal not in plain and len(groups) == 2:
            if is_grouped:
                raise InputError(
                    f"{where}: '{text}' can be read as {''.join(groups)} and as"
                    f" {groups[0]}{decimal}{groups[1]}; write one of these"
                )
            plain = f"{groups[0]}{decimal}{groups[1]}"  # the other sign, and no thousands
        elif is_grouped:
            plain = "".join(groups) + (f"{decimal}{fraction}" if fraction else "")
    try:
        return float(plain.replace(decimal, "."))
    except ValueError:
        sign = "comma" if comma else "point"
        raise InputError(
            f"{where}: '{text:.40}' is no number; expected one with a decimal {sign}"
        ) from None
