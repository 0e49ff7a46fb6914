"""`ModelSpec`, an entry of models.json, and `Chat`, what a provider offers."""

import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, Protocol, TypedDict, cast
from urllib.parse import urlsplit

from pydantic import ConfigDict

from medassay.core.entry_point import entry_points
from medassay.core.json import MOST_EXACT, leaves_in, texts_in
from medassay.core.keyed import keyed
from medassay.core.record_check import RecordError, check_types
from medassay.core.records.completion import Completion, Usage
from medassay.core.records.likelihood import Asks
from medassay.core.records.prompt import Prompt
from medassay.core.records.script import SCRIPT, wrong_in_script
from medassay.core.secret import STAND_IN

Capability = Literal[
    "chat",
    "logprobs",
    "likelihood",
    "tools",
    "no_temperature",
    "structured",
    "vision",
    "reasoning",
]
REPLY_TOKENS, THOUGHT_TOKENS = 1024, 4096  # of a reply, and of one that thinks first


@dataclass(frozen=True, kw_only=True)
class Price:
    """Money per million tokens.

    Attributes
    ----------
    input, output : of prompts and replies
    currency : of all prices
    cached_input : of the part of a prompt that the endpoint had in its cache; default: as the rest
    reasoning : of the part of a reply that is thoughts; default: as the rest
    batch : factor on all of it, of endpoints that bill batches apart
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    input: float = 0.0
    output: float = 0.0
    currency: str = "USD"
    cached_input: float | None = None
    reasoning: float | None = None
    batch: float = 1.0

    def of(self, usage: Usage) -> float:
        """Return the money that tokens cost."""
        cached = self.input if self.cached_input is None else self.cached_input
        thought = self.output if self.reasoning is None else self.reasoning
        read = (usage.prompt - usage.cached) * self.input + usage.cached * cached
        written = (usage.completion - usage.reasoning) * self.output + usage.reasoning * thought
        return (read + written) * self.batch / 1e6

    @property
    def costs(self) -> bool:
        """Return whether anything costs money."""
        return any((self.input, self.output, self.cached_input, self.reasoning))

    @cached_property
    def dearest(self) -> "Price":
        """Return the price at which no token costs less than here: for upper bounds."""
        return Price(
            input=max(self.input, self.cached_input or 0.0),
            output=max(self.output, self.reasoning or 0.0),
            currency=self.currency,
            batch=self.batch,
        )

    def to_dict(self) -> dict[str, float | str]:
        """Return the price as plain JSON values; parts that are billed as the rest are left out."""
        plain = keyed(self, "input", "output", "currency", "cached_input", "reasoning", "batch")
        return {
            name: value
            for name, value in plain.items()
            if name in ("input", "output", "currency") or value != getattr(Price, name)
        }


FREE = Price()


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """One entry of models.json: what the model is, where it answers, and its oddities.

    Attributes
    ----------
    id : its name in plans, runs and boards
    provider : who is asked: `openai_compatible`, `openai`, `anthropic`, `google`, `mistral`,
        `transformers`, `vllm`, `baseline`, `fake`, or the name that a package gives
    model : name sent to the endpoint; default: `id`
    version : of the model, as its vendor calls it
    family : models of one family do not judge each other
    location : where it answers; private banks never leave for external models
    enabled : whether plans may name it
    api : whether others can call it; False is refused by `publish --require-api`
    url : address of the endpoint, which usually ends in /v1
    api_key_env : name of the environment variable that holds the key; the key itself is never
        written anywhere
    protocol : `chat`, or `completions` for plain text without a chat template
    system_role : role of the line sent before the question; `none` sends none
    system_line : that line
    token_parameter : name of the limit of a reply at this endpoint
    sends_seed : whether the seed is sent
    logprobs : whether the endpoint tells the log-probabilities of its tokens
    extra_body : keys sent with each request
    headers_env : header → name of the environment variable that holds its value
    max_tokens : tokens that a reply may have; default: what the task gives
    temperature : 0 for replies that can be repeated
    top_p : share of the probability that is drawn from
    stop : texts that end a reply, in place of the task's
    concurrency : requests at once
    requests_per_minute, tokens_per_minute : what the endpoint bears; None is no limit
    timeout : seconds of one request
    think_tags : whether replies begin with thoughts between tags, which are no answer
    capabilities : `chat`, `logprobs`, `likelihood`, `tools`, `no_temperature`, `structured`,
        `vision`, `reasoning`
    price : money per million tokens; without one an external entry has an unknown price
    licence : of the weights
    context : tokens that prompt and reply may have together
    size : billions of parameters
    quantisation : of the weights
    series : training that a checkpoint belongs to; default: the family
    step : of the training, for checkpoints, which are drawn as one curve
    engine, engine_version : what serves the weights
    weights_digest : hash of the weights
    path : folder or file of local weights
    device : `auto`, `cpu`, `cuda` …
    gpus : devices of one replica: above 1 the weights are split, a part of 1 shares a device
    dtype : of local weights
    batch_size : prompts of one pass
    batch_tokens : tokens of one pass of likelihoods, which bounds their memory
    add_bos : whether a BOS stands before each context of likelihoods; None does as the tokenizer
    script : what a scripted model (`fake`) replies
    trusted_hosts : of the whole models file: hosts of this place whose addresses do not look like
        it; no field of an entry

    Examples
    --------
    >>> from medassay import ModelSpec
    >>> spec = ModelSpec(id="mine", provider="openai_compatible", url="http://localhost:8000/v1",
    ...     location="local")
    >>> spec.max_tokens is None, spec.concurrency
    (True, 16)
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    id: str
    provider: str
    model: str = ""
    version: str = ""
    family: str = "unknown"
    location: Literal["local", "external"] = "external"
    enabled: bool = True
    api: bool = True
    # where and how it is called
    url: str = ""
    api_key_env: str = ""
    protocol: Literal["chat", "completions"] = "chat"
    system_role: Literal["system", "developer", "user", "none"] = "system"
    system_line: str = ""
    token_parameter: str = "max_tokens"
    sends_seed: bool = True
    logprobs: bool = False
    extra_body: dict[str, Any] = field(default_factory=dict)
    headers_env: dict[str, str] = field(default_factory=dict)
    # sampling and limits
    max_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    concurrency: int = 16
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float = 120.0
    # what it is
    think_tags: bool = False
    capabilities: tuple[Capability, ...] = ("chat",)
    price: Price | None = None
    licence: str = ""
    context: int | None = None
    size: float | None = None
    quantisation: str = ""
    series: str = ""
    step: int | None = None
    engine: str = ""
    engine_version: str = ""
    weights_digest: str = ""
    # local weights (providers transformers and vllm)
    path: str = ""
    device: str = "auto"
    gpus: float = 1.0
    dtype: Literal["float64", "float32", "bfloat16", "float16"] = "float32"
    batch_size: int = 8
    batch_tokens: int = 1024
    add_bos: bool | None = None
    # scripted provider
    script: dict[str, Any] = field(default_factory=dict)
    # of the whole file
    trusted_hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what a models file refuses, with the same words.

        Raises
        ------
        InputError
            Naming the first field that is wrong; also when a value looks like a secret.
        """
        check_types(self)
        for problem in chain(_of_name(self), _of_provider(self), _out_of_range(self)):
            raise RecordError(self, problem)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain JSON values, as a run remembers it: where it may be reached is
        not what it is.
        """
        plain = keyed(
            self,
            "id",
            "provider",
            "model",
            "version",
            "family",
            "location",
            "enabled",
            "api",
            "url",
            "api_key_env",
            "protocol",
            "system_role",
            "system_line",
            "token_parameter",
            "sends_seed",
            "logprobs",
            "extra_body",
            "headers_env",
            "max_tokens",
            "temperature",
            "top_p",
            "stop",
            "concurrency",
            "requests_per_minute",
            "tokens_per_minute",
            "timeout",
            "think_tags",
            "capabilities",
            "price",
            "licence",
            "context",
            "size",
            "quantisation",
            "engine",
            "engine_version",
            "weights_digest",
            "path",
            "device",
            "gpus",
            "dtype",
            "batch_size",
            "batch_tokens",
            "add_bos",
            "script",
        )
        price = self.known_price
        plain["price"] = None if price is None else price.to_dict()
        # Came later: an entry that does not use them is what it was.
        if self.series:
            plain["series"] = self.series
        if self.step is not None:
            plain["step"] = self.step
        return plain

    @property
    def known_price(self) -> Price | None:
        """Return what tokens cost, None where the entry does not say.

        What runs here costs nothing unless it says so.
        """
        is_here = self.location == "local" or self.in_process or self.is_scripted
        return FREE if self.price is None and is_here else self.price

    @property
    def reply_tokens(self) -> int:
        """Return how many tokens a reply may have.

        Where neither the entry nor a task says it, room for an open answer.
        """
        return self.max_tokens or self._room(REPLY_TOKENS)

    def with_room(self, tokens: int) -> "ModelSpec":
        """Return the entry with so many tokens for a reply, more where the model thinks first.

        What the entry says itself stands.
        """
        if self.max_tokens is not None:
            return self
        return replace(self, max_tokens=self._room(tokens))

    def _room(self, tokens: int) -> int:
        thinks = self.think_tags or "reasoning" in self.capabilities
        return max(tokens, THOUGHT_TOKENS) if thinks else tokens

    @property
    def sent_name(self) -> str:
        """Return the model name that the endpoint knows."""
        return self.model or self.id

    @property
    def is_scripted(self) -> bool:
        """Return whether nothing is asked: replies are scripted, computed or replayed."""
        return self.provider in ("fake", "baseline", "replay")

    @property
    def in_process(self) -> bool:
        """Return whether weights are loaded where the asking happens, so that each process needs a
        device of its own.
        """
        return self.provider in ("transformers", "vllm")

    @property
    def is_baseline(self) -> bool:
        """Return whether this is a reference row that is never ranked."""
        return self.provider == "baseline"

    def cannot_tell(self, asks: Asks, *, chat_template: bool = False) -> str | None:
        """Return why this entry cannot say how likely given texts are, None if it can."""
        if self.provider == "transformers":
            return None
        if self.provider != "openai_compatible":
            return f"provider '{self.provider}' tells no likelihood of given texts"
        if asks == "relaxed":
            return "an endpoint continues texts, not tokens; Relaxed Perplexity needs local weights"
        if self.protocol != "completions" or "likelihood" not in self.capabilities:
            return (
                'an endpoint needs protocol "completions" with echo and log-probabilities, '
                'and "likelihood" among its capabilities'
            )
        if chat_template:
            return "an endpoint of completions has no chat template; it needs local weights"
        return None

    @property
    def no_tools(self) -> str | None:
        """Return why this entry cannot be asked in the mode `tools`, None if it can."""
        if self.in_process:
            return (
                "local weights call no tools here; serve them (vLLM, llama.cpp, Ollama) and name"
                " the endpoint"
            )
        if self.protocol != "chat":
            return 'an endpoint of completions calls no tools; it needs protocol "chat"'
        if "tools" not in self.capabilities:
            return 'its entry does not say that it can; add "tools" to its capabilities if it does'
        return None


