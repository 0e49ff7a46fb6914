"""A reply to one number, or None and why. Units are not converted."""

import re
from typing import Literal
from unicodedata import numeric

from medassay.core.reply.thoughts import strip_thoughts

_BLANK = " \u00a0\u202f\u2009'’"
# What models write for a minus: also hyphens, the figure dash, the en dash and wide forms. An em
# dash is punctuation. "-" is last, since the text stands in classes of characters.
_MINUSES = "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d-"
_FRACTIONS = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_PLUS_OR_MINUS = r"(?<!(?i:plus or ))(?<!(?i:plus oder ))(?<!(?i:plus/))(?<!(?i:plus-))"
_NUMBER = re.compile(
    # The 2 of "CO2" is no number, the 7.4 of "pH7.4" is one, and never 4.
    r"(?:(?<!\w)|(?<=[^\W\d_])(?=\d+\.\d))(?<!\d[.,])"
    # A dash between numbers is a range; "7 minus 5" and "plus or minus 5" have no sign either.
    rf"(?P<sign>(?<![\d.,/+])[+\uff0b{_MINUSES}]|(?<!\d ){_PLUS_OR_MINUS}(?i:minus)\s+)?"
    rf"(?:(?P<digits>\d{{1,3}}(?:[{_BLANK}]\d{{3}})+(?!\d)|\d+)(?P<marks>(?:[.,]\d+)*)"
    rf"(?:[{_BLANK}]?(?P<mixed_fraction>[{_FRACTIONS}]))?"
    rf"|(?<![.,])\.(?P<decimals>\d+)"
    rf"|(?P<fraction>[{_FRACTIONS}])(?![\d{_FRACTIONS}]))"
    rf"(?P<exponent>[eE][+{_MINUSES}]?\d{{1,3}}(?!\d))?"
)
_PLAIN_MINUS = str.maketrans(dict.fromkeys(_MINUSES, "-"))
_CUE = re.compile(r"answer|antwort|respuesta", re.IGNORECASE)


def extract_number(
    answer: str | None, *, extract: str | None = None, locale: str = "en"
) -> tuple[float | None, str]:
    """Return the number that `answer` states, and why or why not.

    Parameters
    ----------
    extract : pattern with one group that holds the number
    locale : "en" (comma groups thousands) or "de" (point groups thousands)

    Returns
    -------
    (number, reason)
        reason is "number", "no number", "ambiguous" (several different numbers) or "extract".

    Examples
    --------
    >>> extract_number("Norm is 3 to 9. Answer: 4.4"), extract_number("between 3 and 9")
    ((4.4, 'number'), (None, 'ambiguous'))
    >>> extract_number("about –.5"), extract_number("1½ tablets"), extract_number("3–9")
    ((-0.5, 'number'), (1.5, 'number'), (None, 'ambiguous'))
    >>> extract_number("1.500 ml", locale="de"), extract_number("0,125 mg")
    ((1500.0, 'number'), (0.125, 'number'))
    """
    text, _ = strip_thoughts(str(answer or ""))
    if extract is not None:
        import regex

        try:
            match = regex.search(extract, text, timeout=1.0)
        except TimeoutError:
            return None, "pattern timeout"
        numbers = _numbers(match[1], locale) if match and match[1] else []
        return (numbers[0], "extract") if len(numbers) == 1 else (None, "no number")
    values = set(_numbers(text, locale))
    if len(values) > 1:
        cues = list(_CUE.finditer(text))
        values = (set(_numbers(text[cues[-1].end() :], locale)) or values) if cues else values
    if len(values) == 1:
        return values.pop(), "number"
    return None, "ambiguous" if values else "no number"


def _numbers(text: str, locale: str) -> list[float]:
    thousands: Literal[",", "."] = "." if locale == "de" else ","
    values = (_value(match, thousands) for match in _NUMBER.finditer(text))
    return [value for value in values if value is not None]


def _value(match: re.Match[str], thousands: str) -> float | None:
    sign, digits, marks, mixed, decimals, fraction, exponent = match.groups(default="")
    fraction = fraction or mixed
    if fraction and (marks or exponent):
        return None
    text = f".{decimals}" if decimals else _decimal(digits or "0", marks, thousands)
    if text is None:
        return None
    magnitude = float(text + exponent.translate(_PLAIN_MINUS))
    magnitude += numeric(fraction) if fraction else 0
    return magnitude if not sign or sign in "+\uff0b" else -magnitude


def _decimal(digits: str, marks: str, thousands: str) -> str | None:
    """Return digits, and marks with the digits behind them, as `float` reads them; None where the
    marks contradict each other.
    """
    digits = re.sub(rf"[{_BLANK}]", "", digits)
    parts = re.split(r"([.,])", marks)[1:]
    separators, groups = parts[::2], parts[1::2]
    if not separators:
        return digits
    if len(set(separators)) == 2:  # both marks: the last is decimal
        if separators.count(separators[-1]) > 1 or any(len(g) != 3 for g in groups[:-1]):
            return None
        return f"{digits}{''.join(groups[:-1])}.{groups[-1]}"
    all_threes = all(len(group) == 3 for group in groups) and len(digits) <= 3
    if separators[0] == thousands and all_threes and int(digits) != 0:
        return digits + "".join(groups)
    return f"{digits}.{groups[0]}" if len(separators) == 1 else None
