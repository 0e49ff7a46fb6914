"""How a publication is cited: BibTeX, `CITATION.cff` (1.2.0) and DataCite metadata (4.5)."""

import json
from collections.abc import Mapping
from typing import Any

import yaml

from medassay.core.records.identity import BoardIdentity
from medassay.core.wording import visible
from medassay.report.board import Board
from medassay.report.document import latex_text
from medassay.report.references import address_of, reference

FILES = {
    "citation.bib": "the publication for BibTeX",
    "CITATION.cff": "the publication in the Citation File Format",
    "datacite.json": "the publication as DataCite describes data sets, for a DOI",
}
# Licences as SPDX writes them: a citation file may name no others.
_SPDX = (
    *("Apache-2.0", "CC-BY-4.0", "CC-BY-NC-4.0", "CC-BY-SA-4.0", "CC-BY-NC-SA-4.0", "CC0-1.0"),
    *("MIT", "ODbL-1.0", "ODC-By-1.0", "PDDL-1.0"),
)


def citation_files(board: Board) -> dict[str, str]:
    """Return name → text of each file; none of a board whose publisher does not say who they
    are.
    """
    if board.identity is None:
        return {}
    return {
        "citation.bib": _bibtex(board, board.identity),
        "CITATION.cff": _cff(board, board.identity),
        "datacite.json": _datacite(board, board.identity),
    }


def citation_text(board: Board) -> str:
    """Return how a publication is cited in a text."""
    where = "" if board.identity is None else address_of(board, board.identity)
    return f"{reference(board)}.{' ' if where else ''}{where}"


def _title(board: Board, identity: BoardIdentity) -> str:
    return f"{identity.title}, publication {board.publication}"


def _bibtex(board: Board, identity: BoardIdentity) -> str:
    year, month, _ = board.date.split("-")
    fields = {
        "author": f"{{{latex_text(identity.publisher)}}}",
        "title": f"{{{latex_text(_title(board, identity))}}}",
        "year": year,
        "month": str(int(month)),
        "version": latex_text(board.publication),
        "note": f"Data root sha256 {board.seal.root}",
    }
    if address := address_of(board, identity):
        fields["url"] = address
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@misc{{{board.publication},", *lines, "}", ""])


def _cff(board: Board, identity: BoardIdentity) -> str:
    document: dict[str, Any] = {
        "cff-version": "1.2.0",
        "message": "Cite this publication when you use its numbers.",
        "type": "dataset",
        "title": visible(_title(board, identity)),
        "abstract": visible(identity.purpose),
        "authors": [{"name": visible(identity.publisher)}],
        "version": board.publication,
        "date-released": board.date,
        "identifiers": [
            {
                "type": "other",
                "value": f"sha256:{board.seal.root}",
                "description": "The data root: a hash over all records of the publication.",
            }
        ],
    }
    if address := address_of(board, identity):
        document["url"] = address
    if identity.licence in _SPDX:
        document["license"] = identity.licence
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1_000)
    return text


def _datacite(board: Board, identity: BoardIdentity) -> str:
    document: Mapping[str, Any] = {
        "schemaVersion": "http://datacite.org/schema/kernel-4",
        "titles": [{"title": _title(board, identity)}],
        "creators": [{"name": identity.publisher, "nameType": "Organizational"}],
        "publisher": {"name": identity.publisher},
        "publicationYear": board.date[:4],
        "types": {"resourceTypeGeneral": "Dataset", "resourceType": "Leaderboard"},
        "dates": [{"date": board.date, "dateType": "Issued"}],
        "version": board.publication,
        "language": "en",
        "descriptions": [{"description": identity.purpose, "descriptionType": "Abstract"}],
        "alternateIdentifiers": [
            {"alternateIdentifier": board.seal.root, "alternateIdentifierType": "data root sha256"}
        ],
        **({"rightsList": [{"rights": identity.licence}]} if identity.licence else {}),
        **({"url": address} if (address := address_of(board, identity)) else {}),
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"
