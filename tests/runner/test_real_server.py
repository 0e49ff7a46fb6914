"""Open questions of one's own against a server of the OpenAI protocol that nobody here wrote:
`transformers serve`.
"""

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import medassay
from medassay.model.embedded import embedded_folder

QUESTIONS = [
    (
        "How should a suspected stroke be recognised?",
        "Sudden weakness of face, arm or leg, or speech.",
    ),
    (
        "What does a low potassium do to the heart?",
        "It lengthens repolarisation and favours arrhythmia.",
    ),
    ("Why is aspirin avoided in children with fever?", "Because of Reye's syndrome."),
    ("What is the first step in anaphylaxis?", "Adrenaline into the muscle of the thigh."),
    ("How is an opioid overdose reversed?", "With naloxone, and help for breathing."),
    ("How is type 1 diabetes treated?", "With insulin."),
]
CHOICES = 4  # questions with options beside the open ones
TOKENS = 8


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def server():
    """Serve SmolLM2-135M; returns its address and the name of its model."""
    folder, port = str(embedded_folder("embedded:smollm2")), free_port()
    program = str(Path(sys.executable).with_name("transformers"))
    options = ["serve", folder, "--port", str(port), "--device", "cpu", "--host", "127.0.0.1"]
    process = subprocess.Popen(
        [program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        ends = time.monotonic() + 240
        while time.monotonic() < ends:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except (urllib.error.URLError, OSError):
                assert process.poll() is None, "the server ended"
                time.sleep(1)
        yield f"http://127.0.0.1:{port}", folder
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def recorded(server):
    """Stand before the server and keep what is sent.

    Returns the address, the model, and the bodies with the replies to them.
    """
    address, model = server
    kept = []

    class Between(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = urllib.request.Request(
                address + self.path, body, {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=300) as reply:
                said = reply.read()
            kept.append((json.loads(body), json.loads(said)))
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

    between = ThreadingHTTPServer(("127.0.0.1", 0), Between)
    threading.Thread(target=between.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{between.server_port}/v1", model, kept
    between.shutdown()
    between.server_close()


def sheet_of(folder):
    """Write the sheet of a newcomer as Excel does in Germany: choice questions and open ones."""
    rows = ["Nr;Frage;A;B;C;D;Richtig;Musterantwort"]
    for n in range(CHOICES):
        rows.append(f"{n};Was hebt die Wirkung von Opioiden auf ({n})?;Ruhe;Naloxon;Öl;Tee;B;")
    for n, (question, answer) in enumerate(QUESTIONS, CHOICES):
        rows.append(f'{n};{question};;;;;;"{answer}"')
    (folder / "fragen.csv").write_bytes(("\r\n".join(rows) + "\r\n").encode("cp1252"))


@pytest.mark.local_model
def test_a_german_sheet_becomes_a_published_board_in_five_commands(tmp_path, recorded, cli):
    url, model, kept = recorded
    sheet_of(tmp_path)

    def run(*arguments):
        code, out, errors = cli(*arguments)
        assert code == 0, errors
        return out

    run("bank", "import", "csv", "fragen.csv", "--name", "station", "--language", "de")
    run("init", "--bank", "station", "--endpoint", url, "--model", model)
    models = json.loads((tmp_path / "models.json").read_text())
    models["models"][0] |= {"max_tokens": TOKENS, "timeout": 300}  # fewer, for the time it takes
    (tmp_path / "models.json").write_text(json.dumps(models))
    out = run("run", "plan.toml")
    [place] = (tmp_path / "runs").iterdir()
    run("publish", place, "--to", "site")
    run("verify", "site")

    # No text ends a reply, and none is cut without a mark.
    assert len(kept) == CHOICES + len(QUESTIONS)
    assert not any("stop" in body for body, _ in kept)
    cut = sum(
        reply["choices"][0]["finish_reason"] == "length"
        or reply["usage"]["completion_tokens"] >= TOKENS
        for _, reply in kept
    )
    assert cut > 0  # so few tokens do not suffice
    sealed = medassay.open_run(place)
    name = models["models"][0]["id"]
    rows = {
        row["metric"]: row
        for row in medassay.leaderboard(sealed).domains["overall"]
        if row["model"] == name
    }
    assert {metric: row["n"] for metric, row in rows.items()} == {
        "accuracy": CHOICES,
        "chrf": len(QUESTIONS),
    }
    assert sum(row["cut_off"] for row in rows.values()) == cut
    assert "replies were cut at max_tokens" in out
    trials = [json.loads(line) for line in (place / "trials.jsonl").read_text().splitlines()]
    asked = [trial for trial in trials if trial["model"] == name]
    replies = {reply["choices"][0]["message"]["content"].strip() for _, reply in kept}
    assert {t["text"].strip() for t in asked} == replies  # whole, whatever stands in them
    assert sum(t["finish"] == "length" for t in asked) == cut
    # German questions are asked in German.
    assert any("Antwort" in body["messages"][-1]["content"] for body, _ in kept)
