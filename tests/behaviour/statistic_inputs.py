"""Inputs of statistical rules: edges by hand, the rest drawn from a fixed seed."""

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

KINDS = ("binary", "graded", "equal")


def scores(drawn: random.Random, n: int, kind: str) -> list[float]:
    """Return n scores: of right and wrong, graded, or all equal."""
    if kind == "binary":
        return [float(drawn.random() < 0.7) for _ in range(n)]
    if kind == "equal":
        return [0.5] * n
    return [round(drawn.random(), 3) for _ in range(n)]


def clusters(drawn: random.Random, n: int) -> list[int]:
    """Return cluster numbers of n items, some of one item, some of several."""
    numbers = sorted(drawn.randrange(max(2, n // 3)) for _ in range(n))
    return [sorted(set(numbers)).index(number) for number in numbers]


def intervals(drawn: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield inputs of intervals, draws and paired tests."""
    for kind, n, seed in product(KINDS, (1, 2, 3, 9, 10, 11, 30, 80), range(3)):
        line = {"scores": scores(drawn, n, kind), "seed": seed}
        grouped = {**line, "clusters": clusters(drawn, n)}
        yield "statistic_bootstrap", line
        yield "statistic_bootstrap", grouped
        yield "statistic_bootstrap", {**line, "scores": [*line["scores"][1:], None]}
        yield "statistic_draws", {**line, "seed_of": ["demo", str(seed)]}
        yield "statistic_draws", {**grouped, "seed_of": ["demo", "Ä", str(seed)]}
        yield "statistic_cluster", grouped
        yield (
            "statistic_effective",
            {"domains": [[scores(drawn, m, kind), clusters(drawn, m)] for m in (n, 12, 40)]},
        )
        yield (
            "statistic_pool",
            {
                "domains": [
                    [scores(drawn, m, kind), [c + 1000 * m for c in clusters(drawn, m)]]
                    for m in (n, 13, 40)
                ]
            },
        )
        yield (
            "statistic_paired",
            {"a": scores(drawn, n, kind), "b": scores(drawn, n, "binary"), "seed": seed},
        )
        yield (
            "statistic_paired",
            {
                "a": scores(drawn, n, kind),
                "b": scores(drawn, n, kind),
                "seed": seed,
                "clusters": clusters(drawn, n),
            },
        )
        yield (
            "statistic_reliability",
            {"scores": [16 * s for s in scores(drawn, n, kind)], "k": 0.5 + seed, "x0": 8.0},
        )
        yield (
            "statistic_ratio",
            {
                "numerators": scores(drawn, n, kind),
                "denominators": [1 + s for s in scores(drawn, n, kind)],
                "clusters": clusters(drawn, n),
                "seed": seed,
            },
        )
        yield (
            "statistic_oracle",
            {"scores": [scores(drawn, n, kind) for _ in range(4)], "seed": seed},
        )


def counts() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield inputs of rules on counts."""
    for n in (1, 2, 5, 10, 60, 1000):
        for k in sorted({0, 1, n // 3, n // 2, n - 1, n}):
            yield "statistic_wilson", {"successes": k, "n": n}
            yield "statistic_exact", {"events": k, "n": n}
            if k:
                yield "statistic_mcnemar", {"only_a": k, "only_b": n - k}
                yield "statistic_margin", {"only_a": k, "only_b": n - k, "n": 2 * n}
    yield "statistic_wilson", {"successes": 0, "n": 0}


def agreements(drawn: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield inputs of agreement, of the panel, and of orders."""
    for n in range(1, 60):
        yield (
            "statistic_holm",
            {"p": [round(drawn.random() ** 3, 4) for _ in range(n % 12)] + [0.05] * (n % 3)},
        )
        ratings = [[drawn.choice([0, 1, 2, None]) for _ in range(8)] for _ in range(3)]
        for level in ("nominal", "ordinal", "interval"):
            yield "statistic_alpha", {"ratings": ratings, "level": level}
        judges = [drawn.choice([0.0, 0.25, 1.0, None]) for _ in range(3)]
        said = [
            [drawn.choice(["entail", "missing", "contradict"]) for _ in range(5)] for _ in range(3)
        ]
        yield (
            "panel_mean",
            {
                "scores": judges,
                "seats": 3,
                "verdicts": said,
                "claims": [drawn.randrange(3) for _ in range(3)],
            },
        )
        yield (
            "panel_mean",
            {
                "scores": [round(drawn.random(), 3) for _ in range(3)],
                "seats": 3,
                "verdicts": said,
                "claims": [0, 1, 1],
            },
        )
        first = [float(drawn.random() < 0.6) for _ in range(n)]
        second = [x if drawn.random() < 0.8 else 1 - x for x in first]
        yield (
            "statistic_people",
            {"first": first, "second": second, "rest": scores(drawn, 2 * n, "graded")},
        )
        columns = [[round(drawn.gauss(0, 1), 2) for _ in range(3)] for _ in range(4 + n % 9)]
        yield "statistic_correlation", {"columns": columns, "seed": n}
        yield (
            "statistic_spread",
            {
                "values": [
                    [round(drawn.random() + 0.1, 3) for _ in range(1 + n % 6)]
                    for _ in range(1 + n % 4)
                ]
            },
        )
        yield (
            "statistic_votes",
            {"votes": [[drawn.random() < 0.7 for _ in range(3)] for _ in range(n)]},
        )
        yield (
            "statistic_weighted",
            {
                "accuracies": {"a": round(drawn.random(), 3), "b": 0.5},
                "items": {"a": n, "b": 7},
            },
        )
        values = [round(drawn.random(), 3) for _ in range(4)]
        spread = [[v + drawn.gauss(0, 0.05) for v in values] for _ in range(50)]
        se = [[0.0 if i == j else 0.05 for j in range(4)] for i in range(4)]
        yield "statistic_simultaneous", {"values": values, "draws": spread, "se": se}
        estimates = {
            f"m{i}": [v, v - drawn.random() / 5, v + drawn.random() / 5]
            for i, v in enumerate(values)
        }
        for rule, better in product(("leader", "arena", "closure"), ("high", "low")):
            yield "statistic_shared", {"estimates": estimates, "rule": rule, "better": better}


def rankings(drawn: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield tables of scores by every rule of ranks."""
    for rule, kind, at in product(("simultaneous", "leader", "arena", "closure"), KINDS, range(5)):
        strata = []
        for number, n in enumerate([(12,), (5,), (30, 14), (40,), (11, 9, 20)][at]):
            table = [scores(drawn, n, kind) for _ in range(4)]
            if at == 3:
                table[0][0] = None
            strata.append(
                [
                    f"d{number}",
                    table,
                    (
                        [c + 1000 * number for c in clusters(drawn, n)]
                        if at % 2
                        else [i + 1000 * number for i in range(n)]
                    ),
                    number,
                ]
            )
        line = {"strata": strata, "rule": rule}
        yield "statistic_ranks", line
        if rule != "simultaneous":
            yield "statistic_ranks", {**line, "percentile_only": True, "touching": True}


def statistics() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield inputs of statistical rules: edges by hand, the rest drawn from a fixed seed."""
    drawn = random.Random(2026)
    yield from intervals(drawn)
    yield from counts()
    yield from agreements(drawn)
    yield from rankings(drawn)
