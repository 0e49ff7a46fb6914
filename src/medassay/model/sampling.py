"""Completions of one prompt: drawn side by side from one reading of it, or found by beam search,
each with its states.

States are a model's keys and values, layer by layer. A completion that has ended leaves the batch,
and takes its states along: what is still being written goes on in a smaller one. Each completion
draws from a generator of its own, so that the others change nothing.
"""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

from medassay.core.records.relaxed import RelaxedSetting, SampledCompletion, keep
from medassay.model.likelihood import LikelihoodEngine
from medassay.model.packing import Ids, at_least_single

if TYPE_CHECKING:
    import torch
    from transformers import Cache

# layer → keys and values, shape (1, heads, tokens, dimensions)
RowStates = list[tuple["torch.Tensor", "torch.Tensor"]]
_NUCLEUS = 256  # tokens looked at first: sorting a whole vocabulary costs as much as a small model


class States:
    """The states of some completions behind their prompt, ready to be read on from.

    One is read on at a time.
    """

    def __init__(self, cache: "Cache", rows: Sequence[RowStates]) -> None:
        self._cache = cache
        self._rows = rows

    def cache(self, number: int) -> "Cache":
        """Return the model's cache with one completion in it.

        What is read on leaves the states as they are.
        """
        for layer, (keys, values) in zip(self._cache.layers, self._rows[number], strict=True):
            layer.keys, layer.values = keys, values
            if hasattr(layer, "cumulative_length"):
                layer.cumulative_length = keys.shape[2]
        return self._cache

    def length(self, number: int) -> int:
        """Return how many tokens the states of a completion hold, those of the prompt among
        them.
        """
        return int(self._rows[number][0][0].shape[2])


def _row(cache: "Cache", row: int, length: int) -> RowStates:
    """Return a copy of the states of one row of a cache, over so many tokens."""
    return [
        (
            layer.keys[row : row + 1, :, :length].clone(),
            layer.values[row : row + 1, :, :length].clone(),
        )
        for layer in cache.layers
    ]


def draw(
    engine: LikelihoodEngine, context_ids: Ids, setting: RelaxedSetting, *, seed: int, cached: bool
) -> tuple[list[SampledCompletion], tuple[SampledCompletion, ...], States | None]:
    """Return all completions, those kept, and the states of these in the same order.

    Parameters
    ----------
    cached : whether the model's cache may be used; without it sequences are read anew each time,
        and there are no states
    """
    import torch

    with torch.inference_mode():
        ids = torch.tensor([context_ids], device=engine.model.device)
        output = engine.model(input_ids=ids, use_cache=True)
        past = output.past_key_values
        if not cached or not _can_be_cut(past):
            reading: _CachedLogits | _Whole = _Whole(engine, context_ids)
        else:
            reading = _CachedLogits(engine, past)
        first = output.logits[:, -1]
        if setting.sampler == "beam":
            samples = _beams(engine, setting, first, reading)
            kept_samples = keep(samples, setting.keep)
            return samples, kept_samples, reading.read(kept_samples)
        samples, rows = _samples(engine, setting, first, reading, seed)
        kept_samples = keep(samples, setting.keep)
        return (
            samples,
            kept_samples,
            reading.states([rows[samples.index(sample)] for sample in kept_samples]),
        )


def _can_be_cut(past: "Cache") -> bool:
    """Return whether a cache holds keys and values of each layer, which can be taken apart by
    rows.
    """
    import torch

    layers: Sequence[object] = getattr(past, "layers", ())
    return bool(layers) and all(
        isinstance(keys := getattr(layer, "keys", None), torch.Tensor) and keys.dim() == 4
        for layer in layers
    )


