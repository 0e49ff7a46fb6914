"""A reply to one number, or None and why. Units are not converted."""

import re
from typing import Literal

from medassay.core.reply.thoughts import strip_thoughts

_BLANK = " \u00a0\u202f\u2009'’"
_NUMBER = re.compile(
    r"(?<![\w])(?P<sign>(?<![\d.,])[+\-\u2212])?"
    rf"(?P<digits>\d{{1,3}}(?:[{_BLANK}]\d{{3}})+(?!\d)|\d+)(?P<marks>(?:[.,]\d+)*)"
    r"(?P<exponent>[eE][+\-\u2212]?\d{1,3}(?!\d))?"
)
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
    digits = re.sub(rf"[{_BLANK}]", "", match["digits"])
    parts = re.split(r"([.,])", match["marks"])[1:]
    marks, groups = parts[::2], parts[1::2]
    fraction = ""
    if marks:
        all_threes = all(len(group) == 3 for group in groups) and len(digits) <= 3
        if len(set(marks)) == 2:  # both marks: the last is decimal
            if marks.count(marks[-1]) > 1 or any(len(g) != 3 for g in groups[:-1]):
                return None
            digits, fraction = digits + "".join(groups[:-1]), groups[-1]
        elif marks[0] == thousands and all_threes and int(digits) != 0:
            digits += "".join(groups)
        elif len(marks) == 1:
            fraction = groups[0]
        else:
            return None
    sign = "-" if match["sign"] in ("-", "\u2212") else ""
    exponent = (match["exponent"] or "").replace("\u2212", "-")
    return float(f"{sign}{digits}.{fraction or '0'}{exponent}")
