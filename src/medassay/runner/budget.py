"""What a run may spend, and what it has spent."""

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import Any

from medassay.core.amount import Amount
from medassay.core.canonical import canonical
from medassay.core.records.completion import Usage
from medassay.core.records.model import FREE, ModelSpec
from medassay.core.records.plan import BudgetRules
from medassay.core.records.prompt import Prompt, message_text, pictures_in
from medassay.errors import InputError, OverBudget
from medassay.model.books import Booking
from medassay.storage.spend import SpendingLimits, SpendJournal, used

CHARACTERS_PER_TOKEN = 4  # for estimates before anything is sent
PICTURE_TOKENS = 1600  # of one page, roughly
SPENT = "the budget is spent"
_LIMITS = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "num_predict",
)
_TIMES = ("n", "best_of")
_FRAME = 16  # tokens by which endpoints frame each message, at most


def estimated_tokens(prompt: Prompt) -> int:
    """Return a rough number of prompt tokens.

    A prompt is read once for each text whose likelihood it asks for.
    """
    if prompt.tools:  # calls and what they gave are in no message's text alone
        return (len(prompt.encoded) + len(prompt.tools)) // CHARACTERS_PER_TOKEN + 8
    read = sum(len(message_text(m)) for m in prompt.messages) // CHARACTERS_PER_TOKEN + 8
    read += PICTURE_TOKENS * sum(len(pictures_in(m)) for m in prompt.messages)
    return read * _times(prompt)


def most_written(spec: ModelSpec, prompt: Prompt) -> int:
    """Return how many tokens may come back at most: of a reply, of drawn completions, or of given
    texts (roughly).
    """
    if prompt.likely is None:
        return spec.reply_tokens if prompt.max_tokens is None else prompt.max_tokens
    if prompt.likely.relaxed is not None:
        return prompt.likely.relaxed.samples * prompt.likely.relaxed.max_tokens
    continuations = prompt.likely.continuations
    return sum(map(len, continuations)) // CHARACTERS_PER_TOKEN + len(continuations)


def most_read(spec: ModelSpec, prompt: Prompt) -> int:
    """Return an upper bound of the prompt tokens: no tokenizer in use makes more of a text than it
    has bytes.
    """
    if b"image_url" in prompt.encoded:
        read = sum(len(message_text(m).encode()) for m in prompt.messages)
        read += 2 * PICTURE_TOKENS * sum(len(pictures_in(m)) for m in prompt.messages)
    else:
        read = len(prompt.encoded)
    read += len(prompt.tools) + len(prompt.schema) + _FRAME * (1 + len(prompt.messages))
    read += len(canonical(spec.extra_body)) if spec.extra_body else 0
    return read * _times(prompt)


def estimated_cost(spec: ModelSpec, read: int, written: int) -> float:
    """Return the money that so many tokens cost at an entry's price, 0 where that is not known."""
    return (spec.known_price or FREE).of(Usage(prompt=read, completion=written))


def most_of(spec: ModelSpec, prompt: Prompt) -> Amount:
    """Return the upper bound of what one request may use."""
    read, written = most_read(spec, prompt), most_written(spec, prompt)
    if spec.extra_body:  # an entry may ask for more than its own limit, or for several replies
        written = max([written, *_numbers(spec.extra_body, _LIMITS)])
        written *= max([1, *_numbers(spec.extra_body, _TIMES)])
    if prompt.likely is not None and prompt.likely.relaxed is None:
        written = sum(len(text.encode()) for text in prompt.likely.continuations)
    price = spec.known_price
    most = Usage(prompt=read, completion=written)
    calls = 1 if spec.in_process else _times(prompt)
    return used(None if price is None else price.dearest, most, calls=calls)


def _numbers(body: Any, names: Collection[str]) -> list[int]:
    """Return the numbers that stand under some names, at any depth."""
    if isinstance(body, list):
        return [n for element in body for n in _numbers(element, names)]
    if not isinstance(body, dict):
        return []
    numbers = [n for element in body.values() for n in _numbers(element, names)]
    return numbers + [body[name] for name in names if type(body.get(name)) is int]


def _times(prompt: Prompt) -> int:
    """Return how often a prompt is read, and an endpoint asked: once for each text whose likelihood
    it shall tell.
    """
    if prompt.likely is None or prompt.likely.relaxed is not None:
        return 1
    return len(prompt.likely.continuations)


def is_within(amount: Amount, budget: BudgetRules) -> bool:
    """Return whether a budget allows this much."""
    return (
        (budget.calls is None or amount.calls <= budget.calls)
        and (budget.tokens is None or amount.tokens <= budget.tokens)
        and (budget.money is None or amount.money <= budget.money + 1e-12)
    )


def bounded(budget: BudgetRules) -> bool:
    """Return whether a budget forbids anything at all."""
    return any(bound is not None for bound in (budget.calls, budget.tokens, budget.money))


