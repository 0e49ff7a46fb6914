"""Relaxed Perplexity: how likely a model is to say something at some point of its completion,
whatever comes before.

A target may stand anywhere in a completion. At positions 0, stride, 2·stride … its probability is
taken after each distinct beginning of the completions kept, and combined in four ways. `sum` is the
published form; its terms are no probabilities of exclusive events, so that one may exceed 1, which
is told and not clipped.

Source: specification of perplexity, 8.2.
"""

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from medassay.core.records.answer import Answer
from medassay.core.records.item import Item
from medassay.core.records.likelihood import finite_or_none
from medassay.core.records.relaxed import MODES, Mode, Prefix, Tables
from medassay.kinds.likelihood.perplexity import finite_exp

REVISION = 1


class RelaxedEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Relaxed cross-entropy and perplexity of one target, lower is better.

    `log_p` are the log-probabilities at the positions, in nats; `cross_entropy` their negative sum,
    infinite where one is impossible, and `value` is None then, or where it is too large for a
    number. `above_one` says that a sum exceeded 1.
    """

    mode: Mode
    log_p: tuple[float, ...]
    cross_entropy: float
    per_position: float
    value: float | None
    above_one: bool
    reason: str = ""


def combine(tables: Tables, mode: Mode) -> RelaxedEstimate:
    """Return the relaxed perplexity of one target.

    Raises
    ------
    ValueError
        When there is no position, a target without tokens, or an unknown mode.
    """
    if not tables.positions or tables.target_tokens < 1:
        raise ValueError("relaxed perplexity needs a position and a target of at least one token")
    log_p = tuple(_combined(position.prefixes, mode) for position in tables.positions)
    entropy = -math.fsum(log_p) if all(map(math.isfinite, log_p)) else math.inf
    length = tables.positions[-1].at + tables.target_tokens
    value = finite_exp(entropy / length)
    if math.isinf(entropy):
        reason = "the target is impossible at a position"
    else:
        reason = "" if value is not None else "too large for a number"
    return RelaxedEstimate(
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
        return log_sum_exp([prefix.target for prefix in begun])
    if mode == "mean":
        return log_sum_exp([prefix.target for prefix in begun]) - math.log(len(begun))
    weighted = log_sum_exp([prefix.target + prefix.prefix for prefix in begun])
    if mode == "weighted":
        return weighted
    if mode == "conditional":
        return weighted - log_sum_exp([prefix.prefix for prefix in begun])
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


ROLES = ("must", "nice")


def relaxed_perplexity(item: Item, answer: Answer) -> tuple[float | None, str]:
    """Return the mean of the published `sum` form over what an answer must have, and why it is None
    if it is.
    """
    values = [combine(tables, "sum") for tables in _targets(item, answer)["must"]]
    for target_values in values:
        if target_values.value is None:
            return None, target_values.reason
    return (
        math.fsum(v for target_values in values if (v := target_values.value) is not None)
        / len(values),
        "drawn",
    )


def relaxed_parts(item: Item, answer: Answer, text: str) -> dict[str, Any]:
    """Return the value of every target in every combination, and their means by role.

    {} for what was not drawn.

    Returns
    -------
    dict
        must and nice (combination → mean over the targets of that role; None where one is None, the
        role absent without targets), per_position (role → combination → mean nats per position),
        log_p (role → mean over its targets of the summed log-probability at each position),
        above_one (targets whose sum exceeds 1 at a position), impossible (targets without a value
        by the sum), n_targets, kept and distinct (completions), targets (each with role, values,
        nats per position, log_p).
    """
    if answer.drawn is None:
        return {}
    targets: list[_TargetEstimates] = []
    means: dict[str, Any] = {}
    per_position: dict[str, dict[Mode, float | None]] = {}
    log_p: dict[str, list[float | None]] = {}
    for role, tables_of_role in _targets(item, answer).items():
        results = [
            _TargetEstimates(role, {mode: combine(tables, mode) for mode in MODES})
            for tables in tables_of_role
        ]
        targets += results
        if results:
            means[role] = {m: _mean([r.by_mode[m].value for r in results]) for m in MODES}
            per_position[role] = {m: _mean([r.per_position[m] for r in results]) for m in MODES}
            positions = zip(*(r.log_p for r in results), strict=True)
            log_p[role] = [_mean(values) for values in positions]
    return {
        **means,
        "per_position": per_position,
        "log_p": log_p,
        "above_one": sum(target.sum.above_one for target in targets),
        "impossible": sum(target.sum.value is None for target in targets),
        "n_targets": len(targets),
        "kept": len(answer.drawn.kept),
        "distinct": answer.drawn.distinct,
        "targets": [target.to_dict() for target in targets],
    }


class _TargetEstimates(msgspec.Struct, frozen=True):
    """One target in every combination."""

    role: str
    by_mode: dict[Mode, RelaxedEstimate]

    @property
    def sum(self) -> RelaxedEstimate:
        """Return the published combination."""
        return self.by_mode["sum"]

    @property
    def per_position(self) -> dict[Mode, float | None]:
        return {m: finite_or_none(result.per_position) for m, result in self.by_mode.items()}

    @property
    def log_p(self) -> list[float | None]:
        return [finite_or_none(value) for value in self.sum.log_p]

    def to_dict(self) -> dict[str, Any]:
        return {
            "role": self.role,
            "values": {mode: result.value for mode, result in self.by_mode.items()},
            "per_position": self.per_position,
            "above_one": self.sum.above_one,
            "log_p": self.log_p,
        }


def _targets(item: Item, answer: Answer) -> dict[str, list[Tables]]:
    """Return the tables of an item's targets by role: what an answer must have first, then what
    would be nice.
    """
    tables = [] if answer.drawn is None else [target.tables for target in answer.drawn.targets]
    must = len(item.must_have)
    return {"must": tables[:must], "nice": tables[must:]}


def _mean(values: Sequence[float | None]) -> float | None:
    finite = [value for value in values if value is not None]
    return math.fsum(finite) / len(finite) if len(finite) == len(values) else None
