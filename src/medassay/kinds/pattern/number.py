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
# Where a sign may stand. Behind a word, a number, a bracket or the end of bold text a dash is a
# range, a hyphen or punctuation: "3–9", "CD–4", "Dose (oral)–5 mg", "**Dose**–5 mg".
_OPENS = "\\s(\\[{=:<>≤≥~≈→^|\"'“„«$,;/*_`\\-"
_FREE = rf"(?<![^{_OPENS}])(?<!\w[*_`])(?<!\w\*\*)(?<!\+/)"
_NUMBER = re.compile(
    rf"""
    # The 2 of "CO2" is no number, the 7.4 of "pH7.4" is one, and never 4.
    (?:(?<!\w)|(?<=[^\W\d_])(?=\d+\.\d)|(?<=pH))(?<!\d\.)
    (?P<sign>
        [+\uff0b]\s?/?\s?[{_MINUSES}]
        |(?i:plus[\s/-]*(?:(?:or|oder)[\s-]*)?minus)\s+
        |(?i:minus)[ \t\u00a0\u202f]+\*{{0,2}}
        |{_FREE}\u2212[ \u00a0\u202f]?  # a minus sign, which is no dash
        |{_FREE}[+\uff0b{_MINUSES}]
    )?
    (?:
        (?P<digits>\d{{1,3}}(?:[{_BLANK}]\d{{3}})+(?!\d)|\d+)
        (?P<marks>(?:[.,]\d+)*)
        (?:[{_BLANK}]?(?P<mixed_fraction>[{_FRACTIONS}]))?
        |(?<![^+\uff0b{_OPENS}{_MINUSES}])\.(?P<decimals>\d+)
        |(?P<fraction>[{_FRACTIONS}])(?![\w<-])
    )
    (?P<exponent>[eE][+{_MINUSES}]?\d{{1,3}}(?!\d))?
    """,
    re.VERBOSE,
)
_PLAIN_MINUS = str.maketrans(dict.fromkeys(_MINUSES, "-"))
# What a number is stated behind. Elsewhere "minus" subtracts ("7 minus 5", "temperature minus 32"),
# and ½ is part of a name ("t ½ = 4 h").
_STATES = re.compile(
    r"(?:[:=\[,;\"“„]|(?<!\w)\(|\\(?:boxed|text)\{|\b(?:ca|approx)\."
    r"|\b(?:an?|about|above|and|are|around|approximately|at|auf|bei|below|between|beträgt|bis|by"
    r"|circa|equals|etwa|from|gives?|is|ist|of|oder|or|roughly|rund|takes?|than|to|und|unter|von"
    r"|war|was|zwischen|über))$",
    re.IGNORECASE,
)
_STATED_WITHIN = 24  # characters
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
    if fraction and not _is_stated(match):
        return None
    fraction = fraction or mixed
    if fraction and (marks or exponent):
        return None
    text = f".{decimals}" if decimals else _decimal(digits or "0", marks, thousands)
    if text is None:
        return None
    magnitude = float(text + exponent.translate(_PLAIN_MINUS))
    magnitude += numeric(fraction) if fraction else 0
    if sign[:1] in ("m", "M"):
        return -magnitude if _is_stated(match) else magnitude
    return -magnitude if sign and sign[0] in _MINUSES else magnitude


def _is_stated(match: re.Match[str]) -> bool:
    """Return whether a number stands at the beginning of a line, or behind a word such as "is"."""
    before = match.string[max(0, match.start() - _STATED_WITHIN) : match.start()]
    line = before.rpartition("\n")[2].rstrip("*_`\u00a0\u202f \t")
    return not line or _STATES.search(line) is not None


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
