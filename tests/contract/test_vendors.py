"""The vendors' own wire formats, as their documentation gives them, on a real HTTP server."""

import asyncio
import base64
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from medassay.context.tools.loop import converse
from medassay.context.tools.result import ToolResult
from medassay.context.tools.schema import tool_schema
from medassay.core.canonical import canonical
from medassay.core.records.context_config import ToolRules
from medassay.core.records.model import ModelSpec, Sampling
from medassay.core.records.prompt import Prompt
from medassay.errors import Permanent, Transient
from medassay.model.catalog import PROVIDERS

pytestmark = pytest.mark.skipif(
    find_spec("pydantic_ai") is None and os.environ.get("MEDASSAY_STRICT") != "1",
    reason="the extras anthropic, google, mistral are not here",
)

KEY = "secret-key-0123456789"
MESSAGES = (
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "A or B?"},
    {"role": "assistant", "content": "A"},
    {"role": "user", "content": "C or D?"},
)
SAMPLING = Sampling(temperature=0.0, top_p=1.0, max_tokens=64, seed=7)


def prompt(schema=None, alternatives=0):
    return Prompt(
        item_id="q",
        messages=MESSAGES,
        encoded=canonical(list(MESSAGES)),
        template="t",
        schema=b"" if schema is None else canonical(schema),
        alternatives=alternatives,
    )


def anthropic(*blocks, stop="end_turn"):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(blocks),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 21, "output_tokens": 4},
    }


def google(*parts, stop="STOP", **more):
    return {
        "candidates": [
            {
                "content": {"role": "model", "parts": list(parts)},
                "finishReason": stop,
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 21,
            "candidatesTokenCount": 4,
            "totalTokenCount": 25,
        },
        "modelVersion": "m",
        "responseId": "r",
        **more,
    }


def mistral(content, stop="stop", **message):
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1780000000,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": stop,
            }
        ],
        "usage": {"prompt_tokens": 21, "completion_tokens": 4, "total_tokens": 25},
    }


TEXT = {"type": "text", "text": "D"}
TOOL = {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "x"}}
THOUGHT = {"type": "thinking", "thinking": "hmm", "signature": "s"}
CALL = {
    "id": "abcdefghi",
    "type": "function",
    "function": {"name": "search", "arguments": "{}"},
}
REPLIES = [
    ("anthropic", anthropic(TEXT), ("D", "stop")),
    ("anthropic", anthropic(THOUGHT, TEXT), ("D", "stop")),
    ("anthropic", anthropic(TEXT, stop="max_tokens"), ("D", "length")),
    ("anthropic", anthropic(TEXT, stop="refusal"), ("D", "refusal")),
    ("anthropic", anthropic(TOOL, stop="tool_use"), ("", "tool_calls")),
    ("google", google({"text": "D"}), ("D", "stop")),
    ("google", google({"text": "hmm", "thought": True}, {"text": "D"}), ("D", "stop")),
    ("google", google({"text": "D"}, stop="MAX_TOKENS"), ("D", "length")),
    (
        "google",
        google({"functionCall": {"name": "search", "args": {}}}),
        ("", "tool_calls"),
    ),
    ("mistral", mistral("D"), ("D", "stop")),
    ("mistral", mistral("D", stop="length"), ("D", "length")),
    ("mistral", mistral("", stop="tool_calls", tool_calls=[CALL]), ("", "tool_calls")),
]


class Endpoint:
    """Replies what it is told, and remembers what it was asked."""

    def __init__(self):
        self.reply, self.asked = (200, {}, {}), []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.asked.append((self.path, dict(self.headers), json.loads(body)))
                status, headers, reply = outer.reply
                data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response(status)
                sent = {
                    "Content-Type": "application/json",
                    "Content-Length": len(data),
                    **headers,
                }
                for name, value in sent.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def endpoint():
    made = Endpoint()
    yield made
    made.server.shutdown()
    made.server.server_close()


def ask(endpoint, provider, *, schema=None, alternatives=0, secrets=None, **entry):
    spec = ModelSpec(
        id="m", provider=provider, url=endpoint.url, api_key_env="KEY", timeout=6, **entry
    )

    async def once():
        chat = PROVIDERS[provider](spec, {"KEY": KEY} if secrets is None else secrets)
        try:
            return await chat.complete(prompt(schema, alternatives), SAMPLING, repeat=0)
        finally:
            await chat.close()

    return asyncio.run(once())


@pytest.mark.parametrize(("vendor", "reply", "expected"), REPLIES)
def test_replies_of_each_kind_are_read(endpoint, vendor, reply, expected):
    endpoint.reply = (200, {}, reply)
    found = ask(endpoint, vendor)
    assert (found.text, found.finish) == expected
    assert (found.usage.prompt, found.usage.completion) == (21, 4)
    assert found.seconds > 0
    assert len(endpoint.asked) == 1