class SamplingObject(TypedDict, total=False):
    """The keys of a sampling."""

    temperature: float | None
    top_p: float
    max_tokens: int
    seed: int | None
    stop: list[str]


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn; part of the response key."""

    temperature: float | None
    top_p: float
    max_tokens: int
    seed: int | None
    stop: tuple[str, ...] = ()

    def to_dict(self) -> SamplingObject:
        """Return the sampling as plain JSON values."""
        plain = keyed(self, "temperature", "top_p", "max_tokens", "seed")
        if self.stop:
            plain |= {"stop": list(self.stop)}
        return cast(SamplingObject, plain)


class Chat(Protocol):
    """What the engine room asks of a provider."""

    async def complete(self, prompt: Prompt, sampling: Sampling, *, repeat: int) -> Completion:
        """Return the completion; raise `Transient` or `Permanent` when there is none."""

    async def close(self) -> None:
        """Free connections and memory."""


PROVIDER_NAMES = (
    "anthropic",
    "baseline",
    "fake",
    "google",
    "mistral",
    "openai_compatible",
    "replay",
    "transformers",
    "vllm",
)
_NOBODY_ASKED = (
    "import",
    "rule",
)  # what runs remember where an import, or a rule of names, has judged
_LIKELY = ("google", "openai_compatible", "transformers")  # may give log-probabilities
_OURS = ("messages", "model", "prompt", "stream")
_SECRET = re.compile(
    r"(sk|key|tok|hf|gsk|xai|gh[pousr]|glpat)[-_][A-Za-z0-9_\-]{12,}|AIza[A-Za-z0-9_\-]{20,}"
    r"|AKIA[A-Z0-9]{16}|(?i:bearer)\s+\S{8,}"
)
_SECRET_KEY = re.compile(
    r"(?i)(api[-_]?key|authorization|password|secret|(access|auth)[-_]?token|^token$)"
)
_URL_WITH_SECRET = re.compile(r"(?i)[^/]*//([^/?#]*@|[^?#]*\?[^#]*(key|token|secret|password)=)")
# Entries that runs remember were made under the rules of their day: what was sealed is read.
FROM_A_RUN: ContextVar[bool] = ContextVar("FROM_A_RUN", default=False)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _wrong(field: str, value: object, expected: str) -> str:
    return f"field '{field}': {value!r}; {expected}"


def _of_name(spec: ModelSpec) -> Iterator[str]:
    if not FROM_A_RUN.get():
        yield from _of_secrets(spec)
        yield from _of_script(spec)
        yield from _too_large(spec)
    if not re.fullmatch(r"\S(.*\S)?", spec.id) or "\x1f" in spec.id:
        yield "field 'id': expected text without outer blanks"


def _too_large(spec: ModelSpec) -> Iterator[str]:
    """Yield whole numbers that the run could not write down exactly."""
    for spec_field in fields(spec):
        for number in leaves_in(getattr(spec, spec_field.name)):
            if isinstance(number, int) and abs(number) > MOST_EXACT:
                yield _wrong(spec_field.name, number, f"expected at most {MOST_EXACT:,}")


def holds_secret(url: str) -> bool:
    """Return whether an address holds a user, a password or a key."""
    return _URL_WITH_SECRET.match(url) is not None


def without_secrets(text: str) -> str:
    """Return a message without what looks like a secret."""
    return _SECRET.sub(STAND_IN, text)


def _of_secrets(spec: ModelSpec) -> Iterator[str]:
    """Yield what looks like a secret: entries are sealed into runs, and published."""
    advice = (
        "looks like a secret; put it into an environment variable and name that variable in"
        " 'api_key_env' or 'headers_env'"
    )
    for spec_field in fields(spec):
        if spec_field.name == "script":  # what a model says, not what we tell it
            continue
        value = getattr(spec, spec_field.name)
        texts = [value.currency] if isinstance(value, Price) else texts_in(value)
        if any(_SECRET.search(text) for text in texts):
            yield f"field '{spec_field.name}': {advice}"
    for name in _secret_keys(spec.extra_body):
        yield f"field 'extra_body': '{name}' {advice}"
    if holds_secret(spec.url):
        yield f"field 'url': holds a user, password or key; {advice.partition('; ')[2]}"
    for field_name, names in (
        ("api_key_env", [spec.api_key_env] if spec.api_key_env else []),
        ("headers_env", list(spec.headers_env.values())),
    ):
        if not all(_VARIABLE.fullmatch(name) for name in names):
            yield f"field '{field_name}': expected the name of an environment variable"


def _secret_keys(value: Any) -> Iterator[str]:
    """Yield the keys at any depth of a JSON value that name a secret and hold a text."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if _SECRET_KEY.search(name) and isinstance(inner, str) and inner:
                yield name
            yield from _secret_keys(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _secret_keys(inner)


def _of_script(spec: ModelSpec) -> Iterator[str]:
    if spec.provider != "fake":
        return
    if unknown := sorted(spec.script.keys() - SCRIPT.keys()):
        yield f"field 'script': unknown key '{unknown[0]}'; known are {', '.join(SCRIPT)}"
    for name, value, expected in wrong_in_script(spec.script):
        yield _wrong(f"script.{name}", value, expected)


def _of_provider(spec: ModelSpec) -> Iterator[str]:
    is_known = spec.provider in (*PROVIDER_NAMES, *_NOBODY_ASKED)
    if not is_known and spec.provider not in entry_points("providers"):
        names = ", ".join((*PROVIDER_NAMES, *entry_points("providers")))
        yield (
            f"field 'provider': '{spec.provider}'; known are {names}. A package of your own adds"
            " one by an entry point of the group medassay.providers"
        )
    if spec.provider == "openai_compatible" and not _is_address(spec.url):
        yield f"field 'url': '{spec.url}'; expected http://host… or https://host…"
    if spec.logprobs and spec.provider not in _LIKELY:
        yield f"field 'logprobs': provider '{spec.provider}' gives none; {', '.join(_LIKELY)} may"


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _out_of_range(spec: ModelSpec) -> Iterator[str]:
    for name in ("concurrency", "max_tokens", "batch_size", "batch_tokens"):
        value = getattr(spec, name)
        if value is not None and value < 1:
            yield _wrong(name, value, "at least 1")
    for name in ("timeout", "requests_per_minute", "tokens_per_minute", "size", "context"):
        value = getattr(spec, name)
        if value is not None and not 0 < value < 1e12:
            yield _wrong(name, value, "expected a number above 0")
    if not spec.gpus >= 0:
        yield _wrong("gpus", spec.gpus, "expected a number from 0")
    yield from _sampling_out_of_range(spec)
    price = spec.price or FREE
    parts = (price.input, price.output, price.cached_input or 0.0, price.reasoning or 0.0)
    if not all(0 <= part < 1e9 for part in parts):
        yield _wrong("price", [*parts], "expected money per million tokens, from 0")
    if not 0 < price.batch <= 1:
        yield _wrong("price.batch", price.batch, "expected a factor above 0, at most 1")
    for name in (spec.token_parameter, *spec.extra_body):
        if name in _OURS:
            yield _wrong("extra_body", name, "set by medassay itself; leave it out")
    for header, variable in spec.headers_env.items():
        if not re.fullmatch(r"[A-Za-z0-9-]+", header) or not variable:
            yield _wrong("headers_env", header, "expected header names with environment variables")


def _sampling_out_of_range(spec: ModelSpec) -> Iterator[str]:
    if not 0 <= spec.temperature <= 10:
        yield _wrong("temperature", spec.temperature, "expected 0 to 10")
    if not all(spec.stop):
        yield _wrong("stop", spec.stop, "expected texts that are not empty")
    if not 0 < spec.top_p <= 1:
        yield _wrong("top_p", spec.top_p, "expected a share above 0, at most 1")
