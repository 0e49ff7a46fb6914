"""A workshop as reviewers see it: what it derived beside its originals, and its decision graphs and
source texts beside the items of its bank.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from medassay.bank.folder import bank_records
from medassay.core.records.decision_graph import DecisionGraph
from medassay.core.records.item import Bank
from medassay.core.records.item_line import ItemLine, item_line
from medassay.core.records.item_object import ItemObject
from medassay.errors import InputError
from medassay.exchange.review_entries import MOST_TEXT, entries_of_records, paired_entry
from medassay.review.store.studies import NewEntry
from medassay.synthesis.graph_file import load_graph
from medassay.synthesis.items import present_items
from medassay.synthesis.pathway import paths, subject_of
from medassay.synthesis.project import JOURNAL, Workshop, read_workshop
from medassay.synthesis.records import Correction


def bank_entries(bank: Bank, folder: Path | None = None) -> list[NewEntry]:
    """Return the items of a bank as entries.

    With decision graphs and source texts where its workshop has them.

    Parameters
    ----------
    folder : of the bank, where it is known
    """
    beside = {}
    if folder is not None and (folder.parent / JOURNAL).is_file():
        beside = _beside(read_workshop(folder.parent))
    return entries_of_records((record for _, record in bank_records(bank)), beside)


def _beside(workshop: Workshop) -> dict[str, dict[str, Any]]:
    """Return document → the decision graph and the source text that a workshop made its items
    from.
    """
    records: dict[str, dict[str, Any]] = {}
    for name, graph in _graphs(workshop).items():
        text = workshop.folder / "texts" / f"{name}.txt"
        source = {"source_text": text.read_text("utf-8")[:MOST_TEXT]} if text.is_file() else {}
        records[name] = {"graph": graph.to_json(), **source}
    return records


def _graphs(workshop: Workshop) -> dict[str, DecisionGraph]:
    """Return document → its decision graph, as the workshop drew it."""
    files = sorted((workshop.folder / "graphs").glob("*.json"))
    return {file.stem: load_graph(file) for file in files}


def workshop_entries(workshop: Workshop) -> list[NewEntry]:
    """Return what a workshop derived beside its originals: translations, refined pathways, open
    versions, corrections.

    Raises
    ------
    InputError
        When it derived nothing.
    """
    items = [event.result for event in present_items(workshop)]
    entries = [
        *_corrections(workshop),
        *_translations(workshop, items),
        *_rephrasings(items),
        *_refinements(workshop, items),
    ]
    if not entries:
        raise InputError(
            f"{workshop.folder}: holds nothing derived: no translation, refined pathway, open"
            " version or correction"
        )
    return entries


def _corrections(workshop: Workshop) -> Iterator[NewEntry]:
    for event in workshop.all_latest("review"):
        if event.result and event.result_as(Correction).types:
            line, after = ItemLine(id=event.place[1]), event.result_as(Correction).after
            before = event.line.given
            yield paired_entry(line, before, msgspec.to_builtins(after), "correction")


def _translations(workshop: Workshop, items: Sequence[ItemObject]) -> Iterator[NewEntry]:
    for item in items:
        line = item_line(item)
        event = workshop.latest("translate", str(line.meta.of or ""))
        if line.meta.maker == "translation" and event is not None:
            yield paired_entry(line, {**event.line.given, "language": ""}, item, "translation")


def _rephrasings(items: Sequence[ItemObject]) -> Iterator[NewEntry]:
    """Yield open versions of exam questions beside the closed ones."""
    of: dict[str, list[ItemObject]] = defaultdict(list)
    for item in items:
        line = item_line(item)
        if line.meta.maker == "exam":
            of[str(line.meta.question or line.id)].append(item)
    for versions in of.values():
        closed = [item for item in versions if item.get("options")]
        opened = [item for item in versions if not item.get("options")]
        for item in opened if closed else ():
            yield paired_entry(item_line(item), closed[0], item, "rephrasing")


def _refinements(workshop: Workshop, items: Sequence[ItemObject]) -> Iterator[NewEntry]:
    """Yield refined pathways beside the ways through the graph that they tell."""
    ways = {
        subject_of(name, way): way.full_text
        for name, graph in _graphs(workshop).items()
        for way in paths(graph)
    }
    seen_keys = set()
    for line in map(item_line, items):
        subject = str(line.meta.question or "")
        if line.meta.maker != "pathways" or subject in seen_keys:
            continue
        seen_keys.add(subject)
        if subject in ways and ways[subject] != line.path:
            yield paired_entry(line, {"path": ways[subject]}, {"path": line.path}, "path")
