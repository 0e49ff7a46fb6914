"""A plan → what a run needs before it asks: banks, trials numbered, judges, what is remembered."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from medassay.bank.find import find_bank
from medassay.bank.folder import asked_forms
from medassay.context.tools.schema import tool_schema
from medassay.core.records.context_config import CONTEXTS
from medassay.core.records.item import Bank
from medassay.core.records.leaderboard import fallback_lines
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import Plan
from medassay.errors import InputError
from medassay.judging.assignment import JudgeAssignment, assign_judges
from medassay.judging.graders.steps import load_steps
from medassay.kinds.catalog import rules_of, task_of_plan
from medassay.kinds.graders import graders_of, remembered_graphs
from medassay.model.spec import load_models
from medassay.runner.context import Contexts, embedding_entry
from medassay.runner.manifest import bank_entry, run_identity
from medassay.runner.measure import TextMeasures, text_measures_of
from medassay.runner.reply_limits import room_lines
from medassay.runner.schedule import Schedule
from medassay.runner.stages import refuse_leaving


@dataclass(frozen=True, kw_only=True)
class PreparedRun:
    """A plan made ready: its trials numbered, its banks, and who judges if anyone does.

    `embedder` is the entry that queries are sent to, by its name; {} where nobody is asked.
    """

    schedule: Schedule
    banks: tuple[Bank, ...]
    assignment: JudgeAssignment | None
    models_file: Path
    embedder: Mapping[str, ModelSpec]

    @cached_property
    def measures(self) -> TextMeasures:
        """Return the metrics of texts that the plan's task computes."""
        return text_measures_of(self.schedule.plan.metrics, self.schedule.task)

    @property
    def specs(self) -> dict[str, ModelSpec]:
        """Return the entries of all who are asked: models and judges."""
        return {**self.schedule.specs, **(self.assignment.models if self.assignment else {})}

    @property
    def warnings(self) -> list[str]:
        """Return a line for each way in which models are not asked as the plan says."""
        schedule = self.schedule
        return [*fallback_lines(schedule.fallback), *schedule.unused, *room_lines(schedule)]

    def identity(self) -> ManifestObject:
        """Return what must be equal for a run to be resumed."""
        return run_identity(self.schedule, self.banks, self.assignment, self.measures.to_dict())


def prepare(
    plan: Plan, base: Path, workspace: Path, *, assume_contexts: bool = False
) -> PreparedRun:
    """Return a plan made ready.

    Parameters
    ----------
    base : the folder that names in the plan are relative to
    assume_contexts : let as much as may be found stand for what was not searched for: in previews

    Raises
    ------
    InputError
        When plan, bank or models file is wrong, or a bank may not be sent to a model.
    """
    banks = tuple(find_bank(name, base, workspace / "banks.lock") for name in plan.banks)
    models_file = base / plan.models_file
    specs = load_models(models_file)
    contexts = None
    if plan.retrieval is not None or set(plan.settings) & set(CONTEXTS):
        contexts = Contexts(plan, base, workspace, assumed=assume_contexts)
    tools = b"" if plan.tools is None else tool_schema(plan.tools)
    task = task_of_plan(plan, {form for bank in banks for form in asked_forms(bank)})
    schedule = Schedule(plan, banks, specs, task, contexts=contexts, tools=tools)
    _refuse_replicas(plan, specs)
    if contexts is not None:
        contexts.check(bank.items[at] for bank, at in schedule.items())
    entries = [bank_entry(bank) for bank in banks]
    rules = _rules(schedule, base)
    graders = graders_of(task, {"banks": entries, "domains": schedule.domains, **rules})
    assignment = assign_judges(plan, task, schedule.specs, specs, graders, rules)
    embedding = "" if contexts is None else embedding_entry(contexts.index)
    prepared = PreparedRun(
        schedule=schedule,
        banks=banks,
        assignment=assignment,
        models_file=models_file,
        embedder={embedding: specs[embedding]} if embedding else {},
    )
    if plan.demonstration:
        _refuse_real(prepared)
    leaving = [(bank.name, bank.may_leave) for bank in banks]
    refuse_leaving(leaving, (prepared.specs | dict(prepared.embedder)).values(), plan.tools)
    return prepared


def _refuse_real(prepared: PreparedRun) -> None:
    """Refuse a demonstration that asks anybody: beside scripted rows a real one would look as if
    it measured something.
    """
    for name, spec in prepared.specs.items():
        if spec.provider not in ("fake", "baseline", "rule"):
            raise InputError(
                f"plan: 'demonstration' ranks scripted models (provider fake), and '{name}' is"
                f" asked (provider '{spec.provider}'); leave one of the two out"
            )


def _rules(schedule: Schedule, base: Path) -> ManifestObject:
    """Return what a run remembers of the rules of its judging: steps, graphs, diagnoses."""
    plan = schedule.plan
    rules: ManifestObject = remembered_graphs(schedule.task, plan.graphs, base)
    if plan.steps:
        rules |= {"steps": load_steps(base / plan.steps).to_dict()}
    items = (bank.items[at] for bank, at in schedule.items())
    return {**rules, **rules_of(schedule.task, plan, items, base)}


def _refuse_replicas(plan: Plan, specs: Mapping[str, ModelSpec]) -> None:
    for name in plan.engine.replicas:
        if not specs[name].in_process:
            raise InputError(
                f"plan: 'engine.replicas' names '{name}', whose weights are not loaded here"
                f" (provider '{specs[name].provider}'); leave it out"
            )
