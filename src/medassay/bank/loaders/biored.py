"""BioRED: how two entities of an abstract are related. Verified on data.

The published suite does not say how it asks; this is a definition of our own: one item for each
pair of entities that the corpus relates in one way, the eight types of relation as options, both
entities by their first mention.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from medassay.bank.builder import BankBuilder, find_file
from medassay.core.records.item import Bank
from medassay.errors import InputError

TYPES = (
    "Association",
    "Bind",
    "Comparison",
    "Conversion",
    "Cotreatment",
    "Drug_Interaction",
    "Negative_Correlation",
    "Positive_Correlation",
)


class _Document(msgspec.Struct):
    """One abstract: title and text, first mention of each concept, relations between concepts."""

    parts: list[str] = msgspec.field(default_factory=list)
    mentions: dict[str, str] = msgspec.field(default_factory=dict)
    relations: dict[tuple[str, str], set[str]] = msgspec.field(default_factory=dict)


def load(root: Path) -> Bank:
    """Return an item for each related pair; pairs of one abstract share a cluster."""
    path = find_file(root, "Test.PubTator", "*.PubTator", "*.pubtator")
    draft = BankBuilder(
        "biored",
        licence="unstated (NCBI, US government)",
        source="BioRED test split (Luo et al. 2022)",
        title="BioRED, type of relation",
        limits=(
            "Types are very uneven: Association alone is right for about half. The question is a"
            " definition of our own."
        ),
    )
    for number, document in _documents(path):
        text = "\n".join(document.parts)
        for pair, types in sorted(document.relations.items()):
            names = [document.mentions.get(concept, "") for concept in pair]
            if not all(names):
                draft.drop("an entity without a mention")
            elif len(types) > 1:
                draft.drop("related in more than one way")
            else:
                draft.choice(
                    f"biored-{number}-{'-'.join(pair)}".replace(" ", "_"),
                    f'According to the passage, how are "{names[0]}" and "{names[1]}" related?',
                    [name.replace("_", " ") for name in TYPES],
                    TYPES.index(next(iter(types))),
                    domain="biored",
                    context=text,
                    cluster=number,
                )
    return draft.bank()


def _documents(path: Path) -> Iterator[tuple[str, _Document]]:
    """Yield id and content of each abstract in the PubTator format."""
    documents: dict[str, _Document] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name}: not readable as UTF-8: {error}") from None
    for row, line in enumerate(lines, 1):
        if not line.strip():
            continue
        head = line.split("|", 2)
        if len(head) == 3 and head[0].isdigit() and head[1] in ("t", "a"):
            documents.setdefault(head[0], _Document()).parts.append(head[2])
            continue
        cells = line.split("\t")
        document = documents.get(cells[0])
        if document is not None and len(cells) == 6:
            for concept in cells[5].split(","):
                document.mentions.setdefault(concept, cells[3])
        elif document is not None and len(cells) == 5 and cells[1] in TYPES:
            pair = (min(cells[2:4]), max(cells[2:4]))
            document.relations.setdefault(pair, set()).add(cells[1])
        else:
            raise InputError(
                f"{path.name} row {row}: {line!r:.60}; expected PubTator: number|t|title,"
                " number|a|abstract, an entity in six cells or a relation in five"
            )
    yield from documents.items()
