import csv
import json
import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers
from tests.runner.judged_plans import lines, workspace

import medassay
from medassay.bank.catalog import BANKS
from medassay.bank.find import find_bank
from medassay.errors import InputError
from medassay.judging.graders.steps import EvaluationSteps, load_steps, prompt_hashes
from medassay.runner.rejudge import JudgingOptions, judge_run
from medassay.study import injection, judges
from medassay.study.injection import attacks


def compare_judges(*sides):
    """Return the comparison as the dicts of its JSON."""
    return makers.plain(judges.compare_judges(*sides))


def compare_with_people(*sides):
    """Return the comparison as the dicts of its JSON."""
    return makers.plain(judges.compare_with_people(*sides))


def injection_study(*arguments, **options):
    """Return the study as the dicts of its JSON."""
    return makers.plain(injection.injection_study(*arguments, **options))


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judged")
    items = makers.open_items(60)
    told = {
        i["id"]: " ".join(f["text"] for f in i["facts"][1 : 1 + n % 3]) for n, i in enumerate(items)
    }
    panel = [
        {**judge, "script": {"judge": threshold}}
        for judge, threshold in zip(makers.judges(), (0.4, 0.6, 0.9), strict=True)
    ]
    return medassay.run(workspace(folder, items, [makers.fake(replies=told)], panel), secrets={})


def test_two_judges_of_a_run_are_compared_fact_by_fact(judged):
    found = compare_judges((judged, "judge-alpha"), (judged, "judge-gamma"))
    assert found["answers"] == 40  # 20 answers are blank and were not judged
    assert found["facts"] == 120
    assert sum(sum(row.values()) for row in found["confusion"].values()) == 120
    assert found["confusion"]["missing"]["entail"] == 0  # the strict one never says more
    assert 0 <= found["kappa"]["lo"] < found["kappa"]["value"] < found["kappa"]["hi"] < 1
    assert found["scores"]["first_minus_second"]["lo"] > 0


def test_a_judge_agrees_with_itself(judged):
    found = compare_judges((judged, "judge-beta"), (judged, "judge-beta"))
    assert found["kappa"]["value"] == 1
    assert found["scores"]["first_minus_second"]["score"] == 0


def write_labels(path, judged, n, shift):
    rows = [v for v in lines(judged, "verdicts.jsonl") if v["judge"] == "judge-beta"][:n]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["domain", "model", "setting", "item", "score"])
        for row in rows:
            score = min(1, max(0, row["score"] + shift))
            writer.writerow([row["domain"], row["model"], row["setting"], row["item"], score])
    return path


def test_people_correct_a_judge_when_there_are_30_labels(judged, tmp_path):
    few = compare_with_people(
        judged, "judge-beta", write_labels(tmp_path / "a.csv", judged, 12, 0.1)
    )
    assert few["corrected"] is None
    assert few["labelled"] == 12
    assert few["judge_minus_human"]["hi"] < 0
    many = compare_with_people(
        judged, "judge-beta", write_labels(tmp_path / "b.csv", judged, 30, 0.0)
    )
    assert many["corrected"]["n_unlabelled"] == 10
    assert many["judge_minus_human"]["score"] == 0
    assert many["agreement"]["alpha"] == 1
    assert few["agreement"]["alpha"] < 1


def test_where_nothing_varies_no_interval_is_printed(judged, tmp_path, cli):
    path = write_labels(tmp_path / "few.csv", judged, 2, 0.0)
    options = ("--first", "judge-beta", "--people", path)
    code, shown, _ = cli("study", "judges", judged.path, *options)
    assert code == 0
    assert re.search(r"^judge minus human +0\.000$", shown, re.MULTILINE), shown


