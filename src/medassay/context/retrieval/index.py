"""An index on disk: documents, their chunks, vectors and word counts, under the hash of corpus and
parameters.

A folder holds `index.json`, `documents.jsonl`, `chunks.jsonl`, and as the method wants
`vectors.f32` and `bm25/`; see `build.py`.
"""

import os
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Generic, Literal, TypeVar, get_args

import msgspec
import numpy as np

from medassay.context.retrieval.corpus import Document, same_name
from medassay.context.retrieval.embed import PassageEmbedder, find_embedder
from medassay.context.retrieval.search import VectorFile, fused, nearest
from medassay.context.retrieval.words import WordCounts
from medassay.core.json import parse_json
from medassay.core.keyed import KeyedRecord
from medassay.errors import InputError, IntegrityError
from medassay.model.books import Books
from medassay.model.spec import ModelsSource

T = TypeVar("T")
Method = Literal["dense", "bm25", "hybrid"]
METHODS: tuple[Method, ...] = get_args(Method)
FORMAT = 1
_DEPTH = 50  # of the rankings that a hybrid search joins


class RetrievedChunk(KeyedRecord, msgspec.Struct, frozen=True, kw_only=True):
    """A chunk that a search found.

    `score` is a distance where `measure` is "l2", else the higher the nearer; "own" is the order of
    a retriever of the user's.
    """

    KEYS: ClassVar = ("rank", "chunk", "document", "start", "score", "measure", "text")

    rank: int
    chunk: int
    document: str
    start: int
    score: float
    measure: Literal["l2", "bm25", "rrf", "own"]
    text: str


def is_index(folder: Path) -> bool:
    """Return whether a folder holds an index."""
    return (folder / "index.json").is_file()


