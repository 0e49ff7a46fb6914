"""One page a model: what it is, its place in every domain, of whom no difference is shown, its
trend, where it fails, and the way to its answers.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from medassay.core.json import record_as
from medassay.core.records.statistics import OVERALL
from medassay.core.records.trend import PublishedPoint
from medassay.report.board import Board, RankedRow, ShownCell, shown_rows
from medassay.report.pages.html import Page, render
from medassay.report.undecided import (
    ALL_PLANNED_UP_TO,
    PLANNED_EACH,
    UndecidedPair,
    undecided_pairs,
)
from medassay.report.weak_spots import CategoryScore, WorstAnswer

_FACTS = {
    "provider": "Provider",
    "model": "Name at its endpoint",
    "version": "Version",
    "family": "Family",
    "licence": "Licence of the weights",
    "size": "Billions of parameters",
    "location": "Answers from",
    "context": "Context, tokens",
    "quantisation": "Quantisation",
    "engine": "Engine",
    "engine_version": "Engine version",
}
_SAMPLING = {
    "temperature": "Temperature",
    "top_p": "Top p",
    "max_tokens": "Tokens of a reply, at most",
}
_UNDECIDED_SHOWN = 30
_TREND_SHOWN = 24


class _ModelPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A row of one ranking: with its bar, the address of its answers, and its undecided pairs."""

    domain: str
    board: Board
    entry: RankedRow
    cell: str
    ranking: str
    n_ranked: int
    undecided: list[UndecidedPair]


class _ModelView(msgspec.Struct):
    places: list[_ModelPlace] = msgspec.field(default_factory=list)
    points: list[PublishedPoint] = msgspec.field(default_factory=list)
    categories: list[CategoryScore] = msgspec.field(default_factory=list)
    worst: list[tuple[str, str, WorstAnswer, str]] = msgspec.field(default_factory=list)


def pages(board: Board) -> Iterator[Page]:
    """Yield the page of each model."""
    views = _views(board)
    for model in board.models:
        view = views[model]
        yield render(
            "model.html",
            board,
            f"model/{board.slug(model)}/",
            model=model,
            facts=_facts(board, model),
            places=view.places,
            undecided=[place for place in view.places if place.domain == OVERALL],
            undecided_shown=_UNDECIDED_SHOWN,
            planned_up_to=ALL_PLANNED_UP_TO,
            planned_each=PLANNED_EACH,
            points=view.points[-_TREND_SHOWN:],
            categories=view.categories,
            worst=view.worst,
            harm=[
                (place.entry.row, _is_graded(place)) for place in view.places if _is_marked(place)
            ],
        )


def _is_graded(place: _ModelPlace) -> bool:
    imported = place.board.manifest.is_import
    return place.board.statistics.is_graded(place.entry.row.mode, imported=imported)


def _is_marked(place: _ModelPlace) -> bool:
    harm = place.entry.row.harm
    return place.domain == OVERALL and harm is not None and harm.marked > 0


def _views(board: Board) -> Mapping[str, _ModelView]:
    """Return model → what its page shows: each ranking is read once, whatever the models."""
    views: dict[str, _ModelView] = defaultdict(_ModelView)
    for part in board.by_metric:
        for domain in (OVERALL, *part.domains):
            for mode in part.modes:
                _add_ranking(views, part, domain, mode)
    points = record_as(board.trend.points, list[PublishedPoint], "data/trend.json")
    for point in points:
        views[point.model].points.append(point)
    for category in board.by_category:
        views[category.model].categories.append(category)
    for (model, setting, mode), answers in board.worst_answers.items():
        for answer in answers:
            key = ShownCell(domain=answer.domain, model=model, setting=setting, mode=mode)
            link = board.answer_link(key, answer.item, answer.repeat, answer.position)
            views[model].worst.append((setting, mode, answer, link))
    for view in views.values():
        view.categories.sort(key=lambda one: (one.metric, one.setting, one.mode, one.category))
    return views


def _add_ranking(views: Mapping[str, _ModelView], board: Board, domain: str, mode: str) -> None:
    ranked, others = shown_rows(board.rows(domain, mode))
    partners = undecided_pairs(board, domain, mode)
    for entry in (*ranked, *(entry for entries in others.values() for entry in entries)):
        row = entry.row
        key = ShownCell(domain=domain, model=row.model, setting=row.setting, mode=mode)
        views[row.model].places.append(
            _ModelPlace(
                domain=domain,
                board=board,
                entry=replace(entry, level=row.score),  # in no group here: each bar is its own
                cell="" if domain == OVERALL else board.cell_link(key),
                ranking=board.ranking_path(domain, mode),
                n_ranked=len(ranked),
                undecided=partners.get(row.key, []),
            )
        )


def _facts(board: Board, model: str) -> dict[str, str | float]:
    """Return what a model is and how it was asked, by what it is called."""
    spec = board.manifest_document["models"][model]
    facts = {label: spec.get(name) for name, label in _FACTS.items()}
    sampling = board.manifest.sampling.get(model, {})
    facts |= {label: sampling.get(name) for name, label in _SAMPLING.items()}
    return {label: fact for label, fact in facts.items() if fact not in (None, "", "unknown")}
