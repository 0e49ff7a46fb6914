"""The text that a model goes on from, where its likelihoods are asked for without a form of
conversation.

As lm-evaluation-harness writes it: examples stand one after the other with their answers, and a
blank stands between plain text and what follows.
"""

from collections.abc import Sequence

from medassay.core.records.prompt import Message, message_text


def joined(messages: Sequence[Message]) -> str:
    r"""Return messages as plain text.

    Examples
    --------
    >>> joined([{"role": "user", "content": "Q\nAnswer:"}, {"role": "assistant", "content": "A"}])
    'Q\nAnswer: A'
    """
    text = ""
    for at, message in enumerate(messages):
        between = "" if not at else " " if message["role"] == "assistant" else "\n\n"
        text += between + message_text(message)
    return text


def blank_after(context: str) -> str:
    r"""Return what stands between plain text and what follows: a blank, unless there is one.

    Examples
    --------
    >>> blank_after("Answer:"), blank_after("Answer: "), blank_after("")
    (' ', '', '')
    """
    return "" if not context or context[-1].isspace() else " "
