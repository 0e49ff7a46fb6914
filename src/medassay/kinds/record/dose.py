"""Doses as numbers with units: 5mg is 5 mg, 0,5 g is 500 mg, 24/26 mg are two amounts.

Units of the International System and their like are read by pint; those of prescriptions (IE,
puffs, drops, tablets) by the table below, which comes first, since pint takes "U" for another unit.

Source: notation of German and English prescriptions; nothing is estimated, what cannot be read is
compared as text.
"""

import re
import unicodedata
from functools import lru_cache

_OWN = {
    "IE": "ie i.e. i.e iu i.u. i.u ui u e einheit einheiten unit units",
    "puff": "hub hübe hüben puff puffs sprühstoß sprühstöße sprühstösse sprühstoss spray sprays",
    "drop": "tropfen tr tr. trpf trpf. gtt gtt. drop drops",
    "tablet": (
        "tablette tabletten tbl tbl. tabl tabl. tab tab. tabs tablet tablets filmtablette"
        " filmtabletten ft"
    ),
    "capsule": "kapsel kapseln kps kps. cap cap. caps capsule capsules",
    "ampoule": "ampulle ampullen amp amp. ampoule ampoules",
    "sachet": "beutel btl btl. sachet sachets",
    "patch": "pflaster patch patches",
    "suppository": "zäpfchen supp supp. suppositorium suppository suppositories",
    "mval": "mval meq",
    "%": "% prozent percent",
}
_TABLE = {word: unit for unit, words in _OWN.items() for word in words.split()}
# Spellings that pint does not know, or takes for something else.
_SPELLINGS = {"mcg": "ug", "microgram": "ug", "micrograms": "ug"} | {
    "mikrogramm": "ug",
    "milligramm": "mg",
    "gramm": "g",
    "milliliter": "ml",
    "std": "hour",
    "std.": "hour",
    "stunde": "hour",
    "stunden": "hour",
    "h": "hour",
    "tag": "day",
    "d": "day",
}
_PREFIXES = {"mio": 1e6, "mio.": 1e6, "million": 1e6, "millionen": 1e6, "mill.": 1e6}
_NUMBER = r"\d+(?:[.,]\d+|[\u202f ]\d{3}(?!\d))*"
_WORD = r"%|[^\W\d_][^\W\d_]*(?:\.[^\W\d_]+)*\.?"
_AMOUNT = re.compile(
    rf"(?P<numbers>{_NUMBER}(?:\s*/\s*{_NUMBER})*)\s*"
    rf"(?P<prefix>mio\.?|mill\.|million|"
    rf"millionen)?\s*(?P<unit>{_WORD})(?:\s*/\s*(?P<per>{_WORD}))?",
    re.IGNORECASE,
)
Amount = tuple[float, str]  # a number, and the unit that it is in


def read_amounts(text: str, language: str = "en") -> tuple[Amount, ...]:
    """Return the amounts in a dose, in base units, smallest first; empty where there is none.

    Parameters
    ----------
    language : "de" and "es" write 1.000 for a thousand, "en" 1,000

    Examples
    --------
    >>> read_amounts("0,5 g", "de") == read_amounts("500mg"), read_amounts("24/26 mg")
    (True, ((0.024, 'gram'), (0.026, 'gram')))
    >>> read_amounts("1000 IE"), read_amounts("2 Hübe")
    (((1000.0, 'IE'),), ((2.0, 'puff'),))
    """
    return tuple(
        sorted((_round(n * factor), unit) for n, factor, unit, _ in _amounts(text, language))
    )


def read_units(text: str, language: str = "en") -> tuple[str, ...]:
    """Return the units in a dose as they are written, spelling put aside.

    Examples
    --------
    >>> read_units("5 MG"), read_units("100 mcg"), read_units("20 I.E.")
    (('mg',), ('ug',), ('IE',))
    """
    return tuple(sorted(written for _, _, _, written in _amounts(text, language)))


def without_amounts(text: str) -> str:
    """Return text without its amounts.

    Examples
    --------
    >>> without_amounts("ASS 100 mg")
    'ASS '
    """
    return _AMOUNT.sub(lambda m: "" if _unit(m["unit"]) else m[0], _plain(text))


def _amounts(text: str, language: str) -> list[tuple[float, float, str, str]]:
    """Return of each amount: number, factor to the base unit, that unit, and the unit as
    written.
    """
    amounts = []
    for match in _AMOUNT.finditer(_plain(text)):
        unit = _unit(match["unit"])
        if unit is None:
            continue
        factor, base, written = unit
        factor *= _PREFIXES.get((match["prefix"] or "").casefold(), 1.0)
        if match["per"] and (per := _unit(match["per"])) is not None:
            factor, base, written = factor / per[0], f"{base}/{per[1]}", f"{written}/{per[2]}"
        numbers = (_number(number, language) for number in re.split(r"\s*/\s*", match["numbers"]))
        amounts += [(number, factor, base, written) for number in numbers]
    return amounts


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _number(text: str, language: str) -> float:
    """Return a number as written in a language.

    A point or comma before three digits may part thousands.

    Examples
    --------
    >>> _number("1.000", "de"), _number("1.000", "en"), _number("1,5", "en"), _number("1 000", "de")
    (1000.0, 1.0, 1.5, 1000.0)
    """
    text = re.sub(r"[\u202f ]", "", text)
    thousands = "," if language == "en" else "."
    if re.fullmatch(rf"[1-9]\d{{0,2}}(?:{re.escape(thousands)}\d{{3}})+(?:[.,]\d+)?", text):
        text = text.replace(thousands, "")
    *groups, last = re.split(r"[.,]", text)
    return float(f"{''.join(groups)}.{last}" if groups else last)


@lru_cache(maxsize=4096)
def _unit(token: str) -> tuple[float, str, str] | None:
    """Return factor, base unit and plain spelling of a unit; None where it is none."""
    word = token.casefold().replace("\u03bc", "u")  # a micro sign is a small letter mu by then
    for unit in (word, word.rstrip(".")):
        if unit in _TABLE:
            return 1.0, _TABLE[unit], _TABLE[unit]
    word = word.rstrip(".")
    word = _SPELLINGS.get(word, word)
    if not _SI.fullmatch(word):
        return None
    registry = _registry()
    quantity = registry.Quantity(1.0, registry.parse_units(word)).to_base_units()
    factor, base = float(quantity.magnitude), f"{quantity.units}"
    if base == "kilogram":
        factor, base = factor * 1000.0, "gram"
    return factor, base, word


# Symbols that stand in doses; pint knows many more, among them words of any text ("die", "at").
_SI = re.compile(r"[munkpdc]?(?:g|l|mol)|min|hour|day|kcal|cal")


@lru_cache(maxsize=1)
def _registry():  # type: ignore[no-untyped-def]
    import pint

    return pint.UnitRegistry()


def _round(value: float) -> float:
    return float(f"{value:.9g}")
