"""Completions drawn together from one prefill, and targets scored after their beginnings on the same cache.

What Relaxed Perplexity is computed from (`medassay.score.relaxed_perplexity`). Where a model's cache cannot be used so, completions come
from `generate` and each beginning is scored as a sequence of its own: slower, the same values.
"""

import copy
import math
from collections.abc import Sequence
from typing import Any

from medassay.core.relaxed import Drawn, Sampled, Setting, keep, prefixes, tables
from medassay.model.likelihood import Engine, Ids

Beginnings = dict[Ids, tuple[float, ...]]  # beginning → log-probability of each target


def relaxed_tables(
    engine: Engine, context: str, targets: Sequence[str], setting: Setting, *, seed: int
) -> Drawn:
    """Draw completions of a context and score every target after their beginnings.

    Parameters
    ----------
    seed : of the draws; the same seed on the same machine gives the same completions

    Raises
    ------
    ValueError
        When a target is empty, or context, completion and target do not fit the model's context.
    """
    asked = engine.begun(engine.ids(context))
    wanted = [_target(engine, context, target) for target in targets]
    longest = len(asked) + setting.max_tokens + max(map(len, wanted), default=0)
    if longest > engine.longest:
        raise ValueError(
            f"context, completion and target have up to {longest} tokens; the model reads {engine.longest}"
        )
    cached = engine.packs_up_to(longest)
    drawn, past = _made(engine, asked, setting, seed, cached=cached)
    kept = keep(drawn, setting.keep)
    if past is not None:
        past = _of_kept(engine, drawn, kept, past, beam=setting.sampler == "beam")
    begun = [
        beginning
        for _, some in prefixes(kept, stride=setting.stride, max_tokens=setting.max_tokens)
        for beginning in some
    ]
    if past is None:
        scored = _scored_plainly(engine, asked, begun, wanted)
    else:
        scored = _scored_on_cache(engine, asked, kept, begun, wanted, past)
    said = [engine.tokenizer.decode(list(one.tokens)) for one in kept]
    return Drawn(
        kept=kept,
        texts=tuple(said),
        ends=tuple(
            tuple(
                len(engine.tokenizer.decode(list(one.tokens[:at]))) if at else 0
                for at in range(0, len(one.tokens) + 1, setting.stride)
            )
            for one in kept
        ),
        samples=len(drawn),
        distinct=len({one.tokens for one in drawn}),
        tables=tuple(
            tables(kept, setting, len(tokens), lambda x, at=at: scored[x][at])  # type: ignore[misc]
            for at, tokens in enumerate(wanted)
        ),
    )


def _target(engine: Engine, context: str, target: str) -> Ids:
    """Return a target's tokens, by itself, with a blank before it where the context ends without one."""
    if not target.strip():
        raise ValueError("an empty target has no likelihood")
    blank = "" if not context or context[-1].isspace() else " "
    return engine.ids(blank + target)


def _made(
    engine: Engine, asked: Ids, setting: Setting, seed: int, *, cached: bool
) -> tuple[list[Sampled], Any]:
    """Return completions, and a cache for `_of_kept`; None where it is of no use (`cached` false, or its kind)."""
    import torch

    model = engine.model
    generator = torch.Generator(device=model.device).manual_seed(seed % 2**63)
    with torch.inference_mode():
        output = model(input_ids=torch.tensor([asked], device=model.device), use_cache=True)
        past = output.past_key_values
        usable = cached and hasattr(past, "batch_repeat_interleave")
        if setting.sampler == "beam":
            if usable:
                return _beams(engine, setting, output.logits, _Cached(engine, past)), past
            return _beams(engine, setting, output.logits, _Whole(engine, asked)), None
        if not usable:
            return _draw_plainly(engine, asked, setting, generator), None
        return _draw(engine, setting, generator, output), past


def _draw(engine: Engine, setting: Setting, generator: Any, output: Any) -> list[Sampled]:
    """Return completions drawn side by side; the cache of `output` gets a row for each."""
    ends, past = _ends(engine), output.past_key_values
    past.batch_repeat_interleave(setting.samples)
    logits = output.logits[:, -1].expand(setting.samples, -1)
    told: list[list[int]] = []
    likely: list[list[float]] = []
    open_rows = [True] * setting.samples
    for step in range(setting.max_tokens):
        taken, values = _pick(logits, setting, generator)
        told.append(taken.tolist())
        likely.append(values)
        open_rows = [o and t not in ends for o, t in zip(open_rows, told[-1], strict=True)]
        if not any(open_rows) or step == setting.max_tokens - 1:
            break
        output = engine.model(input_ids=taken[:, None], past_key_values=past, use_cache=True)
        logits = output.logits[:, -1]
    return [_ended(row, told, likely, ends) for row in range(setting.samples)]


