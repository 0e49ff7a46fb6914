"""Anthropic, Google and Mistral by their own protocols, over pydantic-ai's direct requests.

One adapter: what differs is how each client is made. The vendors' own retries are off; the engine
room alone retries. Needs the extra of the vendor's name.
"""

import base64
import json
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from medassay.core.json import storable
from medassay.core.records.completion import Completion, Finish, TokenLogprob, ToolCall, Usage
from medassay.core.records.model import ModelSpec, Sampling
from medassay.core.records.prompt import Message, MessageCall, Prompt, message_text, pictures_in
from medassay.core.secret import secrets as known_secrets
from medassay.errors import Moderated, Permanent, Transient
from medassay.model.connection import caused_by, elsewhere
from medassay.model.failure import failure
from medassay.model.session import open_client

if TYPE_CHECKING:
    from pydantic_ai.messages import (
        BinaryContent,
        ModelMessage,
        ModelRequestPart,
        ModelResponse,
        ModelResponsePart,
        ToolCallPart,
    )
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.usage import RequestUsage

_FINISH: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refusal",
    "tool_call": "tool_calls",
}
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)

Close = Callable[[], Awaitable[None]]
if TYPE_CHECKING:
    VendorModel = Model[Any]


class _OfferedFunction(msgspec.Struct):
    """What a prompt says of a function that the model may call."""

    name: str
    description: str
    parameters: dict[str, Any]


class _OfferedTool(msgspec.Struct):
    function: _OfferedFunction


class _CallNotes(msgspec.Struct):
    """What pydantic-ai notes of a call for the vendor, who wants it back."""

    provider_name: str | None = None
    provider_details: dict[str, Any] | None = None


class _Candidate(msgspec.Struct):
    """A token as Google names it, with its log-probability."""

    token: str | None = None
    log_probability: float | None = None


class _Candidates(msgspec.Struct):
    candidates: list[_Candidate] | None = None


class _LikelyTokens(msgspec.Struct):
    """The tokens of a reply as Google tells them, and the candidates at each."""

    chosen_candidates: list[_Candidate] | None = None
    top_candidates: list[_Candidates] | None = None


def _anthropic(spec: ModelSpec, key: str) -> "tuple[VendorModel, Close]":
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(
        api_key=key,
        base_url=spec.url or None,
        max_retries=0,
        timeout=spec.timeout,
        http_client=open_client(spec),
    )
    provider = AnthropicProvider(anthropic_client=client)
    return AnthropicModel(spec.sent_name, provider=provider), client.close


def _google(spec: ModelSpec, key: str) -> "tuple[VendorModel, Close]":
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    http = open_client(spec)
    provider = GoogleProvider(api_key=key, base_url=spec.url or None, http_client=http)
    return GoogleModel(spec.sent_name, provider=provider), http.aclose


def _mistral(spec: ModelSpec, key: str) -> "tuple[VendorModel, Close]":
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    http = open_client(spec)
    provider = MistralProvider(api_key=key, base_url=spec.url or None, http_client=http)
    return MistralModel(spec.sent_name, provider=provider), http.aclose


VENDORS: dict[str, Callable[[ModelSpec, str], "tuple[VendorModel, Close]"]] = {
    "anthropic": _anthropic,
    "google": _google,
    "mistral": _mistral,
}


