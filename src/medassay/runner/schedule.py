"""Plan → trials: which items in which cells, in the order in which a sealed run holds them.

A trial is a number; its cell, item and repeat follow from it. So the state of a million trials is
two machine numbers each (see `storage.journal`), and an item is read only when its turn comes.
"""

import random
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from medassay.bank.folder import bank_heads
from medassay.core.records.context_config import CONTEXTS
from medassay.core.records.item import Bank, Item
from medassay.core.records.likelihood import LikelihoodRequest
from medassay.core.records.manifest_object import Fallback
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import Plan
from medassay.core.records.prompt import Message, Prompt
from medassay.core.records.relaxed import RelaxedSetting
from medassay.core.records.sealed_object import TrialKeys, place_of
from medassay.core.records.target import Choice, Form
from medassay.core.records.task import GENERATION_SUFFIX, Task
from medassay.errors import InputError
from medassay.kinds.catalog import OWN_TASKS, TASKS
from medassay.model.spec import named
from medassay.prompt.own_template import is_file
from medassay.prompt.render import (
    Template,
    check_examples,
    choose_examples,
    document_template,
    example_turns,
    id_with_evidence,
    load_part,
    load_template,
    own_template,
    render,
    shown_order,
)
from medassay.runner.context import Contexts
from medassay.runner.reply_room import ReplyRoom, room_of

MOST_TRIALS = 100_000_000  # of one run: their places in the journal take 1.6 GB of memory


class Cell(msgspec.Struct, frozen=True):
    """One domain × model × setting × mode; `base` is the number of its first trial."""

    domain: str
    model: str
    setting: str
    mode: str
    base: int


