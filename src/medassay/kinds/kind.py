"""What a kind of task is: all that the machinery asks of it, as one value."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from medassay.bank.run_items import RunItems
from medassay.core.parser import Parser
from medassay.core.protocols import Summary
from medassay.core.records.document_schema import DocumentSchema
from medassay.core.records.item import Item
from medassay.core.records.item_object import ItemObject
from medassay.core.records.manifest import JudgingRules, Manifest, RunBank
from medassay.core.records.plan import Plan
from medassay.core.records.sealed_object import TrialObject
from medassay.core.records.statistics import LeaderboardRow, Statistics
from medassay.core.records.target import Form, Target
from medassay.core.records.task import Task
from medassay.core.records.trial import Trial
from medassay.core.records.verdict import Grader
from medassay.core.table import Table
from medassay.score.measure import Measure
from medassay.score.scorer import Scorer

if TYPE_CHECKING:
    from medassay.report.board import Board, ShownAnswers, ShownCase
    from medassay.report.pages.html import Page
    from medassay.report.plot.figure import Figure
    from medassay.storage.run import Run


class DataFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file beside a board's pages: what it holds in one line, and its text."""

    about: str
    text: "Callable[[Board], str]"


class AnswerView(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a cell page that shows an answer in the way of its kind.

    Attributes
    ----------
    template : shows `view`, in the folder of the kind
    shows : whether it has anything to show of an item (the object of its file) and a trial
    view : what its template shows; None where there is nothing
    replaces_reply : whether it stands in the place of the reply
    """

    template: str
    shows: Callable[[ItemObject, TrialObject], bool]
    view: Callable[[ItemObject, Trial], Mapping[str, Any] | None]
    replaces_reply: bool = False


class Presentation(msgspec.Struct, frozen=True, kw_only=True):
    """How the results of a kind are shown.

    Attributes
    ----------
    title, folder : of its pages, for the navigation of a board
    row_type : what a row of a ranking tells besides
    pages : of a board
    tables : for a terminal, below the ranking of a domain
    files : name → a file beside the pages
    figures : name → figure of a run by its statistics and a mode; None where there is nothing to
        draw
    views : parts of cell pages
    cases : every answer with its calculation, of kinds that have a page for each case
    """

    title: str = ""
    folder: str = ""
    row_type: type[LeaderboardRow] = LeaderboardRow
    pages: "Callable[[Board], Iterator[Page]] | None" = None
    tables: Callable[[Statistics, str], Iterator[Table]] | None = None
    files: Mapping[str, DataFile] = msgspec.field(default_factory=dict)
    figures: "Mapping[str, Callable[[Run, Statistics, str], Figure | None]]" = msgspec.field(
        default_factory=dict
    )
    views: Sequence[AnswerView] = ()
    cases: "Callable[[Run, ShownAnswers], list[ShownCase]] | None" = None


class KindRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a run remembers of how its kind is judged, in its manifest under the kind's key; a plan
    has a field of that name.

    Attributes
    ----------
    remember : makes it of the plan, the items that are asked, and the folder of the plan
    publish : what of it may be published beside some items alone
    forget : what of the summary may stay once an item is deleted
    """

    remember: Callable[[Plan, Iterator[Item], Path], Mapping[str, Any]]
    publish: Callable[[Any, Iterable[Item]], Mapping[str, Any]]
    forget: Callable[[Mapping[str, Any]], Mapping[str, Any]]


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of task.

    Attributes
    ----------
    forms : of its items
    own_task : the task by which its items are asked where a plan names none
    targets : its own, each told by a key that no other target has; those that more than one room
        reads are in `core/records/target/`
    graders : name → what makes a grader of the card of a bank and the rules of a run
    key : of its summary in the statistics of a run, and of its rules; without one the kind's name
    summary : what a run of one of the tasks tells besides its rankings; without one the columns of
        its measures
    public_parts : parts of scores that are published of withheld items, besides the columns of
        measures: numbers, never words of an item or an answer
    presentation : called when something is shown; it may import what draws; without one the columns
        of its measures are shown
    by_schema : of kinds whose records a plan's schema describes: scorer and measures for one
    misfit : what of the reference of an item does not fit that schema; None where all fits
    """

    tasks: tuple[Task, ...]
    forms: tuple[Form, ...] = ()
    own_task: str = ""
    targets: tuple[type[Target], ...] = ()
    parsers: tuple[Parser, ...] = ()
    scorers: tuple[Scorer, ...] = ()
    measures: tuple[Measure, ...] = ()
    graders: Mapping[str, Callable[[RunBank, JudgingRules], Grader]] = msgspec.field(
        default_factory=dict
    )
    key: str = ""
    summary: Callable[[RunItems, Manifest, Task], Summary | None] | None = None
    rules: KindRules | None = None
    public_parts: tuple[str, ...] = ()
    presentation: Callable[[], Presentation] | None = None
    by_schema: "Callable[[DocumentSchema], Kind] | None" = None
    misfit: Callable[[Item], str | None] | None = None
