"""What Relaxed Perplexity is computed from: completions, their distinct beginnings, and tables of log-probabilities.

Source: specification of perplexity, 8.2.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

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