class _CachedLogits:
    """The next logits of several completions, read on from the cache of their prompt."""

    def __init__(self, engine: LikelihoodEngine, past: "Cache") -> None:
        self._engine = engine
        self._past = past
        self._begun = copy.deepcopy(past)
        self._length = int(past.get_seq_length())

    def after(self, parents: Sequence[int], completions: Sequence[Ids]) -> "torch.Tensor":
        """Return the logits after each completion.

        It goes on from the one that was at its parent's place.
        """
        import torch

        device = self._engine.model.device
        if list(parents) != list(range(self._past.layers[0].keys.shape[0])):
            self._past.batch_select_indices(torch.tensor(parents, device=device))
        last = torch.tensor([[completion[-1]] for completion in completions], device=device)
        return self._engine.model(
            input_ids=last, past_key_values=self._past, use_cache=True
        ).logits[:, -1]

    def end(self, place: int) -> RowStates:
        """Return the states of a completion that has ended."""
        rows = int(self._past.layers[0].keys.shape[0])
        # Before anything is read on the prompt's row is that of all.
        return _row(self._past, min(place, rows - 1), int(self._past.get_seq_length()))

    def states(self, rows: Sequence[RowStates]) -> States:
        """Return the states of completions that have ended."""
        return States(self._past, rows)

    def read(self, samples: Sequence[SampledCompletion]) -> States:
        """Return the states of completions that are read once more, padded on the right."""
        import torch

        longest = max(len(sample.tokens) for sample in samples)
        self._begun.batch_repeat_interleave(len(samples))
        if longest:
            # What pads a row stands behind it, where no token of it looks.
            rows = [[*sample.tokens, *[0] * (longest - len(sample.tokens))] for sample in samples]
            self._engine.model.base_model(
                input_ids=torch.tensor(rows, device=self._engine.model.device),
                past_key_values=self._begun,
                use_cache=True,
            )
        return States(
            self._begun,
            [
                _row(self._begun, row, self._length + len(sample.tokens))
                for row, sample in enumerate(samples)
            ],
        )


class _Whole:
    """The next logits of several completions, each read anew."""

    def __init__(self, engine: LikelihoodEngine, context_ids: Ids) -> None:
        self._engine = engine
        self._asked = context_ids

    def after(self, parents: Sequence[int], completions: Sequence[Ids]) -> "torch.Tensor":
        """Return the logits after each completion."""
        import torch

        ids = [(*self._asked, *completion) for completion in completions]
        return self._engine.model(
            input_ids=torch.tensor(ids, device=self._engine.model.device)
        ).logits[:, -1]

    def end(self, place: int) -> RowStates:
        """Return nothing: there are no states to keep."""
        return []

    def states(self, rows: Sequence[RowStates]) -> None:
        """Return None: there are no states."""

    def read(self, samples: Sequence[SampledCompletion]) -> None:
        """Return None: there are no states."""


def _samples(
    engine: LikelihoodEngine,
    setting: RelaxedSetting,
    first: "torch.Tensor",
    reading: "_CachedLogits | _Whole",
    seed: int,
) -> tuple[list[SampledCompletion], list[RowStates]]:
    """Return completions drawn side by side, and the states of each."""
    import torch

    n, ends = setting.samples, stop_tokens(engine)
    device = engine.model.device
    chance = [torch.Generator(device=device).manual_seed((seed + row) % 2**63) for row in range(n)]
    tokens: list[list[int]] = [[] for _ in range(n)]
    values: list[list[float]] = [[] for _ in range(n)]
    states: list[RowStates] = [[] for _ in range(n)]
    still = list(range(n))
    logits, parents = first.expand(n, -1), [0] * n  # all go on from the one prompt
    while still:
        next_tokens = _pick(logits, setting, [chance[row] for row in still])
        staying = []
        for place, (row, (token, value)) in enumerate(zip(still, next_tokens, strict=True)):
            if token not in ends:
                tokens[row].append(token)
                values[row].append(value)
            if token in ends or len(tokens[row]) == setting.max_tokens:
                states[row] = reading.end(place)
            else:
                staying.append(place)
        parents = [parents[place] for place in staying]
        still = [still[place] for place in staying]
        if still:
            logits = reading.after(parents, [tuple(tokens[row]) for row in still])
            parents = list(range(len(still)))
    samples = [
        SampledCompletion(tokens=tuple(token_ids), logprobs=tuple(logprobs))
        for token_ids, logprobs in zip(tokens, values, strict=True)
    ]
    return samples, states


