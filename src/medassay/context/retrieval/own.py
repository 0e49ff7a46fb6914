"""A search of the user's in place of an index: a function that an installed package adds.

What it finds is kept in the workspace, text by text, so that a run that goes on searches for
nothing again, and prompts are made of the same words.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from medassay.context.retrieval.corpus import Document
from medassay.context.retrieval.index import (
    FORMAT,
    IndexDescription,
    RetrievedChunk,
    StoredChunk,
)
from medassay.core.canonical import sha256_hex
from medassay.core.catch import caught
from medassay.core.entry_point import entry_points, load, package_hash, package_of
from medassay.errors import InputError
from medassay.model.books import Books
from medassay.model.spec import ModelsSource

_SIZE = 1000  # characters of a passage, as previews assume
_LONGEST = 100_000
Search = Callable[[list[str], int], Sequence[Sequence[str]]]


class OwnRetriever:
    """Searches by `search(queries, k)`, which returns at most k passages for each query, the best
    first; in the place of an `Index`.

    Parameters
    ----------
    folder : where passages are kept
    trusted : whether the code of the package may be executed
    """

    method = "own"

    def __init__(self, name: str, folder: Path, *, trusted: bool) -> None:
        points = entry_points("retrievers")
        if name not in points:
            known = ", ".join(points) or "none"
            raise InputError(
                f"plan: 'retrieval.retriever' is '{name}', and no installed package has an entry"
                f" point of that name in the group 'medassay.retrievers' (known: {known})"
            )
        self._name, self._trusted = name, trusted
        self._search: Search | None = None
        digest = package_hash(points[name])
        self.id = f"{package_of(points[name]) or name} {name} {digest[:12]}"
        self.description = IndexDescription(
            id=self.id,
            format=FORMAT,
            corpus_sha256="",
            size=_SIZE,
            overlap=0,
            merging="",
            method=f"retriever {name}",
            embedder=None,
            embedder_place="",
            width=0,
            documents=0,
            chunks=0,
        )
        self._file = folder / f"passages-{sha256_hex(self.id.encode())[:12]}.jsonl"
        self._passages: list[str] = []
        if self._file.is_file():
            lines = self._file.read_bytes().split(b"\n")[:-1]  # a torn last line is searched again
            self._passages = [json.loads(line) for line in lines]
        self._numbers = {text: number for number, text in enumerate(self._passages)}

    @property
    def n(self) -> int:
        """Return the number of passages that were found by now."""
        return len(self._passages)

    def use(
        self,
        models_file: ModelsSource | None,
        secrets: Mapping[str, str],
        books: Books | None = None,
    ) -> None:
        """Import the function.

        Raises
        ------
        InputError
            When its code may not be executed, or cannot be imported.
        """
        if not self._trusted:
            raise InputError(
                f"plan: retriever '{self._name}' ({self.id}) is code that would be executed; say"
                " --trust-code"
            )
        self._search = load("retrievers", self._name)

    def document(self, name: str) -> Document | None:
        """Return nothing: passages alone are known."""
        return None

    def chunk(self, number: int) -> StoredChunk:
        """Return a passage by its number."""
        return StoredChunk(document=self._name, start=number, text=self._passages[number])

    async def search(self, texts: Sequence[str], k: int) -> list[list[RetrievedChunk]]:
        """Return at most k passages for each text.

        Raises
        ------
        InputError
            When the function fails, or returns something else.
        """
        assert self._search is not None
        with caught() as errors:
            found = await asyncio.to_thread(self._search, list(texts), k)
        if errors:
            raise InputError(
                f"retriever '{self._name}': {type(errors[0]).__name__}: {errors[0]}"
            ) from errors[0]
        if not _fits(found, len(texts)):
            raise InputError(
                f"retriever '{self._name}': returned {found!r:.60} for {len(texts)} queries;"
                " expected a list of passages, texts, for each"
            )
        self._keep(passage for passages in found for passage in passages[:k])
        return [
            [self._hit(rank, passage) for rank, passage in enumerate(passages[:k], 1)]
            for passages in found
        ]

    def _hit(self, rank: int, passage: str) -> RetrievedChunk:
        number = self._numbers[passage]
        place = msgspec.structs.asdict(self.chunk(number))
        return RetrievedChunk(rank=rank, chunk=number, score=float(-rank), measure="own", **place)

    def _keep(self, passages: Any) -> None:
        fresh = [p for p in dict.fromkeys(passages) if p not in self._numbers]
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(passage) + "\n" for passage in fresh)
        for passage in fresh:
            self._numbers[passage] = len(self._passages)
            self._passages.append(passage)

    async def close(self) -> None:
        """Nothing to close."""


def _fits(found: Any, n: int) -> bool:
    return (
        isinstance(found, list | tuple)
        and len(found) == n
        and all(isinstance(passages, list | tuple) for passages in found)
        and all(isinstance(p, str) and len(p) <= _LONGEST for ps in found for p in ps)
    )