def test_a_blocked_prompt_of_google_is_a_refusal(endpoint):
    blocked = {
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 21, "totalTokenCount": 21},
        "modelVersion": "m",
    }
    for reply in (blocked, google(stop="SAFETY")):
        endpoint.reply = (200, {}, reply)
        assert ask(endpoint, "google").finish == "refusal"


@pytest.mark.parametrize("vendor", ["anthropic", "google", "mistral"])
@pytest.mark.parametrize(
    ("status", "overload"), [(429, True), (500, False), (503, True), (529, True)]
)
def test_overloads_are_transient_and_the_vendor_library_never_retries(
    endpoint, vendor, status, overload
):
    body = {"error": {"type": "overloaded_error", "message": f"slow down {KEY}", "code": status}}
    endpoint.reply = (status, {"Retry-After": "2"}, body)
    with pytest.raises(Transient) as caught:
        ask(endpoint, vendor)
    assert caught.value.overload == overload
    assert caught.value.retry_after == 2
    assert KEY not in str(caught.value)
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("vendor", ["anthropic", "google", "mistral"])
def test_a_wrong_key_is_permanent_and_never_shown(endpoint, vendor):
    endpoint.reply = (401, {}, {"error": {"message": f"bad key {KEY}", "code": 401}})
    with pytest.raises(Permanent) as caught:
        ask(endpoint, vendor)
    assert KEY not in str(caught.value)
    with pytest.raises(Permanent, match="KEY is not set"):
        ask(endpoint, vendor, secrets={})
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize("vendor", ["anthropic", "google", "mistral"])
@pytest.mark.parametrize("reply", [b"", b"<html>", b"[]", {"choices": []}, {"content": 3}])
def test_malformed_replies_are_errors_of_the_two_kinds(endpoint, vendor, reply):
    endpoint.reply = (200, {}, reply)
    try:
        found = ask(endpoint, vendor)
    except (Transient, Permanent):
        return
    assert found.text == ""


def test_pictures_reach_each_vendor_beside_the_text(endpoint):
    picture = base64.b64encode(b"\x89PNG picture").decode()
    content = [
        {"type": "text", "text": "Read the page."},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
    ]
    messages = ({"role": "user", "content": content},)
    shown = replace(prompt(), messages=messages, encoded=canonical(list(messages)))
    for vendor, reply in (
        ("anthropic", anthropic(TEXT)),
        ("google", google({"text": "D"})),
        ("mistral", mistral("D")),
    ):
        endpoint.reply = (200, {}, reply)
        spec = ModelSpec(id="m", provider=vendor, url=endpoint.url, api_key_env="KEY", timeout=6)

        async def once(spec=spec, vendor=vendor):
            chat = PROVIDERS[vendor](spec, {"KEY": KEY})
            try:
                return await chat.complete(shown, SAMPLING, repeat=0)
            finally:
                await chat.close()

        asyncio.run(once())
        body = json.dumps(endpoint.asked[-1][2])
        assert "Read the page." in body
        assert picture in body.replace("-", "+").replace("_", "/")
        assert "image/png" in body


def test_each_vendor_is_asked_in_its_own_words(endpoint):
    for vendor, reply in (
        ("anthropic", anthropic(TEXT)),
        ("google", google({"text": "D"})),
        ("mistral", mistral("D")),
    ):
        endpoint.reply = (200, {}, reply)
        ask(endpoint, vendor, model="vendor-model-1")
    (a, _, first), (g, headers, second), (m, _, third) = endpoint.asked
    assert (a, m) == ("/v1/messages", "/v1/chat/completions")
    assert g == "/v1beta/models/vendor-model-1:generateContent"
    assert headers["x-goog-api-key"] == KEY
    assert (first["max_tokens"], first["temperature"]) == (64, 0)
    assert [t["role"] for t in first["messages"]] == ["user", "assistant", "user"]
    assert "Be brief." in json.dumps(first["system"])
    assert [t["role"] for t in second["contents"]] == ["user", "model", "user"]
    assert second["generationConfig"]["maxOutputTokens"] == 64
    assert [t["role"] for t in third["messages"]] == ["system", "user", "assistant", "user"]
    assert third["random_seed"] == 7


SIGNED = {
    "functionCall": {"name": "web_search", "args": {"query": "x"}},
    "thoughtSignature": "c2ln",
}
WISHES = {
    "anthropic": (
        anthropic({**TOOL, "name": "web_search", "input": {"query": "x"}}, stop="tool_use"),
        anthropic(TEXT),
    ),
    "google": (google(SIGNED), google({"text": "D"})),
    "mistral": (
        mistral(
            "",
            stop="tool_calls",
            tool_calls=[{**CALL, "function": {"name": "web_search", "arguments": '{"query":"x"}'}}],
        ),
        mistral("D"),
    ),
}


