"""The words of boards in other languages: English stands in templates and code, and is the key.

A catalogue is a JSON file:

- `language` and `name`: as HTML and people write it, "de" and "Deutsch";
- `decimal`, `thousands`, `day`: how numbers and dates are written ("," and "." and
  "{day}.{month}.{year}");
- `and`: the word before the last of several names;
- `texts`: text of a template with `{0}` for expressions → its translation (`report/localize.py`);
- `literals`: words that stand in quotes in a template → their translation;
- `nouns`: what is counted → one, several;
- `phrases`: words of the code → their translation; `{name}` stands for anything, so that a
  sentence is translated by its form. What stands in `{said_…}` is translated, too, in
  `{listed_or}` and `{listed_and}` the word before the last name; in a hole that is called as one
  of `_NUMBERS`, numbers are written as the language does, in every other they are part of a name;
- `scripts`: words of the scripts → their translation.

What a catalogue lacks stays English. Texts of items, replies and publishers are never translated.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from msgspec import field

from medassay.core.json import record_as
from medassay.core.small_file import read_small
from medassay.core.wording import counted, listed
from medassay.errors import InputError

SHIPPED = ("en", "de")
_DAY = re.compile(r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)")
_LARGEST = 2_000_000  # bytes of a catalogue
_HOLE = re.compile(r"\{(\w+)\}")
_MARKS = re.compile(r"\{\w+\}|\{%.*?%\}")
_DECIMAL = (".", ",", "٫")
_THOUSANDS = (",", ".", " ", "\u00a0", "\u202f", "'", "’", "")
# Holes of phrases in which numbers stand. In others "3.5" may be part of the name of a model.
_NUMBERS = {"h", "items", "k", "m", "n", "nats", "share", "start", "total", "value"}
_GROUPED = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])")
_REASONS = ("judge failed: {judges}", "{n} of {total} missing")  # why a score is what it is
_Form = tuple[str, re.Pattern[str]]  # a phrase with holes, and what finds it
_NUMBER = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.])")


class Catalogue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The words of one language; see the module."""

    language: str
    name: str
    decimal: str = "."
    thousands: str = ","
    day: str = "{year}-{month}-{day}"
    and_: str = field(default="and", name="and")
    texts: dict[str, str] = {}
    literals: dict[str, str] = {}
    nouns: dict[str, tuple[str, str]] = {}
    phrases: dict[str, str] = {}
    scripts: dict[str, str] = {}


