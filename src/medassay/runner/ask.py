"""Asking one prompt: response store first, then the endpoint, within gate, retries and budget.

Whoever asks, for an answer or for a verdict, asks here; so replies that were paid for are never
paid for again, an endpoint sees one gate, and a budget is one budget.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

import msgspec
from msgspec import field

from medassay.core.canonical import canonical
from medassay.core.log import log
from medassay.core.records.completion import Completion, Reply, ReplyColumns
from medassay.core.records.model import Chat, ModelSpec, Sampling, SamplingObject
from medassay.core.records.plan import EngineRules
from medassay.core.records.prompt import Prompt
from medassay.core.secret import secrets
from medassay.errors import NotAsked, OverBudget, Permanent, Transient
from medassay.model.books import Booking, settle_failed
from medassay.model.retry import retries
from medassay.runner.breaker import SUCCESS, CircuitBreaker, RecentEnds, Relay
from medassay.runner.budget import Budget, estimated_tokens
from medassay.runner.gate import Gate
from medassay.storage.response import ResponseStore, request_key

MOST_SENDS = 6  # the first and five retries
# Where nobody takes the connection: a server that is not there, or restarts.
_MOST_SENDS_UNCONNECTED = 3


class Tally(msgspec.Struct):
    """What happened in one pass: calls made, replies replayed, failures by reason."""

    called: int = 0
    replayed: int = 0
    failed: int = 0
    over_budget: str = ""  # which bound forbids further requests
    # Models that the bound forbids to ask; others may cost less.
    models_over_budget: set[str] = field(default_factory=set)
    failures: dict[str, int] = field(default_factory=dict)
    given_up: dict[str, str] = field(default_factory=dict)  # model → why it is asked no more

    def fail(self, error: Exception) -> str:
        """Count a failure, and return the reason."""
        reason = str(error)
        if not isinstance(error, Transient | Permanent):
            reason = f"{type(error).__name__}: {error}"
        reason = secrets.redact(reason)
        self.failed += 1
        self.failures[reason] = self.failures.get(reason, 0) + 1
        return reason

    def add(self, other: "Tally") -> None:
        """Count what happened elsewhere, too."""
        self.called += other.called
        self.replayed += other.replayed
        self.failed += other.failed
        self.over_budget = self.over_budget or other.over_budget
        self.models_over_budget |= other.models_over_budget
        for reason, times in other.failures.items():
            self.failures[reason] = self.failures.get(reason, 0) + times
        for model, reason in other.given_up.items():
            self.given_up.setdefault(model, reason)


class ModelRequest(msgspec.Struct, frozen=True):
    """One prompt on its way to a model; `key` is that of its reply in the response store."""

    spec: ModelSpec
    chat: Chat
    prompt: Prompt
    sampling: Sampling
    repeat: int
    key: str


class AskSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How models are asked.

    Parameters
    ----------
    seed : of what is drawn
    fresh : whether stored replies are not used
    grace : seconds for requests under way once a stop is asked for; None takes that of the rules
    relays : by model, what decides in the place of a breaker here: a worker's coordinator does
    stopping : whether no request may begin any more
    before_call : awaited before each call, until nobody else may have taken the run over
    """

    seed: int = 0
    rules: EngineRules = field(default_factory=EngineRules)
    fresh: bool = False
    grace: float | None = None
    relays: Mapping[str, Relay] = field(default_factory=dict)
    stopping: Callable[[], bool] = lambda: False
    before_call: Callable[[], Awaitable[None]] | None = None


