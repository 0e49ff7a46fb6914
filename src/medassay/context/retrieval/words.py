"""Search by words: BM25 over stemmed words, by bm25s; needs the extra [rag].

Source: Robertson, Zaragoza (2009), doi:10.1561/1500000019, in Lucene's form, k1 = 1.5, b = 0.75.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from medassay.errors import InputError, IntegrityError, UnavailableError


def _bm25() -> Any:
    try:
        import bm25s
        import Stemmer
    except ImportError:
        raise UnavailableError(
            "searching by words needs the extra: pip install 'medassay[rag]'"
        ) from None
    return bm25s, Stemmer.Stemmer("english")


def _words(texts: Sequence[str]) -> list[list[str]]:
    bm25s, stemmer = _bm25()
    tokens: list[list[str]] = bm25s.tokenize(
        list(texts), stopwords="en", stemmer=stemmer, show_progress=False, return_ids=False
    )
    return tokens


def count_words(texts: Sequence[str], folder: Path) -> None:
    """Write the counts of the words of some texts into a folder.

    Raises
    ------
    InputError
        When there are no words.
    """
    bm25s, _ = _bm25()
    counted = bm25s.BM25(method="lucene")
    words = _words(texts)
    if not any(words):
        raise InputError("the corpus holds no words to search by; take the method dense")
    counted.index(words, show_progress=False)
    shutil.rmtree(folder, ignore_errors=True)
    counted.save(str(folder), show_progress=False)


class WordCounts:
    """The counts of n texts, opened for searching."""

    def __init__(self, folder: Path, n: int) -> None:
        bm25s, _ = _bm25()
        try:
            self._counted: Any = bm25s.BM25.load(str(folder), mmap=True)
            if int(self._counted.scores["num_docs"]) != n:
                raise ValueError("of another index")
        except (OSError, LookupError, TypeError, ValueError, EOFError) as error:
            raise IntegrityError(
                f"{folder}: damaged ({' '.join(str(error).split())[:80]}); build the index again"
            ) from None

    def best(self, texts: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        """Return numbers and scores of the k best texts for each query, the lower number first
        among equals; those that share no word are left out.
        """
        rankings: list[list[tuple[int, float]]] = []
        for words in _words(texts):
            known_words = [word for word in words if word in self._counted.vocab_dict]
            if not known_words:
                rankings.append([])
                continue
            scores = np.asarray(self._counted.get_scores(known_words))
            shared = np.flatnonzero(scores > 0)
            order = shared[np.argsort(-scores[shared], kind="stable")][:k]
            rankings.append([(int(place), float(scores[place])) for place in order])
        return rankings