class Schedule:
    """All trials of a plan, numbered by (domain, model, setting, mode, item, repeat)."""

    def __init__(
        self,
        plan: Plan,
        banks: Sequence[Bank],
        specs: Mapping[str, ModelSpec],
        task: Task,
        *,
        contexts: Contexts | None = None,
        tools: bytes = b"",
    ) -> None:
        self.plan = plan
        self.task = task
        self.specs = {
            name: _entry_for(named(specs, name, "plan: model", plan.models_file), task)
            for name in plan.models
        }
        # Models whose replies are as long as the task of an item says.
        self._unlimited = {
            name
            for name, spec in self.specs.items()
            if specs[name].max_tokens is None and spec.max_tokens == task.reply_tokens
        }
        self._prompts_of = _prompts_of_tasks(plan, task)
        self._fallback = _fallback(plan, task)
        self.without: dict[str, str] = {}  # model → why it cannot tell likelihoods
        self._check_likelihood()
        self._bank_of: dict[str, Bank] = {}
        self._places: dict[str, array[int]] = {}  # domain → positions in its bank, by item id
        # Domain → how many items, of a schedule that came from another process.
        self._sizes: dict[str, int] = {}
        self._ids: dict[str, Sequence[str]] = {}  # bank → ids by position
        self._dev: dict[str, list[Item]] = {}
        self.forms: set[Form] = set()  # of the items that are asked
        self._unused: dict[str, Counter[str]] = {}  # bank → what of it the task does not ask
        for bank in banks:
            self._take(bank)
        self._refuse_unused(banks)
        self._check_settings()
        self.contexts = contexts  # where a setting shows texts
        self.tools = tools  # the schema of the tools
        self._turns: dict[tuple[str, ...], tuple[Message, ...]] = {}
        self._index: dict[str, dict[str, int]] = {}  # made when a stored trial is looked up
        self.cells = self._cells()
        self._bases = [cell.base for cell in self.cells]
        self._by_name = {(c.domain, c.model, c.setting, c.mode): c for c in self.cells}
        last = self.cells[-1]
        self.n_trials = last.base + len(self._places[last.domain]) * plan.repeats
        if self.n_trials > MOST_TRIALS:
            raise InputError(
                f"plan: asks {self.n_trials:,} trials, of which each item is asked"
                f" {plan.repeats:,} times in each cell; at most {MOST_TRIALS:,} are one run: lower"
                " 'repeats', set 'sample', or make several plans"
            )
        self.room: ReplyRoom = room_of(task, (bank.items[at] for bank, at in self.items()))

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs to know: all but the items, which it reads from the
        run.
        """
        banks = {d: replace(b, items=(), changes="", reviews=()) for d, b in self._bank_of.items()}
        few_shot = "few_shot" in self.plan.settings
        return self.__dict__ | {
            "_prompts_of": None,
            "_fallback": None,
            "_turns": {},
            "_ids": {},
            "_index": {},
            "_bank_of": banks,
            "_places": {},
            "_sizes": {domain: len(positions) for domain, positions in self._places.items()},
            "_dev": self._dev if few_shot else {},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._prompts_of = _prompts_of_tasks(self.plan, self.task)
        self._fallback = _fallback(self.plan, self.task)

    def read_from(self, items: Sequence[Item]) -> None:
        """Take the items from those of a run, which are sorted by domain and id, once this came
        from another process.
        """
        start = 0
        for domain, size in sorted(self._sizes.items()):
            self._places[domain] = array("Q", range(start, start + size))
            self._bank_of[domain] = replace(self._bank_of[domain], items=items)
            start += size

    def _take(self, bank: Bank) -> None:
        ids: list[str] = []
        forms: list[Form] = []
        places: dict[str, list[int]] = {}
        for position, (name, (domain, split, form)) in enumerate(bank_heads(bank)):
            ids.append(name)
            forms.append(form)
            if split == "dev":
                self._dev.setdefault(bank.name, []).append(bank.items[position])
            elif self.task.accepts(split, form):
                places.setdefault(domain, []).append(position)
            else:
                kind = form if split == self.task.split else f"{form}, split {split}"
                self._unused.setdefault(bank.name, Counter())[kind] += 1
        for positions in places.values():
            positions.sort(key=ids.__getitem__)
        if self.plan.sample is not None:
            places = sample_evenly(places, self.plan.sample, self.plan.seed, bank.name)
        self.forms.update(forms[at] for positions in places.values() for at in positions)
        self._ids[bank.name] = ids
        for domain, positions in places.items():
            if domain in self._places:
                raise InputError(
                    f"banks '{self._bank_of[domain].name}' and '{bank.name}' share the domain"
                    f" '{domain}', and no two may; import one of them with --domain NAME, or run"
                    " them apart"
                )
            self._places[domain], self._bank_of[domain] = array("Q", positions), bank

    def _refuse_unused(self, banks: Sequence[Bank]) -> None:
        """Refuse a bank of which the task can ask nothing: nobody names a bank in order not to ask
        it.
        """
        used = {bank.name for bank in self._bank_of.values()}
        for bank in banks:
            if bank.name in used:
                continue
            kinds = self._unused.get(bank.name, Counter())
            n = kinds.total()
            if not n:
                reason = (
                    f"has nothing to ask of bank '{bank.name}': all its items are examples (split"
                    " dev)"
                )
            elif n == 1:
                reason = f"cannot ask the one item of bank '{bank.name}' ({_forms(kinds)})"
            else:
                reason = f"can ask none of the {n} items of bank '{bank.name}' ({_forms(kinds)})"
            besides = f"; it asks those of {', '.join(sorted(used))}" if used else ""
            tasks = sorted({OWN_TASKS[form] for form in kinds if form in OWN_TASKS})
            advice = f" and ask it in a plan of its own, with task {' or '.join(tasks)}"
            raise InputError(
                f"plan: task '{self.task.name}' {reason}{besides}; take the bank out of"
                f" 'banks'{advice if tasks else ''}"
            )

    @property
    def unused(self) -> list[str]:
        """Return a line for each bank some of whose items the task does not ask."""
        return [self._unused_line(name, kinds) for name, kinds in sorted(self._unused.items())]

    def _unused_line(self, name: str, kinds: Counter[str]) -> str:
        n = kinds.total()
        line = (
            f"bank '{name}': {n} item{'s are' if n > 1 else ' is'} not asked, task"
            f" '{self.task.name}' does not take {'them' if n > 1 else 'it'} ({_forms(kinds)})"
        )
        own = {OWN_TASKS[form] for form in kinds if form in OWN_TASKS}
        tasks = sorted(name for name in own if TASKS[name].graders)
        if self.plan.task or self.plan.judges or self.task.asks != "reply" or not tasks:
            return line
        return f"{line}; with 'judges' in the plan task {' or '.join(tasks)} asks them, too"

    def _check_settings(self) -> None:
        if "few_shot" in self.plan.settings:
            for bank in {bank.name for bank in self._bank_of.values()}:
                for _, forms in self._asked_tasks():
                    check_examples(self._examples(bank, forms), self.plan.few_shot_k, bank)
        if "tools" not in self.plan.modes:
            return
        if self.task.asks != "reply":
            raise InputError(
                f"task '{self.task.name}' asks no replies, and only a reply can call tools; modes ="
                ' ["solo"]'
            )
        for name, spec in self.specs.items():
            if not spec.is_baseline and (reason := spec.no_tools) is not None:
                raise InputError(f"plan: model '{name}' cannot be asked in mode 'tools': {reason}")

    def _check_likelihood(self) -> None:
        """Note which models cannot be asked what the task asks.

        Refuse them where there is no other way to ask.
        """
        asks = self.task.asks
        if asks == "reply":
            return
        if asks == "alone" and self.plan.settings != ("zero_shot",):
            raise InputError(
                f"task '{self.task.name}' scores texts without a prompt; settings = [\"zero_shot\"]"
                " is all there is"
            )
        if asks != "relaxed" and self.plan.repeats > 1:
            raise InputError(
                f"plan: 'repeats' is {self.plan.repeats}; in task '{self.task.name}' nothing is"
                " drawn, and each repeat would tell the same: leave it out"
            )
        for name, spec in self.specs.items():
            reason = spec.cannot_tell(asks, chat_template=self.task.chat_template)
            if reason is not None and not (spec.is_baseline and asks == "choices"):
                self.without[name] = reason
        names = [name for name, spec in self.specs.items() if not spec.is_baseline]
        if not self.without or (self._fallback and not self.without.keys() >= set(names)):
            return
        name, reason = next(iter(self.without.items()))
        other = f'; by their replies: task = "{self.task.fallback}"' if self._fallback else ""
        raise InputError(
            f"task '{self.task.name}' needs likelihoods, which model '{name}' cannot tell:"
            f" {reason}{other}"
        )

    def _settings(self, name: str, spec: ModelSpec) -> list[str]:
        if spec.is_baseline:  # reads no prompt: one setting says all there is to say
            return list(self.prompts)[:1]
        return sorted(self._fallback if name in self.without else self.prompts)

    def _cells(self) -> list[Cell]:
        cells: list[Cell] = []
        base = 0
        for domain in sorted(self._places):
            for model, spec in sorted(self.specs.items()):
                # A baseline reads no prompt and calls nothing, so one mode says all.
                modes = sorted(self.plan.modes)[: 1 if spec.is_baseline else None]
                for setting, mode in product(self._settings(model, spec), modes):
                    cells.append(Cell(domain, model, setting, mode, base))
                    base += len(self._places[domain]) * self.plan.repeats
        return cells

    @property
    def prompts(self) -> Mapping[str, tuple[str, Template]]:
        """Return row's setting → (setting, template) of the first task; all have these settings."""
        return next(iter(self._prompts_of.values()))

    @property
    def templates(self) -> list[Template]:
        """Return all templates, by name."""
        named = {
            template.name: template
            for prompts in self._prompts_of.values()
            for _, template in prompts.values()
        }
        return [template for _, template in sorted(named.items())]

    @property
    def template_ids(self) -> str:
        """Return the ids of all templates, sorted, joined by "+"."""
        if self.task.asks == "alone":
            return ""
        return "+".join(
            sorted(
                {
                    id_with_evidence(template) if setting in CONTEXTS else template.id
                    for prompts in self._prompts_of.values()
                    for setting, template in prompts.values()
                }
            )
        )

    @property
    def fallback(self) -> Fallback:
        """Return how models are asked that cannot tell likelihoods, and why; {} if all can.

        Returns
        -------
        dict
            task (whose rows these are, unranked), template (ids joined by "+"), models (name →
            reason).
        """
        without = {n: why for n, why in self.without.items() if not self.specs[n].is_baseline}
        if not without:
            return {}
        return {
            "task": self.task.fallback + GENERATION_SUFFIX,
            "template": "+".join(sorted({t.id for _, t in self._fallback.values()})),
            "models": without,
        }

    @property
    def domains(self) -> dict[str, str]:
        """Return domain → bank version."""
        return {domain: self._bank_of[domain].version for domain in sorted(self._places)}

    def items(self) -> Iterator[tuple[Bank, int]]:
        """Yield (bank, position) of every item in the run, sorted by domain and id."""
        for domain in sorted(self._places):
            for position in self._places[domain]:
                yield self._bank_of[domain], position

    def size(self, cell: Cell) -> int:
        """Return the number of trials in a cell."""
        return len(self._places[cell.domain]) * self.plan.repeats

    def numbers(self, model: str) -> Iterator[int]:
        """Yield the numbers of a model's trials."""
        for cell in self.cells:
            if cell.model == model:
                yield from range(cell.base, cell.base + self.size(cell))

    def cell(self, number: int) -> Cell:
        """Return the cell of a trial."""
        return self.cells[bisect_right(self._bases, number) - 1]

    def trial(self, number: int) -> tuple[Cell, Item, int]:
        """Return cell, item and repeat of a trial."""
        cell = self.cell(number)
        at, repeat = divmod(number - cell.base, self.plan.repeats)
        return cell, self._bank_of[cell.domain].items[self._places[cell.domain][at]], repeat

    def number_of(self, trial: TrialKeys) -> int | None:
        """Return the number of a stored trial, None if the plan does not want it."""
        domain, model, setting, mode, item, repeat = place_of(trial)
        cell = self._by_name.get((domain, model, setting, mode))
        at = None if cell is None else self._positions(domain).get(item)
        if cell is None or at is None or not 0 <= repeat < self.plan.repeats:
            return None
        return cell.base + at * self.plan.repeats + repeat

    def _positions(self, domain: str) -> dict[str, int]:
        if domain not in self._index:
            ids = self._ids[self._bank_of[domain].name]
            self._index[domain] = {ids[p]: at for at, p in enumerate(self._places[domain])}
        return self._index[domain]

    def bank(self, cell: Cell) -> Bank:
        """Return the bank of a cell."""
        return self._bank_of[cell.domain]

    def prompt(self, cell: Cell, item: Item) -> Prompt:
        """Return the prompt of an item in a cell."""
        spec = self.specs[cell.model]
        turns: tuple[Message, ...] = ()
        if self.task.asks == "alone":
            return Prompt(
                item_id=item.id,
                messages=(),
                encoded=b"[]",
                template="",
                likely=LikelihoodRequest(continuations=(item.reference_text,)),
            )
        part = self.task.part(item.form)
        other = cell.model in self.without
        prompts = self._prompts_of[part.name]
        setting, template = (self._fallback if other else prompts)[cell.setting]
        if setting == "few_shot":
            alike = (template.id, item.domain, item.form, item.language)
            if alike not in self._turns:
                forms = next(f for _, f in self.task.single_tasks if item.form in f)
                dev = self._examples(self._bank_of[cell.domain].name, forms)
                chosen = choose_examples(dev, item, self.plan.few_shot_k, self.plan.seed)
                self._turns[alike] = example_turns(template, chosen)
            turns = self._turns[alike]
        system, role = self._system(cell, item, spec)
        prompt = render(
            template,
            item,
            examples=turns,
            order=shown_order(item, self.plan.seed) if self.plan.shuffle_options else None,
            system=system,
            system_role=role,
            context=None if self.contexts is None else self.contexts.evidence_for(setting, item),
        )
        if self.tools and cell.mode == "tools":
            prompt = self._with_limit(spec, prompt, part)
            return msgspec.structs.replace(
                prompt,
                tools=self.tools,
                template=f"{prompt.template}+{load_part('tools').id}",
            )
        if self.task.asks == "reply" or other or spec.is_baseline:
            return self._with_limit(spec, self.room.fit(spec, item, prompt), part)
        return msgspec.structs.replace(prompt, likely=self._request(item, prompt, template))

    def _with_limit(self, spec: ModelSpec, prompt: Prompt, part: Task) -> Prompt:
        """Return a prompt with the limit of its own task, where another allows longer replies and
        the entry says nothing.
        """
        is_limited = prompt.max_tokens is not None or spec.id not in self._unlimited
        if is_limited or part.reply_tokens == self.task.reply_tokens:
            return prompt
        return msgspec.structs.replace(prompt, max_tokens=part.reply_tokens)

    def _examples(self, bank: str, forms: frozenset[str]) -> list[Item]:
        """Return the examples of a bank that are asked as items of some forms are.

        A task of its own takes them all.
        """
        dev = self._dev.get(bank, [])
        return [item for item in dev if item.form in forms] if self.task.parts else dev

    def _asked_tasks(self) -> Iterator[tuple[Task, frozenset[str]]]:
        asked = {bank.items[at].form for bank, at in self.items()} if self.task.parts else None
        for task, forms in self.task.single_tasks:
            if asked is None or asked & forms:
                yield task, forms

    def _system(self, cell: Cell, item: Item, spec: ModelSpec) -> tuple[str, str]:
        """Return the system line and its role.

        In the mode `tools` it says that there are some, before the question where there is none.
        """
        if cell.mode != "tools" or self.plan.tools is None or spec.is_baseline:
            return spec.system_line, spec.system_role
        text = load_part("tools").text(item.language, calls=self.plan.tools.max_calls)
        if spec.system_role == "none":
            return text, "question"
        return "\n\n".join(filter(None, (spec.system_line, text))), spec.system_role

    def _request(self, item: Item, prompt: Prompt, template: Template) -> LikelihoodRequest:
        """Return what is asked instead of a reply."""
        relaxed = None
        if self.task.asks == "choices":
            texts = prompt.options if template.options_as_texts else tuple(prompt.letters)
        elif self.task.asks == "conditional":
            texts = (item.reference_text,)
        else:
            texts = (*item.must_have, *item.nice_to_have)
            relaxed = self.plan.relaxed_perplexity or RelaxedSetting()
        return LikelihoodRequest(
            continuations=texts, chat_template=self.task.chat_template, relaxed=relaxed
        )

    def majority(self) -> dict[str, str]:
        """Return, for each set of letters, the key most common among the run's items as shown."""
        counts: dict[str, Counter[str]] = {}
        for bank, position in self.items():
            item = bank.items[position]
            if isinstance(item.target, Choice) and item.target.expected:
                key = item.target.place
                if self.plan.shuffle_options and (order := shown_order(item, self.plan.seed)):
                    key = order.index(key)
                counts.setdefault(item.letters, Counter())[item.letters[key]] += 1
        return {letters: min(c, key=lambda k: (-c[k], k)) for letters, c in counts.items()}