class Vendor:
    """One model of a vendor. The client is made in the event loop that first asks."""

    def __init__(self, spec: ModelSpec, secrets: dict[str, str]) -> None:
        self._spec = spec
        self._key = secrets.get(spec.api_key_env, "")
        known_secrets.learn(secrets.values())
        self._made: tuple[VendorModel, Close] | None = None

    def _model(self) -> "VendorModel":
        if not self._key:
            raise Permanent(
                f"{self._spec.id}: the environment variable"
                f" {self._spec.api_key_env or '(none named)'} is not set; name it in 'api_key_env',"
                " it must hold the key",
                endpoint_wide=True,
            )
        if self._made is None:
            vendor = self._spec.provider
            try:
                self._made = VENDORS[vendor](self._spec, self._key)
            except ImportError:
                raise Permanent(
                    f"{self._spec.id}: provider '{vendor}' needs an extra: "
                    f"pip install 'medassay[{vendor}]'",
                    endpoint_wide=True,
                ) from None
        return self._made[0]

    async def complete(self, prompt: Prompt, sampling: Sampling, *, repeat: int) -> Completion:
        """Return the completion of one request; see `Chat.complete`."""
        model = self._model()
        import httpx2
        from pydantic_ai import exceptions
        from pydantic_ai.direct import model_request

        started = time.perf_counter()
        try:
            response = await model_request(
                model,
                _messages(prompt),
                model_settings=self._settings(sampling, repeat, prompt.alternatives),
                model_request_parameters=self._parameters(model, prompt),
            )
        except exceptions.ContentFilterError as error:
            seconds = time.perf_counter() - started
            return Completion(text=_error_text(str(error)), finish="refusal", seconds=seconds)
        except exceptions.ModelHTTPError as error:
            failed = failure(self._spec, error.status_code, str(error), error.retry_after)
            if isinstance(failed, Moderated):
                return Completion(text=str(failed), finish="moderation")
            raise failed from None
        except (exceptions.ModelAPIError, exceptions.UnexpectedModelBehavior) as error:
            raise self._unreached(error) from None
        except (
            httpx2.HTTPError,
            OSError,
        ) as error:  # some vendors' libraries pass it on as it is
            raise self._unreached(error) from None
        except exceptions.UserError as error:
            raise Permanent(_error_text(f"{self._spec.id}: {error}")) from None
        except _UNREADABLE as error:  # of the vendor's library, on a reply it did not expect
            message = f"{self._spec.id}: not a reply of this protocol: {error}"
            raise Transient(_error_text(message)) from None
        return _completion(response, time.perf_counter() - started)

    async def close(self) -> None:
        """Close the connections."""
        if self._made is not None:
            await self._made[1]()
            self._made = None

    def _settings(self, sampling: Sampling, repeat: int, alternatives: int) -> "ModelSettings":
        draws = sampling.temperature is not None
        # Anthropic knows no seed, and pydantic-ai warns of what a vendor ignores.
        seed = None if self._spec.provider == "anthropic" else sampling.seed
        tells = self._spec.logprobs  # Google's alone; see `model/spec.py`
        settings = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p if draws and sampling.top_p != 1.0 else None,
            "stop_sequences": list(sampling.stop) or None,
            "seed": None if seed is None else (seed + repeat) % 2**31,
            "google_logprobs": tells or None,
            "google_top_logprobs": (tells and alternatives) or None,
            "extra_body": self._spec.extra_body or None,
            "max_tokens": sampling.max_tokens,
            "timeout": self._spec.timeout,
        }
        return cast("ModelSettings", {k: v for k, v in settings.items() if v is not None})

    def _parameters(self, model: "VendorModel", prompt: Prompt) -> "ModelRequestParameters | None":
        """Offer the prompt's tools, or hold the model to its schema where entry and vendor can.

        Nothing relies on that.
        """
        from pydantic_ai.models import ModelRequestParameters

        if prompt.tools:
            return ModelRequestParameters(function_tools=_tools(prompt.tools))
        wished = prompt.schema and "structured" in self._spec.capabilities
        if not wished or not model.profile.get("supports_json_schema_output"):
            return None
        from pydantic_ai.output import OutputObjectDefinition

        output = OutputObjectDefinition(name="reply", json_schema=json.loads(prompt.schema))
        return ModelRequestParameters(output_mode="native", output_object=output)

    def _unreached(self, error: Exception) -> Transient | Permanent:
        """Return the error of a request without a reply.

        What the connection itself refused is behind it.
        """
        refused = caused_by(error, Permanent) or elsewhere(self._spec, error)
        if refused is not None:
            return refused
        unconnected = caused_by(error, ConnectionRefusedError) is not None
        return Transient(_error_text(f"{self._spec.id}: {error}"), unconnected=unconnected)


def _error_text(text: str) -> str:
    return known_secrets.quote(text, 300)


def _tools(schema: bytes) -> "list[ToolDefinition]":
    from pydantic_ai.tools import ToolDefinition

    return [
        ToolDefinition(
            name=tool.function.name,
            description=tool.function.description,
            parameters_json_schema=tool.function.parameters,
        )
        for tool in msgspec.json.decode(schema, type=list[_OfferedTool])
    ]


def _messages(prompt: Prompt) -> "list[ModelMessage]":
    """Return the prompt in pydantic-ai's words: turns of the user and of the model, calls of tools
    and what they gave.
    """
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        ToolReturnPart,
        UserPromptPart,
    )

    turns: list[ModelMessage] = []
    names: dict[str, str] = {}  # call → tool
    for message in prompt.messages:
        if message["role"] == "assistant":
            calls = message.get("tool_calls", ())
            names |= {call["id"]: call["function"]["name"] for call in calls}
            turns.append(ModelResponse(parts=_model_turn(message_text(message), calls)))
            continue
        if not turns or isinstance(turns[-1], ModelResponse):
            parts: list[ModelRequestPart] = []
            turns.append(ModelRequest(parts=parts))
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            part = ToolReturnPart(names[call_id], message_text(message), tool_call_id=call_id)
            parts.append(part)
            continue
        if message["role"] == "user":
            parts.append(UserPromptPart(_user_content(message)))
        else:
            parts.append(SystemPromptPart(message_text(message)))
    return turns


