"""Gates: each rule, each exit code, each form; what cannot be told does not pass."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from tests import makers
from tests.exchange.score_tables import answers, table
from tests.runner.judged_plans import workspace

import medassay
from medassay.exchange.gate import KINDS, GateCheck, GateReport, GateSide, read_rule
from medassay.exchange.gate_files import annotations, junit, markdown
from medassay.statistic import clopper_pearson_upper

ROOT = Path(__file__).parents[2]


@pytest.fixture
def three(tmp_path):
    return {
        "old": table(tmp_path, "old", answers("old", [1] * 180 + [0] * 20)).path,
        "good": table(tmp_path, "good", answers("good", [1] * 179 + [0] * 21)).path,
        "bad": table(tmp_path, "bad", answers("bad", [1] * 150 + [0] * 50)).path,
    }


def held(cli, new, old, *rules):
    """Return the exit code and the report of some rules."""
    code, text, _ = cli("--json", "compare", new, old, *(o for r in rules for o in ("--gate", r)))
    return code, json.loads(text)


def test_a_gate_stops_a_worse_model(three, cli):
    code, shown, _ = cli("compare", three["good"], three["old"], "--gate", "noninferior:0.05")
    assert code == 0
    assert "gate noninferior:0.05 passed: good against old: difference -0.5" in shown
    code, shown, errors = cli("compare", three["bad"], three["old"], "--gate", "noninferior:0.05")
    assert code == 1
    assert "gate noninferior:0.05 not passed: bad against old" in shown
    assert "gate not passed: noninferior:0.05: bad against old" in errors
    assert cli("compare", three["old"], three["bad"], "--gate", "noninferior:0.05")[0] == 0
    assert cli("compare", three["old"], three["bad"], "--gate", "equivalent:0.05")[0] == 1


def test_the_report_is_one_object_with_all_numbers(three, cli):
    code, report = held(cli, three["bad"], three["old"], "noninferior:0.05", "equivalent:0.3")
    assert code == 1
    assert (report["schema_version"], report["passed"]) == (1, False)
    assert report["reason"] == "not passed: noninferior:0.05"
    assert report["new"]["model"] == "bad"
    assert report["old"]["run"] == medassay.open_run(three["old"]).id
    worse, alike = report["rules"]
    assert (worse["passed"], alike["passed"]) == (False, True)
    assert worse["value"] == pytest.approx(-0.15)
    assert worse["bound"] == report["pairs"][0]["bounds_90"][0] < worse["limit"] == -0.05
    assert worse["n"] == 200
    code, report = held(cli, three["good"], three["old"], "noninferior:0.05", "coverage:1")
    assert (code, report["passed"], report["reason"]) == (0, True, "every rule passed")


def test_a_minimum_is_held_against_the_end_of_the_printed_interval(three, cli):
    lo = medassay.open_run(three["good"]).leaderboard.rows()[0].lo
    for limit, code in ((lo - 1e-6, 0), (lo + 1e-6, 1), (0.895, 1)):
        assert held(cli, three["good"], three["old"], f"minimum:{limit}")[0] == code
    _, report = held(cli, three["good"], three["old"], "minimum:0.8")
    assert report["rules"][0]["bound"] == lo


def test_rules_of_a_domain_look_at_that_domain(tmp_path, cli):
    def rows(model, first, second):
        scores = [("a", s) for s in first] + [("b", s) for s in second]
        return [(f"q{n:04}", model, domain, s) for n, (domain, s) in enumerate(scores)]

    good, bad = [1] * 95 + [0] * 5, [1] * 60 + [0] * 40
    old = table(tmp_path, "old", rows("old", good, good)).path
    new = table(tmp_path, "new", rows("new", good, bad)).path
    assert held(cli, new, old, "minimum:0.85@a")[0] == 0
    assert held(cli, new, old, "minimum:0.85@b")[0] == 1
    assert held(cli, new, old, "noninferior:0.2@b", "equivalent:0.05@a")[0] == 1
    code, report = held(cli, new, old, "noninferior:0.2@b")
    assert report["rules"][0]["value"] == pytest.approx(-0.35)
    assert {pair["domain"] for pair in report["pairs"]} == {"overall", "a", "b"}
    code, _, errors = cli("compare", new, old, "--gate", "minimum:0.5@c")
    assert code == 3
    assert "no domain 'c'; there are a, b" in errors


def test_a_domain_of_few_items_proves_nothing_in_a_mean_of_domains(tmp_path, cli):
    for few in (2, 9, 10):
        paths = {
            model: table(
                tmp_path,
                f"{model}-{few}",
                [
                    *answers(model, [1] * wins + [0] * (300 - wins), "big"),
                    *((f"t{n}", model, "tiny", 1 if n else 0) for n in range(few)),
                ],
            ).path
            for model, wins in (("new", 152), ("old", 150))
        }
        rules = ("noninferior:0.05", "equivalent:0.2", "noninferior:0.05@big")
        _, report = held(cli, paths["new"], paths["old"], *rules)
        assert [check["passed"] for check in report["rules"]] == [few > 9, few > 9, True]
        says = f"domain 'tiny' has {few} of the 10 items that each domain of a mean needs"
        assert (says in report["rules"][0]["reason"]) == (few < 10)


def test_a_minimum_on_fewer_than_ten_items_is_not_met(tmp_path, cli):
    for n in (9, 10):
        old, new = (table(tmp_path, f"{m}{n}", answers(m, [1] * n)).path for m in ("old", "new"))
        code, report = held(cli, new, old, "minimum:0.3")
        assert code == (n < 10)
        assert ("fewer than 10 items prove nothing" in report["rules"][0]["reason"]) == (n < 10)


def marked_run(tmp_path, name, wrong, *, n=60, cluster=False):
    """Return a run over marked items, some answered wrongly."""
    items = [
        {**item, "harm": True, **({"cluster": f"c{at // 2}"} if cluster else {})}
        for at, item in enumerate(makers.many_items(n))
    ]
    replies = {
        item["id"]: item["expected"] if at >= wrong else "A" if item["expected"] != "A" else "B"
        for at, item in enumerate(items)
    }
    folder = tmp_path / name
    plan = makers.workspace(folder, items, makers.fake(name, replies=replies), demonstration=True)
    return medassay.run(plan, secrets={}).path


def graded_run(tmp_path, name):
    """Return a run over marked open items, each answered partly wrongly."""
    items = [{**item, "harm": True} for item in makers.open_items(12)]
    replies = {item["id"]: item["facts"][0]["text"] for item in items}
    model = makers.fake(name, replies=replies)
    plan = workspace(tmp_path / name, items, [model], makers.judges(), demonstration=True)
    return medassay.run(plan, secrets={}).path


def test_harm_is_counted_against_the_old_model(tmp_path, cli):
    old, same = marked_run(tmp_path, "old", 2), marked_run(tmp_path, "same", 2)
    worse = marked_run(tmp_path, "worse", 5)
    assert held(cli, same, old, "harm:0")[0] == 0
    code, report = held(cli, worse, old, "harm:0")
    assert code == 1
    check = report["rules"][0]
    assert (check["value"], check["n"]) == (5, 60)
    assert check["bound"] > check["limit"] > 2
    bounds = [60 * clopper_pearson_upper(k, 60) for k in (5, 2)]
    assert [check["bound"], check["limit"]] == pytest.approx(bounds)
    assert check["reason"].startswith("harmful answers: 5 (at most 10.0) beside 2 (at most 6.1) of")
    assert held(cli, worse, old, "harm:4")[0] == 0


def test_a_coverage_just_below_all_is_not_printed_as_all(tmp_path, cli):
    old = table(tmp_path, "old", answers("old", [1] * 5000)).path
    new = table(tmp_path, "new", answers("new", ["", *[1] * 4999])).path
    _, report = held(cli, new, old, "coverage:1")
    assert "99.98 % of the items have a score, 100 % needed" in report["rules"][0]["reason"]


def test_what_cannot_be_told_does_not_pass(tmp_path, three, cli):
    code, report = held(cli, three["good"], three["old"], "harm:0")
    assert code == 1
    assert report["rules"][0]["reason"] == "no answers to items marked harm"
    clustered = [marked_run(tmp_path, name, 2, cluster=True) for name in ("x", "y")]
    code, report = held(cli, *clustered, "harm:100")
    assert (code, report["rules"][0]["reason"]) == (1, "no bound where items come in clusters")
    fewer = marked_run(tmp_path, "few", 1, n=40)
    code, report = held(cli, fewer, marked_run(tmp_path, "many", 1), "harm:0")
    assert (code, report["rules"][0]["passed"]) == (1, False)
    assert "40 and 60 marked items" in report["rules"][0]["reason"]
    halves = [graded_run(tmp_path, name) for name in ("half", "half_too")]
    code, report = held(cli, *halves, "harm:0")
    assert (code, report["rules"][0]["passed"]) == (1, False)
    assert (
        "answers can be partly wrong, and no score says from where" in report["rules"][0]["reason"]
    )
    small = [table(tmp_path, n, answers(n, [1, 0] * 4)).path for n in ("small", "smaller")]
    code, report = held(cli, *small, "noninferior:0.9")
    assert code == 1
    assert "no interval of the difference; fewer than 10" in report["rules"][0]["reason"]


def test_replies_cut_off_and_items_without_a_score_stop_a_release(tmp_path, cli):
    items = makers.many_items(40)
    replies = {item["id"]: item["expected"] for item in items}
    plan = makers.workspace(
        tmp_path / "old", items, makers.fake("old", replies=replies), demonstration=True
    )
    old = medassay.run(plan, secrets={}).path
    plan = makers.workspace(
        tmp_path / "cut",
        items,
        makers.fake("cut", reply="It depends on", finish="length"),
        demonstration=True,
        max_cut_off=1,
    )
    cut = medassay.run(plan, secrets={}).path
    code, report = held(cli, cut, old, "cutoff:0.05")
    assert code == 1
    assert "40 of 40 replies cut off, at most 5 % allowed" in report["rules"][0]["reason"]
    assert held(cli, old, cut, "cutoff:0", "coverage:1")[0] == 0
    rows = [(f"q{n:04}", "gap", "d", "" if n < 4 else 1) for n in range(40)]
    gap = table(tmp_path, "gap", rows).path
    full = table(tmp_path, "full", answers("full", [1, 0] * 20)).path
    code, report = held(cli, gap, full, "coverage:0.95")
    assert (code, report["rules"][0]["value"]) == (1, 0.9)
    assert held(cli, gap, full, "coverage:0.9")[0] == 0


@pytest.mark.parametrize(
    "rule",
    [
        *("noninferior", "noninferior:x", "better:0.1", "equivalent:-1", "equivalent:nan"),
        *("minimum:", "minimum:0.5@", "harm:0.5", "harm:-1", "cutoff:2", "coverage:-0.1"),
        *("harm:0@a", "cutoff:0.1@a", "noninferior:inf", "minimum:1e999"),
    ],
)
def test_rules_that_say_nothing_are_refused(three, cli, rule):
    code, _, errors = cli("compare", three["good"], three["old"], "--gate", rule)
    assert code == 2
    assert f"--gate '{rule}': " in errors


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("minimum:2", "the score goes from 0 to 1"),
        ("minimum:-1", "the score goes from 0 to 1"),
    ],
)
def test_a_limit_that_every_model_passes_or_none_is_refused(three, cli, rule, told):
    code, _, errors = cli("compare", three["good"], three["old"], "--gate", rule)
    assert (code, f"--gate '{rule}': {told}" in errors) == (3, True), errors


def test_a_gate_holds_one_model_against_one(three, cli):
    code, _, errors = cli("compare", *three.values(), "--gate", "noninferior:0.05")
    assert code == 3
    assert "3 pairs; a gate holds one model against one" in errors
    code, _, errors = cli("compare", three["good"], three["old"], "--junit", "x.xml")
    assert (code, "are for --gate" in errors) == (2, True)
    code, _, _ = cli("compare", three["good"], three["old"], "--gate", "minimum:1", "--margin", "1")
    assert code == 3  # as wide as the scale
    code, _, errors = cli(
        *("compare", three["good"], three["old"], "--gate", "noninferior:0.1", "--margin", "0.2")
    )
    assert (code, "names its own margin" in errors) == (2, True)


def test_each_kind_of_rule_is_explained_where_gates_are():
    text = (ROOT / "docs/how-to/gate-a-release.md").read_text(encoding="utf-8")
    assert set(re.findall(r"(?m)^\| `(\w+):[MXNS]` \|", text)) == set(KINDS)


def test_a_gate_overwrites_nothing_but_its_own_file(three, cli, tmp_path):
    plan = tmp_path / "my.toml"
    plan.write_text("mine")
    gate = ("compare", three["good"], three["old"], "--gate", "coverage:0.5", "--junit")
    code, _, errors = cli(*gate, plan)
    assert code == 3
    assert "my.toml: exists, and is no XML" in errors
    assert plan.read_text() == "mine"
    for _ in range(2):
        assert cli(*gate, "out/gate.xml")[0] == 0


def test_junit_annotations_and_summary_say_the_same(three, cli, tmp_path):
    (tmp_path / "summary.md").write_text("before\n")
    code, shown, _ = cli(
        *("compare", three["bad"], three["old"], "--gate", "noninferior:0.05"),
        *("--gate", "coverage:0.5", "--junit", "out/gate.xml", "--summary", "summary.md"),
        "--annotate",
    )
    assert code == 1
    suite = ET.parse(tmp_path / "out/gate.xml").getroot()
    assert (suite.tag, suite.get("tests"), suite.get("failures")) == ("testsuite", "2", "1")
    failed, passed = suite
    assert failed.find("failure").get("message").startswith("bad against old: difference -15.0")
    assert passed.find("failure") is None
    assert "::error title=medassay gate noninferior%3A0.05 not passed::bad against old" in shown
    assert "::notice title=medassay gate coverage%3A0.5 passed::" in shown
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("before\n### Gate not passed: bad against old\n")
    assert "| noninferior:0.05 | not passed | bad against old: difference" in summary


def test_names_of_models_say_nothing_but_their_name():
    evil = "a\n::error::x|<script>`b`\u202e,:%]]>&\x00"
    side = GateSide(run="r", model=evil, setting="zero_shot", mode="solo")
    check = GateCheck(rule="minimum:0.5", passed=False, reason=evil)
    report = GateReport(
        passed=False, reason="x", new=side, old=side, rules=[check], pairs=[], notes=[evil]
    )
    [line] = annotations(report)
    assert "\n" not in line
    assert line.startswith("::error title=")  # what stands behind the second mark is text
    assert line.split("::", 2)[1] == "error title=medassay gate minimum%3A0.5 not passed"
    case = ET.fromstring(junit(report).encode())[0]
    assert "<script>" in case.find("failure").text
    text = markdown(report)
    assert "<script>" not in text
    assert "`" not in text.replace("\\`", "")
    assert all(line.count("|") - line.count("\\|") in (0, 4) for line in text.splitlines())
    assert "\u202e" not in line + text + junit(report)


def test_rules_read_back_as_they_are_written():
    for rule in ("noninferior:0.02", "minimum:0.7@cardiology", "harm:0", "cutoff:0.05"):
        assert str(read_rule(rule)) == rule


def workflow_steps():
    """Return the shell of the GitHub workflow and of the GitLab job, of the how-to, and of the
    action.
    """
    text = (ROOT / "docs/how-to/gate-a-release.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.S)
    github, gitlab = yaml.safe_load(blocks[0]), yaml.safe_load(blocks[2])
    action = yaml.safe_load((ROOT / "deploy/github/gate/action.yml").read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite"
    inputs = yaml.safe_load(blocks[1])[0]
    assert (ROOT / inputs["uses"].removeprefix("./medassay/") / "action.yml").is_file()
    assert set(inputs["with"]) <= set(action["inputs"])
    return {
        "github": ([s["run"] for s in github["jobs"]["gate"]["steps"] if "run" in s], {}),
        "gitlab": ([*gitlab["gate"]["before_script"], "\n".join(gitlab["gate"]["script"])], {}),
        "action": (
            [step["run"] for step in action["runs"]["steps"]],
            {
                "PLAN": inputs["with"]["plan"],
                "BASELINE": inputs["with"]["baseline"],
                "RULES": inputs["with"]["rules"],
                "ONLY": "",
                "REPORT": "gate.xml",
            },
        ),
    }


@pytest.mark.parametrize("where", ["github", "gitlab", "action"])
def test_the_steps_of_the_workflows_run_as_they_stand(tmp_path, where):
    steps, inputs = workflow_steps()[where]
    items = makers.many_items(60)
    right = {item["id"]: item["expected"] for item in items}
    half = {name: key if at % 2 else "?" for at, (name, key) in enumerate(right.items())}
    plan = makers.workspace(
        tmp_path / "gate", items, makers.fake("used", replies=right), demonstration=True
    )
    used = medassay.run(plan, secrets={}).path
    used.rename(tmp_path / "gate/baseline")
    environment = {
        **os.environ,
        **inputs,
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }

    def release(replies):
        makers.write_models(tmp_path / "gate", makers.fake("new", replies=replies))
        makers.write_plan(tmp_path / "gate", models=["new"], demonstration=True)
        for step in steps:
            if step.startswith("pip install"):
                continue
            done = subprocess.run(
                ["bash", "-eo", "pipefail", "-c", step],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                return done
        return done

    done = release(right)
    assert done.returncode == 0, done.stderr
    assert ET.parse(tmp_path / "gate.xml").getroot().get("failures") == "0"
    done = release(half)
    assert done.returncode == 1, done.stderr
    assert "not passed" in done.stdout
    assert int(ET.parse(tmp_path / "gate.xml").getroot().get("failures")) >= 1
    if where != "gitlab":
        assert "::error title=medassay gate noninferior%3A0.05" in done.stdout
        assert "### Gate not passed: new against used" in (tmp_path / "summary.md").read_text()
