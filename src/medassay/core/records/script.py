"""The script of a scripted model: its keys, and what they may hold."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

import msgspec

from medassay.core.json import unchecked
from medassay.core.records.completion import Finish

# Its keys (`model/fake.py`), each with what it does.
SCRIPT = {
    "reply": "the reply to every prompt",
    "replies": (
        "item id, or `template/item id` → the reply to it, or a list of replies for when it is"
        " asked again"
    ),
    "letters": "`hash`: a letter of the options that depends on the prompt and on the entry",
    "finish": "why replies end: `stop`, `length`, `refusal`, `other`",
    "delay": "seconds before each reply",
    "fail_every": "k: each k-th call fails in passing, and is tried again",
    "fail_items": "ids of items that fail whenever they are asked",
    "refuse_items": "ids of items that the model declines",
    "malformed_items": "ids of items whose replies nobody can read",
    "tools": (
        "calls of each turn where tools are offered: a list of `name` and `arguments`, in which"
        " `{item}` is the item's id"
    ),
    "judge": (
        "as a judge of target facts: entail where this share of the fact's words is in the answer"
    ),
    "labels": (
        "as a judge of diagnoses: `severity` by name, `relation` by golden diagnosis and name"
    ),
    "graph": (
        "as a judge by graphs: the share of shared words from which the first option is chosen"
    ),
    "salt": "anything: makes one entry another than the next",
}


class _Script(msgspec.Struct):
    """What of a script is looked at before it is asked."""

    finish: Any = "stop"
    letters: Any = ""
    delay: Any = 0
    fail_every: Any = 0
    reply: Any = ""


def wrong_in_script(document: Mapping[str, Any]) -> Iterator[tuple[str, object, str]]:
    """Yield each key that holds what it may not, with that and what was expected."""
    script = unchecked(document, _Script)
    if script.finish not in get_args(Finish):
        yield "finish", script.finish, f"expected one of {', '.join(get_args(Finish))}"
    if script.letters not in ("", "hash"):
        yield "letters", script.letters, "expected hash"
    for name, number in (("delay", script.delay), ("fail_every", script.fail_every)):
        if not isinstance(number, int | float) or isinstance(number, bool) or number < 0:
            yield name, number, "expected a number from 0"
    if not isinstance(script.reply, str):
        yield "reply", script.reply, "expected a text"
