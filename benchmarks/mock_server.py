"""A mock endpoint of the OpenAI protocol, for benchmarks and fault tests.

    python benchmarks/mock_server.py --port 8901 --delay-ms 100 --fail 0.2 --log asked.txt

One asyncio.Protocol a connection, no framework, so that the client is what is measured. Replies are
a letter that depends on the prompt, or a judge's verdicts or scores where the prompt asks for
these; a score of an answer alone is one higher than in a batch, and with `top_logprobs` the next
higher has a quarter of the probability. `--fail P` makes a share P of the requests fail, in turn by
429 with Retry-After, 500, a cut connection, a malformed body, and (with `--hang`) silence. Every
prompt that is answered is logged by the SHA-256 of its last message, so that a test can count them.
`GET /stats` says how many requests there were.
"""

import argparse
import asyncio
import hashlib
import json
import math
import random
import re
import sys


class Endpoint(asyncio.Protocol):
    """Answers each request of a kept-alive connection after the delay."""

    def __init__(self, options, stats, random_source):
        self.options, self.stats, self.random = options, stats, random_source
        self.buffer = b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.buffer += data
        while True:
            head_end = self.buffer.find(b"\r\n\r\n")
            if head_end < 0:
                return
            head = self.buffer[:head_end]
            length = next(
                (
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                ),
                0,
            )
            end = head_end + 4 + length
            if len(self.buffer) < end:
                return
            body, self.buffer = self.buffer[head_end + 4 : end], self.buffer[end:]
            self.handle(head, body)

    def handle(self, head, body):
        if head.startswith(b"GET /stats"):
            self.send(json.dumps(self.stats).encode())
            return
        if head.startswith(b"GET"):
            self.send(b'{"object":"list","data":[]}')
            return
        self.stats["requests"] += 1
        delay = self.options.delay_ms / 1000
        if self.random.random() < self.options.fail:
            self.stats["failed"] += 1
            asyncio.get_running_loop().call_later(delay, self.fail, self.stats["failed"])
        elif delay:
            asyncio.get_running_loop().call_later(delay, self.answer, body)
        else:
            self.answer(body)

    def fail(self, number):
        kind = number % (5 if self.options.hang else 4)
        if kind == 0:
            self.send(
                b'{"error":{"message":"slow down"}}',
                b"429 Too Many Requests",
                b"Retry-After: 0.05\r\n",
            )
        elif kind == 1:
            self.send(b'{"error":{"message":"broken"}}', b"500 Internal Server Error")
        elif kind == 2:
            self.transport.abort()
        elif kind == 3:
            self.send(b'{"choices": [')

    def answer(self, body):
        request = json.loads(body)
        prompt = request["messages"][-1]["content"] if "messages" in request else request["prompt"]
        digest = hashlib.sha256(prompt.encode()).hexdigest()
        if self.options.log:
            self.options.log.write(digest + "\n")
            self.options.log.flush()
        self.stats["answered"] += 1
        text = self.options.text or "ABCD"[int(digest[:2], 16) % 4]
        if '"extra_false_claims"' in prompt or '"verdict"' in prompt:
            text = verdicts(prompt, digest, request["model"], self.options.bad_verdicts)
        tokens = scores(prompt) if "question_id,score" in prompt else []
        text = "".join(tokens) or text
        if "messages" in request:
            choice = {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text},
            }
        else:
            choice = {"index": 0, "finish_reason": "stop", "text": text}
        if "top_logprobs" in request:
            choice["logprobs"] = {"content": [likelihood(token) for token in tokens]}
        usage = {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}
        if self.stats["answered"] <= self.options.cut:
            usage["completion_tokens"] = request["max_tokens"]
            choice["finish_reason"] = ("length", "stop")[self.stats["answered"] % 2]
        self.send(
            json.dumps(
                {"id": "mock", "model": "mock", "choices": [choice], "usage": usage}
            ).encode()
        )

    def send(self, body, status=b"200 OK", extra=b""):
        if not self.transport.is_closing():
            self.transport.write(
                b"HTTP/1.1 "
                + status
                + b"\r\nContent-Type: application/json\r\n"
                + extra
                + b"Content-Length: "
                + str(len(body)).encode()
                + b"\r\n\r\n"
                + body
            )


async def serve(options):
    stats = {"requests": 0, "answered": 0, "failed": 0}
    source = random.Random(options.seed)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Endpoint(options, stats, source), "127.0.0.1", options.port, backlog=4096
    )
    print(f"listening on {server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


def scores(prompt):
    """Reply as a judge of G-Eval does, token by token."""
    rows = re.findall(r"(?m)^(q\d*),(.*?)\r?$", prompt)
    tokens = ["question", "_id", ",", "score"]
    for name, row in rows:
        score = int(hashlib.sha256(row.encode()).hexdigest()[:4], 16) % 8 + (name == "q")
        tokens += ["\n", name, ",", str(score)]
    return tokens


def likelihood(token):
    """Return the log-probabilities at one token; at a score the next higher one is likely too."""
    top = [{"token": token, "logprob": math.log(0.75)}]
    if token.isdigit():
        top.append({"token": str(int(token) + 1), "logprob": math.log(0.25)})
    return {**top[0], "top_logprobs": top}


def verdicts(prompt, digest, model, bad):
    """Reply as a judge of target facts does.

    A share of the answers gets nonsense from one judge.
    """
    facts = re.findall(r"(?m)^\[\S+\] .*$", prompt)  # the same when it is asked again
    drawn = int(hashlib.sha256("".join(facts).encode()).hexdigest()[:8], 16) / 16**8
    if model == "bad" and drawn < bad:
        return "I would say this answer is quite good."
    kinds = ("entail", "missing", "contradict")
    facts = [
        {"id": name, "verdict": kinds[int(digest[n % 60 : n % 60 + 2], 16) % 3], "evidence": ""}
        for n, name in enumerate(re.findall(r"(?m)^\[(\S+)\] ", prompt))
    ]
    return json.dumps({"facts": facts, "extra_false_claims": []})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument("--fail", type=float, default=0, help="share of requests that fail")
    parser.add_argument(
        "--bad-verdicts", type=float, default=0, help="share of nonsense from the judge 'bad'"
    )
    parser.add_argument("--hang", action="store_true", help="let some failures be silence")
    parser.add_argument(
        "--text", default="", help="the reply; default: a letter that depends on the prompt"
    )
    parser.add_argument(
        "--cut",
        type=int,
        default=0,
        help="so many replies use all tokens that they may have; every other one says so",
    )
    parser.add_argument("--log", type=argparse.FileType("a"), default=None)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        asyncio.run(serve(options))
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
