"""What a run may spend, and what it has spent."""

from dataclasses import dataclass

from medassay.core.model import ModelSpec
from medassay.core.plan import Budget
from medassay.core.trial import Prompt, Usage, pictures_in, said_in

CHARACTERS_PER_TOKEN = 4  # for estimates before anything is sent
PICTURE_TOKENS = 1600  # of one page, roughly


def estimated_tokens(prompt: Prompt) -> int:
    """Return a rough number of prompt tokens; a prompt is read once for each text whose likelihood it asks for."""
    if prompt.tools:  # calls and what they gave are in no message's text alone
        return (len(prompt.encoded) + len(prompt.tools)) // CHARACTERS_PER_TOKEN + 8
    read = sum(len(said_in(m)) for m in prompt.messages) // CHARACTERS_PER_TOKEN + 8
    read += PICTURE_TOKENS * sum(len(pictures_in(m)) for m in prompt.messages)
    if prompt.likely is None or prompt.likely.relaxed is not None:
        return read
    return read * len(prompt.likely.continuations)


def most_written(spec: ModelSpec, prompt: Prompt) -> int:
    """Return how many tokens may come back at most: of a reply, of drawn completions, or of given texts (roughly)."""
    if prompt.likely is None:
        return spec.max_tokens if prompt.max_tokens is None else prompt.max_tokens
    if prompt.likely.relaxed is not None:
        return prompt.likely.relaxed.samples * prompt.likely.relaxed.max_tokens
    given = prompt.likely.continuations
    return sum(map(len, given)) // CHARACTERS_PER_TOKEN + len(given)


def cost(spec: ModelSpec, prompt_tokens: int, completion_tokens: int) -> float:
    """Return the money that tokens cost at an entry's price."""
    return (prompt_tokens * spec.price.input + completion_tokens * spec.price.output) / 1e6


@dataclass(frozen=True, slots=True)
class Amount:
    """Calls, tokens and money, spent or to be spent."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0

    def __add__(self, other: "Amount") -> "Amount":
        """Return both together."""
        return Amount(
            self.calls + other.calls, self.tokens + other.tokens, self.money + other.money
        )

    def __sub__(self, other: "Amount") -> "Amount":
        """Return what is left of this without the other."""
        return Amount(
            self.calls - other.calls, self.tokens - other.tokens, self.money - other.money
        )

    def within(self, budget: Budget) -> bool:
        """Return whether a budget allows this much."""
        return (
            (budget.calls is None or self.calls <= budget.calls)
            and (budget.tokens is None or self.tokens <= budget.tokens)
            and (budget.money is None or self.money <= budget.money + 1e-12)
        )


def bounded(budget: Budget) -> bool:
    """Return whether a budget forbids anything at all."""
    return any(bound is not None for bound in (budget.calls, budget.tokens, budget.money))


def most_of(spec: ModelSpec, prompt: Prompt) -> Amount:
    """Return the upper bound of what one call may use."""
    read, written = estimated_tokens(prompt), most_written(spec, prompt)
    return Amount(1, read + written, cost(spec, read, written))


class Purse:
    """Counts calls, tokens and money; a call is booked with its upper bound before it is sent.

    A booking that would pass a bound is refused, so that a bound is never passed.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._bounded = bounded(budget)
        self.booked = Amount()

    async def book(self, spec: ModelSpec, prompt: Prompt) -> Amount | None:
        """Return what was booked, None if a bound forbids the call."""
        if not self._bounded:
            return Amount()
        asked = most_of(spec, prompt)
        if not (self.booked + asked).within(self._budget):
            return None
        self.booked += asked
        return asked

    def settle(self, spec: ModelSpec, booked: Amount, usage: Usage) -> None:
        """Replace a booking by what the call used."""
        if self._bounded:
            money = cost(spec, usage.prompt, usage.completion)
            used = Amount(booked.calls, usage.prompt + usage.completion, money)
            self.booked += used - booked
