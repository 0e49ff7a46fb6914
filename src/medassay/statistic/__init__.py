"""Arrays in, estimates out; knows numpy and scipy and nothing of models or medicine.

Names are loaded when they are first used (PEP 562), so that importing the package costs nothing.
"""

from importlib import import_module
from typing import Any

_WHERE = {
    "Field": "ranking.field",
    "Options": "ranking.pool",
    "Stratum": "ranking.pool",
    "alpha_estimate": "agreement.alpha",
    "bootstrap_mean": "interval.bootstrap",
    "clopper_pearson_upper": "interval.exact",
    "field_of": "ranking.field",
    "holm": "test.holm",
    "krippendorff_alpha": "agreement.alpha",
    "mcnemar": "test.mcnemar",
    "oracle": "ranking.oracle",
    "paired_difference": "test.paired",
    "rank": "ranking.shared",
    "reliability_weighted_mean": "metric.reliability",
    "rescale": "metric.reliability",
    "seed_of": "draws",
    "wilson_interval": "interval.wilson",
    "worst_five_percent_mean": "interval.exact",
}
__all__ = [
    "Field",
    "Options",
    "Stratum",
    "alpha_estimate",
    "bootstrap_mean",
    "clopper_pearson_upper",
    "field_of",
    "holm",
    "krippendorff_alpha",
    "mcnemar",
    "oracle",
    "paired_difference",
    "rank",
    "reliability_weighted_mean",
    "rescale",
    "seed_of",
    "wilson_interval",
    "worst_five_percent_mean",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
