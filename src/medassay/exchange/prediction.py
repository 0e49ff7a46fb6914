"""`Prediction`, one finished answer of another harness, and `PredictionFile`, a file of them."""

import json
import math
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from medassay.core.canonical import short_hash
from medassay.core.json import storable_value
from medassay.core.records.model import ModelSpec
from medassay.errors import InputError
from medassay.exchange.imported import ImportSource


class UnfinishedLog(InputError):
    """A log of an evaluation that did not end: among the logs of a folder it is left out, by
    name.
    """

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}; only finished evaluations are imported")
        self.reason = reason


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """One answer with its score, or with the key that it is held against.

    `where` names its place in the file, for messages. A `score` of None is unknown, not wrong.
    `content` is what the item is known by in other logs: the question as its dataset has it, before
    a harness wraps it for a model; empty where the log does not say it.
    """

    where: str
    domain: str
    model: str
    item: str
    text: str = ""
    score: float | None = None
    key: str | None = None
    setting: str = "zero_shot"
    mode: str = "solo"
    repeat: int = 0
    cluster: str | None = None
    question: str | None = None
    reference: str | None = None
    content: str = ""

    @property
    def identity(self) -> str | None:
        """Return a hash of what the item asks and takes for right, whichever file it stands in.

        None where the file does not say.
        """
        parts = [self.content or self.question, self.key, self.reference]
        return short_hash(parts) if any(parts) else None


class PredictionFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of predictions to be made a run: where it is from, and how it is read.

    `entries` say more of its models than their names.
    """

    source: ImportSource
    predictions: Generator[Prediction, None, None]
    scored: bool = True
    remembered: Mapping[str, Any] = msgspec.field(default_factory=dict)
    entries: Mapping[str, ModelSpec] = msgspec.field(default_factory=dict)


def lenient_json(data: bytes, where: str) -> Any:
    """Return parsed JSON that may hold NaN and infinities, as Python writes them.

    Lone surrogates become "?".

    Raises
    ------
    InputError
        When it is no JSON.
    """
    try:
        document = json.loads(data)
        return storable_value(document) if b"\\ud" in data.lower() else document
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON: {error}") from None


def number_or_none(value: Any, where: str) -> float | None:
    """Return a score as a float; None and NaN are no score.

    Raises
    ------
    InputError
        When it is neither a number nor nothing.
    """
    if value is None:
        return None
    if not isinstance(value, int | float):
        raise InputError(f"{where}: score {value!r:.60}; expected a number")
    try:
        score = float(value)
    except OverflowError:
        raise InputError(f"{where}: a score of hundreds of digits; expected a number") from None
    return None if math.isnan(score) else score
