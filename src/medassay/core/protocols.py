"""What the machinery calls and the kinds of task, graders and summaries provide."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from medassay.core.records.judging_columns import JudgingColumns
from medassay.core.records.score import TrialScore
from medassay.core.records.trial import Trial


class RowAddition(msgspec.Struct, frozen=True, kw_only=True):
    """What a summary adds to a row of a ranking: columns by name, and the marks for them."""

    columns: Mapping[str, Any]
    flags: Sequence[str] = ()


class Summary(Protocol):
    """Collects score records as a stream.

    Adds to every row of a ranking, and a document under `key`.
    """

    key: str

    def add(self, trial: Trial, score: TrialScore) -> None:
        """Take one trial with its score record."""

    def row(
        self, domains: Sequence[str], row: tuple[str, str], mode: str, used: NDArray[np.bool_]
    ) -> RowAddition:
        """Return what is added to a row.

        `used` are the items that it is ranked on, over the domains.
        """

    def document(
        self, used: Mapping[str, Mapping[tuple[str, str], NDArray[np.bool_]]]
    ) -> dict[str, Any]:
        """Return what is told over all domains; `used` as in `row`, by mode and row."""


class JudgingSummary(Protocol):
    """What verdicts tell besides scores: agreement of the panel, false claims, failures of
    judges.
    """

    def columns(
        self, domains: Sequence[str], model: str, setting: str, mode: str, seed: int
    ) -> JudgingColumns | None:
        """Return what a row of a ranking says of its judging; None if nothing was judged."""

    def panel(self, domains: Sequence[str], mode: str, seed: int) -> dict[str, Any] | None:
        """Return the agreement over all models of some domains, and each judge's
        self-preference.
        """
