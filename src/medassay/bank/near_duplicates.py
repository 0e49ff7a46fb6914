"""Near duplicates: items that ask the same, in one bank or in several, among hundreds of thousands.

Two items are near duplicates when their texts have a normalised Levenshtein similarity of at least
0.85, or the same set of words. MinHash over 5-character shingles finds the candidates, rapidfuzz
measures each; so what is reported is exact, and what may be missed are pairs whose shingles differ
much although few characters do (`benchmarks/RESULTS.md` tells how many).

Source: specification of bank synthesis, 10.3; Broder (1997), doi:10.1109/SEQUEN.1997.666900.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from medassay.core.records.item import Item

LEAST = 0.85
_SHINGLE = 5  # characters
_ROWS, _BANDS = 4, 32  # a pair with Jaccard j is a candidate with probability 1 - (1 - j^4)^32
_FEW_WORDS = 8  # a question this short, "Which is true?", is told apart by its options
_LARGE_GROUP = 200  # texts of one band
_BLOCK = 200_000  # candidate pairs that are measured at once
_WORD = re.compile(r"\w+")
Same = Literal["levenshtein", "words"]
_Numbers = NDArray[np.uint64]


class Near(msgspec.Struct, frozen=True):
    """Two texts, by their places, with their similarity (0 to 1) and what made them alike."""

    first: int
    second: int
    similarity: float
    by: Same


def compared_text(item: Item) -> str:
    """Return what is compared of an item: vignette and question, with the options where the
    question is short.
    """
    text = " ".join(filter(None, (item.context, item.question)))
    if len(_WORD.findall(text)) < _FEW_WORDS:
        text = " ".join((text, *sorted(item.options)))
    return plain(text)


def plain(text: str) -> str:
    """Return a text's words in lower case with single blanks.

    Examples
    --------
    >>> plain("Which drug,  first?")
    'which drug first'
    """
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def is_near(first: str, second: str) -> bool:
    """Return whether two texts are near duplicates by the rule.

    Examples
    --------
    >>> is_near("Which drug is first?", "First: which drug is?"), is_near("Which drug?",
    ...     "Which organ?")
    (True, False)
    """
    from rapidfuzz.distance import Levenshtein

    first_words, other = plain(first), plain(second)
    if set(first_words.split()) == set(other.split()):
        return True
    return bool(Levenshtein.normalized_similarity(first_words, other) >= LEAST)


class NearIndex:
    """Texts among which near duplicates are found; `texts` as `plain` returns them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._first: dict[str, int] = {}
        self._again: list[Near] = []
        self._equal: dict[int, list[int]] = {}
        for at, text in enumerate(texts):  # equal texts are told at once and measured once
            first = self._first.setdefault(text, at)
            self._equal.setdefault(first, []).append(at)
            if first != at:
                self._again.append(Near(first, at, 1.0, "levenshtein"))
        self._unique = np.fromiter(self._first.values(), dtype=np.int64)
        self._bands = _band_keys([texts[at] for at in self._unique])
        self._words: dict[frozenset[str], list[int]] = {}
        for at in self._unique:
            self._words.setdefault(frozenset(texts[at].split()), []).append(int(at))

    def equal_to(self, place: int) -> Sequence[int]:
        """Return the places of all texts that equal the one at `place`, the first of its kind,
        itself among them.
        """
        return self._equal.get(place, ())

    def pairs(self) -> Iterator[Near]:
        """Yield all pairs of near duplicates.

        Of equal texts each with the first of them, which stands for them in all other pairs.

        Where over 200 texts share a band, made from one template say, each is compared with its
        neighbours in the alphabet only: all are found, not all pairs of them.
        """
        yield from self._again
        seen_pairs: set[tuple[int, int]] = set()
        for places in self._words.values():
            for other in places[1:]:
                seen_pairs.add((places[0], other))
                yield Near(places[0], other, self._measure(places[0], other), "words")
        for block in self._candidates():
            for near in self._measured(block):
                if (near.first, near.second) not in seen_pairs:
                    yield near

    def near(self, text: str) -> list[Near]:
        """Return the texts that another one is a near duplicate of, the most similar first.

        `second` is -1, that text.
        """
        if text in self._first:
            return [Near(self._first[text], -1, 1.0, "levenshtein")]
        keys = _band_keys([text])
        hits = np.flatnonzero((self._bands == keys[0]).any(axis=1))
        from rapidfuzz.distance import Levenshtein

        nearest: dict[int, Near] = {}
        for at in self._unique[hits]:
            similarity = Levenshtein.normalized_similarity(self._texts[at], text)
            if similarity >= LEAST:
                nearest[int(at)] = Near(int(at), -1, similarity, "levenshtein")
        for at in self._words.get(frozenset(text.split()), ()):
            similarity = Levenshtein.normalized_similarity(self._texts[at], text)
            nearest.setdefault(at, Near(at, -1, similarity, "words"))
        return sorted(nearest.values(), key=lambda near: -near.similarity)

    def _measure(self, first: int, second: int) -> float:
        from rapidfuzz.distance import Levenshtein

        return float(Levenshtein.normalized_similarity(self._texts[first], self._texts[second]))

    def _candidates(self) -> Iterator[NDArray[np.int64]]:
        """Yield candidate pairs, shape (n, 2), each pair once, in blocks."""
        size = len(self._unique)
        codes = np.unique(np.concatenate([*self._alike(), np.empty(0, dtype=np.int64)]))
        for start in range(0, len(codes), _BLOCK):
            first, second = np.divmod(codes[start : start + _BLOCK], size)
            yield np.stack([self._unique[first], self._unique[second]], axis=1)

    def _alike(self) -> Iterator[NDArray[np.int64]]:
        """Yield first * size + second of all pairs that share a band."""
        size = len(self._unique)
        for band in range(_BANDS):
            order = np.argsort(self._bands[:, band], kind="stable")
            keys = self._bands[order, band]
            ends = np.flatnonzero(np.r_[keys[1:] != keys[:-1], True]) + 1
            starts = np.r_[0, ends[:-1]]
            several = ends - starts > 1
            pairs: list[NDArray[np.int64]] = []
            for start, end in zip(starts[several], ends[several], strict=True):
                first, second = self._compared(order[start:end])
                pairs.append(first * size + second)
            if pairs:
                yield np.unique(np.concatenate(pairs))

    def _compared(self, group: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the pairs of a group that are candidates, the lower place first."""
        if len(group) <= _LARGE_GROUP:
            group = np.sort(group)
            first, second = np.triu_indices(len(group), 1)
            return group[first], group[second]
        by_text = sorted(group, key=lambda at: self._texts[int(self._unique[at])])
        first_texts, other = np.array(by_text[:-1]), np.array(by_text[1:])
        return np.minimum(first_texts, other), np.maximum(first_texts, other)

    def _measured(self, block: NDArray[np.int64]) -> Iterator[Near]:
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cpdist

        similarities = cpdist(
            [self._texts[at] for at in block[:, 0]],
            [self._texts[at] for at in block[:, 1]],
            scorer=Levenshtein.normalized_similarity,
            score_cutoff=LEAST,
            dtype=np.float64,
        )
        for at in np.flatnonzero(similarities >= LEAST):
            first, second = sorted(int(position) for position in block[at])
            yield Near(first, second, float(similarities[at]), "levenshtein")


def _band_keys(texts: Sequence[str]) -> _Numbers:
    """Return a key for each band of each text, shape (n_texts, _BANDS): equal keys, candidates."""
    rng = np.random.default_rng(20261122)  # any fixed stream: keys are compared within one index
    odd = rng.integers(0, 2**63, _ROWS * _BANDS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    plus = rng.integers(0, 2**63, _ROWS * _BANDS, dtype=np.uint64)
    powers = rng.integers(0, 2**63, _SHINGLE, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    keys = np.empty((len(texts), _BANDS), dtype=np.uint64)
    mixing = odd[:_ROWS]
    for at, text in enumerate(texts):
        least = _signature(text, odd, plus, powers)
        keys[at] = (least.reshape(_BANDS, _ROWS) * mixing).sum(axis=1, dtype=np.uint64)
    return keys


def _signature(text: str, odd: _Numbers, plus: _Numbers, powers: _Numbers) -> _Numbers:
    """Return the least hash of the text's shingles under each of the hash functions."""
    codes = np.frombuffer(text.ljust(_SHINGLE).encode("utf-32-le"), dtype=np.uint32)
    windows = np.lib.stride_tricks.sliding_window_view(codes.astype(np.uint64), _SHINGLE)
    shingles = np.unique((windows * powers).sum(axis=1, dtype=np.uint64) >> np.uint64(7))
    least: _Numbers = (shingles[:, None] * odd + plus).min(axis=0)
    return least