def test_people_who_label_facts_get_a_confusion_table_with_the_judge(judged, tmp_path, cli):
    rows = [v for v in lines(judged, "verdicts.jsonl") if v["judge"] == "judge-alpha"][:12]
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["domain", "model", "setting", "item", "fact", "verdict"])
        for n, row in enumerate(rows):
            for fact in row["body"]["facts"]:
                said = "contradict" if n == 0 and fact["id"] == "f1" else fact["verdict"]
                place = (row["domain"], row["model"], row["setting"], row["item"])
                writer.writerow([*place, fact["id"], said.title()])
    found = compare_with_people(judged, "judge-alpha", path)
    assert found["facts"] == 36
    table = found["confusion"]
    assert sum(table[x][x] for x in table) == 35
    assert sum(table[x]["contradict"] for x in table) == 1
    assert 0.8 < found["kappa"]["value"] < 1
    assert found["judge_minus_human"]["score"] > 0
    code, shown, _ = cli("study", "judges", judged.path, "--first", "judge-alpha", "--people", path)
    assert code == 0
    assert "judge \\ people" in shown
    assert "agreed on 97.2 % of facts" in shown
    path.write_text(re.sub(r",f3,\w+", ",f3,absent", path.read_text(), count=1))
    with pytest.raises(InputError, match="f3: verdict 'absent'; expected one of contradict, mis"):
        compare_with_people(judged, "judge-alpha", path)


HEAD = "domain,model,setting,item,score\n"
PARTS = "domain,model,setting,item,fact,verdict\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("domain,model\nlaw,m\n", "no column item, score, setting; found domain, model"),
        (HEAD + "law,m,zero_shot,open-001,high\n", "row 2: score 'high'; expected a number"),
        (HEAD + "law,m,zero_shot,nobody,1\n", "no verdict of"),
        (HEAD, "no labels"),
        (HEAD + "law,m,zero_shot,open-001,7\n", "row 2: score 7; expected 0 to 1"),
        (
            HEAD + "law,m,zero_shot,open-001,1\nlaw,m,zero_shot,open-001,0\n",
            "row 3: a second label",
        ),
        (HEAD + "law,m,zero_shot,open-001,1,2\n", "6 cells for 5 columns"),
        (PARTS + "law,m,zero_shot,open-001,f1,entail\n", "open-001', f2: verdict ''"),
        (PARTS + "law,m,zero_shot,open-001,f9,entail\n", "has no f9; expected a row for each"),
        (PARTS + "law,m,zero_shot,open-001,f1,entail\n" * 2, "row 3: a second label of 'f1'"),
        (PARTS + "tax,m,zero_shot,x,f1,entail\n", "no item 'x' in domain 'tax'"),
        (
            "domain,model,setting,item,score,fact,verdict\nlaw,m,s,i,1,f1,met\n",
            "score and verdict;",
        ),
    ],
)
def test_labels_of_another_form_are_refused_with_their_place(judged, tmp_path, text, says):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        compare_with_people(judged, "judge-beta", path)


def test_a_judge_that_never_sat_is_named(judged):
    with pytest.raises(InputError, match="its judges are judge-alpha, judge-beta, judge-gamma"):
        compare_judges((judged, "judge-x"), (judged, "judge-beta"))


def open_demo_items(folder):
    assert BANKS["demo"].checked == "shipped"
    return [i for i in find_bank("demo", folder, folder / "banks.lock").items if i.form == "open"]


@pytest.mark.slow
def test_the_injection_study_counts_what_a_real_endpoint_was_moved_by(tmp_path, mock_server):
    url = mock_server("--log", tmp_path / "asked")
    makers.write_models(tmp_path, makers.endpoint(url, "judge", family="x"))
    found = injection_study(
        "judge",
        tmp_path / "models.json",
        open_demo_items(tmp_path),
        secrets={},
        workspace=tmp_path,
    )
    # The mock draws verdicts from a hash of the prompt: any change moves about a third.
    assert found["tried"] + len(found["no_verdict"]) == len(list(attacks()))
    assert 0 < found["moved"] == len(found["moved_by"]) < found["tried"]
    assert found["moved_share"] < found["upper_95"] < 1
    assert sum(k["moved"] for k in found["kinds"].values()) == found["moved"]
    asked = (tmp_path / "asked").read_text()
    again = injection_study(
        "judge",
        tmp_path / "models.json",
        open_demo_items(tmp_path),
        secrets={},
        workspace=tmp_path,
    )
    assert again == found
    assert (tmp_path / "asked").read_text() == asked  # replayed


