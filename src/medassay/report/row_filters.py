"""What the rows of a ranking are filtered by: facts of their models as the manifest states them."""

from collections.abc import Mapping, Sequence

import msgspec

from medassay.core.records.manifest import RunModel
from medassay.core.records.statistics import LeaderboardRow

_WEIGHTS_HERE = ("transformers", "vllm")  # providers that read the weights themselves
# Billions of parameters: above the first number, up to the second.
_SIZES = {
    "0-10": "up to 10 billion parameters",
    "10-100": "over 10, up to 100 billion",
    "100-": "over 100 billion",
}
_LABELS = {
    "family": "Family",
    "licence": "Licence",
    "weights": "Weights",
    "size": "Size",
    "location": "Answers from",
    "setting": "Setting",
}


class RowFilter(msgspec.Struct, frozen=True):
    """A choice above a ranking: the fact that it filters by, what it is called, and its values with
    their texts.
    """

    fact: str
    label: str
    options: Sequence[tuple[str, str]]


def model_facts(entry: RunModel) -> dict[str, str]:
    """Return what the entry of a model states of family, licence, weights, size and location; what
    it does not state is left out.

    Weights are open where the entry states their licence or hash, or they were read here.
    """
    is_open = entry.licence or entry.weights_digest or entry.provider in _WEIGHTS_HERE
    facts = {
        "family": entry.family or "unknown",
        "licence": entry.licence,
        "weights": "open" if is_open else "",
        "size": f"{entry.size:g}" if entry.size else "",
        "location": entry.location,
    }
    return {name: fact for name, fact in facts.items() if fact not in ("", "unknown")}


def row_filters(
    rows: Sequence[LeaderboardRow],
    models: Mapping[str, RunModel],
    setting_names: Mapping[str, str],
) -> list[RowFilter]:
    """Return the choices that tell some rows of a ranking from others."""
    facts = [{**model_facts(models[row.model]), "setting": row.setting} for row in rows]
    filters = []
    for name, label in _LABELS.items():
        values = {fact.get(name, "") for fact in facts}
        if name == "size":
            options = [
                (band, text)
                for band, text in _SIZES.items()
                if any(size and in_band(float(size), band) for size in values)
            ]
        else:
            texts = {value: setting_names.get(value, value) for value in values if value}
            options = sorted(texts.items(), key=lambda option: option[1].lower())
        if "" in values:
            options.append(("none", "not stated"))
        if len(options) > 1:
            filters.append(RowFilter(name, label, options))
    return filters


def in_band(size: float, band: str) -> bool:
    """Return whether a size lies in a band.

    Examples
    --------
    >>> in_band(10, "0-10"), in_band(10, "10-100"), in_band(671, "100-")
    (True, False, True)
    """
    least, _, most = band.partition("-")
    return float(least) < size <= (float(most) if most else float("inf"))
