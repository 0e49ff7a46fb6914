"""Texts → vectors: a sentence-transformers folder, an endpoint, or words hashed for tests."""

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from medassay.errors import InputError, MedassayError
from medassay.model.books import Books
from medassay.model.spec import ModelsSource, load_models, source_name

EMBEDDED, FAKE, ENDPOINT = "embedded:minilm", "fake", "endpoint:"
Vectors = NDArray[np.float32]
_WIDTH = 256  # of the fake's vectors
_WORD = re.compile(r"\w+")


class PassageEmbedder(Protocol):
    """Makes vectors; `id` names the model with what its vectors depend on."""

    id: str

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 vectors of length 1, shape (n_texts, width)."""

    async def close(self) -> None:
        """Free connections and memory."""


def find_embedder(
    place: str,
    models_file: ModelsSource | None,
    secrets: Mapping[str, str],
    books: Books | None = None,
) -> PassageEmbedder:
    """Return an embedder.

    Parameters
    ----------
    place : "embedded:minilm", "fake", a sentence-transformers folder, or "endpoint:" and an entry
        of the models file
    books : where requests to an endpoint are booked, None to book none

    Raises
    ------
    InputError
        When it is not here, or its extra is not installed.
    """
    if place == FAKE:
        return FakeEmbedder()
    if not place.startswith(ENDPOINT):
        return FolderEmbedder(place)
    name = place.removeprefix(ENDPOINT)
    specs = load_models(models_file) if models_file is not None else {}
    spec = specs.get(name)
    if spec is None or spec.provider != "openai_compatible":
        endpoints = ", ".join(n for n, s in specs.items() if s.provider == "openai_compatible")
        where = "a models file" if models_file is None else source_name(models_file)
        raise InputError(
            f"embedder '{place}': '{name}' is no entry of provider openai_compatible in {where};"
            f" known are {endpoints or 'none'}"
        )
    names = [spec.api_key_env, *spec.headers_env.values()]
    from medassay.model.embeddings import EndpointEmbedder  # aiohttp is slow to import

    endpoint = EndpointEmbedder(spec, {n: secrets[n] for n in names if n in secrets})
    endpoint.books = books
    return endpoint


class FolderEmbedder:
    """A sentence-transformers folder, loaded at once since its id is that of its weights."""

    def __init__(self, place: str) -> None:
        from medassay.model.embedder import Embedder as Loaded

        try:
            self._model: Any = Loaded(place)
        except MedassayError as error:
            raise InputError(
                f"{error} (or name an endpoint: {ENDPOINT}<entry of models.json>)"
            ) from None
        self.id: str = self._model.id

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the model's vectors; see `PassageEmbedder.embed`."""
        vectors = await asyncio.to_thread(self._model.encode, list(texts))
        return np.asarray(vectors, dtype=np.float32)

    async def close(self) -> None:
        """Drop the weights."""
        self._model = None


class FakeEmbedder:
    """Counts words by their hash: the same everywhere, and texts that share words are near.

    For tests and trials without a model.
    """

    id = f"fake-words-{_WIDTH}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return hashed counts of words; see `PassageEmbedder.embed`."""
        vectors = np.zeros((len(texts), _WIDTH))
        for row, text in zip(vectors, texts, strict=True):
            for word in _WORD.findall(text.casefold()):
                digest = hashlib.sha256(word.encode()).digest()
                row[digest[0]] += 1 if digest[1] % 2 else -1
        return _unit(vectors)

    async def close(self) -> None:
        """Nothing to free."""


def _unit(vectors: NDArray[np.float64]) -> Vectors:
    """Return rows of length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