class _Cached:
    """The next logits of beams, read on from a copy of the prompt's cache."""

    def __init__(self, engine: Engine, past: Any) -> None:
        self._engine = engine
        self._past = copy.deepcopy(past)

    def after(self, parents: Sequence[int], beams: Sequence[Ids]) -> Any:
        """Return the logits after each beam; it goes on from the beam that was at its parent's place."""
        import torch

        device = self._engine.model.device
        self._past.batch_select_indices(torch.tensor(parents, device=device))
        last = torch.tensor([[beam[-1]] for beam in beams], device=device)
        return self._engine.model(
            input_ids=last, past_key_values=self._past, use_cache=True
        ).logits[:, -1]


class _Whole:
    """The next logits of beams, each read anew."""

    def __init__(self, engine: Engine, asked: Ids) -> None:
        self._engine = engine
        self._asked = asked

    def after(self, parents: Sequence[int], beams: Sequence[Ids]) -> Any:
        """Return the logits after each beam."""
        import torch

        ids = [(*self._asked, *beam) for beam in beams]
        return self._engine.model(
            input_ids=torch.tensor(ids, device=self._engine.model.device)
        ).logits[:, -1]


def _beams(
    engine: Engine, setting: Setting, logits: Any, reading: "_Cached | _Whole"
) -> list[Sampled]:
    """Return the likeliest completions that a beam search finds, as many as `samples`; one that ended competes with its end.

    At each step the likeliest continuations of all beams go on.
    """
    import torch

    ends, width = _ends(engine), setting.samples
    live: list[Sampled] = [Sampled(tokens=(), logprobs=())]
    logits, ended = logits[:, -1], []
    for step in range(setting.max_tokens):
        chances = logits.float().log_softmax(dim=-1)
        totals = torch.tensor([one.total for one in live], dtype=torch.float64)
        whole = (chances.double().cpu() + totals[:, None]).flatten()
        # Each beam has at most one end for each stop token: so many candidates are always enough.
        best = whole.topk(min(len(whole), width + len(live) * len(ends)))
        following: list[tuple[int, Sampled]] = []
        for value, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            beam, token = divmod(place, chances.shape[1])
            if token in ends:
                ended.append((value, live[beam]))
            elif len(following) < width:
                own = (*live[beam].logprobs, float(chances[beam, token]))
                following.append(
                    (beam, Sampled(tokens=(*live[beam].tokens, token), logprobs=own))
                )
        live = [one for _, one in following]
        ended = sorted(ended, key=lambda pair: -pair[0])[:width]
        surest = len(ended) == width and ended[-1][0] >= max(one.total for one in live)
        if surest or step == setting.max_tokens - 1:
            break
        logits = reading.after([beam for beam, _ in following], [one.tokens for one in live])
    found = [*ended, *((one.total, one) for one in live)]
    return [one for _, one in sorted(found, key=lambda pair: -pair[0])[:width]]


def _of_kept(
    engine: Engine, drawn: Sequence[Sampled], kept: Sequence[Sampled], past: Any, *, beam: bool
) -> Any:
    """Return the cache with a row for each completion kept: of samples their own rows, of beams read once more."""
    import torch

    device = engine.model.device
    if not beam:
        past.batch_select_indices(
            torch.tensor([drawn.index(one) for one in kept], device=device)
        )
        return past
    past.batch_repeat_interleave(len(kept))
    longest = max(len(one.tokens) for one in kept)
    if longest:
        # What pads a row stands behind it, where no token of it looks.
        rows = [[*one.tokens, *[0] * (longest - len(one.tokens))] for one in kept]
        with torch.inference_mode():
            engine.model.base_model(
                input_ids=torch.tensor(rows, device=device),
                past_key_values=past,
                use_cache=True,
            )
    return past


def _ends(engine: Engine) -> frozenset[int]:
    """Return the tokens that end a completion."""
    given = getattr(engine.model.generation_config, "eos_token_id", None)
    listed = given if isinstance(given, list) else [given, engine.tokenizer.eos_token_id]
    return frozenset(token for token in listed if token is not None)


def _pick(logits: Any, setting: Setting, generator: Any) -> tuple[Any, list[float]]:
    """Return a token for each row, drawn by temperature and top-p, and its own log-probability without either."""
    import torch

    logits = logits.float()
    plain = logits.log_softmax(dim=-1)
    chances, order = (
        (logits / setting.temperature).softmax(dim=-1).sort(dim=-1, descending=True)
    )
    # A token stays while what stands before it has not reached top-p: the likeliest always does.
    before = chances.cumsum(dim=-1) - chances
    chances = chances.masked_fill(before >= setting.top_p, 0.0)
    places = torch.multinomial(chances, 1, generator=generator)
    taken = order.gather(1, places)[:, 0]
    return taken, plain.gather(1, taken[:, None])[:, 0].tolist()