def _user_content(message: Message) -> "str | list[str | BinaryContent]":
    """Return what the user says: a text, or a text with pictures."""
    from pydantic_ai.messages import BinaryContent

    pictures = [
        BinaryContent(data=base64.b64decode(url.partition(",")[2]), media_type="image/png")
        for url in pictures_in(message)
    ]
    text = message_text(message)
    return [text, *pictures] if pictures else text


def _model_turn(text: str, calls: Sequence[MessageCall]) -> "list[ModelResponsePart]":
    """Return a turn of the model: its text, and the tools that it called."""
    from pydantic_ai.messages import TextPart, ToolCallPart

    parts: list[ModelResponsePart] = [TextPart(text)] if text or not calls else []
    for call in calls:
        notes = msgspec.json.decode(call.get("details", "{}"), type=_CallNotes)
        parts.append(
            ToolCallPart(
                call["function"]["name"],
                call["function"]["arguments"],
                tool_call_id=call["id"],
                provider_name=notes.provider_name,
                provider_details=notes.provider_details,
            )
        )
    return parts


def _call(part: "ToolCallPart") -> ToolCall:
    """Return a call of a tool, with what the vendor wants back (a signature of its thoughts,
    say).
    """
    details = ""
    if part.provider_details:
        details = json.dumps(
            {
                "provider_name": part.provider_name,
                "provider_details": part.provider_details,
            }
        )
    return ToolCall(
        id=_clean(part.tool_call_id),
        name=_clean(part.tool_name),
        arguments=_clean(part.args_as_json_str()),
        details=details,
    )


def _clean(text: str) -> str:
    """Return text that can be stored, no longer than any argument should be."""
    return storable(text)[:20_000]


def _completion(response: "ModelResponse", seconds: float) -> Completion:
    """Return what a vendor said: its text without its thoughts."""
    from pydantic_ai.messages import TextPart, ToolCallPart

    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    finish = _FINISH.get(str(response.finish_reason or "stop"), "other")
    calls = tuple(_call(part) for part in response.parts if isinstance(part, ToolCallPart))
    if finish == "stop" and calls:
        finish = "tool_calls"
    usage = response.usage
    logprobs, alternatives = _logprobs((response.provider_details or {}).get("logprobs"))
    return Completion(
        text=storable(text),
        calls=calls,
        finish=finish,
        usage=_usage(usage),
        seconds=seconds,
        logprobs=logprobs,
        alternatives=alternatives,
    )


def _usage(usage: "RequestUsage") -> Usage:
    """Return the tokens that a vendor counts, with those that were cached and those that are
    thoughts where it tells them apart.
    """
    read, written = (min(max(n, 0), 2**40) for n in (usage.input_tokens, usage.output_tokens))
    details = usage.details or {}
    thought = usage.output_reasoning_tokens or details.get("thoughts_tokens", 0)
    return Usage(
        prompt=read,
        completion=written,
        cached=min(max(usage.cache_read_tokens, 0), read),
        reasoning=min(max(thought, 0), written),
    )


def _logprobs(
    result: Any,
) -> tuple[tuple[TokenLogprob, ...] | None, tuple[tuple[TokenLogprob, ...], ...] | None]:
    """Return the tokens with their log-probabilities, and the candidates at each, as Google says
    them.
    """
    if not result:
        return None, None
    likely = msgspec.convert(result, _LikelyTokens)
    chosen = _token_logprobs(likely.chosen_candidates)
    tops = tuple(_token_logprobs(top.candidates) for top in likely.top_candidates or ())
    return chosen, tops if len(tops) == len(chosen) and any(tops) else None


def _token_logprobs(candidates: Sequence[_Candidate] | None) -> tuple[TokenLogprob, ...]:
    """Return the tokens whose probability is told and is a number."""
    return tuple(
        (storable(candidate.token), candidate.log_probability)
        for candidate in candidates or ()
        if candidate.token is not None
        and candidate.log_probability is not None
        and math.isfinite(candidate.log_probability)
    )
