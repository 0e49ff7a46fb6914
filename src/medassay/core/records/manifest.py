"""The manifest of a run: what it was made with, as this code reads it.

A record has the fields that are read, and a manifest is never written from it: whoever copies one
copies its document, with all its keys. A field with a default is one that some runs do not have.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from medassay.core.records.estimate import Ends
from medassay.core.records.manifest_object import Fallback, ManifestObject
from medassay.core.records.own_code import RunOwnCode
from medassay.core.records.plan import DdxRules, RankRule, Separation, rules_from_dict
from medassay.core.records.target import Form
from medassay.errors import InputError


class RunBank(msgspec.Struct, frozen=True, kw_only=True):
    """The card of a bank as a run remembers it; `content_sha256` is the hash of its items.

    `changes` says what its versions changed, `contradiction_penalty` what a contradiction costs
    where facts are judged.
    """

    name: str
    version: str
    content_sha256: str
    changes: str = ""
    limits: str = ""
    may_leave: bool = False
    items: int = 0
    contradiction_penalty: float = 1.0


class RunModel(msgspec.Struct, frozen=True, kw_only=True):
    """The entry of a model or of a judge; imports know little more than its name.

    `size` is in billions of parameters; `step` is of a checkpoint, `series` what it belongs to.
    """

    id: str
    provider: str
    location: str = ""
    api: bool = True
    family: str | None = None
    licence: str = ""
    weights_digest: str = ""
    model: str = ""
    version: str = ""
    protocol: str = ""
    size: float | None = None
    series: str | None = None
    step: int | None = None
    engine: str | None = None
    quantisation: str | None = None
    url: str | None = None
    path: str = ""


class RunMachine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine that a run was made on; `memory_bytes` is its main memory."""

    cpu: str | None = None
    gpu: str | None = None
    memory_bytes: int = 0

    @property
    def memory_gib(self) -> int | None:
        """Return its memory in GiB, None where nobody said."""
        return round(self.memory_bytes / 2**30) or None


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan says of how a run was asked and is ranked."""

    seed: str | int
    n_resamples: int
    rank_rule: RankRule
    separation: Separation
    extraction: Literal["standard", "paper"] = "standard"
    few_shot_k: int = 3
    shuffle_options: bool = False
    pooled_small: Literal["mark", "exclude"] = "mark"
    relaxed_perplexity: dict[str, Any] | None = None
    metrics: list[str] = []
    sample: int | None = None
    demonstration: bool = False


class NameFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of disease names that a run used."""

    sha256: str = ""


class DiagnosisEntry(msgspec.Struct, frozen=True, kw_only=True):
    """By which rules lists of diagnoses are scored, with the files of names and what they say of
    the golden diagnoses.
    """

    rules: dict[str, Any] = {}
    files: list[NameFile] = []
    synonyms: dict[str, list[str]] = {}


class RunGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A graph of judgements: its name, its name with hash, and its document as text, since the
    order of options counts.
    """

    id: str
    name: str
    roots: list[str]
    text: str = ""


class RunSteps(msgspec.Struct, frozen=True, kw_only=True):
    """Evaluation steps by language, and whether answers are judged with their reasoning path."""

    with_path: bool
    texts: dict[str, str]


class SourceRun(msgspec.Struct, frozen=True, kw_only=True):
    """The sealed run that another one was made from."""

    run: str
    root: str = ""


class RunAgain(SourceRun, frozen=True, kw_only=True):
    """The run of which some replies were asked for once more; `of` says which."""

    of: str


class JoinedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was joined with others: its root, and the cells that come from it."""

    run: str
    cells: list[str]
    root: str
    machine: dict[str, Any]


class CodeVersion(msgspec.Struct, frozen=True, kw_only=True):
    """Version and commit of the code; no commit where it was installed."""

    version: str
    commit: str | None = None


class RunMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of texts that a model measures, or why there is none.

    Attributes
    ----------
    id : the metric with its model
    columns : its numbers with the ends of their scales; none where it was unavailable
    """

    id: str = ""
    columns: dict[str, Ends] = {}
    unavailable: str | None = None


class DeletedItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item of the run that this one was made from, which was deleted by law."""

    domain: str
    item: str


class JudgingRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan says of how answers are judged."""

    steps: RunSteps | None = None
    ddx: DiagnosisEntry | None = None
    graphs: list[RunGraph] = []

    @property
    def step_texts(self) -> Mapping[str, str]:
        """Return the evaluation steps by language, none without any."""
        return {} if self.steps is None else self.steps.texts

    @property
    def ddx_rules(self) -> DdxRules:
        """Return the rules by which lists of diagnoses are scored, the usual ones without any."""
        return rules_from_dict({} if self.ddx is None else self.ddx.rules)


class JudgedBanks(JudgingRules, frozen=True, kw_only=True):
    """What the graders of a run are made of: the rules and the cards of its banks.

    `domains` gives the version of the bank of each domain.
    """

    banks: list[RunBank]
    domains: dict[str, str]


def judged_banks(document: ManifestObject) -> JudgedBanks:
    """Return what graders are made of, of a manifest that is being written."""
    return msgspec.convert(document, JudgedBanks)


class Manifest(JudgedBanks, frozen=True, kw_only=True):
    """What a run was made with.

    Attributes
    ----------
    template : the prompts with their hashes
    methodology : hash of everything but bank and model that decides what a number means
    max_cut_off : share of replies that may be cut off in a ranked row; None in runs before it
    bench : model → ids of the judges before which its answers stand; None in runs without judges
    rubrics, judge_prompts : by domain, the grader and the hashes of its prompts
    fresh_of : the run that it is held against, of one whose models were all asked anew
    drawn_as : the id by which draws are seeded, where it is not the run's own
    revisions : kind of part → ids with revisions; None in runs before them, which have the hashes
        `parsers` and `scorers`
    readers : form of an item → parser, of tasks that once read replies otherwise
    tasks : form of an item → the task that asks it, where items of several kinds are asked
    own_code : what the task takes from files of its user; None where nothing
    """

    run: str
    task: str
    plan: RunPlan
    models: dict[str, RunModel]
    template: str
    methodology: str
    created_at: str = ""
    name: str = ""
    code: CodeVersion = CodeVersion(version="")
    machine: dict[str, Any] = {}
    sampling: dict[str, dict[str, Any]] = {}
    max_cut_off: float | None = None
    fallback: Fallback = {}
    metrics: dict[str, RunMetric] = {}
    retrieval: dict[str, Any] | None = None
    tools: dict[str, Any] | None = None
    judges: list[RunModel] = []
    bench: dict[str, list[str]] | None = None
    rubrics: dict[str, str] = {}
    judge_prompts: dict[str, list[str]] | None = None
    audited: bool = False
    drawn_as: str = ""
    joined: list[JoinedRun] | None = None
    source: dict[str, Any] | None = None
    judged_from: SourceRun | None = None
    rescored_from: SourceRun | None = None
    again_of: RunAgain | None = None
    fresh_of: str | None = None
    deleted_items: list[DeletedItem] = []
    revisions: dict[str, list[str]] | None = None
    parsers: dict[str, Any] | None = None
    scorers: dict[str, Any] | None = None
    readers: dict[str, str | None] = {}
    tasks: dict[Form, str] = {}
    own_code: RunOwnCode | None = None

    @property
    def seed_label(self) -> str:
        """Return what stands for the run in every seed: its id, or of joined runs the hash of their
        roots.
        """
        return self.drawn_as or self.run

    @property
    def sources(self) -> dict[str, str]:
        """Return how it was made from other runs → their ids; judging comes before asking."""
        runs = {
            "judged again": self.judged_from and self.judged_from.run,
            "scored again": self.rescored_from and self.rescored_from.run,
            "asked again": self.again_of and self.again_of.run,
            "asked anew": self.fresh_of,
        }
        return {act: run for act, run in runs.items() if run}

    def refuse_several(self, what: str) -> None:
        """Raise `InputError` where items of several kinds were asked; `what` is for one metric."""
        if self.tasks:
            names = ", ".join(sorted(self.task_names))
            raise InputError(
                f"run {self.run}: asks items of several kinds (tasks {names}); {what} is for runs"
                " of one task"
            )

    @property
    def task_names(self) -> set[str]:
        """Return the tasks by which its items are asked."""
        return set(self.tasks.values()) or {self.task}

    @property
    def leaving(self) -> list[tuple[str, bool]]:
        """Return the name of each bank, and whether it may leave."""
        return [(bank.name, bank.may_leave) for bank in self.banks]

    @property
    def is_import(self) -> bool:
        """Return whether others asked its models: nobody here knows how."""
        return any(model.provider == "import" for model in self.models.values())

    @property
    def baselines(self) -> set[str]:
        """Return the rows that are no models, but references."""
        return {name for name, model in self.models.items() if model.provider == "baseline"}

    def provider_of(self, model: str) -> str:
        """Return the provider of a model, "" where the run does not know the model."""
        entry = self.models.get(model)
        return "" if entry is None else entry.provider

    def family_of(self, model: str) -> str:
        """Return the family of a model, in small letters; "unknown" where nothing says it."""
        entry = self.models.get(model)
        family = None if entry is None else entry.family
        return "unknown" if family is None else family.casefold()