class StoredChunk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stretch of a document, and the character at which it begins there."""

    document: str
    start: int
    text: str


class IndexDescription(msgspec.Struct, frozen=True, kw_only=True):
    """What `index.json` says.

    Attributes
    ----------
    id : hash of all that the index depends on
    size, overlap : characters of a chunk, and of what neighbours share
    embedder : the model of its vectors, None for methods of words; found at `embedder_place`
    width : numbers of a vector
    """

    schema_version: int = 1
    id: str
    format: int
    corpus_sha256: str
    size: int
    overlap: int
    merging: str
    method: str
    embedder: str | None
    embedder_place: str
    width: int
    documents: int
    chunks: int
    characters: int = 0


def describe_index(folder: Path) -> IndexDescription:
    """Return what `index.json` says.

    Raises
    ------
    InputError
        When there is no index.
    IntegrityError
        When it is damaged.
    """
    try:
        document = parse_json((folder / "index.json").read_bytes(), f"{folder}/index.json")
        return msgspec.convert(document, IndexDescription)
    except OSError:
        raise InputError(
            f"{folder}: no index; `medassay index build CORPUS --out {folder}` makes one"
        ) from None
    except msgspec.ValidationError as error:
        raise IntegrityError(
            f"{folder}/index.json: damaged: {error}; build the index again"
        ) from None


class _Lines(Generic[T]):
    """Records of a JSONL file, each read when it is asked for."""

    def __init__(self, path: Path, n: int, kind: type[T]) -> None:
        self._decode = msgspec.json.Decoder(kind).decode
        starts = array("Q", [0])
        try:
            with path.open("rb") as lines:
                for line in lines:
                    starts.append(starts[-1] + len(line))
        except FileNotFoundError:
            starts = array("Q")
        if len(starts) != n + 1:
            raise IntegrityError(
                f"{path.name}: {max(0, len(starts) - 1)} lines, index.json says {n}; build the"
                " index again"
            )
        self._starts = starts
        self._name = path.name
        self._file = os.open(path, os.O_RDONLY)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def __getitem__(self, number: int) -> T:
        start = self._starts[number]
        line = os.pread(self._file, self._starts[number + 1] - start, start)
        try:
            return self._decode(line)
        except (ValueError, RecursionError):
            raise IntegrityError(
                f"{self._name} line {number + 1}: damaged; build the index again"
            ) from None


class Index:
    """An index that is there, opened for reading."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.description = describe_index(folder)
        self.id, self.n = self.description.id, self.description.chunks
        self.method = self.description.method
        if self.description.format != FORMAT or self.method not in METHODS:
            raise InputError(
                f"{folder}/index.json: format {self.description.format}, method"
                f" '{self.description.method}': an index of another version; build it again"
            )
        self.embedder: PassageEmbedder | None = None
        self._chunks = _Lines(folder / "chunks.jsonl", self.n, StoredChunk)
        n = self.description.documents
        self._documents = _Lines(folder / "documents.jsonl", n, Document)
        self._names: dict[str, int] | None = None
        self._vectors: VectorFile | None = None
        self._counts: WordCounts | None = None

    def use(
        self,
        models_file: ModelsSource | None,
        secrets: Mapping[str, str],
        books: Books | None = None,
    ) -> None:
        """Bring the embedder that it was built with, if it needs one to be searched.

        Parameters
        ----------
        books : where requests to an endpoint are booked, None to book none

        Raises
        ------
        InputError
            When that is not here, or is another by now.
        """
        place = self.description.embedder_place
        if not place or self.embedder is not None:
            return
        query_embedder = find_embedder(place, models_file, secrets, books)
        if query_embedder.id != self.description.embedder:
            raise InputError(
                f"{self.folder}: was built with embedder {self.description.embedder}, and"
                f" '{place}' is now {query_embedder.id}; build the index again, or bring that model"
                " back"
            )
        self.embedder = query_embedder

    def document(self, name: str) -> Document | None:
        """Return the document of a name, whatever its case and marks; None if there is none."""
        if self._names is None:
            names = [self._documents[n].name for n in range(self.description.documents)]
            # A file in a subfolder answers to its own name, unless another is named so; as written
            # goes first.
            last = {same_name(name.rpartition("/")[2]): n for n, name in enumerate(names)}
            alike = {same_name(name): n for n, name in enumerate(names)}
            self._names = last | alike | {name: n for n, name in enumerate(names)}
        number = self._names.get(name, self._names.get(same_name(name)))
        return None if number is None else self._documents[number]

    def chunk(self, number: int) -> StoredChunk:
        """Return a chunk by its number."""
        return self._chunks[number]

    async def search(self, texts: Sequence[str], k: int) -> list[list[RetrievedChunk]]:
        """Return the k best chunks for each text, the best first, the lower number first among
        equals.

        Methods of words give fewer where fewer chunks share a word with the text.
        """
        if not self.n or not texts:
            return [[] for _ in texts]
        if self.method == "dense":
            ranked = await self._nearest(texts, k)
            return [self._hits(row, "l2") for row in ranked]
        if self._counts is None:
            self._counts = WordCounts(self.folder / "bm25", self.n)
        words = self._counts.best(texts, k if self.method == "bm25" else max(k, _DEPTH))
        if self.method == "bm25":
            return [self._hits(row, "bm25") for row in words]
        dense = await self._nearest(texts, max(k, _DEPTH))
        rankings = (
            fused([[place for place, _ in a], [place for place, _ in b]], k)
            for a, b in zip(dense, words, strict=True)
        )
        return [self._hits(row, "rrf") for row in rankings]

    async def _nearest(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        if self.embedder is None:
            raise InputError(f"{self.folder}: searching it needs its embedder")
        if self._vectors is None:
            self._vectors = VectorFile(self.folder / "vectors.f32", self.description.width, self.n)
        queries = np.asarray(await self.embedder.embed(texts), dtype=np.float32)
        if (width := queries.shape[1]) != self.description.width:
            raise InputError(
                f"{self.folder}: embedder {self.embedder.id} gives vectors of {width} numbers,"
                f" those of the index have {self.description.width}; build it again"
            )
        ids, distances = nearest(self._vectors, queries, k)
        return [
            list(zip(row.tolist(), apart.tolist(), strict=True))
            for row, apart in zip(ids, distances, strict=True)
        ]

    def _hits(
        self, ranked: Sequence[tuple[int, float]], measure: Literal["l2", "bm25", "rrf"]
    ) -> list[RetrievedChunk]:
        return [
            RetrievedChunk(
                rank=rank,
                chunk=place,
                score=score,
                measure=measure,
                **msgspec.structs.asdict(self.chunk(place)),
            )
            for rank, (place, score) in enumerate(ranked, 1)
        ]

    async def close(self) -> None:
        """Free the embedder; `use` brings it back."""
        if self.embedder is not None:
            await self.embedder.close()
            self.embedder = None
