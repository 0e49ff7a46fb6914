"""One item in one cell in one repeat: the row that a run stores, and what names it."""

from collections.abc import Sequence
from typing import Literal, Self

import msgspec

from medassay.core.records.answer import Answer, Outcome
from medassay.core.records.completion import Finish
from medassay.core.records.likelihood import StoredLikelihood, likelihoods_of
from medassay.core.records.relaxed import StoredCompletions

Setting = Literal["zero_shot", "few_shot", "rag", "topline_path", "topline_text", "topline_all"]
Mode = Literal["solo", "tools"]
CellKey = tuple[str, str, str, str]  # domain, model, setting, mode
RowKey = tuple[str, str]  # model, setting: a row of a ranking
TrialKey = tuple[str, str, str, str, str, int]  # the values of TRIAL_KEY
TRIAL_KEY = ("domain", "model", "setting", "mode", "item", "repeat")


class TrialLine(msgspec.Struct, frozen=True, kw_only=True):
    """What names a trial, as it stands in every line about one."""

    domain: str
    model: str
    setting: str
    mode: str
    item: str
    repeat: int

    @property
    def cell(self) -> CellKey:
        """Return (domain, model, setting, mode)."""
        return (self.domain, self.model, self.setting, self.mode)

    @property
    def row(self) -> RowKey:
        """Return (model, setting)."""
        return (self.model, self.setting)

    @property
    def place(self) -> TrialKey:
        """Return what makes it unique, and its place in a sealed run: by cell, item, repeat."""
        return (self.domain, self.model, self.setting, self.mode, self.item, self.repeat)


class ToolCalls(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of calls of tools: all, those that failed, and of these those whose service was
    away.
    """

    calls: int = 0
    failed: int = 0
    unavailable: int = 0

    @classmethod
    def of(cls, statuses: Sequence[str]) -> Self:
        """Return the numbers of calls with these statuses."""
        return cls(
            calls=len(statuses),
            failed=sum(status != "ok" for status in statuses),
            unavailable=statuses.count("unavailable"),
        )

    def __add__(self, other: "ToolCalls") -> "ToolCalls":
        return ToolCalls(
            calls=self.calls + other.calls,
            failed=self.failed + other.failed,
            unavailable=self.unavailable + other.unavailable,
        )

    @property
    def unavailable_share(self) -> float | None:
        """Return the share of calls that were unavailable, None where there were no calls."""
        return self.unavailable / self.calls if self.calls else None


class TracedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a tool as a trial keeps it: what came back stays in the response store, since it is
    others' text.

    Attributes
    ----------
    turn : number of the reply that called, from 1
    status : ok, failed, unavailable, or limit for a call that was not made
    characters, sha256 : of the text that came back, which `response` is the key of
    """

    turn: int
    tool: str
    arguments: str
    status: str = ""
    characters: int = 0
    sha256: str = ""
    response: str | None = None


class Trial(TrialLine, frozen=True, kw_only=True):
    """A line of trials.jsonl, for reading: it is never written again.

    Optional fields are None, or empty, where the line does not have them: a failed trial has no
    reply, a public trial of a withheld item neither text nor value. What a line holds besides is
    not read here; whoever copies or redacts lines works on the lines.

    Attributes
    ----------
    domain, model, setting, mode, item, repeat : what names the trial
    outcome : `answered`, `unparsed`, `refused`, `truncated` or `failed`
    text : the reply
    template : the prompt, with its hash
    value : what was read from the reply; None unless it was answered, but for a list of diagnoses
        that was cut off
    reason : the rule that read it, or why nothing could be read
    finish : how the completion ended
    likelihoods, drawn : what was asked for instead of a reply
    order : `order[i]` is the bank's position of the option shown at place i
    own_source : whether a passage of the item's own source was shown
    tool_use, trace : numbers of calls of tools, and the calls themselves, in the mode `tools`
    attempt, again : how often it was asked before, and the scope of the last wish to ask again
    cut_off : whether a public trial of a withheld item ended at its token limit
    tombstone : hash of the line that stood here before its item was deleted by law
    """

    outcome: Outcome
    value: str | None = None
    reason: str = ""
    template: str = ""
    text: str | None = None
    finish: Finish | None = None
    likelihoods: tuple[StoredLikelihood, ...] | None = None
    drawn: StoredCompletions | None = None
    order: tuple[int, ...] | None = None
    own_source: bool | None = None
    tool_use: ToolCalls | None = None
    trace: tuple[TracedCall, ...] = ()
    attempt: int = 0
    again: str | None = None
    cut_off: bool = False
    tombstone: str | None = None

    @property
    def answer(self) -> Answer:
        """Return what was read."""
        return Answer(
            item_id=self.item,
            outcome=self.outcome,
            value=self.value,
            reason=self.reason,
            likelihoods=likelihoods_of(self.likelihoods or (), self.order),
            drawn=self.drawn,
        )
