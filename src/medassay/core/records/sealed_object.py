"""The lines of a run as the JSON objects that are sealed, hashed, redacted and copied; see
`item_object.py` for why they are dictionaries.

Whoever reads a line to compute with it reads a record (`Trial`, `TrialScore`, `TrialVerdict`).
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, TypedDict

from medassay.core.records.completion import TokenLogprob
from medassay.core.records.trial import TRIAL_KEY, TrialKey

_place = itemgetter(*TRIAL_KEY)


class TrialKeys(TypedDict, total=False):
    """What names a trial in every line about one."""

    schema_version: int
    domain: str
    model: str
    setting: str
    mode: str
    item: str
    repeat: int


def place_of(line: TrialKeys) -> TrialKey:
    """Return the place of the trial that a line is about."""
    place: TrialKey = _place(line)
    return place


class TrialObject(TrialKeys, total=False):
    """A line of trials.jsonl; `Trial` says what its keys are."""

    template: str
    prompt_sha256: str
    response: str
    text: str
    finish: str
    prompt_tokens: int
    completion_tokens: int
    outcome: str
    value: str | None
    reason: str
    likelihoods: Sequence[Mapping[str, Any]]
    drawn: Mapping[str, Any]
    max_tokens: int
    order: Sequence[int]
    retrieved: Sequence[Sequence[str | int]]
    own_source: bool
    tool_use: Mapping[str, int]
    trace: Sequence[Mapping[str, Any]]
    attempt: int
    again: str
    cut_off: bool
    commitment: str
    tombstone: str


class ScoreObject(TrialKeys, total=False):
    """A line of scores.jsonl; `TrialScore` says what its keys are."""

    score: float | None
    because: str
    scorer: str
    parts: Mapping[str, Any]
    measured: Mapping[str, float | None]
    judges: Mapping[str, float | None]
    panel_scores: Sequence[float | None]
    agreement: float | None
    extra_false_claim_count: int
    contradict_count: int


class JournalObject(TrialKeys, total=False):
    """What names an answer or a verdict in a journal, and how often it was asked for.

    `attempt` counts the requests again for this line, `of_attempt` those for the answer that was
    judged; `subject` numbers the answers to a study.
    """

    subject: int
    judge: str
    seat: int
    attempt: int
    of_attempt: int
    outcome: str
    reason: str


class VerdictObject(JournalObject, total=False):
    """A line of verdicts.jsonl; `StoredVerdict` and `TrialVerdict` say what its keys are."""

    rubric: str
    prompt_sha256: Sequence[str]
    responses: Sequence[str]
    replies: Sequence[str]
    seconds: Sequence[float]
    usage: Sequence[Mapping[str, int]]
    logprobs: Sequence[Sequence[TokenLogprob] | None]
    alternatives: Sequence[Sequence[Sequence[TokenLogprob]] | None]
    batch: Sequence[Sequence[str | int]]
    repaired: bool
    unsupported_quotes: int
    body: Mapping[str, Any]
    unusable: str
    masked: int
    cut: int
    score: float | None
    given: bool
    tombstone: str


class TimingObject(TypedDict, total=False):
    """A line of timings.jsonl, and what a journal keeps beside a record.

    `tokens` are those of prompt and completion; `traceback` shows a mistake of our own.
    """

    seconds: float
    replayed: bool
    tokens: Sequence[int]
    cached: int
    reasoning: int
    traceback: str


class FindingObject(TypedDict, total=False):
    """A line of findings.jsonl: what differs between two runs, or before and after."""

    schema_version: int
    run: str
    trial: Sequence[str | int]
    field: str
    old: str | float | None
    new: str | float | None
    delta: float | None
    cause: str
    opened: str
    note: str
