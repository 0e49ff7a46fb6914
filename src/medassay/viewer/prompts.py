"""What was sent: the messages to a model and to its judges, made again from what the run remembers,
and held against the hashes that its records have.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import msgspec

from medassay.bank.find import find_bank
from medassay.bank.folder import StoredItems, asked_forms
from medassay.bank.run_items import RunItems
from medassay.context.tools.schema import tool_schema
from medassay.core.canonical import sha256_hex
from medassay.core.records.context_config import CONTEXTS
from medassay.core.records.item import Bank
from medassay.core.records.plan import Plan, plan_from_dict
from medassay.core.records.prompt import Message, Prompt
from medassay.core.records.trial import Trial, TrialKey
from medassay.core.records.verdict import Case, Grader, StoredVerdict
from medassay.errors import InputError, MedassayError
from medassay.judging.sanitize import sanitize_answer, speaker_pattern
from medassay.kinds.catalog import task_of_plan, task_of_run
from medassay.kinds.graders import graders_of
from medassay.model.spec import remembered
from medassay.own_code.grader import OwnGrader
from medassay.runner.context import Contexts
from medassay.runner.schedule import Cell, Schedule
from medassay.storage.run import Run

TrialAt = Callable[[TrialKey], Trial]
_LONGEST = 500_000  # characters of an answer whose judges' prompts are made again
_BROKEN = (MedassayError, OSError, LookupError, TypeError, ValueError)


class SentMessages(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of one request.

    Attributes
    ----------
    messages : made again from what the run remembers
    exact : whether their hash is the one in the record: then they are what was sent
    reason : why they cannot be shown, or why they may differ; "" where they are exact
    """

    messages: Sequence[Message] = ()
    exact: bool = False
    reason: str = ""


class SentPrompts:
    """Makes the prompts of a run again; nothing is executed, asked or searched for."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._workspace = run.path.resolve().parent.parent
        self._case_before: tuple[TrialKey, Case] | None = None

    @cached_property
    def schedule(self) -> Schedule:
        """Return how the run asks.

        Raises
        ------
        MedassayError
            When what it needs is not here: a bank with its examples, say, or an index.
        """
        document = self._run.manifest_document
        # Long seeds are kept as texts, which every reader of JSON gives back as they are.
        keys = {**document["plan"], "seed": int(document["plan"]["seed"])}
        plan = plan_from_dict(keys, "manifest.json")
        specs = {name: remembered(dict(entry)) for name, entry in document["models"].items()}
        contexts = None
        if plan.retrieval is not None or set(plan.settings) & set(CONTEXTS):
            contexts = Contexts(plan, self._workspace, self._workspace)
        tools = b"" if plan.tools is None else tool_schema(plan.tools)
        banks, plan = self._banks(plan)
        task = task_of_run(self._run.manifest)
        # Of a run judged again the task says how it was judged, not how it was asked.
        if self._run.manifest.judged_from is not None:
            task = task_of_plan(plan, {form for bank in banks for form in asked_forms(bank)}, None)
        return Schedule(plan, banks, specs, task, contexts=contexts, tools=tools)

    def _banks(self, plan: Plan) -> tuple[list[Bank], Plan]:
        """Return the items that were asked as a bank, or, where examples are shown, the banks that
        have them.
        """
        if "few_shot" in plan.settings:
            return [self._bank(name, plan) for name in plan.banks], plan
        manifest = self._run.manifest
        items = StoredItems(
            self._run.path / "items.jsonl", frozenset(manifest.domains), of_run=True
        )
        for _ in items.scan():
            pass
        bank = Bank(
            name=manifest.banks[0].name,
            version=manifest.banks[0].version,
            domains=tuple(manifest.domains),
            licence="",
            items=items,
            content_hash="",
        )
        return [bank], replace(plan, sample=None)

    def _bank(self, name: str, plan: Plan) -> Bank:
        cards = dict(zip(plan.banks, self._run.manifest.banks, strict=True))
        for base in (self._workspace, Path.cwd()):
            try:
                bank = find_bank(name, base, None)
            except InputError:
                continue
            if bank.content_hash == cards[name].content_sha256:
                return bank
        raise InputError(
            f"the examples are in bank '{name}', which is not beside runs/ or in the folder that"
            " medassay view was started in"
        )

    @property
    def n_trials(self) -> int | None:
        """Return how many trials the run has when it is finished, None where that is not known."""
        try:
            return self.schedule.n_trials
        except _BROKEN:
            return None

    def of_trial(self, trial: Trial, prompt_sha256: str) -> SentMessages:
        """Return the messages that a model was sent."""
        if not prompt_sha256:
            reason = "no request: the answer was imported, or nothing was sent"
            return SentMessages(reason=reason)
        try:
            schedule = self.schedule
            cell = Cell(trial.domain, trial.model, trial.setting, trial.mode, 0)
            item = self.items.get(trial.domain, trial.item)
            prompt = schedule.prompt(cell, item)
        except _BROKEN as error:
            return SentMessages(reason=f"cannot be made again here: {error}")
        return _held_against(prompt, prompt_sha256)

    def of_judge(
        self, verdict: StoredVerdict, hashes: Sequence[str], trial_at: TrialAt
    ) -> list[SentMessages]:
        """Return the messages of each request for a verdict.

        Parameters
        ----------
        trial_at : gives the trials that were judged together
        """
        try:
            grader = self.graders[verdict.domain]
            if isinstance(grader, OwnGrader):
                return [SentMessages(reason="made by own code, which is not executed here")]
            cases = [self._case(trial_at(place)) for place in verdict.answers]
            replies = verdict.completions()
            steps = [grader.step(cases, replies[:n]) for n in range(len(replies))]
        except _BROKEN as error:
            return [SentMessages(reason=f"cannot be made again here: {error}")]
        prompts = [step for step in steps if isinstance(step, Prompt)]
        return [_held_against(*pair) for pair in zip(prompts, hashes, strict=False)]

    @cached_property
    def graders(self) -> Mapping[str, Grader]:
        """Return the grader of each domain, as this code makes them."""
        return graders_of(task_of_run(self._run.manifest), self._run.manifest)

    @cached_property
    def items(self) -> RunItems:
        """Return the items of the run."""
        return RunItems(self._run.path, self._run.manifest.domains)

    def _case(self, trial: Trial) -> Case:
        # All judges of an answer are shown the same, and making it takes its time.
        if self._case_before is not None and self._case_before[0] == trial.place:
            return self._case_before[1]
        if len(trial.value or "") > _LONGEST:
            raise InputError(f"the answer has more than {_LONGEST:,} characters")
        manifest = self._run.manifest
        entries = [*manifest.models.values(), *manifest.judges]
        speaker = speaker_pattern({name for entry in entries for name in (entry.id, entry.model)})
        text = sanitize_answer(trial.value or "", speaker).text
        item = self.items.get(trial.domain, trial.item)
        case = Case(item=item, text=text, template=trial.template)
        self._case_before = trial.place, case
        return case


def _held_against(prompt: Prompt, prompt_sha256: str) -> SentMessages:
    exact = sha256_hex(prompt.encoded) == prompt_sha256
    reason = "" if exact else "made again with this version; what was sent has another hash"
    return SentMessages(messages=prompt.messages, exact=exact, reason=reason)