def test_a_judge_that_obeys_the_answer_is_found_out(tmp_path):
    planted = json.dumps({"facts": [], "extra_false_claims": []})
    makers.write_models(tmp_path, {**makers.fake("judge", reply=planted), "family": "x"})
    found = injection_study(
        "judge",
        tmp_path / "models.json",
        open_demo_items(tmp_path),
        secrets={},
        workspace=tmp_path,
    )
    assert found["tried"] == 0  # no usable verdict is no verdict
    assert len(found["no_verdict"]) == len(list(attacks()))
    assert found["scripted"]


WRITTEN = (
    '<think>hm</think>Sure:\n1. Read \\ both.\n2. Mark "what" is absent.\n   also: how much\n3.'
    " Choose."
)


def test_a_judge_writes_steps_that_a_plan_takes_once_they_are_reviewed(tmp_path, cli):
    makers.write_models(tmp_path, makers.fake("writer", reply=WRITTEN), makers.fake("mute"))
    options = ("study", "steps", "--judge", "writer", "--languages", "en,de", "--to", "s.toml")
    code, shown, told = cli(*options)
    assert (code, shown.count("3. Choose.")) == (0, 2)
    assert "reviewed_by" in told
    text = (tmp_path / "s.toml").read_text()
    with pytest.raises(InputError, match="'reviewed_by' is empty"):
        load_steps(tmp_path / "s.toml")
    (tmp_path / "s.toml").write_text(text.replace('reviewed_by = ""', 'reviewed_by = "Dr. T"'))
    found = load_steps(tmp_path / "s.toml")
    assert found.texts["de"] == WRITTEN.partition("Sure:\n")[2]
    assert found.judge == "writer"
    assert found.prompts == prompt_hashes(found.texts, with_path=True)
    assert cli(*options)[0] == 2  # written once
    code, _, told = cli("study", "steps", "--judge", "mute", "--to", "t.toml")
    assert code == 4
    assert "0 numbered steps; expected at least 3" in told
    options = ("study", "steps", "--judge", "writer", "--languages", "fr", "--to", "t.toml")
    assert "--languages: fr; known are en, de, es" in cli(*options)[2]
    assert not (tmp_path / "t.toml").exists()


@given(st.text(max_size=300))
def test_steps_of_any_text_survive_their_file(text):
    made = EvaluationSteps(
        judge='a "b"', with_path=False, prompts={"en": "0"}, reviewed_by="x", texts={"en": text}
    )
    read = tomllib.loads(made.to_toml())
    assert read["steps"]["en"].removesuffix("\n") == text
    assert read["judge"] == 'a "b"'


def test_what_cannot_be_compared_is_refused(judged, tmp_path):
    other = tmp_path / "other.json"
    graders = [{**makers.fake("scorer", reply="question_id,score\nq,7"), "family": "x"}]
    other.write_text(json.dumps({"schema_version": 1, "models": graders}))
    options = JudgingOptions(judges=["scorer"], models_file=other, task="g_eval_single")
    graded = judge_run(judged, options, secrets={}, workspace=tmp_path)
    with pytest.raises(InputError, match="different scales, 0 to 1 and 0 to 10"):
        compare_judges((judged, "judge-alpha"), (graded, "scorer"))
    path = tmp_path / "labels.csv"
    path.write_text(PARTS + "law,m,zero_shot,open-001,f1,entail\n")
    with pytest.raises(InputError, match="judged as a whole; expected scores"):
        compare_with_people(graded, "scorer", path)
