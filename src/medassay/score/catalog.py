"""Metrics of two texts that need a model: one line each."""

from collections.abc import Callable

from medassay.score.bertscore import BertScore
from medassay.score.bge import BgeM3
from medassay.score.legacy import client
from medassay.score.measure import TextMeasure
from medassay.score.moverscore import MoverScore

# name → what makes one from the place of its model
TEXT_MEASURES: dict[str, Callable[[str], TextMeasure]] = {
    "bertscore": BertScore,
    "bge_m3": BgeM3,
    "bleurt": client.bleurt,
    "chexbert": client.chexbert,
    "f1_radgraph": client.f1_radgraph,
    "moverscore": MoverScore,
}
