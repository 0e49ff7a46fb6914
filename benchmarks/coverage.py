"""How often printed intervals hold the truth, and how often a board says one false "better":
simulations of the specification of ranks.

    python benchmarks/coverage.py intervals|errors|power [--runs 2000] [--boards 1000] [--part i/k]
    >table.md

Right and wrong answers, items in clusters, pools of domains and graded scores; every cell is seeded
by its own name, so that any of them can be run again by itself. A line for each cell: what it is,
the share in percent, and the bar it is held against.
"""

import argparse
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from medassay.core.scale import Scale
from medassay.statistic.draws import count_rows, number_clusters
from medassay.statistic.interval.effective import effective_interval
from medassay.statistic.interval.wilson import wilson_interval
from medassay.statistic.ranking.pool import stretch
from medassay.statistic.ranking.relation import relation_of
from medassay.statistic.ranking.simultaneous import difference_norms
from medassay.statistic.test.planner import (
    critical_value,
    items_to_show,
    power_graded,
    power_right_wrong,
)

Floats = NDArray[np.float64]
LEVELS = (0.5, 0.7, 0.9, 0.95, 0.98)
POOLS = {
    "3, 3, 3, 200, 200": (3, 3, 3, 200, 200),
    "5, 10, 20, 40, 80": (5, 10, 20, 40, 80),
    "2, 100": (2, 100),
    "6 × 10": (10,) * 6,
    "17 × 20": (20,) * 17,
}
SIZES = {"5 each": (5,), "1, 2, 5, 20": (1, 2, 5, 20)}
SHAPES = ("normal", "skewed", "rare zeros", "steady with rare zeros")
DRAWS = 1000
ICC = 0.3


@dataclass(frozen=True)
class Cell:
    """One simulated setting: its name, the share that came out in percent, and the bar, above it or
    below; None for no bar.
    """

    name: str
    percent: float
    bar: float | None
    above: bool

    @property
    def line(self) -> str:
        """Return the cell as a line of a table."""
        if self.bar is None:
            return f"| {self.name} | {self.percent:.1f} | – | |"
        met = self.percent >= self.bar if self.above else self.percent <= self.bar
        bar = f"{'≥' if self.above else '≤'} {self.bar:g}"
        return f"| {self.name} | {self.percent:.1f} | {bar} | {'' if met else 'missed'} |"


def generator(name: str) -> np.random.Generator:
    """Return the stream of a cell."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def labels_of(n_clusters: int, sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return the cluster of each item, sizes taken in turn."""
    return np.repeat(np.arange(n_clusters), [sizes[g % len(sizes)] for g in range(n_clusters)])


def clustered(
    random: np.random.Generator, labels: NDArray[np.int64], p: float, rows: int = 1
) -> Floats:
    """Return right and wrong answers whose clusters have an intraclass correlation of .3:
    beta-binomial.
    """
    weight = 1 / ICC - 1
    chance = random.beta(p * weight, (1 - p) * weight, (rows, labels.max() + 1))
    return (random.random((rows, len(labels))) < chance[:, labels]).astype(float)


def graded(random: np.random.Generator, shape: str, size: tuple[int, ...]) -> tuple[Floats, float]:
    """Return graded scores on 0 to 1, and their true mean."""
    if shape == "normal":
        return np.clip(random.normal(0.7, 0.12, size), 0, 1), 0.69888
    if shape == "skewed":
        return random.beta(4.0, 1.0, size), 0.8
    zero = random.random(size) < 0.1
    if shape == "rare zeros":
        return np.where(zero, 0.0, 1.0 - 0.5 * (random.random(size) < 0.1)), 0.9 * 0.95
    return np.where(zero, 0.0, np.clip(random.normal(0.9, 0.03, size), 0, 1)), 0.9 * 0.8999


def covered(
    draw: Callable[[np.random.Generator], tuple[list, float]], name: str, runs: int
) -> float:
    """Return in how many percent of runs the printed interval holds the truth."""
    random, held = generator(name), 0
    for _ in range(runs):
        domains, truth = draw(random)
        lo, hi = effective_interval(domains, scale=Scale()).ends
        held += lo - 1e-12 <= truth <= hi + 1e-12
    return 100 * held / runs


def wilson_cells() -> Iterator[Cell]:
    """Yield the exact coverage of Wilson's interval."""
    from scipy.stats import binom

    for n, p in product((10, 20, 50, 200), LEVELS):
        ends = [wilson_interval(k, n) for k in range(n + 1)]
        held = [k for k, (lo, hi) in enumerate(ends) if lo <= p <= hi]
        share = 100 * float(binom.pmf(held, n, p).sum())
        bar = 91.3 if (n, p) == (10, 0.95) else 92.0
        yield Cell(f"right/wrong, {n} items, p {p:g} (exact)", share, bar, True)


