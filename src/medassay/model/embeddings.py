"""Vectors of texts from an endpoint of the OpenAI protocol (`/v1/embeddings`): an entry of
models.json like any other.
"""

import asyncio
import json
import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.records.completion import Usage
from medassay.core.records.model import ModelSpec
from medassay.core.secret import secrets as known_secrets
from medassay.errors import Permanent, Transient
from medassay.model.books import Books, settle_failed
from medassay.model.openai_compatible import OpenAICompatible
from medassay.model.openai_reply import UNREADABLE, ReplyUsage, part_of, token_count
from medassay.model.retry import retries

_BATCH = 64  # texts of a request
_MOST_SENDS = 6
_FARTHEST = 1e9  # length of a vector


class _Vector(msgspec.Struct):
    index: Any
    embedding: list[Any]


class _VectorList(msgspec.Struct):
    data: list[_Vector]


class _Counted(msgspec.Struct):
    usage: Any = None


class EndpointEmbedder(OpenAICompatible):
    """Asks an endpoint for vectors.

    Its `id` is the model's name and version, wherever it is served.

    `books` is where requests are booked, None where nobody keeps any.
    """

    def __init__(self, spec: ModelSpec, secrets: dict[str, str]) -> None:
        super().__init__(spec, secrets, path="/embeddings")
        self.id = f"{spec.sent_name}@{spec.version or 'unversioned'}"
        self._at_once = asyncio.Semaphore(spec.concurrency)
        self.books: Books | None = None

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector of length 1 for each text, shape (n_texts, width).

        Raises
        ------
        Transient, Permanent
            When the endpoint gives none, or something else.
        """
        self.check_key()
        batches = [texts[at : at + _BATCH] for at in range(0, len(texts), _BATCH)]
        vectors = await asyncio.gather(*(self._batch(batch) for batch in batches))
        if len(widths := sorted({len(batch[0]) for batch in vectors})) > 1:
            raise Permanent(f"{self._spec.id}: vectors of {widths} numbers; expected one width")
        rows = np.array([vector for batch in vectors for vector in batch], dtype=np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / lengths, dtype=np.float32)

    async def _batch(self, texts: Sequence[str]) -> list[list[float]]:
        body = canonical(
            {"input": list(texts), "model": self._spec.sent_name, **self._spec.extra_body}
        )
        sends = 0
        async for attempt in retries(Transient, attempts=_MOST_SENDS):
            with attempt:
                async with self._at_once:
                    sends += 1
                    data = await self._send(body, retry=sends - 1)
                return self._vectors(data, len(texts))
        raise AssertionError  # pragma: no cover -- retry_context returns or raises

    async def _send(self, body: bytes, *, retry: int) -> bytes:
        """Return the reply to a request, which is booked before it is sent."""
        if self.books is None:
            return (await self._post(body))[0]
        # No tokenizer in use makes more tokens of a text than it has bytes.
        most = Usage(prompt=len(body))
        booking = await self.books.reserve(self._spec, most, sha256_hex(body), retry)
        try:
            data, _ = await self._post(body)
        except BaseException as error:
            settle_failed(self.books, booking, error)
            raise
        read = _tokens(data)
        if read:
            self.books.settle(booking, Usage(prompt=read))
        else:
            self.books.keep(booking)
        return data

    def _vectors(self, data: bytes, n: int) -> list[list[float]]:
        try:
            vectors = msgspec.convert(json.loads(data), _VectorList).data
            rows = sorted(vectors, key=lambda row: int(row.index))
            numbered = [row.index for row in rows] == list(range(n))
            numbers = [[_number(value) for value in row.embedding] for row in rows]
        except UNREADABLE:
            excerpt = known_secrets.quote(data[:4000].decode("utf-8", "replace"), 80)
            raise Permanent(f"{self._spec.id}: not a reply with embeddings: {excerpt!r}") from None
        sizes = {len(vector) for vector in numbers}
        if not numbered or len(sizes) != 1 or 0 in sizes:
            raise Permanent(
                f"{self._spec.id}: {len(numbers)} vectors of {sorted(sizes)} numbers for {n} texts;"
                " expected one for each, numbered from 0"
            )
        if not all(1 / _FARTHEST < math.hypot(*vector) < _FARTHEST for vector in numbers):
            raise Permanent(f"{self._spec.id}: a vector of zeros, or with numbers beyond reason")
        return numbers


def _tokens(data: bytes) -> int:
    """Return how many tokens a reply says were read, 0 where it does not say."""
    try:
        usage = part_of(msgspec.convert(json.loads(data), _Counted).usage, ReplyUsage)
        return token_count(usage.prompt_tokens or usage.total_tokens)
    except UNREADABLE:
        return 0


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r:.40} is no number")
    return float(value)
