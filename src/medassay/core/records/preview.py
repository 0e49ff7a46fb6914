"""What a run would ask and cost, as `--plan` shows it."""

import msgspec

from medassay.core.frame import table_html
from medassay.core.records.leaderboard import fallback_lines
from medassay.core.records.manifest_object import Fallback
from medassay.core.wording import counted


class SpentByNow(msgspec.Struct, frozen=True, kw_only=True):
    """What the run that would be resumed has spent."""

    calls: int
    tokens: int
    money: float


class ModelPreview(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one model or judge would be asked.

    Attributes
    ----------
    calls, tokens, money : upper bounds of what is to come
    stored : replies that are there
    max_tokens, stop : what is sent of the length of a reply, where a reply is asked for
    replicas : copies of local weights with `--engine ray`
    """

    model: str
    calls: int
    stored: int
    tokens: int
    money: float
    currency: str
    price_known: bool
    max_tokens: int | msgspec.UnsetType = msgspec.UNSET
    stop: list[str] | msgspec.UnsetType = msgspec.UNSET
    replicas: int | msgspec.UnsetType = msgspec.UNSET

    @property
    def price_text(self) -> str:
        """Return what it costs at most."""
        return f"{self.money:.4f} {self.currency}" if self.price_known else "price unknown"

    def text(self, *, several_tasks: bool) -> str:
        """Return the model in one line; each of several tasks may have a limit of its own."""
        limit = ""
        if self.max_tokens:
            ends = " or ".join(repr(text) for text in self.stop or ())
            at_most = "at most " if several_tasks else ""
            limit = f", max_tokens {at_most}{self.max_tokens}"
            limit += f", stop at {ends}" if ends else ", no stop text"
        replicas = f", replicas with --engine ray: {self.replicas}" if self.replicas else ""
        return (
            f"{self.model}: {self.calls} calls, {self.stored} stored, at most {self.tokens} tokens,"
            f" {self.price_text}{limit}{replicas}"
        )


class TaskPreview(msgspec.Struct, frozen=True, kw_only=True):
    """How many items of which form a task asks, and what it scores them by; `judged` says that
    judges do.
    """

    task: str
    metric: str
    items: dict[str, int]
    judged: bool

    @property
    def text(self) -> str:
        """Return which items the task asks, and how their answers are scored."""
        forms = ", ".join(f"{n} {form}" for form, n in self.items.items())
        by = f"{self.metric}, by judges" if self.judged else self.metric
        n_items = counted(sum(self.items.values()), "item")
        return f"task {self.task}: {n_items} ({forms}), scored by {by}"


class Preview(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all models and judges of a plan would be asked.

    Attributes
    ----------
    trials, answers : of the plan, or those that would be judged
    unpriced : models that would be asked at a price that nobody knows
    fallback : models that are asked for replies where others are asked for likelihoods
    own_code : lines on code of the user that a run would execute
    tasks : by which task each item is asked, where the plan does not name the one
    limits : lines on the length of replies, and on what of a plan is not used
    budget, spent, warnings : bounds, what was spent of them, and which may be passed
    """

    trials: int | msgspec.UnsetType = msgspec.UNSET
    answers: int | msgspec.UnsetType = msgspec.UNSET
    calls: int
    stored: int
    tokens: int
    money: float
    unpriced: list[str] = []
    models: list[ModelPreview]
    fallback: Fallback = {}
    tasks: list[TaskPreview] = []
    own_code: list[str] = []
    limits: list[str] = []
    budget: dict[str, float] = {}
    spent: SpentByNow | msgspec.UnsetType = msgspec.UNSET
    warnings: list[str] | msgspec.UnsetType = msgspec.UNSET

    @property
    def lines(self) -> list[str]:
        """Return what people read: tasks, each model, the sum, and what must be known besides."""
        lines = [*(task.text for task in self.tasks), *self.own_code]
        lines += [*fallback_lines(self.fallback), *self.limits]
        lines += [model.text(several_tasks=len(self.tasks) > 1) for model in self.models]
        money = f", {self.money:.4f} in money" if self.money or not self.unpriced else ""
        besides = f"; price unknown: {', '.join(self.unpriced)}" if self.unpriced else ""
        lines.append(f"in all: {self.calls} calls, at most {self.tokens} tokens{money}{besides}")
        if spent := self.spent:
            lines.append(
                f"spent by now: {spent.calls} calls, {spent.tokens} tokens, {spent.money:.4f} in"
                " money"
            )
        return lines + [f"warning: {warning}" for warning in self.warnings or ()]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        rows = [
            [m.model, f"{m.calls:,}", f"{m.stored:,}", f"{m.tokens:,}", m.price_text]
            for m in self.models
        ]
        told = {model.text(several_tasks=len(self.tasks) > 1) for model in self.models}
        return table_html(
            ["model", "calls", "stored replies", "at most tokens", "at most money"],
            rows,
            notes=[line for line in self.lines if line not in told],
        )
