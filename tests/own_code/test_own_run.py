"""Scorers, parsers, graders and prompts from a user's files: asked, sealed, published, verified."""

import json
import textwrap
import time

import pytest
from tests import makers
from tests.commands import result_of, start_command, wait_for_requests
from tests.runner.mixed_plans import text_items

import medassay
from medassay.errors import InputError
from medassay.publishing.publish import About

# What code did wrong is a warning in Python; a test of its own looks at it.
pytestmark = pytest.mark.filterwarnings("ignore:.* without a score. own code:UserWarning")

SCORE = """
def score(item, answer):
    right = set(item.reference_text.split())
    said = set(answer.value.split())
    return {"score": len(right & said) / len(right), "words": min(len(said), 100)}
"""
READ = """
def read(item, text):
    return {"eins": "A", "zwei": "B"}.get(text.strip().lower())
"""
GRADER = """
class MyGrader:
    def prompt(self, item, answer):
        return [{"role": "user", "content": f"{item.question}: {answer.value}. Mark 0 to 5?"}]

    def verdict(self, item, answer, reply):
        mark = reply.split()[-1]
        return float(mark) if mark.isdigit() else None
"""


def test_python_warns_where_own_code_left_answers_without_a_score(tmp_path):
    plan = workspace(
        tmp_path,
        text_items(3),
        makers.fake("m", reply="x"),
        code="def score(item, answer):\n    return 1 / 0\n",
        task={"scorer": "my.py:score"},
    )
    with pytest.warns(UserWarning, match="3 answers without a score: own code my.py:score: Zero"):
        medassay.run(plan, secrets={}, trust_code=True)


def workspace(folder, items, *models, code, **plan):
    path = makers.workspace(folder, items, *models, **plan)
    (folder / "my.py").write_text(textwrap.dedent(code))
    return path


def lines(run, name="scores.jsonl"):
    return [json.loads(line) for line in (run.path / name).read_text().splitlines()]


def scores(run):
    return [line["score"] for line in lines(run)]


def content(place, **options):
    report = medassay.verify(place, **options)
    assert report.ok, report.first_mismatch
    return next(check["detail"] for check in report.checks if check["name"].endswith("content"))


def test_a_scorer_of_ones_own_gives_score_and_columns_and_stands_on_the_board(tmp_path):
    plan = workspace(
        tmp_path,
        text_items(4),
        makers.fake(reply="Sudden weakness of one side"),
        code=SCORE,
        task={"scorer": "my.py:score", "columns": {"words": [0, 100]}},
    )
    run = medassay.run(plan, secrets={}, trust_code=True)
    assert all(0 < score < 1 for score in scores(run))
    assert run.manifest.own_code.parts["scorer"].name == "my.py:score"
    row = run.statistics.rows("overall")[0]
    assert run.statistics.metric == "score"
    assert row.score == pytest.approx(sum(scores(run)) / 4)
    assert run.statistics.document["own_scorer"]["columns"] == {"words": [0, 100]}
    page = medassay.publish(run, tmp_path / "site").read_text()
    assert "OWN CODE" in page
    assert "my.py:score@" in page
    assert "its text is not published" in page
    assert not (page_folder(tmp_path, run) / "data/run/own_code").exists()
    assert (page_folder(tmp_path, run) / "own_scorer/index.html").is_file()


def page_folder(tmp_path, run):
    return tmp_path / "site" / "p" / run.id


