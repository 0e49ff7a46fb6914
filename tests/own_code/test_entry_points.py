"""What an installed package adds: a real package, installed into a folder of its own."""

import json
import os
import subprocess
import sys

import pytest
from tests import makers
from tests.commands import result_of, start_command
from tests.runner.mixed_plans import text_items

MODULE = """
from medassay.core.records.completion import Completion


def score(item, answer):
    return float(answer.value == "hello")


def read(item, text):
    return text.strip("*")


class Grader:
    def prompt(self, item, answer):
        return [{"role": "user", "content": answer.value}]

    def verdict(self, item, answer, reply):
        return 0.5


class Greeter:
    def __init__(self, spec, secrets):
        self.spec = spec

    async def complete(self, prompt, sampling, *, repeat):
        return Completion(text="**hello**")

    async def close(self):
        pass


def load(path):
    for n, line in enumerate(path.read_text().splitlines()):
        item = {"id": f"q{n}", "question": line, "reference": "hello", "source": "us"}
        yield {**item, "domain": "general", "answer_type": "open"}


TASK = {"like": "text", "scorer": "hello", "parser": "stars", "template": "ask.txt"}
"""
POINTS = """
[medassay.scorers]
hello = hello_eval:score
[medassay.parsers]
stars = hello_eval:read
[medassay.graders]
half = hello_eval:Grader
[medassay.providers]
greeter = hello_eval:Greeter
[medassay.banks]
lines = hello_eval:load
[medassay.tasks]
greeting = hello_eval:TASK
"""
GREETER = {"id": "m", "provider": "greeter", "location": "local"}


@pytest.fixture
def package(tmp_path):
    """Install a package by writing what an installer writes; return the environment with it."""
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "hello_eval.py").write_text(MODULE)
    (site / "ask.txt").write_text("{{ question }} Say hello.")
    info = site / "hello_eval-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hello-eval\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(POINTS)
    (info / "RECORD").write_text("hello_eval.py,,\n")
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH", ""))))
    return os.environ | {"PYTHONPATH": path}


def medassay(package, folder, *arguments):
    script = "import os, sys; os.chdir(sys.argv.pop(1)); from medassay.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder), *map(str, arguments)],
        env=package | {"NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def sealed(folder):
    [run] = (folder / "runs").iterdir()
    return [json.loads(line) for line in (run / "scores.jsonl").read_text().splitlines()], run


@pytest.mark.parametrize(
    "task", ['task = "greeting"', '[task]\nlike = "text"\nscorer = "hello"\nparser = "stars"']
)
def test_provider_bank_task_scorer_and_parser_of_a_package(package, tmp_path, task):
    (tmp_path / "q.txt").write_text("How are you?\nWho is there?\n")
    code, out, errors = medassay(
        package, tmp_path, "bank", "import", "lines", "q.txt", "--to", "bank"
    )
    assert code == 0, errors
    makers.write_models(tmp_path, GREETER)
    (tmp_path / "plan.toml").write_text(f'banks = ["bank"]\nmodels = ["m"]\n{task}\n')
    code, _, errors = medassay(package, tmp_path, "run", "plan.toml")
    assert code in (2, 3)
    assert "--trust-code" in errors
    code, _, errors = medassay(package, tmp_path, "run", "plan.toml", "--trust-code")
    assert code == 0, errors
    scores, run = sealed(tmp_path)
    assert [score["score"] for score in scores] == [1, 1]
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["own_code"]["parts"]["scorer"]["package"] == "hello-eval 1.2"
    code, out, errors = medassay(package, tmp_path, "verify", run)
    assert "own code hello_eval:read@" in out
    assert "hello_eval:score@" in out
    code, out, errors = medassay(package, tmp_path, "verify", "--trust-code", run)
    assert "scores recomputed" in out, errors
    assert medassay(package, tmp_path, "publish", run, "--to", "site", "--yes")[0] == 0
    assert "hello-eval 1.2" in (tmp_path / "site/index.html").read_text()


def test_a_grader_of_a_package(package, tmp_path):
    judge = {"id": "judge", "provider": "fake", "script": {"reply": "x"}}
    makers.workspace(
        tmp_path, makers.open_items(2), GREETER, task={"grader": "half"}, judges=["judge"]
    )
    makers.write_models(tmp_path, GREETER, judge)
    code, _, errors = medassay(package, tmp_path, "run", "plan.toml", "--trust-code")
    assert code == 0, errors
    assert [score["score"] for score in sealed(tmp_path)[0]] == [0.5, 0.5]


def test_names_that_no_package_adds_are_told_with_those_that_are(package, tmp_path):
    plan = makers.workspace(tmp_path, text_items(1), GREETER, task={"scorer": "goodbye"})
    code, _, errors = medassay(package, tmp_path, "run", plan)
    assert code == 3
    assert "no installed package has an entry point of that name" in errors
    assert "known: hello" in errors
    makers.write_models(tmp_path, {**GREETER, "provider": "nobody"})
    code, _, errors = medassay(package, tmp_path, "run", plan, "--trust-code")
    assert code == 3
    assert "greeter" in errors
    process = start_command("bank", "list", env=package)
    assert "hello-eval 1.2" in result_of(process)[1]


def test_a_package_that_cannot_be_imported_is_named(package, tmp_path):
    (tmp_path / "site-packages/hello_eval.py").write_text("import nowhere_at_all\n")
    plan = makers.workspace(tmp_path, text_items(1), GREETER)
    code, _, errors = medassay(package, tmp_path, "run", plan)
    assert code == 3
    assert (
        "entry point 'greeter' of medassay.providers (hello-eval 1.2): cannot be imported" in errors
    )
