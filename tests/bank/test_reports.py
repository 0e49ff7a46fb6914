"""Reports as banks: texts of one's own, GraSCCo, the published example; approval of references."""

import datetime as dt
import json

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from tests import makers

from medassay import pipeline
from medassay.bank.catalog import BANKS
from medassay.bank.folder import bank_records, load_bank, write_bank
from medassay.bank.markdown_record import read_markdown_record
from medassay.bank.release import approve
from medassay.bank.reports import load_reports
from medassay.errors import InputError

FORM = """### Analysis

1. **Date:** thought of before.
2. **Other:** nothing.

### Record

1. **Categories:** Urologie, Innere Medizin
2. **Date and Source:** 3.2.2026; Praxis am See
3. **Diagnosis:** BPH (obstruktiv, bekannt), Restharn
4. **Relevant metrics:** PSA: 2,1 ng/ml; Temp.: 36,9 °C (axillär); Nitrit: positiv
5. **Current or adviced medications:** * **Aktuelle Medikation:** Metoprolol 47,5 mg (1-0-0), Eisen
* **Empfohlene Medikation:** Tamsulosin 0,4 mg (0-0-1); *Hinweis: Oxybutynin 5 mg wurde abgesetzt.*
6. **Follow up:** Restharn in 4 Wochen; PSA in 12 Monaten.
"""


def test_the_six_numbered_fields_become_the_record():
    record = read_markdown_record(FORM).to_dict()
    assert record["categories"] == ["Urologie", "Innere Medizin"]
    assert record["date_and_source"] == {"date": "2026-02-03", "source": "Praxis am See"}
    assert record["diagnosis"] == ["BPH (obstruktiv, bekannt)", "Restharn"]
    assert record["relevant_metrics"] == [
        {"name": "PSA", "value": "2,1", "unit": "ng/ml", "note": None},
        {"name": "Temp.", "value": "36,9", "unit": "°C", "note": "axillär"},
        {"name": "Nitrit", "value": "positiv", "unit": None, "note": None},
    ]
    assert record["medications"] == {
        "current": [
            {"name": "Metoprolol", "dose": "47,5 mg", "schedule": "1-0-0"},
            {"name": "Eisen", "dose": None, "schedule": None},
        ],
        "advised": [{"name": "Tamsulosin", "dose": "0,4 mg", "schedule": "0-0-1"}],
        "discontinued": [{"name": "Oxybutynin", "dose": "5 mg", "schedule": None}],
    }
    assert record["follow_up"] == ["Restharn in 4 Wochen", "PSA in 12 Monaten"]


@pytest.mark.parametrize("n", range(1, 7))
def test_a_field_that_is_absent_is_named(n):
    lines = [line for line in FORM.splitlines() if not line.startswith(f"{n}. ")]
    with pytest.raises(ValueError, match="no numbered field whose label holds"):
        read_markdown_record("\n".join(lines))


@given(st.text(alphabet=st.sampled_from("123456. *:;,()\nabcdmg-_#Dd"), max_size=300))
def test_any_text_is_read_or_refused(text):
    body = "\n".join(
        f"{n}. **{label}:** {text}"
        for n, label in enumerate(
            ("Categories", "Date", "Diagnosis", "Metrics", "Medications", "Follow up"), 1
        )
    )
    try:
        read_markdown_record(body)
    except ValueError as error:
        assert "no numbered field" in str(error)


def test_the_published_example_is_converted_and_says_so(data):
    bank = BANKS["slm_extraction"].load(data / "slm_extraction")
    [item] = bank.items
    assert item.target.origin.converted
    assert [d["name"] for d in item.target.record["medications"]["discontinued"]] == ["ASS"]
    assert [d["name"] for d in item.target.record["medications"]["current"]] == ["Bisoprolol"]
    assert {(m["name"], m["value"], m["unit"]) for m in item.target.record["relevant_metrics"]} == {
        ("RR", "145/90", "mmHg"),
        ("Puls", "72", "/min"),
        ("LDL", "110", "mg/dl"),
        ("Kreatinin", "0,9", "mg/dl"),
    }


