"""The texts of the app in other languages. English stands in the code and is the key."""

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

LANGUAGES = {"en": "English", "de": "Deutsch", "es": "Español"}


@lru_cache(maxsize=8)
def catalogue(language: str) -> Mapping[str, str]:
    """Return English text → text in a language.

    For English only what stands for a state or a step.
    """
    read: dict[str, str] = json.loads(
        (files("medassay.web.texts") / f"{language}.json").read_text("utf-8")
    )
    return read


def translate(language: str, text: str, /, **values: object) -> str:
    """Return a text in a language, its holes filled; English where there is none.

    Examples
    --------
    >>> translate("de", "Skip")
    'Überspringen'
    """
    translation = catalogue(language).get(text, text)
    return translation.format(**values) if values else translation


def spoken(choice: str, accepted: str) -> str:
    """Return the language to speak: the one chosen, else the first that a browser accepts and we
    have.

    Examples
    --------
    >>> spoken("", "fr-CH, de;q=0.9, en;q=0.8"), spoken("es", "de"), spoken("", "")
    ('de', 'es', 'en')
    """
    if choice in LANGUAGES:
        return choice
    offers = []
    for part in accepted.split(",")[:20]:
        name, _, weight = part.strip().partition(";q=")
        try:
            offers.append((-float(weight or 1), name.partition("-")[0].lower()))
        except ValueError:
            continue
    return next((name for _, name in sorted(offers, key=lambda o: o[0]) if name in LANGUAGES), "en")
