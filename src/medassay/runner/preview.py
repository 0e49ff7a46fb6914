"""What a model would be asked and what it would cost, before anything is paid."""

import random
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import structs

from medassay.core.amount import NOTHING, Amount
from medassay.core.canonical import canonical
from medassay.core.records.completion import Completion
from medassay.core.records.context_config import DEAF_TURNS, LONGEST_RESULT, ToolRules
from medassay.core.records.manifest import JudgingRules
from medassay.core.records.model import FREE, ModelSpec
from medassay.core.records.plan import BudgetRules, PlanSource, load_plan, opened_plan
from medassay.core.records.preview import ModelPreview, Preview, SpentByNow, TaskPreview
from medassay.core.records.prompt import Prompt
from medassay.core.records.verdict import Case
from medassay.judging.assignment import JudgeAssignment
from medassay.judging.queue import Answers, alike_key, queues, spot_check_graders, spot_check_sample
from medassay.judging.sanitize import sanitize_answer, speaker_pattern
from medassay.kinds.catalog import parser_of
from medassay.kinds.read_answer import read_answer
from medassay.model.spec import load_models
from medassay.own_code.find import described
from medassay.runner.ask import request_constant, sampling_of
from medassay.runner.budget import (
    CHARACTERS_PER_TOKEN,
    bounded,
    estimated_cost,
    estimated_tokens,
    most_written,
)
from medassay.runner.prepare import language_lines, prepare
from medassay.runner.reply_limits import room_lines
from medassay.runner.schedule import Schedule
from medassay.runner.spending import spent_by
from medassay.storage.object_store import open_workspace
from medassay.storage.response import ResponseStore, request_key
from medassay.storage.run import latest


