"""What judges say: `Case`, what a judge is shown; `Verdict`, what one judge says of one answer;
`StoredVerdict` and `TrialVerdict`, the line that a run stores of it, with and without its replies.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from medassay.core.json import record_as
from medassay.core.records.completion import Completion
from medassay.core.records.item import Item
from medassay.core.records.prompt import Prompt
from medassay.core.records.trial import TrialKey, TrialLine
from medassay.core.revision import revision_id
from medassay.core.scale import Scale

FACT_VERDICTS = ("contradict", "missing", "entail")  # of an answer, on one target fact
CLAIM_KINDS = ("invented_source", "fabricated_study", "wrong_figure", "other")


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One answer to be judged: its item, the text as the judge is shown it, and the id of the
    template that asked.
    """

    item: Item
    text: str
    template: str = ""


class VerdictBody(msgspec.Struct, frozen=True, kw_only=True):
    """What a grader read in a judge's replies; every grader has a class of its own for it."""


B = TypeVar("B", bound=VerdictBody)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one judge says of one answer.

    `body` holds what was read from the replies; of a verdict that is not valid it may be empty.
    `reason` says why a verdict is not valid.
    """

    valid: bool
    reason: str = ""
    body: VerdictBody = msgspec.field(default_factory=VerdictBody)
    repaired: bool = False
    unsupported_quotes: int = 0

    @property
    def outcome(self) -> str:
        """Return `valid` or `invalid`."""
        return "valid" if self.valid else "invalid"

    def body_as(self, kind: type[B]) -> B:
        """Return the body as the class of its grader.

        Raises
        ------
        TypeError
            When the verdict is that of another grader, or nothing was read.
        """
        if not isinstance(self.body, kind):
            raise TypeError(f"the body is {type(self.body).__name__}, not {kind.__name__}")
        return self.body


class Grader(Protocol):
    """Rubric + prompt + reader. Pure: what is asked next follows from the replies so far."""

    @property
    def id(self) -> str:
        """Return `name/revision`."""

    @property
    def name(self) -> str:
        """Return the name of the method."""

    @property
    def revision(self) -> int:
        """Return the revision: raised by one with every change of what is asked besides texts, or
        read.
        """

    @property
    def body_type(self) -> type[VerdictBody]:
        """Return the class of the bodies of its verdicts."""

    @property
    def prompts(self) -> tuple[str, ...]:
        """Return the ids of the texts that are asked, each with the hash of its text."""

    @property
    def texts(self) -> tuple[bytes, ...]:
        """Return all that makes two graders of one revision differ: prompts, rules, variant."""

    @property
    def batch(self) -> int:
        """Return how many answers go into one prompt."""

    @property
    def scale(self) -> Scale:
        """Return the scale of the scores."""

    @property
    def alternatives(self) -> int:
        """Return how many candidates of each token the judging model must name; 0 for none."""

    @property
    def spot_check(self) -> "Grader | None":
        """Return the grader that repeats a sample of the answers one by one; None if it would not
        differ.
        """

    def step(self, cases: Sequence[Case], replies: Sequence[Completion]) -> Prompt | list[Verdict]:
        """Return the next prompt, or the verdicts, one for each case, when nothing is left to
        ask.
        """

    def opening(self, cases: Sequence[Case]) -> list[Prompt]:
        """Return all that is asked before any reply must be asked for again: what a preview
        counts.
        """

    def score(self, item: Item, verdict: Verdict) -> float | None:
        """Return the worth of an answer by one judge; None unless the verdict is valid."""

    def parts(self, item: Item, verdict: Verdict) -> dict[str, Any]:
        """Return what belongs to the score of a valid verdict besides its value."""

    def fits(self, case: Case, verdict: Verdict) -> bool:
        """Return whether a verdict that came with an import speaks of this case."""


def verdict_of_body(
    grader: Grader, body: Mapping[str, Any], *, valid: bool = True, reason: str = ""
) -> Verdict:
    """Return a verdict of which a file holds the body.

    Raises
    ------
    IntegrityError
        When the body is none that the grader gives.
    """
    read = VerdictBody()
    if valid or body:
        where = f"verdicts.jsonl: body of a verdict by {grader.name}"
        read = record_as(body, grader.body_type, where)
    return Verdict(valid=valid, reason=reason, body=read)


class SingleQuestionGrader(ABC):
    """A grader with one prompt for its cases, and scores without parts.

    It asks again for what could not be read.
    """

    name: ClassVar[str]
    revision: ClassVar[int]

    @property
    def id(self) -> str:
        """Return `name/revision`."""
        return revision_id(self.name, self.revision)

    @abstractmethod
    def step(self, cases: Sequence[Case], replies: Sequence[Completion]) -> Prompt | list[Verdict]:
        """Return the next prompt, or the verdicts."""

    def opening(self, cases: Sequence[Case]) -> list[Prompt]:
        """Return the only question."""
        first = self.step(cases, [])
        return [first] if isinstance(first, Prompt) else []

    def parts(self, item: Item, verdict: Verdict) -> dict[str, float | None]:
        """Return nothing."""
        return {}

    def fits(self, case: Case, verdict: Verdict) -> bool:
        """Return True: scoring the verdict fails where it does not fit its item."""
        return True


class FactVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge says of one target fact: one of `FACT_VERDICTS`, with a quote of the answer."""

    verdict: str
    id: str = ""
    evidence: str | UnsetType = UNSET


class CriterionVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an answer meets one criterion, by the word of a judge."""

    met: bool
    id: str = ""
    why: str | UnsetType = UNSET


class FalseClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A false claim that a judge found in an answer; `kind` is one of `CLAIM_KINDS`."""

    kind: str
    quote: str | UnsetType = UNSET
    why: str | UnsetType = UNSET


class VerdictParts(msgspec.Struct, frozen=True, kw_only=True):
    """What was read from a judge's replies: None for what its grader does not ask.

    `weighted` is False where a score could not be weighted by probability; `one_or_ten` is there
    where a weighted score holds a "1" that may have become a 10.
    """

    facts: list[FactVerdict] | None = None
    claims: list[FalseClaim] = []
    criteria: list[CriterionVerdict] | None = None
    weighted: bool | None = None
    one_or_ten: float | None = None


class StoredVerdict(TrialLine, frozen=True, kw_only=True):
    """A line of verdicts.jsonl with what the judge replied: for those who read replies again, and
    for people who look.

    Attributes
    ----------
    outcome : `valid`, `invalid`, or `failed` of one that never came; `reason` says why
    rubric : id of the grader
    score : by this judge alone; None unless the verdict is valid
    body : what was read in the replies
    attempt : how often the judge was asked again
    unsupported_quotes : quotes of the judge that do not stand in the answer
    masked : how often a name of a model was hidden from the judge
    given : whether it came with an import, so that there are no replies
    replies : texts of the judge; `logprobs` and `alternatives` for each, where they were asked for
    batch : places of the answers that were judged together, where there were several
    tombstone : hash of the line that stood here before its item was deleted by law
    """

    judge: str
    outcome: str = ""
    reason: str = ""
    rubric: str = ""
    score: float | None = None
    body: dict[str, Any] = msgspec.field(default_factory=dict)
    given: bool = False
    replies: list[str] = msgspec.field(default_factory=list)
    logprobs: list[Any] | None = None
    alternatives: list[Any] | None = None
    batch: list[TrialKey] = msgspec.field(default_factory=list)
    tombstone: str | None = None
    attempt: int = 0
    unsupported_quotes: int = 0
    masked: int = 0

    @property
    def answers(self) -> list[TrialKey]:
        """Return the places of the answers that were judged together, its own at least."""
        return self.batch or [self.place]

    def completions(self) -> list[Completion]:
        """Return the replies as far as a judge reads them."""
        nothing = [None] * len(self.replies)
        columns = (self.logprobs or nothing, self.alternatives or nothing)
        return [
            msgspec.convert({"text": t, "logprobs": p, "alternatives": a}, Completion)
            for t, p, a in zip(self.replies, *columns, strict=True)
        ]


class TrialVerdict(TrialLine, frozen=True, kw_only=True):
    """A line of verdicts.jsonl, for reading: what one judge said of one answer.

    `unusable` is of what kind a reply is in which nothing could be read, "" in earlier runs;
    `attempt` how often the judge was asked again.

    Lines of verdicts that never came (`failed`) hold neither parts nor counts.
    """

    judge: str
    outcome: str
    reason: str = ""
    unusable: str = ""
    attempt: int = 0
    score: float | None = None
    body: VerdictParts = VerdictParts()
    repaired: bool = False
    unsupported_quotes: int = 0
    masked: int = 0
