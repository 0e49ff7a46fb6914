"""A trial as the index keeps it: what is filtered and sorted by, and where its lines lie."""

import re
from collections.abc import Mapping
from typing import Annotated, NamedTuple

import msgspec

from medassay.core.records.answer import OUTCOMES
from medassay.core.records.completion import Usage
from medassay.core.records.task import Task
from medassay.core.records.trial import TrialKey, TrialLine
from medassay.core.scale import Scale
from medassay.errors import InputError, IntegrityError
from medassay.kinds.catalog import scorer_of
from medassay.kinds.graders import graders_of
from medassay.model.spec import remembered_price
from medassay.storage.run import Run
from medassay.storage.spend import currency_of
from medassay.viewer.shape import shape_of

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]  # larger ones no database holds
GRADES = ("wrong", "partial", "right")  # by the ends of the scale; a trial may have none
SEARCHED = 200_000  # characters of a reply whose words can be searched for
_LONGEST_VALUE = 64  # characters; a longer value is a text, which nobody filters by
_LONGEST_REASON = 200
_NUMBER = re.compile(r"\d+")


class TrialHead(TrialLine, frozen=True, kw_only=True):
    """What the index reads of a line of trials.jsonl."""

    repeat: Count
    outcome: str
    reason: str = ""
    value: str | None = None
    text: str | None = None
    finish: str | None = None
    cut_off: bool = False
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    attempt: Count = 0


class ScoreHead(TrialLine, frozen=True, kw_only=True):
    """What the index reads of a line of scores.jsonl."""

    score: float | None = None
    scorer: str = ""
    judges: dict[str, float | None] = msgspec.field(default_factory=dict)


class TimingHead(msgspec.Struct, frozen=True, kw_only=True):
    """What the index reads of a line of timings.jsonl."""

    seconds: float = 0.0


class Extent(NamedTuple):
    """Where a line lies: number of its file, offset and length in bytes."""

    file: int
    at: int
    size: int


NOWHERE = Extent(-1, 0, 0)


class IndexedTrial(NamedTuple):
    """A row of the index; what is None has no value.

    Attributes
    ----------
    outcome, grade : places in `OUTCOMES` and `GRADES`
    cut : whether the reply ended at its token limit
    spread : the judges' highest score less their lowest, in shares of the scale
    length : characters of the reply
    cost : price of its tokens, in the currency of the model's entry
    trial, score, verdicts : where the lines lie
    """

    place: TrialKey
    outcome: int
    reason: str
    scorer: str
    score: float | None
    grade: int | None
    value: str | None
    shape: str | None
    cut: bool
    spread: float | None
    length: int
    seconds: float
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    attempt: int
    text: str
    trial: Extent
    score_extent: Extent
    verdicts: Extent


class EntryMaker:
    """Makes rows of the index from the lines of a run."""

    def __init__(self, run: Run, task: Task) -> None:
        self._scales = _scales_of(run, task)
        self._usual = task.scale
        entries = run.manifest_document["models"]
        self._prices = {name: remembered_price(entry) for name, entry in entries.items()}

    def scale_of(self, scorer: str) -> Scale:
        """Return the scale of a scorer's scores; of the task where nothing says which."""
        return self._scales.get(scorer, self._usual)

    def currency_of(self, model: str) -> str:
        """Return the currency of a model's price, "" where none is known."""
        return currency_of(self._prices.get(model))

    def entry(
        self,
        trial: TrialHead,
        score: ScoreHead | None,
        timing: TimingHead,
        extents: tuple[Extent, Extent, Extent],
    ) -> IndexedTrial:
        """Return the row of a trial."""
        text = trial.text or ""
        scorer = "" if score is None else score.scorer
        value = None if score is None else score.score
        scale = self.scale_of(scorer)
        failed = trial.outcome == "failed"
        reason = trial.reason[:_LONGEST_REASON]
        short = trial.value is not None and len(trial.value) <= _LONGEST_VALUE
        usage = Usage(prompt=trial.prompt_tokens, completion=trial.completion_tokens)
        price = None if failed else self._prices.get(trial.model)
        return IndexedTrial(
            place=trial.place,
            outcome=OUTCOMES.index(trial.outcome) if trial.outcome in OUTCOMES else len(OUTCOMES),
            # Ids and times in messages of servers would make each failure a kind of its own.
            reason=_NUMBER.sub("#", reason) if failed else reason,
            scorer=scorer,
            score=value,
            grade=grade_of(value, scale),
            value=trial.value if short else None,
            shape=None if trial.outcome in ("answered", "failed") else shape_of(text),
            cut=trial.cut_off or trial.finish == "length" or trial.outcome == "truncated",
            spread=None if score is None else spread_of(score.judges, scale),
            length=len(text),
            seconds=timing.seconds,
            prompt_tokens=trial.prompt_tokens,
            completion_tokens=trial.completion_tokens,
            cost=None if price is None else price.of(usage),
            attempt=trial.attempt,
            text=text[:SEARCHED],
            trial=extents[0],
            score_extent=extents[1],
            verdicts=extents[2],
        )


def _scales_of(run: Run, task: Task) -> dict[str, Scale]:
    """Return id of a scorer or grader of a run → the scale of its scores."""
    scales: dict[str, Scale] = {}
    for part, forms in task.single_tasks:
        for form in forms:
            scales[scorer_of(task, form).id] = part.scale
    try:
        graders = graders_of(task, run.manifest)
    except (InputError, IntegrityError, LookupError, ValueError):
        graders = {}  # of a run that remembers less than today's graders need
    return scales | {grader.id: grader.scale for grader in graders.values()}


def grade_of(score: float | None, scale: Scale) -> int | None:
    """Return the place in `GRADES` of a score: wrong at the worst end of the scale, right at the
    best; None without a score, or where the scale has no two ends.

    Examples
    --------
    >>> [grade_of(score, Scale()) for score in (0, 0.4, 1, None)]
    [0, 1, 2, None]
    """
    if score is None or None in scale.ends:
        return None
    best = scale.hi if scale.better == "high" else scale.lo
    if score == best:
        return GRADES.index("right")
    worse = score <= scale.worst if scale.better == "high" else score >= scale.worst
    return GRADES.index("wrong" if worse else "partial")


def spread_of(judges: Mapping[str, float | None], scale: Scale) -> float | None:
    """Return how far the scores of the judges lie apart, in shares of the scale; None for fewer
    than two.
    """
    scores = [score for score in judges.values() if score is not None]
    if len(scores) < 2 or None in scale.ends or scale.hi == scale.lo:
        return None
    return (max(scores) - min(scores)) / (scale.hi - scale.lo)
