"""Likeness of two texts by their words and letters: ROUGE, BLEU, chrF, token F1, Levenshtein.

All scores lie in [0, 1].

Lexical only: a text that says the same in other words scores low, one that forgets a "not" scores
high.

Source: specification of text metrics. ROUGE is that of rouge_score 0.1.2, BLEU that of `evaluate`
(13a tokens, order 4).
"""

import math
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import pairwise

import msgspec

REVISION = 1

LEXICAL = (
    *("bleu", "bleu_smoothed", "chrf", "levenshtein", "rouge1", "rouge1_unicode"),
    *("rouge2", "rouge2_unicode", "rougeL", "rougeL_unicode", "token_f1"),
)
BLEU_OF_NONE = 1e-5  # what the harness reports in place of 0
_ORDER = 4
_CHRF_ORDER, _CHRF_BETA = 6, 2
_LATIN = re.compile(r"[a-z0-9]+")
_WORD = re.compile(r"\w+")
_ENTITIES = {"&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}
_MARKS = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


class Rouge(msgspec.Struct, frozen=True):
    """F1 of single words, of pairs of words, and of the longest common subsequence.

    Each lies in [0, 1].
    """

    rouge1: float
    rouge2: float
    rougeL: float

    def __getitem__(self, name: str) -> float:
        """Return one of the three by its name."""
        return float(getattr(self, name))


def rouge(prediction: str, reference: str, *, unicode_tokens: bool = False) -> Rouge:
    """Return ROUGE-1, ROUGE-2 and ROUGE-L of a text against one reference, the whole text as one
    sequence.

    Words are runs of a–z and 0–9 in lower case, as in rouge_score without a stemmer;
    `unicode_tokens` keeps letters beyond them, as German and Spanish need.

    References
    ----------
    Lin (2004), https://aclanthology.org/W04-1013.

    Examples
    --------
    >>> found = rouge("The patient has opioid withdrawal.", "Opioid withdrawal.")
    >>> round(found.rouge1, 4), round(found.rouge2, 4), round(found.rougeL, 4)
    (0.5714, 0.4, 0.5714)
    """
    from rapidfuzz.distance import LCSseq

    words = _WORD if unicode_tokens else _LATIN
    first, second = words.findall(prediction.lower()), words.findall(reference.lower())
    n, m = len(first), len(second)
    pairs = _shared(tuple(pairwise(first)), tuple(pairwise(second)))
    return Rouge(
        _f1(_shared(first, second), n, m),
        _f1(pairs, n - 1, m - 1),
        _f1(LCSseq.similarity(first, second), n, m),
    )


def bleu(prediction: str, reference: str, *, smoothed: bool = False) -> float:
    """Return BLEU of one text against one reference; 1e-5 in place of 0, as published.

    Unsmoothed, a text of fewer than four tokens has no 4-gram and gets nothing, however right it
    is. `smoothed` adds one to matches and candidates of orders 2 to 4.
    """
    predicted, expected = _bleu_tokens(prediction), _bleu_tokens(reference)
    if not predicted or not expected:
        return BLEU_OF_NONE
    logs = 0.0
    for n in range(1, _ORDER + 1):
        grams = _grams(predicted, n)
        plus = int(smoothed and n > 1)
        matches, possible = (grams & _grams(expected, n)).total() + plus, grams.total() + plus
        if not matches:
            return BLEU_OF_NONE
        logs += math.log(matches / possible)
    penalty = min(1.0, math.exp(1 - len(expected) / len(predicted)))
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


_bleu_tokens = lru_cache(maxsize=4)(tokens_13a)  # both forms of BLEU ask for the same two texts


def token_f1(prediction: str, reference: str) -> float:
    """Return the F1 of the bags of words, case aside; 1.0 for two texts without a word.

    References
    ----------
    Rajpurkar et al. (2016), SQuAD, arXiv:1606.05250, section 6.1; here without dropping articles.
    """
    first, second = (Counter(_words(text)) for text in (prediction, reference))
    if not first and not second:
        return 1.0
    return _f1((first & second).total(), first.total(), second.total())


def levenshtein(prediction: str, reference: str) -> float:
    """Return 1 less the edits that turn one text into the other, over the length of the longer; 1.0
    for two empty texts.
    """
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.normalized_similarity(prediction, reference))


@lru_cache(maxsize=4)  # a score, and then one of its parts
def chrf(prediction: str, reference: str) -> float:
    """Return chrF2: the F-score of runs of one to six characters, white space aside, recall twice
    as important; in [0, 1].

    Orders longer than either text are left out, as sacrebleu does.

    References
    ----------
    Popović (2015), doi:10.18653/v1/W15-3049.

    Examples
    --------
    >>> round(chrf("stop aspirin", "stop aspirin today"), 4)
    0.6743
    """
    predicted, expected = ("".join(text.split()) for text in (prediction, reference))
    precision = recall = 0.0
    orders = min(_CHRF_ORDER, len(predicted), len(expected))
    for n in range(1, orders + 1):
        first, second = (
            [text[at : at + n] for at in range(len(text) - n + 1)] for text in (predicted, expected)
        )
        common = _shared(first, second)
        precision += common / len(first)
        recall += common / len(second)
    if not precision + recall:
        return 0.0
    precision, recall = precision / orders, recall / orders
    return (1 + _CHRF_BETA**2) * precision * recall / (_CHRF_BETA**2 * precision + recall)


def text_likeness(prediction: str, reference: str) -> dict[str, float]:
    """Return every metric of words of one pair, by name; the names are those of `LEXICAL`."""
    latin = rouge(prediction, reference)
    letters = rouge(prediction, reference, unicode_tokens=True)
    return {
        "bleu": bleu(prediction, reference),
        "bleu_smoothed": bleu(prediction, reference, smoothed=True),
        "chrf": chrf(prediction, reference),
        "levenshtein": levenshtein(prediction, reference),
        "rouge1": latin.rouge1,
        "rouge1_unicode": letters.rouge1,
        "rouge2": latin.rouge2,
        "rouge2_unicode": letters.rouge2,
        "rougeL": latin.rougeL,
        "rougeL_unicode": letters.rougeL,
        "token_f1": token_f1(prediction, reference),
    }


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _grams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[at:] for at in range(n)), strict=False))


def _shared(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return how many elements two bags have in common, each as often as in the bag that has
    fewer.
    """
    counts = Counter(second)
    count_of = counts.get
    return sum(min(n, count_of(gram, 0)) for gram, n in Counter(first).items())


def _f1(common: float, n_first: int, n_second: int) -> float:
    if not common:
        return 0.0
    precision, recall = common / n_first, common / n_second
    return 2 * precision * recall / (precision + recall)