@pytest.mark.parametrize("vendor", WISHES)
def test_a_conversation_with_a_tool_goes_both_ways(endpoint, vendor):
    wish, end = WISHES[vendor]
    rules = ToolRules(use=("web_search",), search="tavily", search_key_env="KEY")
    asked = replace(prompt(), tools=tool_schema(rules))
    spec = ModelSpec(id="m", provider=vendor, url=endpoint.url, api_key_env="KEY", timeout=6)

    async def talk():
        chat = PROVIDERS[vendor](spec, {"KEY": KEY})

        async def ask_(one):
            endpoint.reply = (200, {}, end if endpoint.asked else wish)
            completion = await chat.complete(one, SAMPLING, repeat=0)
            return SimpleNamespace(completion=completion)

        async def look(one, place, call):
            assert (call.name, json.loads(call.arguments)) == ("web_search", {"query": "x"})
            return ToolResult(text="found it", status="ok")

        try:
            return await converse(asked, ask_, look, rules)
        finally:
            await chat.close()

    found = asyncio.run(talk())
    assert [r.completion.text for r in found.replies] == ["", "D"]
    assert found.replies[0].completion.finish == "tool_calls"
    first, second = (json.dumps(body) for _, _, body in endpoint.asked)
    assert "web_search" in first
    assert "found it" not in first
    assert "found it" in second
    if vendor == "google":  # its models refuse a call that comes back without its signature
        assert "c2ln" in second


@pytest.mark.parametrize(
    ("vendor", "model", "sent"),
    [("google", "gemini-2.5-pro", True), ("mistral", "mistral-large-latest", False)],
)
def test_a_schema_is_sent_where_entry_and_vendor_understand_it(endpoint, vendor, model, sent):
    schema = {
        "type": "object",
        "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
        "required": ["facts"],
        "additionalProperties": False,
    }
    endpoint.reply = (200, {}, google({"text": "{}"}) if vendor == "google" else mistral("{}"))
    ask(endpoint, vendor, schema=schema, model=model)
    able = ("chat", "structured")
    assert ask(endpoint, vendor, schema=schema, model=model, capabilities=able).text == "{}"
    without, with_it = ("facts" in json.dumps(body) for _, _, body in endpoint.asked)
    assert (without, with_it) == (False, sent)


def test_google_names_candidates_of_a_token_when_asked(endpoint):
    said = google({"text": "D"})
    likely = [
        {"token": "D", "tokenId": 1, "logProbability": -0.2},
        {"token": "C", "tokenId": 2, "logProbability": -1.8},
    ]
    said["candidates"][0]["logprobsResult"] = {
        "chosenCandidates": likely[:1],
        "topCandidates": [{"candidates": likely}],
    }
    endpoint.reply = (200, {}, said)
    found = ask(endpoint, "google", logprobs=True, alternatives=5)
    asked = endpoint.asked[0][2]["generationConfig"]
    assert (asked["responseLogprobs"], asked["logprobs"]) == (True, 5)
    assert found.logprobs == (("D", -0.2),)
    assert found.alternatives == ((("D", -0.2), ("C", -1.8)),)
    plain = ask(endpoint, "google")
    assert "responseLogprobs" not in endpoint.asked[1][2]["generationConfig"]
    assert plain.text == "D"


@pytest.mark.parametrize("vendor", ["anthropic", "google", "mistral"])
@pytest.mark.parametrize("status", [401, 500])
def test_a_key_across_any_cut_is_not_shown(endpoint, vendor, status):
    for before in (0, 20, 150, 170, 180, 190, 240, 260, 270, 280):
        endpoint.reply = (status, {}, {"error": {"message": "x" * before + KEY + "y" * 40}})
        with pytest.raises((Permanent, Transient)) as caught:
            ask(endpoint, vendor)
        told = str(caught.value)
        assert not any(KEY[at : at + 8] in told for at in range(len(KEY) - 7)), told


@pytest.mark.parametrize("vendor", ["anthropic", "google", "mistral"])
def test_a_refusal_by_moderation_is_a_refusal_with_its_own_reason(endpoint, vendor):
    said = {"error": {"message": "Output blocked by content filtering policy", "code": 400}}
    endpoint.reply = (400, {}, said)
    assert ask(endpoint, vendor).finish == "moderation"
    endpoint.reply = (404, {}, {"error": {"message": "no such model", "code": 404}})
    with pytest.raises(Permanent) as caught:
        ask(endpoint, vendor)
    assert not caught.value.endpoint_wide
