"""The score of G-Eval weighted by probability: what the judge almost said counts too.

Source: specification of G-Eval, "Probability-weighted score"; Liu et al. (2023),
doi:10.18653/v1/2023.emnlp-main.153.
"""

import math
from collections.abc import Mapping

from msgspec import UNSET, UnsetType

from medassay.core.records.completion import Completion
from medassay.core.records.verdict import VerdictBody
from medassay.judging.graders.csv_scores import BEST, integral

_LEAST_MASS = 0.5  # of the probability on integers 0..10; below it the sampled integer stands


def weighted_score(
    top: Mapping[str, float], sampled: int, next_after_1: Mapping[str, float] | None = None
) -> tuple[float, bool]:
    """Return (score, whether it is weighted by probability) at the position of the score's token.

    Parameters
    ----------
    top : candidate token → probability; tokens that are an integer 0..10 count, variants are merged
    sampled : the integer that was sampled; stands where the integers have less than half the mass
    next_after_1 : candidates of the next position, where the tokenizer writes 10 as "1" and "0"

    Examples
    --------
    >>> weighted_score({"7": 0.5, "8": 0.3, "9": 0.2}, 7)
    (7.7, True)
    >>> weighted_score({"7": 0.2, "x": 0.8}, 7)
    (7.0, False)
    """
    mass: dict[int, float] = {}
    for token, p in top.items():
        score = integral(token)
        if score is not None:
            mass[score] = mass.get(score, 0.0) + p
    if next_after_1 is not None and 1 in mass:
        ten = min(1.0, sum(p for token, p in next_after_1.items() if token.strip() == "0"))
        mass[BEST] = mass.get(BEST, 0.0) + mass[1] * ten
        mass[1] *= 1 - ten
    total = math.fsum(mass.values())
    if total < _LEAST_MASS:
        return float(sampled), False
    return math.fsum(score * p for score, p in mass.items()) / total, True


class ScoreBody(VerdictBody, frozen=True, kw_only=True):
    """A score from 0 to 10.

    Attributes
    ----------
    integer : that was sampled, where scores are weighted
    weighted : whether the score is; it is not where the endpoint named no candidates, where no
        token is the integer, or where the integers have less than half of the probability
    one_or_ten : probability of a "1" of which nobody knows whether a "0" would have followed
    """

    score: float
    integer: int | UnsetType = UNSET
    weighted: bool | UnsetType = UNSET
    one_or_ten: float | UnsetType = UNSET


def weigh(completion: Completion, sampled: int) -> ScoreBody:
    """Return the body of a verdict whose score is weighted by probability."""
    at = _place(completion, sampled)
    if at is None or not completion.alternatives:
        return ScoreBody(score=float(sampled), integer=sampled, weighted=False)
    top = _probabilities(completion, at)
    token = (completion.logprobs or ())[at][0].strip()
    following = _probabilities(completion, at + 1) if token == "1" else None
    score, weighted = weighted_score(top, sampled, following or None)
    p_one = sum(p for name, p in top.items() if name.strip() == "1")
    one_or_ten = p_one if p_one > 0 and not following else UNSET
    return ScoreBody(score=score, integer=sampled, weighted=weighted, one_or_ten=one_or_ten)


def _place(completion: Completion, sampled: int) -> int | None:
    """Return the place of the last token that is the integer, or that begins a 10 in two tokens."""
    tokens = [token.strip() for token, _ in completion.logprobs or ()]
    pairs = zip(tokens, [*tokens[1:], ""], strict=False)
    places = [
        at
        for at, pair in enumerate(pairs)
        if (pair[0] == str(sampled) or (sampled == BEST and pair == ("1", "0")))
        and not (at and tokens[at - 1].endswith("."))  # the 0 of "7.0" is no score
    ]
    return places[-1] if places else None


def _probabilities(completion: Completion, at: int) -> dict[str, float]:
    """Return candidate → probability at one token; empty behind the last one."""
    alternatives = completion.alternatives or ()
    probabilities: dict[str, float] = {}
    for token, logprob in alternatives[at] if at < len(alternatives) else ():
        probabilities[token] = probabilities.get(token, 0.0) + math.exp(min(logprob, 0.0))
    return probabilities
