"""Whatever enters PROVIDERS inherits this: it answers, counts, fails in the two known ways,
closes.
"""

import asyncio
import json

import msgspec
import pytest
from msgspec.structs import replace
from tests.contract.endpoint import Endpoint, chat

from medassay.core.canonical import canonical
from medassay.core.records.completion import Completion, ToolCall
from medassay.core.records.model import ModelSpec, Sampling
from medassay.core.records.prompt import Prompt
from medassay.errors import ModelError, Permanent, Transient
from medassay.model.catalog import PROVIDERS
from medassay.storage.response import completion_to_dict

MESSAGES = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "A or B?"})
PROMPT = Prompt(
    item_id="q",
    messages=MESSAGES,
    encoded=canonical(MESSAGES),
    template="t",
    letters="AB",
    options=("one", "longer"),
)
SAMPLING = Sampling(temperature=0.0, top_p=1.0, max_tokens=5, seed=7)


@pytest.fixture
def endpoint():
    made = Endpoint()
    yield made
    made.server.shutdown()
    made.server.server_close()


def ask(spec, secrets=None, prompt=PROMPT, sampling=SAMPLING, provider=None):
    async def once():
        chat_ = PROVIDERS[provider or spec.provider](spec, secrets or {})
        try:
            return await chat_.complete(prompt, sampling, repeat=0)
        finally:
            await chat_.close()

    return asyncio.run(once())


def spec_for(name, endpoint):
    if name == "openai_compatible":
        return ModelSpec(id="m", provider=name, url=endpoint.url)
    if name == "baseline":
        return ModelSpec(id="m", provider=name, model="longest")
    if name == "fake":
        return ModelSpec(id="m", provider=name, script={"reply": "B"})
    if name in ("anthropic", "google", "mistral"):
        return ModelSpec(id="m", provider=name, url=endpoint.url, api_key_env="KEY")
    return ModelSpec(id="m", provider=name, path="no/such/weights")


@pytest.mark.parametrize("name", PROVIDERS)
def test_it_returns_a_completion_or_one_of_the_two_errors(name, endpoint):
    if name == "transformers":
        pytest.importorskip("torch")
    try:
        found = ask(spec_for(name, endpoint))
    except ModelError as error:
        assert "m" in str(error)
        vendors = ("anthropic", "google", "mistral")  # here without a key
        assert name in ("replay", "transformers", "vllm", *vendors)
        return
    assert isinstance(found, Completion)
    assert found.text in ("A", "B")
    assert found.seconds >= 0


def openai(endpoint, **more):
    return ModelSpec(id="m", provider="openai_compatible", url=endpoint.url, **more)


def test_chat_sends_the_messages_exactly_and_reads_usage(endpoint):
    found = ask(openai(endpoint, model="the-model"))
    path, body = endpoint.asked[0]
    assert path == "/v1/chat/completions"
    assert body == {
        "messages": list(MESSAGES),
        "model": "the-model",
        "max_tokens": 5,
        "temperature": 0,
        "seed": 7,
    }
    assert (found.usage.prompt, found.usage.completion, found.finish) == (11, 2, "stop")


def test_oddities_of_an_endpoint_are_fields_of_its_entry(endpoint):
    odd = openai(
        endpoint,
        token_parameter="max_completion_tokens",
        sends_seed=False,
        logprobs=True,
        extra_body={"reasoning_effort": "low"},
    )
    ask(odd, sampling=Sampling(temperature=None, top_p=1.0, max_tokens=5, seed=None))
    body = endpoint.asked[0][1]
    assert "temperature" not in body
    assert "seed" not in body
    assert body["max_completion_tokens"] == 5
    assert body["reasoning_effort"] == "low"
    assert body["logprobs"] is True


def test_candidates_of_a_token_are_asked_for_and_read(endpoint):
    """In both forms of the protocol, with what is no number left out."""
    wished = replace(PROMPT, alternatives=3)
    tops = [{"token": "A", "logprob": -0.1}, {"token": "B", "logprob": -2.5}]
    content = [
        {**tops[0], "top_logprobs": tops},
        {"token": "!", "logprob": -0.5, "top_logprobs": []},
        {"token": "lost", "logprob": None, "top_logprobs": tops},
    ]
    reply = chat("A!")
    reply["choices"][0]["logprobs"] = {"content": content}
    endpoint.replies.append((200, {}, reply))
    found = ask(openai(endpoint, logprobs=True), prompt=wished)
    assert (endpoint.asked[0][1]["logprobs"], endpoint.asked[0][1]["top_logprobs"]) == (True, 3)
    assert found.logprobs == (("A", -0.1), ("!", -0.5))
    assert found.alternatives == ((("A", -0.1), ("B", -2.5)), ())
    old = {
        "tokens": ["A", "!"],
        "token_logprobs": [-0.1, -0.5],
        "top_logprobs": [{"A": -0.1, "B": -2.5}],
    }
    endpoint.replies.append((200, {}, {"choices": [{"text": "A!", "logprobs": old}]}))
    same = ask(openai(endpoint, logprobs=True, protocol="completions"), prompt=wished)
    assert endpoint.asked[1][1]["logprobs"] == 3
    assert (same.logprobs, same.alternatives) == (found.logprobs, found.alternatives)
    ask(openai(endpoint), prompt=wished)
    assert "top_logprobs" not in endpoint.asked[2][1]
    assert PROMPT.asked != wished.asked


