"""What a run may spend, and what it has spent."""

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
        return spec.max_tokens
    if prompt.likely.relaxed is not None:
        return prompt.likely.relaxed.samples * prompt.likely.relaxed.max_tokens
    given = prompt.likely.continuations
    return sum(map(len, given)) // CHARACTERS_PER_TOKEN + len(given)


def cost(spec: ModelSpec, prompt_tokens: int, completion_tokens: int) -> float:
    """Return the money that tokens cost at an entry's price."""
    return (prompt_tokens * spec.price.input + completion_tokens * spec.price.output) / 1e6


class Purse:
    """Counts calls, tokens and money; a call is booked with its upper bound before it is sent.

    A booking that would pass a bound is refused, so that a bound is never passed.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._bounded = any(v is not None for v in (budget.calls, budget.tokens, budget.money))
        self.calls = 0
        self.tokens = 0
        self.money = 0.0

    def book(self, spec: ModelSpec, prompt: Prompt) -> tuple[int, float] | None:
        """Return what was booked (tokens, money), None if a bound forbids the call."""
        if not self._bounded:
            self.calls += 1
            return 0, 0.0
        read = estimated_tokens(prompt)
        written = most_written(spec, prompt)
        tokens, money = read + written, cost(spec, read, written)
        budget = self._budget
        if (
            (budget.calls is not None and self.calls + 1 > budget.calls)
            or (budget.tokens is not None and self.tokens + tokens > budget.tokens)
            or (budget.money is not None and self.money + money > budget.money + 1e-12)
        ):
            return None
        self.calls += 1
        self.tokens += tokens
        self.money += money
        return tokens, money

    def settle(self, spec: ModelSpec, booked: tuple[int, float], usage: Usage) -> None:
        """Replace a booking by what the call used."""
        self.tokens += usage.prompt + usage.completion - booked[0]
        self.money += cost(spec, usage.prompt, usage.completion) - booked[1]