class Texts(msgspec.Struct, frozen=True, eq=False, dict=True):
    """What pages are written with in one language.

    Examples
    --------
    >>> german = shipped_texts("de")
    >>> german.counted(2, "item"), german.number("83.8"), german.day("2026-11-26")
    ('2 Aufgaben', '83,8', '26.11.2026')
    >>> ENGLISH.counted(2, "item"), ENGLISH.number("83.8"), ENGLISH.day("2026-11-26")
    ('2 items', '83.8', '2026-11-26')
    """

    catalogue: Catalogue = field(default_factory=lambda: Catalogue(language="en", name="English"))

    @property
    def language(self) -> str:
        """Return the language as HTML names it."""
        return self.catalogue.language

    def said(self, text: str) -> str:
        """Return words of the code in this language: by themselves, or by the form that they
        have.

        Parts between "; " are translated one by one where the whole has no translation.
        """
        translation = self._said(text)
        if translation is not None or not self.catalogue.phrases:
            return translation or text
        parts = text.split("; ")
        translations = [self._said(part) for part in parts]
        if None in translations and (translation := self._said(text, strict=False)) is not None:
            return translation
        return "; ".join(told or part for told, part in zip(translations, parts, strict=True))

    def reason(self, text: str) -> str:
        """Return why a score is what it is in this language.

        Every answer has one, and somebody's code or judge may have written it: it is compared with
        the few forms of reasons alone, which takes no longer the more often their words occur.
        """
        if (phrase := self.catalogue.phrases.get(text)) is not None:
            return phrase
        return self._formed(text, self._reasons, strict=False) or text

    def _said(self, text: str, *, strict: bool = True) -> str | None:
        """Return the translation of a phrase, or of the first form that a text has.

        Parameters
        ----------
        strict : whether the words of ours in a form (`said_…`) must have a translation, too, and no
            hole reaches over "; ": "1 item {said_what}" is no form of "1 item corrected; 1 new row"
        """
        if (phrase := self.catalogue.phrases.get(text)) is not None:
            return phrase
        return self._formed(text, self._forms, strict=strict)

    def _formed(self, text: str, forms: Sequence[_Form], *, strict: bool = True) -> str | None:
        """Return the translation of the first form that a text has."""
        for form, pattern in forms:
            if strict and "; " in text and "; " not in form:
                continue
            if match := pattern.fullmatch(text):
                translation = self.catalogue.phrases[form]
                contents = match.groupdict()
                holes = {name: self._held(name, held) for name, held in contents.items()}
                if None not in holes.values() or not strict:
                    filled = {name: text or contents[name] for name, text in holes.items()}
                    return _filled(translation, filled)
        return None

    def _held(self, name: str, held: str) -> str | None:
        """Return what stands in a hole: a name as it is, a number as the language writes it, words
        of ours (`said_…`) translated, None where they have no translation; of several names
        (`listed_or`, `listed_and`) the word before the last.
        """
        if name in _NUMBERS or name == "weights":  # those are names and numbers
            return self.grouped(self.number(held))
        if name.startswith("said_"):
            return self.grouped(held) if held.isdecimal() else self._said(held)
        if name.startswith("listed_"):
            word = name.removeprefix("listed_")
            before, _, last = held.rpartition(f" {word} ")
            return f"{before} {self.catalogue.phrases.get(word, word)} {last}" if before else held
        return held

    @cached_property
    def _reasons(self) -> list[_Form]:
        return [(form, pattern) for form, pattern in self._forms if form in _REASONS]

    @cached_property
    def _forms(self) -> list[_Form]:
        """Return the phrases that have holes, those with the most words of their own first, with
        what finds each.
        """
        forms = sorted(
            (phrase for phrase in self.catalogue.phrases if _HOLE.search(phrase)),
            key=lambda phrase: (-len(_HOLE.sub("", phrase)), phrase),
        )
        return [(phrase, _pattern(phrase)) for phrase in forms]

    def counted(self, number: int, noun: str, plural: str = "") -> str:
        """Return a number with its noun in the right form."""
        if (forms := self.catalogue.nouns.get(noun)) is None:
            return self.grouped(counted(number, noun, plural))
        return f"{self.grouped(f'{number:,}')} {forms[number != 1]}"

    def listed(self, names: Sequence[str]) -> str:
        """Return names as one says them."""
        if self.catalogue.and_ == "and" or len(names) < 2:
            return listed(names)
        return f"{', '.join(names[:-1])} {self.catalogue.and_} {names[-1]}"

    def number(self, text: str) -> str:
        """Return a text with its decimal points as this language writes them."""
        if self.catalogue.decimal == ".":
            return text
        return _NUMBER.sub(lambda m: m[0].replace(".", self.catalogue.decimal), text)

    @property
    def between(self) -> str:
        """Return what stands between the ends of an interval."""
        return ";" if self.catalogue.decimal == "," else ","

    def grouped(self, text: str) -> str:
        """Return a text with the thousands of its numbers as this language writes them; a mark that
        is none of English stands from 10,000 on.
        """
        if self.catalogue.thousands == ",":
            return text

        def marked(match: re.Match[str]) -> str:
            mark = self.catalogue.thousands if len(match[0]) > len("9,999") else ""
            return match[0].replace(",", mark)

        return _GROUPED.sub(marked, text)

    def day(self, date: str) -> str:
        """Return a day, given as "2026-11-26" or with a time behind it."""
        if not (match := _DAY.match(date)):
            return date
        return _filled(self.catalogue.day, match.groupdict())

    def script(self, source: str) -> str:
        """Return a script with its words in this language."""
        for words, translation in self.catalogue.scripts.items():
            english, translated = (
                json.dumps(text, ensure_ascii=False) for text in (words, translation)
            )
            source = source.replace(english, translated)
        return source


def _filled(translation: str, holes: Mapping[str, str]) -> str:
    return _HOLE.sub(lambda match: holes[match[1]], translation)


def _pattern(phrase: str) -> re.Pattern[str]:
    """Return what finds a phrase with numbers in the holes of numbers and anything in others."""
    parts = _HOLE.split(phrase)
    source = "".join(
        f"(?P<{part}>{r'-?[0-9.,]+' if part in _NUMBERS else '.+?'})" if at % 2 else re.escape(part)
        for at, part in enumerate(parts)
    )
    return re.compile(source, re.DOTALL)


ENGLISH = Texts()


def shipped_texts(language: str) -> Texts:
    """Return the texts of a language that medassay has.

    Raises
    ------
    InputError
        When it has no such language.
    """
    if language == "en":
        return ENGLISH
    if language not in SHIPPED:
        raise InputError(
            f"--language '{language:.40}': expected {', '.join(SHIPPED)}, or a catalogue of one's"
            " own, a .json file"
        )
    return _shipped(language)


