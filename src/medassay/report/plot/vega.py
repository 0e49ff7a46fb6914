"""The parts of a Vega-Lite specification that our figures use; what a key means stands in the
documentation of Vega-Lite.
"""

from collections.abc import Mapping, Sequence
from typing import TypedDict

Datum = str | float | bool | None  # a value of the data
Setting = Datum | Sequence[str] | Sequence[float]  # of an axis, a mark or a transform


class VegaScale(TypedDict, total=False):
    """From values to places or colours."""

    domain: Sequence[str] | Sequence[float]
    range: Sequence[str]
    scheme: str
    zero: bool
    nice: bool


class Channel(TypedDict, total=False):
    """What a place, a colour or a text follows from: a field of the data, or a value."""

    field: str
    datum: Datum
    value: Datum
    type: str
    title: str | None
    sort: Sequence[str] | str | None
    axis: Mapping[str, Setting] | None
    header: Mapping[str, Setting] | None
    legend: Mapping[str, Setting] | None
    scale: VegaScale
    aggregate: str
    bin: Mapping[str, Setting]
    stack: str | bool | None
    condition: Mapping[str, Datum]


class VegaMark(TypedDict, total=False):
    """A form that is drawn for each row of the data, and how it looks."""

    type: str
    align: str
    baseline: str
    dx: float
    dy: float
    filled: bool
    fontSize: float
    fontStyle: str
    invalid: str | None
    opacity: float
    orient: str
    point: "VegaMark"
    shape: str
    size: float
    stroke: str
    strokeDash: Sequence[float]
    strokeWidth: float
    thickness: float
    xOffset: float


class VegaView(TypedDict, total=False):
    """A drawing: one mark, or drawings over, beside or below each other."""

    title: str
    width: float | Mapping[str, float]
    height: float | Mapping[str, float]
    data: Mapping[str, Sequence[Mapping[str, Datum]]]
    transform: Sequence[Mapping[str, Setting | Mapping[str, Setting]]]
    mark: str | VegaMark
    encoding: Mapping[str, Channel]
    layer: Sequence["VegaView"]
    vconcat: Sequence["VegaView"]
    facet: Channel
    columns: int
    spacing: float | Mapping[str, float]
    resolve: Mapping[str, Mapping[str, str]]
    spec: "VegaView"
