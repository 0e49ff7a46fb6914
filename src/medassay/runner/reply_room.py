"""Whether there is room for a record: in an entry's `max_tokens`, and in its window.

A server cuts a reply at `max_tokens`, and some cut the prompt silently at their window; what comes
back then looks like a model's mistake. So it is counted before anything is asked: what the median
reference record needs, and what each prompt leaves of a stated `context`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from medassay.core.records.health_record import reference_text
from medassay.core.records.item import Form, Item
from medassay.core.records.model import ModelSpec
from medassay.core.records.trial import Prompt, said_in

if TYPE_CHECKING:
    from medassay.runner.schedule import Schedule

FORMS: tuple[Form, ...] = ("record", "report")
CHARACTERS_PER_TOKEN = 3  # of German reports and of JSON; English prose has about four
_MESSAGE_TOKENS = 6  # that a conversation's form puts around a message, roughly
_NAMED = 10  # items of one line
CountTokens = Callable[[str], int]


def token_counter(spec: ModelSpec) -> tuple[CountTokens, bool]:
    """Return what counts the tokens of a text for an entry, and whether that is its own
    tokenizer.
    """
    tokenizer = _tokenizer(spec.path or spec.model) if spec.in_process else None
    if tokenizer is None:
        return lambda text: -(-len(text) // CHARACTERS_PER_TOKEN), False
    return lambda text: len(tokenizer(text).input_ids), True


@lru_cache(maxsize=4)
def _tokenizer(source: str) -> Any:
    """Return the tokenizer in a folder of weights, None where there is none to read."""
    if source.startswith("embedded:"):
        import platformdirs

        source = str(Path(platformdirs.user_cache_dir("medassay")) / "smollm2-135m-instruct")
    if not (Path(source) / "tokenizer_config.json").is_file():
        return None
    try:
        import transformers
    except ModuleNotFoundError:
        return None
    return transformers.AutoTokenizer.from_pretrained(source, local_files_only=True)


@dataclass(frozen=True)
class ReplyRoom:
    """How many tokens the median reference of a run's records has, by the way tokens are
    counted.
    """

    golds: tuple[str, ...] = ()
    _needs: dict[str, int] = field(default_factory=dict, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs: it counts by itself."""
        return {"golds": self.golds, "_needs": dict(self._needs)}

    def need(self, spec: ModelSpec) -> int:
        """Return the tokens that the median reference record needs, 0 where there is no
        reference.
        """
        if spec.id not in self._needs:
            count, _ = token_counter(spec)
            self._needs[spec.id] = round(median(map(count, self.golds))) if self.golds else 0
        return self._needs[spec.id]

    def fit(self, spec: ModelSpec, item: Item, prompt: Prompt) -> Prompt:
        """Return a prompt with the reply as short as the window leaves room for.

        `max_tokens` 0 where the median record does not fit.
        """
        if spec.context is None or item.form not in FORMS or spec.is_baseline:
            return prompt
        room = spec.context - prompt_tokens(spec, prompt)
        if room >= spec.reply_tokens:
            return prompt
        return replace(prompt, max_tokens=room if room >= max(1, self.need(spec)) else 0)

    def refusal(self, spec: ModelSpec, item: Item, prompt: Prompt) -> str:
        """Return why an item is not asked: what its prompt leaves of the window."""
        read = prompt_tokens(spec, prompt)
        how = "" if token_counter(spec)[1] else " (estimated)"
        return (
            f"{spec.id}: item '{item.id}' is not asked: its prompt of {read:,} tokens{how} leaves"
            f" {max(0, spec.context or 0) - read:,} of a window of {spec.context:,}, the median"
            f" record needs {self.need(spec):,}"
        )


def prompt_tokens(spec: ModelSpec, prompt: Prompt) -> int:
    """Return the tokens of a prompt, by the entry's own tokenizer where it is at hand."""
    count, _ = token_counter(spec)
    return sum(count(said_in(message)) + _MESSAGE_TOKENS for message in prompt.messages)


def room_of(schedule: "Schedule") -> ReplyRoom:
    """Return the room that the records of a schedule need; of other tasks nothing is needed."""
    if not set(FORMS) & set(schedule.task.readers):
        return ReplyRoom()
    items = (bank.items[at] for bank, at in schedule.items())
    return ReplyRoom(
        tuple(reference_text(item.record) for item in items if item.record is not None)
    )


def told_room(schedule: "Schedule") -> Iterator[str]:
    """Yield, model by model, a line on each limit that is too short for the records of a
    schedule.
    """
    room: ReplyRoom = schedule.room
    if not set(FORMS) & set(schedule.task.readers):
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
            yield from _told_window(schedule, spec, how)


def _told_window(schedule: "Schedule", spec: ModelSpec, how: str) -> Iterator[str]:
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
