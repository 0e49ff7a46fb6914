"""Relaxed Perplexity: how likely a model is to say something at some point of its completion, whatever comes before.

A target may stand anywhere in a completion. At positions 0, stride, 2·stride … its probability is taken after each distinct
beginning of the completions kept, and combined in four ways. `sum` is the published form; its terms are no
probabilities of exclusive events, so that one may exceed 1, which is told and not clipped.

Source: specification of perplexity, 8.2.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from medassay.score.perplexity import finite_exp

Mode = Literal["sum", "mean", "weighted", "conditional"]
MODES: tuple[Mode, ...] = ("sum", "mean", "weighted", "conditional")
Tokens = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How completions are sampled and positions taken; values are comparable under one setting only."""

    samples: int = 10
    keep: int = 5
    stride: int = 8
    max_tokens: int = 128
    top_p: float = 0.9
    temperature: float = 1.0

    def name(self, mode: Mode) -> str:
        """Return the metric's name; it carries what a value depends on.

        Examples
        --------
        >>> Setting().name("mean")
        'relaxed_perplexity_mean[l=5,s=10,stride=8,max_tokens=128]'
        """
        kind = "" if mode == "sum" else f"_{mode}"
        told = (
            f"l={self.keep},s={self.samples},stride={self.stride},max_tokens={self.max_tokens}"
        )
        return f"relaxed_perplexity{kind}[{told}]"


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """One completion: its tokens, without the stop token and what follows, and the log-probability of each."""

    tokens: Tokens
    logprobs: tuple[float, ...]

    @property
    def total(self) -> float:
        """Return the log-probability of the whole completion."""
        return math.fsum(self.logprobs)


@dataclass(frozen=True, kw_only=True)
class Prefix:
    """One beginning at one position: log-probabilities of the beginning itself, and of the target after it."""

    prefix: float
    target: float


@dataclass(frozen=True, kw_only=True)
class Position:
    """The distinct beginnings of one length."""

    at: int
    prefixes: tuple[Prefix, ...]


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Everything that one target's value is computed from: its length in tokens, and the positions from 0 on."""

    target_tokens: int
    positions: tuple[Position, ...]


@dataclass(frozen=True, kw_only=True)
class Relaxed:
    """Relaxed cross-entropy and perplexity of one target, lower is better.

    `log_p` are the log-probabilities at the positions, in nats; `cross_entropy` their negative sum, infinite where one is
    impossible, and `value` is None then, or where it is too large for a number. `above_one` says that a sum exceeded 1.
    """

    mode: Mode
    log_p: tuple[float, ...]
    cross_entropy: float
    per_position: float
    value: float | None
    above_one: bool
    reason: str = ""

    @property
    def bits(self) -> float:
        """Return the cross-entropy in bits."""
        return self.cross_entropy / math.log(2)


def keep(completions: Iterable[Sampled], most: int) -> tuple[Sampled, ...]:
    """Return the likeliest distinct completions, at most so many; equal ones by their order.

    Examples
    --------
    >>> one, two = Sampled(tokens=(1,), logprobs=(-2.0,)), Sampled(tokens=(2,), logprobs=(-1.0,))
    >>> [c.tokens for c in keep([one, one, two], 5)]
    [(2,), (1,)]
    """
    distinct: dict[Tokens, Sampled] = {}
    for completion in completions:
        distinct.setdefault(completion.tokens, completion)
    return tuple(sorted(distinct.values(), key=lambda c: -c.total)[:most])


def prefixes(
    kept: Sequence[Sampled], *, stride: int, max_tokens: int
) -> list[tuple[int, dict[Tokens, float]]]:
    """Return (position, beginning → its log-probability) for each position that a completion reaches.

    At 0 there is the empty beginning, once. The positions end where the first one has no beginning of its length.

    Examples
    --------
    >>> both = [Sampled(tokens=(1, 2), logprobs=(-1.0, -1.0)), Sampled(tokens=(1,), logprobs=(-1.0,))]
    >>> prefixes(both, stride=1, max_tokens=8)
    [(0, {(): 0.0}), (1, {(1,): -1.0}), (2, {(1, 2): -2.0})]
    """
    if stride < 1:
        raise ValueError(f"stride {stride}; at least 1 is needed")
    found: list[tuple[int, dict[Tokens, float]]] = []
    for at in range(0, max_tokens + 1, stride):
        begun = {
            completion.tokens[:at]: math.fsum(completion.logprobs[:at])
            for completion in kept
            if len(completion.tokens) >= at
        }
        if at == 0:
            begun = {(): 0.0}
        if not begun:
            break
        found.append((at, begun))
    return found


def tables(
    kept: Sequence[Sampled],
    setting: Setting,
    target_tokens: int,
    target_after: Callable[[Tokens], float],
) -> Tables:
    """Return the tables of one target.

    Parameters
    ----------
    target_after : the log-probability of the target after the prompt and a beginning
    """
    positions = prefixes(kept, stride=setting.stride, max_tokens=setting.max_tokens)
    return Tables(
        target_tokens=target_tokens,
        positions=tuple(
            Position(
                at=at,
                prefixes=tuple(
                    Prefix(prefix=value, target=target_after(begun))
                    for begun, value in beginnings.items()
                ),
            )
            for at, beginnings in positions
        ),
    )


def combine(tables: Tables, mode: Mode) -> Relaxed:
    """Return the relaxed perplexity of one target.

    Raises
    ------
    ValueError
        When there is no position, a target without tokens, or an unknown mode.
    """
    if not tables.positions or tables.target_tokens < 1:
        raise ValueError(
            "relaxed perplexity needs a position and a target of at least one token"
        )
    log_p = tuple(_combined(position.prefixes, mode) for position in tables.positions)
    entropy = -math.fsum(log_p) if all(map(math.isfinite, log_p)) else math.inf
    length = tables.positions[-1].at + tables.target_tokens
    value = finite_exp(entropy / length)
    if math.isinf(entropy):
        reason = "the target is impossible at a position"
    else:
        reason = "" if value is not None else "too large for a number"
    return Relaxed(
        mode=mode,
        log_p=log_p,
        cross_entropy=entropy,
        per_position=entropy / len(log_p),
        value=value,
        above_one=any(value > 0 for value in log_p),
        reason=reason,
    )


def _combined(begun: Sequence[Prefix], mode: Mode) -> float:
    """Return the log-probability of the target at one position."""
    if mode == "sum":
        return log_sum_exp([one.target for one in begun])
    if mode == "mean":
        return log_sum_exp([one.target for one in begun]) - math.log(len(begun))
    weighted = log_sum_exp([one.target + one.prefix for one in begun])
    if mode == "weighted":
        return weighted
    if mode == "conditional":
        return weighted - log_sum_exp([one.prefix for one in begun])
    raise ValueError(f"mode '{mode}' is unknown; known are {', '.join(MODES)}")


def log_sum_exp(values: Sequence[float]) -> float:
    """Return the logarithm of the sum of exponentials, −inf where all of them are 0.

    Examples
    --------
    >>> log_sum_exp([-1000.0, -1000.0]) == -1000.0 + math.log(2), log_sum_exp([-math.inf])
    (True, -inf)
    """
    highest = max(values)
    if math.isinf(highest):
        return highest
    return highest + math.log(math.fsum(math.exp(value - highest) for value in values))
