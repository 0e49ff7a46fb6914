"""An index on disk: documents, their chunks, vectors and word counts, under the hash of corpus and parameters.

A folder holds `index.json`, `documents.jsonl`, `chunks.jsonl`, and as the method wants `vectors.f32` and `bm25/`. It is made beside
its place and moved there whole; what a build that was cut off has embedded is kept, and built upon by the next.
"""

import fcntl
import os
import shutil
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Literal, get_args

import numpy as np

from medassay.core.canonical import canonical, short_hash
from medassay.core.jsontext import parse_json
from medassay.errors import InputError, IntegrityError, UnavailableError
from medassay.solver.retrieve.chunk import OVERLAP, SIZE, Merging, split
from medassay.solver.retrieve.corpus import Document, corpus_hash, read_corpus, same_name
from medassay.solver.retrieve.embed import Embedder, find_embedder
from medassay.solver.retrieve.search import VectorFile, fused, nearest
from medassay.storage.run import refuse_inside

Method = Literal["dense", "bm25", "hybrid"]
METHODS: tuple[Method, ...] = get_args(Method)
_BATCH = 256  # chunks embedded at once
_DEPTH = 50  # of the rankings that a hybrid search joins
_FORMAT = 1
_COUNTED = ("documents", "chunks", "characters")
Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """How a corpus is cut and searched; `embedder` is its place, as `find_embedder` takes it."""

    method: Method = "dense"
    embedder: str = "embedded:minilm"
    size: int = SIZE
    overlap: int = OVERLAP
    merging: Merging = "levels"


@dataclass(frozen=True, kw_only=True)
class Found:
    """A chunk that a search found; `score` is a distance where `measure` is "l2", else the higher the nearer."""

    rank: int
    chunk: int
    document: str
    start: int
    score: float
    measure: Literal["l2", "bm25", "rrf"]
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