def _forms(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))


def _prompts(plan: Plan, task: Task) -> dict[str, tuple[str, Template]]:
    """Return row's setting → (setting, template): a prompt of its own for each pair of the two."""
    names = [Path(name).name if is_file(name) else name for name in plan.templates]
    names = names or [task.template]
    return {
        setting if len(names) == 1 else f"{setting}:{name}": (setting, _template(name, task))
        for setting in plan.settings
        for name in names
    }


def _template(name: str, task: Task) -> Template:
    """Return a template of the user where the task has one of that name, else that of medassay."""
    templates = {} if task.own is None else task.own.templates
    document = None if task.own is None else task.own.schema
    if name not in templates:
        return load_template(name) if document is None else document_template(name, document)
    like = load_template(TASKS[task.name].template)
    return own_template(name, templates[name], like, document)


def _prompts_of_tasks(plan: Plan, task: Task) -> dict[str, dict[str, tuple[str, Template]]]:
    return {part.name: _prompts(plan, part) for part, _ in task.single_tasks}


def _fallback(plan: Plan, task: Task) -> dict[str, tuple[str, Template]]:
    """Return row's setting → (setting, template) for models that cannot tell likelihoods, {} where
    nothing replaces these.
    """
    if not task.fallback:
        return {}
    return {
        f"{setting}:{task.fallback}{GENERATION_SUFFIX}": (setting, load_template(task.fallback))
        for setting in plan.settings
    }


