"""Limits of replies and windows that are too short for the records of a schedule."""

from collections.abc import Iterator, Mapping

from medassay.core.records.model import ModelSpec
from medassay.runner.reply_room import (
    CHARACTERS_PER_TOKEN,
    RECORD_FORMS,
    ReplyRoom,
    prompt_tokens,
    token_counter,
)
from medassay.runner.schedule import Schedule

_NAMED = 10  # items of one line


def room_lines(schedule: Schedule) -> Iterator[str]:
    """Yield, model by model, a line on each limit that is too short for the records of a
    schedule.
    """
    room: ReplyRoom = schedule.room
    if not set(RECORD_FORMS) & set(schedule.task.readers):
        return
    for name, spec in schedule.specs.items():
        if spec.is_scripted:
            continue
        how = (
            "by its own tokenizer"
            if token_counter(spec)[1]
            else f"estimated, {CHARACTERS_PER_TOKEN} characters each"
        )
        need = room.need(spec)
        if spec.reply_tokens < need:
            yield (
                f"model '{name}': max_tokens is {spec.reply_tokens:,}, the median reference record"
                f" has {need:,} tokens ({how}), without the thoughts before it: most replies will"
                " be cut off and score 0; set max_tokens in the models file, to about"
                f" {_round(3 * need):,}"
            )
        if spec.context is not None:
            yield from _window_lines(schedule, spec, how)


def _window_lines(schedule: Schedule, spec: ModelSpec, how: str) -> Iterator[str]:
    lowered: dict[str, int] = {}
    refused: dict[str, int] = {}
    for number in schedule.numbers(spec.id):
        cell, item, repeat = schedule.trial(number)
        if repeat:
            continue
        prompt = schedule.prompt(cell, item)
        if prompt.max_tokens == 0:
            refused[item.id] = max(prompt_tokens(spec, prompt), refused.get(item.id, 0))
        elif prompt.max_tokens is not None:
            lowered[item.id] = min(prompt.max_tokens, lowered.get(item.id, prompt.max_tokens))
    window = f"model '{spec.id}': window of {spec.context:,} tokens ({how}):"
    if lowered:
        yield (
            f"{window} max_tokens is lowered from {spec.reply_tokens:,} to"
            f" {min(lowered.values()):,} or more for {len(lowered)} item{'s' * (len(lowered) > 1)}:"
            f" {_names(lowered)}"
        )
    if refused:
        yield (
            f"{window} {len(refused)} item{'s' * (len(refused) > 1)} will not be asked, since the"
            f" median record would not fit behind the prompt: {_names(refused, 'prompt of')}"
        )


def _names(tokens: Mapping[str, int], what: str = "to") -> str:
    names_shown = [f"{name} ({what} {n:,} tokens)" for name, n in sorted(tokens.items())[:_NAMED]]
    more = len(tokens) - len(names_shown)
    return ", ".join(names_shown) + (f" and {more} more" if more else "")


def _round(tokens: int) -> int:
    return -(-tokens // 256) * 256