def test_completions_protocol_joins_the_messages(endpoint):
    endpoint.replies.append(
        (
            200,
            {},
            {
                "choices": [
                    {
                        "text": " B",
                        "finish_reason": "length",
                        "logprobs": {"tokens": [" B"], "token_logprobs": [-0.5]},
                    }
                ]
            },
        )
    )
    found = ask(openai(endpoint, protocol="completions"))
    assert endpoint.asked[0][0] == "/v1/completions"
    assert endpoint.asked[0][1]["prompt"] == "Be brief.\n\nA or B?"
    assert (found.text, found.finish, found.logprobs) == (" B", "length", ((" B", -0.5),))


@pytest.mark.parametrize(
    ("reply", "finish", "text"),
    [
        (chat("cut", "length"), "length", "cut"),
        (chat(None, "content_filter"), "refusal", ""),
        (chat(None, refusal="I will not."), "refusal", "I will not."),
        (chat(None, "tool_calls", tool_calls=[{"id": "x"}]), "tool_calls", ""),
        (chat([{"type": "text", "text": "A"}]), "stop", "A"),
        ({"choices": [{"message": {"content": "B"}}]}, "stop", "B"),
    ],
)
def test_replies_of_every_kind_are_read(endpoint, reply, finish, text):
    endpoint.replies.append((200, {}, reply))
    found = ask(openai(endpoint))
    assert (found.finish, found.text) == (finish, text)


@pytest.mark.parametrize(
    "reply",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"choices":[{"message":{"content":"A"}}],"usage":{"prompt_tokens":"x"}}',
    ],
)
def test_malformed_replies_are_transient(endpoint, reply):
    endpoint.replies.append((200, {}, reply))
    with pytest.raises(Transient, match="not a reply of this protocol"):
        ask(openai(endpoint))


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_overload_and_server_errors_are_transient(endpoint, status):
    endpoint.replies.append((status, {"Retry-After": "2.5"}, {"error": {"message": "busy"}}))
    with pytest.raises(Transient) as caught:
        ask(openai(endpoint))
    assert caught.value.retry_after == 2.5
    assert caught.value.overload == (status in (429, 503, 529))


@pytest.mark.parametrize("header", ["Wed, 21 Oct 2026 07:28:00 GMT", "nan", "soon", ""])
def test_an_odd_retry_after_is_left_to_the_backoff(endpoint, header):
    endpoint.replies.append((429, {"Retry-After": header}, {}))
    with pytest.raises(Transient) as caught:
        ask(openai(endpoint))
    assert caught.value.retry_after is None


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422])
def test_other_refusals_are_permanent_and_of_this_request_alone(endpoint, status):
    endpoint.replies.append((status, {}, {"error": {"message": "no"}}))
    with pytest.raises(Permanent) as caught:
        ask(openai(endpoint))
    assert not caught.value.endpoint_wide


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"code": "content_policy_violation", "message": "no"}}),
        (400, {"error": {"code": "content_filter", "innererror": {}}}),
        (403, {"error": {"message": "Your input was flagged", "metadata": {}}}),
        (403, {"error": "flagged by moderation"}),
        (422, {"message": "blocked by a guardrail"}),
        (400, {"error": {"message": "Output blocked by content filtering policy"}}),
    ],
)
def test_a_refusal_by_moderation_is_a_refusal_with_its_own_reason(endpoint, status, body):
    endpoint.replies.append((status, {}, body))
    completion = ask(openai(endpoint))
    assert completion.finish == "moderation"
    assert f"HTTP {status}" in completion.text


def test_a_cut_connection_a_closed_port_and_silence_are_transient(endpoint):
    endpoint.replies.append((0, {}, b""))
    with pytest.raises(Transient):
        ask(openai(endpoint))
    with pytest.raises(Transient):
        ask(ModelSpec(id="m", provider="openai_compatible", url="http://127.0.0.1:9/v1", timeout=2))
    endpoint.silent = True
    with pytest.raises(Transient, match="no reply within"):
        ask(openai(endpoint, timeout=0.2))
    endpoint.released.set()


def test_keys_come_from_the_environment_and_never_reach_an_error(endpoint):
    spec = openai(endpoint, api_key_env="MY_KEY")
    with pytest.raises(Permanent, match="MY_KEY is not set"):
        ask(spec)
    endpoint.replies.append((401, {}, {"error": {"message": "bad key very-secret-value"}}))
    with pytest.raises(Permanent) as caught:
        ask(spec, {"MY_KEY": "very-secret-value"})
    assert "very-secret-value" not in str(caught.value)
    assert endpoint.headers[-1]["Authorization"] == "Bearer very-secret-value"


