"""What a shortlist asks of a model: a file of steps."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from medassay.core.keyed import KeyedRecord
from medassay.core.record_check import first_wrong
from medassay.core.toml import load_toml
from medassay.errors import InputError
from medassay.selection.licence import Policy

Unknown = Literal["keep", "remove"]
_CONFIG = ConfigDict(extra="forbid", strict=True)


@dataclass(frozen=True, kw_only=True, config=_CONFIG)
class SelectionSteps(KeyedRecord):
    """The steps in their order; what is None or empty is not asked.

    `unknown` says whether a model stays, marked, where nobody has stated what a step asks (`keep`),
    or goes.
    """

    KEYS: ClassVar = (
        "max_parameters_b",
        "open_weights",
        "qualifiers",
        "disciplines",
        "min_context_tokens",
        "licences",
        "unknown",
    )

    max_parameters_b: float | None = Field(default=18, gt=0, le=1_000_000)
    open_weights: bool = True
    qualifiers: tuple[str, ...] = ("Chat", "Instruct")
    disciplines: tuple[str, ...] = Field(
        default=("biology", "chemistry", "health", "psychology"), min_length=1
    )
    min_context_tokens: int | None = Field(default=8000, gt=0, le=1_000_000_000)
    licences: Policy | None = "permissive"
    unknown: Unknown = "keep"


def load_steps(path: Path) -> SelectionSteps:
    """Return the steps of a TOML file; what it does not name is as in `SelectionSteps`.

    `"any"` asks nothing of size, window or licence; `false` nothing of weights, `[]` nothing of the
    qualifier.

    Raises
    ------
    InputError
        Naming the file, the key, and what was expected.
    """
    try:
        data = load_toml(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None
    if unknown := sorted(data.keys() - set(SelectionSteps.KEYS)):
        names = ", ".join(SelectionSteps.KEYS)
        raise InputError(f"{path}: '{unknown[0]}' is no step; known are {names}")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else None if value == "any" else value
        for key, value in data.items()
    }
    try:
        return SelectionSteps(**values)
    except ValidationError as error:
        place, problem = first_wrong(error, "steps")
        raise InputError(f"{path}: '{place}': {problem}") from None