def interval_cells(runs: int) -> Iterator[Cell]:
    """Yield the coverage of the printed interval in every setting of the issue."""
    yield from wilson_cells()
    for (told, sizes), groups, p in product(SIZES.items(), (10, 20, 40, 80), LEVELS):
        labels = labels_of(groups, sizes)
        name = f"{groups} clusters of {told}, p {p:g}"
        share = covered(
            lambda r, labels=labels, p=p: ([(clustered(r, labels, p)[0], labels)], p),
            name,
            runs,
        )
        yield Cell(name, share, 91.5, True)
    for (told, sizes), p in product(POOLS.items(), LEVELS):
        name = f"pool of {told}, p {p:g}"
        share = covered(
            lambda r, sizes=sizes, p=p: (
                [((r.random(n) < p).astype(float), None) for n in sizes],
                p,
            ),
            name,
            runs,
        )
        yield Cell(name, share, 92.0, True)
    for (told, sizes), p in product(SIZES.items(), LEVELS):
        labels = labels_of(12, sizes)
        name = f"pool of 4 × 12 clusters of {told}, p {p:g}"
        share = covered(
            lambda r, labels=labels, p=p: (
                [(clustered(r, labels, p)[0], labels) for _ in range(4)],
                p,
            ),
            name,
            runs,
        )
        yield Cell(name, share, 91.0, True)
    yield from _graded_cells(runs)


