"""What a run would ask and cost, as `--plan` shows it."""

import msgspec

from medassay.core.records.manifest_object import Fallback


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


class TaskPreview(msgspec.Struct, frozen=True, kw_only=True):
    """How many items of which form a task asks, and what it scores them by; `judged` says that
    judges do.
    """

    task: str
    metric: str
    items: dict[str, int]
    judged: bool


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
