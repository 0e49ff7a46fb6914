"""Finished predictions on the items of a bank: one series however many models come, and names of
what does not belong.
"""

import csv
import json

import pytest
from tests import makers
from tests.runner.mixed_plans import text_items

import medassay
from medassay.bank.folder import load_bank
from medassay.core.records.target import Pattern, Range, Reference
from medassay.errors import InputError
from medassay.exchange.bank_predictions import _is_key, import_on_banks
from medassay.model.spec import load_models
from medassay.publishing.publish import About

COLUMNS = {"item": "item", "model": "model", "prediction": "answer"}


def bank_of(folder, items=None, **card):
    made = items or makers.many_items(20)
    domains = tuple(sorted({item["domain"] for item in made}))
    return load_bank(makers.write_bank(folder, made, domains=domains, **card), lock=None)


def write(path, *rows, head="item,model,answer"):
    path.write_text("\n".join((head, *rows)) + "\n", encoding="utf-8")
    return path


def answers(bank, model, wrong=5):
    for n, item in enumerate(bank.items):
        yield f"{item.id},{model},{'X' if n % wrong == 0 else item.target.expected}"


def place(tmp_path, bank, *models, columns=COLUMNS, **more):
    rows = [row for n, model in enumerate(models) for row in answers(bank, model, 3 + n)]
    table = write(tmp_path / f"{'-'.join(models)}.csv", *rows)
    return import_on_banks(table, columns, [bank], runs=tmp_path / "runs", **more)


def test_the_run_has_the_questions_and_scores_as_a_run_of_the_models_would(tmp_path):
    bank = bank_of(tmp_path / "bank")
    run = place(tmp_path, bank, "a", "b").run
    records = [json.loads(line) for line in (run.path / "items.jsonl").read_text().splitlines()]
    assert [record["question"] for record in records] == [item.question for item in bank.items]
    assert run.manifest.banks[0].version == bank.version
    assert run.manifest.banks[0].content_sha256 == bank.content_hash
    found = {row["model"]: row for row in medassay.leaderboard(run).domains["overall"]}
    assert found["a"]["score"] == pytest.approx(13 / 20)
    assert found["a"]["unparsed_rate"] == pytest.approx(7 / 20)  # "X" names no option
    # Asked by the runner, the same replies give the same scores.
    replies = {
        model: {row.split(",")[0]: row.split(",")[2] for row in answers(bank, model, 3 + number)}
        for number, model in enumerate("ab")
    }
    makers.write_models(tmp_path, *(makers.fake(m, replies=replies[m]) for m in "ab"))
    asked = medassay.run(makers.write_plan(tmp_path, models=["a", "b"]), secrets={})
    for row in medassay.leaderboard(asked).domains["overall"]:
        assert row["score"] == found[row["model"]]["score"]
        assert row["outcomes"] == found[row["model"]]["outcomes"]
    assert medassay.verify(run.path).ok


def test_models_imported_one_by_one_are_one_series_with_the_ranks_of_all_together(tmp_path):
    bank = bank_of(tmp_path / "bank", makers.many_items(40))
    names = ("a", "b", "c")
    rows = [row for n, model in enumerate(names) for row in answers(bank, model, 2 + n)]
    together = import_on_banks(
        write(tmp_path / "all.csv", *rows), COLUMNS, [bank], runs=tmp_path / "runs"
    ).run
    runs, site = [], tmp_path / "site"
    for name in names:
        own = [row for row in rows if f",{name}," in row]
        table = write(tmp_path / f"{name}.csv", *own)
        runs.append(import_on_banks(table, COLUMNS, [bank], runs=tmp_path / "runs").run)
        medassay.publish(runs, site, publication=f"with-{name}")
    last = json.loads((site / "p/with-c/data/run/statistics.json").read_text())
    mine = together.statistics.document
    assert last["domains"] == mine["domains"]
    assert last["fields"] == mine["fields"]
    trend = json.loads((site / "p/with-c/data/trend.json").read_text())
    assert trend["markers"] == []
    assert len({(*s["banks"], s["methodology"]) for s in trend["series"]}) == 1
    # An interval does not move because another model came.
    points = [p for p in trend["points"] if p["model"] == "a"]
    assert len({(p["score"], p["lo"], p["hi"]) for p in points}) == 1
    assert medassay.verify(site).ok