def _ended(
    row: int,
    told: Sequence[Sequence[int]],
    likely: Sequence[Sequence[float]],
    ends: frozenset[int],
) -> Sampled:
    """Return a completion without its stop token and what follows."""
    tokens = [step[row] for step in told]
    stop = next((at for at, token in enumerate(tokens) if token in ends), len(tokens))
    values = [step[row] for step in likely[:stop]]
    return Sampled(tokens=tuple(tokens[:stop]), logprobs=tuple(values))


def _draw_plainly(
    engine: Engine, asked: Ids, setting: Setting, generator: Any
) -> list[Sampled]:
    """Return completions token by token, the whole sequences read anew each time."""
    import torch

    model, ends = engine.model, _ends(engine)
    ids = torch.tensor([asked] * setting.samples, device=model.device)
    told: list[list[int]] = []
    likely: list[list[float]] = []
    open_rows = [True] * setting.samples
    while any(open_rows) and len(told) < setting.max_tokens:
        taken, values = _pick(model(input_ids=ids).logits[:, -1], setting, generator)
        told.append(taken.tolist())
        likely.append(values)
        open_rows = [o and t not in ends for o, t in zip(open_rows, told[-1], strict=True)]
        ids = torch.cat([ids, taken[:, None]], dim=1)
    return [_ended(row, told, likely, ends) for row in range(setting.samples)]


def _scored_plainly(
    engine: Engine, asked: Ids, begun: Sequence[Ids], wanted: Sequence[Ids]
) -> Beginnings:
    """Return the log-probability of each target after each beginning, each a request of its own."""
    requests = [((*asked, *beginning), target) for beginning in begun for target in wanted]
    found = iter(engine.score_tokens(requests))
    return {beginning: tuple(next(found).total for _ in wanted) for beginning in begun}


def _scored_on_cache(
    engine: Engine,
    asked: Ids,
    kept: Sequence[Sampled],
    begun: Sequence[Ids],
    wanted: Sequence[Ids],
    past: Any,
) -> Beginnings:
    """Return the same from one pass: all targets after all beginnings of a completion stand in its row.

    A target is read from the last token of its beginning on, which is read again: so its first token is predicted
    here too. It sees the cache up to there, and itself.
    """
    import torch

    owner = {
        beginning: next(
            i for i, c in enumerate(kept) if c.tokens[: len(beginning)] == beginning
        )
        for beginning in begun
    }
    segments: list[list[tuple[Ids, int]]] = [[] for _ in kept]
    for beginning in begun:
        segments[owner[beginning]] += [(beginning, at) for at in range(len(wanted))]
    device, dtype = engine.model.device, engine.model.dtype
    cached = int(past.get_seq_length())
    width = max(sum(len(wanted[at]) for _, at in some) for some in segments)
    ids = torch.zeros((len(kept), width), dtype=torch.long, device=device)
    positions = torch.zeros_like(ids)
    sees = torch.zeros((len(kept), width, cached + width), dtype=torch.bool, device=device)
    places: list[tuple[int, int, Ids, int]] = []
    for row, some in enumerate(segments):
        start = 0
        for beginning, at in some:
            target, before = wanted[at], (*asked, *beginning)
            end = start + len(target)
            ids[row, start:end] = torch.tensor((before[-1], *target[:-1]), device=device)
            positions[row, start:end] = (
                torch.arange(len(target), device=device) + len(before) - 1
            )
            sees[row, start:end, : len(before) - 1] = True
            own = torch.ones((len(target), len(target)), dtype=torch.bool, device=device).tril()
            sees[row, start:end, cached + start : cached + end] = own
            places.append((row, start, beginning, at))
            start = end
        for at in range(
            start, width
        ):  # padding sees itself: a row of nothing but −∞ is no number
            sees[row, at, cached + at] = True
    mask = torch.zeros(sees.shape, dtype=dtype, device=device)
    mask = mask.masked_fill(~sees, torch.finfo(dtype).min)[:, None]
    found: dict[Ids, list[float]] = {beginning: [0.0] * len(wanted) for beginning in begun}
    with torch.inference_mode():
        logits = engine.logits(
            {"input_ids": ids, "position_ids": positions, "attention_mask": mask}, past
        )
        for row, start, beginning, at in places:
            target = wanted[at]
            own = logits(row, range(start, start + len(target))).float()
            taken = torch.tensor(target, device=device)
            values = own.gather(1, taken[:, None])[:, 0] - own.logsumexp(dim=1)
            found[beginning][at] = math.fsum(values.tolist())
    return {beginning: tuple(values) for beginning, values in found.items()}
