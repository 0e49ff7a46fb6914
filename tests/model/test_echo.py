"""Likelihoods from a server: equal to those of the same weights in memory, and refused where the
echo is wrong.
"""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from medassay.core.canonical import canonical
from medassay.core.records.likelihood import LikelihoodRequest
from medassay.core.records.model import ModelSpec, Sampling
from medassay.core.records.prompt import Prompt
from medassay.errors import Permanent, Transient
from medassay.model.catalog import PROVIDERS
from medassay.model.echo import WrongEchoError, read_echo
from medassay.model.likelihood import LikelihoodEngine

CONTEXT = "A patient takes 100 µg of levothyroxine. When?\nAnswer:"
OPTIONS = ("in the morning", "at noon", "é", "at noon with naïve soup")


class Server:
    """A real HTTP server of the completions protocol over a tiny model; `wrong` names its fault."""

    def __init__(self, engine, wrong=""):
        self.engine, self.wrong, self.asked = engine, wrong, []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(body)
                status, reply = outer.reply(body)
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def reply(self, body):
        """Return status and reply, right but for the fault."""
        import torch

        wrong, tokenizer, model = self.wrong, self.engine.tokenizer, self.engine.model
        if wrong == "busy" and len(self.asked) == 1:
            return 503, {}
        if wrong == "refuses":
            return 400, {"error": "Only no echo is supported"}
        text = body["prompt"]
        bos = [tokenizer.eos_token_id] if wrong == "bos" else []
        ids = bos + tokenizer(text, add_special_tokens=False).input_ids
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([ids])).logits[0]
        if wrong == "noise":
            logits = logits + torch.randn_like(logits)
        if wrong == "temperature":
            logits = torch.cat([logits[:-1] * 0.5, logits[-1:]])
        chances = logits.log_softmax(-1)
        taken = int(chances[-1].argmax())
        values = [None, *(float(chances[i, t]) for i, t in enumerate(ids[1:]))]
        tops = [None, *({"x": float(row.max())} for row in chances[:-1])]
        tokens, counted = [tokenizer.decode([i]) for i in ids], len(ids)
        values.append(float(chances[-1, taken]))
        tokens.append(tokenizer.decode([taken]))
        tops.append({"x": float(chances[-1].max())})
        if wrong == "generated only":
            tokens, values, tops = tokens[-1:], values[-1:], tops[-1:]
        if wrong == "no echo":
            text = ""
        if wrong == "shifted":
            values = [None, *values[2:], values[1]]
        if wrong == "zeros":
            values = [None, *[0.0] * (len(values) - 1)]
        if wrong == "positive":
            values[2] = 0.3
        if wrong == "other text":
            tokens[1] = "?"
        choice = {
            "text": text + tokens[-1],
            "logprobs": {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops},
        }
        return 200, {
            "choices": [choice],
            "usage": {"prompt_tokens": counted, "completion_tokens": 1},
        }


@pytest.fixture(scope="module")
def engine(weights):
    return LikelihoodEngine(weights)


@pytest.fixture
def server(engine, request):
    made = Server(engine, getattr(request, "param", ""))
    yield made
    made.server.shutdown()
    made.server.server_close()


def prompt(context=CONTEXT, texts=OPTIONS):
    messages = ({"role": "user", "content": context},) if context else ()
    return Prompt(
        item_id="q",
        messages=messages,
        encoded=canonical(messages),
        template="t",
        likely=LikelihoodRequest(continuations=tuple(texts)),
    )


def ask(server, *prompts):
    spec = ModelSpec(
        id="m",
        provider="openai_compatible",
        url=server.url,
        protocol="completions",
        capabilities=("likelihood",),
    )
    sampling = Sampling(temperature=0.0, top_p=1.0, max_tokens=5, seed=1)

    async def all_of_them():
        chat = PROVIDERS["openai_compatible"](spec, {})
        try:
            return [await chat.complete(p, sampling, repeat=0) for p in prompts]
        finally:
            await chat.close()

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("server", ["", "bos"], indirect=True)
def test_an_echo_tells_what_the_same_weights_tell(server, engine):
    [found] = ask(server, prompt())
    other = engine
    if server.wrong == "bos":
        # The server puts its token before every prompt; so does an engine that is told to.
        other = LikelihoodEngine(engine.model, tokenizer=engine.tokenizer)
        other.bos = (engine.tokenizer.eos_token_id,)
    expected = other.score([(CONTEXT, " " + text) for text in OPTIONS])
    for one, own, text in zip(found.likelihoods, expected, OPTIONS, strict=True):
        assert one["total"] == pytest.approx(own.total, abs=1e-4)
        assert (one["n_tokens"], one["greedy"]) == (own.n_tokens, own.greedy)
        assert one["n_bytes"] == len(text.encode())
    assert found.usage.completion == sum(one.n_tokens for one in expected)
    body = server.asked[-1]
    assert (body["echo"], body["logprobs"], body["max_tokens"]) == (True, 1, 1)
    assert body["prompt"] == f"{CONTEXT} {OPTIONS[-1]}"


