"""Three judges of three families: who may sit, what they say together, how far they agree.

Source: specification of rubric judging, "Panel rules" and "Agreement".
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec

from medassay.core.records.model import ModelSpec
from medassay.errors import InputError

REVISION = 1

PANEL_SIZE = 3


def panel_score(per_judge: Sequence[float | None], min_judges: int = PANEL_SIZE) -> float | None:
    """Return the mean of the judges' scores; None if fewer than `min_judges` gave one.

    Examples
    --------
    >>> panel_score([1.0, 0.5, 0.75]), panel_score([1.0, None, 0.75])
    (0.75, None)
    """
    scores = [score for score in per_judge if score is not None]
    if not scores or len(scores) < min_judges:
        return None
    return sum(scores) / len(scores)


def check_panel(judges: Sequence[ModelSpec]) -> None:
    """Refuse a panel that is not three judges of three families.

    Raises
    ------
    InputError
        Naming the judges and what was expected.
    """
    names = [spec.id for spec in judges]
    if len(judges) != PANEL_SIZE:
        raise InputError(
            f"plan: judges {', '.join(names) or 'none'}: a panel has exactly {PANEL_SIZE}"
        )
    for spec in judges:
        if spec.family in ("", "unknown"):
            raise InputError(
                f"judge '{spec.id}': its entry names no family; say whose model it is based on"
            )
    for a, b in combinations(judges, 2):
        if a.family.casefold() == b.family.casefold():
            raise InputError(
                f"judges '{a.id}' and '{b.id}' are of one family ({a.family}): a panel needs three "
                "families, so that no vendor's habits decide"
            )


def check_seats(
    seats: Mapping[str, Sequence[ModelSpec]],
    tested: Mapping[str, ModelSpec],
    *,
    allow_own: bool,
) -> None:
    """Refuse a judge that would grade itself, and one that cannot judge at all."""
    for name, judges in seats.items():
        for judge in judges:
            if judge.is_baseline:
                raise InputError(f"judge '{judge.id}': a baseline cannot judge")
            if not allow_own and same_model(judge, tested[name]):
                raise InputError(
                    f"judge '{judge.id}' is the tested model '{name}': it would grade itself;"
                    " choose another judge, or set allow_own = true, which the board will say"
                )


def check_substitute(judges: Sequence[ModelSpec], substitute: ModelSpec) -> None:
    """Refuse a substitute that is not of a fourth family."""
    for judge in judges:
        if judge.family.casefold() == substitute.family.casefold():
            raise InputError(
                f"substitute '{substitute.id}' is of the family of judge '{judge.id}' "
                f"({judge.family}); a fourth family is needed"
            )


def same_model(a: ModelSpec, b: ModelSpec) -> bool:
    """Return whether two entries are one model."""
    if a.id == b.id:
        return True
    named = (a.provider, a.url, a.path, a.sent_name)
    return a.provider != "fake" and named == (b.provider, b.url, b.path, b.sent_name)


def seated(
    judges: Sequence[ModelSpec], substitute: ModelSpec | None, tested: ModelSpec
) -> tuple[ModelSpec, ...]:
    """Return the judges of one tested model: a substitute replaces a judge of its family."""
    if substitute is None:
        return tuple(judges)
    own_family = tested.family.casefold()
    return tuple(substitute if judge.family.casefold() == own_family else judge for judge in judges)


class AnswerAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far the judges of one answer agree: shares of facts, in [0, 1]."""

    pairwise: float
    unanimous: float


def agreement(verdicts: Sequence[Sequence[str]]) -> AnswerAgreement:
    """Return the agreement over the facts of one answer.

    Parameters
    ----------
    verdicts : judges × facts, at least two judges

    Examples
    --------
    >>> agreement([["entail", "missing"], ["entail", "entail"], ["entail", "entail"]])
    AnswerAgreement(pairwise=0.6666666666666666, unanimous=0.5)
    """
    pairs = len(verdicts) * (len(verdicts) - 1) / 2
    shares, unanimous = 0.0, 0
    for fact in zip(*verdicts, strict=True):
        counts = Counter(fact)
        shares += sum(n * (n - 1) / 2 for n in counts.values()) / pairs
        unanimous += len(counts) == 1
    n = len(verdicts[0])
    return AnswerAgreement(pairwise=shares / n, unanimous=unanimous / n)


def hallucinated(claims_per_judge: Sequence[int]) -> bool:
    """Return whether at least two judges list a false claim whose quote is in the answer."""
    return sum(n > 0 for n in claims_per_judge) >= 2


def above_others(scores: Mapping[str, float]) -> dict[str, float]:
    """Return how far each judge of one answer lies above the mean of the others.

    Its mean over answers of the judge's own family minus that over others is its self-preference.

    Examples
    --------
    >>> above_others({"a": 1.0, "b": 0.5, "c": 0.0})
    {'a': 0.75, 'b': 0.0, 'c': -0.75}
    """
    if len(scores) < 2:
        return {}
    total, others = sum(scores.values()), len(scores) - 1
    return {name: score - (total - score) / others for name, score in scores.items()}
