"""Likelihoods as a cell page shows them: of each option, and of each statement along the
completions.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

import msgspec

from medassay.bank.check import build_item
from medassay.core.records.item import Item
from medassay.core.records.item_object import ItemObject
from medassay.core.records.likelihood import finite_or_none
from medassay.core.records.relaxed import (
    Position,
    StoredCompletion,
    StoredCompletions,
    Tables,
)
from medassay.core.records.sealed_object import TrialObject
from medassay.core.records.target import LETTERS
from medassay.core.records.trial import Trial
from medassay.kinds.likelihood.relaxed_perplexity import combine

_TINTS = 5  # steps of the background that shows how likely a statement is
_LAST = 60  # characters shown before the place where a statement is likeliest
_WIDTH, _HEIGHT = 320, 80  # of the curve


class Curve(TypedDict):
    """A small curve in pixels, and the values at its ends."""

    points: list[tuple[float, float]]
    low: float
    high: float
    width: int
    height: int


class CompletionPiece(TypedDict):
    """A stretch of a completion, and how likely a statement is where it begins."""

    at: int
    value: float | None
    tint: int
    text: str


class ShownCompletion(TypedDict):
    """A completion in pieces."""

    logprob: float | None
    n_tokens: int
    pieces: list[CompletionPiece]


class ShownStatement(TypedDict):
    """A statement that completions may hold, and where it is likely in them."""

    text: str
    role: str
    value: float | None
    reason: str
    log_p: list[dict[str, float | None]]
    best: dict[str, str | float | None]
    curve: Curve | None
    completions: list[ShownCompletion]


def shows_likelihood(item: ItemObject, trial: TrialObject) -> bool:
    """Return whether a trial asked for likelihoods."""
    return "likelihoods" in trial or "drawn" in trial


def likelihood_view(item: ItemObject, trial: Trial) -> dict[str, Any] | None:
    """Return what a page shows of an answer that was asked for likelihoods; None for other answers.

    Returns
    -------
    dict
        options (text, total, n_tokens, per byte, chosen) for choices; texts for perplexities;
        targets (text, role, value, curve, likeliest place, completions in pieces) for statements in
        completions
    """
    if trial.drawn is not None:
        return {"targets": list(_targets(build_item(item), trial.drawn))}
    if trial.likelihoods is None:
        return None
    likelihoods = [
        {**msgspec.structs.asdict(likelihood), "per_byte": likelihood.per_byte}
        for likelihood in trial.likelihoods
    ]
    if not item.get("options"):
        return {"texts": likelihoods}
    order = trial.order or range(len(likelihoods))
    return {
        "options": [
            {**likelihood, "letter": LETTERS[place], "chosen": LETTERS[place] == trial.value}
            for likelihood, place in zip(likelihoods, order, strict=True)
        ]
    }


def _targets(item: Item, samples: StoredCompletions) -> Iterator[ShownStatement]:
    """Yield what is shown of each statement, what an answer must have first."""
    must = item.must_have
    texts = [*must, *item.nice_to_have]
    for at, (text, target) in enumerate(zip(texts, samples.targets, strict=True)):
        tables = target.tables
        summed = combine(tables, "sum")
        best = max(range(len(summed.log_p)), key=summed.log_p.__getitem__)
        yield {
            "text": text,
            "role": "must" if at < len(must) else "nice",
            "value": summed.value,
            "reason": summed.reason,
            "log_p": [
                {"at": position.at, "value": finite_or_none(value)}
                for position, value in zip(tables.positions, summed.log_p, strict=True)
            ],
            "best": {
                "at": tables.positions[best].at,
                "value": finite_or_none(summed.log_p[best]),
                "behind": _behind(samples.kept, tables.positions[best], best),
            },
            "curve": _curve([finite_or_none(value) for value in summed.log_p]),
            "completions": list(_pieces(samples.kept, tables)),
        }


def _behind(sampled: Sequence[StoredCompletion], position: Position, at: int) -> str:
    """Return the end of the text after which a statement is likeliest, "" where that is empty."""
    place = max(range(len(position.prefixes)), key=lambda n: position.prefixes[n].target)
    for completion in sampled:
        if at < len(completion.prefixes) and completion.prefixes[at] == place:
            return completion.text[: completion.ends[at]][-_LAST:]
    return ""


def _pieces(sampled: Sequence[StoredCompletion], tables: Tables) -> Iterator[ShownCompletion]:
    """Yield each completion cut at its positions, with how likely the statement is where a piece
    ends.

    Tints are steps between the least and the most likely place over all completions.
    """
    values = [p.target for position in tables.positions for p in position.prefixes]
    finite = [value for value in values if finite_or_none(value) is not None]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    for completion in sampled:
        pieces: list[CompletionPiece] = []
        ends = [*completion.ends, len(completion.text)]
        for place, which in enumerate(completion.prefixes):
            value = tables.positions[place].prefixes[which].target
            share = (value - low) / (high - low) if high > low and value >= low else 0.0
            pieces.append(
                {
                    "at": tables.positions[place].at,
                    "value": finite_or_none(value),
                    "tint": min(_TINTS - 1, int(share * _TINTS)),
                    # What follows a position, up to the next one.
                    "text": completion.text[ends[place] : ends[place + 1]],
                }
            )
        yield {
            "logprob": completion.logprob,
            "n_tokens": completion.n_tokens,
            "pieces": pieces,
        }


def _curve(values: Sequence[float | None]) -> Curve | None:
    """Return points of a small curve, in pixels; None where nothing can be drawn."""
    finite = [value for value in values if value is not None]
    if len(finite) < 2:
        return None
    low, high = min(finite), max(finite)
    step = _WIDTH / max(1, len(values) - 1)
    points = [
        (round(at * step, 1), round((high - value) / (high - low or 1.0) * _HEIGHT, 1))
        for at, value in enumerate(values)
        if value is not None
    ]
    return {"points": points, "low": low, "high": high, "width": _WIDTH, "height": _HEIGHT}