def _entry_for(spec: ModelSpec, task: Task) -> ModelSpec:
    """Return an entry as a task asks it: how long a reply may be, where it ends, and whether
    prompts are put as a conversation.

    What the entry says of `max_tokens` and `stop` stands in place of the task's. A model that
    thinks first is not told to end: its thoughts may hold what ends an answer. It is read alike.
    """
    spec = spec.with_room(task.reply_tokens)
    if task.stop and not spec.stop and not spec.think_tags:
        spec = replace(spec, stop=task.stop)
    if task.plain and spec.in_process:
        spec = replace(spec, protocol="completions")
    return spec


def sample_evenly(
    places: Mapping[str, list[int]], size: int, seed: int, bank: str
) -> dict[str, list[int]]:
    """Return `size` places spread evenly over domains, fixed by the seed; all if there are fewer.

    The order within a domain is kept.
    """
    remaining = {
        domain: list(range(len(positions))) for domain, positions in sorted(places.items())
    }
    for domain, positions in remaining.items():
        random.Random(f"{seed}\x1f{bank}\x1f{domain}").shuffle(positions)
    sampled: dict[str, list[int]] = {}
    while size > 0 and any(remaining.values()):
        for domain, positions in remaining.items():
            if size > 0 and positions:
                sampled.setdefault(domain, []).append(positions.pop())
                size -= 1
    return {
        domain: [places[domain][at] for at in sorted(positions)]
        for domain, positions in sampled.items()
    }
