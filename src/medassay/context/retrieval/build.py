"""Building an index: beside its place, and moved there whole.

What an interrupted build has embedded is kept, and built upon by the next; nothing else that
lies there is touched.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import msgspec
import numpy as np

from medassay.context.retrieval.chunk import OVERLAP, SIZE, Merging, split
from medassay.context.retrieval.corpus import Readers, corpus_hash, read_corpus
from medassay.context.retrieval.embed import PassageEmbedder
from medassay.context.retrieval.index import FORMAT, Method, StoredChunk, describe_index, is_index
from medassay.context.retrieval.words import count_words
from medassay.core.canonical import canonical, record_line, short_hash
from medassay.core.files import write_synced
from medassay.core.json import parse_json, record_as
from medassay.errors import IncompleteError, InputError, IntegrityError
from medassay.storage.run import refuse_inside

_BATCH = 256  # chunks embedded at once


class _CorpusCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many documents and chunks an index has, and how many characters."""

    documents: int
    chunks: int
    characters: int


class _BegunBuild(msgspec.Struct, frozen=True, kw_only=True):
    """What a build that was cut off leaves: what it depends on, and what it has cut by then."""

    identity: dict[str, Any]
    counts: _CorpusCounts


Progress = Callable[[int, int], None]


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """How a corpus is cut and searched; `embedder` is its place, as `find_embedder` takes it."""

    method: Method = "dense"
    embedder: str = "embedded:minilm"
    size: int = SIZE
    overlap: int = OVERLAP
    merging: Merging = "levels"


