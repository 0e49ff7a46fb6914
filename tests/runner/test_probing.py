"""`medassay doctor` tries what entries declare.

Errors of endpoints say what was asked and what to change.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from tests import makers

from medassay import pipeline
from medassay.errors import IncompleteError, MedassayError
from medassay.runner.progress import Lines, duration_text


class Endpoint(BaseHTTPRequestHandler):
    """Answers at /v1/chat/completions as its rules say."""

    rules: ClassVar = {}

    def log_message(self, *_):
        pass

    def reply(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/v1/models" and "models" in self.rules:
            self.reply(200, {"data": [{"id": name} for name in self.rules["models"]]})
        else:
            self.reply(404, {"detail": "Not Found"})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self.reply(404, {"detail": "Not Found"})
            return
        for key, value in self.rules.get("refuses", {}).items():
            given = [m["role"] for m in asked["messages"]] if key == "role" else [*asked]
            if value in given:
                self.reply(400, {"error": {"message": f"unsupported: {value}"}})
                return
        if "models" in self.rules and asked["model"] not in self.rules["models"]:
            self.reply(404, {"error": {"message": f"The model {asked['model']} does not exist"}})
            return
        message = {"role": "assistant", "content": self.rules.get("says", "A")}
        if "tools" in asked and self.rules.get("calls"):
            call = {"id": "1", "function": {"name": "answer", "arguments": '{"letter": "A"}'}}
            message["tool_calls"] = [call]
        choice = {"finish_reason": "stop", "message": message}
        if asked.get("logprobs") and self.rules.get("logprobs"):
            choice["logprobs"] = {"content": [{"token": "A", "logprob": -0.1, "top_logprobs": []}]}
        usage = {"prompt_tokens": 3, "completion_tokens": 1}
        self.reply(200, {"choices": [choice], "usage": usage})


@pytest.fixture
def serve():
    servers = []

    def start(**rules):
        handler = type("Ruled", (Endpoint,), {"rules": rules})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def doctor(cli, folder, *entries):
    makers.write_models(folder, *entries)
    code, out, _ = cli("doctor", "--json")
    return code, {row["model"]: row["state"] for row in json.loads(out)["models"]}


def test_what_an_entry_declares_is_tried(serve, cli, tmp_path):
    good = serve(calls=True, logprobs=True, says='{"letter": "A"}') + "/v1"
    poor = serve() + "/v1"
    declared = {"logprobs": True, "capabilities": ["chat", "tools", "structured"]}
    code, states = doctor(
        cli,
        tmp_path,
        makers.endpoint(good, "good", **declared),
        makers.endpoint(poor, "poor", **declared),
    )
    assert code == 1
    assert states["good"] == 'answers \'{"letter": "A"}\''
    for said in (
        "answers 'A'",
        'no log-probabilities although "logprobs" is true: take it out',
        'called no tool when it was told to: take "tools" out',
        'does not keep to a JSON schema: take "structured" out',
    ):
        assert said in states["poor"]
    code, states = doctor(
        cli, tmp_path, makers.endpoint(poor, "poor", capabilities=["chat", "likelihood"])
    )
    assert 'declares "likelihood", but an endpoint needs protocol "completions"' in states["poor"]


@pytest.mark.parametrize(
    ("refuses", "entry", "mend"),
    [
        ({"key": "max_tokens"}, {}, '"token_parameter": "max_completion_tokens"'),
        ({"key": "temperature"}, {}, '"no_temperature" among its capabilities'),
        ({"role": "developer"}, {"system_role": "developer"}, '"system_role": "system"'),
        ({"role": "system"}, {"system_line": "Be brief."}, '"system_role": "developer"'),
        ({"key": "seed"}, {}, '"sends_seed": false'),
    ],
)
def test_doctor_proposes_the_mend(serve, cli, tmp_path, refuses, entry, mend):
    url = serve(refuses=refuses) + "/v1"
    code, states = doctor(cli, tmp_path, makers.endpoint(url, **entry))
    assert code == 1
    assert states["m"].endswith(f"; it answers with {mend} in its entry")


def failing(folder, entry):
    """Return the error of a run of one item."""
    makers.write_bank(folder / "bank", makers.many_items(1))
    makers.write_models(folder, entry)
    with pytest.raises(MedassayError) as caught:
        pipeline.run(makers.write_plan(folder), secrets={})
    assert isinstance(caught.value, IncompleteError)
    [run] = [p for p in (folder / "runs").iterdir() if p.is_dir()]
    text = "".join(path.read_text(errors="replace") for path in run.rglob("*") if path.is_file())
    return f"{caught.value} {text}"


def test_a_404_names_the_address_that_was_asked(serve, tmp_path):
    host = serve(models=["m"])
    said = failing(tmp_path, makers.endpoint(host))
    assert f"asked was {host}/chat/completions: 'url' should mostly end in /v1" in said


def test_a_url_with_the_whole_path_is_explained(serve, cli, tmp_path):
    url = serve() + "/v1/chat/completions"
    _, states = doctor(cli, tmp_path, makers.endpoint(url))
    assert "'url' is the address before /chat/completions" in states["m"]
    assert re.search(r'it answers with "url": "http://127[^"]*/v1" in its entry', states["m"])


def test_a_refused_model_lists_those_that_there_are(serve, tmp_path):
    url = serve(models=["qwen-2", "llama-3"]) + "/v1"
    said = failing(tmp_path, makers.endpoint(url, model="lama-3"))
    assert "it has no model 'lama-3', but qwen-2, llama-3: put one of them into 'model'" in said


def test_durations_are_told_in_minutes_and_hours(capsys):
    assert [duration_text(s) for s in (0, 99, 100, 5_940, 103_498)] == [
        *("0 s", "99 s", "2 min", "99 min", "28 h 45 min"),
    ]
    lines = Lines(3000, 0, every=0.0)
    lines.money = lambda: 0.125
    lines.advance("m", "d", "failed")
    assert capsys.readouterr().err.endswith(", 0.1250 in money\n")
