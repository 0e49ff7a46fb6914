"""The texts that are searched: a folder of documents, or a JSONL file with `id` and `text`.

Of a folder .txt and .md files are read as they stand; of other endings those that a reader is given
for.

A document is named by its path without ending, or its id; where it is named as a condition it is
that condition's source.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from medassay.core.canonical import canonical
from medassay.core.json import parse_json, storable
from medassay.core.wording import listed
from medassay.errors import InputError

_PLAIN = (".md", ".txt")
Readers = Mapping[str, Callable[[Path], str]]  # ending → what returns a document's text


class Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One text of a corpus."""

    name: str
    text: str


def read_corpus(path: Path, readers: Readers) -> Iterator[Document]:
    """Yield the documents of a corpus, those of a folder by name.

    Raises
    ------
    InputError
        Naming the file and what was expected.
    """
    if path.is_dir():
        yield from _of_folder(path, readers)
    elif path.is_file():
        yield from _of_lines(path)
    else:
        raise InputError(
            f"{path}: no such corpus; expected a folder of documents ({_suffixes_text(readers)}),"
            " or a JSONL file"
        )


def left_out(folder: Path, readers: Readers) -> list[str]:
    """Return the files of a folder that are no documents of a corpus, by their paths below it.

    Hidden ones are not named.
    """
    suffixes = {*_PLAIN, *readers}
    below = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    return [
        str(path)
        for path in below
        if path.suffix.lower() not in suffixes
        and not any(part.startswith(".") for part in path.parts)
    ]


def _suffixes_text(readers: Readers) -> str:
    return listed(sorted({*_PLAIN, *readers}))


def _of_folder(folder: Path, readers: Readers) -> Iterator[Document]:
    suffixes = {*_PLAIN, *readers}
    paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() in suffixes and p.is_file())
    if not paths:
        raise InputError(f"{folder}: holds none of {_suffixes_text(readers)}")
    for path in paths:
        text = _text(path, readers)
        name = str(path.relative_to(folder).with_suffix(""))
        if storable(name) != name:
            raise InputError(f"{storable(str(path))}: its name is not UTF-8; rename the file")
        yield Document(name, text)


def _text(path: Path, readers: Readers) -> str:
    if (read := readers.get(path.suffix.lower())) is not None:
        return read(path)
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text: {error}") from None


def _of_lines(path: Path) -> Iterator[Document]:
    if path.suffix.lower() not in (".jsonl", ".ndjson"):
        raise InputError(f"{path}: expected a folder of texts, or JSON lines with id and text")
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"{path.name} row {number}"
            row = parse_json(line, where)
            name = row.get("id") if isinstance(row, dict) else None
            text = row.get("text") if isinstance(row, dict) else None
            if not isinstance(name, str) or not name or not isinstance(text, str):
                raise InputError(
                    f'{where}: expected {{"id": "name", "text": "…"}}, both texts, the name not'
                    " empty"
                )
            yield Document(storable(name), storable(text))


def corpus_hash(path: Path, readers: Readers) -> str:
    """Return the SHA-256 over all documents.

    Refuses a name that occurs twice, and a corpus of blank texts.
    """
    digest, names, characters = hashlib.sha256(), set[str](), 0
    for document in read_corpus(path, readers):
        if document.name in names:
            raise InputError(
                f"{path}: two documents are named '{document.name}'; names (of files without their"
                " ending) must differ"
            )
        names.add(document.name)
        characters += len(document.text.strip())
        digest.update(canonical([document.name, document.text]))
    if not characters:
        raise InputError(f"{path}: its documents are blank; there is nothing to search")
    return digest.hexdigest()


def same_name(name: str) -> str:
    """Return a name as it is compared: without case, or marks between words.

    Examples
    --------
    >>> same_name("PLEURAL_EFFUSION") == same_name("Pleural effusion")
    True
    """
    return " ".join("".join(c if c.isalnum() else " " for c in name.casefold()).split())
