"""The language of a publication's pages: `data/language.json`, where it is not English."""

from pathlib import Path
from typing import Any

import msgspec

from medassay.core.canonical import canonical
from medassay.errors import InputError, IntegrityError
from medassay.publishing.secret_text import refuse_secret
from medassay.report.texts import ENGLISH, Texts, read_texts, shipped_texts, texts_of
from medassay.storage.run import read_document

LANGUAGE = Path("data/language.json")


def chosen_texts(language: str) -> Texts:
    """Return the texts of a language that medassay has, or of somebody's own catalogue.

    Raises
    ------
    InputError
        When there is no such language, or the catalogue is wrong.
    """
    return read_texts(Path(language)) if language.endswith(".json") else shipped_texts(language)


def write_language(publication: Path, language: str) -> None:
    """Keep the language of a publication that is being made: the name of one that medassay has, or
    a catalogue whole, so that its pages can be made again. English is kept by no file.
    """
    texts = chosen_texts(language)
    if texts is ENGLISH:
        return
    document: dict[str, Any] = {"language": language}
    if language.endswith(".json"):
        document = {"catalogue": msgspec.to_builtins(texts.catalogue)}
    data = canonical({"schema_version": 1, **document}) + b"\n"
    refuse_secret(data, language)
    (publication / LANGUAGE).write_bytes(data)


def kept_texts(publication: Path) -> Texts:
    """Return the texts that a publication was written with.

    Raises
    ------
    IntegrityError
        When the file is damaged.
    """
    if not (publication / LANGUAGE).exists():
        return ENGLISH
    document: dict[str, Any] = read_document(publication / LANGUAGE)
    try:
        if "catalogue" in document:
            return texts_of(document["catalogue"], LANGUAGE.as_posix(), of_publication=True)
        return shipped_texts(str(document.get("language")))
    except InputError as error:
        raise IntegrityError(str(error)) from None
