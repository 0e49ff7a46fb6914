"""MoverScore: what it costs to turn the words of one text into those of the other, in the space of
their contexts; 1-grams.

Words weigh by how rare they are among the references of the run, on both sides: so a model's value
depends on no other model's answers. The original weighs each side by its own texts.

Source: Zhao et al. (2019), doi:10.18653/v1/D19-1053; checked against `moverscore_v2` of moverscore
1.0.3.
"""

import math
import string
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.scale import Scale
from medassay.score.contextual import EncodedText, Encoder
from medassay.score.measure import Pair, Values, find_model, model_name, need

if TYPE_CHECKING:
    import torch

REFERENCE = "distilbert-base-uncased"
_MARKS = frozenset(string.punctuation)
_TINY = 1e-30
Floats = NDArray[np.float64]


class Rarity:
    """How rare each token is among some texts: log((n + 1) / (texts with it + 1))."""

    def __init__(self, texts: Iterable[Sequence[int]]) -> None:
        counts: Counter[int] = Counter()
        self.n = 0
        for ids in texts:
            counts.update(set(ids))
            self.n += 1
        self.counts = counts

    def weight(self, token: int) -> float:
        """Return the weight of a token; one that no text has weighs most."""
        return math.log((self.n + 1) / (self.counts[token] + 1))


class MoverScore:
    """MoverScore of one model, above 0 up to 1: 1 / (1 + cost)."""

    columns: Mapping[str, Scale] = {"moverscore": Scale()}

    def __init__(self, place: str) -> None:
        need("torch", "transformers", "ot", metric="moverscore")
        folder = find_model(place, REFERENCE, "moverscore")
        self.id = f"moverscore:{model_name(folder, place)}/idf of references, 1-gram"
        self._encoder = Encoder(folder)
        self._rarity = Rarity([])
        self.context = ""

    def prepare(self, references: Iterable[str]) -> None:
        """Take the references by which words weigh."""
        texts = sorted(set(references))
        self.context = sha256_hex(canonical(texts))[:12]
        self._rarity = Rarity(self._encoder.ids(text) for text in texts)

    def close(self) -> None:
        """Drop the weights."""
        self._encoder.close()

    def score(self, pairs: Sequence[Pair]) -> list[Values]:
        """Return the score of each pair."""
        encoded = self._encoder.encode([text for pair in pairs for text in pair])
        return [
            (mover_score(encoded[prediction], encoded[reference], self._rarity, self._rarity),)
            for prediction, reference in pairs
        ]


def mover_score(
    prediction: EncodedText, reference: EncodedText, of_said: Rarity, of_wanted: Rarity
) -> float | None:
    """Return 1 / (1 + the least cost of moving the weights of one text to the other).

    Pieces within words and marks weigh nothing. None where a text has no token that weighs
    anything.
    """
    with warnings.catch_warnings():  # its docstrings hold escapes that Python warns of, once
        warnings.simplefilter("ignore")
        import ot

    places, weights = [], []
    for encoding, rarity in ((reference, of_wanted), (prediction, of_said)):
        token_weights = np.array(
            [_weight(t, i, rarity) for t, i in zip(encoding.tokens, encoding.ids, strict=True)]
        )
        if not token_weights.sum() > 0:
            return None
        is_kept = token_weights > 0
        weights.append(token_weights[is_kept] / token_weights.sum())
        places.append(_unit(encoding.states)[is_kept])
    apart = _distances(places[0], places[1])
    return float(1.0 / (1.0 + ot.emd2(weights[0], weights[1], apart)))


def _weight(token: str, number: int, rarity: Rarity) -> float:
    return 0.0 if "##" in token or token in _MARKS else rarity.weight(number)


def _unit(states: "torch.Tensor") -> Floats:
    plain: Floats = states.double().numpy()
    lengths: Floats = np.linalg.norm(plain, axis=-1, keepdims=True)
    return plain / (lengths + _TINY)


def _distances(first: Floats, second: Floats) -> Floats:
    squared: Floats = (first**2).sum(1)[:, None] + (second**2).sum(1)[None] - 2 * first @ second.T
    apart: Floats = np.sqrt(np.maximum(squared, _TINY))
    return apart
