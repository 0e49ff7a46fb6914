"""What a publication shows. Nothing here computes: every number arrives with its interval."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from medassay.bank.stats import ItemStats
from medassay.core.keyed import keyed
from medassay.core.ledger import PublishedRerun
from medassay.core.records.changes import PublicationChanges
from medassay.core.records.identity import BoardIdentity
from medassay.core.records.manifest import Manifest
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.relations import Relations
from medassay.core.records.rerun import Rerun
from medassay.core.records.seal import Seal
from medassay.core.records.statistics import (
    OVERALL,
    LeaderboardRow,
    ProvenanceGap,
    ScoreScale,
    Statistics,
    ToolsEffect,
    is_all_scripted,
    scripted_models,
    tied_groups,
)
from medassay.core.records.trend import Trend
from medassay.core.records.trial import TrialLine
from medassay.report.plot.bars import StackedCount
from medassay.report.row_filters import model_facts
from medassay.report.texts import ENGLISH, Texts
from medassay.report.times import CostTotal, TimesRow
from medassay.report.weak_spots import CategoryScore, WorstAnswer

ANSWERS_A_PAGE = 250  # of a cell
VALIDATION = "validation"  # folder of documents, and of the page that shows them


class ShownCell(msgspec.Struct, frozen=True, kw_only=True):
    """One domain × model × setting × mode."""

    domain: str
    model: str
    setting: str
    mode: str


class ShownPart(msgspec.Struct, frozen=True):
    """What a kind shows of an answer: a template, what it shows, and whether it stands in the place
    of the reply.
    """

    template: str
    view: Mapping[str, Any]
    replaces_reply: bool = False


class ShownAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One trial as a cell page shows it: `line` is what names it, `trial` all that its file says.

    `parts_shown` gives what its kind shows of it.
    """

    item: Mapping[str, Any]
    line: TrialLine
    trial: Mapping[str, Any]
    score: float | None
    because: str
    sha256: str
    verdicts: Sequence[Mapping[str, Any]] = ()
    panel: Mapping[str, Any] = msgspec.field(default_factory=dict)
    parts: Mapping[str, Any] = msgspec.field(default_factory=dict)
    parts_shown: Callable[[], Sequence["ShownPart"]] = lambda: ()

    @property
    def anchor(self) -> str:
        """Return the answer's id on its page."""
        return answer_anchor(self.line.item, self.line.repeat)


class RankedRow(msgspec.Struct, frozen=True):
    """A row as a ranking shows it.

    Attributes
    ----------
    level : length of its bar, on the scale: that of the first row of its group
    top : upper end of all bars
    tied : whether it shares its rank, by the earlier rules
    """

    row: LeaderboardRow
    level: float | None
    top: float
    tied: bool = False


class RowByProvenance(msgspec.Struct):
    """A row with public and synthetic items apart: `rows` and `tools` by these names."""

    row: LeaderboardRow
    rows: dict[str, LeaderboardRow] = msgspec.field(default_factory=dict)
    gap: ProvenanceGap | None = None
    tools: dict[str, ToolsEffect] = msgspec.field(default_factory=dict)


ShownAnswers = Iterator[tuple[ShownCell, Iterator[ShownAnswer]]]


class ShownCase(msgspec.Struct, frozen=True, kw_only=True):
    """One ranked list as pages show it: both scores, where it lies, and its calculation rank by
    rank.

    `x` and `y` are severity and semantic score, rescaled; `rows` hold each diagnosis with its
    labels, weight, distances and what it adds.
    """

    key: ShownCell
    item: Mapping[str, Any]
    golden: str
    golden_severity: str | None
    answer: ShownAnswer
    semantic: float | None
    severity: float | None
    x: float | None
    y: float | None
    quadrant: str | None
    rows: Sequence[Mapping[str, Any]] = ()

    @property
    def name(self) -> str:
        """Return the id of its item."""
        return self.answer.line.item

    @property
    def truncated_names(self) -> Sequence[str]:
        """Return the whole names of a list that was cut off, which score nothing."""
        trial = self.answer.trial
        if trial["outcome"] != "truncated" or not trial.get("value"):
            return ()
        return [str(entry["name"]) for entry in json.loads(trial["value"])]