def test_the_endpoint_is_checked_once(server):
    ask(server, prompt(), prompt())
    checks = len(server.asked) - 2 * len(OPTIONS)
    assert 0 < checks <= 11


@pytest.mark.parametrize(
    ("server", "says"),
    [
        ("refuses", "Only no echo is supported"),
        ("no echo", "does not begin with the prompt"),
        ("generated only", "1 log-probabilities for"),
        ("shifted", "has log-probabilities"),
        ("zeros", "has log-probability 0"),
        ("positive", "above 0"),
        ("noise", "has log-probabilities"),
        ("temperature", "has log-probabilities"),
        ("other text", "are not the prompt"),
    ],
    indirect=["server"],
)
def test_a_server_whose_echo_is_wrong_is_refused(server, says):
    with pytest.raises(Permanent, match=says) as caught:
        ask(server, prompt())
    if server.wrong != "refuses":
        assert caught.value.endpoint_wide
        assert "capabilities" in str(caught.value)


@pytest.mark.parametrize("server", ["busy"], indirect=True)
def test_a_check_that_was_cut_off_is_made_again(server):
    with pytest.raises(Transient):
        ask(server, prompt())
    assert ask(server, prompt())


def test_a_text_alone_needs_a_server_with_a_bos(engine):
    for wrong in ("bos", ""):
        server = Server(engine, wrong)
        try:
            alone = prompt("", ["Levothyroxine is taken in the morning."])
            if wrong:
                [found] = ask(server, alone)
                [own] = engine.rolling(["Levothyroxine is taken in the morning."])
                assert found.likelihoods[0]["total"] == pytest.approx(own.total, abs=1e-4)
            else:
                with pytest.raises(Permanent, match="without a context"):
                    ask(server, alone)
        finally:
            server.server.shutdown()
            server.server.server_close()


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"[]",
        b'{"choices":[]}',
        b'{"choices":[{"text":"ab","logprobs":null}],"usage":{}}',
        b'{"choices":[{"text":"ab","logprobs":{"tokens":[1],"token_logprobs":["x"]}}],"usage":{}}',
        (
            b'{"choices":[{"text":"ab","logprobs":{"tokens":["a","b"],"token_logprobs":[null,NaN]}}],'
            b'"usage":{"prompt_tokens":2,"completion_tokens":0}}'
        ),
        (
            b'{"choices":[{"text":7,"logprobs":{"tokens":[],"token_logprobs":[]}}],'
            b'"usage":{"prompt_tokens":0,"completion_tokens":0}}'
        ),
    ],
)
def test_hostile_replies_are_told_apart(reply):
    with pytest.raises(WrongEchoError):
        read_echo(reply, "ab")


def test_parts_of_characters_keep_their_place():
    tokens = ["<s>", "a ", "\ufffd", "\ufffd", "b", "", "é", " c", "!"]
    values = [None, *[-float(n) for n in range(1, 9)]]
    reply = {
        "choices": [
            {
                "text": "a µbé c!",
                "logprobs": {"tokens": tokens, "token_logprobs": values, "top_logprobs": None},
            }
        ],
        "usage": {"prompt_tokens": 8, "completion_tokens": 1},
    }
    echoed = read_echo(json.dumps(reply).encode(), "a µbé c")
    assert echoed.after(2).tokens == (-2.0, -3.0, -4.0, -5.0, -6.0, -7.0)  # from µ on
    assert echoed.after(4).tokens == (-5.0, -6.0, -7.0)  # from é on: both of its parts
    assert echoed.after(1).tokens[0] == -1.0  # a token across the border
    assert echoed.generated == (("!", -8.0),)
    assert echoed.after(2).greedy is None
