"""What a run may spend, and what it has spent."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from medassay.core.amount import Amount
from medassay.core.model import FREE, ModelSpec
from medassay.core.plan import Budget
from medassay.core.trial import Prompt, Usage, pictures_in, said_in
from medassay.errors import InputError
from medassay.storage.spend import Bounds, SpendJournal, used

CHARACTERS_PER_TOKEN = 4  # for estimates before anything is sent
PICTURE_TOKENS = 1600  # of one page, roughly
SPENT = "the budget is spent"
_FRAME = 16  # tokens by which endpoints frame each message, at most


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


def most_read(prompt: Prompt) -> int:
    """Return an upper bound of the prompt tokens: no tokenizer in use makes more of a text than it has bytes."""
    if b"image_url" in prompt.encoded:
        read = sum(len(said_in(m).encode()) for m in prompt.messages)
        read += 2 * PICTURE_TOKENS * sum(len(pictures_in(m)) for m in prompt.messages)
    else:
        read = len(prompt.encoded)
    read += len(prompt.tools) + len(prompt.schema) + _FRAME * (1 + len(prompt.messages))
    if prompt.likely is None or prompt.likely.relaxed is not None:
        return read
    return read * len(prompt.likely.continuations)


def estimated_cost(spec: ModelSpec, read: int, written: int) -> float:
    """Return the money that so many tokens cost at an entry's price, 0 where that is not known."""
    return (spec.known_price or FREE).of(Usage(prompt=read, completion=written))


def most_of(spec: ModelSpec, prompt: Prompt) -> Amount:
    """Return the upper bound of what one request may use."""
    read, written = most_read(prompt), most_written(spec, prompt)
    if prompt.likely is not None and prompt.likely.relaxed is None:
        written = sum(len(text.encode()) for text in prompt.likely.continuations)
    price = spec.known_price
    most = Usage(prompt=read, completion=written)
    return used(None if price is None else price.dearest, most, calls=_requests(spec, prompt))


def _requests(spec: ModelSpec, prompt: Prompt) -> int:
    """Return how many requests a prompt makes: an endpoint is asked for each text whose likelihood it shall tell."""
    if prompt.likely is None or prompt.likely.relaxed is not None or spec.in_process:
        return 1
    return len(prompt.likely.continuations)


def is_within(amount: Amount, budget: Budget) -> bool:
    """Return whether a budget allows this much."""
    return (
        (budget.calls is None or amount.calls <= budget.calls)
        and (budget.tokens is None or amount.tokens <= budget.tokens)
        and (budget.money is None or amount.money <= budget.money + 1e-12)
    )


def bounded(budget: Budget) -> bool:
    """Return whether a budget forbids anything at all."""
    return any(bound is not None for bound in (budget.calls, budget.tokens, budget.money))


def refuse_unknown_prices(
    budget: Budget, specs: Iterable[ModelSpec], workspace: Bounds | None = None
) -> None:
    """Refuse a bound of money that could not be kept, because nobody said what an entry costs.

    Raises
    ------
    InputError
        Naming the entries.
    """
    unknown = sorted({spec.id for spec in specs if spec.known_price is None})
    bound = budget.money is not None or bool(workspace)
    if unknown and bound and budget.unknown_prices == "refuse":
        names = ", ".join(f"'{name}'" for name in unknown)
        raise InputError(
            f'the budget bounds money, but {names} has no price in the models file; add "price" to the entry, '
            'or count it as nothing with unknown_prices = "allow" under [budget]; no call was made'
        )


@dataclass(frozen=True, slots=True)
class Booking:
    """A request that is under way, at its upper bound; `number` is that of its line in the spend journal."""

    spec: ModelSpec
    amount: Amount
    number: int


class Purse:
    """Counts calls, tokens and money of one account; a request is booked at its upper bound before it is sent.

    A booking that would pass a bound waits for those under way, which mostly come to less, and is refused when none is. So a bound is
    never passed.

    Parameters
    ----------
    journal : where bookings are written before anything is sent, None to keep none
    before : what the account had spent by now
    """

    def __init__(
        self, budget: Budget, journal: SpendJournal | None = None, before: Amount | None = None
    ) -> None:
        self.budget = budget
        self._bounded = bounded(budget)
        self.journal = journal
        self.booked = before or Amount()
        self.under_way = 0  # bookings of which nobody knows yet what they come to
        self._ended = asyncio.Event()

    @property
    def account(self) -> str:
        """Return whose purse this is, "" where no journal is kept."""
        return "" if self.journal is None else self.journal.account

    @property
    def growing(self) -> Path | None:
        """Return the file of the spend journal that this process writes, None while nothing was sent."""
        return None if self.journal is None else self.journal.growing

    async def book(
        self, spec: ModelSpec, prompt: Prompt, key: str, attempt: int
    ) -> Booking | None:
        """Return the booking of a request, None if a bound forbids it."""
        asked = most_of(spec, prompt)
        while self._bounded and not is_within(self.booked + asked, self.budget):
            if not await self._more(asked):
                return None
        number = 0
        if self.journal is not None:
            found = self.journal.reserve(spec.id, key, attempt, asked)
            if found is None:
                return None
            number = found
        self.booked += asked
        self.under_way += 1
        return Booking(spec, asked, number)

    async def _more(self, asked: Amount) -> bool:
        """Wait until there may be room for a booking; return False where there will be none."""
        if not self.under_way:
            return False
        await self._ended.wait()
        return True

    def settle(self, booking: Booking, usage: Usage, *, calls: int | None = None) -> None:
        """Replace a booking by what the request used."""
        sent = booking.amount.calls if calls is None else calls
        came_to = used(booking.spec.known_price, usage, calls=sent)
        if self.journal is not None:
            self.journal.settle(booking.number, came_to)
        self.booked += came_to - booking.amount
        self._end()

    def keep(self, booking: Booking) -> None:
        """Let a booking stand: what was generated for it may be billed, and nobody says how much that was."""
        self._end()

    def _end(self) -> None:
        self.under_way -= 1
        self._wake()

    def _wake(self) -> None:
        """Let whoever waits for room look again."""
        self._ended.set()
        self._ended = asyncio.Event()

    @property
    def told(self) -> str:
        """Return which bound is spent."""
        if self.journal is not None and self.journal.refused:
            return self.journal.refused
        found = [
            f"{spent:g} of {bound:g} {name}"
            for name, spent, bound in (
                ("calls", self.booked.calls, self.budget.calls),
                ("tokens", self.booked.tokens, self.budget.tokens),
                ("in money", round(self.booked.money, 6), self.budget.money),
            )
            if bound is not None
        ]
        return f"{SPENT} ({', '.join(found)})" if found else SPENT
