"""BERTScore: how near each token of a text is to the nearest token of the other, in context.

The value is F1, without idf weights and without rescaling.

Source: Zhang et al. (2020), https://openreview.net/forum?id=SkeHuCVFDr; checked against bert-score
0.3.13.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from medassay.core.scale import Scale
from medassay.score.contextual import EncodedText, Encoder
from medassay.score.measure import UNBOUNDED, Pair, Values, find_model, model_name, need

if TYPE_CHECKING:
    import torch

REFERENCE = "roberta-large"
# Layers that agree best with people, by the authors; of other models the last one.
LAYERS = {
    "bert-base-multilingual-cased": 9,
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "distilbert-base-uncased": 5,
    "roberta-base": 10,
    "roberta-large": 17,
    "xlm-roberta-base": 9,
    "xlm-roberta-large": 17,
}


class BertScore:
    """BERTScore F1 by one model.

    Can be below 0 in principle, is near 1 for most texts in practice.
    """

    columns: Mapping[str, Scale] = {"bertscore": UNBOUNDED}
    context = ""

    def __init__(self, place: str) -> None:
        need("torch", "transformers", metric="bertscore")
        folder = find_model(place, REFERENCE, "bertscore")
        name = model_name(folder, place)
        layer = LAYERS.get(name.partition("@")[0].rpartition("/")[2])
        self.id = f"bertscore:{name}/layer {layer or 'last'}"
        self._encoder = Encoder(folder, layer=layer)

    def prepare(self, references: Iterable[str]) -> None:
        """Take nothing: all words weigh the same."""

    def close(self) -> None:
        """Drop the weights."""
        self._encoder.close()

    def score(self, pairs: Sequence[Pair]) -> list[Values]:
        """Return the F1 of each pair."""
        stripped = [(prediction.strip(), reference.strip()) for prediction, reference in pairs]
        encoded = self._encoder.encode([text for pair in stripped for text in pair])
        special = self._encoder.special
        return [
            (_f1(encoded[prediction], encoded[reference], special),)
            for prediction, reference in stripped
        ]


def _f1(prediction: EncodedText, reference: EncodedText, special: set[int]) -> float | None:
    """Return F1 of two encoded texts.

    As in the reference implementation, special tokens are found as neighbours but do not count
    themselves.
    """
    first, second = (_unit(encoded.states) for encoded in (prediction, reference))
    near = first @ second.T
    mine = [at for at, token in enumerate(prediction.ids) if token not in special]
    theirs = [at for at, token in enumerate(reference.ids) if token not in special]
    if not mine or not theirs:
        return None
    precision = float(near.max(dim=1).values[mine].mean())
    recall = float(near.max(dim=0).values[theirs].mean())
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _unit(states: "torch.Tensor") -> "torch.Tensor":
    return states / states.norm(dim=-1, keepdim=True)
