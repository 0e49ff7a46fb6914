"""`medassay index …`: the texts that retrieval searches."""

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec
import typer

from medassay.cli.options import group
from medassay.cli.output import out
from medassay.core.wording import some_of
from medassay.errors import IncompleteError, InputError, Interrupted, OverBudget, UsageError

if TYPE_CHECKING:
    from medassay.context.retrieval.build import Parameters, Progress
    from medassay.context.retrieval.corpus import Readers
    from medassay.model.books import Books
    from medassay.runner.progress import Stop

_EVERY = 5.0  # seconds between messages

app = group("Indexes of texts, for the setting rag, the toplines and the tool doc_retrieval.")
MODELS = typer.Option(Path("models.json"), help="The models file, for embedders at endpoints.")


_CORPUS = typer.Argument(
    ...,
    help=(
        "A folder of .txt, .md, .html and .pdf files, as `bank synthesize` reads them, or a"
        " JSONL file with id and text."
    ),
)
_TO = typer.Option(..., "--out", help="Folder of the index.")
_EMBEDDER = typer.Option(
    "embedded:minilm",
    help=(
        "embedded:minilm, a sentence-transformers folder, or endpoint:<entry of the models"
        " file>. The published protocol's is mxbai-embed-large."
    ),
)
_METHOD = typer.Option("dense", help="dense, bm25, or hybrid (both, by reciprocal rank fusion).")
_CHUNKS = typer.Option(
    "500,150",
    help=(
        "Characters of a chunk, and those at most that it repeats of the one before. Cut as"
        " langchain's splitter does, which the published protocol uses; with ',whole' chunks"
        " run on across paragraphs."
    ),
)
_WORKSPACE = typer.Option(
    ".", help="The workspace in which requests to an endpoint's embedder are booked."
)


@app.command()
def build(
    corpus: Path = _CORPUS,
    to: Path = _TO,
    embedder: str = _EMBEDDER,
    method: str = _METHOD,
    chunks: str = _CHUNKS,
    models: Path = MODELS,
    workspace: str = _WORKSPACE,
) -> None:
    """Build an index; built anew only when corpus or parameters change, and resumed when cut
    off.
    """
    from medassay.context.retrieval.build import build_index
    from medassay.context.retrieval.corpus import left_out
    from medassay.context.retrieval.embed import find_embedder
    from medassay.context.retrieval.index import Index
    from medassay.runner.event_loop import run_async
    from medassay.runner.progress import Stop

    parameters = _parameters(embedder, method, chunks)
    stop = Stop()
    with (
        TemporaryDirectory() as pictures,
        _books(embedder, models, workspace, to) as books,
    ):
        blank: list[str] = []
        readers = _readers(corpus, Path(pictures), blank)
        existing = None
        if method != "bm25":
            existing = find_embedder(embedder, models, os.environ, books)

        async def work() -> bool:
            try:
                return await build_index(corpus, to, parameters, existing, _telling(stop), readers)
            except OverBudget as over:
                raise IncompleteError(
                    f"{over}; what is embedded is kept, the same command resumes with a larger one"
                ) from None
            finally:
                if existing is not None:
                    await existing.close()

        built = run_async(work, stop.ask)
    description = Index(to).description
    skipped = left_out(corpus, readers) if corpus.is_dir() else []
    if skipped:
        out.say(f"left out, since they are no documents: {some_of(skipped)}")
    if blank:
        out.say(
            f"without text, as scans are: {some_of(blank)}; their texts come from `bank"
            " synthesize`, in texts/ of its workshop"
        )
    summary = {"built": built, "left_out": skipped, "without_text": blank}
    what = "built" if built else "unchanged: corpus and parameters are those it was built with"
    out.tell(
        {**msgspec.to_builtins(description), "path": str(to), **summary},
        f"index {to}  {what}",
        f"{description.documents} documents, {description.chunks} chunks, {method}"
        + (f", {description.embedder}" if description.embedder else ""),
    )


