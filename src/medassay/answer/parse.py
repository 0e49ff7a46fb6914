"""Completion → `Answer`: one parser for each form of item."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from medassay.answer.number import extract_number
from medassay.answer.option import extract_option
from medassay.answer.reading import Reading
from medassay.core.item import Item
from medassay.core.likelihood import likeliest, likelihoods_of
from medassay.core.reading import strip_thoughts
from medassay.core.refusal import SAID, declines, only_declines
from medassay.core.revision import revision_id
from medassay.core.trial import Answer, Completion, Prompt

REVISION = 1  # of `read_answer`: which outcome a reply has
BLANK_LINE = "\n\n"
Extraction = Literal["standard", "paper"]
ReadOne = Callable[[Item, Prompt, str, Extraction], tuple[str | None, str]]


_DECLINED = {"refusal": "provider", "moderation": "moderation"}  # finish → reason


class ReadReply(Protocol):
    """Reads one reply; `cut` says that it ended by its token limit."""

    def __call__(
        self, item: Item, prompt: Prompt, text: str, mode: Extraction, *, cut: bool = False
    ) -> Reading:
        """Return what was read."""


@dataclass(frozen=True)
class Parser:
    """Takes the value out of a reply; `revision` is raised by one with every change of what is read."""

    name: str
    read: ReadReply
    revision: int

    @property
    def id(self) -> str:
        """Return `name/revision`."""
        return revision_id(self.name, self.revision)


def whichever_end(read: ReadOne) -> ReadReply:
    """Return the reader that reads a reply in the same way whether it was cut off or not."""

    def read_reply(
        item: Item, prompt: Prompt, text: str, mode: Extraction, *, cut: bool = False
    ) -> Reading:
        return Reading(*read(item, prompt, text, mode))

    return read_reply


def read_choice(
    item: Item, prompt: Prompt, text: str, mode: Extraction
) -> tuple[str | None, str]:
    """Return the bank's letter of the option chosen, undoing the order in which it was shown."""
    letters = prompt.letters or item.letters
    letter, rule = extract_option(text, letters, mode, prompt.options or item.options)
    if letter is None:
        return None, "ambiguous" if rule else "no option found"
    if prompt.order is not None:
        letter = item.letters[prompt.order[letters.index(letter)]]
    return letter, rule or ""


def read_number(
    item: Item, prompt: Prompt, text: str, mode: Extraction
) -> tuple[str | None, str]:
    """Return the number stated, as text that Python reads back exactly."""
    number, reason = extract_number(text, extract=item.extract, locale=item.locale)
    return (None if number is None else repr(number)), reason


def read_text(
    item: Item, prompt: Prompt, text: str, mode: Extraction
) -> tuple[str | None, str]:
    """Return the reply without thoughts and outer blanks; what only declines is no answer."""
    return _unless_declined(item, strip_thoughts(text)[0].strip(), "text")


def _unless_declined(item: Item, kept: str, form: str) -> tuple[str | None, str]:
    """Return a text, unless it does nothing but decline; where criteria say what a good reply does, declining may be it."""
    if not kept:
        return None, "blank"
    if item.form not in _DECLINING_COUNTS and only_declines(kept):
        return None, SAID
    return kept, form


# Forms whose target may ask for just that: a criterion, a pattern.
_DECLINING_COUNTS = ("rubric", "regex")


def paragraph(least: int = 1) -> ReadOne:
    """Return the reader that takes what stands before the first blank line; fewer than `least` characters are no answer.

    Models that end there are told to; of others the rest is left out, so that all are compared on the same.
    """

    def read_paragraph(
        item: Item, prompt: Prompt, text: str, mode: Extraction
    ) -> tuple[str | None, str]:
        kept = strip_thoughts(text)[0]
        if kept != text:  # what separates thoughts from the answer does not end it
            kept = kept.lstrip()
        kept = kept.partition(BLANK_LINE)[0].strip()
        if 0 < len(kept) < least:
            return None, "short"
        return _unless_declined(item, kept, "paragraph")

    return read_paragraph


def read_answer(
    item: Item,
    prompt: Prompt,
    completion: Completion,
    parser: Parser,
    mode: Extraction = "standard",
) -> Answer:
    """Return the answer in a completion, with exactly one outcome.

    `refused` is what the provider says (reason "provider", or "moderation" where the endpoint's own refused the question), or a
    reply that declines in words (reason "said") and in which nothing else was found; `truncated` is a reply that ended by its token limit before its answer did; everything else that cannot be read
    is `unparsed`, with the reason. Likelihoods need no reading: an item with options is answered by its likeliest one, the
    first of equals.
    """
    if completion.likelihoods is not None or completion.drawn is not None:
        return _read_likelihoods(item, prompt, completion)
    text, cut = completion.text, completion.finish == "length"
    if completion.finish in _DECLINED:
        reason = _DECLINED[completion.finish]
        return Answer(item_id=item.id, outcome="refused", value=None, reason=reason)
    if not text.strip():
        outcome: Literal["truncated", "unparsed"] = "truncated" if cut else "unparsed"
        return Answer(item_id=item.id, outcome=outcome, value=None, reason="blank")
    reading = parser.read(item, prompt, text, mode, cut=cut)
    if reading.value is not None:
        return Answer(
            item_id=item.id, outcome=reading.outcome, value=reading.value, reason=reading.reason
        )
    said, unfinished = strip_thoughts(text)
    if reading.reason == SAID or declines(said):
        return Answer(item_id=item.id, outcome="refused", value=None, reason=SAID)
    if not said.strip():  # thoughts, and nothing behind them
        reading = replace(reading, reason="thought not ended" if unfinished else "blank")
    ended = cut or unfinished or reading.outcome == "truncated"
    outcome = "truncated" if ended else "unparsed"
    return Answer(item_id=item.id, outcome=outcome, value=None, reason=reading.reason)


def _read_likelihoods(item: Item, prompt: Prompt, completion: Completion) -> Answer:
    """Return the answer in likelihoods: the likeliest option's letter, or what the numbers say in short."""
    shown = likelihoods_of(completion.likelihoods or (), None)
    if completion.drawn is not None:
        kept = len(completion.drawn["kept"])
        value, reason = f"{kept} completions", "drawn"
    elif item.form == "choice":
        best = likeliest([one.total for one in shown])
        value = item.letters[best if prompt.order is None else prompt.order[best]]
        reason = "likeliest"
    else:
        value, reason = f"{shown[0].n_tokens} tokens", "likelihood"
    return Answer(
        item_id=item.id,
        outcome="answered",
        value=value,
        reason=reason,
        likelihoods=likelihoods_of(completion.likelihoods or (), prompt.order),
        drawn=completion.drawn,
    )
