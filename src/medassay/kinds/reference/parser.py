"""A reply in prose → the text that is compared or judged."""

from medassay.core.parser import Extraction, ReadOne
from medassay.core.records.item import Item
from medassay.core.records.prompt import Prompt
from medassay.core.records.task import BLANK_LINE
from medassay.core.reply.refusal import SAID, only_declines
from medassay.core.reply.thoughts import strip_thoughts


def read_text(item: Item, prompt: Prompt, text: str, mode: Extraction) -> tuple[str | None, str]:
    """Return the reply without thoughts and outer blanks; what only declines is no answer."""
    return _unless_declined(item, strip_thoughts(text)[0].strip(), "text")


def _unless_declined(item: Item, text: str, form: str) -> tuple[str | None, str]:
    """Return a text, unless it does nothing but decline.

    Where criteria say what a good reply does, declining may be it.
    """
    if not text:
        return None, "blank"
    if item.form not in _DECLINING_COUNTS and only_declines(text):
        return None, SAID
    return text, form


# Forms whose target may ask for just that: a criterion, a pattern.
_DECLINING_COUNTS = ("rubric", "regex")


def paragraph(least: int = 1) -> ReadOne:
    """Return the reader that takes what stands before the first blank line.

    Fewer than `least` characters are no answer.

    Models that end there are told to; of others the rest is left out, so that all are compared on
    the same.
    """

    def read_paragraph(
        item: Item, prompt: Prompt, text: str, mode: Extraction
    ) -> tuple[str | None, str]:
        answer_text = strip_thoughts(text)[0]
        if answer_text != text:  # what separates thoughts from the answer does not end it
            answer_text = answer_text.lstrip()
        answer_text = answer_text.partition(BLANK_LINE)[0].strip()
        if 0 < len(answer_text) < least:
            return None, "short"
        return _unless_declined(item, answer_text, "paragraph")

    return read_paragraph
