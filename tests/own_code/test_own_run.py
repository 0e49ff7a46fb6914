"""Scorers, parsers, graders and prompts from a user's files: asked, sealed, published, verified."""

import pytest
from tests import makers
from tests.own_code.own_plans import GRADER, READ, SCORE, content, lines, scores, workspace
from tests.runner.mixed_plans import text_items

import medassay
from medassay.errors import InputError
from medassay.publishing.publish import About

# What code did wrong is a warning in Python; a test of its own looks at it.
pytestmark = pytest.mark.filterwarnings("ignore:.* without a score. own code:UserWarning")


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
    for trusted in (True, False):  # an option that would change nothing is not named
        says = content(tmp_path / "site", trust_code=trusted)
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
