"""Targets scored after the beginnings of completions, on the states that drawing these left behind.

What Relaxed Perplexity is computed from (`medassay.kinds.likelihood.relaxed_perplexity`). Where a
model's cache cannot be used so, completions are read anew at every token, and each beginning is
scored as a sequence of its own: slower, the same values.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from medassay.core.records.likelihood import LogLikelihood
from medassay.core.records.relaxed import (
    DrawnCompletions,
    RelaxedSetting,
    SampledCompletion,
    prefixes,
    tables,
)
from medassay.model.context import blank_after
from medassay.model.likelihood import LikelihoodEngine
from medassay.model.packing import Ids, PackedRow, lacks_memory, log_probabilities
from medassay.model.sampling import States, draw

if TYPE_CHECKING:
    from transformers import Cache

Beginnings = dict[Ids, tuple[float, ...]]  # beginning → log-probability of each target
_WIDTH = 256  # tokens of one pass: beyond, attention to what is masked costs more than it saves


def relaxed_tables(
    engine: LikelihoodEngine,
    context: str,
    targets: Sequence[str],
    setting: RelaxedSetting,
    *,
    seed: int,
) -> DrawnCompletions:
    """Draw completions of a context and score every target after their beginnings.

    Parameters
    ----------
    seed : of the draws; the same seed on the same machine gives the same completions

    Raises
    ------
    ValueError
        When a target is empty, or context, completion and target do not fit the model's context.
    """
    context_ids = engine.begun(engine.ids(context))
    target_ids = [_target(engine, context, target) for target in targets]
    longest = len(context_ids) + setting.max_tokens + max(map(len, target_ids), default=0)
    if longest > engine.longest:
        raise ValueError(
            f"context, completion and target have up to {longest} tokens; the model reads"
            f" {engine.longest}"
        )
    cached = engine.packs_up_to(longest)
    samples, kept_samples, states = draw(engine, context_ids, setting, seed=seed, cached=cached)
    begun = [
        beginning
        for _, prefix_tables in prefixes(
            kept_samples, stride=setting.stride, max_tokens=setting.max_tokens
        )
        for beginning in prefix_tables
    ]
    if states is None:
        scored = _scored_plainly(engine, context_ids, begun, target_ids)
    else:
        scored = _scored_on_states(engine, context_ids, kept_samples, begun, target_ids, states)
    texts = [engine.tokenizer.decode(list(sample.tokens)) for sample in kept_samples]
    return DrawnCompletions(
        completions=kept_samples,
        texts=tuple(texts),
        ends=tuple(
            tuple(
                len(engine.tokenizer.decode(list(sample.tokens[:at]))) if at else 0
                for at in range(0, len(sample.tokens) + 1, setting.stride)
            )
            for sample in kept_samples
        ),
        samples=len(samples),
        distinct=len({sample.tokens for sample in samples}),
        tables=tuple(
            tables(kept_samples, setting, len(tokens), partial(_at, scored, at))
            for at, tokens in enumerate(target_ids)
        ),
    )


def _at(scored: Beginnings, number: int, beginning: Ids) -> float:
    """Return how likely the target of this number is after a beginning."""
    return scored[beginning][number]


def _target(engine: LikelihoodEngine, context: str, target: str) -> Ids:
    """Return a target's tokens, by itself, with a blank before it where the context ends without
    one.
    """
    if not target.strip():
        raise ValueError("an empty target has no likelihood")
    return engine.ids(blank_after(context) + target)


def _scored_plainly(
    engine: LikelihoodEngine, context_ids: Ids, begun: Sequence[Ids], target_ids: Sequence[Ids]
) -> Beginnings:
    """Return the log-probability of each target after each beginning, each a request of its own."""
    requests = [
        ((*context_ids, *beginning), target) for beginning in begun for target in target_ids
    ]
    values = iter(engine.score_tokens(requests))
    return {beginning: tuple(next(values).total for _ in target_ids) for beginning in begun}


def _scored_on_states(
    engine: LikelihoodEngine,
    context_ids: Ids,
    kept_samples: Sequence[SampledCompletion],
    begun: Sequence[Ids],
    target_ids: Sequence[Ids],
    states: States,
) -> Beginnings:
    """Return the same from few passes: behind the states of a completion stand targets after all of
    its beginnings.

    A target is read from the last token of its beginning on, which is read again, once for all
    targets: so their first tokens are predicted here too. It sees the states up to there, and
    itself.
    """
    totals: dict[Ids, list[float]] = {beginning: [0.0] * len(target_ids) for beginning in begun}
    waiting: list[tuple[int, Ids, int]] = [
        (_owner(kept_samples, beginning), beginning, at)
        for beginning in begun
        for at in range(len(target_ids))
    ]
    waiting.sort(key=lambda pending: pending[0])  # stable: the targets of a beginning stay together
    width = min(_WIDTH, engine.budget)
    while waiting:
        number = waiting[0][0]
        row, n_taken = PackedRow(states.length(number)), 0
        for owner, beginning, at in waiting:
            before = (*context_ids, *beginning)
            unit = (before[-1:], target_ids[at], len(before) - 1)
            if owner != number or (n_taken and len(row.ids) + row.cost(*unit) > width):
                break
            row.add(unit[0], unit[1], after=unit[2])
            n_taken += 1
        try:
            values = _read(engine, row, states.cache(number))
        except (RuntimeError, MemoryError) as error:
            if not lacks_memory(error) or n_taken == 1:
                raise
            width = max(1, len(row.ids) // 2)
            continue
        for (_, beginning, at), value in zip(waiting, values, strict=False):
            totals[beginning][at] = math.fsum(value.tokens)
        waiting = waiting[n_taken:]
    return {beginning: tuple(values) for beginning, values in totals.items()}


def _owner(kept_samples: Sequence[SampledCompletion], beginning: Ids) -> int:
    """Return the first completion that begins so."""
    return next(i for i, c in enumerate(kept_samples) if c.tokens[: len(beginning)] == beginning)


def _read(engine: LikelihoodEngine, row: PackedRow, past: "Cache | None") -> list[LogLikelihood]:
    """Return the likelihoods of a row behind a cache."""
    import torch

    device = engine.model.device
    with torch.inference_mode():
        logits = engine.logits(row.tensors(device, engine.model.dtype), past)
        return row.read(log_probabilities(logits(0, row.predicting), row.targets, device))