def _graded_cells(runs: int) -> Iterator[Cell]:
    for shape, n in product(SHAPES, (10, 20, 50, 200)):

        def alone(r: np.random.Generator, shape: str = shape, n: int = n) -> tuple[list, float]:
            scores, truth = graded(r, shape, (n,))
            return [(scores, None)], truth

        def pooled(r: np.random.Generator, shape: str = shape, n: int = n) -> tuple[list, float]:
            made = [graded(r, shape, (n,)) for _ in range(3)]
            return [(scores, None) for scores, _ in made], made[0][1]

        def grouped(r: np.random.Generator, shape: str = shape, n: int = n) -> tuple[list, float]:
            labels = labels_of(max(10, n // 2), (1, 3))
            own, truth = graded(r, shape, (len(labels),))
            common, _ = graded(r, shape, (labels.max() + 1,))
            mixed = np.where(r.random(len(labels)) < ICC, common[labels], own)
            return [(mixed, labels)], truth

        for told, draw in (("", alone), (", 3 domains", pooled), (", clusters", grouped)):
            name = f"graded, {shape}, {n} items{told}"
            yield Cell(name, covered(draw, name, runs), 91.0, True)


@dataclass(frozen=True)
class Design:
    """The items of a board: the clusters of each domain, None where every item is its own."""

    name: str
    domains: tuple[NDArray[np.int64] | int, ...]

    @property
    def sizes(self) -> list[int]:
        """Return the items of each domain."""
        return [d if isinstance(d, int) else len(d) for d in self.domains]


def designs() -> Iterator[Design]:
    """Yield the boards of right and wrong answers."""
    for n in (33, 100, 400):
        yield Design(f"{n} items", (n,))
    for (told, sizes), groups in product(SIZES.items(), (10, 20, 40)):
        yield Design(f"{groups} clusters of {told}", (labels_of(groups, sizes),))
    for told in ("6 × 10", "5, 10, 20, 40, 80", "3, 3, 3, 200, 200"):
        yield Design(f"pool of {told}", POOLS[told])


class Board:
    """Draws and norms of boards of one design.

    The resamples are the same for all of them, which a board does not know.
    """

    def __init__(self, design: Design, seed: int) -> None:
        self._counts, self._numbers, self.n = [], [], sum(design.sizes)
        for at, domain in enumerate(design.domains):
            numbers = None if isinstance(domain, int) else number_clusters(domain)
            groups = domain if isinstance(domain, int) else len(np.unique(domain))
            self._counts.append(np.concatenate([*count_rows(groups, DRAWS, seed + at)]))
            self._numbers.append(numbers)
        self._clustered = any(numbers is not None for numbers in self._numbers)

    def relation(self, domains: Sequence[Floats], *, binary: bool) -> NDArray[np.bool_]:
        """Return which models are shown to be better, from scores of shape (models, items) of each
        domain.
        """
        values = np.mean([scores.mean(axis=1) for scores in domains], axis=0)
        draws = np.zeros((DRAWS, len(values)))
        weights = []
        for scores, counts, numbers in zip(domains, self._counts, self._numbers, strict=True):
            sums, sizes = scores.T, np.ones(scores.shape[1])
            if numbers is not None:
                sizes = np.bincount(numbers).astype(float)
                sums = np.zeros((len(sizes), len(values)))
                np.add.at(sums, numbers, scores.T)
            drawn = (counts @ sums) / (counts @ sizes)[:, None]
            if len(domains) > 1 and len(sizes) > 1:
                drawn = stretch(drawn, scores.mean(axis=1), len(sizes))
            draws += drawn / len(domains)
            weights.append(sums.T / scores.shape[1])
        kappa = 1 / self.n if binary and not self._clustered else 0.0
        return relation_of(values, draws, difference_norms(weights), kappa=kappa).better


def answers(random: np.random.Generator, domain: NDArray[np.int64] | int, levels: Floats) -> Floats:
    """Return right and wrong answers of models.

    Items are hard or easy for all of them, clusters too.
    """
    from scipy.special import ndtr, ndtri

    n = domain if isinstance(domain, int) else len(domain)
    hard = random.normal(0, 1, n)
    if not isinstance(domain, int):
        own = random.normal(0, 1, (len(levels), int(domain.max()) + 1))[:, domain]
        chance = ndtr(ndtri(levels)[:, None] * np.sqrt(2.5) + np.sqrt(0.5) * hard + own)
    else:
        chance = ndtr(ndtri(levels)[:, None] * np.sqrt(2.0) + hard)
    return (random.random((len(levels), n)) < chance).astype(float)


def error_cells(boards: int) -> Iterator[Cell]:
    """Yield how many percent of boards say at least one false "better"."""
    for models, design, p, half in product((2, 10, 50), designs(), LEVELS, (False, True)):
        if half and models == 2:
            continue
        name = f"{models} models, {design.name}, p {p:g}{', half of them better' if half else ''}"
        random, board, false = (
            generator(name),
            Board(design, zlib.crc32(design.name.encode())),
            0,
        )
        levels = np.full(models, p)
        if half:
            levels[: models // 2] = min(0.99, p + 0.1)
        allowed = levels[:, None] > levels[None, :]
        for _ in range(boards):
            scores = [answers(random, domain, levels) for domain in design.domains]
            false += bool((board.relation(scores, binary=True) & ~allowed).any())
        yield Cell(name, 100 * false / boards, 6.0, False)
    for models, shape, n in product((2, 10, 50), SHAPES, (10, 20, 50, 100, 200)):
        name = f"{models} models, graded, {shape}, {n} items"
        random, board, false = generator(name), Board(Design(name, (n,)), 7), 0
        for _ in range(boards):
            scores, _ = graded(random, shape, (models, n))
            false += bool(board.relation([scores], binary=False).any())
        yield Cell(name, 100 * false / boards, 6.5, False)
    for n in (50, 100, 200):
        name = f"10 models, steady against all-or-nothing, equal means, {n} items"
        random, board, false = generator(name), Board(Design(name, (n,)), 7), 0
        for _ in range(boards):
            steady = np.clip(random.normal(0.9, 0.03, (5, n)), 0, 1)
            rare = (random.random((5, n)) < 0.9).astype(float)
            scores = np.concatenate([steady, rare])
            false += bool(board.relation([scores], binary=False).any())
        yield Cell(name, 100 * false / boards, None, False)


def power_cells(boards: int) -> Iterator[Cell]:
    """Yield the simulated power of the planned number of items less that of the formula, in
    points.
    """
    for models, (psi, delta) in product((2, 10), ((0.2, 0.1), (0.4, 0.2), (0.1, 0.05))):
        n = items_to_show(delta, models=models, discordance=psi)
        name = f"{models} models, right/wrong, ψ {psi:g}, δ {delta:g}, {n} items"
        random, board, shown = generator(name), Board(Design(name, (n,)), 7), 0
        for _ in range(boards):
            base = (random.random(n) < 0.5).astype(float)
            rows = [_apart(random, base, psi, delta)]
            rows += [_apart(random, base, psi, 0.0) for _ in range(models - 2)]
            shown += bool(board.relation([np.array([*rows, base])], binary=True)[0, -1])
        wanted = power_right_wrong(n, psi, delta, critical_value(models))
        yield Cell(name, 100 * (shown / boards - wanted), -3.0, True)
    for models, (sd, delta) in product((2, 10), ((0.2, 0.1), (0.35, 0.1))):
        n = items_to_show(delta, models=models, deviation=sd)
        name = f"{models} models, graded, sd {sd:g}, δ {delta:g}, {n} items"
        random, board, shown = generator(name), Board(Design(name, (n,)), 7), 0
        for _ in range(boards):
            own = random.normal(0.5, sd / np.sqrt(2), (models, n))
            own[0] += delta
            shown += bool(board.relation([own], binary=False)[0, -1])
        wanted = power_graded(n, sd, delta, critical_value(models))
        yield Cell(name, 100 * (shown / boards - wanted), -3.0, True)


def _apart(random: np.random.Generator, base: Floats, psi: float, delta: float) -> Floats:
    """Return answers that differ from others on a share ψ of items, and are right on a share δ more
    of them.
    """
    gain = np.where(base == 0, (psi + delta), (psi - delta))  # half of the items each
    return np.abs(base - (random.random(len(base)) < gain))


def main() -> None:
    """Print the table of one simulation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("intervals", "errors", "power"))
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--boards", type=int, default=1000)
    given = parser.parse_args()
    cells = {
        "intervals": lambda: interval_cells(given.runs),
        "errors": lambda: error_cells(given.boards),
        "power": lambda: power_cells(given.boards),
    }[given.what]
    sys.stdout.write("| cell | % | bar | |\n|---|---|---|---|\n")
    for cell in cells():
        sys.stdout.write(f"{cell.line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
