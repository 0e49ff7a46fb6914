"""What Relaxed Perplexity is computed from: completions, their distinct beginnings, and tables of
log-probabilities.

Source: specification of perplexity, 8.2.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import msgspec
from pydantic import ConfigDict

from medassay.core.keyed import KeyedRecord

Mode = Literal["sum", "mean", "weighted", "conditional"]
MODES: tuple[Mode, ...] = ("sum", "mean", "weighted", "conditional")
Tokens = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class RelaxedSetting(KeyedRecord):
    """How completions are made and positions taken; values are comparable under one setting only.

    Attributes
    ----------
    samples : completions of each context, or the width of the beam
    keep : the likeliest of them that are read
    stride : tokens between two positions
    max_tokens : of a completion
    top_p, temperature : by which completions are drawn
    sampler : `sample` draws completions, `beam` takes the likeliest ones that a beam search finds
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    KEYS: ClassVar = ("samples", "keep", "stride", "max_tokens", "top_p", "temperature", "sampler")

    samples: int = 10
    keep: int = 5
    stride: int = 8
    max_tokens: int = 128
    top_p: float = 0.9
    temperature: float = 1.0
    sampler: Literal["sample", "beam"] = "sample"

    def name(self, mode: Mode) -> str:
        """Return the metric's name; it carries what a value depends on.

        Examples
        --------
        >>> RelaxedSetting().name("mean")
        'relaxed_perplexity_mean[l=5,s=10,stride=8,max_tokens=128]'
        >>> RelaxedSetting(sampler="beam", samples=5).name("sum")
        'relaxed_perplexity[l=5,s=5,stride=8,max_tokens=128,beam]'
        """
        kind = "" if mode == "sum" else f"_{mode}"
        text = f"l={self.keep},s={self.samples},stride={self.stride},max_tokens={self.max_tokens}"
        if self.sampler == "beam":
            return f"relaxed_perplexity{kind}[{text},beam]"
        usual = RelaxedSetting()
        for key in ("top_p", "temperature"):
            if getattr(self, key) != getattr(usual, key):
                text += f",{key}={getattr(self, key):g}"
        return f"relaxed_perplexity{kind}[{text}]"

    def problem(self) -> str | None:
        """Return what is wrong with the numbers, None if nothing is."""
        for key, most in _MAXIMA.items():
            if not 1 <= getattr(self, key) <= most:
                return f"'{key}' is {getattr(self, key)}; 1 to {most} is needed"
        if not 0 < self.top_p <= 1:
            return f"'top_p' is {self.top_p:g}; a share above 0, at most 1, is needed"
        if not 0 < self.temperature <= 10:
            return f"'temperature' is {self.temperature:g}; a number above 0, at most 10, is needed"
        return None


_MAXIMA = {"samples": 1000, "keep": 1000, "stride": 4096, "max_tokens": 4096}


class SampledCompletion(msgspec.Struct, frozen=True, kw_only=True):
    """One completion: its tokens, without the stop token and what follows, and the log-probability
    of each.
    """

    tokens: Tokens
    logprobs: tuple[float, ...]

    @property
    def total(self) -> float:
        """Return the log-probability of the whole completion."""
        return math.fsum(self.logprobs)


class Prefix(msgspec.Struct, frozen=True, kw_only=True):
    """One beginning at one position: log-probabilities of the beginning itself, and of the target
    after it.
    """

    prefix: float
    target: float


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """The distinct beginnings of one length."""

    at: int
    prefixes: tuple[Prefix, ...]


