"""`ManifestObject`: manifest.json of a run as the JSON object that stands in the file; see
`item_object.py` for why it is a dictionary.

Whoever reads a manifest to compute with it reads the record `Manifest`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from medassay.core.records.model import SamplingObject


class BankObject(TypedDict, total=False):
    """A bank's card as a run remembers it."""

    name: str
    version: str
    content_sha256: str
    title: str
    licence: str
    limits: str
    domains: list[str]
    may_leave: bool
    contradiction_penalty: float
    items: int
    created: str
    kept: int
    dropped: Mapping[str, int]
    changes: str
    reviews: Sequence[Mapping[str, Any]]


class MetricEntry(TypedDict, total=False):
    """A metric of texts as a run remembers it: its id and columns with the ends of their scales, or
    why it is unavailable.
    """

    id: str
    columns: Mapping[str, Sequence[float | None]]
    unavailable: str


class Fallback(TypedDict, total=False):
    """How models are asked that cannot tell likelihoods: the task whose rows these are, unranked,
    ids of templates joined by "+", and model → reason.
    """

    task: str
    template: str
    models: Mapping[str, str]


class SearchedIndex(TypedDict, total=False):
    """An index of texts, and how it was searched."""

    index: str
    corpus_sha256: str
    documents: int
    chunks: int
    size: int
    overlap: int
    merging: str
    method: str
    embedder: str | None
    k: int
    query_prefix: str


class DiagnosisRules(TypedDict):
    """What a run remembers of how lists of diagnoses are scored: the rules, the files of disease
    names, and their synonyms of the golden diagnoses.
    """

    rules: dict[str, Any]
    files: list[dict[str, str]]
    synonyms: Mapping[str, list[str]]


class ManifestObject(TypedDict, total=False):
    """The keys of a manifest, or some of them; `Manifest` says what they are."""

    schema_version: int
    run: str
    kind: str
    what: str  # of a study's folder: what is asked, and of which model
    model: str
    name: str
    created_at: str
    plan: dict[str, Any]
    task: str
    tasks: Mapping[str, str]
    own_code: dict[str, Any]
    banks: list[BankObject]
    domains: Mapping[str, str]
    models: dict[str, dict[str, Any]]
    models_sha256: str
    template: str
    methodology: str
    sampling: Mapping[str, SamplingObject]
    readers: Mapping[str, str | None]
    max_cut_off: float
    fallback: Fallback
    metrics: Mapping[str, MetricEntry]
    retrieval: SearchedIndex
    tools: dict[str, Any]
    revisions: Mapping[str, list[str]]
    # Of judged runs
    judges: list[dict[str, Any]]
    bench: Mapping[str, list[str]]
    rubrics: Mapping[str, str]
    judge_prompts: Mapping[str, list[str]]
    audited: bool
    steps: dict[str, Any]
    graphs: list[dict[str, Any]]
    ddx: DiagnosisRules
    # Of runs made from others, and of imports
    drawn_as: str
    joined: list[dict[str, Any]]
    source: dict[str, Any]
    fresh_of: str | None
    again_of: Mapping[str, str]
    judged_from: Mapping[str, str]
    rescored_from: Mapping[str, str]
    deleted_items: Sequence[Mapping[str, str]]
    parsers: dict[str, Any]
    scorers: dict[str, Any]
    # Where it ran
    proxies: list[str]
    weights: Mapping[str, str]
    code: dict[str, str | None]
    python: str
    packages: Mapping[str, str]
    machine: dict[str, Any]