class _PreviewCounter(msgspec.Struct):
    """Counts what one model would be asked."""

    spec: ModelSpec
    calls: int = 0
    stored: int = 0
    tokens: int = 0
    money: float = 0.0

    def add(self, prompt: Prompt, *, stored: bool = False) -> None:
        """Count a prompt."""
        if stored:
            self.stored += 1
            return
        read = estimated_tokens(prompt)
        self.calls += 1
        written = most_written(self.spec, prompt)
        self.tokens += read + written
        self.money += estimated_cost(self.spec, read, written)

    def add_talk(self, prompt: Prompt, rules: ToolRules) -> None:
        """Count a conversation with tools as long as it may become: a call a turn, each with the
        longest result.
        """
        read, written = estimated_tokens(prompt), most_written(self.spec, prompt)
        for turn in range(rules.max_calls + DEAF_TURNS + 1):
            self.calls += 1
            tokens = read + turn * (LONGEST_RESULT // CHARACTERS_PER_TOKEN + written)
            self.tokens += tokens + written
            self.money += estimated_cost(self.spec, tokens, written)

    def preview(self) -> ModelPreview:
        """Return the counts."""
        return ModelPreview(
            model=self.spec.id,
            calls=self.calls,
            stored=self.stored,
            tokens=self.tokens,
            money=round(self.money, 6),
            currency=(self.spec.known_price or FREE).currency,
            price_known=self.spec.known_price is not None,
        )


class StoredReplies(Protocol):
    """Where a preview looks for replies that need not be asked for."""

    def get(self, key: str) -> Completion | None:
        """Return the stored completion, None if there is none."""


class _NoReplies:
    def get(self, key: str) -> Completion | None:
        return None


def preview_model(schedule: Schedule, spec: ModelSpec, store: StoredReplies) -> ModelPreview:
    """Return calls, stored replies, and upper bounds of tokens and money for one model."""
    constant = canonical(request_constant(spec, sampling_of(spec, schedule.plan.seed)))
    counter = _PreviewCounter(spec)
    for number in () if spec.is_baseline else schedule.numbers(spec.id):
        cell, item, repeat = schedule.trial(number)
        prompt = schedule.prompt(cell, item)
        if prompt.max_tokens == 0:  # no room for a reply: nobody is asked
            continue
        stored = store.get(request_key(constant, prompt.asked, repeat)) is not None
        if cell.mode == "tools" and schedule.plan.tools is not None and not stored:
            counter.add_talk(prompt, schedule.plan.tools)
        else:
            counter.add(prompt, stored=stored)
    counted = counter.preview()
    if not spec.is_baseline and schedule.task.asks == "reply":
        stop = list(spec.stop)
        counted = structs.replace(counted, max_tokens=spec.reply_tokens, stop=stop)
    if spec.in_process:
        replicas = schedule.plan.engine.replicas.get(spec.id, 1)
        counted = structs.replace(counted, replicas=replicas)
    return counted


JudgedCases = Mapping[
    int, tuple[Case, bool]
]  # number of a trial → what is judged, whether it is there


def judged_cases(
    schedule: Schedule, assignment: JudgeAssignment, store: StoredReplies
) -> JudgedCases:
    """Return what judges would be shown, by the number of the trial.

    An answer that is not there yet counts as one as long as its model may write; of one that is,
    the text is known.
    """
    entries = [*schedule.specs.values(), *assignment.models.values()]
    speaker = speaker_pattern({name for spec_ in entries for name in (spec_.id, spec_.model)})
    rules = msgspec.convert(assignment.rules, JudgingRules)
    cases: dict[int, tuple[Case, bool]] = {}
    for name, spec in schedule.specs.items():
        if spec.is_baseline:  # says nothing that a judge would be shown
            continue
        longest = "x" * (spec.reply_tokens * CHARACTERS_PER_TOKEN)
        constant = canonical(request_constant(spec, sampling_of(spec, schedule.plan.seed)))
        for number in schedule.numbers(name):
            cell, item, repeat = schedule.trial(number)
            if item.form not in schedule.task.graders:
                continue
            parser = parser_of(schedule.task, item.form)
            stored = None
            if cell.mode == "solo":
                prompt = schedule.prompt(cell, item)
                stored = store.get(request_key(constant, prompt.asked, repeat))
            code = schedule.task.own
            if stored is None or (code is not None and code.parser_name and not code.runs):
                text = parser.longest(rules) if parser.longest else longest
                cases[number] = Case(item=item, text=text), False
                continue
            answer = read_answer(item, prompt, stored, parser, schedule.plan.extraction)
            if answer.outcome == "answered":
                text = sanitize_answer(answer.value or "", speaker).text
                cases[number] = Case(item=item, text=text, template=prompt.template), True
    return cases


def preview_judge(
    schedule: Schedule,
    assignment: JudgeAssignment,
    spec: ModelSpec,
    judged: JudgedCases,
    store: StoredReplies,
) -> ModelPreview:
    """Return calls, stored replies and upper bounds for one judge.

    Of answers that are there, it is known which verdicts are stored; where a judge takes answers in
    batches, once all of them are. Replies that must be asked again (at most twice) come on top.
    """
    constant = canonical(request_constant(spec, sampling_of(spec, assignment.seed)))
    counter = _PreviewCounter(spec)
    all_known = all(is_known for _, is_known in judged.values())

    def add(prompts: Iterable[Prompt], *, is_known: bool) -> None:
        for prompt in prompts:
            key = request_key(constant, prompt.asked, 0)
            counter.add(prompt, stored=is_known and store.get(key) is not None)

    numbers = array("Q", sorted(judged))
    order = array("Q", numbers)
    random.Random(f"{assignment.seed}\x1fjudges").shuffle(order)  # as `Batches` are cut
    gathered: dict[tuple[Any, ...], list[Case]] = {}
    for number in order:
        case, is_known = judged[number]
        if not _sits(assignment, spec, schedule.cell(number).model):
            continue
        judge = assignment.graders[case.item.domain]
        if judge.batch == 1:
            add(judge.opening([case]), is_known=is_known)
            continue
        alike = gathered.setdefault(alike_key(case.item), [])
        alike.append(case)
        if len(alike) == judge.batch:
            add(judge.opening(alike), is_known=all_known)
            alike.clear()
    for rest in gathered.values():
        if rest:
            add(assignment.graders[rest[0].item.domain].opening(rest), is_known=all_known)
    again = spot_check_graders(assignment.graders)
    for number in spot_check_sample(numbers, assignment.seed) if again else ():
        case, _ = judged[number]
        if _sits(assignment, spec, schedule.cell(number).model):
            add(again[case.item.domain].opening([case]), is_known=all_known)
    return counter.preview()


def _sits(assignment: JudgeAssignment, spec: ModelSpec, model: str) -> bool:
    """Return whether a judge has a seat before a model's answers."""
    return any(judge.id == spec.id for judge in assignment.seats[model])


def preview_judging(
    answers: Answers, assignment: JudgeAssignment, spec: ModelSpec, store: ResponseStore
) -> ModelPreview:
    """Return calls, stored replies and upper bounds for one judge of answers that are there.

    Replies that must be asked again (at most twice) come on top.
    """
    constant = canonical(request_constant(spec, sampling_of(spec, assignment.seed)))
    counter = _PreviewCounter(spec)
    for queue in queues(answers, assignment):
        for batch in queue.batches:
            trials = [answers.trial(number) for number in batch]
            judge = queue.assignment.graders[trials[0].domain]
            prompts = judge.opening([answers.case(trial)[0] for trial in trials])
            for seat in assignment.seats[trials[0].model]:
                for prompt in prompts if seat.id == spec.id else ():
                    key = request_key(constant, prompt.asked, 0)
                    counter.add(prompt, stored=store.get(key) is not None)
    return counter.preview()


def priced(models: Mapping[str, ModelSpec], names: Iterable[str]) -> bool:
    """Return whether any of these entries has a price, or one that is not known, so that asking may
    cost money.
    """
    return any(models[name].known_price != FREE for name in names if name in models)


def preview_of(models: Sequence[ModelPreview]) -> Preview:
    """Return the sums over all models, and which of them would be asked at a price that nobody
    knows.
    """
    return Preview(
        calls=sum(model.calls for model in models),
        stored=sum(model.stored for model in models),
        tokens=sum(model.tokens for model in models),
        money=sum(model.money for model in models),
        unpriced=[model.model for model in models if model.calls and not model.price_known],
        models=list(models),
    )


def _held_against(to_come: Preview, budget: BudgetRules, spent: Amount) -> Preview:
    """Return a preview with what of a budget was spent, and a warning for each bound that what is
    to come may pass; as it is where nothing is bounded.
    """
    if not bounded(budget):
        return to_come
    bounds = {name: bound for name, bound in budget.bounds.items() if bound is not None}
    warnings = []
    for name, bound in bounds.items():
        before, more = getattr(spent, name), getattr(to_come, name)
        if before + more > bound:
            unit = "in money" if name == "money" else name
            warnings.append(
                f"the budget of {bound:g} {unit} is too low for all of it: {before:g} spent, at"
                f" most {more:g} to come; what is asked until then is kept, and a larger budget"
                " resumes"
            )
    by_now = SpentByNow(calls=spent.calls, tokens=spent.tokens, money=round(spent.money, 6))
    return structs.replace(to_come, budget=bounds, spent=by_now, warnings=warnings)


def preview(
    plan: PlanSource,
    *,
    models: Sequence[ModelSpec] | None = None,
    workspace: Path | str | None = None,
    fresh: bool = False,
) -> Preview:
    """Return what a run would ask, judges among it: calls, replies already stored, upper bounds.

    Parameters
    ----------
    plan, models, workspace, fresh : as of `medassay.run`
    """
    plan_read, base = opened_plan(plan)
    workspace = open_workspace(workspace or base, plan_read.hash)
    prepared = prepare(plan_read, base, workspace, models=models, assume_contexts=True)
    schedule, assignment = prepared.schedule, prepared.assignment
    with ResponseStore(workspace / "responses") as store:
        replies: StoredReplies = _NoReplies() if fresh else store
        rows = [preview_model(schedule, spec, replies) for spec in schedule.specs.values()]
        if assignment is not None:
            judged, judges = judged_cases(schedule, assignment, replies), assignment.models.values()
            rows += [preview_judge(schedule, assignment, spec, judged, replies) for spec in judges]
        _, last = latest(workspace / "runs", plan_read.hash)
        resumed = "" if last is None or last.sealed else last.id
        spent = spent_by(workspace, resumed, store) if resumed else NOTHING
    to_come = structs.replace(
        preview_of(rows),
        trials=schedule.n_trials,
        fallback=schedule.fallback or {},
        tasks=[] if plan_read.task else list(_tasks(schedule)),
        own_code=described(schedule.task.own),
        limits=[
            *schedule.unused,
            *language_lines(schedule, prepared.banks),
            *room_lines(schedule),
        ],
    )
    return _held_against(to_come, plan_read.budget, spent)


def _tasks(schedule: Schedule) -> Iterator[TaskPreview]:
    """Yield how many items each task asks."""
    counts = Counter(bank.items[position].form for bank, position in schedule.items())
    for task, forms in schedule.task.single_tasks:
        items = {form: counts[form] for form in sorted(forms) if counts[form]}
        if items:
            yield TaskPreview(
                task=task.name, metric=task.metric, items=items, judged=bool(task.graders)
            )


def has_prices(plan: Path) -> bool:
    """Return whether any model or judge of a plan has a price, so that a run may cost money."""
    plan_read = load_plan(plan)
    models_file = plan.resolve().parent / plan_read.models_file
    names = {*plan_read.models, *plan_read.judges, plan_read.substitute}
    return priced(load_models(models_file), names)