class Asker:
    """Asks the models of a run."""

    def __init__(
        self,
        specs: Mapping[str, ModelSpec],
        chats: Mapping[str, Chat],
        store: ResponseStore,
        budget: Budget,
        settings: AskSettings = AskSettings(),
    ) -> None:
        self._rules = settings.rules
        self.specs = specs
        self.seed = settings.seed
        self.fresh = settings.fresh
        self.tally = Tally()
        self._chats = chats
        self._store = store
        self.budget = budget
        self.gates: dict[str, Gate] = {}  # by endpoint
        self._stopping, self._before_call = settings.stopping, settings.before_call
        self._successes: Counter[str] = Counter()  # by model
        self.broken: OSError | None = None  # why nothing can be written down before it is sent
        self.under_way = 0  # requests that were sent and have no reply yet
        self.grace = self._rules.grace if settings.grace is None else settings.grace
        self.breakers: dict[str, CircuitBreaker | Relay] = {
            name: settings.relays.get(name) or CircuitBreaker(self._rules) for name in specs
        }
        self._drawing: dict[tuple[str, int], tuple[Sampling, bytes]] = {}

    def stopping(self) -> bool:
        """Return whether no request may begin any more."""
        return self._stopping()

    async def during(
        self,
        work: Awaitable[None],
        *,
        stopping: Callable[[], bool],
        before_call: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Do some work that asks; connections and gates live as long as its event loop.

        Parameters
        ----------
        stopping, before_call : as in `AskSettings`, while this work goes on
        """
        self._stopping, self._before_call = stopping, before_call
        try:
            await work
        finally:
            self.gates.clear()
            for chat in self._chats.values():
                await chat.close()

    async def ask(
        self,
        spec: ModelSpec,
        prompt: Prompt,
        columns: ReplyColumns,
        *,
        repeat: int = 0,
        attempt: int = 0,
    ) -> Reply | None:
        """Return the reply to a prompt, None when the budget forbids the call.

        Parameters
        ----------
        columns : what the response store notes beside the reply
        attempt : counts askings of one and the same prompt, each stored apart

        Raises
        ------
        Transient, Permanent
            When there is no reply after the retries.
        NotAsked
            When nothing was sent: the model is given up, or a stop was asked for.
        """
        sampling, constant = self._sampling(spec)
        if prompt.max_tokens is not None:
            sampling = replace(sampling, max_tokens=prompt.max_tokens)
        key = request_key(constant, prompt.asked, repeat, attempt)
        if spec.is_baseline:  # computed, not asked: no key could name what it depends on
            completion = await self._chats[spec.id].complete(prompt, sampling, repeat=repeat)
            return Reply(key, completion, False)
        stored = self._store.get(key)
        if stored is not None and not self.fresh:
            self.tally.replayed += 1
            return Reply(key, _noticing_limit(stored, sampling), True)
        self._refuse_needless(spec)
        chat = self._chats.get(spec.id)
        if chat is None:
            raise Permanent(
                f"provider '{spec.provider}' is not installed here; a package that adds it must be"
                " on every machine that asks"
            )
        request = ModelRequest(spec, chat, prompt, sampling, repeat + attempt, key)
        try:
            completion = await self._call(request)
        except OverBudget as over:
            self.tally.over_budget = str(over)
            self.tally.models_over_budget.add(spec.id)
            return None
        self.tally.called += 1
        if stored is None:  # with --fresh the first reply stays the stored one
            self._store.put(key, completion, {"model": spec.id, **columns})
        return Reply(key, _noticing_limit(completion, sampling), False)

    def is_stored(self, spec: ModelSpec, prompt: Prompt, *, repeat: int, attempt: int) -> bool:
        """Return whether there is a reply to a prompt already."""
        key = request_key(self._sampling(spec)[1], prompt.asked, repeat, attempt)
        return self._store.get(key) is not None

    @property
    def growing(self) -> Path | None:
        """Return the file that replies are written to, None while there was none."""
        return self._store.growing

    def adopt(self) -> None:
        """Index the replies that processes received which are no longer there."""
        self._store.adopt()

    def constant(self, spec: ModelSpec) -> bytes:
        """Return what all requests of a model share: part of the keys of their replies."""
        return self._sampling(spec)[1]

    def _sampling(self, spec: ModelSpec) -> tuple[Sampling, bytes]:
        """Return how tokens are drawn, and what all requests of a model share.

        An entry may come with another token limit.
        """
        place = spec.id, spec.reply_tokens
        if place not in self._drawing:
            sampling = sampling_of(spec, self.seed)
            self._drawing[place] = sampling, canonical(request_constant(spec, sampling))
        return self._drawing[place]

    async def stored_result(
        self,
        key: str,
        make: Callable[[], Awaitable[str]],
        columns: ReplyColumns,
    ) -> str:
        """Return what was found when something was looked up first; look it up where it never was.

        With `fresh` it is looked up anew, and the first finding stays the stored one.
        """
        stored = self._store.get(key)
        if stored is not None and not self.fresh:
            return stored.text
        result_text = secrets.redact_reply(await make())
        if stored is None:
            self._store.put(key, Completion(text=result_text), dict(columns))
        return result_text

    async def _call(self, request: ModelRequest) -> Completion:
        """Ask once; on a transient failure ask again, at most five times, as the endpoint bears.

        While a server asks everybody for patience (it is loading, or refuses a burst), the times
        are not counted.
        """
        model = request.spec.id
        began, successes = time.monotonic(), self._successes[model]
        try:
            return await self._send(request, retry=0)
        except Transient as error:
            last = error
        if last.retry_after is None:
            await asyncio.sleep(0.2)
        sends = 1
        async for attempt in retries(_backoff, wait_jitter=0.4):  # how many, `_may_retry` says
            with attempt:
                others_heard = self._successes[model] > successes
                if not self._may_retry(last, sends, began, others_heard=others_heard):
                    raise Permanent(str(last))  # not tried again
                if sends >= MOST_SENDS:  # also a server that says "at once" is given time now
                    await asyncio.sleep(min(30.0, 0.4 * 2 ** min(sends - MOST_SENDS, 7)))
                try:
                    sends += 1
                    return await self._send(request, retry=sends - 1)
                except Transient as error:
                    last = error
                    raise
                except OverBudget:  # a larger budget asks it again
                    raise
                except NotAsked:  # this one was asked: its own failure is its reason
                    raise Permanent(str(last)) from None
        raise last  # pragma: no cover -- retry_context returns or raises

    async def _send(self, request: ModelRequest, *, retry: int) -> Completion:
        """Send one request through its endpoint's gate, booked before it is sent.

        Note how it ended, and what it came to.
        """
        spec, prompt = request.spec, request.prompt
        gate = self.gate(endpoint_of(spec))
        await gate.enter(estimated_tokens(prompt) if spec.tokens_per_minute else 0)
        booking: Booking | None = None
        try:
            try:
                if self._before_call is not None:
                    await self._before_call()
                self._refuse_needless(spec)
                booking = await self.budget.book(spec, prompt, request.key, retry)
            except OSError as error:  # our own disk, or the store: nobody may be asked any more
                self.broken = self.broken or error
                raise NotAsked(f"not asked: {error}") from None
            if booking is None:
                raise OverBudget(self.budget.spent_bound)
            self.under_way += 1
            try:
                completion = await request.chat.complete(
                    prompt, request.sampling, repeat=request.repeat
                )
            finally:
                self.under_way -= 1
        except BaseException as error:
            passing = error if isinstance(error, Transient) else Transient("")
            if passing.retry_after is not None:  # no longer than the model is waited for at all
                patience = 60 * self._rules.give_up_minutes
                passing.retry_after = min(passing.retry_after, patience)
            gate.failed(overload=passing.overload, retry_after=passing.retry_after)
            if booking is not None:
                settle_failed(self.budget, booking, error)
            self._note(spec, error)
            raise
        if completion.tells_usage:
            self.budget.settle(booking, completion.usage)
        else:  # nobody says what it used: no more than its bound
            self.budget.keep(booking)
        gate.succeeded()
        self._successes[spec.id] += 1
        moderated = completion.finish == "moderation"
        self.hear(spec.id, RecentEnds(failed=1, last=completion.text) if moderated else SUCCESS)
        return redacted(completion)

    def _may_retry(self, last: Transient, sends: int, began: float, *, others_heard: bool) -> bool:
        """Tell whether a request that failed in passing may be sent once more.

        Parameters
        ----------
        last : how it failed the last time
        sends : how often it was sent
        began : when it was sent first (monotonic seconds)
        others_heard : whether the model has replied to another request since then, so that it is
            this one that it refuses
        """
        if last.unconnected:
            return sends < _MOST_SENDS_UNCONNECTED
        if sends < MOST_SENDS:
            return True
        patience = 60 * self._rules.give_up_minutes
        return last.patient and not others_heard and time.monotonic() - began < patience

    def _refuse_needless(self, spec: ModelSpec) -> None:
        """Refuse to begin a request to a model that is given up, or once a stop was asked for."""
        if spec.id in self.tally.given_up:
            raise NotAsked(f"not asked: {self.tally.given_up[spec.id]}")
        if self._stopping() or self.broken is not None:
            raise NotAsked("not asked: stopped before its turn")

    def _note(self, spec: ModelSpec, error: BaseException) -> None:
        """Note how a request failed, and give up a model that no request can reach."""
        if isinstance(error, NotAsked) or not isinstance(error, Exception):
            return
        message = secrets.redact(str(error))
        if isinstance(error, Permanent) and error.endpoint_wide:
            self.give_up(spec.id, message)
        elif isinstance(error, Transient) and error.patient:
            self.hear(spec.id, RecentEnds(patient=1, last=message))
        else:
            self.hear(spec.id, RecentEnds(failed=1, last=message))

    def hear(self, model: str, row: RecentEnds) -> None:
        """Take note of how requests of a model ended, and give it up where the rules say so."""
        if self.specs[model].in_process:
            return  # weights that are here answer; what fails is the item's
        why = self.breakers[model].hear(row)
        if why is not None:
            self.give_up(model, f"model '{model}' is given up for this start: {why}")

    def give_up(self, model: str, why: str) -> None:
        """Ask a model no more, and say so."""
        if model not in self.tally.given_up:
            self.tally.given_up[model] = why
            for endpoint, gate in self.gates.items():
                models_there = [
                    name for name, spec_ in self.specs.items() if endpoint_of(spec_) == endpoint
                ]
                if all(name in self.tally.given_up for name in models_there):
                    gate.open()  # whoever waits there is asked no more
            log.warn("model_given_up", model=model)  # why may quote the prompt
            log.say(why)

    def gate(self, endpoint: str) -> Gate:
        """Return the gate before an endpoint of this run."""
        if endpoint not in self.gates:
            # As its first entry says: one endpoint bears what it bears, whatever entry names it.
            specs = (s for s in self.specs.values() if endpoint_of(s) == endpoint)
            self.gates[endpoint] = Gate(next(specs))
        return self.gates[endpoint]


def redacted(completion: Completion) -> Completion:
    """Return what a model said without the keys that its endpoint may have put there."""
    clean = secrets.redact_reply
    calls = tuple(
        msgspec.structs.replace(
            call,
            id=clean(call.id),
            name=clean(call.name),
            arguments=clean(call.arguments),
            details=clean(call.details),
        )
        for call in completion.calls
    )
    text = clean(completion.text)
    named = [token for token, _ in completion.logprobs or ()]
    named += [token for top in completion.alternatives or () for token, _ in top]
    listed = "".join(named)
    spilled = text != completion.text or (bool(listed) and clean(listed) != listed)
    if not spilled and calls == completion.calls:
        return completion
    if not spilled:
        return replace(completion, calls=calls)
    # The tokens, put together, hold the key, too.
    return replace(completion, text=text, calls=calls, logprobs=None, alternatives=None)


async def wait_while_in_doubt(in_doubt: Callable[[], bool], stopped: Callable[[], bool]) -> None:
    """Wait while somebody else may have taken this work over.

    Raises
    ------
    NotAsked
        When a stop is asked for meanwhile: nothing may be asked then.
    """
    while in_doubt():
        if stopped():
            raise NotAsked("not asked: another process may have taken this work over")
        await asyncio.sleep(0.1)


def endpoint_of(spec: ModelSpec) -> str:
    """Return what shares one gate: an address, or a model that has none."""
    return spec.url or spec.id


def sampling_of(spec: ModelSpec, seed: int) -> Sampling:
    """Return how tokens are drawn: temperature 0 unless the entry says otherwise or cannot."""
    refuses = "no_temperature" in spec.capabilities
    return Sampling(
        temperature=None if refuses else spec.temperature,
        top_p=spec.top_p,
        max_tokens=spec.reply_tokens,
        seed=seed % 2**31 if spec.sends_seed else None,
        stop=spec.stop,
    )


def _noticing_limit(completion: Completion, sampling: Sampling) -> Completion:
    """Return a reply that ended at its token limit as one that was cut off, whatever the server
    says of its end.
    """
    is_text_reply = completion.likelihoods is None and completion.drawn is None
    if (
        is_text_reply
        and completion.finish == "stop"
        and completion.usage.completion >= sampling.max_tokens
    ):
        return replace(completion, finish="length")
    return completion


class RequestConstant(TypedDict, total=False):
    """What all requests of a model share; the last four of weights here and of scripts alone."""

    endpoint: str
    protocol: str
    model: str
    version: str
    sampling: SamplingObject
    extra: Mapping[str, Any]
    logprobs: bool
    tools: list[str]
    dtype: str
    weights: str
    quantisation: str | None
    script: Mapping[str, Any]


def request_constant(spec: ModelSpec, sampling: Sampling) -> RequestConstant:
    """Return what all requests of a model share: the parts of the response key besides messages."""
    constant: RequestConstant = {
        "endpoint": spec.url or spec.path or spec.provider,
        "protocol": spec.protocol,
        "model": spec.sent_name,
        "version": spec.version,
        "sampling": sampling.to_dict(),
        "extra": spec.extra_body,
        "logprobs": spec.logprobs,
        "tools": [],
    }
    if spec.in_process:
        constant["dtype"], constant["weights"] = spec.dtype, spec.weights_digest
        constant |= {"quantisation": spec.quantisation}
    if spec.provider == "fake":
        constant["script"] = spec.script
    return constant


def _backoff(error: Exception) -> bool | float:
    """Tell whether to go on, and for how long to wait where the server said so."""
    if not isinstance(error, Transient):
        return False
    return True if error.retry_after is None else error.retry_after
