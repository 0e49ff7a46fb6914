"""Every endpoint of the OpenAI protocol over one thin client.

OpenAI, Mistral, Together, OpenRouter, Ollama, vLLM, llama.cpp's server …: an endpoint's oddities
are fields of its entry in models.json. Replies are hostile: sizes are bounded and types checked.
"""

import json
import math
import time
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec

from medassay.core.canonical import canonical
from medassay.core.records.completion import Completion
from medassay.core.records.model import ModelSpec, Sampling
from medassay.core.records.prompt import Prompt, message_text
from medassay.core.secret import secrets as known_secrets
from medassay.errors import Moderated, Permanent, Transient
from medassay.model.connection import caused_by, elsewhere, refuse_redirect
from medassay.model.echo import Echo
from medassay.model.failure import failure
from medassay.model.openai_reply import UNREADABLE, read_completion, reply_text
from medassay.model.session import open_session

_SHOWN = 4000  # bytes of a body that an error is made of
_UNKNOWN = (400, 404)  # of an address, or a model, that an endpoint does not know
# Word in a refusal → what endpoints that say it want to have changed.
_MENDS = {
    "max_completion_tokens": 'put "token_parameter": "max_completion_tokens" into its entry',
    "temperature": 'put "no_temperature" among the capabilities of its entry',
}
_MOST_NAMED = 8  # models of an endpoint, in an error
_SAID = 200  # characters of an address or a name
_PATIENCE = 10.0  # seconds for the list of models
_LONGEST_LIST = 2**20  # bytes of it
_LONGEST_REPLY = 8 * 2**20  # bytes; nothing a judge or a model should say is longer


