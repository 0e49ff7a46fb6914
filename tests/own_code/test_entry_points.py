"""What an installed package adds: a real package, installed into a folder of its own."""

import json
import os
import subprocess
import sys

import pytest
from tests import makers
from tests.commands import result_of, start_command
from tests.runner.mixed_plans import text_items

from medassay.core.entry_point import all_entry_points

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


def find(queries, k):
    return [[f"Passage {n} on {query}" for n in range(5)] for query in queries]


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
[medassay.retrievers]
mine = hello_eval:find
[medassay.tasks]
greeting = hello_eval:TASK
"""
GREETER = {"id": "m", "provider": "greeter", "location": "local"}


@pytest.fixture
def package(tmp_path):
    """Install a package by writing what an installer writes; return the environment with it."""
    site = tmp_path / "site-packages"
    path = makers.install_package(site, "hello_eval", MODULE, POINTS, version="1.2")
    (site / "ask.txt").write_text("{{ question }} Say hello.")
    return os.environ | {"PYTHONPATH": path}


@pytest.fixture
def command(package, tmp_path, cli, monkeypatch):
    """Run commands in this process, as one in which the package is installed."""
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    monkeypatch.setenv("PYTHONPATH", package["PYTHONPATH"])  # of the processes of own code
    all_entry_points.cache_clear()
    yield cli
    sys.modules.pop("hello_eval", None)
    all_entry_points.cache_clear()


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


def test_scorer_and_parser_of_a_package_in_a_task_of_the_plan(command, tmp_path):
    parts = {"like": "text", "scorer": "hello", "parser": "stars"}
    makers.workspace(tmp_path, text_items(2), GREETER, task=parts)
    code, _, errors = command("run", "plan.toml", "--trust-code")
    assert code == 0, errors
    assert [score["score"] for score in sealed(tmp_path)[0]] == [1, 1]


def test_provider_bank_task_scorer_and_parser_of_a_package(package, tmp_path):
    (tmp_path / "q.txt").write_text("How are you?\nWho is there?\n")
    code, out, errors = medassay(
        package, tmp_path, "bank", "import", "lines", "q.txt", "--to", "bank"
    )
    assert code == 0, errors
    makers.write_models(tmp_path, GREETER)
    (tmp_path / "plan.toml").write_text('banks = ["bank"]\nmodels = ["m"]\ntask = "greeting"\n')
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


def test_a_grader_of_a_package(command, tmp_path):
    judge = {"id": "judge", "provider": "fake", "script": {"reply": "x"}}
    makers.workspace(
        tmp_path, makers.open_items(2), GREETER, task={"grader": "half"}, judges=["judge"]
    )
    makers.write_models(tmp_path, GREETER, judge)
    code, _, errors = command("run", "plan.toml", "--trust-code")
    assert code == 0, errors
    assert [score["score"] for score in sealed(tmp_path)[0]] == [0.5, 0.5]


def test_a_retriever_of_a_package_is_searched_once(command, tmp_path):
    makers.workspace(
        tmp_path,
        text_items(3),
        GREETER,
        task="text",
        settings=["zero_shot", "rag"],
        retrieval={"retriever": "mine", "k": 2},
    )
    code, _, errors = command("run", "plan.toml", "--plan")
    assert code == 0, errors
    code, _, errors = command("run", "plan.toml")
    assert code == 3
    assert "retriever 'mine' (hello-eval 1.2 mine" in errors
    assert "--trust-code" in errors
    code, _, errors = command("run", "plan.toml", "--trust-code")
    assert code == 0, errors
    _, run = sealed(tmp_path)
    trials = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    first = next(t["retrieved"] for t in trials if t["setting"] == "rag")
    assert first == [["mine", 0], ["mine", 1]]
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["retrieval"]["method"] == "retriever mine"
    assert command("verify", run)[0] == 0
    passages = next((tmp_path / "retrieved").glob("passages-*"))
    before = passages.read_bytes()
    (tmp_path / "site-packages/hello_eval.py").touch()
    assert command("run", "plan.toml", "--trust-code", "--fresh")[0] == 0
    assert passages.read_bytes() == before


def test_a_retriever_that_returns_something_else_is_named(command, tmp_path):
    module = tmp_path / "site-packages/hello_eval.py"
    module.write_text(
        module.read_text().replace("for query in queries]", "for query in queries][1:]")
    )
    makers.workspace(
        tmp_path,
        text_items(2),
        GREETER,
        task="text",
        settings=["rag"],
        retrieval={"retriever": "mine"},
    )
    code, _, errors = command("run", "plan.toml", "--trust-code")
    assert code == 3
    assert "retriever 'mine': returned" in errors


def test_names_that_no_package_adds_are_told_with_those_that_are(command, package, tmp_path):
    plan = makers.workspace(tmp_path, text_items(1), GREETER, task={"scorer": "goodbye"})
    code, _, errors = command("run", plan)
    assert code == 3
    assert "no installed package has an entry point of that name" in errors
    assert "known: hello" in errors
    makers.write_models(tmp_path, {**GREETER, "provider": "nobody"})
    code, _, errors = command("run", plan, "--trust-code")
    assert code == 3
    assert "greeter" in errors
    process = start_command("bank", "list", env=package)
    assert "hello-eval 1.2" in result_of(process)[1]


def test_a_package_that_cannot_be_imported_is_named(command, tmp_path):
    (tmp_path / "site-packages/hello_eval.py").write_text("import nowhere_at_all\n")
    plan = makers.workspace(tmp_path, text_items(1), GREETER)
    code, _, errors = command("run", plan)
    assert code == 3
    assert (
        "entry point 'greeter' of medassay.providers (hello-eval 1.2): cannot be imported" in errors
    )


WORDS = {
    "raises": ("raise RuntimeError('no')", "RuntimeError: no"),
    "nothing": ("return None", "returned NoneType; expected a medassay.Completion"),
    "text": ("return 'hello'", "Completion"),
    "no text": ("return Completion(text=None)", "other types: Expected `str`, got `null`"),
    "no count": ("return Completion(text='hello', usage=3)", "Expected `object`, got `int`"),
    "strange": ("return Completion(text='hello', finish='done')", "'done'"),
    "is gone": ("raise ConnectionResetError('gone')", "gone"),
}


@pytest.mark.parametrize("how", WORDS)
def test_a_hostile_provider_fails_its_own_trials(command, tmp_path, how):
    body, why = WORDS[how]
    module = tmp_path / "site-packages/hello_eval.py"
    module.write_text(
        module.read_text().replace(
            'return Completion(text="**hello**")',
            f'if "rule 1" in str(prompt.messages):\n            {body}\n'
            '        return Completion(text="hello")',
        )
    )
    makers.workspace(tmp_path, text_items(3), GREETER, task="text")
    code, _, errors = command("run", "plan.toml", "--accept-failures")
    assert code == 0, errors
    _, run = sealed(tmp_path)
    trials = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    assert [trial["outcome"] for trial in trials] == ["answered", "failed", "answered"]
    assert why in trials[1]["reason"]


def test_a_provider_that_cannot_be_made_is_named(command, tmp_path):
    module = tmp_path / "site-packages/hello_eval.py"
    module.write_text(module.read_text().replace("self.spec = spec", "raise ValueError('no url')"))
    makers.workspace(tmp_path, text_items(1), GREETER, task="text")
    code, _, errors = command("run", "plan.toml")
    assert code == 3
    assert "provider 'greeter' cannot be made (ValueError: no url)" in errors


BANKS = {
    "raises": ("raise KeyError('text')", "cannot read q.txt (KeyError: 'text')"),
    "returns nothing": ("return None", "cannot read q.txt (TypeError"),
    "no mapping": ("return [3]", "item 1: expected a mapping"),
    "no id": ("return [{'question': 'x'}]", "an id among them"),
    "no text": ("return [{'id': 'a', 'question': object()}]", "'a'"),
}


@pytest.mark.parametrize("how", BANKS)
def test_a_hostile_reader_of_banks_is_one_clear_error(command, tmp_path, how):
    body, why = BANKS[how]
    module = tmp_path / "site-packages/hello_eval.py"
    text = module.read_text().replace(
        "def load(path):", f"def load(path):\n    {body}\n\ndef old(path):"
    )
    module.write_text(text)
    (tmp_path / "q.txt").write_text("How are you?\n")
    code, _, errors = command("bank", "import", "lines", "q.txt", "--to", "bank")
    assert code == 3, errors
    assert why in errors
    assert not (tmp_path / "bank").exists()