def test_all_letters_of_grascco_become_reports(data, tmp_path):
    bank = BANKS["grascco"].load(data / "grascco")
    assert len(bank.items) == 63
    assert {item.form for item in bank.items} == {"report"}
    records = (record for _, record in bank_records(bank))
    write_bank(tmp_path / "grascco", bank.card, records)
    again = load_bank(tmp_path / "grascco", lock=None)
    assert [i.question for i in again.items] == [i.question for i in bank.items]


def test_a_folder_of_texts_becomes_a_bank(tmp_path):
    for name, text in {"a.txt": "Bericht A", "b.md": "\ufeffBericht B", "c.txt": " \n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "d.pdf").write_bytes(b"%PDF")
    given_ = {"name": "own", "licence": "internal", "domain": "letters", "language": "de"}
    bank = load_reports(tmp_path, **given_)
    assert [(i.id, i.question, i.language) for i in bank.items] == [
        ("a", "Bericht A", "de"),
        ("b", "Bericht B", "de"),
    ]
    assert bank.dropped == {"empty report": 1}


GIVEN = {"name": "n", "licence": "l", "domain": "d", "language": "de"}


@pytest.mark.parametrize("name", ["new\nline.txt", " .txt", "\u202egnp.txt"])
def test_a_file_whose_name_can_be_no_id_is_named(tmp_path, name):
    (tmp_path / name).write_text("Bericht")
    with pytest.raises(InputError, match="its name becomes the id of the report"):
        load_reports(tmp_path, **GIVEN)


def test_what_is_read_as_no_report_is_named(tmp_path):
    for name in ("a.txt", "a.json", "A.json", "b.docx", ".hidden"):
        (tmp_path / name).write_text('{"x": 1}' if name.endswith("json") else "A letter.")
    (tmp_path / "more").mkdir()
    told = []
    options = {"name": "r", "licence": "x", "domain": "d", "language": "en"}
    bank = load_reports(tmp_path, **options, tell=told.append)
    assert len(bank.items) == 1
    assert told[0] == "not read, neither a text nor the record of one: A.json, b.docx and more"


def test_two_files_that_would_be_one_report_are_both_named(tmp_path):
    for name in ("a.txt", "a.md"):
        (tmp_path / name).write_text(name)
    with pytest.raises(InputError, match=r"a\.md and a\.txt would both be report 'a'"):
        load_reports(tmp_path, **GIVEN)


def test_a_suffix_in_capitals_is_no_reason_to_lose_a_report(tmp_path):
    (tmp_path / "A.TXT").write_text("Bericht")
    assert [item.id for item in load_reports(tmp_path, **GIVEN).items] == ["A"]


@pytest.mark.parametrize("broken", ["none", "empty", "bytes"])
def test_what_holds_no_texts_is_refused(tmp_path, broken):
    folder = tmp_path / "x"
    if broken != "none":
        folder.mkdir()
    if broken == "bytes":
        (folder / "a.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"no folder|holds no|UTF-16"):
        load_reports(folder, name="n", licence="l", domain="d", language="de")


def silver_bank(folder):
    record = json.loads(json.dumps(read_markdown_record(FORM).to_dict()))
    items = [
        {
            "id": name,
            "domain": "letters",
            "answer_type": "open",
            "question": "Bericht",
            "record": record,
            "origin": makers.silver_origin("strong", "acme"),
            "source": "test",
        }
        for name in ("a", "b")
    ]
    return makers.write_bank(folder / "bank", items, name="letters", domains=["letters"])


def test_a_person_approves_and_a_new_version_says_so(tmp_path):
    folder, lock = silver_bank(tmp_path), tmp_path / "banks.lock"
    today = dt.date(2026, 11, 21)
    version, content = approve(folder, ["a"], who="Dr. Example", lock=lock, today=today)
    bank = load_bank(folder, lock=lock)
    assert (bank.version, bank.content_hash) == (version, content)
    told = {item.id: record.get("approval") for item, record in bank_records(bank)}
    assert told == {"a": {"who": "Dr. Example", "when": "2026-11-21"}, "b": None}
    assert "Approved by Dr. Example: a." in (folder / "CHANGES.md").read_text()
    second, _ = approve(folder, [], who="Dr. Other", lock=lock, today=today)
    assert second != version
    told = {i.id: r["approval"]["who"] for i, r in bank_records(load_bank(folder, lock=lock))}
    assert told == {"a": "Dr. Example", "b": "Dr. Other"}  # the first one's word stays


def test_what_was_approved_or_has_no_record_is_not_approved(tmp_path):
    folder, lock = silver_bank(tmp_path), tmp_path / "banks.lock"
    today = dt.date(2026, 11, 21)
    approve(folder, ["a"], who="Dr. Example", lock=lock, today=today)
    with pytest.raises(InputError, match=r"'a' was approved by Dr\. Example on 2026-11-21"):
        approve(folder, ["b", "a"], who="me", lock=lock, today=today)
    approve(folder, [], who="me", lock=lock, today=today)
    with pytest.raises(InputError, match="nothing that could still be approved"):
        approve(folder, [], who="me", lock=lock, today=today)
    report = [{"id": "r", "domain": "d", "answer_type": "open", "question": "B", "record": None}]
    bare = makers.write_bank(
        tmp_path / "bare", [{**report[0], "source": "t"}], name="n", domains=["d"]
    )
    with pytest.raises(InputError, match="'r' has no record to approve"):
        approve(bare, ["r"], who="me", lock=lock, today=today)


@pytest.mark.parametrize(
    ("names", "who", "says"), [(["c"], "me", "no item 'c'"), ([], " ", "nobody is named")]
)
def test_an_approval_without_item_or_person_changes_nothing(tmp_path, names, who, says):
    folder = silver_bank(tmp_path)
    before = (folder / "items.jsonl").read_bytes()
    with pytest.raises(InputError, match=says):
        approve(folder, names, who=who, lock=tmp_path / "l", today=dt.date(2026, 1, 1))
    assert (folder / "items.jsonl").read_bytes() == before


def test_an_approval_that_cannot_be_released_changes_nothing(tmp_path):
    folder = silver_bank(tmp_path)
    before = (folder / "items.jsonl").read_bytes()
    (tmp_path / "banks.lock").mkdir()
    with pytest.raises(OSError, match=r"banks\.lock"):
        approve(folder, ["a"], who="me", lock=tmp_path / "banks.lock", today=dt.date(2026, 1, 1))
    assert (folder / "items.jsonl").read_bytes() == before


def test_imported_reports_stay_unless_somebody_says_that_they_may_leave(tmp_path, cli):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "letter-1.txt").write_text("Der Patient nimmt Ramipril 5 mg.")
    code, _, told = cli("bank", "import", "reports", folder, "--name", "stay", "--language", "de")
    assert code == 0
    assert "may_leave = false: no model elsewhere is asked" in told
    assert load_bank(tmp_path / "stay", lock=None).may_leave is False
    assert cli("bank", "import", "reports", folder, "--name", "go", "--may-leave")[0] == 0
    assert load_bank(tmp_path / "go", lock=None).may_leave is True
    assert cli("bank", "import", "medqa", folder, "--may-leave")[0] == 2
    elsewhere = makers.endpoint("https://models.example.org/v1", "m", location="external")
    makers.write_models(tmp_path, elsewhere, makers.fake("near", reply="{}"))
    makers.write_plan(tmp_path, banks=["stay"], models=["m"], task="record")
    code, _, errors = cli("run", "plan.toml")
    assert (code, "may not leave" in errors) == (3, True)
    plan = makers.write_plan(tmp_path, banks=["stay"], models=["near"], task="record")
    run = pipeline.run(plan, secrets={})
    code, _, errors = cli("publish", run.path, "--to", tmp_path / "site")
    assert (code, "bank 'stay' may not leave (may_leave = false)" in errors) == (1, True)
    assert not (tmp_path / "site").exists()


def test_publish_names_what_becomes_public_and_asks(tmp_path, cli, monkeypatch):
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    makers.write_models(tmp_path, makers.fake(reply="A"))
    run = pipeline.run(makers.write_plan(tmp_path), secrets={})
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: (_ for _ in ()).throw(typer.Abort))
    code, _, told = cli("publish", run.path, "--to", tmp_path / "site")
    assert code != 0
    assert "the questions, reports and targets of law-2026.1 (12 items)" in told
    assert not (tmp_path / "site").exists()
    assert cli("publish", run.path, "--to", tmp_path / "site", "--yes")[0] == 0
