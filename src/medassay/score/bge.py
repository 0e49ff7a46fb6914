"""BGE-M3: likeness of two texts by one vector each (dense), by weighted words in common (sparse),
and token by token (colbert).

The headline is sparse+dense, as the published similarity; the others stand beside it. Pairs are
(reference, prediction).

Source: specification of text metrics; Chen et al. (2024), doi:10.18653/v1/2024.findings-acl.137.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from medassay.core.scale import Scale
from medassay.errors import UnavailableError
from medassay.score.contextual import EncodedText, Encoder
from medassay.score.measure import UNBOUNDED, Pair, Values, find_model, model_name, need

if TYPE_CHECKING:
    import torch

REFERENCE = "BAAI/bge-m3"
WEIGHTS = (0.33, 0.33, 0.33)  # dense, sparse, colbert
LONGEST = 2048  # tokens of a text
_Head = dict[str, "torch.Tensor"]  # weight and bias of a linear layer
Token = TypeVar("Token")
_HEADS = ("sparse_linear.pt", "colbert_linear.pt")


class _Vectors(msgspec.Struct, frozen=True):
    """One text: its vector, token → weight, and a vector a token (but the first)."""

    dense: "torch.Tensor"
    sparse: Mapping[int, float]
    colbert: "torch.Tensor"


class BgeM3:
    """The three likenesses of BGE-M3 and two means of them."""

    columns: Mapping[str, Scale] = dict.fromkeys(
        ("bge_m3", "bge_m3_dense", "bge_m3_sparse", "bge_m3_colbert", "bge_m3_all"), UNBOUNDED
    )
    context = ""

    def __init__(self, place: str) -> None:
        need("torch", "transformers", metric="bge_m3")
        folder = find_model(place, REFERENCE, "bge_m3")
        absent = [name for name in _HEADS if not (folder / name).is_file()]
        if absent:
            raise UnavailableError(
                f"bge_m3: {place or REFERENCE}: lacks {', '.join(absent)}; it needs BGE-M3's heads"
            )
        self.id = f"bge_m3:{model_name(folder, place)}/fp32, {LONGEST} tokens, weights .33 .33 .33"
        self._folder = folder
        self._encoder = Encoder(folder, longest=LONGEST)
        self._heads: tuple[_Head, _Head] | None = None

    def prepare(self, references: Iterable[str]) -> None:
        """Take nothing: values depend on the pair alone."""

    def close(self) -> None:
        """Drop the weights."""
        self._encoder.close()
        self._heads = None

    def score(self, pairs: Sequence[Pair]) -> list[Values]:
        """Return sparse+dense, dense, sparse, colbert and all three of each pair."""
        encoded = self._encoder.encode([text for pair in pairs for text in pair])
        read = {text: self._encode(encoding) for text, encoding in encoded.items()}
        values: list[Values] = []
        for prediction, reference in pairs:
            first, second = read[reference], read[prediction]
            dense = float(first.dense @ second.dense)
            sparse = sparse_likeness(first.sparse, second.sparse)
            near = first.colbert @ second.colbert.T
            colbert = float(near.max(dim=1).values.mean()) if near.numel() else None
            combination, everything = combined(dense, sparse, colbert)
            values.append((combination, dense, sparse, colbert, everything))
        return values

    def _encode(self, encoding: EncodedText) -> _Vectors:
        import torch

        sparse_head, colbert_head = self._load_heads()
        special = self._encoder.special
        with torch.inference_mode():
            dense = torch.nn.functional.normalize(encoding.states[0], dim=-1)
            weights = torch.relu(
                encoding.states @ sparse_head["weight"].T + sparse_head["bias"]
            ).squeeze(-1)
            vectors = encoding.states[1:] @ colbert_head["weight"].T + colbert_head["bias"]
            colbert = torch.nn.functional.normalize(vectors, dim=-1)
        sparse: dict[int, float] = {}
        for token, weight in zip(encoding.ids, weights.tolist(), strict=True):
            if token not in special and weight > sparse.get(token, 0.0):
                sparse[token] = weight
        return _Vectors(dense, sparse, colbert)

    def _load_heads(self) -> tuple[_Head, _Head]:
        if self._heads is None:
            sparse, colbert = (_head(self._folder / name) for name in _HEADS)
            self._heads = (sparse, colbert)
        return self._heads


def _head(path: Path) -> _Head:
    import torch

    weights = torch.load(path, map_location="cpu", weights_only=True)
    return {name: tensor.float() for name, tensor in weights.items()}


def sparse_likeness(first: Mapping[Token, float], second: Mapping[Token, float]) -> float:
    """Return the sum of products of the weights of common tokens.

    Examples
    --------
    >>> round(sparse_likeness({"opioid": 0.3, "the": 0.02}, {"opioid": 0.28, "a": 1.0}), 3)
    0.084
    """
    return sum(weight * second[token] for token, weight in first.items() if token in second)


def combined(
    dense: float,
    sparse: float,
    colbert: float | None,
    weights: tuple[float, float, float] = WEIGHTS,
) -> tuple[float, float | None]:
    """Return sparse+dense and all three, each the mean by `weights` of dense, sparse and colbert.

    Examples
    --------
    >>> [round(value, 3) for value in combined(0.8, 0.3, 0.7)]
    [0.55, 0.6]
    """
    of_dense, of_sparse, of_colbert = weights
    two = of_dense * dense + of_sparse * sparse
    combination = two / (of_dense + of_sparse)
    if colbert is None:
        return combination, None
    return combination, (two + of_colbert * colbert) / sum(weights)