def test_verify_executes_own_code_only_where_told_to(tmp_path):
    marker = tmp_path / "executed"
    code = f"open({str(marker)!r}, 'a').write('x')\n" + SCORE.replace('"words"', '"score"')
    plan = workspace(
        tmp_path,
        text_items(3),
        makers.fake(reply="Sudden"),
        code=code,
        task={"scorer": "my.py:score"},
    )
    with pytest.raises(InputError, match="trust-code"):
        medassay.run(plan, secrets={})
    assert not marker.exists()
    run = medassay.run(plan, secrets={}, trust_code=True)
    marker.unlink()
    medassay.publish(run, tmp_path / "site")
    for place in (run.path, tmp_path / "site"):
        assert "scores not recomputed: own code my.py:score@" in content(place)
    assert not marker.exists()
    assert content(run.path, trust_code=True).endswith("scores recomputed")
    assert marker.exists()
    with_code = tmp_path / "with"
    medassay.publish(run, with_code, about=About(with_code=True))
    assert content(with_code, trust_code=True).endswith("scores recomputed")


def test_nothing_but_run_executes_the_code_of_a_plan_and_run_asks_first(tmp_path, cli):
    marker = tmp_path / "executed"
    code = f"open({str(marker)!r}, 'a').write('x')\n" + SCORE.replace('"words"', '"score"') + GRADER
    workspace(
        tmp_path,
        text_items(3),
        makers.fake("a", reply="Sudden"),
        makers.fake("b", reply="Sudden"),
        code=code,
        task={"scorer": "my.py:score"},
    )
    models = [makers.fake(name, reply="Sudden") for name in ("a", "b", "judge")]
    makers.write_models(tmp_path, *models)
    plan = (tmp_path / "plan.toml").read_text()
    assert cli("run", "plan.toml", "--trust-code")[0] == 0
    [run] = (tmp_path / "runs").iterdir()
    assert cli("publish", run, "--to", "site", "--with-code", "--yes")[0] == 0
    judged = plan.replace('scorer = "my.py:score"', 'grader = "my.py:MyGrader"')
    (tmp_path / "judged.toml").write_text('judges = ["judge"]\n' + judged)
    suite = '[[benchmark]]\nname = "x"\nbank = "bank"\n[benchmark.task]\nscorer = "my.py:score"\n'
    (tmp_path / "suite.toml").write_text('models = ["a"]\n' + suite)
    marker.unlink()
    allowed = [
        ("run", "plan.toml", "--plan"),
        ("run", "judged.toml", "--plan"),
        ("suite", "run", "suite.toml", "--plan"),
        ("show", "t001", "--run", run),
        ("report", run),
        ("compare", run, "--only", "a,b"),
        ("export", run, "--format", "csv", "--to", "exported"),
        ("verify", run),
        ("verify", "site"),
        ("publish", run, "--to", "other", "--yes"),
        ("spend",),
    ]
    asked = [
        ("run", "plan.toml", "--fresh"),
        ("run", "judged.toml"),
        ("suite", "run", "suite.toml"),
        ("score", run),
    ]
    for command in allowed:
        code, _, errors = cli(*command)
        assert code == 0, (command, errors)
        assert not marker.exists(), command
    for command in asked:
        code, _, errors = cli(*command)
        assert code in (2, 3), (command, errors)
        assert "--trust-code" in errors, command
        assert not marker.exists(), command


def test_a_changed_score_or_another_code_is_found(tmp_path):
    plan = workspace(
        tmp_path,
        text_items(3),
        makers.fake(reply="Sudden"),
        code="def score(item, answer):\n    return 0.25\n",
        task={"scorer": "my.py:score"},
    )
    run = medassay.run(plan, secrets={}, trust_code=True)
    [kept] = (run.path / "own_code").iterdir()
    kept.write_text("def score(item, answer):\n    return 0.5\n")
    report = medassay.verify(run.path)
    assert not report.ok
    assert "not code that the manifest names" in report.first_mismatch