@lru_cache(maxsize=len(SHIPPED))  # templates are compiled once for each of these
def _shipped(language: str) -> Texts:
    content = (files("medassay.report.texts") / f"{language}.json").read_bytes()
    return Texts(msgspec.json.decode(content, type=Catalogue))


def read_texts(path: Path) -> Texts:
    """Return the texts of somebody's own catalogue.

    Raises
    ------
    InputError
        Naming the file and what is wrong with it.
    """
    if not path.is_file():
        raise InputError(f"{path}: no file; expected a catalogue of texts")
    try:
        document = json.loads(read_small(path, _LARGEST, str(path)))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: no JSON: {error}") from None
    return texts_of(document, str(path))


def texts_of(document: Any, where: str, *, of_publication: bool = False) -> Texts:
    """Return the texts in a catalogue; `where` names it in errors.

    Its words become parts of templates and scripts, and somebody else may have written it: they are
    checked to be words, and to say what the text says.

    Parameters
    ----------
    of_publication : whether a publication kept it, perhaps for an earlier version: what this one
        does not know is left out then

    Raises
    ------
    InputError
        Naming the entry that is wrong, and what was expected.
    """
    catalogue = record_as(document, Catalogue, where, InputError)
    _check_forms(catalogue, where)
    shipped = _shipped(SHIPPED[1]).catalogue
    of_ours = {}
    for kind in ("literals", "nouns", "phrases", "scripts"):
        entries, ours = getattr(catalogue, kind), getattr(shipped, kind)
        unknown = sorted(entries.keys() - ours.keys())
        if unknown and not of_publication:
            raise InputError(
                f"{where}: {kind}: '{unknown[0]:.60}' is none of ours; they are those of"
                f" {SHIPPED[1]}.json"
            )
        of_ours[kind] = {key: entry for key, entry in entries.items() if key in ours}
    checked = msgspec.structs.replace(catalogue, **of_ours)
    for kind in ("texts", "literals", "phrases", "scripts"):
        for text, translation in getattr(checked, kind).items():
            _check_words(text, translation, f"{where}: {kind}")
    for noun, forms in checked.nouns.items():
        for form in forms:
            _check_words(noun, form, f"{where}: nouns")
    return Texts(checked)


def _check_forms(catalogue: Catalogue, where: str) -> None:
    """Refuse what would write numbers, dates or lists otherwise than a language does."""
    if not re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", catalogue.language):
        raise InputError(f"{where}: language '{catalogue.language:.40}'; expected one as 'de'")
    if catalogue.decimal not in _DECIMAL:
        raise InputError(f"{where}: decimal '{catalogue.decimal:.10}'; expected one of . , ٫")
    if catalogue.thousands not in _THOUSANDS or catalogue.thousands == catalogue.decimal:
        raise InputError(
            f"{where}: thousands '{catalogue.thousands:.10}'; expected . , ' ’ a blank or nothing,"
            " and another mark than for decimals"
        )
    rest = _HOLE.sub("", catalogue.day)
    parts = sorted(_HOLE.findall(catalogue.day))
    if parts != ["day", "month", "year"] or re.search(r'[\d<>"\\{}]', rest) or len(rest) > 20:
        raise InputError(
            f"{where}: day '{catalogue.day:.40}'; expected {{year}}, {{month}} and {{day}}, each"
            " once, and marks between them"
        )
    _check_words("and", catalogue.and_, f"{where}: and")
    _check_words("name", catalogue.name, f"{where}: name")


def _check_words(text: str, translation: str, where: str) -> None:
    """Refuse a translation that is more, or less, than the words of its text."""
    if _MARKS.findall(translation) != _MARKS.findall(text) and (
        "{%" in text or sorted(_MARKS.findall(translation)) != sorted(_MARKS.findall(text))
    ):
        raise InputError(
            f"{where}: the translation of '{text:.60}' has other marks than it, of {{…}}"
        )
    rest, original = _MARKS.sub("", translation), _MARKS.sub("", text)
    if re.search(r'[<>"\\{}]', rest) or not rest.replace("\u00ad", "").isprintable():
        raise InputError(
            f"{where}: the translation of '{text:.60}' holds one of < > \" \\ {{ }} or a control;"
            " expected words alone"
        )
    if sorted(re.findall(r"\d+", rest)) != sorted(re.findall(r"\d+", original)):
        raise InputError(f"{where}: the translation of '{text:.60}' has other numbers than it")
    if original.strip() and not rest.strip():
        raise InputError(f"{where}: the translation of '{text:.60}' is empty")
