"""How many requests an endpoint may have under way: adapts to what the endpoint bears."""

import asyncio
from collections import deque

from aiolimiter import AsyncLimiter

from medassay.core.model import ModelSpec


class Gate:
    """Lets in up to `limit` requests: halves on overload, grows by one a round of successes.

    It opens at the entry's own `concurrency`, which the user chose, and never goes above it. A
    pause (Retry-After) holds back everyone at this endpoint.
    """

    def __init__(self, spec: ModelSpec) -> None:
        self._most = spec.concurrency
        self.limit = float(spec.concurrency)
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._open_at = 0.0
        self._halved_at = -1e9
        per_minute = spec.requests_per_minute
        # One at a time, evenly spread: a rate below one a minute is legitimate too.
        self._requests = AsyncLimiter(1, 60 / per_minute) if per_minute else None
        tokens = spec.tokens_per_minute
        self._tokens = AsyncLimiter(tokens, 60) if tokens else None

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
            await asyncio.sleep(wait)
        self._open_at = 0.0

    def succeeded(self) -> None:
        """Note an answer: grow slowly."""
        if self.limit < self._most:
            self.limit = min(self._most, self.limit + 1 / self.limit)
        self._leave()

    def failed(self, *, overload: bool, retry_after: float | None) -> None:
        """Note a failure: halve on overload (once a second), pause as asked."""
        now = asyncio.get_running_loop().time()
        if overload and now - self._halved_at > 1.0:
            self.limit, self._halved_at = max(1.0, self.limit / 2), now
        if retry_after:
            self._open_at = max(self._open_at, now + retry_after)
        self._leave()

    def _leave(self) -> None:
        self._inside -= 1
        free = int(self.limit) - self._inside
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
