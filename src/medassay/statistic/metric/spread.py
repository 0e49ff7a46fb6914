"""How far a metric moves when nothing that matters changes: under rephrasing, and from draw to
draw.

Source: specification of statistics, 7.8 and 7.9.
"""

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from medassay.errors import StatisticError
from medassay.statistic.draws import Floats

REVISION = 1


class Resilience(msgspec.Struct, frozen=True):
    """How a metric moves under rephrasing, over items; lower is steadier.

    `range` is that of the metric over all items and rephrasings, `variances` the population
    variance of each item, `scaled` these over the range (the literal rule: it keeps a unit),
    `scaled_squared` over its square (dimensionless, so metrics can be compared by it); `mean` and
    `meta_variance` are mean and population variance of `scaled`. A range of 0 leaves all 0.
    """

    range: float
    variances: Floats
    scaled: Floats
    scaled_squared: Floats

    @property
    def mean(self) -> float:
        """Return the mean scaled variance."""
        return float(self.scaled.mean())

    @property
    def meta_variance(self) -> float:
        """Return the population variance of the scaled variances."""
        return float(self.scaled.var())

    @property
    def mean_squared(self) -> float:
        """Return the mean of the variances over the squared range."""
        return float(self.scaled_squared.mean())


def resilience(values: ArrayLike, *, span: float | None = None) -> Resilience:
    """Return how a metric moves under rephrasing.

    Parameters
    ----------
    values : shape (n_items, n_rephrasings), without nulls; the original is not one of them
    span : the range of the metric, where it is taken over more than these values

    Raises
    ------
    StatisticError
        When there is no item, or fewer than two rephrasings.

    Examples
    --------
    >>> found = resilience([[0.5, 0.52, 0.48], [0.1, 0.3, 0.2]])
    >>> round(found.range, 2), [round(float(v), 6) for v in found.scaled]
    (0.42, [0.000635, 0.015873])
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not table.shape[0] or table.shape[1] < 2:
        raise StatisticError("resilience needs items, each with two or more rephrasings")
    reach = float(np.ptp(table)) if span is None else span
    # Equal numbers have a mean that rounding moves off them.
    variances = np.where(np.ptp(table, axis=1) > 0, table.var(axis=1), 0.0)
    divisor = reach if reach > 0 else 1.0
    return Resilience(reach, variances, variances / divisor, variances / divisor**2)


def variation(values: ArrayLike) -> float | None:
    """Return the coefficient of variation of draws of one item, by the population deviation.

    None where their mean is 0.

    Not for metrics that can be negative: their mean says nothing of their size.

    Examples
    --------
    >>> round(variation([0.2, 0.4, 0.3]), 4)
    0.2722
    """
    array = np.asarray(values, dtype=np.float64)
    if not len(array):
        raise StatisticError("no draws: no data is no variation of zero")
    mean = float(array.mean())
    if mean == 0:
        return None
    return float(array.std()) / mean if np.ptp(array) > 0 else 0.0
