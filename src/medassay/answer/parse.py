"""Completion → `Answer`: one parser for each form of item."""

from collections.abc import Callable
from typing import Literal

from medassay.answer.number import extract_number
from medassay.answer.option import extract_option
from medassay.core.item import Item
from medassay.core.likelihood import likeliest, likelihoods_of
from medassay.core.reading import strip_thoughts
from medassay.core.trial import Answer, Completion, Prompt

BLANK_LINE = "\n\n"
Extraction = Literal["standard", "paper"]
Parser = Callable[[Item, Prompt, str, Extraction], tuple[str | None, str]]


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
    """Return the reply without thoughts and outer blanks."""
    kept = strip_thoughts(text)[0].strip()
    return (kept, "text") if kept else (None, "blank")


def paragraph(least: int = 1) -> Parser:
    """Return the parser that takes what stands before the first blank line; fewer than `least` characters are no answer.

    Models that end there are told to; of others the rest is left out, so that all are compared on the same.
    """

    def read_paragraph(
        item: Item, prompt: Prompt, text: str, mode: Extraction
    ) -> tuple[str | None, str]:
        kept = strip_thoughts(text)[0]
        if kept != text:  # what separates thoughts from the answer does not end it
            kept = kept.lstrip()
        kept = kept.partition(BLANK_LINE)[0].strip()
        if not kept:
            return None, "blank"
        return (kept, "paragraph") if len(kept) >= least else (None, "short")

    return read_paragraph


def read_answer(
    item: Item,
    prompt: Prompt,
    completion: Completion,
    parser: Parser,
    mode: Extraction = "standard",
) -> Answer:
    """Return the answer in a completion, with exactly one outcome.

    `refused` is what the provider says; `truncated` is a reply cut off before an answer could be
    read in it; everything else that cannot be read is `unparsed`, with the reason. Likelihoods need no reading: an item with
    options is answered by its likeliest one, the first of equals.
    """
    if completion.likelihoods is not None or completion.drawn is not None:
        return _read_likelihoods(item, prompt, completion)
    text = completion.text
    if completion.finish == "refusal":
        return Answer(item_id=item.id, outcome="refused", value=None, reason="provider")
    if not text.strip():
        cut = completion.finish == "length"
        outcome: Literal["truncated", "unparsed"] = "truncated" if cut else "unparsed"
        return Answer(item_id=item.id, outcome=outcome, value=None, reason="blank")
    value, reason = parser(item, prompt, text, mode)
    if value is not None:
        return Answer(item_id=item.id, outcome="answered", value=value, reason=reason)
    if completion.finish == "length" or strip_thoughts(text)[1]:
        return Answer(item_id=item.id, outcome="truncated", value=None, reason=reason)
    return Answer(item_id=item.id, outcome="unparsed", value=None, reason=reason)


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
