"""Which items are reviewed, by whom, in which order: every draw comes from the study's seed.

A draw is the order of SHA-256 over seed and names, so that whoever knows the seed can repeat it in
any language, and a reviewer who joins later changes nobody else's order.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from medassay.errors import InputError, StatisticError

_Z2 = 1.959963984540054**2


def draw_key(seed: str, *names: object) -> str:
    """Return what a thing is sorted by: random, and the same again for the same seed and names.

    Examples
    --------
    >>> draw_key("7", "order", 12, "item-3")[:12]
    '9db9ec262728'
    """
    text = "\x1f".join(map(str, (seed, *names)))
    return hashlib.sha256(text.encode()).hexdigest()


def stratified_sample(categories: Mapping[str, str], n: int, seed: str) -> list[str]:
    """Return `n` names, every category among them and as its share asks for, largest remainders
    first.

    Parameters
    ----------
    categories : name → category

    Raises
    ------
    InputError
        When n is below the number of categories or above that of names.

    Examples
    --------
    >>> names = {f"a{i}": "heart" for i in range(8)} | {"b0": "skin", "b1": "skin"}
    >>> sorted(names[one] for one in stratified_sample(names, 5, "1"))
    ['heart', 'heart', 'heart', 'heart', 'skin']
    """
    strata: dict[str, list[str]] = defaultdict(list)
    for name, category in categories.items():
        strata[category].append(name)
    if not len(strata) <= n <= len(categories):
        raise InputError(
            f"a sample of {n}; expected at least {len(strata)} (one of each category) and at most "
            f"{len(categories)} (all)"
        )
    sizes = _shares({key: len(names) for key, names in strata.items()}, n)
    chosen = []
    for key, names in strata.items():
        names.sort(key=lambda name: draw_key(seed, "sample", name))
        chosen += names[: sizes[key]]
    return sorted(chosen, key=lambda name: draw_key(seed, "sample order", name))


def _shares(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Return how many of each stratum: one each, the rest by size; none gets more than it has."""
    total = sum(sizes.values())
    exact = {key: size * n / total for key, size in sizes.items()}
    shares = {key: max(1, int(share)) for key, share in exact.items()}
    # One each may be more than the shares allow: then the largest give back.
    while sum(shares.values()) < n:
        key = min(
            (k for k in sizes if shares[k] < sizes[k]), key=lambda k: (shares[k] - exact[k], k)
        )
        shares[key] += 1
    while sum(shares.values()) > n:
        key = max((k for k in sizes if shares[k] > 1), key=lambda k: (shares[k] - exact[k], k))
        shares[key] -= 1
    return shares


def assign(
    entries: Sequence[int],
    reviewers: Sequence[int],
    overlap: int,
    seed: str,
    *,
    assigned: Iterable[tuple[int, int]] = (),
) -> list[tuple[int, int]]:
    """Return the (entry, reviewer) pairs that are missing so that every entry has `overlap`
    reviewers, as evenly as can be.

    Parameters
    ----------
    assigned : the pairs there are; none is taken back

    Examples
    --------
    >>> made = assign([1, 2, 3, 4], [10, 20], 1, "7")
    >>> sorted(Counter(reviewer for _, reviewer in made).values())
    [2, 2]
    """
    have = set(assigned)
    load = Counter(reviewer for _, reviewer in have)
    of_entry = Counter(entry for entry, _ in have)
    assignments = []
    for entry in sorted(entries, key=lambda entry: draw_key(seed, "assign", entry)):
        free = sorted(
            (reviewer for reviewer in reviewers if (entry, reviewer) not in have),
            key=lambda reviewer: (load[reviewer], draw_key(seed, "assign", entry, reviewer)),
        )
        for reviewer in free[: max(0, overlap - of_entry[entry])]:
            load[reviewer] += 1
            assignments.append((entry, reviewer))
    return assignments


def sample_size(margin: float, population: int) -> int:
    """Return how many items give a share near one half with this half width of its 95 % interval.

    With the correction for a finite population: n = n0 / (1 + (n0 - 1) / N), n0 = z²/4 margin².

    Raises
    ------
    StatisticError
        When the margin is not between 0 and 1, or nothing can be drawn from.

    Examples
    --------
    >>> sample_size(0.05, 5621)
    360
    """
    if not 1e-6 <= margin < 1 or not 1 <= population < 10**12:
        raise StatisticError(
            f"margin {margin:g} of {population} items; expected a margin between 0 and 1, and an"
            " item at least"
        )
    unlimited = _Z2 / (4 * margin**2)
    return min(population, ceil(round(unlimited / (1 + (unlimited - 1) / population), 9)))
