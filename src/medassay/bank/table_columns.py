"""Which column of a table of questions holds what: by the user's word, else by its heading."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import takewhile

import msgspec

from medassay.bank.check import ITEM_KEYS
from medassay.core.records.target import LETTERS
from medassay.errors import InputError

LISTS = ("options", "diagnoses", "facts")  # a JSON list, or texts separated by "|"
_NUMBERS = ("lo", "hi", "number")
DOCUMENT = "document"  # a JSON object, the reference record of a text
_UNTAKEN = {
    *LISTS,
    *("range", "approval", "meta", "answer_type"),
    *("commitment", "tombstone", "lowest", "form"),
}
TEXT_KEYS = ITEM_KEYS - _UNTAKEN
TABLE_KEYS = tuple(sorted(TEXT_KEYS | {*LISTS, *_NUMBERS, DOCUMENT}))
_FACT = re.compile(r"fact([1-9]\d?)")

# Key → headings that mean it, in English and German; letters and digits alone, in small letters.
_HEADINGS: dict[str, tuple[str, ...]] = {
    "id": ("nr", "no", "nummer", "item", "itemid", "questionid", "fragenr", "frageid", "lfdnr"),
    "question": ("frage", "fragetext", "fragestellung", "aufgabe", "questiontext", "stem"),
    "context": ("vignette", "case", "fall", "fallbeschreibung", "kasus"),
    "options": ("choices", "antwortmoglichkeiten", "optionen"),
    "expected": (
        *("key", "answerkey", "correct", "correctanswer", "correctoption", "rightanswer"),
        *("richtig", "richtigeantwort", "losung", "schlussel"),
    ),
    "reference": (
        *("modelanswer", "referenceanswer", "goldanswer", "idealanswer"),
        *("musterantwort", "musterlosung", "referenzantwort", "erwarteteantwort"),
    ),
    "facts": ("keyfacts", "targetfacts", "fakten", "kernaussagen"),
    DOCUMENT: ("json", "goldjson", "referencejson", "goldrecord", "referencerecord"),
    "number": ("numericanswer", "zahl", "zahlenwert"),
    "lo": ("min", "minimum", "lowest", "von", "untergrenze"),
    "hi": ("max", "maximum", "highest", "bis", "obergrenze"),
    "regex": ("pattern", "regularexpression", "muster", "regularerausdruck"),
    "domain": ("specialty", "speciality", "subject", "fach", "fachgebiet", "bereich"),
    "category": ("topic", "kategorie", "thema"),
    "language": ("lang", "sprache"),
    "source": ("quelle",),
    "rationale": ("explanation", "erklarung", "erlauterung", "begrundung"),
    "year": ("jahr",),
    "harm": ("harmful", "schaden", "gefahrlich"),
    "cluster": ("caseid", "fallnr", "fallnummer"),
    "difficulty": ("schwierigkeit",),
}
_GERMAN = {
    *("frage", "fragetext", "fragestellung", "antwort", "richtig", "richtigeantwort", "losung"),
    *("musterantwort", "musterlosung", "fach", "fachgebiet", "kategorie", "quelle"),
}
_KEY_OF = {
    **{key.replace("_", ""): key for key in TABLE_KEYS},
    **{heading: key for key, headings in _HEADINGS.items() for heading in headings},
}
# "Option A", "Antwort 1": the heading of an option.
_OPTION = re.compile(r"(?:option|choice|antwort|answer|wahl)?([a-z]|[1-9]\d?)")
_FIRST_OPTION = re.compile(r"(?:option|choice|antwort|answer|wahl)?([01])")
_ANSWER = ("answer", "antwort")  # a key beside options, else a model answer


class TableColumn(msgspec.Struct, frozen=True, kw_only=True):
    """How one column was understood.

    Attributes
    ----------
    key : of an item, "" where the column is not used
    suggestion : the key that its heading would mean
    example : the first text in it
    filled : cells with text
    """

    name: str
    key: str
    example: str
    filled: int
    suggestion: str = ""

    def __str__(self) -> str:
        text = f"{self.name} → {self.key or 'not used'} ({self.filled} filled"
        text += f", as '{self.example:.40}')" if self.example else ")"
        if not self.key and self.suggestion and self.filled:
            text += f"; --columns …,{self.suggestion}={self.name} would use it"
        return text


def columns_of(header: Sequence[str], named: Mapping[str, str], file: str) -> dict[str, str]:
    """Return key → column of a table.

    Parameters
    ----------
    header : the headings
    named : key → column by the user's word; then no other column is used
    file : what to name in errors

    Raises
    ------
    InputError
        When a key or a column is unknown, two columns mean one thing, or no column holds questions.
    """
    if named:
        return _named_columns(header, named, file)
    columns = _by_headings(header, file)
    if "question" not in columns:
        raise InputError(
            f"{file}: no column is called question or Frage; found {', '.join(header)}; say which"
            " holds what, e.g. --columns question=Frage,A=a,B=b,expected=key"
        )
    return columns


def _named_columns(header: Sequence[str], named: Mapping[str, str], file: str) -> dict[str, str]:
    for key, column in named.items():
        if key not in TABLE_KEYS and key not in LETTERS and not _FACT.fullmatch(key):
            raise InputError(
                f"--columns: unknown key '{key}'; known are {', '.join(TABLE_KEYS)}, fact1, fact2"
                " …, A, B …"
            )
        if column not in header:
            raise InputError(f"{file}: no column '{column}' (for {key}); found {', '.join(header)}")
    if "question" not in named:
        raise InputError(
            "--columns: 'question' is needed, e.g. --columns question=Frage,A=a,B=b,expected=key"
        )
    return dict(named)


def _by_headings(header: Sequence[str], file: str) -> dict[str, str]:
    columns: dict[str, str] = {}
    clash = ("", "")
    for name in header:
        key = key_of(name)
        if not key:
            continue
        if key in columns:
            clash = clash if clash[0] else (key, name)
        else:
            columns[key] = name
    _refuse_option_zero(header, file)
    if not any(key in LETTERS for key in columns):
        # Columns 1, 2, 3 … are taken for options: left out, the key beside them would become a
        # number to guess. Where they are something else, the key is refused as no option.
        numbered = {plain_heading(name): name for name in header}
        signs = list(takewhile(numbered.__contains__, map(str, range(1, len(LETTERS) + 1))))
        if len(signs) > 1:
            columns |= zip(LETTERS, (numbered[sign] for sign in signs), strict=False)
    answers = [name for name in header if plain_heading(name) in _ANSWER]
    choosing = "options" in columns or any(key in LETTERS for key in columns)
    meaning = "expected" if choosing and "expected" not in columns else "reference"
    if len(answers) == 1 and meaning not in columns:
        columns[meaning] = answers[0]
    if clash[0]:
        key, name = clash
        every = ",".join(f"{k}={column}" for k, column in columns.items())
        raise InputError(
            f"{file}: columns '{columns[key]}' and '{name}' both look like {key}; say which is"
            f" meant: --columns '{every}'"
        )
    return columns


def _refuse_option_zero(header: Sequence[str], file: str) -> None:
    """Refuse options that are counted from 0: the first would be lost, the letters shifted."""
    signs = ((_FIRST_OPTION.fullmatch(plain_heading(name)), name) for name in header)
    numbered = {sign[1]: name for sign, name in signs if sign}
    if numbered.keys() == {"0", "1"}:
        zero, one = numbered["0"], numbered["1"]
        raise InputError(
            f"{file}: columns '{zero}' and '{one}': options are counted from 1, and option 0 would"
            f" be lost; say which is which: --columns question=…,A={zero},B={one},…,expected=…"
        )


def key_of(name: str) -> str:
    """Return the key of an item that a heading means, "" where it means none."""
    heading = plain_heading(name)
    if heading in _KEY_OF:
        return _KEY_OF[heading]
    if fact := re.fullmatch(r"(?:fact|fakt|keyfact|kernaussage)([1-9]\d?)", heading):
        return f"fact{fact[1]}"
    if option := _OPTION.fullmatch(heading):
        sign = option[1]
        if sign.isdigit():
            return LETTERS[int(sign) - 1] if sign != heading and int(sign) <= len(LETTERS) else ""
        return sign.upper()
    return ""


def plain_heading(name: str) -> str:
    """Return a heading without accents, marks and capitals.

    Examples
    --------
    >>> plain_heading("Muster-Lösung "), plain_heading("Option A")
    ('musterlosung', 'optiona')
    """
    letters = unicodedata.normalize("NFKD", name.casefold().replace("ß", "ss"))
    return "".join(sign for sign in letters if sign.isalnum())


def looks_german(header: Sequence[str]) -> bool:
    """Return whether headings are German, so that the questions may be."""
    return any(plain_heading(name) in _GERMAN for name in header)


def fact_keys(columns: Mapping[str, str]) -> list[str]:
    """Return the keys of single facts, in order of their numbers."""
    numbers = [int(match[1]) for key in columns if (match := _FACT.fullmatch(key))]
    return [f"fact{number}" for number in sorted(numbers)]
