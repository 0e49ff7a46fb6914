"""What replies took and cost, as pages and times.csv show it."""

from collections.abc import Sequence

import msgspec


class TimesRow(msgspec.Struct, frozen=True, kw_only=True):
    """Replies of a model or judge to one kind of question, of public or of synthetic items.

    Attributes
    ----------
    mean_seconds, seconds_lo, seconds_hi : of generation, with the 95 % interval of the mean
    without_tokens : replies that told no tokens
    cost : None where nobody knows the price
    free : whether the price is known and 0
    gpu, cpu, memory_gib : of models that ran where the run was made
    """

    role: str
    model: str
    setting: str
    mode: str
    kind: str
    items: str
    replies: int
    mean_seconds: float
    seconds_lo: float | None
    seconds_hi: float | None
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    without_tokens: int
    cost: float | None
    currency: str
    price_known: bool
    free: bool
    engine: str
    quantisation: str
    location: str
    gpu: str
    cpu: str
    memory_gib: int | None


class CostTotal(msgspec.Struct, frozen=True, kw_only=True):
    """What the replies of one model or judge came to, or all replies: then without a name.

    Attributes
    ----------
    cost : currency → money, over the replies whose price and tokens are known
    unknown : whether there are others
    """

    role: str = ""
    model: str = ""
    replies: int
    prompt_tokens: int
    completion_tokens: int
    without_tokens: int
    cost: dict[str, float] = msgspec.field(default_factory=dict)
    unknown: bool


def cost_totals(rows: Sequence[TimesRow]) -> list[CostTotal]:
    """Return what all replies of each model and judge came to, in the order of the rows, and all
    together last.
    """
    named = dict.fromkeys((row.role, row.model) for row in rows)
    totals = [
        _total(role, model, [row for row in rows if (row.role, row.model) == (role, model)])
        for role, model in named
    ]
    return [*totals, _total("", "", rows)] if rows else []


def _total(role: str, model: str, rows: Sequence[TimesRow]) -> CostTotal:
    cost: dict[str, float] = {}
    for row in rows:
        if row.cost is not None:
            cost[row.currency] = cost.get(row.currency, 0.0) + row.cost
    return CostTotal(
        role=role,
        model=model,
        replies=sum(row.replies for row in rows),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        completion_tokens=sum(row.completion_tokens for row in rows),
        without_tokens=sum(row.without_tokens for row in rows),
        cost=cost,
        unknown=any(row.cost is None or (row.without_tokens and not row.free) for row in rows),
    )