def _pick(
    logits: "torch.Tensor", setting: RelaxedSetting, chance: "Sequence[torch.Generator]"
) -> list[tuple[int, float]]:
    """Return a token for each row, drawn by temperature and top-p, and its own log-probability
    without either.
    """
    import torch

    logits = at_least_single(logits)
    plain = logits - logits.logsumexp(dim=-1, keepdim=True)
    warm = (
        plain.exp() if setting.temperature == 1 else (logits / setting.temperature).softmax(dim=-1)
    )
    likely, order = _likeliest(warm, setting.top_p)
    cumulative = likely.cumsum(dim=-1)
    # A token stays while what stands before it has not reached top-p: the likeliest always does.
    cumulative = cumulative.masked_fill(cumulative - likely >= setting.top_p, 0.0)
    reach, last = cumulative.max(dim=-1)
    picks = []
    for row, generator in enumerate(chance):
        threshold = torch.rand((), generator=generator, device=logits.device) * reach[row]
        place = int(
            torch.searchsorted(cumulative[row, : int(last[row]) + 1], threshold, right=True)
        )
        token = int(order[row, min(place, int(last[row]))])
        picks.append((token, float(plain[row, token])))
    return picks


def _likeliest(chances: "torch.Tensor", top_p: float) -> "tuple[torch.Tensor, torch.Tensor]":
    """Return the likeliest tokens of each row, at least as many as reach top-p, and which they
    are.
    """
    size, vocabulary = _NUCLEUS, chances.shape[-1]
    while True:
        top = chances.topk(min(size, vocabulary), dim=-1)
        if size >= vocabulary or bool((top.values.sum(dim=-1) >= top_p).all()):
            return top.values, top.indices
        size *= 8


def _beams(
    engine: LikelihoodEngine,
    setting: RelaxedSetting,
    first: "torch.Tensor",
    reading: "_CachedLogits | _Whole",
) -> list[SampledCompletion]:
    """Return the likeliest completions that a beam search finds, as many as `samples`.

    One that ended competes with its end.

    At each step the likeliest continuations of all beams go on.
    """
    import torch

    ends, width = stop_tokens(engine), setting.samples
    live: list[SampledCompletion] = [SampledCompletion(tokens=(), logprobs=())]
    logits, ended = first, []
    for step in range(setting.max_tokens):
        logits = at_least_single(logits)
        chances = logits - logits.logsumexp(dim=-1, keepdim=True)
        totals = torch.tensor([beam_state.total for beam_state in live], dtype=torch.float64)
        scores = (chances.double().cpu() + totals[:, None]).flatten()
        # Each beam has at most one end for each stop token: so many candidates are always enough.
        best = scores.topk(min(len(scores), width + len(live) * len(ends)))
        following: list[tuple[int, SampledCompletion]] = []
        for value, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            beam, token = divmod(place, chances.shape[1])
            if token in ends:
                ended.append((value, live[beam]))
            elif len(following) < width:
                logprobs = (*live[beam].logprobs, float(chances[beam, token]))
                following.append(
                    (beam, SampledCompletion(tokens=(*live[beam].tokens, token), logprobs=logprobs))
                )
        live = [beam_state for _, beam_state in following]
        ended = sorted(ended, key=lambda pair: -pair[0])[:width]
        surest = len(ended) == width and ended[-1][0] >= max(
            beam_state.total for beam_state in live
        )
        if surest or step == setting.max_tokens - 1:
            break
        logits = reading.after(
            [beam for beam, _ in following], [beam_state.tokens for beam_state in live]
        )
    finished = [*ended, *((beam_state.total, beam_state) for beam_state in live)]
    return [beam_state for _, beam_state in sorted(finished, key=lambda pair: -pair[0])[:width]]


def stop_tokens(engine: LikelihoodEngine) -> frozenset[int]:
    """Return the tokens that end a completion."""
    eos = getattr(engine.model.generation_config, "eos_token_id", None)
    listed = eos if isinstance(eos, list) else [eos, engine.tokenizer.eos_token_id]
    return frozenset(token for token in listed if token is not None)
