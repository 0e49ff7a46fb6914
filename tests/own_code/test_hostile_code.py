"""Code of a user that is hostile, wrong or killed harms its own trials alone."""

import json
import time

import pytest
from tests import makers
from tests.commands import result_of, start_command, wait_for_requests
from tests.own_code.own_plans import GRADER, READ, SCORE, content, lines, scores, workspace
from tests.runner.mixed_plans import text_items

import medassay
from medassay.errors import InputError

# What code did wrong is a warning in Python; a test of its own looks at it.
pytestmark = pytest.mark.filterwarnings("ignore:.* without a score. own code:UserWarning")


HOSTILE = {
    "raises": ("raise ValueError('no' * 500)", "ValueError: no"),
    "nan": ("return float('nan')", "score is nan; expected a number from 0 to 1"),
    "text": ("return 'good'", "score is 'good'"),
    "beyond": ("return 2.0", "score is 2.0"),
    "nothing": ("return None", "score is None"),
    "hangs": ("import time; time.sleep(60)", "did not return within 1 s"),
    "exits": ("import os; os._exit(3)", "ended its process"),
    "leaves": ("raise SystemExit(0)", "SystemExit"),
    "writes": (
        "import os\n    for fd in range(3, 9):\n        try: os.write(fd, b'x' * 99)\n"
        "        except OSError: pass\n    return 1.0",
        "wrote into its answers",
    ),
    "object": ("return object()", "a object"),
    "strange": ("return {'score': 1, 'more': 1}", "declare it in [task.columns]"),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_hostile_code_harms_its_own_trials_alone(tmp_path, how, capfd):
    body, why = HOSTILE[how]
    code = f"""
def score(item, answer):
    print("noise on standard output")
    if item.id != "t001":
        return 0.5
    {body}
"""
    plan = workspace(
        tmp_path,
        text_items(4),
        makers.fake(reply="Sudden"),
        code=code,
        task={"scorer": "my.py:score", "seconds": 1.0},
    )
    began = time.monotonic()
    run = medassay.run(plan, secrets={}, trust_code=True)
    assert time.monotonic() - began < 30
    assert scores(run) == [0.5, None, 0.5, 0.5]
    reason = lines(run)[1]["because"]
    assert reason.startswith("own code my.py:score: ")
    assert why in reason
    assert len(reason) < 300
    assert "noise" not in capfd.readouterr().out
    assert content(run.path)
    assert medassay.publish(run, tmp_path / "site")


def test_a_hostile_parser_leaves_a_trial_unread_and_without_score(tmp_path):
    code = """
        def read(item, text):
            if item.id == "q00001":
                return 1 / 0
            if item.id == "q00002":
                return 7
            return "A"
        """
    plan = workspace(
        tmp_path,
        makers.many_items(4),
        makers.fake(reply="x"),
        code=code,
        task={"parser": "my.py:read"},
    )
    run = medassay.run(plan, secrets={}, trust_code=True)
    assert scores(run) == [1, None, None, 0]
    trials = lines(run, "trials.jsonl")
    assert trials[1]["reason"] == "own code my.py:read: ZeroDivisionError: division by zero"
    assert trials[2]["reason"].startswith("own code my.py:read: returned 7; expected a text")
    assert content(run.path, trust_code=True).endswith("scores recomputed")


def test_a_value_that_our_scorer_cannot_take_is_the_parsers_error(tmp_path):
    plan = workspace(
        tmp_path,
        [
            {
                "id": f"n{i}",
                "domain": "law",
                "question": "How many?",
                "source": "us",
                "range": {"lo": 1, "hi": 2},
            }
            for i in "12"
        ],
        makers.fake(reply="x"),
        code="def read(item, text):\n    return 'no number'\n",
        task={"like": "closed", "parser": "my.py:read"},
    )
    run = medassay.run(plan, secrets={}, trust_code=True)
    assert scores(run) == [None, None]
    assert lines(run)[0]["because"] == "own code my.py:read: range cannot score it"


def test_a_hostile_grader_fails_its_own_verdicts(tmp_path):
    code = GRADER.replace(
        "mark = reply", "assert item.id != 'open-001', 'mine'\n        mark = reply"
    )
    judge = {"id": "judge", "provider": "fake", "script": {"reply": "I give 1"}}
    plan = workspace(
        tmp_path,
        makers.open_items(8),
        makers.fake(reply="Rule binds courts."),
        code=code,
        judges=["judge"],
        task={"grader": "my.py:MyGrader"},
    )
    makers.write_models(tmp_path, makers.fake(reply="Rule binds courts."), judge)
    from medassay import pipeline

    run = pipeline.run(plan, secrets={}, trust_code=True, accept_failures=True)
    assert scores(run).count(None) == 1
    [verdict] = [v for v in lines(run, "verdicts.jsonl") if v["outcome"] == "invalid"]
    assert verdict["reason"] == "own code my.py:MyGrader: AssertionError: mine"


REFUSED = {
    "def score(item):\n    return 1\n": "'score' is called with 2 arguments",
    "score = 3\n": "'score' is int; expected a function",
    "async def score(item, answer):\n    return 1\n": "is asynchronous",
    "def other(item, answer):\n    return 1\n": "has no 'score'",
    "def score(:\n": "SyntaxError",
    "import nowhere_at_all\n": "ModuleNotFoundError",
    "raise SystemExit(5)\n": "SystemExit: 5",
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_cannot_work_is_refused_before_anything_is_asked(tmp_path, code):
    model = makers.fake(reply="x")
    plan = workspace(tmp_path, text_items(2), model, code=code, task={"scorer": "my.py:score"})
    with pytest.raises(InputError) as error:
        medassay.run(plan, secrets={}, trust_code=True)
    assert "plan: 'task.scorer': own code my.py:score: " in str(error.value)
    assert REFUSED[code] in str(error.value)
    assert not list(tmp_path.glob("responses/**/*.zst"))


def test_own_code_sees_no_key(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "sk-" + "a1" * 12)
    code = "import os\ndef score(item, answer):\n    return float('MY_API_KEY' in os.environ)\n"
    plan = workspace(
        tmp_path, text_items(1), makers.fake(reply="x"), code=code, task={"scorer": "my.py:score"}
    )
    assert scores(medassay.run(plan, secrets={}, trust_code=True)) == [0]


KILLED = {
    "scorer": {"task": {"scorer": "my.py:score"}},
    "parser": {"task": {"parser": "my.py:read", "template": "ask.txt"}},
    "grader": {"task": {"grader": "my.py:MyGrader", "scale": [0, 5]}, "judges": ["judge"]},
    "schema": {"schema": "letter.json"},
}


@pytest.mark.slow
@pytest.mark.parametrize("role", KILLED)
def test_a_killed_run_goes_on_and_asks_nothing_twice(tmp_path, mock_server, role):
    log = tmp_path / "asked"
    url = mock_server("--delay-ms", 40, "--log", log)
    code = SCORE.replace('"words"', '"score"') + GRADER + READ
    items = {
        "scorer": text_items(60),
        "parser": makers.many_items(60),
        "grader": makers.open_items(60),
        "schema": [
            {**_without_facts(item), "document": {"a": "b"}} for item in makers.open_items(60)
        ],
    }[role]
    model = makers.endpoint(url, concurrency=2)
    plan = workspace(tmp_path, items, model, code=code, **KILLED[role])
    (tmp_path / "ask.txt").write_text("{{ question }} {{ options }}")
    letter = {"type": "object", "properties": {"a": {"type": "string"}}}
    (tmp_path / "letter.json").write_text(json.dumps(letter))
    makers.write_models(tmp_path, model, makers.endpoint(url, "judge", concurrency=2, family="f"))
    process = start_command("run", plan, "--trust-code", "--accept-failures")
    wait_for_requests(log, 80 if role == "grader" else 20, process)
    process.kill()
    process.communicate()
    code_, _, errors = result_of(start_command("run", plan, "--trust-code", "--accept-failures"))
    assert code_ == 0, errors
    [folder] = (tmp_path / "runs").iterdir()
    asked = len(log.read_text().split())
    assert asked <= (60 + 60 * 3 if role == "grader" else 60) + 4
    assert content(folder, trust_code=True)


def _without_facts(item):
    return {key: value for key, value in item.items() if key != "facts"}


@pytest.mark.slow
def test_a_killed_suite_with_a_benchmark_of_ones_own_goes_on(tmp_path, mock_server):
    log = tmp_path / "asked"
    model = makers.endpoint(mock_server("--delay-ms", 40, "--log", log), concurrency=2)
    workspace(tmp_path, text_items(60), model, code=SCORE.replace('"words"', '"score"'))
    (tmp_path / "suite.toml").write_text(
        f"models = ['{model['id']}']\n[[benchmark]]\nname = 'mine'\nbank = 'bank'\n"
        "task = {scorer = 'my.py:score'}\n"
    )
    command = ("run", tmp_path / "suite.toml", "--trust-code", "--accept-failures")
    process = start_command(*command)
    wait_for_requests(log, 20, process)
    process.kill()
    process.communicate()
    code, _, errors = result_of(start_command(*command))
    assert code == 0, errors
    assert len(log.read_text().split()) <= 64
    [suite] = (tmp_path / "suites").iterdir()
    for place, options in ((suite, ()), (suite, ("--trust-code",))):
        code, out, errors = result_of(start_command("verify", place, *options))
        assert code == 0, errors
    assert "scores recomputed" in out
