"""A pathway in uniform medical words: what a model replied, held against the pathway it was given.

Source: specification of bank synthesis, 10.1, refinement.
"""

import re
import unicodedata
from collections.abc import Sequence

from medassay.core.reply.thoughts import strip_thoughts

_ARROW = re.compile(r"\s*(?:->|→)\s*")
_MOST_STEPS_CHANGED = 3
_LONGEST_STEP = 600  # characters


def read_steps(reply: str) -> tuple[str, ...]:
    """Return the steps of a reply that is one sequence and nothing else.

    Raises
    ------
    ValueError
        Saying what is wrong.

    Examples
    --------
    >>> read_steps("Dyspnoea -> Chest radiograph -> Effusion")
    ('Dyspnoea', 'Chest radiograph', 'Effusion')
    """
    text = unicodedata.normalize("NFC", strip_thoughts(reply)[0].strip())
    if "\n" in text or "\r" in text:
        raise ValueError("line breaks in the sequence; expected one line")
    steps = tuple(" ".join(step.split()) for step in _ARROW.split(text))
    if len(steps) < 2:
        raise ValueError('no "->" in the reply; expected at least two steps')
    for step in steps:
        if not any(character.isalnum() for character in step):
            raise ValueError("a step without a word; expected words between the arrows")
        if not step.isprintable():
            raise ValueError(f"a control character in '{step!r:.40}'")
        if len(step) > _LONGEST_STEP:
            raise ValueError(f"a step of {len(step)} characters; at most {_LONGEST_STEP}")
    if (
        re.match(r"[^:]{0,60}\b(?:sequence|pathway|path)\b[^:]{0,40}:", steps[0], re.IGNORECASE)
        or "`" in text
    ):
        raise ValueError(f"other text in the reply: '{steps[0][:60]}'; expected the sequence alone")
    return steps


def refined(reply: str, before: Sequence[str]) -> tuple[str, ...]:
    """Return the steps of a rewritten pathway.

    Raises
    ------
    ValueError
        When it is no sequence, or has more or fewer steps than may be: by more than 3, and by more
        than half of those before.
    """
    steps = read_steps(reply)
    changed = abs(len(steps) - len(before))
    if changed > max(_MOST_STEPS_CHANGED, len(before) / 2):
        raise ValueError(
            f"{len(before)} steps became {len(steps)}; at most {_MOST_STEPS_CHANGED} or half as"
            " many may differ"
        )
    return steps