async def build_index(
    corpus: Path,
    out: Path,
    parameters: Parameters,
    embedder: PassageEmbedder | None,
    progress: Progress = lambda done, total: None,
    readers: Readers = MappingProxyType({}),
) -> bool:
    """Build an index of a corpus; return whether there was anything to do.

    Parameters
    ----------
    embedder : None for the method "bm25", which needs none
    progress : called with chunks embedded and all chunks
    readers : ending → what returns the text of a document that is no plain text; it is called twice
        for each

    Raises
    ------
    InputError
        When the corpus is not one, or `out` holds something else than an index.
    UnavailableError
        When the extra [rag] is not installed, for methods that count words.
    """
    identity = _identity(corpus, parameters, embedder, readers)
    out = out.resolve()  # what a link leads to, and "." by its name
    refuse_inside(out)
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not is_index(out))):
        raise InputError(f"{out}: exists and is no index; nothing is overwritten")
    if is_index(out) and _built_as(out) == short_hash(identity):
        return False
    part = _draft(out)
    with (part / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise IncompleteError(f"{out}: another process is building it; wait for it") from None
        counts = _begin(corpus, part, identity, parameters, readers)
        width = 0
        if embedder is not None:
            width = await _embed(part, counts.chunks, embedder, progress)
        if parameters.method != "dense":
            try:
                texts = [chunk.text for chunk in _chunks(part / "chunks.jsonl")]
                count_words(texts, part / "bm25")
            except InputError:
                shutil.rmtree(part)
                raise
        described = {
            "schema_version": 1,
            "id": short_hash(identity),
            **identity,
            "embedder_place": parameters.embedder if embedder is not None else "",
            "width": width,
            **msgspec.structs.asdict(counts),
        }
        write_synced(part / "index.json", canonical(described) + b"\n")
        _install(part, out)
    return True


def _identity(
    corpus: Path, parameters: Parameters, embedder: PassageEmbedder | None, readers: Readers
) -> dict[str, str | int | None]:
    """Return all that an index depends on."""
    return {
        "format": FORMAT,
        "corpus_sha256": corpus_hash(corpus, readers),
        "size": parameters.size,
        "overlap": parameters.overlap,
        "merging": parameters.merging,
        "method": parameters.method,
        "embedder": None if embedder is None else embedder.id,
    }


def _draft(out: Path) -> Path:
    """Return the folder beside `out` in which it is built.

    Refuses what is in the way and not ours.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.building")
    ours = {part: "lock", _replaced(out): "index.json"}  # what an interrupted build leaves
    for folder, name in ours.items():
        if folder.exists() and any(folder.iterdir()) and not (folder / name).is_file():
            raise InputError(
                f"{folder}: is in the way, and nothing that this command left; move it"
            )
    part.mkdir(exist_ok=True)
    return part


def _replaced(out: Path) -> Path:
    """Return where an index lies while its successor takes its place."""
    return out.with_name(f".{out.name}.replaced")


def _install(part: Path, out: Path) -> None:
    """Put a finished index in its place; what was there goes only then."""
    old = _replaced(out)
    shutil.rmtree(old, ignore_errors=True)  # of an interrupted move
    if out.exists():
        out.rename(old)
    part.rename(out)
    shutil.rmtree(old, ignore_errors=True)
    for name in ("identity.json", "lock"):
        (out / name).unlink()


def _built_as(folder: Path) -> str:
    """Return the id of an index; empty for a damaged one, which is built anew."""
    try:
        return describe_index(folder).id
    except (InputError, IntegrityError):
        return ""


def _begin(
    corpus: Path,
    part: Path,
    identity: Mapping[str, str | int | None],
    parameters: Parameters,
    readers: Readers,
) -> _CorpusCounts:
    """Write documents and chunks, unless an earlier build of the same has; return how many there
    are.
    """
    mark = part / "identity.json"
    try:
        begun = msgspec.convert(parse_json(mark.read_bytes(), mark.name), _BegunBuild)
        if begun.identity == dict(identity):
            return begun.counts
    except (OSError, InputError, msgspec.ValidationError):
        pass  # nothing to build upon
    for path in part.iterdir():
        if path.name != "lock":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    n_documents = n_chunks = n_characters = 0
    with (
        (part / "documents.jsonl").open("wb") as documents,
        (part / "chunks.jsonl").open("wb") as chunks,
    ):
        for document in read_corpus(corpus, readers):
            line = {"name": document.name, "text": document.text}
            documents.write(canonical(line) + b"\n")
            n_documents += 1
            n_characters += len(document.text)
            for piece in split(
                document.text,
                size=parameters.size,
                overlap=parameters.overlap,
                merging=parameters.merging,
            ):
                plain = {"document": document.name, "start": piece.start, "text": piece.text}
                chunks.write(canonical(plain) + b"\n")
                n_chunks += 1
    counts = _CorpusCounts(documents=n_documents, chunks=n_chunks, characters=n_characters)
    begun = _BegunBuild(identity=dict(identity), counts=counts)
    write_synced(mark, record_line(begun))
    return counts


async def _embed(part: Path, n: int, embedder: PassageEmbedder, progress: Progress) -> int:
    """Append the vectors that are missing; return their width."""
    path, width = part / "vectors.f32", 0
    with path.open("ab") as file:
        [first] = await embedder.embed(["width"])
        width = len(first)
        done = file.tell() // (4 * width)
        file.truncate(done * 4 * width)  # a torn vector is made again
        progress(done, n)
        batch: list[str] = []
        for number, chunk in enumerate(_chunks(part / "chunks.jsonl")):
            if number < done:
                continue
            batch.append(chunk.text)
            if len(batch) == _BATCH or number == n - 1:
                await _append(file, embedder, batch, width)
                progress(number + 1, n)
                batch = []
        os.fsync(file.fileno())
    return width


async def _append(file: IO[bytes], embedder: PassageEmbedder, texts: list[str], width: int) -> None:
    vectors = np.asarray(await embedder.embed(texts), dtype="<f4")
    if vectors.shape != (len(texts), width) or not np.isfinite(vectors).all():
        raise InputError(
            f"embedder {embedder.id}: {vectors.shape} numbers for {len(texts)} texts; expected "
            f"{width} finite ones each"
        )
    file.write(vectors.tobytes())
    file.flush()


def _chunks(path: Path) -> Iterator[StoredChunk]:
    with path.open("rb") as lines:
        for line in lines:
            yield record_as(parse_json(line, path.name), StoredChunk, path.name)
