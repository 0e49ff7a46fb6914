"""Arrays in, estimates out; knows numpy and scipy and nothing of models or medicine.

Names are loaded when they are first used (PEP 562), so that importing the package costs no more
than numpy.
"""

import sys
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec
from typing import Any

import numpy as np

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
__all__ = list(_WHERE)


def _defer_f2py() -> None:
    """Have numpy's translator of Fortran loaded when somebody uses it.

    scipy copies each name of numpy when it is first imported (array_api_compat), and numpy would
    load the translator for that: a tenth of a second in every command that computes an interval.
    """
    spec = find_spec("numpy.f2py")
    if "numpy.f2py" in sys.modules or spec is None or spec.loader is None:
        return
    spec.loader = LazyLoader(spec.loader)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    vars(np)["f2py"] = module


_defer_f2py()


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