def refuse_unknown_prices(
    budget: BudgetRules, specs: Collection[ModelSpec], workspace: SpendingLimits | None = None
) -> None:
    """Refuse a bound of money that could not be kept: nobody said what an entry costs, or there are
    several currencies.

    Raises
    ------
    InputError
        Naming the entries.
    """
    unknown = sorted({spec.id for spec in specs if spec.known_price is None})
    by_plan = budget.money is not None and budget.unknown_prices == "refuse"
    by_workspace = workspace is not None and bool(workspace) and not workspace.allow_unknown
    if unknown and (by_plan or by_workspace):
        names = ", ".join(f"'{name}'" for name in unknown)
        where = "the plan" if by_plan else "medassay.toml"
        raise InputError(
            f"the budget in {where} bounds money, but {names} has no price in the models file; add"
            " 'price' to the entry, or count it as nothing with unknown_prices = \"allow\" under"
            " its [budget]; no call was made"
        )
    prices = [spec.known_price for spec in specs]
    currencies = sorted({price.currency for price in prices if price and price.costs})
    if len(currencies) > 1 and (budget.money is not None or workspace):
        raise InputError(
            f"the budget bounds money, but entries are priced in {' and '.join(currencies)};"
            " expected one currency; no call was made"
        )


class Budget:
    """Counts calls, tokens and money of one account.

    A request is booked at its upper bound before it is sent.

    A booking that would pass a bound waits for those under way, which mostly come to less, and is
    refused when none is. So a bound is never passed.

    Parameters
    ----------
    journal : where bookings are written before anything is sent, None to keep none
    before : what the account had spent by now
    """

    def __init__(
        self,
        budget: BudgetRules,
        journal: SpendJournal | None = None,
        before: Amount | None = None,
    ) -> None:
        self.budget = budget
        self._bounded = bounded(budget)
        self.journal = journal
        self.booked = before or Amount()
        self._asked = Amount()  # what there was no room for
        self.under_way = 0  # bookings of which nobody knows yet what they come to
        # Set when there may be more room; there is one while somebody waits for that.
        self._room: asyncio.Event | None = None

    @property
    def account(self) -> str:
        """Return whose budget this is, "" where no journal is kept."""
        return "" if self.journal is None else self.journal.account

    @property
    def growing(self) -> Path | None:
        """Return the file of the spend journal that this process writes, None while nothing was
        sent.
        """
        return None if self.journal is None else self.journal.growing

    async def book(self, spec: ModelSpec, prompt: Prompt, key: str, retry: int) -> Booking | None:
        """Return the booking of a request, None if a bound forbids it."""
        return await self._book(spec, most_of(spec, prompt), key, retry)

    async def reserve(self, spec: ModelSpec, most: Usage, key: str, retry: int) -> Booking:
        """Return the booking of a request that is no prompt; see `model.books.Books`."""
        price = spec.known_price
        reserved = used(None if price is None else price.dearest, most)
        booking = await self._book(spec, reserved, key, retry)
        if booking is None:
            raise OverBudget(self.spent_bound)
        return booking

    async def _book(self, spec: ModelSpec, amount: Amount, key: str, retry: int) -> Booking | None:
        while (number := self._reserved(spec, key, retry, amount)) is None:
            if not await self._more(amount):
                self._asked = amount
                return None
        self.booked += amount
        self.under_way += 1
        return Booking(spec, amount, number)

    def _reserved(self, spec: ModelSpec, key: str, retry: int, amount: Amount) -> int | None:
        """Return the number of a booking in the journal, 0 where none is kept, None while a bound
        has no room for it.
        """
        if self._bounded and not is_within(self.booked + amount, self.budget):
            return None
        if self.journal is None:
            return 0
        return self.journal.reserve(spec.id, key, retry, amount)

    async def _more(self, amount: Amount) -> bool:
        """Wait until there may be room for a booking; return False where there will be none."""
        if not self.under_way:
            return False
        await self._wait_for_room()
        return True

    async def _wait_for_room(self) -> None:
        self._room = self._room or asyncio.Event()
        await self._room.wait()

    def settle(self, booking: Booking, usage: Usage, *, calls: int | None = None) -> None:
        """Replace a booking by what the request used."""
        sent = booking.amount.calls if calls is None else calls
        came_to = used(booking.spec.known_price, usage, calls=sent)
        if self.journal is not None:
            self.journal.settle(booking.number, came_to)
        self.booked += came_to - booking.amount
        self._end()

    def keep(self, booking: Booking) -> None:
        """Let a booking stand: what was generated for it may be billed, and nobody says how much
        that was.
        """
        self._end()

    def _end(self) -> None:
        self.under_way -= 1
        self._wake()

    def _wake(self) -> None:
        """Let whoever waits for room look again."""
        if self._room is not None:
            self._room.set()
            self._room = None

    @property
    def spent_bound(self) -> str:
        """Return which bound is spent."""
        if self.journal is not None and self.journal.refused:
            return self.journal.refused
        n_asked = self._asked
        lines = []
        for name, spent, more, bound in (
            ("calls", self.booked.calls, n_asked.calls, self.budget.calls),
            ("tokens", self.booked.tokens, n_asked.tokens, self.budget.tokens),
            ("in money", round(self.booked.money, 6), n_asked.money, self.budget.money),
        ):
            if bound is None:
                continue
            room = f", the next request may take {more:g}" if bound - more < spent < bound else ""
            lines.append(f"{spent:g} of {bound:g} {name}{room}")
        return f"{SPENT} ({'; '.join(lines)})" if lines else SPENT
