"""What a model would be asked and what it would cost, before anything is paid."""

from collections.abc import Iterator
from typing import Any

from medassay.core.canonical import canonical
from medassay.core.model import ModelSpec
from medassay.core.trial import Prompt
from medassay.core.verdict import Case
from medassay.runner.asking import request_constant, sampling_of
from medassay.runner.budget import CHARACTERS_PER_TOKEN, cost, estimated_tokens
from medassay.runner.judging import Bench
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
        if store.get(request_key(constant, prompt.asked, repeat)) is not None:
            stored += 1
            continue
        read = estimated_tokens(prompt)
        calls += 1
        tokens += read + spec.max_tokens
        money += cost(spec, read, spec.max_tokens)
    return _row(spec, calls, stored, tokens, money)


def preview_judge(schedule: Schedule, bench: Bench, spec: ModelSpec) -> dict[str, Any]:
    """Return calls and upper bounds for one judge: every answer as long as its model may write.

    Replies that must be asked again (at most twice) come on top; stored ones are not known before
    the answers are.
    """
    calls = tokens = 0
    money = 0.0
    for batch in _batches(schedule, bench, spec):
        asked = bench.judges[batch[0].item.domain].step(batch, [])
        if isinstance(asked, Prompt):
            read = estimated_tokens(asked)
            calls += 1
            tokens += read + spec.max_tokens
            money += cost(spec, read, spec.max_tokens)
    return _row(spec, calls, 0, tokens, money)


def _batches(schedule: Schedule, bench: Bench, spec: ModelSpec) -> Iterator[list[Case]]:
    """Yield what a judge would be shown, in batches of one domain and language."""
    gathered: dict[tuple[str, str], list[Case]] = {}
    for name, tested in schedule.specs.items():
        if all(judge.id != spec.id for judge in bench.seats[name]):
            continue
        longest = "x" * (tested.max_tokens * CHARACTERS_PER_TOKEN)
        for number in schedule.numbers(name):
            cell, item, _ = schedule.trial(number)
            if item.form not in schedule.task.judges:
                continue
            alike = gathered.setdefault((cell.domain, item.language), [])
            alike.append(Case(item=item, text=longest))
            if len(alike) == bench.judges[cell.domain].batch:
                yield alike.copy()
                alike.clear()
    yield from (rest for rest in gathered.values() if rest)


def _row(spec: ModelSpec, calls: int, stored: int, tokens: int, money: float) -> dict[str, Any]:
    return {
        "model": spec.id,
        "calls": calls,
        "stored": stored,
        "tokens": tokens,
        "money": round(money, 6),
        "currency": spec.price.currency,
    }