class Tables(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one target's value is computed from: its length in tokens, and the positions
    from 0 on.
    """

    target_tokens: int
    positions: tuple[Position, ...]


class DrawnCompletions(msgspec.Struct, frozen=True, kw_only=True):
    """What was made for one context, and the tables of each target.

    `completions` are the likeliest distinct ones, `texts` what they say; `distinct` says how many
    there were among `samples`. `ends` are, for each completion, the lengths in characters of its
    beginnings at the positions that it reaches.
    """

    completions: tuple[SampledCompletion, ...]
    texts: tuple[str, ...]
    ends: tuple[tuple[int, ...], ...]
    samples: int
    distinct: int
    tables: tuple[Tables, ...]

    def to_dict(self, *, stride: int) -> dict[str, Any]:
        """Return everything that values are computed and shown from as plain JSON values.

        −∞ is null.
        """
        return {
            "samples": self.samples,
            "distinct": self.distinct,
            "kept": [
                {
                    "text": text,
                    "n_tokens": len(sample.tokens),
                    "logprob": _plain(sample.total),
                    "ends": list(ends),
                    "prefixes": _owners(self.completions, at, stride, len(ends)),
                }
                for at, (sample, text, ends) in enumerate(
                    zip(self.completions, self.texts, self.ends, strict=True)
                )
            ],
            "targets": [
                {
                    "n_tokens": table.target_tokens,
                    "positions": [
                        [
                            position.at,
                            [[_plain(p.prefix), _plain(p.target)] for p in position.prefixes],
                        ]
                        for position in table.positions
                    ],
                }
                for table in self.tables
            ],
        }


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _owners(samples: Sequence[SampledCompletion], at: int, stride: int, n: int) -> list[int]:
    """Return, for each position that a completion reaches, the place of its beginning among the
    distinct ones there.
    """
    own_tokens = samples[at].tokens
    owners = []
    for position in range(n):
        length = position * stride
        begun = dict.fromkeys(c.tokens[:length] for c in samples if len(c.tokens) >= length)
        owners.append(list(begun).index(own_tokens[:length]))
    return owners


class StoredTables(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of one target as files have them.

    Attributes
    ----------
    positions : place, and of each distinct beginning the log-probabilities of itself and of the
        target after it; None for −∞
    """

    n_tokens: int
    positions: list[tuple[int, list[tuple[float | None, float | None]]]]

    @property
    def tables(self) -> Tables:
        """Return the tables themselves."""

        def number(value: float | None) -> float:
            return -math.inf if value is None else value

        return Tables(
            target_tokens=self.n_tokens,
            positions=tuple(
                Position(
                    at=at,
                    prefixes=tuple(Prefix(prefix=number(p), target=number(a)) for p, a in begun),
                )
                for at, begun in self.positions
            ),
        )


class StoredCompletion(msgspec.Struct, frozen=True, kw_only=True):
    """One completion that was kept, as files have it.

    Attributes
    ----------
    logprob : of the whole completion; None for −∞
    ends : lengths in characters of its beginnings at the positions that it reaches
    prefixes : places of these beginnings among the distinct ones of each position
    """

    text: str
    n_tokens: int
    logprob: float | None
    ends: list[int]
    prefixes: list[int]


class StoredCompletions(msgspec.Struct, frozen=True, kw_only=True):
    """What `DrawnCompletions.to_dict` made plain: the completions kept, and tables by target."""

    distinct: int
    kept: list[StoredCompletion]
    targets: list[StoredTables]


def keep(completions: Iterable[SampledCompletion], most: int) -> tuple[SampledCompletion, ...]:
    """Return the likeliest distinct completions, at most so many; equal ones by their order.

    Examples
    --------
    >>> one = SampledCompletion(tokens=(1,), logprobs=(-2.0,))
    >>> two = SampledCompletion(tokens=(2,), logprobs=(-1.0,))
    >>> [c.tokens for c in keep([one, one, two], 5)]
    [(2,), (1,)]
    """
    distinct: dict[Tokens, SampledCompletion] = {}
    for completion in completions:
        distinct.setdefault(completion.tokens, completion)
    return tuple(sorted(distinct.values(), key=lambda c: -c.total)[:most])


def prefixes(
    samples: Sequence[SampledCompletion], *, stride: int, max_tokens: int
) -> list[tuple[int, dict[Tokens, float]]]:
    """Return (position, beginning → its log-probability) for each position that a completion
    reaches.

    At 0 there is the empty beginning, once. The positions end where the first one has no beginning
    of its length.

    Examples
    --------
    >>> long = SampledCompletion(tokens=(1, 2), logprobs=(-1.0, -1.0))
    >>> short = SampledCompletion(tokens=(1,), logprobs=(-1.0,))
    >>> prefixes([long, short], stride=1, max_tokens=8)
    [(0, {(): 0.0}), (1, {(1,): -1.0}), (2, {(1, 2): -2.0})]
    """
    if stride < 1:
        raise ValueError(f"stride {stride}; at least 1 is needed")
    tables_by_place: list[tuple[int, dict[Tokens, float]]] = []
    for at in range(0, max_tokens + 1, stride):
        begun = {
            completion.tokens[:at]: math.fsum(completion.logprobs[:at])
            for completion in samples
            if len(completion.tokens) >= at
        }
        if at == 0:
            begun = {(): 0.0}
        if not begun:
            break
        tables_by_place.append((at, begun))
    return tables_by_place


def tables(
    samples: Sequence[SampledCompletion],
    setting: RelaxedSetting,
    target_tokens: int,
    target_after: Callable[[Tokens], float],
) -> Tables:
    """Return the tables of one target.

    Parameters
    ----------
    target_after : the log-probability of the target after the prompt and a beginning
    """
    positions = prefixes(samples, stride=setting.stride, max_tokens=setting.max_tokens)
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
