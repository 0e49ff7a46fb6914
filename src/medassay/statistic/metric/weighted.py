"""One accuracy over several benchmarks.

Source: specification of statistics, 7.7.
"""

from collections.abc import Mapping

from medassay.errors import StatisticError

REVISION = 1


def weighted_accuracy(accuracies: Mapping[str, float], items: Mapping[str, int]) -> float:
    """Return Σ n·accuracy / Σ n over the benchmarks of `accuracies`.

    n are their numbers of test items.

    Raises
    ------
    StatisticError
        When there is no benchmark, or the number of items of one is unknown.

    Examples
    --------
    >>> round(weighted_accuracy({"a": 0.5, "b": 0.8}, {"a": 100, "b": 300}), 4)
    0.725
    """
    unknown = sorted(accuracies.keys() - items.keys())
    if not accuracies or unknown:
        raise StatisticError(
            f"no number of items of {', '.join(unknown)}" if unknown else "no benchmark"
        )
    total = sum(items[name] for name in accuracies)
    return sum(items[name] * value for name, value in accuracies.items()) / total
