"""What was read from a completion, with exactly one outcome."""

import json
from dataclasses import dataclass
from typing import Literal

from medassay.core.records.likelihood import LogLikelihood
from medassay.core.records.relaxed import StoredCompletions

Outcome = Literal["answered", "unparsed", "refused", "truncated", "failed"]
OUTCOMES: tuple[Outcome, ...] = ("answered", "unparsed", "refused", "truncated", "failed")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What was read from one reply of a model.

    Attributes
    ----------
    item_id : the item that was asked
    outcome : `answered`, `unparsed`, `refused`, `truncated` (cut off), or `failed` (no reply)
    value : a letter of the bank (options may be shown under others), a number, the text, or JSON;
        None unless the outcome is `answered`. One exception: a `truncated` list of diagnoses keeps
        its whole names, for the reader; it scores as any other missing answer
    reason : the rule that read it, or why nothing could be read (`ambiguous` among them)
    likelihoods : of the options in the bank's order, where they were asked for instead of a reply
    drawn : completions of Relaxed Perplexity, where they were asked for instead

    Examples
    --------
    >>> from medassay import Answer
    >>> Answer(item_id="q1", outcome="answered", value="C", reason="S2").codes
    ()
    """

    item_id: str
    outcome: Outcome
    value: str | None
    reason: str
    likelihoods: tuple[LogLikelihood, ...] = ()
    drawn: StoredCompletions | None = None

    @property
    def codes(self) -> tuple[tuple[str, ...], ...]:
        """Return, for each diagnosis of a ranked list, the codes that stood behind its name
        ("ICD-10:Q87.4"); else nothing.
        """
        if not (self.value or "").startswith("[{"):
            return ()
        try:
            listed = json.loads(self.value or "")
        except ValueError:
            return ()
        return tuple(tuple(entry.get("codes", ())) for entry in listed if isinstance(entry, dict))
