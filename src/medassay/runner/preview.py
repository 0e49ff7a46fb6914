"""What a model would be asked and what it would cost, before anything is paid."""

from typing import Any

from medassay.core.canonical import canonical
from medassay.core.model import ModelSpec
from medassay.runner.asking import request_constant, sampling_of
from medassay.runner.budget import cost, estimated_tokens
from medassay.runner.schedule import Schedule
from medassay.storage.response import ResponseStore, request_key


def preview_model(schedule: Schedule, spec: ModelSpec, store: ResponseStore) -> dict[str, Any]:
    """Return calls, stored replies, and upper bounds of tokens and money for one model."""
    constant = canonical(request_constant(spec, sampling_of(spec, schedule.plan.seed)))
    calls = stored = tokens = 0
    money = 0.0
    for number in () if spec.is_baseline else schedule.numbers(spec.id):
        cell, item, repeat = schedule.trial(number)
        prompt = schedule.prompt(cell, item)
        if store.get(request_key(constant, prompt.encoded, repeat)) is not None:
            stored += 1
            continue
        read = estimated_tokens(prompt)
        calls += 1
        tokens += read + spec.max_tokens
        money += cost(spec, read, spec.max_tokens)
    return {
        "model": spec.id,
        "calls": calls,
        "stored": stored,
        "tokens": tokens,
        "money": round(money, 6),
        "currency": spec.price.currency,
    }
