"""What many workers may spend and ask together: one budget, one limit for each endpoint, parted
anew at every beat.
"""

import time
from collections.abc import Callable, Mapping

from medassay.core.amount import Amount
from medassay.core.log import log
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import BudgetRules
from medassay.runner.ask import endpoint_of
from medassay.runner.budget import bounded
from medassay.runner.gate import EndpointStats, Share

_ENDLESS = 2**62


class BudgetShare:
    """Divides a budget among workers so that together they never pass it; `before` is what was
    spent by then.

    A worker may book up to its cap without asking. What it may still book is its reserve; reserves
    shrink as the budget runs out and go to whoever needs more. A worker that is lost has spent its
    cap.
    """

    # An Amount is frozen, so it may stand as a default.
    def __init__(self, budget: BudgetRules, before: Amount = Amount()) -> None:
        self._before = before
        self._bounded = bounded(budget)
        self._whole = Amount(
            _ENDLESS if budget.calls is None else budget.calls,
            _ENDLESS if budget.tokens is None else budget.tokens,
            # Sums of prices are off by some bits: the last request of an exact bound must fit.
            float(_ENDLESS) if budget.money is None else budget.money + 1e-12,
        )
        self._whole -= before
        self._booked: dict[str, Amount] = {}
        self._caps: dict[str, Amount] = {}
        self._waiting: dict[str, None] = {}  # whose need was not covered yet, in their order

    def cap(self, worker: str, need: Amount | None, workers: int) -> Amount | None:
        """Return up to what a worker may book from now on, None where nothing is bounded."""
        if not self._bounded:
            return None
        booked = self._booked.get(worker, Amount())
        spare = self._spare(worker) - booked
        first = next(iter(self._waiting), worker)
        if need is not None and _covers(spare, need) and worker == first:
            self._waiting.pop(worker, None)
            reserve = need
        elif need is not None:
            self._waiting[worker] = None
            reserve = Amount()
        elif self._waiting:  # whoever waits gets what others do not use
            reserve = Amount()
        else:
            # Half stays spare, so that a worker which runs out gets more without waiting for the
            # others to report; towards the end reserves shrink to nothing.
            parts = 2 * max(1, workers)
            reserve = Amount(spare.calls // parts, spare.tokens // parts, spare.money / parts)
        cap = booked + reserve
        # Until the worker has heard of a lower cap it may book up to the old one.
        old = self._caps.get(worker, Amount())
        self._caps[worker] = _most(cap, old)
        return cap

    def note_cap(self, worker: str, cap: Amount | None, booked: Amount) -> None:
        """Take note of what a worker had booked when it heard of its cap."""
        if cap is not None:
            self._booked[worker], self._caps[worker] = booked, _most(cap, booked)

    def is_spent(self, need: Amount | None) -> bool:
        """Return whether a call cannot be paid even if every reserve is given up."""
        if not self._bounded or need is None:
            return False
        booked = sum(self._booked.values(), Amount())
        return not _covers(self._whole - booked, need)

    def _spare(self, worker: str) -> Amount:
        others = (cap for name, cap in self._caps.items() if name != worker)
        return self._whole - sum(others, Amount())

    @property
    def spent(self) -> Amount:
        """Return what was booked in all, before and by all workers."""
        return self._before + sum(self._booked.values(), Amount())

    def write_off(self, worker: str) -> None:
        """Count all that a lost worker was allowed as spent: nobody knows better."""
        self._waiting.pop(worker, None)
        if worker in self._caps:
            self._booked[worker] = self._caps[worker]

    def take_back(self, worker: str, booked: Amount) -> None:
        """Take back the reserve of a worker that has ended."""
        self._waiting.pop(worker, None)
        if worker in self._caps:
            self._booked[worker] = self._caps[worker] = booked


def _covers(amount: Amount, need: Amount) -> bool:
    return (
        need.calls <= amount.calls and need.tokens <= amount.tokens and need.money <= amount.money
    )


def _most(amount: Amount, other: Amount) -> Amount:
    return Amount(
        max(amount.calls, other.calls),
        max(amount.tokens, other.tokens),
        max(amount.money, other.money),
    )


class EndpointLimits:
    """Divides what endpoints bear: one limit each, halved on overload, grown by one a round of
    successes, as one gate does.
    """

    def __init__(
        self, specs: Mapping[str, ModelSpec], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._most: dict[str, int] = {}
        self._models: dict[str, set[str]] = {}
        for name, spec in specs.items():
            self._most.setdefault(endpoint_of(spec), spec.concurrency)
            self._models.setdefault(endpoint_of(spec), set()).add(name)
        self._limit = {endpoint: float(most) for endpoint, most in self._most.items()}
        self._halved_at = dict.fromkeys(self._most, -1e9)
        self._open_at = dict.fromkeys(self._most, -1e9)

    def hear(self, heard: Mapping[str, EndpointStats]) -> None:
        """Take note of what one worker's gates heard."""
        now = self._clock()
        for endpoint, stats in heard.items():
            limit, most = self._limit[endpoint], self._most[endpoint]
            # One burst of refusals reaches several workers: it halves once.
            if stats.overloads and now - self._halved_at[endpoint] > 1.0:
                self._limit[endpoint] = max(1.0, limit / 2)
                self._halved_at[endpoint] = now
                log.warn(
                    "overload",
                    models=sorted(self._models[endpoint]),
                    limit=int(self._limit[endpoint]),
                )
            elif limit < most:
                self._limit[endpoint] = min(most, limit + stats.succeeded / limit)
            self._open_at[endpoint] = max(self._open_at[endpoint], now + stats.pause)

    def shares(self, worker: str, working: Mapping[str, set[str]]) -> dict[str, Share]:
        """Return a worker's parts of the endpoints that it works at.

        Parameters
        ----------
        working : worker → models of which it has units
        """
        now, limits = self._clock(), {}
        for endpoint, models in self._models.items():
            at_it = sorted(name for name, models_of in working.items() if models_of & models)
            if worker not in at_it:
                continue
            each, more = divmod(int(self._limit[endpoint]), len(at_it))
            most = each + (at_it.index(worker) < more)
            pause = max(0.0, self._open_at[endpoint] - now)
            active = min(len(at_it), int(self._limit[endpoint]))
            limits[endpoint] = Share(most=most, rate=1 / active, pause=pause)
        return limits
