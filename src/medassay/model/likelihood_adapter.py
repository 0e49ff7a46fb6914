"""Prompts that ask for likelihoods, answered by an engine: what a local provider does instead of
generating.

Prompts of one batch are scored together; one that cannot be answered (too long for the model, say)
fails alone.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from medassay.core.canonical import sha256_hex
from medassay.core.records.completion import Completion, Usage
from medassay.core.records.likelihood import LikelihoodRequest, LogLikelihood
from medassay.core.records.prompt import Prompt
from medassay.errors import Permanent
from medassay.model.context import blank_after, joined
from medassay.model.likelihood import LikelihoodEngine
from medassay.model.packing import Request
from medassay.model.relaxed import relaxed_tables

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def measure(
    engine: LikelihoodEngine,
    prompts: Sequence[Prompt],
    *,
    seed: int,
    repeats: Sequence[int],
    name: str,
) -> list[Completion | Permanent]:
    """Return the likelihoods that each prompt asks for, or why it has none.

    Parameters
    ----------
    seed : of the run; each prompt and repeat draws completions by a seed of its own
    repeats : of each prompt
    name : of the model, for errors
    """
    started = time.perf_counter()
    requests_of = [_requests_of(engine, prompt) for prompt in prompts]
    requests = [
        r
        for asked_requests in requests_of
        if not isinstance(asked_requests, ValueError)
        for r in asked_requests
    ]
    scores = iter(engine.score_tokens(requests))
    completions: list[Completion | Permanent] = []
    for prompt, prompt_requests, repeat in zip(prompts, requests_of, repeats, strict=True):
        request = _request_of(prompt)
        try:
            if isinstance(prompt_requests, ValueError):
                raise prompt_requests
            if request.relaxed is not None:
                completions.append(_relaxed_completion(engine, prompt, request, seed + repeat))
            else:
                completions.append(_scored(engine, request, prompt_requests, scores))
        except ValueError as error:
            completions.append(Permanent(f"{name}: {error}"))
    seconds = (time.perf_counter() - started) / len(prompts)
    return [
        replace(completion, seconds=seconds) if isinstance(completion, Completion) else completion
        for completion in completions
    ]


def _request_of(prompt: Prompt) -> LikelihoodRequest:
    if prompt.likely is None:
        raise ValueError("a prompt that asks for a reply has no likelihoods")
    return prompt.likely


def _requests_of(engine: LikelihoodEngine, prompt: Prompt) -> "list[Request] | ValueError":
    """Return the requests of a prompt, those of one text together.

    None for completions to be drawn.
    """
    request = _request_of(prompt)
    try:
        if request.relaxed is not None:
            return []
        if not prompt.messages:
            return [request for text in request.continuations for request in engine.windows(text)]
        context = context_text(engine.tokenizer, prompt, chat_template=request.chat_template)
        blank = "" if request.chat_template else blank_after(context)
        requests = [engine.encode(context, blank + text) for text in request.continuations]
        for _, continuation in requests:
            engine.refuse_too_long(continuation)
    except ValueError as error:
        return error
    return requests


def context_text(
    tokenizer: "PreTrainedTokenizerBase", prompt: Prompt, *, chat_template: bool
) -> str:
    """Return the messages of a prompt as the text that a model goes on from."""
    if chat_template:
        if not tokenizer.chat_template:
            raise ValueError("its tokenizer has no chat template; leave chat_template out")
        text: str = tokenizer.apply_chat_template(
            list(prompt.messages), tokenize=False, add_generation_prompt=True
        )
        return text
    return joined(prompt.messages)


def _scored(
    engine: LikelihoodEngine,
    request: LikelihoodRequest,
    requests: Sequence[Request],
    scores: Iterator[LogLikelihood],
) -> Completion:
    """Return the likelihoods of some texts, each the sum of its windows if it stands alone."""
    parts = [next(scores) for _ in requests]
    if len(parts) != len(request.continuations):  # windows of the one text that stands alone
        parts = [engine.joined(parts)]
    read = sum(len(context) for context, _ in requests)
    return Completion(
        text="",
        usage=Usage(prompt=read, completion=sum(part.n_tokens for part in parts)),
        likelihoods=tuple(
            likelihood.of(text)
            for likelihood, text in zip(parts, request.continuations, strict=True)
        ),
    )


def _relaxed_completion(
    engine: LikelihoodEngine, prompt: Prompt, request: LikelihoodRequest, seed: int
) -> Completion:
    """Return completions and the tables of every text in them."""
    setting = request.relaxed
    if setting is None:
        raise ValueError("no completions were asked for")
    context = context_text(engine.tokenizer, prompt, chat_template=request.chat_template)
    own_seed = int(sha256_hex(f"{seed}\x1f{prompt.item_id}".encode())[:15], 16)
    sampled = relaxed_tables(engine, context, request.continuations, setting, seed=own_seed)
    written = sum(len(sample.tokens) for sample in sampled.completions)
    return Completion(
        text="",
        usage=Usage(prompt=len(engine.ids(context)), completion=written),
        drawn=sampled.to_dict(stride=setting.stride),
    )
