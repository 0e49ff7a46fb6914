"""What a model would be asked and what it would cost, before anything is paid."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medassay.answer.ranked_list.entry import LONGEST_NAME
from medassay.core.canonical import canonical
from medassay.core.lookup import DEAF_TURNS, LONGEST_RESULT, ToolRules
from medassay.core.model import ModelSpec
from medassay.core.trial import Prompt
from medassay.core.verdict import Case
from medassay.model.spec import load_models
from medassay.runner.asking import request_constant, sampling_of
from medassay.runner.bench import Bench
from medassay.runner.budget import CHARACTERS_PER_TOKEN, cost, estimated_tokens, most_written
from medassay.runner.docket import Answers, alike_key, audited, auditors, dockets
from medassay.runner.schedule import Schedule
from medassay.storage.response import ResponseStore, request_key


@dataclass
class _Asked:
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
        self.money += cost(self.spec, read, written)

    def add_talk(self, prompt: Prompt, rules: ToolRules) -> None:
        """Count a conversation with tools as long as it may become: a call a turn, each with the longest result."""
        read, written = estimated_tokens(prompt), most_written(self.spec, prompt)
        for turn in range(rules.max_calls + DEAF_TURNS + 1):
            self.calls += 1
            tokens = read + turn * (LONGEST_RESULT // CHARACTERS_PER_TOKEN + written)
            self.tokens += tokens + written
            self.money += cost(self.spec, tokens, written)

    def add_all(self, prompts: Iterable[Prompt]) -> None:
        """Count some prompts."""
        for prompt in prompts:
            self.add(prompt)

    def row(self) -> dict[str, Any]:
        """Return the counts."""
        return {
            "model": self.spec.id,
            "calls": self.calls,
            "stored": self.stored,
            "tokens": self.tokens,
            "money": round(self.money, 6),
            "currency": self.spec.price.currency,
        }


def preview_model(schedule: Schedule, spec: ModelSpec, store: ResponseStore) -> dict[str, Any]:
    """Return calls, stored replies, and upper bounds of tokens and money for one model."""
    constant = canonical(request_constant(spec, sampling_of(spec, schedule.plan.seed)))
    asked = _Asked(spec)
    for number in () if spec.is_baseline else schedule.numbers(spec.id):
        cell, item, repeat = schedule.trial(number)
        prompt = schedule.prompt(cell, item)
        if prompt.max_tokens == 0:  # no room for a reply: nobody is asked
            continue
        stored = store.get(request_key(constant, prompt.asked, repeat)) is not None
        if cell.mode == "tools" and schedule.plan.tools is not None and not stored:
            asked.add_talk(prompt, schedule.plan.tools)
        else:
            asked.add(prompt, stored=stored)
    replicas = schedule.plan.engine.replicas.get(spec.id, 1)
    return asked.row() | ({"replicas": replicas} if spec.in_process else {})


def preview_judge(schedule: Schedule, bench: Bench, spec: ModelSpec) -> dict[str, Any]:
    """Return calls and upper bounds for one judge: every answer as long as its model may write.

    Replies that must be asked again (at most twice) come on top; stored ones are not known before
    the answers are.
    """
    asked = _Asked(spec)
    n_cases = 0
    gathered: dict[tuple[Any, ...], list[Case]] = {}
    for case in _cases(schedule, bench, spec):
        n_cases += 1
        judge = bench.judges[case.item.domain]
        alike = gathered.setdefault(alike_key(case.item), [])
        alike.append(case)
        if len(alike) == judge.batch:
            asked.add_all(judge.opening(alike))
            alike.clear()
    for rest in gathered.values():
        if rest:
            asked.add_all(bench.judges[rest[0].item.domain].opening(rest))
    again = auditors(bench.judges)
    if again and n_cases:
        sample = frozenset(audited(range(n_cases), bench.seed))
        for number, case in enumerate(_cases(schedule, bench, spec)):
            if number in sample:
                asked.add_all(again[case.item.domain].opening([case]))
    return asked.row()


def _cases(schedule: Schedule, bench: Bench, spec: ModelSpec) -> Iterator[Case]:
    """Yield what a judge would be shown."""
    for name, tested in schedule.specs.items():
        if all(judge.id != spec.id for judge in bench.seats[name]):
            continue
        longest = "x" * (tested.max_tokens * CHARACTERS_PER_TOKEN)
        rules = bench.rules.get("ddx", {}).get("rules", {})
        ranks = range(1, rules.get("rank_limit", 0) + 1)
        whole = canonical([{"rank": n, "name": "x" * LONGEST_NAME} for n in ranks]).decode()
        for number in schedule.numbers(name):
            _, item, _ = schedule.trial(number)
            if item.form in schedule.task.judges:
                yield Case(item=item, text=whole if item.form == "diagnoses" else longest)


def preview_judging(
    answers: Answers, bench: Bench, spec: ModelSpec, store: ResponseStore
) -> dict[str, Any]:
    """Return calls, stored replies and upper bounds for one judge of answers that are there.

    Replies that must be asked again (at most twice) come on top.
    """
    constant = canonical(request_constant(spec, sampling_of(spec, bench.seed)))
    asked = _Asked(spec)
    for docket in dockets(answers, bench):
        for batch in docket.batches:
            trials = [answers.trial(number) for number in batch]
            judge = docket.bench.judges[trials[0]["domain"]]
            prompts = judge.opening([answers.case(trial)[0] for trial in trials])
            for seat in bench.seats[trials[0]["model"]]:
                for prompt in prompts if seat.id == spec.id else ():
                    key = request_key(constant, prompt.asked, 0)
                    asked.add(prompt, stored=store.get(key) is not None)
    return asked.row()


def priced(models_file: Path, names: Iterable[str]) -> bool:
    """Return whether any of these entries has a price, so that asking may cost money."""
    specs = load_models(models_file)
    prices = [specs[name].price for name in names if name in specs]
    return any(price.input or price.output for price in prices)


def totals(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums over all models."""
    return {
        name: sum(row[name] for row in rows) for name in ("calls", "stored", "tokens", "money")
    }
