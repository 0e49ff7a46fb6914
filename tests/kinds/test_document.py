"""Records by a schema of the user's: asked, held, read, compared, published, verified."""

import csv
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import makers
from tests.kinds.letters import DRUG, GOLD, LETTER, schema, workspace

import medassay
from medassay.core.records.document_schema import DocumentSchema, read_schema
from medassay.core.records.health_record import reply_schema
from medassay.core.records.prompt import Prompt
from medassay.kinds.document.parser import read_document
from medassay.kinds.document.scorer import compared, field_of
from medassay.prompt.render import document_template
from medassay.score.json_similarity import json_similarity

SAME = {
    "age": 62,
    "visit": "5.1.2026",
    "ward": "B",
    "summary": "seen",
    "drugs": [
        {"name": "metformin", "dose": "1 g", "icd": "e 11"},
        {"name": "ASPIRIN", "dose": "0,102 g", "icd": "I251"},
    ],
}


def scores(run):
    return [json.loads(line)["score"] for line in score_lines(run)]


def score_lines(run):
    return (run.path / "scores.jsonl").read_text().splitlines()


def test_what_says_the_same_is_right_however_it_is_written():
    comparison = compared(GOLD, SAME, schema())
    assert comparison.score == 1
    assert comparison.missing == comparison.extra == 0


@pytest.mark.parametrize(
    ("changed", "field", "expected"),
    [
        ({"age": 63}, "age", 0),
        ({"age": "sixty"}, "age", 0),
        ({"visit": "2026-01-06"}, "visit", 0),
        ({"visit": "05.01.2026"}, "visit", 1),
        ({"summary": "see"}, "summary", 0.75),
        ({"drugs": [{**GOLD["drugs"][0], "dose": "110 mg"}, GOLD["drugs"][1]]}, "drugs.dose", 0.5),
        ({"drugs": [{**GOLD["drugs"][0], "dose": "100 g"}, GOLD["drugs"][1]]}, "drugs.dose", 0.5),
        ({"drugs": [GOLD["drugs"][1]]}, "drugs.name", 0.5),
        ({"drugs": "none"}, "drugs.icd", 0),
        ({"drugs": [3, None, {"name": ["x"]}]}, "drugs.icd", 0),
    ],
)
def test_each_field_is_compared_by_its_rule(changed, field, expected):
    leaves = compared(GOLD, {**GOLD, **changed}, schema()).leaves
    own = [score for name, score, _ in leaves if name == field]
    assert sum(own) / len(own) == pytest.approx(expected)
    others = {name: score for name, score, _ in leaves if not field.startswith(name[:5])}
    assert all(score == 1 for score in others.values())


def test_weights_decide_how_much_a_field_counts():
    lost = {**GOLD, "drugs": [{**d, "icd": "Z99"} for d in GOLD["drugs"]]}
    # age, visit, summary, two names and two doses count 1 each, two codes 3 each, the ward nothing.
    assert compared(GOLD, lost, schema()).score == pytest.approx(7 / 13)
    assert compared(GOLD, {**GOLD, "ward": "B"}, schema()).score == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(JSON)
def test_any_reply_has_a_score_from_0_to_1(reply):
    assert 0 <= compared(GOLD, reply, schema()).score <= 1


@given(st.fixed_dictionaries({"a": st.text(max_size=8), "b": st.lists(st.text(max_size=4))}), JSON)
def test_without_rules_the_score_is_the_published_similarity(gold, reply):
    text = {"type": "string"}
    plain = schema(
        {
            "type": "object",
            "properties": {"a": text, "b": {"type": "array", "items": text}},
        }
    )
    assert compared(gold, reply, plain).score == json_similarity(gold, reply).overall


def test_fields_are_told_by_their_place_without_entries():
    read = schema()
    assert field_of("drugs.aspirin.dose", read) == "drugs.dose"
    assert field_of('drugs["name 2"].dose', read) == "drugs.dose"
    assert field_of("visit", read) == "visit"