@pytest.mark.slow
@pytest.mark.real_data
def test_ten_real_models_one_by_one_rank_as_the_ten_together(data, tmp_path):
    with (data / "medagents_predictions/zero_shot_test.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["task"] in ("mmlu-pro", "pubmedqa")]
    keys = {(row["task"], row["realidx"]): row["answer_idx"] for row in rows}
    items = [
        {
            "id": f"{task}-{name}",
            "domain": task,
            "question": f"Question {name}",
            "options": [f"option {letter}" for letter in "ABCDEFGHIJ"],
            "expected": key,
            "source": "medagents-benchmark",
        }
        for (task, name), key in sorted(keys.items())
    ]
    bank = bank_of(tmp_path / "bank", items)
    lines = {}
    for row in rows:
        name = f"{row['task']}-{row['realidx']}"
        line = f"{name},{row['model']},{row['predicted_answer']}"
        lines.setdefault(row["model"], []).append(line)
    every = [line for own in lines.values() for line in own]
    joint = import_on_banks(
        write(tmp_path / "all.csv", *every), COLUMNS, [bank], runs=tmp_path / "runs"
    ).run
    runs = [
        import_on_banks(
            write(tmp_path / f"{n}.csv", *own), COLUMNS, [bank], runs=tmp_path / "runs"
        ).run
        for n, own in enumerate(lines.values())
    ]
    site = tmp_path / "site"
    compact = About(compact=True)  # pages of single cells say nothing here
    medassay.publish(runs[:9], site, publication="nine", about=compact)
    medassay.publish(runs, site, publication="ten", about=compact)
    last = json.loads((site / "p/ten/data/run/statistics.json").read_text())
    assert last["domains"] == joint.statistics.document["domains"]
    trend = json.loads((site / "p/ten/data/trend.json").read_text())
    assert (trend["markers"], len(trend["points"])) == ([], 19)
    # The import reproduces the file.
    for row in joint.statistics.rows("pubmedqa"):
        own = [r for r in rows if (r["model"], r["task"]) == (row.model, "pubmedqa")]
        assert row.score == pytest.approx(sum(int(r["correct"]) for r in own) / len(own))


def test_open_answers_are_compared_with_the_references_of_the_bank(tmp_path):
    bank = bank_of(tmp_path / "bank", [*makers.many_items(12), *text_items(11)])
    rows = [f'{item.id},a,"{item.reference or item.target.expected}"' for item in bank.items]
    run = import_on_banks(write(tmp_path / "t.csv", *rows), COLUMNS, [bank], runs=tmp_path).run
    found = {row["metric"]: row for row in medassay.leaderboard(run).domains["law"]}
    assert (found["accuracy"]["score"], found["accuracy"]["n"]) == (1.0, 12)
    assert (found["chrf"]["score"], found["chrf"]["n"]) == (1.0, 11)
    assert medassay.verify(run.path).ok


def test_kinds_that_nobody_answered_are_left_out_and_told(tmp_path):
    bank = bank_of(tmp_path / "bank", [*makers.many_items(12), *text_items(11)])
    rows = [f"{item.id},a,{item.target.expected}" for item in bank.items if item.form == "choice"]
    imported = import_on_banks(write(tmp_path / "t.csv", *rows), COLUMNS, [bank], runs=tmp_path)
    assert (imported.run.manifest.task, imported.run.manifest.tasks) == ("closed", {})
    assert "tasks without any prediction, left out: text" in imported.coverage
    [row] = medassay.leaderboard(imported.run).domains["law"]
    assert (row["n"], row["coverage"]) == (12, 1.0)
    assert medassay.verify(imported.run.path).ok


def test_given_scores_stand_and_the_questions_beside_them(tmp_path):
    bank = bank_of(tmp_path / "bank")
    rows = [f"{item.id},a,{n / 20}" for n, item in enumerate(bank.items)]
    table = write(tmp_path / "t.csv", *rows, head="item,model,score")
    columns = {"item": "item", "model": "model", "score": "score"}
    run = import_on_banks(table, columns, [bank], runs=tmp_path).run
    [row] = medassay.leaderboard(run).domains["law"]
    assert row["score"] == pytest.approx(sum(range(20)) / 400)
    assert medassay.verify(run.path).ok
    assert medassay.publish(run, tmp_path / "site").exists()


def test_scores_of_several_metrics_have_no_mean(tmp_path):
    """A share of facts and a right letter were one mean, called accuracy."""
    bank = bank_of(tmp_path / "bank", [*makers.many_items(12), *makers.open_items(2)])
    columns = {"item": "item", "model": "model", "score": "score"}
    rows = ["q00000,a,1", "open-000,a,0.5"]
    table = write(tmp_path / "t.csv", *rows, head="item,model,score")
    with pytest.raises(InputError, match=r"different metrics, as 'q00000' \(accuracy\), 'open-"):
        import_on_banks(table, columns, [bank], runs=tmp_path / "runs")
    assert not [*(tmp_path / "runs").glob("*")]
    # The items of another metric are no gap in the coverage, and rows without a score are none.
    for more in ([], ["q00000,a,", "q00001,b,"]):
        table = write(tmp_path / "t.csv", rows[1], *more, head="item,model,score")
        imported = import_on_banks(table, columns, [bank], runs=tmp_path / "runs")
        assert "metrics without any score, left out: accuracy" in imported.coverage
        dropped = "2 rows without a score, on items of other metrics, left out"
        assert (dropped in imported.coverage) is bool(more)
        [row] = medassay.leaderboard(imported.run).domains["law"]
        assert (row["score"], row["coverage"], row["n"]) == (0.5, 0.5, 1)
    table = write(tmp_path / "t.csv", "q00000,a,", "open-000,a,", head="item,model,score")
    run = import_on_banks(table, columns, [bank], runs=tmp_path / "runs").run
    assert medassay.verify(run.path).ok


def test_coverage_is_told_by_name(tmp_path, cli):
    bank = bank_of(tmp_path / "bank")
    other = [{**item, "id": f"x{item['id']}"} for item in makers.many_items(3, "other")]
    makers.write_bank(tmp_path / "other", other, name="other", domains=("other",))
    rows = [*answers(bank, "whole"), *list(answers(bank, "short"))[2:]]
    table = write(tmp_path / "t.csv", *rows)
    code, out, errors = cli(
        *("import", "csv", table, "--columns", "item=item,model=model,prediction=answer"),
        *("--bank", "bank", "--bank", "other"),
    )
    assert code == 0, errors
    assert "20 items of law-2026.1" in out
    assert "1 of 2 rows with a prediction for each" in out
    assert "domains without any prediction, left out: other" in out
    assert "short (zero_shot, solo): 18 of 20 items; missing: q00000, q00001" in out


MODELS = {"id": "a", "provider": "fake", "family": "alpha", "size": 7, "licence": "MIT"}


def test_a_models_file_says_what_the_models_are(tmp_path, cli):
    bank = bank_of(tmp_path / "bank")
    makers.write_models(tmp_path, {**MODELS, "location": "local"})
    run = place(tmp_path, bank, "a", "b", models=load_models(tmp_path / "models.json")).run
    entry = run.manifest_document["models"]["a"]
    assert entry == {
        "id": "a",
        "provider": "import",
        "location": "local",
        "family": "alpha",
        "size": 7,
        "licence": "MIT",
    }
    assert run.manifest_document["models"]["b"] == {
        "id": "b",
        "provider": "import",
        "location": "external",
    }
    page = medassay.publish(run, tmp_path / "site").parent / "model/a/index.html"
    assert "alpha" in page.read_text()
    table = write(tmp_path / "t.csv", *answers(bank, "c"))
    code, _, errors = cli(
        *("import", "csv", table, "--columns", "item=item,model=model,prediction=answer"),
        *("--bank", "bank", "--models", "models.json"),
    )
    assert code == 3
    assert "--models: names none of c; expected entries whose id is the name" in errors


@pytest.mark.parametrize(("key", "code"), [("7", 3), ("5", 0), ("5 mg", 0)])
def test_a_key_that_contradicts_a_number_of_the_bank_is_refused(tmp_path, cli, key, code):
    item = {**makers.many_items(1)[0], "id": "n1", "range": {"lo": 5, "hi": 5}}
    for name in ("options", "expected"):
        item.pop(name)
    makers.write_bank(tmp_path / "bank", [item])
    (tmp_path / "t.csv").write_text(f"item,model,prediction,key\nn1,m,5,{key}\n")
    columns = "item=item,model=model,prediction=prediction,key=key"
    given = cli("import", "csv", "t.csv", "--columns", columns, "--bank", "bank", "--to", "run")
    assert given[0] == code, given[2]
    assert ("item 'n1' has key '7' here" in given[2]) is (code == 3)


@pytest.mark.parametrize(
    ("target", "key", "fits"),
    [
        (Pattern(regex=r"\bASS\b"), r"\bASS\b", True),
        (Pattern(regex=r"\bASS\b"), r"/\bASS\b/", True),
        (Pattern(regex=r"\bASS\b"), "ASS 100", True),
        (Pattern(regex=r"\bASS\b"), "Heparin", False),
        (Range(lo=4500, hi=5500, locale="de"), "5.000", True),
        (Range(lo=4500, hi=5500), "5", False),
        (Range(lo=2.5, hi=3.5), "2.5 to 3.5", True),
        (Reference(), "whatever", True),
    ],
)
def test_a_key_is_compared_where_anybody_can_tell(target, key, fits):
    assert _is_key(key, target) is fits


def test_an_import_names_what_its_items_need(tmp_path):
    """Another reading of numbers begins no new series where nobody answered with a number."""
    doses = [
        {"id": f"n{i}", "domain": "dose", "answer_type": "closed", "source": "a table"}
        | {"question": f"How many mg are {i} tablets?", "range": {"lo": i, "hi": i}}
        for i in range(12)
    ]
    bank = bank_of(tmp_path / "bank", [*makers.many_items(20), *doses])
    rows = [f"q{n:05},m,A" for n in range(20)]
    run = import_on_banks(write(tmp_path / "a.csv", *rows), COLUMNS, [bank], to=tmp_path / "a").run
    assert run.manifest_document["revisions"]["parser"] == ["choice/1"]
    rows += [f"n{n},m,{n}" for n in range(12)]
    both = import_on_banks(write(tmp_path / "b.csv", *rows), COLUMNS, [bank], to=tmp_path / "b").run
    assert both.manifest_document["revisions"]["parser"] == ["choice/1", "number/2"]
    assert both.manifest.methodology != run.manifest.methodology


@pytest.mark.parametrize("column", ["setting", "mode"])
def test_two_settings_or_modes_that_look_the_same_are_refused_on_a_bank_too(tmp_path, column):
    bank = bank_of(tmp_path / "bank")
    rows = [f"q{n:05},m,A,{name}" for n in range(20) for name in ("\u00e9", "e\u0301")]
    table = write(tmp_path / "t.csv", *rows, head="item,model,answer,other")
    with pytest.raises(InputError, match=f"two {column}s are called"):
        import_on_banks(table, {**COLUMNS, column: "other"}, [bank], to=tmp_path / "run")


def test_two_models_that_look_the_same_are_refused_on_a_bank_too(tmp_path, cli):
    makers.write_bank(tmp_path / "bank", makers.many_items(2))
    rows = "q00000,gpt 4,A\nq00001,gpt\u00a04,A\n"
    (tmp_path / "t.csv").write_text(f"item,model,prediction\n{rows}")
    columns = "item=item,model=model,prediction=prediction"
    code, _, errors = cli("import", "csv", "t.csv", "--columns", columns, "--bank", "bank")
    assert (code, "two models are called 'gpt" in errors) == (3, True), errors


def test_entries_that_are_not_enabled_say_what_a_model_is(tmp_path, cli):
    makers.write_bank(tmp_path / "bank", makers.many_items(2))
    makers.write_models(tmp_path, {**makers.fake("m"), "family": "x", "enabled": False})
    (tmp_path / "t.csv").write_text("item,model,prediction\nq00000,m,A\nq00001,m,A\n")
    columns = "item=item,model=model,prediction=prediction"
    options = ("--bank", "bank", "--models", "models.json", "--to", "run")
    code, _, errors = cli("import", "csv", "t.csv", "--columns", columns, *options)
    assert code == 0, errors
    manifest = json.loads((tmp_path / "run/manifest.json").read_text())
    assert manifest["models"]["m"]["family"] == "x"


@pytest.mark.parametrize(
    ("rows", "columns", "says"),
    [
        (["q00000,a,A", "zz,a,A", "yy,a,A"], {}, "2 items not among those of bank 'law': 'zz' (t."),
        (["dev-1,a,A"], {}, "('dev-1' is an example there, split dev)"),
        (["q00000,a,A", "q00000,a,B"], {}, "t.csv row 3: a second row for item 'q00000'"),
        (["q00000,,A"], {}, "t.csv row 2: 'model' is empty"),
        (["q00000,a,A"], {"key": "item"}, "has key 'q00000' here and"),
        (["q00000,a,A"], {"domain": "model"}, "item 'q00000' is of law, not of 'a'"),
        (["q1,a,A"], {}, "1 item not among those of bank 'law': 'q1'"),
        (["open-000,a,A"], {}, "1 item of bank 'law' that judges score, as 'open-000'"),
        (["q00000,a,A"], {"wat": "model"}, "'wat' is unknown"),
        (["q00000,a,A"], {"score": "answer"}, "stands for both prediction and score"),
        ([], {}, "no rows below the header"),
    ],
)
def test_what_does_not_belong_is_refused_and_leaves_nothing(tmp_path, rows, columns, says):
    example = {**makers.many_items(1)[0], "id": "dev-1", "split": "dev"}
    bank = bank_of(tmp_path / "bank", [*makers.many_items(12), *makers.open_items(2), example])
    table = write(tmp_path / "t.csv", *rows)
    with pytest.raises(InputError) as caught:
        import_on_banks(table, {**COLUMNS, **columns}, [bank], runs=tmp_path / "runs")
    assert says in str(caught.value)
    assert not [*(tmp_path / "runs").glob("*")]


def test_what_a_bank_cannot_give_is_asked_for(tmp_path):
    table = write(tmp_path / "t.csv", "q00000,a,A")
    bank = bank_of(tmp_path / "bank", makers.open_items(12))
    with pytest.raises(InputError, match="scored by judges"):
        import_on_banks(table, COLUMNS, [bank], runs=tmp_path)
    with pytest.raises(InputError, match="give prediction=…, or score=…"):
        import_on_banks(table, {"item": "item", "model": "model"}, [bank], runs=tmp_path)
    with pytest.raises(InputError, match="share the domain 'law'"):
        import_on_banks(table, COLUMNS, [bank, bank_of(tmp_path / "two")], runs=tmp_path)
    one, two = (
        bank_of(tmp_path / name, makers.many_items(12, name), name=name) for name in ("aa", "bb")
    )
    with pytest.raises(InputError, match="in the domains aa, bb; add domain"):
        import_on_banks(table, COLUMNS, [one, two], runs=tmp_path)