def test_the_script_of_a_fake_can_fail_refuse_and_delay():
    base = {"id": "m", "provider": "fake"}
    with pytest.raises(Permanent):
        ask(ModelSpec(**base, script={"fail_items": ["q"]}))
    with pytest.raises(Transient):
        ask(ModelSpec(**base, script={"fail_every": 1}))
    with pytest.raises(Transient):
        ask(ModelSpec(**base, script={"malformed_items": ["q"]}))
    assert ask(ModelSpec(**base, script={"refuse_items": ["q"]})).finish == "refusal"
    assert ask(ModelSpec(**base, script={"letters": "hash", "delay": 0.001})).text in "AB"


def test_baselines_answer_without_reading():
    for kind in ("random", "majority", "longest"):
        spec = ModelSpec(id="m", provider="baseline", model=kind)
        assert ask(spec).text in "AB"
        assert (
            ask(spec, prompt=Prompt(item_id="q", messages=(), encoded=b"", template="t")).text == ""
        )
    assert ask(ModelSpec(id="m", provider="baseline", model="longest")).text == "B"


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (b'{"choices":[{"message":{"content":"A \\ud800"}}]}', "A ?"),
        (b'{"choices":[{"message":{"refusal":"no \\ud800"}}]}', "no ?"),
        (b'{"choices":[{"message":{"content":"A"}}],"usage":[1]}', "A"),
        (
            b'{"choices":[{"message":{"content":"A","tool_calls":[1,{"function":"f"}]}}],'
            b'"usage":{"prompt_tokens":3,"prompt_tokens_details":"none"}}',
            "A",
        ),
        (
            b'{"choices":[{"message":{"content":"A"}}],"usage":{"prompt_tokens":'
            + b"9" * 30
            + b',"completion_tokens":-5}}',
            "A",
        ),
        (
            b'{"choices":[{"message":{"content":"A"},"logprobs":{"content":[{"token":"A","logprob":NaN}]}}]}',
            "A",
        ),
    ],
)
def test_hostile_replies_can_always_be_stored(endpoint, reply, text):
    endpoint.replies.append((200, {}, reply))
    found = ask(openai(endpoint, logprobs=True))
    assert found.text == text
    assert found.usage.completion >= 0
    assert found.usage.prompt <= 2**53 - 1
    assert canonical(completion_to_dict(found))


def test_endless_token_counts_are_malformed(endpoint):
    endpoint.replies.append(
        (200, {}, b'{"choices":[{"message":{"content":"A"}}],"usage":{"prompt_tokens":1e400}}')
    )
    with pytest.raises(Transient):
        ask(openai(endpoint))


def wished(*calls):
    return chat(None, finish="tool_calls", tool_calls=list(calls))


def function(name="f", arguments='{"a":1}', **more):
    return {
        "id": "c1",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **more,
    }


def test_tools_are_offered_and_calls_are_read(endpoint):
    spec = spec_for("openai_compatible", endpoint)
    endpoint.replies = [
        (
            200,
            {},
            wished(function(), function(arguments={"b": 2}), function(arguments="", id=None)),
        )
    ]
    offered = [{"type": "function", "function": {"name": "f"}}]
    found = ask(spec, prompt=replace(PROMPT, tools=canonical(offered)))
    assert (found.text, found.finish) == ("", "tool_calls")
    said = [(one.id, one.name, json.loads(one.arguments)) for one in found.calls]
    assert said == [("c1", "f", {"a": 1}), ("c1", "f", {"b": 2}), ("", "f", {})]
    assert endpoint.asked[0][1]["tools"] == offered
    ask(spec)
    assert "tools" not in endpoint.asked[1][1]


@pytest.mark.parametrize(
    "calls",
    [
        [{}],
        [{"function": {}}],
        [{"function": {"name": 3, "arguments": 4}}],
        [3],
        {"function": "f"},
        "f",
        [function(name="\ud800", arguments="\udfff")],
        [function(arguments="x" * 30_000)] * 100,
    ],
)
def test_hostile_calls_are_bounded_or_a_failure_that_is_asked_again(endpoint, calls):
    reply = chat(None, finish="tool_calls", tool_calls=calls)
    endpoint.replies = [(200, {}, json.dumps(reply).encode())]
    try:
        found = ask(spec_for("openai_compatible", endpoint))
    except Transient:
        return
    assert len(found.calls) <= 64
    assert all(len(one.arguments) <= 20_000 for one in found.calls)
    assert canonical([one.name for one in found.calls])


def test_what_is_asked_with_tools_has_a_key_of_its_own():
    assert replace(PROMPT, tools=b"[1]").asked != PROMPT.asked
    kept = completion_to_dict(
        Completion(text="", calls=(ToolCall(id="a", name="f", arguments="{}"),))
    )
    assert msgspec.json.decode(msgspec.json.encode(kept), type=Completion).calls[0].name == "f"
