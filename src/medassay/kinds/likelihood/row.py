"""What a row of a run on likelihoods tells besides its rank."""

import msgspec

from medassay.core.records.estimate import RowEstimate
from medassay.core.records.statistics import LeaderboardRow


class PlaceEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The mean log-probability after some tokens of the completions, over the items that reach
    there.
    """

    at: int
    score: float
    lo: float | None = None
    hi: float | None = None
    n: int


class LikelihoodColumns(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a row, by the names of their metrics.

    Attributes
    ----------
    impossible : items whose text the model holds for impossible
    words, bytes, tokens, bytes_per_word, texts_differ : of the texts, where whole texts are scored
    kept, distinct : completions an item, where they were drawn
    positions : must or nice to have → along the completions
    """

    metrics: dict[str, RowEstimate] = {}
    impossible: int = 0
    words: int = 0
    bytes: int = 0
    tokens: int = 0
    bytes_per_word: float | None = None
    texts_differ: bool = False
    kept: float | None = None
    distinct: float | None = None
    positions: dict[str, list[PlaceEstimate]] = {}


class LikelihoodRow(LeaderboardRow, frozen=True, kw_only=True):
    """A row with what it tells of likelihoods."""

    likelihood: LikelihoodColumns