async def build_index(
    corpus: Path,
    out: Path,
    parameters: Parameters,
    embedder: Embedder | None,
    progress: Progress = lambda done, total: None,
) -> bool:
    """Build an index of a corpus; return whether there was anything to do.

    Parameters
    ----------
    embedder : None for the method "bm25", which needs none
    progress : called with chunks embedded and all chunks

    Raises
    ------
    InputError
        When the corpus is not one, or `out` holds something else than an index.
    UnavailableError
        When the extra [rag] is not installed, for methods that count words.
    """
    identity = {
        "format": _FORMAT,
        "corpus_sha256": corpus_hash(corpus),
        "size": parameters.size,
        "overlap": parameters.overlap,
        "merging": parameters.merging,
        "method": parameters.method,
        "embedder": None if embedder is None else embedder.id,
    }
    out = out.resolve()  # what a link leads to, and "." by its name
    refuse_inside(out)
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not is_index(out))):
        raise InputError(f"{out}: exists and is no index; nothing is overwritten")
    if is_index(out) and _built_as(out) == short_hash(identity):
        return False
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name}.building")
    ours = {part: "lock", _replaced(out): "index.json"}  # what a build that was cut off leaves
    for folder, name in ours.items():
        if folder.exists() and any(folder.iterdir()) and not (folder / name).is_file():
            raise InputError(
                f"{folder}: is in the way, and nothing that this command left; move it"
            )
    part.mkdir(exist_ok=True)
    with (part / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{out}: another process is building it; wait for it") from None
        counts = _begin(corpus, part, identity, parameters)
        width = 0
        if embedder is not None:
            width = await _embed(part, counts["chunks"], embedder, progress)
        if parameters.method != "dense":
            try:
                _count_words(part)
            except InputError:
                shutil.rmtree(part)
                raise
        described = {
            "schema_version": 1,
            "id": short_hash(identity),
            **identity,
            "embedder_place": parameters.embedder if embedder is not None else "",
            "width": width,
            **counts,
        }
        _write(part / "index.json", canonical(described))
        _install(part, out)
    return True


def _replaced(out: Path) -> Path:
    """Return where an index lies while its successor takes its place."""
    return out.with_name(f".{out.name}.replaced")


def _install(part: Path, out: Path) -> None:
    """Put a finished index in its place; what was there goes only then."""
    old = _replaced(out)
    shutil.rmtree(old, ignore_errors=True)  # of a move that was cut off
    if out.exists():
        out.rename(old)
    part.rename(out)
    shutil.rmtree(old, ignore_errors=True)
    for name in ("identity.json", "lock"):
        (out / name).unlink()


def _built_as(folder: Path) -> str:
    """Return the id of an index; empty for a damaged one, which is built anew."""
    try:
        return str(_described(folder)["id"])
    except (InputError, IntegrityError):
        return ""


def is_index(folder: Path) -> bool:
    """Return whether a folder holds an index."""
    return (folder / "index.json").is_file()


_FIELDS: Mapping[str, type] = {
    **dict.fromkeys(("id", "corpus_sha256", "merging", "method", "embedder_place"), str),
    **dict.fromkeys(("chunks", "documents", "format", "overlap", "size", "width"), int),
}


def _described(folder: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = parse_json(
            (folder / "index.json").read_bytes(), f"{folder}/index.json"
        )
    except OSError:
        raise InputError(
            f"{folder}: no index; `medassay index build CORPUS --out {folder}` makes one"
        ) from None
    fine = isinstance(found, dict) and all(
        type(found.get(name)) is kind for name, kind in _FIELDS.items()
    )
    if not fine or "embedder" not in found:
        raise IntegrityError(f"{folder}/index.json: damaged; build the index again")
    return found


def _begin(
    corpus: Path, part: Path, identity: Mapping[str, Any], parameters: Parameters
) -> dict[str, int]:
    """Write documents and chunks, unless an earlier build of the same has; return how many there are."""
    mark = part / "identity.json"
    try:
        known = parse_json(mark.read_bytes(), mark.name)
        if known["identity"] == dict(identity):
            return {name: int(known["counts"][name]) for name in _COUNTED}
    except (OSError, InputError, LookupError, TypeError, ValueError):
        pass  # nothing to build upon
    for path in part.iterdir():
        if path.name != "lock":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    counts = dict.fromkeys(_COUNTED, 0)
    with (
        (part / "documents.jsonl").open("wb") as documents,
        (part / "chunks.jsonl").open("wb") as chunks,
    ):
        for document in read_corpus(corpus):
            line = {"name": document.name, "text": document.text}
            documents.write(canonical(line) + b"\n")
            counts["documents"] += 1
            counts["characters"] += len(document.text)
            for one in split(
                document.text,
                size=parameters.size,
                overlap=parameters.overlap,
                merging=parameters.merging,
            ):
                plain = {"document": document.name, "start": one.start, "text": one.text}
                chunks.write(canonical(plain) + b"\n")
                counts["chunks"] += 1
    _write(mark, canonical({"identity": dict(identity), "counts": counts}))
    return counts


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data + b"\n")
        file.flush()
        os.fsync(file.fileno())


async def _embed(part: Path, n: int, embedder: Embedder, progress: Progress) -> int:
    """Append the vectors that are missing; return their width."""
    path, width = part / "vectors.f32", 0
    with path.open("ab") as file:
        [first] = await embedder.embed(["width"])
        width = len(first)
        done = file.tell() // (4 * width)
        file.truncate(done * 4 * width)  # a torn vector is made again
        progress(done, n)
        batch: list[str] = []
        for number, (_, _, text) in enumerate(_chunks(part / "chunks.jsonl")):
            if number < done:
                continue
            batch.append(text)
            if len(batch) == _BATCH or number == n - 1:
                await _append(file, embedder, batch, width)
                progress(number + 1, n)
                batch = []
        os.fsync(file.fileno())
    return width


async def _append(file: IO[bytes], embedder: Embedder, texts: list[str], width: int) -> None:
    made = np.asarray(await embedder.embed(texts), dtype="<f4")
    if made.shape != (len(texts), width) or not np.isfinite(made).all():
        raise InputError(
            f"embedder {embedder.id}: {made.shape} numbers for {len(texts)} texts; expected "
            f"{width} finite ones each"
        )
    file.write(made.tobytes())
    file.flush()


def _chunks(path: Path) -> Iterator[tuple[str, int, str]]:
    with path.open("rb") as lines:
        for line in lines:
            found = parse_json(line, path.name)
            yield found["document"], found["start"], found["text"]


def _bm25() -> Any:
    try:
        import bm25s
        import Stemmer
    except ImportError:
        raise UnavailableError(
            "searching by words needs the extra: pip install 'medassay[rag]'"
        ) from None
    return bm25s, Stemmer.Stemmer("english")


def _words(texts: Sequence[str]) -> list[list[str]]:
    bm25s, stemmer = _bm25()
    found: list[list[str]] = bm25s.tokenize(
        list(texts), stopwords="en", stemmer=stemmer, show_progress=False, return_ids=False
    )
    return found


def _count_words(part: Path) -> None:
    bm25s, _ = _bm25()
    counted = bm25s.BM25(method="lucene")
    words = _words([text for _, _, text in _chunks(part / "chunks.jsonl")])
    if not any(words):
        raise InputError("the corpus holds no words to search by; take the method dense")
    counted.index(words, show_progress=False)
    shutil.rmtree(part / "bm25", ignore_errors=True)
    counted.save(str(part / "bm25"), show_progress=False)


class _Lines:
    """Records of a JSONL file, each read when it is asked for."""

    def __init__(self, path: Path, n: int, keys: set[str]) -> None:
        self._keys = keys
        starts = array("Q", [0])
        try:
            with path.open("rb") as lines:
                for line in lines:
                    starts.append(starts[-1] + len(line))
        except FileNotFoundError:
            starts = array("Q")
        if len(starts) != n + 1:
            raise IntegrityError(
                f"{path.name}: {max(0, len(starts) - 1)} lines, index.json says {n}; build the index again"
            )
        self._starts = starts
        self._name = path.name
        self._file = os.open(path, os.O_RDONLY)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def __getitem__(self, number: int) -> dict[str, Any]:
        start = self._starts[number]
        line = os.pread(self._file, self._starts[number + 1] - start, start)
        found: Any = parse_json(line, f"{self._name} line {number + 1}")
        if not isinstance(found, dict) or set(found) != self._keys:
            raise IntegrityError(
                f"{self._name} line {number + 1}: damaged; build the index again"
            )
        return found


class Index:
    """An index that is there, opened for reading."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.described = _described(folder)
        self.id: str = self.described["id"]
        self.n: int = self.described["chunks"]
        self.method: Method = self.described["method"]
        if self.described["format"] != _FORMAT or self.method not in METHODS:
            raise InputError(f"{folder}: an index of another version; build it again")
        self.embedder: Embedder | None = None
        keys = {"document", "start", "text"}
        self._chunks = _Lines(folder / "chunks.jsonl", self.n, keys)
        n = self.described["documents"]
        self._documents = _Lines(folder / "documents.jsonl", n, {"name", "text"})
        self._names: dict[str, int] | None = None
        self._vectors: VectorFile | None = None
        self._counted: Any = None

    def use(self, models_file: Path | None, secrets: Mapping[str, str]) -> None:
        """Bring the embedder that it was built with, if it needs one to be searched.

        Raises
        ------
        InputError
            When that is not here, or is another by now.
        """
        place = self.described.get("embedder_place", "")
        if not place or self.embedder is not None:
            return
        found = find_embedder(place, models_file, secrets)
        if found.id != self.described["embedder"]:
            raise InputError(
                f"{self.folder}: was built with embedder {self.described['embedder']}, and '{place}' is now "
                f"{found.id}; build the index again, or bring that model back"
            )
        self.embedder = found

    def document(self, name: str) -> Document | None:
        """Return the document of a name, whatever its case and marks; None if there is none."""
        if self._names is None:
            whole = [self._documents[n]["name"] for n in range(self.described["documents"])]
            # A file in a subfolder answers to its own name, unless another is named so; as written goes first.
            last = {same_name(name.rpartition("/")[2]): n for n, name in enumerate(whole)}
            alike = {same_name(name): n for n, name in enumerate(whole)}
            self._names = last | alike | {name: n for n, name in enumerate(whole)}
        number = self._names.get(name, self._names.get(same_name(name)))
        return None if number is None else Document(**self._documents[number])

    def chunk(self, number: int) -> dict[str, Any]:
        """Return document, start and text of a chunk."""
        return self._chunks[number]

    async def search(self, texts: Sequence[str], k: int) -> list[list[Found]]:
        """Return the k best chunks for each text, the best first, the lower number first among equals.

        Methods of words give fewer where fewer chunks share a word with the text.
        """
        if not self.n or not texts:
            return [[] for _ in texts]
        if self.method == "dense":
            ranked = await self._nearest(texts, k)
            return [self._found(row, "l2") for row in ranked]
        words = self._by_words(texts, k if self.method == "bm25" else max(k, _DEPTH))
        if self.method == "bm25":
            return [self._found(row, "bm25") for row in words]
        dense = await self._nearest(texts, max(k, _DEPTH))
        both = (
            fused([[one for one, _ in a], [one for one, _ in b]], k)
            for a, b in zip(dense, words, strict=True)
        )
        return [self._found(row, "rrf") for row in both]

    async def _nearest(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        if self.embedder is None:
            raise InputError(f"{self.folder}: searching it needs its embedder")
        if self._vectors is None:
            self._vectors = VectorFile(
                self.folder / "vectors.f32", self.described["width"], self.n
            )
        queries = np.asarray(await self.embedder.embed(texts), dtype=np.float32)
        ids, distances = nearest(self._vectors, queries, k)
        return [
            list(zip(row.tolist(), apart.tolist(), strict=True))
            for row, apart in zip(ids, distances, strict=True)
        ]

    def _by_words(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        bm25s, _ = _bm25()
        if self._counted is None:
            self._counted = self._loaded(bm25s)
        found: list[list[tuple[int, float]]] = []
        for words in _words(texts):
            known = [word for word in words if word in self._counted.vocab_dict]
            if not known:
                found.append([])
                continue
            scores = np.asarray(self._counted.get_scores(known))
            shared = np.flatnonzero(scores > 0)
            order = shared[np.argsort(-scores[shared], kind="stable")][:k]
            found.append([(int(one), float(scores[one])) for one in order])
        return found

    def _loaded(self, bm25s: Any) -> Any:
        try:
            found = bm25s.BM25.load(str(self.folder / "bm25"), mmap=True)
            if int(found.scores["num_docs"]) != self.n:
                raise ValueError("of another index")
        except (OSError, LookupError, TypeError, ValueError, EOFError) as error:
            raise IntegrityError(
                f"{self.folder}/bm25: damaged ({' '.join(str(error).split())[:80]}); build the index again"
            ) from None
        return found

    def _found(
        self, ranked: Sequence[tuple[int, float]], measure: Literal["l2", "bm25", "rrf"]
    ) -> list[Found]:
        return [
            Found(rank=rank, chunk=one, score=score, measure=measure, **self.chunk(one))
            for rank, (one, score) in enumerate(ranked, 1)
        ]

    async def close(self) -> None:
        """Free the embedder; `use` brings it back."""
        if self.embedder is not None:
            await self.embedder.close()
            self.embedder = None
