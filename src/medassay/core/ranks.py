"""What is said of ranks, in words that are literally true of the relation that they come from.

Source: specification of ranks, R2, R3 and R7.
"""

from collections.abc import Sequence
from typing import Final, Literal

from medassay.core.wording import listed

SIMULTANEOUS: Final = "simultaneous"  # the rule by which a rank is a range
_NAMED = 5  # so many names stand in one sentence


def rank_range(lo: int | None, hi: int | None) -> str:
    """Return the ranks that a row may have, "2–4", one number only where it is certain.

    A dash where it is not ranked.

    Examples
    --------
    >>> rank_range(2, 4), rank_range(3, 3), rank_range(None, None)
    ('2–4', '3', '–')
    """
    if lo is None:
        return "–"
    return f"{lo}" if lo == hi else f"{lo}–{hi}"


def range_title(lo: int, hi: int, n_ranked: int) -> str:
    """Return what a range of ranks says.

    Examples
    --------
    >>> range_title(2, 4, 10)
    '2–4: 1 model is shown to be better, 6 to be worse'
    """
    above, below = lo - 1, n_ranked - hi
    better = "no model is" if above == 0 else "1 model is" if above == 1 else f"{above} models are"
    return f"{rank_range(lo, hi)}: {better} shown to be better, {below or 'none'} to be worse"


def ranking_sentence(
    first: Sequence[str],
    others: Sequence[str],
    *,
    graded: bool = False,
    needed: tuple[str, str, int] | None = None,
    who: str = "model",
) -> str:
    """Return the answer to "who is best?".

    Parameters
    ----------
    first : names of the rows whose first rank is 1, by score, then name
    others : names of the other ranked rows
    graded : whether scores are graded, so that the error is about 5 %
    needed : two rows, and about how many items would tell them apart; said where no difference is
        shown at all
    who : what a row is: a model, or a pair of model and setting

    Examples
    --------
    >>> ranking_sentence(["A"], ["B"])
    'A is shown to be better than B (same questions, at most 5 % error).'
    """
    if not first:
        return f"No {who} is ranked here."
    if len(first) == 1:
        return _sentence_of_one(
            first[0], others, error=f"{'about' if graded else 'at most'} 5 %", who=who
        )
    if not others:
        return _sentence_of_all(first, needed, who)
    n, sure = len(first) + len(others), "about 95 %" if graded else "95 %"
    if len(first) <= _NAMED:
        return (
            f"No {who} is shown to be better than {listed(first, 'or')}: with {sure} confidence the"
            f" best of the {n} is among them. Between these {len(first)} no difference is shown."
        )
    return (
        f"With {sure} confidence the best of the {n} is among {len(first)} {who}s, by score first"
        f" {listed(first[:3])}. Between these {len(first)} no difference is shown."
    )


def _sentence_of_one(name: str, others: Sequence[str], *, error: str, who: str) -> str:
    if not others:
        return f"{name} is the only {who} that is ranked."
    if len(others) == 1:
        return f"{name} is shown to be better than {others[0]} (same questions, {error} error)."
    return (
        f"{name} is shown to be better than each of the {len(others)} others (same questions, all"
        f" pairs tested at once, {error} error for the whole table)."
    )


def _sentence_of_all(names: Sequence[str], needed: tuple[str, str, int] | None, who: str) -> str:
    names_text = (
        f"{names[0]} and {names[1]}" if len(names) == 2 else f"any of the {len(names)} {who}s"
    )
    sentence = f"No difference between {names_text} is shown."
    if needed is None:
        return sentence
    first, second, exact = needed
    items = int(float(f"{exact:.3g}"))  # "about" has no six digits
    return f"{sentence} About {items:,} items would be needed to tell {first} from {second}."


SHOWN, NOT_SHOWN = "difference shown", "no difference shown"  # of two, in studies


def small_domain_text(domain: str, items: int, clusters: int, weight: float) -> str:
    """Return what is said of a domain of few items.

    Parameters
    ----------
    weight : of the domain in the mean, in [0, 1]

    Examples
    --------
    >>> small_domain_text("rare", 2, 2, 0.5)
    'rare: 2 items, 50.0 % of the mean'
    """
    text = f"{items} item{'s' if items != 1 else ''}"
    if clusters < items:
        text += f" in {clusters} cluster{'s' if clusters != 1 else ''}"
    return f"{domain}: {text}, {100 * weight:.1f} % of the mean"


Reading = Literal["first", "second", "none"]  # which of two rows is shown to be better


def overlap_sentence(
    first: Sequence[str], better: Sequence[tuple[str, str]], *, rule: str, who: str = "model"
) -> str:
    """Return the answer to "who is best?" by a rule on which rows share a rank whose intervals
    overlap.

    Parameters
    ----------
    first : names of the rows on rank 1, by score, then name
    better : pairs of rows of which the paired test shows the first to be better; only those on rank
        1 are told
    rule : how the rule is called
    """
    if not first:
        return f"No {who} is ranked here."
    if len(first) == 1:
        return (
            f"{first[0]} is alone on rank 1: its 95 % interval lies apart from that of every other"
            f" ({rule})."
        )
    sentence = f"{len(first)} {who}s share rank 1: their 95 % intervals overlap ({rule})."
    claims = [
        f"{name} to be better than {other}" for name, other in better if {name, other} <= {*first}
    ]
    if claims:
        more = f", and {len(claims) - 3} more pairs" if len(claims) > 3 else ""
        sentence += f" Overlap is no test: the paired test shows {listed(claims[:3])}{more}."
    return sentence


def p_text(p: float) -> str:
    """Return a p value as people read it.

    Examples
    --------
    >>> p_text(0.0), p_text(0.0421)
    ('< 0.001', '0.042')
    """
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
