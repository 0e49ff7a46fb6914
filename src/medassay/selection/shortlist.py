"""Candidates through named steps: who stays, who goes, and why.

Source: specification of model selection.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypedDict

import msgspec

from medassay.core.canonical import canonical, sha256_hex
from medassay.core.keyed import KeyedRecord
from medassay.errors import InputError
from medassay.selection.candidate import Candidate
from medassay.selection.discipline import DisciplineScores, Recomputed
from medassay.selection.licence import FAMILIES, POLICIES, STATED, admits
from medassay.selection.steps import SelectionSteps


class _Step(msgspec.Struct, frozen=True):
    """A step: what is known of a candidate (None is unknown), and why that does not do ("" when it
    does).
    """

    name: str
    asks: str
    known: Callable[[Candidate], Any]
    reason: Callable[[Any], str]

    def __call__(self, candidate: Candidate) -> str | None:
        value = self.known(candidate)
        return None if value is None else self.reason(value)


class StepResult(KeyedRecord, msgspec.Struct, frozen=True, kw_only=True):
    """One step: models kept, in order of their mean; (model, reason) for those that go.

    Models of which a step knows nothing stay and are marked.
    """

    KEYS: ClassVar = ("name", "asks", "kept", "removed", "unknown")

    name: str
    asks: str
    kept: tuple[str, ...]
    removed: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]


class ShortlistRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model of a shortlist: its mean, and the steps that nobody could answer for it."""

    candidate: Candidate
    mean: float | None
    unknown: tuple[str, ...]


class ShortlistDocument(TypedDict, total=False):
    """A shortlist as a file keeps it; `id` is the hash over the rest."""

    id: str
    steps: dict[str, Any]
    candidates: int
    taken: list[dict[str, Any]]
    shortlist: list[dict[str, Any]]
    licences: list[dict[str, Any]]
    licences_stated: str
    recomputed: dict[str, Any] | None


class Shortlist(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The models that passed every step, best mean first, and the way there."""

    steps: SelectionSteps
    candidates: int
    taken: tuple[StepResult, ...]
    rows: tuple[ShortlistRow, ...]
    scores: DisciplineScores | None = None

    @cached_property
    def recomputed(self) -> Recomputed | None:
        """Return what predictions say of these models; None where there are none."""
        if self.scores is None:
            return None
        return self.scores.recomputed({row.candidate.model: row.candidate for row in self.rows})

    def document(self) -> ShortlistDocument:
        """Return everything as JSON values; `id` is the hash over it all."""
        document: ShortlistDocument = {
            "steps": self.steps.to_dict(),
            "candidates": self.candidates,
            "taken": [step.to_dict() for step in self.taken],
            "shortlist": [
                row.candidate.to_dict() | {"mean": row.mean, "unknown": list(row.unknown)}
                for row in self.rows
            ],
            "licences": [family.to_dict() for family in FAMILIES],
            "licences_stated": STATED,
            "recomputed": msgspec.to_builtins(self.recomputed),
        }
        return {"id": sha256_hex(canonical(document))[:16], **document}


def shortlist(
    candidates: Sequence[Candidate],
    steps: SelectionSteps,
    scores: DisciplineScores | None = None,
) -> Shortlist:
    """Return the candidates that pass every step.

    A model of which nobody knows what a step asks stays and is marked, or goes, as the steps say.
    An empty shortlist is a valid result.

    Parameters
    ----------
    scores : of predictions; where a candidate has some, its mean can be held against them

    Raises
    ------
    InputError
        When a discipline that the steps name stands twice, or no candidate has a score in it.
    """
    if len(set(steps.disciplines)) < len(steps.disciplines):
        raise InputError("disciplines: one stands twice and would weigh double")
    for name in steps.disciplines:
        if not any(name in candidate.scores for candidate in candidates):
            disciplines = sorted({key for candidate in candidates for key in candidate.scores})
            raise InputError(
                f"disciplines: nobody has a score in '{name}'; the table has"
                f" {', '.join(disciplines) or 'none'}"
            )
    remaining = sorted(candidates, key=lambda candidate: _order(candidate, steps))
    marks: dict[str, list[str]] = {}
    steps_taken: list[StepResult] = []
    for step in _steps_of(steps):
        reasons = {candidate.model: step(candidate) for candidate in remaining}
        unknown = [model for model, reason in reasons.items() if reason is None]
        if steps.unknown == "remove":
            reasons |= dict.fromkeys(unknown, "unknown")
            unknown = []
        for model in unknown:
            marks.setdefault(model, []).append(step.name)
        remaining = [candidate for candidate in remaining if not reasons[candidate.model]]
        steps_taken.append(
            StepResult(
                name=step.name,
                asks=step.asks,
                kept=tuple(candidate.model for candidate in remaining),
                removed=tuple((model, reason) for model, reason in reasons.items() if reason),
                unknown=tuple(unknown),
            )
        )
    return Shortlist(
        steps=steps,
        candidates=len(candidates),
        taken=tuple(steps_taken),
        rows=tuple(
            ShortlistRow(
                candidate=c,
                mean=c.mean(steps.disciplines),
                unknown=tuple(marks.get(c.model, ())),
            )
            for c in remaining
        ),
        scores=None if scores is None else scores.of(remaining),
    )


def _order(candidate: Candidate, steps: SelectionSteps) -> tuple[float, str]:
    mean = candidate.mean(steps.disciplines)
    return (1.0 if mean is None else -mean, candidate.model)


def _steps_of(steps: SelectionSteps) -> Iterator[_Step]:
    most, least, policy = steps.max_parameters_b, steps.min_context_tokens, steps.licences
    qualifiers = {name.casefold() for name in steps.qualifiers}
    if most is not None:
        yield _Step(
            "size",
            f"at most {most:g} billion parameters",
            lambda c: c.parameters_b,
            lambda size: "" if size <= most else f"{size:g} billion parameters",
        )
    if steps.open_weights:
        yield _Step(
            "weights",
            "open weights",
            lambda c: c.open_weights,
            lambda opened: "" if opened else "closed weights",
        )
    if qualifiers:
        yield _Step(
            "qualifier",
            " or ".join(steps.qualifiers),
            lambda c: c.qualifier,
            lambda qualifier: (
                "" if qualifier.casefold() in qualifiers else f"qualifier {qualifier}"
            ),
        )
    yield _Step(
        "disciplines",
        f"scores in {', '.join(steps.disciplines)}",
        lambda c: c.mean(steps.disciplines),
        lambda mean: "",
    )
    if least is not None:
        yield _Step(
            "window",
            f"at least {least:,} tokens of context",
            lambda c: c.context_tokens,
            lambda window: "" if window >= least else f"a window of {window:,} tokens",
        )
    if policy is not None:
        yield _Step(
            "licence",
            POLICIES[policy],
            lambda c: c.licence,
            lambda licence: "" if admits(policy, licence) else f"licence {licence}",
        )