def _readers(corpus: Path, pictures: Path, blank: list[str]) -> "Readers":
    """Return what reads documents that are no plain text, as making items does.

    Names of those without text go into `blank`.

    They are read here, once: building reads a corpus twice, and inside an event loop, in which HTML
    cannot be read.
    """
    from medassay.synthesis.source import ENDINGS, read_source

    endings = [ending for ending in ENDINGS if ending not in (".md", ".txt")]
    paths = sorted(p for p in corpus.rglob("*") if p.suffix.lower() in endings and p.is_file())
    texts: dict[Path, str] = {}
    last_told = time.monotonic()
    for number, path in enumerate(paths):
        if time.monotonic() - last_told >= _EVERY:
            last_told = time.monotonic()
            out.say(f"{number} of {len(paths)} documents read")
        texts[path] = read_source(path, pictures).text
        if not texts[path]:
            blank.append(path.name)
    return dict.fromkeys(endings, texts.__getitem__)


@contextmanager
def _books(embedder: str, models: Path, workspace: str, to: Path) -> "Iterator[Books | None]":
    """Yield where requests to an endpoint's embedder are booked; one that is here costs nothing."""
    from medassay.context.retrieval.embed import ENDPOINT
    from medassay.model.spec import load_models
    from medassay.runner.spending import spending
    from medassay.storage.object_store import using_stores
    from medassay.storage.response import ResponseStore

    name = embedder.removeprefix(ENDPOINT)
    specs = load_models(models) if embedder.startswith(ENDPOINT) else {}
    if name not in specs:  # whoever looks for the embedder says so
        yield None
        return
    with (
        using_stores(workspace) as folder,
        ResponseStore(folder / "responses") as store,
        spending(folder, f"indexes/{to.resolve().name}", {name: specs[name]}, store) as budget,
    ):
        yield budget


def _telling(stop: "Stop") -> "Progress":
    """Return what says every few seconds how far an index is, and ends the building when asked
    to.
    """
    last_told = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last_told
        if stop.soon and done < total:
            raise Interrupted(
                f"stopped: {done} of {total} chunks are embedded and kept; the same command resumes"
            )
        if time.monotonic() - last_told >= _EVERY:
            last_told = time.monotonic()
            out.say(f"{done} of {total} chunks embedded")

    return tell


def _parameters(embedder: str, method: str, chunks: str) -> "Parameters":
    from medassay.context.retrieval.build import Parameters
    from medassay.context.retrieval.index import METHODS

    if method not in METHODS:
        raise UsageError(f"--method: '{method}'; expected {', '.join(METHODS)}")
    match = re.fullmatch(r"([0-9]{1,6}),([0-9]{1,6})(,whole)?", chunks.replace(" ", ""))
    if match is None or not int(match[2]) < int(match[1]):
        raise UsageError(
            f"--chunks: '{chunks}'; expected size,overlap with the overlap smaller, as 500,150"
        )
    return Parameters(
        method=next(known_method for known_method in METHODS if known_method == method),
        # A folder is found from wherever the index is searched.
        embedder=str(Path(embedder).resolve()) if Path(embedder).is_dir() else embedder,
        size=int(match[1]),
        overlap=int(match[2]),
        merging="whole" if match[3] else "levels",
    )


@app.command()
def query(
    folder: Path = typer.Argument(..., help="Folder of the index."),
    text: str = typer.Argument(..., help="What to look for."),
    k: int = typer.Option(3, "-k", min=1, help="Chunks wanted."),
    models: Path = MODELS,
) -> None:
    """Search an index, and show the chunks in the order in which a model would get them."""
    from medassay.context.retrieval.index import Index, RetrievedChunk
    from medassay.core.json import storable
    from medassay.runner.event_loop import run_async

    if not text.strip() or storable(text) != text:
        raise InputError("the text to look for is blank, or not UTF-8; expected words")
    index = Index(folder)
    index.use(models, os.environ)

    async def work() -> list[RetrievedChunk]:
        try:
            return (await index.search([text], k))[0]
        finally:
            await index.close()

    chunks_found = run_async(work)
    lines = [
        line
        for chunk in chunks_found
        for line in (
            f"{chunk.rank}. {chunk.document} at {chunk.start}  ({chunk.measure} {chunk.score:.4f})",
            f"   {' '.join(chunk.text.split())}",
        )
    ]
    document = {"index": index.id, "chunks": [chunk.to_dict() for chunk in chunks_found]}
    out.tell(document, *(lines or ["nothing found"]))
