"""Whether there is room for a record: in an entry's `max_tokens`, and in its window.

A server cuts a reply at `max_tokens`, and some cut the prompt silently at their window; what comes
back then looks like a model's mistake. So it is counted before anything is asked: what the median
reference record needs, and what each prompt leaves of a stated `context`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from medassay.core.records.health_record import reference_text
from medassay.core.records.item import Item
from medassay.core.records.model import ModelSpec
from medassay.core.records.prompt import Prompt, message_text
from medassay.core.records.target import Record, Report
from medassay.core.records.task import Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

RECORD_FORMS = (Record.form, Report.form)
CHARACTERS_PER_TOKEN = 3  # of German reports and of JSON; English prose has about four
_MESSAGE_TOKENS = 6  # that a conversation's form puts around a message, roughly
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
def _tokenizer(source: str) -> "PreTrainedTokenizerBase | None":
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
        if spec.context is None or item.form not in RECORD_FORMS or spec.is_baseline:
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
    return sum(count(message_text(message)) + _MESSAGE_TOKENS for message in prompt.messages)


def room_of(task: Task, items: Iterable[Item]) -> ReplyRoom:
    """Return the room that the records of some items need; of other tasks nothing is needed."""
    if not set(RECORD_FORMS) & set(task.readers):
        return ReplyRoom()
    return ReplyRoom(
        tuple(
            reference_text(item.target.record) for item in items if isinstance(item.target, Record)
        )
    )