class OpenAICompatible:
    """One endpoint; keeps one connection pool."""

    def __init__(self, spec: ModelSpec, secrets: dict[str, str], *, path: str = "") -> None:
        self._spec = spec
        endpoint = "/chat/completions" if spec.protocol == "chat" else "/completions"
        self._url = spec.url.rstrip("/") + (path or endpoint)
        self._headers = {"Content-Type": "application/json"}
        header_names = {**spec.headers_env}
        if spec.api_key_env:
            header_names["Authorization"] = spec.api_key_env
        # A missing key is told when it is needed: replaying stored responses needs none.
        self._missing = sorted(name for name in header_names.values() if not secrets.get(name))
        for header, variable in header_names.items():
            prefix = "Bearer " if header == "Authorization" else ""
            self._headers[header] = prefix + secrets.get(variable, "")
        known_secrets.learn(secrets.values())
        self._session: aiohttp.ClientSession | None = None
        self._models: tuple[str, ...] | None = None  # that the endpoint names; None: not asked
        self._answered = False  # once it did, nothing is wrong with address and model
        self._echo = Echo(spec, self._post)

    def body(self, prompt: Prompt, sampling: Sampling, *, repeat: int) -> bytes:
        """Return the request body; its oddities follow the entry.

        Messages, tools and schema go out as the bytes that were hashed.
        """
        body = self._messages(prompt)
        if prompt.tools:
            body |= {"tools": msgspec.Raw(prompt.tools)}
        if prompt.schema and "structured" in self._spec.capabilities:
            body |= {"response_format": _response_format(prompt.schema)}
        return msgspec.json.encode(body | self._rest(sampling, repeat, prompt.alternatives))

    def _messages(self, prompt: Prompt) -> dict[str, msgspec.Raw]:
        """Return the messages, as one text where the protocol knows no messages."""
        if self._spec.protocol == "chat":
            return {"messages": msgspec.Raw(prompt.encoded)}
        text = "\n\n".join(message_text(message) for message in prompt.messages)
        return {"prompt": msgspec.Raw(canonical(text))}

    @lru_cache(maxsize=64)  # noqa: B019 -- a provider lives as long as its run
    def _rest(self, sampling: Sampling, repeat: int, alternatives: int) -> dict[str, msgspec.Raw]:
        """Return everything of a body but its messages, the same for a whole run."""
        spec = self._spec
        draws = sampling.temperature is not None
        in_chat = spec.protocol == "chat"
        rest = {
            "model": spec.sent_name,
            spec.token_parameter: sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p if draws and sampling.top_p != 1.0 else None,
            "seed": None if sampling.seed is None else (sampling.seed + repeat) % 2**31,
            "stop": list(sampling.stop) or None,
            "logprobs": (True if in_chat else max(1, alternatives)) if spec.logprobs else None,
            "top_logprobs": (spec.logprobs and in_chat and alternatives) or None,
        }
        fields = {name: value for name, value in rest.items() if value is not None}
        return {name: msgspec.Raw(canonical(v)) for name, v in (fields | spec.extra_body).items()}

    async def complete(self, prompt: Prompt, sampling: Sampling, *, repeat: int) -> Completion:
        """Return the completion of one request; see `Chat.complete`."""
        self.check_key()
        if prompt.likely is not None:
            return await self._echo.complete(prompt)
        try:
            data, seconds = await self._post(self.body(prompt, sampling, repeat=repeat))
        except Moderated as error:
            return Completion(text=str(error), finish="moderation")
        return self._completion(data, seconds)

    def check_key(self) -> None:
        """Refuse to ask without the keys that the entry names."""
        if self._missing:
            raise Permanent(
                f"{self._spec.id}: the environment variable {self._missing[0]} is not set; it must "
                "hold the key",
                endpoint_wide=True,
            )

    async def _post(self, body: bytes) -> tuple[bytes, float]:
        """Return the reply to a request, and the seconds it took."""
        if self._session is None:
            self._session = open_session(self._spec, self._headers)
        started = time.perf_counter()
        try:
            async with self._session.post(self._url, data=body, allow_redirects=False) as response:
                status, headers = response.status, response.headers
                refuse_redirect(self._spec, status, self._url, headers.get("Location"))
                data = await _read(response, _LONGEST_REPLY)
        except TimeoutError:
            raise Transient(f"{self._spec.id}: no reply within {self._spec.timeout:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._unreached(error) from None
        seconds = time.perf_counter() - started
        if status != 200:
            text = data[:_SHOWN].decode("utf-8", "replace")
            doubtful = status in _UNKNOWN and not self._answered
            explained = await self._explained(status, text) if doubtful else ""
            wait = _seconds(headers.get("Retry-After"))
            raise failure(self._spec, status, text, wait, explained)
        if len(data) > _LONGEST_REPLY:
            raise Permanent(f"{self._spec.id}: the reply is longer than {_LONGEST_REPLY >> 20} MiB")
        self._answered = True
        return data, seconds

    async def _explained(self, status: int, text: str) -> str:
        """Return what may be wrong with an entry whose address, model or parameter an endpoint does
        not know.
        """
        for word, mend in _MENDS.items() if status == 400 else ():
            if word in text.casefold():
                return f"; {mend}"
        if status != 404 and "model" not in text.casefold():
            return ""
        names = await self._named_models()
        if names and self._spec.sent_name not in names:
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            return (
                f"; it has no model '{self._spec.sent_name}', but"
                f" {', '.join(names[:_MOST_NAMED])}{more}: put one of them into 'model'"
            )
        return "" if status != 404 or names else self._address_advice()

    def _address_advice(self) -> str:
        """Return the address that was asked, and how an entry's should end."""
        address_text = f"; asked was {known_secrets.quote(self._url.partition('?')[0], _SAID)}"
        path = urlsplit(self._spec.url).path.rstrip("/")
        if path.endswith(("/completions", "/chat")):
            return (
                f"{address_text}: 'url' is the address before /chat/completions, and mostly ends"
                " in /v1"
            )
        return (
            address_text
            if path.endswith("/v1")
            else f"{address_text}: 'url' should mostly end in /v1"
        )

    async def _named_models(self) -> tuple[str, ...]:
        """Return the models that the endpoint says it has, asked once.

        None where it does not say.
        """
        if self._models is None and self._session is not None:
            self._models = ()
            try:
                async with self._session.get(
                    self._spec.url.rstrip("/") + "/models",
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=_PATIENCE),
                ) as response:
                    data = await _read(response, _LONGEST_LIST)
                if response.status == 200:
                    models = msgspec.convert(json.loads(data), _ModelList).data
                    self._models = tuple(
                        known_secrets.quote(reply_text(model.id), _SAID)
                        for model in models
                        if isinstance(model.id, str)
                    )
            except (*UNREADABLE, TimeoutError, aiohttp.ClientError, OSError, RecursionError):
                pass
        return self._models or ()

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _unreached(self, error: Exception) -> Transient | Permanent:
        if (cause := elsewhere(self._spec, error)) is not None:
            return cause
        message = known_secrets.quote(f"{type(error).__name__}: {error}", 300)
        refused = caused_by(error, ConnectionRefusedError) is not None
        return Transient(f"{self._spec.id}: {message}", unconnected=refused)

    def _completion(self, data: bytes, seconds: float) -> Completion:
        try:
            return read_completion(data, is_chat=self._spec.protocol == "chat", seconds=seconds)
        except UNREADABLE:
            # Malformed once is often a proxy's hiccup; bounded retries decide.
            excerpt = known_secrets.quote(data[:_SHOWN].decode("utf-8", "replace"), 80)
            raise Transient(f"{self._spec.id}: not a reply of this protocol: {excerpt!r}") from None


class _ListedModel(msgspec.Struct):
    id: Any


class _ModelList(msgspec.Struct):
    data: list[_ListedModel]


def _response_format(schema: bytes) -> msgspec.Raw:
    json_schema = {"name": "reply", "schema": msgspec.Raw(schema), "strict": True}
    return msgspec.Raw(msgspec.json.encode({"type": "json_schema", "json_schema": json_schema}))


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Return a body, cut after one byte more than it may have."""
    data = await response.content.read(most + 1)
    while not response.content.at_eof() and len(data) <= most:
        data += await response.content.read(most + 1)
    return data


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds of a Retry-After header; a date form is left to the backoff."""
    try:
        seconds = float(retry_after or "")
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) else None