def test_a_run_asks_by_the_schema_and_tells_each_field(tmp_path):
    plan = workspace(
        tmp_path,
        makers.fake("good", reply=f"```json\n{json.dumps(SAME)}\n```"),
        makers.fake("poor", reply='{"age": "old", "drugs": [{"name": "Aspirin"}]}'),
        makers.fake("none", reply="I cannot say."),
    )
    run = medassay.run(plan, secrets={})
    assert run.statistics.metric == "field_score"
    lines = [json.loads(line) for line in score_lines(run)]
    by_model = {model: [x for x in lines if x["model"] == model] for model in ("good", "none")}
    assert [line["parts"]["field drugs.dose"] for line in by_model["good"]] == [1] * 4
    assert [line["parts"]["valid"] for line in by_model["good"]] == [1] * 4
    assert [line["score"] for line in by_model["none"]] == [0] * 4
    poor = [line for line in lines if line["model"] == "poor"]
    assert [line["parts"]["valid"] for line in poor] == [0] * 4
    assert run.statistics.document["document"]["columns"]["valid"] == [0, 1]
    report = medassay.verify(run.path)
    assert report.ok
    medassay.publish(run, tmp_path / "site")
    page = (tmp_path / "site/p" / run.id / "document/index.html").read_text()
    assert "field drugs.dose" in page
    assert "records are compared with references, field by field" in page
    figure = next((tmp_path / "site").rglob("document-solo.svg")).read_text()
    # More columns than colours: the columns stand side by side, and rows have the colours.
    assert figure.index("field drugs.dose") < figure.index(">row<")
    method = (tmp_path / "site/p" / run.id / "methodology/index.html").read_text()
    assert "x-medassay" in method
    assert medassay.verify(tmp_path / "site").ok


def test_the_study_tells_fields_passes_and_hard_reports(tmp_path, cli):
    workspace(
        tmp_path,
        makers.fake("good", reply=json.dumps(SAME)),
        makers.fake("poor", reply='{"age": 61, "drugs": [{"name": "Aspirin"}]}'),
    )
    assert cli("run", "plan.toml")[0] == 0
    [run] = (tmp_path / "runs").iterdir()
    code, out, errors = cli("study", "extraction", run, "--to", "study", "--pass", "score=0.9")
    assert code == 0, errors
    assert "Hardest reports" in out or "hardest" in out.lower()
    data = json.loads((tmp_path / "study/documents.json").read_text())
    numbers = {(n["model"], n["metric"]): n for n in data["numbers"]}
    assert numbers["good", "field drugs.dose"]["value"] == 1
    assert numbers["poor", "field drugs.dose"]["value"] == 0
    assert numbers["good", "score"]["passed"] > numbers["poor", "score"]["passed"] == 0
    assert numbers["good", "token_f1"]["value"] > numbers["poor", "token_f1"]["value"]
    assert (tmp_path / "study/index.html").is_file()
    code, _, errors = cli("study", "extraction", run, "--pass", "scoer=1")
    assert code == 3
    assert "'scoer' is unknown; known are score, precision" in errors


def test_the_prompt_shows_fields_and_form_and_the_reply_is_held_to_the_schema():
    item = medassay.Item(
        id="l",
        domain="law",
        question="Seen today.",
        target=medassay.Reference(),
    )
    template = document_template("document", schema())
    text = template.fill(item, None)
    assert "- visit: day of the visit" in text
    assert "- ward: one of A, B" in text
    assert '"dose": "…"' in text
    held = json.loads(template.schema)
    assert held["properties"]["drugs"]["items"]["properties"]["dose"] == {
        "type": ["string", "null"]
    }
    assert b"x-medassay" not in template.schema


def test_a_schema_with_other_rules_is_another_methodology(tmp_path):
    model = makers.fake(reply=json.dumps(SAME))
    plan = workspace(tmp_path, model)
    first = medassay.run(plan, secrets={})
    stricter = json.loads(json.dumps(LETTER))
    stricter["properties"]["age"]["x-medassay"]["tolerance"] = 0
    (tmp_path / "letter.schema.json").write_text(json.dumps(stricter))
    second = medassay.run(plan, secrets={})
    assert second.id != first.id
    assert second.manifest.methodology != first.manifest.methodology
    assert sum(scores(second)) < sum(scores(first))


