"""A plan → what a run needs before it asks: banks, trials numbered, judges, what is remembered."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import msgspec

from medassay.bank.find import find_bank
from medassay.bank.folder import asked_forms, asked_languages
from medassay.context.tools.schema import tool_schema
from medassay.core.records.context_config import CONTEXTS
from medassay.core.records.item import Bank
from medassay.core.records.leaderboard import fallback_lines
from medassay.core.records.manifest import judged_banks
from medassay.core.records.manifest_object import ManifestObject
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import Plan
from medassay.core.wording import counted
from medassay.errors import InputError
from medassay.judging.assignment import JudgeAssignment, assign_judges
from medassay.judging.graders.steps import load_steps
from medassay.kinds.catalog import TASKS, misfit_of, rules_of, task_of_plan
from medassay.kinds.graders import graders_of, remembered_graphs
from medassay.model.spec import ModelsSource, load_models, named
from medassay.own_code.find import own_code_of, with_own_task
from medassay.own_code.process import load_all
from medassay.runner.context import Contexts, embedding_entry
from medassay.runner.manifest import bank_entry, run_identity
from medassay.runner.measure import TextMeasures, text_measures_of
from medassay.runner.reply_limits import room_lines
from medassay.runner.schedule import Schedule
from medassay.runner.stages import refuse_leaving


class PreparedRun(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A plan made ready: its trials numbered, its banks, and who judges if anyone does.

    `embedder` is the entry that queries are sent to, by its name; {} where nobody is asked.
    """

    schedule: Schedule
    banks: tuple[Bank, ...]
    assignment: JudgeAssignment | None
    models_file: ModelsSource
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
        return [
            *fallback_lines(schedule.fallback),
            *schedule.unused,
            *language_lines(schedule, self.banks),
            *room_lines(schedule),
        ]

    def identity(self) -> ManifestObject:
        """Return what must be equal for a run to be resumed."""
        return run_identity(self.schedule, self.banks, self.assignment, self.measures.to_dict())


def prepare(
    plan: Plan,
    base: Path,
    workspace: Path,
    *,
    models: Sequence[ModelSpec] | None = None,
    assume_contexts: bool = False,
    trust_code: bool = False,
) -> PreparedRun:
    """Return a plan made ready.

    Parameters
    ----------
    base : the folder that names in the plan are relative to
    models : entries in place of those of the plan's models file
    assume_contexts : let as much as may be found stand for what was not searched for: in previews
    trust_code : whether code of the user may be executed

    Raises
    ------
    InputError
        When plan, bank or models file is wrong, or a bank may not be sent to a model.
    """
    trust_code = trust_code is True  # a text such as "no" is no consent
    banks = tuple(find_bank(name, base, workspace / "banks.lock") for name in plan.banks)
    models_file = base / plan.models_file if models is None else tuple(models)
    specs = load_models(models_file)
    if models is not None:
        for name in (*plan.models, *plan.judges):
            named(specs, name, "plan: model", "models")
    contexts = None
    if plan.retrieval is not None or set(plan.settings) & set(CONTEXTS):
        contexts = Contexts(plan, base, workspace, assumed=assume_contexts, trust_code=trust_code)
    tools = b"" if plan.tools is None else tool_schema(plan.tools)
    expanded, package = plan, None
    if plan.task not in TASKS:
        expanded, package = with_own_task(plan, trust_code=trust_code)
    code = own_code_of(expanded, package or base)
    if code is not None:
        code = replace(code, runs=trust_code)
    task = task_of_plan(expanded, {form for bank in banks for form in asked_forms(bank)}, code)
    schedule = Schedule(plan, banks, specs, task, contexts=contexts, tools=tools)
    _refuse_misfits(schedule)
    _refuse_replicas(plan, specs)
    if contexts is not None:
        contexts.check(bank.items[at] for bank, at in schedule.items())
    entries = [bank_entry(bank) for bank in banks]
    rules = _rules(schedule, base)
    graders = graders_of(
        task, judged_banks({"banks": entries, "domains": schedule.domains, **rules})
    )
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


def language_lines(schedule: Schedule, banks: Sequence[Bank]) -> list[str]:
    """Return a line for each template that asks items in another language than theirs, or that does
    not say which language it is in where items are not English.
    """
    languages = sum(map(asked_languages, banks), Counter[str]())
    lines = []
    for template in schedule.templates:
        for language, n in sorted(languages.items()):
            if language in template.languages or schedule.task.asks == "alone":
                continue
            other = template.language(language)
            if other:
                lines.append(
                    f"template '{template.name}': {counted(n, 'item')} in '{language}'"
                    f" {'is' if n == 1 else 'are'} asked in '{other}'; it has texts in"
                    f" {', '.join(sorted(template.languages))}"
                )
            elif language != "en":
                lines.append(
                    f"template '{template.name}' does not say its language, and"
                    f" {counted(n, 'item')} {'is' if n == 1 else 'are'} in '{language}'; a name as"
                    f" {template.name.removesuffix('.txt')}.{language}.txt says it"
                )
    return lines


def load_own_code(prepared: PreparedRun) -> None:
    """Load the code of the user, so that what cannot work is told before anything is asked.

    Raises
    ------
    InputError
        When it may not be executed, cannot be loaded, or has another signature than it needs.
    """
    code, contexts = prepared.schedule.task.own, prepared.schedule.contexts
    if contexts is not None:
        contexts.load_own()
    if code is None or not code.parts:
        return
    if not code.runs:
        names = ", ".join(part.shown for part in code.parts.values())
        raise InputError(
            f"plan: names code of its own, {names}, which would be executed here; read it, then say"
            " --trust-code (in Python trust_code=True)"
        )
    load_all(code)


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


def _refuse_misfits(schedule: Schedule) -> None:
    """Refuse reference records that do not fit the schema of the plan.

    Raises
    ------
    InputError
        Naming how many do not, and what is wrong with the first.
    """
    misfit = misfit_of(schedule.task)
    if misfit is None:
        return
    n, first = 0, ""
    for bank, at in schedule.items():
        item = bank.items[at]
        problem = misfit(item)
        if problem is not None:
            n, first = n + 1, first or f"'{item.id}': {problem}"
    if n:
        raise InputError(
            f"plan: 'schema': {n} reference records do not fit it, the first is {first}; correct"
            " the bank or the schema"
        )


def _refuse_replicas(plan: Plan, specs: Mapping[str, ModelSpec]) -> None:
    for name in plan.engine.replicas:
        if not specs[name].in_process:
            raise InputError(
                f"plan: 'engine.replicas' names '{name}', whose weights are not loaded here"
                f" (provider '{specs[name].provider}'); leave it out"
            )