def test_changed_code_makes_another_run_from_the_same_replies(tmp_path):
    plan = workspace(
        tmp_path,
        text_items(3),
        makers.fake(reply="Sudden"),
        code="def score(item, answer):\n    return 0.25\n",
        task={"scorer": "my.py:score"},
    )
    first = medassay.run(plan, secrets={}, trust_code=True)
    assert medassay.run(plan, secrets={}, trust_code=True).id == first.id
    (tmp_path / "my.py").write_text("def score(item, answer):\n    return 0.75\n")
    second = medassay.run(plan, secrets={}, trust_code=True)
    assert second.id != first.id
    assert second.manifest.methodology != first.manifest.methodology
    assert scores(second) == [0.75] * 3
    assert all(line["replayed"] for line in lines(second, "timings.jsonl"))


def test_a_parser_of_ones_own_reads_what_the_shipped_scorer_scores(tmp_path):
    plan = workspace(
        tmp_path,
        makers.many_items(4),
        makers.fake("a", reply="Eins"),
        makers.fake("b", reply="weiß nicht"),
        code=READ,
        task={"parser": "my.py:read"},
    )
    run = medassay.run(plan, secrets={}, trust_code=True)
    assert scores(run) == [1, 0, 0, 0, 0, 0, 0, 0]
    assert [line["outcome"] for line in lines(run, "trials.jsonl")] == ["answered"] * 4 + [
        "unparsed"
    ] * 4
    assert "own code my.py:read@" in content(run.path)
    assert content(run.path, trust_code=True).endswith("scores recomputed")


def test_letters_that_a_parser_reads_are_those_that_were_shown(tmp_path):
    plan = workspace(
        tmp_path,
        makers.many_items(12),
        makers.fake(reply="A"),
        code="def read(item, text):\n    return text\n",
        task={"parser": "my.py:read"},
        shuffle_options=True,
    )
    run = medassay.run(plan, secrets={}, trust_code=True)
    (tmp_path / "shipped").mkdir()
    shipped = makers.workspace(
        tmp_path / "shipped", makers.many_items(12), makers.fake(reply="A"), shuffle_options=True
    )
    expected = medassay.run(shipped, secrets={})
    values = [[t["value"] for t in lines(r, "trials.jsonl")] for r in (run, expected)]
    assert values[0] == values[1]
    assert len(set(values[0])) > 1
    assert content(run.path, trust_code=True).endswith("scores recomputed")


def test_a_parser_that_reads_no_letter_of_a_choice_is_told(tmp_path):
    plan = workspace(
        tmp_path,
        makers.many_items(2),
        makers.fake(reply="two"),
        code="def read(item, text):\n    return text\n",
        task={"parser": "my.py:read"},
    )
    run = medassay.run(plan, secrets={}, trust_code=True)
    assert scores(run) == [None, None]
    assert "returned 'two' for a choice; expected one of its letters" in lines(run)[0]["because"]


def test_code_that_is_not_kept_is_told_and_no_mismatch(tmp_path):
    plan = workspace(
        tmp_path,
        text_items(2),
        makers.fake(reply="x"),
        code="def score(item, answer):\n    return 0.5\n",
        task={"scorer": "my.py:score"},
    )
    medassay.publish(medassay.run(plan, secrets={}, trust_code=True), tmp_path / "site")
    says = content(tmp_path / "site", trust_code=True)
    assert says.endswith("its text is not published")


def test_a_grader_without_judges_is_refused(tmp_path):
    plan = workspace(
        tmp_path,
        makers.open_items(2),
        makers.fake(reply="x"),
        code=GRADER,
        task={"grader": "my.py:MyGrader"},
    )
    with pytest.raises(InputError, match="is scored by judges, and none are named"):
        medassay.run(plan, secrets={}, trust_code=True)


def test_a_declared_column_must_be_given(tmp_path):
    plan = workspace(
        tmp_path,
        text_items(1),
        makers.fake(reply="x"),
        code="def score(item, answer):\n    return {'score': 1}\n",
        task={"scorer": "my.py:score", "columns": {"words": [0, 1]}},
    )
    run = medassay.run(plan, secrets={}, trust_code=True)
    assert "returned no 'words'; give None for" in lines(run)[0]["because"]


