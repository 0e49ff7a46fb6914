"""Completion → `Answer`, with exactly one outcome, whatever the kind of task."""

from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from medassay.core.json import record_as
from medassay.core.parser import Extraction, Parser
from medassay.core.records.answer import Answer
from medassay.core.records.completion import Completion
from medassay.core.records.item import Item
from medassay.core.records.likelihood import StoredLikelihood, likeliest, likelihoods_of
from medassay.core.records.prompt import Prompt
from medassay.core.records.relaxed import StoredCompletions
from medassay.core.reply.refusal import SAID, declines
from medassay.core.reply.thoughts import strip_thoughts

REVISION = 1  # of `read_answer`: which outcome a reply has
_DECLINED = {"refusal": "provider", "moderation": "moderation"}  # finish → reason


def prompt_as_shown(item: Item, order: tuple[int, ...] | None = None) -> Prompt:
    """Return a prompt that nobody is sent: what was shown of an item, by which a reply is read."""
    options = item.options if order is None else tuple(item.options[i] for i in order)
    return Prompt(
        item_id=item.id,
        messages=(),
        encoded=b"",
        template="",
        letters=item.letters,
        options=options,
        order=order,
    )


def read_answer(
    item: Item,
    prompt: Prompt,
    completion: Completion,
    parser: Parser,
    mode: Extraction = "standard",
) -> Answer:
    """Return the answer in a completion, with exactly one outcome.

    `refused` is what the provider says (reason "provider", or "moderation" where the endpoint's
    moderation refused the request), or a reply that declines in words (reason "said") and in which
    nothing else was found; `truncated` is a reply that ended by its token limit before its answer
    did; everything else that cannot be read is `unparsed`, with the reason. Likelihoods need no
    reading: an item with options is answered by its likeliest one, the first of equals.
    """
    if completion.likelihoods is not None or completion.drawn is not None:
        where = f"responses: what was stored of item '{item.id}'"
        return read_likelihoods(
            item,
            prompt.order,
            record_as(completion.likelihoods or (), tuple[StoredLikelihood, ...], where),
            None
            if completion.drawn is None
            else record_as(completion.drawn, StoredCompletions, where),
        )
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
    answer_text, unfinished = strip_thoughts(text)
    if reading.reason == SAID or declines(answer_text):
        return Answer(item_id=item.id, outcome="refused", value=None, reason=SAID)
    if not answer_text.strip():  # thoughts, and nothing behind them
        reading = replace(reading, reason="thought not ended" if unfinished else "blank")
    ended = cut or unfinished or reading.outcome == "truncated"
    outcome = "truncated" if ended else "unparsed"
    return Answer(item_id=item.id, outcome=outcome, value=None, reason=reading.reason)


def read_likelihoods(
    item: Item,
    order: Sequence[int] | None,
    stored: Sequence[StoredLikelihood],
    drawn: StoredCompletions | None,
) -> Answer:
    """Return the answer in likelihoods: the likeliest option's letter, or what the numbers say in
    short.

    Parameters
    ----------
    order : place in the bank of the option shown first, second, and so on; None for the bank's
    stored : of each text that was asked for, options in the order shown
    """
    likelihoods = likelihoods_of(stored, None)
    if drawn is not None:
        value, reason = f"{len(drawn.kept)} completions", "drawn"
    elif item.options:
        best = likeliest([likelihood.total for likelihood in likelihoods])
        value = item.letters[best if order is None else order[best]]
        reason = "likeliest"
    else:
        value, reason = f"{likelihoods[0].n_tokens} tokens", "likelihood"
    return Answer(
        item_id=item.id,
        outcome="answered",
        value=value,
        reason=reason,
        likelihoods=likelihoods_of(stored, order),
        drawn=drawn,
    )
