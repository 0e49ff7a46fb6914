"""An endpoint writes the key that it was sent wherever it can: not eight characters of it in any
file or output of a run.
"""

import base64
import json
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from urllib.parse import quote

import pytest

from tests import makers
from tests.attack.servers import says
from tests.commands import result_of, start_command

KEY = "sk-SECRETKEY-9f8e7d6c5b4a3QwErTy"
HEADER_KEY = "azure+SECRET/222==aBcDeFgH"


def coded(text, before=""):
    return base64.b64encode((before + text).encode()).decode()


def writings():
    """Yield ways to write the keys: whole, in parts, encoded, put together with other text."""
    for key in (KEY, HEADER_KEY):
        yield key
        yield key[:14]
        yield key[-13:]
        yield quote(key, safe="")
        yield coded(key)
        yield coded(key, "Bearer ")
        yield f"user:{key}@host"


def cut_places():
    """Yield texts that hold a key across every place where messages are cut."""
    for most in (40, 80, 200, 300, 4000):
        for back in (4, 15, 27):
            yield "x" * (most - back) + KEY + "y" * 50


def plants():
    """Yield more than sixty replies of an endpoint that hold the keys."""
    for text in writings():
        yield 200, {}, says(f"The answer is A. {text}")
        yield 422, {}, {"error": {"message": f"bad {text}"}}
    for text in cut_places():
        yield 400, {}, text
        yield 500, {"Retry-After": "0.01"}, text
    for text in (KEY, HEADER_KEY):
        yield 200, {}, text  # no JSON
        yield 200, {}, json.dumps({"choices": text})
        yield 307, {"Location": f"http://x.invalid/{text}?k={text}"}, ""
        yield 403, {}, {"error": {"message": f"flagged by moderation: {text}"}}
        yield 200, {"Content-Encoding": text, "X-Key": text}, says("A")
        yield 200, {}, says(f'{{"answer": "{text}", "explanation": "{text[:20]}"}}')
        yield 429, {"Retry-After": text}, {"error": text}
        yield 401, {"WWW-Authenticate": text}, f"key {text} is not known"
        said = says("A")
        said["choices"][0]["message"]["refusal"] = f"I refuse {text}"
        yield 200, {}, said
        said = says("A")
        said["choices"][0]["finish_reason"] = text
        said["usage"] = {"prompt_tokens": text}
        yield 200, {}, said
        said = says("A")
        said["choices"][0]["logprobs"] = {
            "content": [{"token": c, "logprob": -0.1, "top_logprobs": []} for c in text]
        }
        yield 200, {}, said


PLANTS = list(plants())


def shown_in(data):
    """Return the first eight characters of a key that stand in some bytes, None if none do."""
    text = data.decode("utf-8", "replace")
    for key in (KEY, HEADER_KEY):
        for at in range(len(key) - 7):
            if key[at : at + 8] in text:
                return key[at : at + 8]
    return None


def unpacked(path):
    data = path.read_bytes()
    if path.suffix == ".zst":
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
        return zstd.decompress(data)
    return data


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_keys_planted_everywhere_are_in_no_file_and_no_output(tmp_path, hostile, engine, request):
    number, lock = [0], threading.Lock()

    def respond(path, headers, body):
        assert KEY in str(headers)
        assert HEADER_KEY in str(headers)
        with lock:
            number[0] += 1
            return PLANTS[(number[0] - 1) % len(PLANTS)]

    assert len(PLANTS) >= 60
    server = hostile(respond)
    entry = makers.endpoint(
        f"{server.url}/v1",
        api_key_env="KEY",
        headers_env={"api-key": "HEADER_KEY"},
        capabilities=["chat", "logprobs"],
        logprobs=True,
    )
    makers.write_bank(tmp_path / "bank", makers.many_items(150))
    makers.write_models(tmp_path, entry)
    rules = {"give_up_after": 100_000, "shard": 16}
    plan = makers.write_plan(tmp_path, engine=rules)
    home = Path(tempfile.mkdtemp(prefix="r"))  # Ray's sockets bear no long path
    request.addfinalizer(lambda: shutil.rmtree(home, ignore_errors=True))
    env = os.environ | {
        "KEY": KEY,
        "HEADER_KEY": HEADER_KEY,
        "RAY_TMPDIR": str(home),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    log = tmp_path / "events.log"
    options = ("--engine", engine, "--log", log, "--debug", "--accept-failures")
    code, said, errors = result_of(start_command("run", plan, *options, env=env))
    assert code == 0, errors
    assert number[0] >= len(PLANTS)
    assert shown_in(said.encode()) is None
    assert shown_in(errors.encode()) is None
    looked = 0
    for path in [*tmp_path.rglob("*"), *home.rglob("*")]:
        if path.is_file() and not path.is_socket():
            looked += 1
            assert (found := shown_in(unpacked(path))) is None, (path, found)
    assert looked > 10
    trials = next((tmp_path / "runs").glob("*/trials.jsonl")).read_text()
    assert trials.count("***") > 20  # what was planted came through, but for the keys


def test_an_embedder_and_doctor_say_no_key(cli, tmp_path, hostile, monkeypatch):
    server = hostile(lambda path, headers, body: (200, {}, f"{KEY} is no JSON"))
    makers.write_models(tmp_path, makers.endpoint(f"{server.url}/v1", api_key_env="KEY"))
    monkeypatch.setenv("KEY", KEY)
    code, out, errors = cli("doctor", "--debug")
    assert code == 1
    assert "***" in out
    assert shown_in((out + errors).encode()) is None