TYPOS = {
    "scorr = 'my.py:score'": "'task.scorr': unknown key",
    "scorer = 'my.py:score'\nscale = [1]": "'task.scale",
    "like = 'prometeus'": "names nothing of your own",
    "scorer = 'nowhere.py:score'": "nowhere.py: no such file",
    "scorer = 'my.py'": "expected a file and a name in it, as my.py:scorer",
    "grader_template = 'ask.txt'\nlike = 'text'": "is for judges, and task 'text' has none",
}


@pytest.mark.parametrize("task", TYPOS)
def test_typos_in_the_table_are_told_as_it_stands_in_the_file(tmp_path, cli, task):
    makers.workspace(tmp_path, text_items(1), makers.fake(reply="x"))
    (tmp_path / "my.py").write_text("def score(item, answer):\n    return 1\n")
    (tmp_path / "ask.txt").write_text("{{ answer }}")
    plan = (tmp_path / "plan.toml").read_text()
    (tmp_path / "plan.toml").write_text(f"{plan}[task]\n{task}\n")
    code, _, errors = cli("run", "plan.toml", "--trust-code")
    assert code == 3
    assert TYPOS[task] in errors


def test_a_parser_may_say_why_a_reply_has_no_value(tmp_path):
    code = """
        from medassay import Answer

        def read(item, text):
            outcome = {"q00000": "refused", "q00001": "truncated", "q00002": "unparsed"}.get(item.id)
            if outcome:
                return Answer(item_id=item.id, outcome=outcome, value=None, reason="so it is")
            return Answer(item_id=item.id, outcome="answered", value="D", reason="the last word")
        """
    plan = workspace(
        tmp_path,
        makers.many_items(4),
        makers.fake(reply="x"),
        code=code,
        task={"parser": "my.py:read"},
    )
    run = medassay.run(plan, secrets={}, trust_code=True)
    assert [(t["outcome"], t["reason"]) for t in lines(run, "trials.jsonl")] == [
        ("refused", "said"),
        ("truncated", "so it is"),
        ("unparsed", "so it is"),
        ("answered", "the last word"),
    ]
    assert scores(run) == [0, 0, 0, 1]


def test_a_grader_of_ones_own_asks_a_judge_on_a_scale_of_its_own(tmp_path):
    judge = {"id": "judge", "provider": "fake", "family": "f", "script": {"reply": "I give 4"}}
    makers.write_models(tmp_path, makers.fake(reply="Rule binds courts."), judge)
    plan = workspace(
        tmp_path,
        makers.open_items(4),
        makers.fake(reply="Rule binds courts."),
        code=GRADER,
        judges=["judge"],
        task={"grader": "my.py:MyGrader", "scale": [0, 5]},
    )
    makers.write_models(tmp_path, makers.fake(reply="Rule binds courts."), judge)
    run = medassay.run(plan, secrets={}, trust_code=True)
    assert scores(run) == [4] * 4
    assert run.statistics.scale.hi == 5
    assert run.statistics.metric == "mygrader"
    assert "verdicts not read again: own code my.py:MyGrader@" in content(run.path)
    assert "scores recomputed" in content(run.path, trust_code=True)
    medassay.publish(run, tmp_path / "site")


def test_a_prompt_of_ones_own_for_the_judge(tmp_path, cli):
    cli("prompt", "copy", "prometheus")
    text = (tmp_path / "prompts/prometheus.en.txt").read_text()
    (tmp_path / "prompts/prometheus.en.txt").write_text("Be strict.\n" + text)
    judge = {"id": "judge", "provider": "fake", "script": {"reply": "Feedback: fine [RESULT] 4"}}
    plan = makers.workspace(
        tmp_path,
        makers.open_items(3),
        makers.fake(reply="Rule binds courts."),
        judges=["judge"],
        task={"like": "prometheus", "grader_template": "prompts/prometheus.en.txt"},
    )
    makers.write_models(tmp_path, makers.fake(reply="Rule binds courts."), judge)
    run = medassay.run(plan, secrets={})  # a prompt is no code: nobody need trust it
    assert scores(run) == [0.75] * 3
    [prompt] = run.manifest.judge_prompts["law"]
    assert prompt.startswith("prometheus.en.txt@")
    assert content(run.path).endswith("scores recomputed")
    assert medassay.publish(run, tmp_path / "site")
    assert "OWN CODE" not in (tmp_path / "site/index.html").read_text()
    method = (page_folder(tmp_path, run) / "methodology/index.html").read_text()
    assert "Be strict." in method


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