def test_the_shipped_health_record_is_one_such_schema(tmp_path):
    items = [{**item, "domain": "law"} for item in makers.record_items(3)]
    replies = {f"r-{i:02}": json.dumps(makers.health_record(i)) for i in range(3)}
    plan = makers.workspace(
        tmp_path, items, makers.fake(replies=replies), schema="health_record", task="document"
    )
    run = medassay.run(plan, secrets={})
    assert scores(run) == [1, 1, 1]
    own = json.loads(DocumentSchema(_shipped()).reply_schema)
    published = reply_schema(monologue=False)["properties"]["structured_health_record"]
    assert own["properties"].keys() == published["properties"].keys()
    for section in ("current", "advised", "discontinued"):
        ours = own["properties"]["medications"]["properties"][section]["items"]["properties"]
        assert ours.keys() == {"name", "dose", "schedule"}


def _shipped():
    from importlib.resources import files

    path = files("medassay") / "schemas/records/health_record.schema.json"
    return read_schema(path.read_bytes(), "health_record").text


def test_pairs_of_texts_and_json_become_a_bank(tmp_path, cli):
    folder = tmp_path / "letters-in"
    folder.mkdir()
    for n in range(3):
        (folder / f"l{n}.txt").write_text(f"Letter {n}")
        (folder / f"l{n}.json").write_text(json.dumps({**GOLD, "age": n}))
    code, _, errors = cli("bank", "import", "reports", folder, "--name", "letters", "--may-leave")
    assert code == 0, errors
    bank = medassay.load_bank(tmp_path / "letters")
    assert [item.form for item in bank.items] == ["document"] * 3
    assert bank.limits == ""
    assert "3 of 3 reports have a reference record" in errors
    assert bank.items[1].target.document["age"] == 1
    (folder / "l1.json").write_text("[1]")
    code, _, errors = cli("bank", "import", "reports", folder, "--name", "other")
    assert code == 3
    assert "l1.json: expected a JSON object" in errors


def read(text, **how):
    prompt = Prompt(item_id="l", messages=(), encoded=b"", template="")
    return read_document(None, prompt, text, "standard", **how)


def test_replies_are_read_whole_or_not_at_all():
    assert read('{"a": 1}').value == '{"a": 1}'
    assert read('Here: {"a": 1}, done').reason == "json in prose"
    assert read("nothing").reason == "no complete JSON object"
    assert read('{"a": {"b": 1}, "c": [1, 2', cut=True).outcome == "truncated"
    assert read('{"a": {"b": 1}, "c": "open').outcome == "truncated"
    assert read("<think>so {").outcome == "truncated"
    assert read("[1]").value is None


def record(**properties):
    return schema({"type": "object", "properties": properties})


def field_rule(**rule):
    return {"type": "string", "x-medassay": rule}


NUMBER = record(a=field_rule(compare="number", unit="mg", tolerance=0.5))


@pytest.mark.parametrize(
    "text",
    [
        "1 9**9**9",
        "1 mg**9999999",
        "500 mg (1 tablet",
        "1 " + "mg*" * 5000 + "mg",
        "9" * 5000,
        "1e999",
        "1 __import__('os')",
        "nan",
        "1 mg\x00",
        "1 \ud800",
    ],
)
def test_a_hostile_number_is_no_number(text):
    began = time.monotonic()
    for gold, reply in (({"a": "12 mg"}, {"a": text}), ({"a": text}, {"a": "12 mg"})):
        assert compared(gold, reply, NUMBER).score == 0
    assert compared({"a": text}, {"a": text}, NUMBER).score == 1
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("gold", "reply", "same"),
    [
        ("1,000 mg", "1 mg", False),  # a thousand, or one? It is not guessed
        ("1,000 mg", "1000 mg", False),
        ("1,000 mg", "1,000 mg", True),
        ("1,000.5 mg", "1000.5 mg", True),
        ("1.000,5 mg", "1000,5 mg", True),
        ("0,125 mg", "125 µg", True),
        ("5e2 µg", "0.5 mg", True),
        ("−5 mg", "-5 mg", True),
        ("5 mg", "5 mmol", False),
        ("5 mg/l", "5 mg/L", True),
        ("5 tablets", "5 Tablets", True),
    ],
)
def test_a_number_is_the_same_in_another_spelling_alone(gold, reply, same):
    exact = record(a=field_rule(compare="number", unit="mg"))
    assert compared({"a": gold}, {"a": reply}, exact).score == same


