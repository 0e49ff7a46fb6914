"""Which replies could not be used, and which of them are asked once more."""

import msgspec

from medassay.core.records.trial import Trial
from medassay.core.records.verdict import TrialVerdict
from medassay.errors import InputError

OF_TRIALS = ("empty", "truncated", "refused")
UNUSABLE = "unusable"  # of verdicts
CLASSES = (*OF_TRIALS, UNUSABLE)


class Again(msgspec.Struct, frozen=True):
    """A wish to ask once more what could not be used: of which classes, and of which model or judge
    alone ("" for all).

    Trials and verdicts that failed never had a reply; they are asked whenever their run is.
    """

    classes: tuple[str, ...]
    model: str = ""

    def __str__(self) -> str:
        return ",".join(self.classes) + (f":{self.model}" if self.model else "")

    def scope(self, kind: str) -> str:
        """Return what a record says of it: its class, and the model where others were not asked
        again.
        """
        return f"{kind}:{self.model}" if self.model else kind

    def wants(self, kind: str, model: str) -> bool:
        """Return whether a reply of a class is asked again."""
        return kind in self.classes and self.model in {"", model}


def read_again(text: str) -> Again:
    """Return the wish in a text such as "empty,truncated" or "unusable:judge-a".

    Raises
    ------
    InputError
        Saying which classes there are.

    Examples
    --------
    >>> read_again("empty,truncated:phi4:14b")
    Again(classes=('empty', 'truncated'), model='phi4:14b')
    """
    named, _, model = text.partition(":")
    classes = tuple(dict.fromkeys(part.strip() for part in named.split(",")))
    for name in classes:
        if name not in CLASSES:
            raise InputError(
                f"--again: '{name}'; expected {', '.join(CLASSES)}, comma-separated, and :MODEL for"
                " one model or judge alone"
            )
    return Again(classes, model.strip())


def trial_class(trial: Trial) -> str:
    """Return why the reply of a trial could not be used: "empty", "truncated" or "refused".

    "" where it could, or is only unread.
    """
    outcome = trial.outcome
    if outcome == "unparsed" and trial.reason == "blank":
        return "empty"
    return outcome if outcome in OF_TRIALS else ""


def verdict_class(verdict: TrialVerdict) -> str:
    """Return "unusable" for a verdict in which nothing could be read, else ""."""
    return UNUSABLE if verdict.outcome == "invalid" else ""


def same_chances(scope: str) -> bool:
    """Return whether all models of a run were asked again alike: not where one alone was, or where
    refusals were.
    """
    return ":" not in scope and scope != "refused"
