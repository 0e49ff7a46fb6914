import fcntl
import json
from hashlib import sha256

import pytest
from tests import makers

import medassay
from medassay import pipeline
from medassay.core.canonical import canonical
from medassay.errors import IncompleteError, InputError
from medassay.publishing import tombstone
from medassay.publishing.tombstone import forget
from medassay.publishing.verify import verify
from medassay.storage.response import ResponseStore
from medassay.storage.run import LOCK, STUDIES

SECRET = "the patient of the third of May"


@pytest.fixture
def workspace(tmp_path):
    items = makers.open_items(12)
    items[3]["question"] += f" Is it about {SECRET}?"
    judges = makers.judges()
    told = {
        i["id"]: f"It is {i['id']} {SECRET}" if n == 3 else "Duty." for n, i in enumerate(items)
    }
    makers.write_bank(tmp_path / "bank", items)
    makers.write_models(tmp_path, makers.fake("m", replies=told), *judges)
    plan = makers.write_plan(tmp_path, judges=[j["id"] for j in judges], task="open")
    return tmp_path, medassay.run(plan, secrets={})


def everything(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def scores_of(run):
    lines = (run.path / "scores.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return {record["item"]: record["score"] for record in records}


def bury(folder):
    return forget("open-003", folder, reason="request of a patient", at="2026-11-21T00:00:00Z")


def test_what_is_forgotten_is_nowhere_and_the_chain_stays_whole(workspace):
    folder, run = workspace
    before = run.seal
    assert any(SECRET.encode() in data for data in everything(run.path).values())
    found = bury(folder)
    assert found.runs == [run.id]
    assert found.replies >= 1 + 3  # the answer, and a verdict of each judge
    for path, data in everything(folder).items():
        if "bank" not in path.parts and path.suffix != ".zst" and path.name != "models.json":
            assert SECRET.encode() not in data or path.name == "manifest.json", path
    again = medassay.open_run(run.path)
    assert again.seal == before
    report = verify(run.path)
    assert report.ok, report.first_mismatch
    assert any("1 item deleted" in check["detail"] for check in report.checks)
    lines = [json.loads(x) for x in (run.path / "trials.jsonl").read_text().splitlines()]
    [gone] = [line for line in lines if "tombstone" in line]
    assert gone["item"] == "open-003"
    assert "text" not in gone
    # Called again it changes nothing; other items keep their replies.
    held = everything(run.path)
    assert bury(folder).replies == 0
    assert everything(run.path) == held
    with ResponseStore(folder / "responses") as store:
        assert store.purge(lambda line: False) == 0


def test_a_forgotten_item_is_shown_as_deleted_and_the_board_verifies(workspace):
    folder, run = workspace
    bury(folder)
    page = medassay.publish(medassay.open_run(run.path), folder / "site").parent
    assert verify(folder / "site").ok
    shown = next((page / "cell").rglob("index.html")).read_text()
    assert "Deleted by law" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("file", ["trials.jsonl", "verdicts.jsonl"])
def test_a_tombstone_that_is_not_listed_or_not_of_the_record_is_found(workspace, file):
    folder, run = workspace
    bury(folder)
    path = run.path / file
    path.chmod(0o644)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for change in (
        lambda r: r[0].update(tombstone="0" * 64),
        lambda r: next(x for x in r if "tombstone" in x).update(tombstone="0" * 64),
        lambda r: next(x for x in r if "tombstone" in x).update(item="open-004"),
    ):
        forged = json.loads(json.dumps(records))
        change(forged)
        path.write_bytes(b"".join(canonical(r) + b"\n" for r in forged))
        note = json.loads((run.path / "tombstones.json").read_text())
        import hashlib

        note["files"][file]["now"] = hashlib.sha256(path.read_bytes()).hexdigest()
        (run.path / "tombstones.json").chmod(0o644)
        (run.path / "tombstones.json").write_bytes(canonical(note) + b"\n")
        assert not verify(run.path).ok


@pytest.mark.parametrize(
    "change",
    [
        lambda items: items[0].update(question="Another question?"),
        lambda items: items[0].update(must_have="Another fact."),
        lambda items: next(i for i in items if "tombstone" in i).update(tombstone="0" * 64),
        lambda items: items.reverse(),
    ],
)
def test_an_item_that_was_not_deleted_is_the_one_that_was_sealed(workspace, change):
    folder, run = workspace
    bury(folder)
    path = run.path / "items.jsonl"
    path.chmod(0o644)
    items = [json.loads(line) for line in path.read_text().splitlines()]
    change(items)
    path.write_bytes(b"".join(canonical(item) + b"\n" for item in items))
    note = json.loads((run.path / "tombstones.json").read_text())
    note["files"]["items.jsonl"]["now"] = sha256(path.read_bytes()).hexdigest()
    (run.path / "tombstones.json").write_bytes(canonical(note) + b"\n")
    assert "items.jsonl: an item that was not deleted" in verify(run.path).first_mismatch


def test_a_seal_without_a_root_of_items_is_read_as_before(workspace):
    folder, run = workspace
    path = run.path / "seal.json"
    body = json.loads(path.read_text())
    assert len(body.pop("items_root")) == 64
    del body["hash"]
    path.chmod(0o644)
    path.write_bytes(canonical({**body, "hash": sha256(canonical(body)).hexdigest()}) + b"\n")
    bury(folder)
    report = verify(run.path)
    assert report.ok, report.first_mismatch


def test_a_deletion_that_was_cut_off_is_finished_by_the_same_call(workspace, monkeypatch):
    from pathlib import Path

    folder, run = workspace
    whole = Path.replace

    def cut(path, target):
        if Path(target).name == "trials.jsonl":
            raise KeyboardInterrupt
        return whole(path, target)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "replace", cut)
        bury(folder)
    assert not verify(run.path).ok
    bury(folder)
    assert verify(run.path).ok


def test_replies_are_gone_before_the_verdicts_that_name_them(workspace, monkeypatch):
    """Batches are found by their verdicts, by a call that was cut off, too."""
    folder, _ = workspace

    def cut(*arguments, **named):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(tombstone, "_bury", cut)
        bury(folder)
    with ResponseStore(folder / "responses") as store:
        assert store.purge(lambda line: line.get("item") == "open-003") == 0
    bury(folder)


def test_a_study_at_work_is_waited_for(workspace):
    folder, run = workspace
    study = folder / STUDIES / "contexts"
    study.mkdir(parents=True)
    with (study / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(IncompleteError, match="a study is at work"):
            bury(folder)
    assert (study / LOCK).exists()
    assert bury(folder).runs == [run.id]
    assert not study.exists()


def test_what_cannot_be_forgotten_is_told(workspace, cli):
    folder, run = workspace
    for item, reason, says in (
        ("nothing", "law", "no run with item 'nothing'"),
        ("open-003", " ", "--reason: empty"),
    ):
        with pytest.raises(InputError, match=says):
            forget(item, folder, reason=reason, at="x")
    code, shown, _ = cli("forget", "open-003", "--reason", "law", "--workspace", folder, "--yes")
    assert code == 0
    assert f"tombstones in {run.id}" in shown
    assert cli("score", run.path)[0] == 0


def test_findings_of_a_fresh_run_forget_replies_too(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    plan = makers.write_plan(tmp_path)
    for reply in (f"{SECRET}: one", f"{SECRET}: two"):
        makers.write_models(tmp_path, makers.fake(reply="A", replies={"q00003": reply}))
        run = pipeline.run(plan, secrets={}, fresh="two" in reply)
    assert SECRET in (run.path / "findings.jsonl").read_text()
    found = forget("q00003", tmp_path, reason="law", at="2026-11-21T00:00:00Z")
    assert len(found.runs) == 2
    for folder in (tmp_path / "runs").iterdir():
        assert verify(folder).ok
        for path in folder.glob("*.jsonl"):
            assert SECRET not in path.read_text(), path


def test_a_forgotten_rubric_keeps_the_lowest_score_that_bounds_need():
    from medassay.publishing.redaction import numbers_of

    criteria = [{"text": SECRET, "points": 5}, {"text": "harms", "points": -4}]
    item = {
        "id": "r",
        "kind": "public",
        "domain": "law",
        "answer_type": "open",
        "criteria": criteria,
    }
    found = numbers_of(item)
    assert found["lowest"] == -0.8
    assert SECRET not in json.dumps(found)


@pytest.mark.parametrize("task", ["open", "g_eval"])
def test_a_run_with_a_deleted_item_is_scored_and_judged_without_it(
    tmp_path, mock_server, task, cli
):
    url = mock_server()
    makers.write_bank(tmp_path / "bank", makers.open_items(12))
    names = ("x", "y", "z") if task == "open" else ("x",)
    judges = [makers.endpoint(url, name, family=f"{name}-family") for name in names]
    makers.write_models(tmp_path, makers.endpoint(url, "m", family="a"), *judges)
    plan = makers.write_plan(tmp_path, judges=[j["id"] for j in judges], task=task)
    run = medassay.run(plan, secrets={})
    before = scores_of(run)
    bury(tmp_path)
    code, shown, errors = cli("score", run.path)
    assert code == 0, errors
    assert "1 item of the run before was deleted by law: not scored, not counted" in shown
    rescored = max((tmp_path / "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert rescored != run.path
    after = medassay.open_run(rescored)
    assert scores_of(after) == {k: v for k, v in before.items() if k != "open-003"}
    assert after.manifest_document["deleted_items"] == [{"domain": "law", "item": "open-003"}]
    assert "open-003" not in (rescored / "trials.jsonl").read_text()
    report = verify(rescored)
    assert report.ok, report.first_mismatch
    panel = ",".join(judge["id"] for judge in judges)
    given = ("--panel", panel, "--models", tmp_path / "models.json", "--yes")
    code, _, errors = cli("judge", run.path, *given)
    assert code == 0, errors
    for path in (tmp_path / "runs").iterdir():
        assert verify(path).ok, verify(path).first_mismatch


def test_a_run_of_which_everything_was_deleted_has_nothing_to_score(tmp_path, cli):
    makers.write_bank(tmp_path / "bank", makers.many_items(2))
    makers.write_models(tmp_path, makers.fake(reply="A"))
    run = pipeline.run(makers.write_plan(tmp_path), secrets={})
    for name in ("q00000", "q00001"):
        forget(name, tmp_path, reason="law", at="2026-11-21T00:00:00Z")
    code, _, errors = cli("score", run.path)
    assert (code, "all its items were deleted; nothing is left to score" in errors) == (3, True)


def amend(run, changes, note):
    """Change files of a run as somebody would who knows what a deletion leaves behind."""
    for name, (old, new) in changes.items():
        path = run.path / name
        sealed = sha256(path.read_bytes()).hexdigest()
        data = path.read_bytes().replace(old, new, 1)
        assert sha256(data).hexdigest() != sealed
        path.chmod(0o644)
        path.write_bytes(data)
        now = {"sealed": sealed, "now": sha256(data).hexdigest()}
        note.setdefault("files", {})[name] = (
            {**now, "sealed": note["files"][name]["sealed"]}
            if (name in note.get("files", {}))
            else now
        )
    path = run.path / "tombstones.json"
    path.unlink(missing_ok=True)
    path.write_bytes(canonical({"schema_version": 1, "entries": [], **note}) + b"\n")


WORDS = {"items.jsonl": (b"question", b"Question")}
ENTRY = {"domain": "law", "item": "open-003", "at": "2026-11-21T00:00:00Z", "reason": "none"}


@pytest.mark.parametrize(
    ("changes", "note", "says"),
    [
        (WORDS, {}, "lists no item"),
        (WORDS, {"entries": [ENTRY]}, "was deleted, and is still there"),
        (
            {"manifest.json": (b'"name":"', b'"name":"x')},
            {"entries": [ENTRY]},
            "changes manifest.json, which a deletion leaves",
        ),
        (
            {"timings.jsonl": (b'"seconds":0', b'"seconds":9')},
            {"entries": [ENTRY]},
            "changes timings.jsonl, which a deletion leaves",
        ),
    ],
    ids=["no entry", "not deleted", "manifest", "timings"],
)
def test_what_no_deletion_explains_is_found_whatever_the_note_says(workspace, changes, note, says):
    _, run = workspace
    amend(run, changes, note)
    assert says in verify(run.path).first_mismatch


def test_a_tombstone_of_an_item_that_is_not_listed_is_found(workspace):
    folder, run = workspace
    bury(folder)
    note = json.loads((run.path / "tombstones.json").read_text())
    other = (run.path / "items.jsonl").read_bytes().splitlines()[0]
    assert b"tombstone" not in other
    buried = canonical({"domain": "law", "id": "open-000", "tombstone": "0" * 64})
    amend(run, {"items.jsonl": (other, buried)}, note)
    assert "open-000" in verify(run.path).first_mismatch