@pytest.mark.parametrize(
    ("compare", "gold", "reply", "same"),
    [
        ("code", "Rh+", "Rh-", False),
        ("code", "Rh+", "rh +", True),
        ("code", "I10.9", "i109", True),
        ("date", "2026-01-05", "5.1.2026", True),
        ("date", "2026-01", "01.2026", True),
        ("date", "2026-01", "2026-01-01", False),
        ("date", "2026-01-05", "2026-13-45", False),
        ("date", "2026-01-05", "01/05/2026", False),  # two readings
    ],
)
def test_codes_and_dates_keep_what_tells_them_apart(compare, gold, reply, same):
    rule = record(a=field_rule(compare=compare))
    assert compared({"a": gold}, {"a": reply}, rule).score == same


def listed(**more):
    entry = {"type": "object", "properties": {"name": {"type": "string"}, "dose": DRUG["dose"]}}
    return record(drugs={"type": "array", "items": entry, **more})


def test_entries_are_found_whatever_they_are_called():
    keyed = listed(**{"x-medassay": {"key": "name"}})
    names = ("#", "name", "dose", "a.b", "a[0]", "drugs", "", "[0]")
    gold = {"drugs": [{"name": name, "dose": f"{n} mg"} for n, name in enumerate(names, 1)]}
    reply = {"drugs": gold["drugs"][::-1]}
    assert compared(gold, reply, keyed).score == 1
    told = {name for name, *_ in compared(gold, {}, keyed).leaves}
    assert told == {"drugs.name", "drugs.dose"}


def test_entries_of_one_key_are_held_against_those_that_are_equal():
    keyed = listed(**{"x-medassay": {"key": "name"}})
    gold = {"drugs": [{"name": "insulin", "dose": "8 mg"}, {"name": "insulin", "dose": "4 mg"}]}
    assert compared(gold, {"drugs": gold["drugs"][::-1]}, keyed).score == 1
    one = {"drugs": gold["drugs"][1:]}
    assert compared(gold, one, keyed).score == 0.5


@given(st.permutations([10, 20, 30, 40]))
def test_the_order_of_a_list_and_a_tolerance_do_not_disturb_each_other(order):
    gold = {"drugs": [{"name": f"d{n}", "dose": f"{n} mg"} for n in (10, 20, 30, 40)]}
    near = {"drugs": [{"name": f"d{n}", "dose": f"{n * 1.04} mg"} for n in order]}
    assert compared(gold, near, listed()).score == 1


def test_pairs_of_text_and_record_come_from_a_table(tmp_path, cli):
    with (tmp_path / "letters.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "report", "json"])
        for n in range(3):
            rows.writerow([f"l{n}", f"Letter {n}", json.dumps({**GOLD, "age": 60 + n})])
    code, _, errors = cli(
        *("bank", "import", "csv", "letters.csv", "--columns"),
        "id=id,question=report,document=json",
    )
    assert code == 0, errors
    assert "may_leave = false" in errors
    bank = medassay.load_bank(tmp_path / "letters")
    assert not bank.may_leave
    assert [item.target.document["age"] for item in bank.items] == [60, 61, 62]
    code, _, errors = cli(
        *("bank", "import", "csv", "letters.csv", "--to", "all", "--may-leave", "--columns"),
        "question=report,document=json",
    )
    assert code == 0, errors
    assert medassay.load_bank(tmp_path / "all").may_leave
    (tmp_path / "plain.csv").write_text("question,reference\nWhy?,So.\n")
    assert cli("bank", "import", "csv", "plain.csv", "--may-leave")[0] == 2
    for text, why in (("[1]", "expected a JSON object"), ("{", "not valid JSON")):
        (tmp_path / "bad.csv").write_text(f'id,question,document\nl0,Letter,"{text}"\n')
        code, _, errors = cli("bank", "import", "csv", "bad.csv", "--to", "bad")
        assert code == 3
        assert "bad.csv row 2: column 'document'" in errors
        assert why in errors
