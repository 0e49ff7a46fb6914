"""Plain perplexities of texts from their log-likelihoods: per word, per byte, bits per byte.

Source: specification of perplexity, 8.1; the counts are those of lm-evaluation-harness.
"""

import math
import re
from collections.abc import Sequence

import msgspec

from medassay.core.records.answer import Answer
from medassay.core.records.item import Item

REVISION = 1
SIZES = ("nats", "words", "bytes", "tokens")  # of one document

_BLANKS = re.compile(r"\s+")


class Perplexities(msgspec.Struct, frozen=True, kw_only=True):
    """Perplexities over some documents, lower is better.

    None where no document counts or the number is too large.

    `nats_per_word` and `nats_per_byte` are their logarithms, which are always there for a document.
    `excluded` counts documents without text. `bytes_per_word` is the same for all models of a task:
    where it differs, the texts did.
    """

    word_perplexity: float | None
    byte_perplexity: float | None
    bits_per_byte: float | None
    nats_per_word: float | None
    nats_per_byte: float | None
    documents: int
    words: int
    bytes: int
    excluded: int

    @property
    def bytes_per_word(self) -> float | None:
        """Return bytes over words, None without a word."""
        return self.bytes / self.words if self.words else None


def count_words(text: str) -> int:
    r"""Return how many parts blanks cut a text into; a blank at either end adds an empty one.

    Examples
    --------
    >>> count_words("one two"), count_words(" leading space"), count_words("")
    (2, 3, 1)
    """
    return len(_BLANKS.split(text))


def count_bytes(text: str) -> int:
    """Return the length of a text in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def corpus(ll: Sequence[float], texts: Sequence[str]) -> Perplexities:
    """Return the perplexities of documents from the natural log-likelihood of each.

    Parameters
    ----------
    ll : sum of the log-probabilities of a document's tokens, at most 0
    texts : the documents, in the same order; an empty one is left out and counted

    Raises
    ------
    ValueError
        When the lengths differ, or a log-likelihood is above 0 or no number.

    Examples
    --------
    >>> found = corpus([-2.772588722239781, -4.446565155811453], ["a b", "cä"])
    >>> round(found.word_perplexity, 6), found.words, found.bytes
    (11.09378, 3, 6)
    """
    if len(ll) != len(texts):
        raise ValueError(f"{len(ll)} log-likelihoods, {len(texts)} texts; expected one each")
    for at, value in enumerate(ll):
        if not value <= 0:
            raise ValueError(f"log-likelihood {at}: {value}; expected a number, at most 0")
    pairs = [(value, text) for value, text in zip(ll, texts, strict=True) if text]
    total = math.fsum(value for value, _ in pairs)
    words = sum(count_words(text) for _, text in pairs)
    size = sum(count_bytes(text) for _, text in pairs)
    per_word = -total / words if words else None
    per_byte = -total / size if size else None
    return Perplexities(
        word_perplexity=finite_exp(per_word),
        byte_perplexity=finite_exp(per_byte),
        bits_per_byte=None if per_byte is None else per_byte / math.log(2),
        nats_per_word=per_word,
        nats_per_byte=per_byte,
        documents=len(pairs),
        words=words,
        bytes=size,
        excluded=len(texts) - len(pairs),
    )


def finite_exp(value: float | None) -> float | None:
    """Return e to a power, None where it is too large for a number or there is none.

    Examples
    --------
    >>> finite_exp(0.0), finite_exp(800.0), finite_exp(None)
    (1.0, None, None)
    """
    if value is None:
        return None
    try:
        perplexity = math.exp(value)
    except OverflowError:
        return None
    return perplexity if math.isfinite(perplexity) else None


def bits_per_byte(item: Item, answer: Answer) -> tuple[float | None, str]:
    """Return the bits per byte of one document, and why.

    None where its text is empty or impossible.
    """
    [likelihood] = answer.likelihoods
    if not likelihood.n_bytes:
        return None, "empty target"
    if math.isinf(likelihood.total):
        return None, "impossible"
    return max(0.0, -likelihood.total) / likelihood.n_bytes / math.log(2), "likelihood"


def perplexity_parts(item: Item, answer: Answer, text: str) -> dict[str, float | None]:
    """Return what corpus perplexities are summed from: nats, words and bytes of one document.

    {} for what was no likelihood.
    """
    if answer.drawn is not None or len(answer.likelihoods) != 1:
        return {}
    [likelihood] = answer.likelihoods
    is_finite = math.isfinite(likelihood.total)
    return {
        "nats": max(0.0, -likelihood.total) if is_finite else None,
        "words": count_words(item.reference_text),
        "bytes": likelihood.n_bytes,
        "tokens": likelihood.n_tokens,
    }
