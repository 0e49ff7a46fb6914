"""How many requests an endpoint may have under way: adapts to what the endpoint bears."""

import asyncio
from collections import deque

import msgspec
from aiolimiter import AsyncLimiter

from medassay.core.log import log
from medassay.core.records.model import ModelSpec

_LOOK_EVERY = 1.0  # seconds: a pause may be ended


class Share(msgspec.Struct, frozen=True):
    """A worker's part of an endpoint: requests at once, the part of its rates, and seconds to hold
    back.
    """

    most: int
    rate: float = 1.0
    pause: float = 0.0


class EndpointStats(msgspec.Struct, frozen=True):
    """What a gate heard of its endpoint since it was last asked: successes, overloads, seconds to
    hold back.
    """

    succeeded: int
    overloads: int
    pause: float


class Gate:
    """Lets in up to `limit` requests: halves on overload, grows by one a round of successes.

    It opens at the entry's own `concurrency`, which the user chose, and never goes above it. A
    pause (Retry-After) holds back everyone at this endpoint. Where several processes ask one
    endpoint, each has a share of it, which `steer` sets.
    """

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        self._most = spec.concurrency
        self.limit = float(spec.concurrency)
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._open_at = 0.0
        self._halved_at = -1e9
        self._succeeded = self._overloads = 0
        self._rate = 0.0
        self._tokens: AsyncLimiter | None = None
        self._set_rate(1.0)

    def _set_rate(self, part: float) -> None:
        if part == self._rate:
            return
        self._rate = part
        per_minute = self._spec.requests_per_minute
        # One at a time, evenly spread: a rate below one a minute is legitimate too.
        self._requests = AsyncLimiter(1, 60 / (per_minute * part)) if per_minute else None
        tokens = self._spec.tokens_per_minute
        before, self._tokens = self._tokens, AsyncLimiter(tokens * part, 60) if tokens else None
        if before is not None and self._tokens is not None:  # what was used up stays used up
            self._tokens._level = before._level * self._tokens.max_rate / before.max_rate

    async def enter(self, tokens: int) -> None:
        """Wait until one more request of about that many tokens may start."""
        while self._inside >= int(self.limit):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._inside += 1
        try:
            if self._open_at:
                await self._paused()
            if self._requests is not None:
                await self._requests.acquire()
            if self._tokens is not None:
                await self._tokens.acquire(min(tokens, self._tokens.max_rate))
        except BaseException:
            self._leave()
            raise

    async def _paused(self) -> None:
        loop = asyncio.get_running_loop()
        while (wait := self._open_at - loop.time()) > 0:
            await asyncio.sleep(min(wait, _LOOK_EVERY))
        self._open_at = 0.0

    def open(self) -> None:
        """End the pause that the endpoint asked for."""
        self._open_at = 0.0

    def succeeded(self) -> None:
        """Note an answer: grow slowly."""
        self._succeeded += 1
        if self.limit < self._most:
            self.limit = min(self._most, self.limit + 1 / self.limit)
        self._leave()

    def failed(self, *, overload: bool, retry_after: float | None) -> None:
        """Note a failure: halve on overload (once a second), pause as asked."""
        now = asyncio.get_running_loop().time()
        self._overloads += overload
        if overload and now - self._halved_at > 1.0:
            self.limit, self._halved_at = min(self._most, max(1.0, self.limit / 2)), now
            log.warn("overload", models=[self._spec.id], limit=int(self.limit))
        if retry_after:
            self._open_at = max(self._open_at, now + retry_after)
        self._leave()

    def heard(self) -> EndpointStats:
        """Return what was heard of the endpoint since the last time."""
        pause = max(0.0, self._open_at - asyncio.get_running_loop().time())
        stats = EndpointStats(self._succeeded, self._overloads, pause)
        self._succeeded = self._overloads = 0
        return stats

    def steer(self, share: Share) -> None:
        """Take a part of the endpoint, as told by whoever hears all that ask it."""
        now = asyncio.get_running_loop().time()
        self._most = share.most
        # What was halved here since the last word stays halved; whoever told has heard of it by the
        # next.
        self.limit = float(
            min(self.limit, share.most) if self._overloads and self.limit else share.most
        )
        self._set_rate(share.rate)
        if share.pause:
            self._open_at = max(self._open_at, now + share.pause)
        self._wake()

    def loosen(self) -> None:
        """Let in at least one at a time, at the rate of now: whoever waits gets through, since
        nobody comes after.
        """
        self.steer(Share(most=max(1, int(self.limit)), rate=self._rate))

    def _leave(self) -> None:
        self._inside -= 1
        self._wake()

    def _wake(self) -> None:
        free = int(self.limit) - self._inside
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