class ShownBank(msgspec.Struct, frozen=True, kw_only=True):
    """A bank of the run with what its public items are.

    Attributes
    ----------
    card : its entry of the manifest
    asked, withheld : numbers of items that were asked, and of those that are not shown
    counts : public items by two properties, whose names are `over` and `by`
    examples : records of the first public items
    """

    card: Mapping[str, Any]
    asked: int
    withheld: int
    stats: ItemStats | None
    over: str
    by: str
    counts: Sequence[StackedCount]
    examples: Sequence[Mapping[str, Any]]


class OwnMethod(msgspec.Struct, frozen=True, kw_only=True):
    """What of the method of a board is the publisher's own: code by role, the ends of its score and
    columns, texts of prompts, the schema of records as JSON.
    """

    code: Mapping[str, str]
    scale: Sequence[float]
    columns: Mapping[str, Sequence[float]]
    prompts: Mapping[str, str]
    schema: str


class Board(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A sealed run made ready for pages.

    A compact one shows all cells on one page that reads files.

    `answers` gives each cell with its answers, which are read once and in order; `lines` (model,
    canonical JSON line) of every answer, for these files. `kind_pages` are the folders of pages of
    the board's kind with their titles, `kind_files` its files with what they hold. `row_types` says
    what a row of each metric tells, `judged_task` by which task judges decide on answers. Where a
    run has several metrics, `by_metric` has a board of each, with the folder of its rankings, and
    each knows the `whole`. `identity` is what the publisher says of the board, `texts` the words of
    its language, `changes` what it says otherwise than the publication before it. `data_files`
    are the files that lie in `data/`; `worst_answers` gives the lowest answers of each (model,
    setting, mode). `manifest_document` is the manifest with all its keys, for templates, which list
    some.
    """

    publication: str
    date: str
    manifest: Manifest
    manifest_document: ManifestObject
    statistics: Statistics
    seal: Seal
    failures: Mapping[str, int]
    times: Sequence[TimesRow]
    cost_totals: Sequence[CostTotal]
    answers: Callable[[], ShownAnswers]
    row_types: Mapping[str, type[LeaderboardRow]] = msgspec.field(default_factory=dict)
    lines: Callable[[], Iterator[tuple[str, bytes]]]
    compact: bool = False
    trend: Trend = msgspec.field(default_factory=Trend)
    banks: Sequence[ShownBank] = ()
    rerun: Rerun | None = None
    reruns: Sequence[PublishedRerun] = ()
    documents: Mapping[str, str] = msgspec.field(default_factory=dict)
    cases: Sequence[ShownCase] = ()
    kind_pages: Mapping[str, str] = msgspec.field(default_factory=dict)
    kind_files: Mapping[str, str] = msgspec.field(default_factory=dict)
    slugs: dict[tuple[str, str], str] = msgspec.field(default_factory=dict)
    judged_task: str = ""
    own_code_published: bool = False
    folder: str = ""
    whole: "Board | None" = None
    identity: BoardIdentity | None = None
    texts: Texts = ENGLISH
    changes: PublicationChanges | None = None
    data_files: Sequence[str] = ()
    by_category: Sequence[CategoryScore] = ()
    worst_answers: Mapping[tuple[str, str, str], Sequence[WorstAnswer]] = msgspec.field(
        default_factory=dict
    )

    @property
    def title(self) -> str:
        """Return the name of the board, "medassay" where its publisher gave none."""
        return "medassay" if self.identity is None else self.identity.title

    @cached_property
    def model_facts(self) -> Mapping[str, Mapping[str, str]]:
        """Return model → what its entry states of family, licence, weights, size, location."""
        return {name: model_facts(entry) for name, entry in self.manifest.models.items()}

    def domain_name(self, domain: str) -> str:
        """Return the plain name of a domain, its id where the publisher gave none."""
        return domain if self.identity is None else self.identity.domains.get(domain, domain)

    def setting_name(self, setting: str) -> str:
        """Return the plain name of a setting, its id where the publisher gave none."""
        return setting if self.identity is None else self.identity.settings.get(setting, setting)

    @property
    def modes(self) -> list[str]:
        """Return the modes, solo first."""
        return self.statistics.modes

    @cached_property
    def by_metric(self) -> "list[Board]":
        """Return the board of each metric; of a run with one alone this one."""
        parts = self.statistics.by_metric
        if len(parts) == 1:
            return [self]
        return [
            replace(
                self,
                statistics=statistics,
                folder=f"metric/{self.slug(statistics.metric, 'metric')}/" if number else "",
                whole=self,
            )
            for number, statistics in enumerate(parts)
        ]

    @property
    def metrics(self) -> "list[Board]":
        """Return the boards of all metrics of the run, where it has several."""
        boards = (self.whole or self).by_metric
        return boards if len(boards) > 1 else []

    @property
    def figure_prefix(self) -> str:
        """Return what the names of a metric's figures begin with."""
        return self.folder.removeprefix("metric/").replace("/", "-")

    @property
    def demonstration(self) -> bool:
        """Return whether its models are scripted, and ranked to show what a board looks like."""
        return self.manifest.plan.demonstration

    @cached_property
    def scripted_models(self) -> list[str]:
        """Return the models whose numbers are no model's: their answers or judges are scripts."""
        return scripted_models(self._rows_of_all)

    @property
    def is_all_scripted(self) -> bool:
        """Return whether there is no model but these, baselines aside."""
        return is_all_scripted(self._rows_of_all)

    @cached_property
    def _rows_of_all(self) -> list[LeaderboardRow]:
        """Return the rows of the first ranking by each metric."""
        parts = [part.statistics for part in (self.whole or self).by_metric]
        return [row for statistics in parts for row in statistics.rows(statistics.domains[0])]

    @property
    def own_code(self) -> dict[str, str]:
        """Return role → code of the publisher that made the numbers of this board."""
        own = self.manifest.own_code
        return {} if own is None else {role: part.shown for role, part in own.parts.items()}

    @property
    def own_method(self) -> OwnMethod | None:
        """Return what of the method is the publisher's own, None where nothing is."""
        own = self.manifest.own_code
        if own is None:
            return None
        prompts = {**own.templates, **own.grader_templates}
        return OwnMethod(
            code=self.own_code,
            scale=own.scale,
            columns=own.columns,
            prompts={
                f"{name} ({language or 'any language'})": text
                for name, texts in prompts.items()
                for language, text in sorted(texts.items())
            },
            schema=json.dumps(own.schema, ensure_ascii=False, indent=1) if own.schema else "",
        )

    @property
    def judged(self) -> bool:
        """Return whether judges decide on answers here."""
        if self.manifest.bench is None:
            return False
        return self.whole is None or any(
            row.judge_failures is not None for row in self.statistics.rows(OVERALL)
        )

    @property
    def judged_scale(self) -> ScoreScale:
        """Return the scale of the scores that judges give."""
        judged = (board for board in self.metrics if board.judged)
        return next(judged, self).statistics.scale

    @property
    def domains(self) -> list[str]:
        """Return the domains without the overall ranking."""
        if self.whole is None:
            return sorted(self.manifest.domains)
        return sorted(name for name in self.statistics.domains if name != OVERALL)

    @property
    def models(self) -> list[str]:
        """Return the models of the run."""
        return sorted(self.manifest.models)

    def rows(self, domain: str, mode: str | None = None) -> Sequence[LeaderboardRow]:
        """Return the rows of one ranking, of all modes if none is named, with what the board's kind
        tells in a row.
        """
        row_type = LeaderboardRow
        if len(self.statistics.by_metric) == 1:
            row_type = self.row_types.get(self.statistics.metric, LeaderboardRow)
        return self.statistics.rows_as(row_type, domain, mode)

    def relations(self, domain: str, mode: str) -> Relations:
        """Return what holds between the rows of one ranking."""
        return self.statistics.relations(domain, mode)

    def by_provenance(self, domain: str, mode: str, model: str = "") -> list[RowByProvenance]:
        """Return rows of one ranking with public and synthetic items apart, and the gap; empty
        where a board has one kind only.
        """
        apart = self.statistics.by_provenance
        if apart is None:
            return []
        rows: dict[tuple[str, str], RowByProvenance] = {}
        for kind, rankings in (("public", apart.public), ("synthetic", apart.synthetic)):
            for row in rankings.get(domain, []):
                if row.mode == mode and model in ("", row.model):
                    entry = rows.setdefault(row.key, RowByProvenance(row))
                    entry.rows[kind] = row
        for gap in apart.gap:
            if (gap.domain, gap.mode) == (domain, mode) and gap.key in rows:
                rows[gap.key].gap = gap
        for effect in apart.tools_minus_solo:
            if (effect.domain, effect.mode) == (domain, mode) and effect.key in rows:
                rows[effect.key].tools[effect.kind] = effect
        return list(rows.values())

    def slug(self, text: str, kind: str = "") -> str:
        """Return the part of an address for a name of some kind, unique within that kind.

        Names that would collide, or that would hide a page, get a hash.
        """
        key = (kind, text)
        if key not in self.slugs:
            slugs_taken = {slug for (other, _), slug in self.slugs.items() if other == kind}
            slug = slug_text(text)
            digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
            length = 8
            while not slug or slug in slugs_taken or slug == "index.html":
                slug = f"{slug_text(text)}-{digest[:length]}".lstrip("-")
                length += 4
            self.slugs[key] = slug
        return self.slugs[key]

    def ranking_path(self, domain: str, mode: str) -> str:
        """Return the folder of a ranking page, relative to the publication."""
        track = "" if mode == self.modes[0] else f"{self.slug(mode, 'mode')}/"
        if domain == OVERALL:
            return self.folder + (f"track/{track}" if track else "")
        return f"{self.folder}domain/{self.slug(domain, 'domain')}/{track}"

    def cell_link(self, key: ShownCell) -> str:
        """Return the address of a cell's answers, relative to the publication."""
        if not self.compact:
            return f"{self.cell_path(key)}index.html"
        names = {
            "file": self.answers_file(key.model),
            **keyed(key, "domain", "model", "setting", "mode"),
        }
        return f"cell/index.html?{urlencode(names)}"

    def answer_link(self, key: ShownCell, item: str, repeat: int, position: int) -> str:
        """Return the address of one answer, relative to the publication.

        Parameters
        ----------
        position : which answer of its cell it is, from 0
        """
        page = self.cell_link(key)
        if not self.compact and position >= ANSWERS_A_PAGE:
            page = f"{self.cell_path(key)}page-{position // ANSWERS_A_PAGE + 1}/index.html"
        return f"{page}#{answer_anchor(item, repeat)}"

    def answers_file(self, model: str) -> str:
        """Return the name, in `cell/`, of the file of a model's answers in a compact
        publication.
        """
        return f"{self.slug(model)}.jsonl"

    def prompt_path(self, model: str, setting: str, mode: str) -> str:
        """Return the folder of a model-prompt's ranked lists, relative to the publication."""
        place = self.slug(f"{setting}\x1f{mode}", "cell")
        return f"ddx/{self.slug(model)}/{place}/"

    def case_path(self, domain: str, item: str) -> str:
        """Return the folder of the page of one case, relative to the publication."""
        return f"case/{self.slug(domain, 'domain')}/{self.slug(item, f'case {domain}')}/"

    def cell_path(self, key: ShownCell) -> str:
        """Return the folder of a cell page, relative to the publication."""
        # One name for the pair: settings and modes of imports may themselves hold a hyphen.
        place = self.slug(f"{key.setting}\x1f{key.mode}", "cell")
        return f"cell/{self.slug(key.model)}/{self.slug(key.domain, 'domain')}/{place}/"


def answer_anchor(item: str, repeat: int) -> str:
    """Return the id of an answer on its page."""
    slug = slug_text(item)
    if slug != item:  # "a b" and "a-b" must not meet
        slug += "-" + hashlib.sha256(item.encode("utf-8", "replace")).hexdigest()[:8]
    return slug + (f"-r{repeat}" if repeat else "")


def slug_text(text: str) -> str:
    """Return lower-case a-z, 0-9, dot and hyphen only; no leading or trailing mark.

    Examples
    --------
    >>> slug_text("Meta/Llama 3.1 (8B)")
    'meta-llama-3.1-8b'
    """
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:80]


def shown_rows(
    rows: Sequence[LeaderboardRow],
) -> tuple[list[RankedRow], dict[str, list[RankedRow]]]:
    """Return the ranked rows with bar level and tie, and the others by reason.

    Tied rows have equally long bars: that of their group's first row.
    """
    tied = tied_groups(rows)
    # A scale without an end is drawn up to the highest end of an interval.
    top = rows[0].scale[1] if rows else 1.0
    if top is None:
        top = max((row.hi for row in rows if row.hi is not None), default=1.0) or 1.0
    levels: dict[int | None, float | None] = {}
    ranked: list[RankedRow] = []
    others: dict[str, list[RankedRow]] = {}
    for row in rows:
        if row.rank is None:
            entry = RankedRow(row, level=row.score, top=top)
            others.setdefault(row.reason_unranked, []).append(entry)
        else:
            level = levels.setdefault(row.group, row.score)
            shared = (row.mode, row.group) in tied
            ranked.append(RankedRow(row, level=level, top=top, tied=shared))
    return ranked, others
