"""Likeness of two texts by their words and letters: ROUGE, BLEU, token F1, Levenshtein; all in [0, 1].

Lexical only: a text that says the same in other words scores low, one that forgets a "not" scores high.

Source: specification of text metrics. ROUGE is that of rouge_score 0.1.2, BLEU that of `evaluate` (13a tokens, order 4).
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

from rapidfuzz.distance import LCSseq, Levenshtein

BLEU_OF_NONE = 1e-5  # what the harness reports in place of 0
_ORDER = 4
_LATIN = re.compile(r"[^a-z0-9]+")
_WORD = re.compile(r"\w+")
_ENTITIES = {"&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}
_MARKS = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


def rouge_n(prediction: str, reference: str, n: int, *, unicode_tokens: bool = False) -> float:
    """Return the F1 of n-grams; `unicode_tokens` keeps letters beyond a–z, as German and Spanish need.

    Examples
    --------
    >>> round(rouge_n("Opioid withdrawal.", "The patient has opioid withdrawal.", 1), 4)
    0.5714
    """
    first, second = (_grams(_words(t, unicode_tokens), n) for t in (prediction, reference))
    return _f1((first & second).total(), first.total(), second.total())


def rouge_l(prediction: str, reference: str, *, unicode_tokens: bool = False) -> float:
    """Return the F1 of the longest common subsequence of words, the whole text as one sequence."""
    first, second = (_words(text, unicode_tokens) for text in (prediction, reference))
    return _f1(LCSseq.similarity(first, second), len(first), len(second))


def bleu(prediction: str, reference: str, *, smoothed: bool = False) -> float:
    """Return BLEU of one text against one reference; 1e-5 in place of 0, as published.

    Unsmoothed, a text of fewer than four tokens has no 4-gram and gets nothing, however right it is. `smoothed` adds one
    to matches and candidates of orders 2 to 4.
    """
    said, wanted = tokens_13a(prediction), tokens_13a(reference)
    if not said or not wanted:
        return BLEU_OF_NONE
    logs = 0.0
    for n in range(1, _ORDER + 1):
        grams = _grams(said, n)
        plus = int(smoothed and n > 1)
        matches, possible = (grams & _grams(wanted, n)).total() + plus, grams.total() + plus
        if not matches:
            return BLEU_OF_NONE
        logs += math.log(matches / possible)
    penalty = min(1.0, math.exp(1 - len(wanted) / len(said)))
    return max(BLEU_OF_NONE, penalty * math.exp(logs / _ORDER))


def tokens_13a(text: str) -> list[str]:
    """Return the tokens of the WMT standard 13a: marks apart, decimal points within numbers kept.

    Examples
    --------
    >>> tokens_13a("Apixaban 2.5 mg, 1-0-1.")
    ['Apixaban', '2.5', 'mg', ',', '1', '-', '0', '-', '1', '.']
    """
    line = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, character in _ENTITIES.items():
        line = line.replace(entity, character)
    line = f" {line} "
    for pattern, spaced in _MARKS:
        line = pattern.sub(spaced, line)
    return line.split()


def token_f1(prediction: str, reference: str) -> float:
    """Return the F1 of the bags of words, case aside; 1.0 for two texts without a word.

    References
    ----------
    Rajpurkar et al. (2016), SQuAD, arXiv:1606.05250, section 6.1; here without dropping articles.
    """
    first, second = (Counter(_words(text, True)) for text in (prediction, reference))
    if not first and not second:
        return 1.0
    return _f1((first & second).total(), first.total(), second.total())


def levenshtein(prediction: str, reference: str) -> float:
    """Return 1 less the edits that turn one text into the other, over the length of the longer; 1.0 for two empty ones."""
    return float(Levenshtein.normalized_similarity(prediction, reference))


TEXT_METRICS: dict[str, Callable[[str, str], float]] = {
    "bleu": bleu,
    "bleu_smoothed": lambda said, wanted: bleu(said, wanted, smoothed=True),
    "levenshtein": levenshtein,
    "rouge1_unicode": lambda said, wanted: rouge_n(said, wanted, 1, unicode_tokens=True),
    "rouge2_unicode": lambda said, wanted: rouge_n(said, wanted, 2, unicode_tokens=True),
    "rougeL_unicode": lambda said, wanted: rouge_l(said, wanted, unicode_tokens=True),
    "token_f1": token_f1,
}


def _words(text: str, unicode_tokens: bool) -> list[str]:
    lower = text.lower()
    return _WORD.findall(lower) if unicode_tokens else _LATIN.sub(" ", lower).split()


def _grams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[at:] for at in range(n)), strict=False))


def _f1(common: float, n_first: int, n_second: int) -> float:
    if not common:
        return 0.0
    precision, recall = common / n_first, common / n_second
    return 2 * precision * recall / (precision + recall)