def test_what_own_code_could_not_score_is_told_after_the_run(tmp_path, cli):
    code = "def score(item, answer):\n    return 1 / (item.id != 't001')\n"
    workspace(
        tmp_path, text_items(3), makers.fake(reply="x"), code=code, task={"scorer": "my.py:score"}
    )
    code, out, errors = cli("run", "plan.toml", "--trust-code")
    assert code == 0
    assert "own code my.py:score@" in out
    assert "1 answer without a score: own code my.py:score: ZeroDivisionError" in errors


def test_the_examples_are_as_short_as_is_promised():
    for code in (SCORE, READ, GRADER):
        assert len(code.strip().splitlines()) <= 12  # and three lines of a plan


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


def test_scoring_anew_needs_trust_and_gives_the_same(tmp_path):
    from medassay.runner.rescore import rescore

    plan = workspace(
        tmp_path,
        text_items(3),
        makers.fake(reply="Sudden weakness"),
        code=SCORE,
        task={"scorer": "my.py:score", "columns": {"words": [0, 100]}},
    )
    run = medassay.run(plan, secrets={}, trust_code=True)
    with pytest.raises(InputError, match="say --trust-code"):
        rescore(run)
    again = rescore(run, trust_code=True)
    assert lines(again) == lines(run)
    assert content(again.path, trust_code=True).endswith("scores recomputed")


def test_of_withheld_items_own_columns_are_published_and_words_are_not(tmp_path):
    items = [{**item, "kind": "synthetic"} for item in text_items(3)] + text_items(4)[3:]
    code = SCORE.replace("right =", "assert item.id != 't000', item.question\n    right =")
    plan = workspace(
        tmp_path,
        items,
        makers.fake(reply="Sudden weakness"),
        code=code,
        task={"scorer": "my.py:score", "columns": {"words": [0, 100]}},
    )
    run = medassay.run(plan, secrets={}, trust_code=True)
    assert "How is rule 0" in lines(run)[0]["because"]
    medassay.publish(run, tmp_path / "site")
    text = (page_folder(tmp_path, run) / "data/run/scores.jsonl").read_text()
    assert "How is rule 0" not in text
    assert '"words":2' in text
    assert content(tmp_path / "site")


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


def test_judging_anew_executes_a_grader_only_where_told_to(tmp_path, cli):
    marker = tmp_path / "executed"
    workspace(
        tmp_path,
        makers.open_items(2),
        makers.fake(reply="Rule binds courts."),
        code=f"open({str(marker)!r}, 'a').write('x')\n" + GRADER,
        task={"grader": "my.py:MyGrader", "scale": [0, 5]},
        judges=["judge"],
    )
    judges = [makers.fake(name, reply="I give 4") for name in ("judge", "other")]
    makers.write_models(tmp_path, makers.fake(reply="Rule binds courts."), *judges)
    assert cli("run", "plan.toml", "--trust-code")[0] == 0
    [run] = (tmp_path / "runs").iterdir()
    marker.unlink()
    command = ("judge", run, "--panel", "other")
    code, _, errors = cli(*command)
    assert code in (2, 3), errors
    assert "--trust-code" in errors
    assert not marker.exists()
    code, _, errors = cli(*command, "--trust-code")
    assert code == 0, errors
    assert marker.exists()
