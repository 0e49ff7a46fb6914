"""Files of disease names → which names mean one disease: RareBench's mappings, Orphanet, MONDO.

Orphanet and MONDO are read as their documentation describes them; RareBench's files were tried.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from medassay.core.canonical import sha256_hex
from medassay.core.json import parse_json
from medassay.core.records.diagnosis import plain_name
from medassay.errors import InputError

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_ADJECTIVES = frozenset(
    [
        "acquired",
        "congenital",
        "familial",
        "hereditary",
        "idiopathic",
        "primary",
        "secondary",
        "sporadic",
    ]
)
_SHORTEST = 2  # characters of a name; one letter names nothing


class DiseaseNames(msgspec.Struct, frozen=True, kw_only=True):
    """The names of each disease in one file, by the file's codes; `form` says how it was read."""

    file: str
    sha256: str
    form: str
    names: Mapping[str, tuple[str, ...]]

    def synonyms(self, golden: Iterable[str]) -> dict[str, list[str]]:
        """Return golden diagnosis (its plain name) → all names of the entries that have its
        name.
        """
        index: dict[str, list[str]] = {}
        for code, names in self.names.items():
            for plain in {plain_name(name) for name in names}:
                index.setdefault(plain, []).append(code)
        return {
            key: sorted({name for code in index.get(key, ()) for name in self.names[code]})
            for key in sorted({plain_name(name) for name in golden})
        }


def load_disease_names(path: Path) -> DiseaseNames:
    """Return the names in a JSON file, whichever of the known forms it has.

    Raises
    ------
    InputError
        Naming the file, and the forms that are known.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    document = parse_json(data, path.name)
    for form, read in FORMS.items():
        names = {
            str(code): tuple(
                n for n in dict.fromkeys(disease_names) if len(plain_name(n)) >= _SHORTEST
            )
            for code, disease_names in read(document)
        }
        if names:
            return DiseaseNames(file=path.name, sha256=sha256_hex(data), form=form, names=names)
    raise InputError(
        f"{path.name}: no disease names; expected one of: an object of codes with names separated"
        ' by "/" or lists of names (RareBench), JDBOR with DisorderList (Orphanet), graphs with'
        " nodes (MONDO)"
    )


def split_names(text: str) -> list[str]:
    """Return the names in a value of RareBench's mapping, the usual one first.

    Names are separated by "/" and "; "; where a Chinese name leads, a register's English name
    follows it, and both go behind the others.

    Examples
    --------
    >>> split_names("肝豆状核变性/Hepatolenticular degeneration; HLD/Wilson disease/Wilson disease")
    ['Wilson disease', 'Hepatolenticular degeneration', 'HLD', '肝豆状核变性']
    """
    parts = _parts(text)
    if parts and _CHINESE.search(parts[0]):
        chinese, *rest = parts
        parts = [*rest[1:], *rest[:1], chinese]
    names = [name.strip() for part in parts for name in part.split("; ")]
    return list(dict.fromkeys(name for name in names if name))


def _parts(text: str) -> list[str]:
    """Return what "/" separates.

    A part that is no name of its own belongs to the one before or behind it.

    Such are parts in brackets, parts that begin small, and a lone adjective ("Familial/Idiopathic
    …").
    """
    parts: list[str] = []
    for part in filter(None, (part.strip() for part in text.split("/"))):
        last = parts[-1] if parts else ""
        inside = last.count("(") > last.count(")") or last.count("（") > last.count("）")
        if last and (inside or part[0].islower() or last.casefold() in _ADJECTIVES):
            parts[-1] = f"{last}/{part}"
        else:
            parts.append(part)
    return parts


def _rarebench(document: Any) -> Iterator[tuple[str, list[str]]]:
    if not isinstance(document, dict):
        return
    for code, value in document.items():
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            return
        yield code, [name for synonyms in listed for name in split_names(synonyms)]


def _orphanet(document: Any) -> Iterator[tuple[str, list[str]]]:
    """Read Orphadata's nomenclature as JSON: JDBOR → DisorderList → Disorder, names in `label`."""
    for disorder in _each(document, "JDBOR", "DisorderList", "Disorder"):
        names = [
            name["label"]
            for name in (
                *_each(disorder, "Name"),
                *_each(disorder, "SynonymList", "Synonym"),
            )
            if isinstance(name.get("label"), str)
        ]
        yield f"ORPHA:{disorder.get('OrphaCode', disorder.get('OrphaNumber', ''))}", names


def _mondo(document: Any) -> Iterator[tuple[str, list[str]]]:
    """Read an OBO graph: `lbl`, and synonyms that are exact; others name other diseases."""
    for node in _each(document, "graphs", "nodes"):
        meta = node.get("meta")
        if not isinstance(node.get("lbl"), str) or (
            isinstance(meta, dict) and meta.get("deprecated")
        ):
            continue
        exact = [
            synonym["val"]
            for synonym in _each(meta, "synonyms")
            if synonym.get("pred") == "hasExactSynonym" and isinstance(synonym.get("val"), str)
        ]
        yield str(node.get("id", "")).rsplit("/", 1)[-1], [node["lbl"], *exact]


def _each(value: Any, *path: str) -> Iterator[dict[str, Any]]:
    """Yield the objects at the end of a path of keys, through lists wherever there are some."""
    if isinstance(value, list):
        for inner in value:
            yield from _each(inner, *path)
    elif isinstance(value, dict):
        if not path:
            yield value
        elif path[0] in value:
            yield from _each(value[path[0]], *path[1:])


FORMS: dict[str, Callable[[Any], Iterator[tuple[str, list[str]]]]] = {
    "mondo": _mondo,
    "orphanet": _orphanet,
    "rarebench": _rarebench,
}
