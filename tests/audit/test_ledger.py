import hashlib
import json
import random
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import makers

import medassay
from medassay.audit.proof import prove
from medassay.audit.publish import set_status
from medassay.audit.verify import verify
from medassay.errors import GateError, InputError
from medassay.storage.ledger import START, append_entry, chained, lock_site, read_ledger
from medassay.storage.merkle import proves


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ledger")
    makers.write_bank(folder / "bank", makers.law_items())
    makers.write_models(folder, makers.fake(letters="hash"))
    run = medassay.run(makers.write_plan(folder), secrets={})
    return run


@pytest.fixture
def site(published, tmp_path):
    medassay.publish(published, tmp_path / "site", publication="one")
    medassay.publish(published, tmp_path / "site", publication="two")
    return tmp_path / "site"


def test_reproduces_the_golden_chain(golden):
    prev = START
    for entry in golden("bank_versioning")["chain"]:
        assert entry["prev"] == prev
        prev = chained(prev, entry["record"])
        assert prev == entry["hash"]


records = st.dictionaries(st.text(max_size=5), st.text(max_size=5) | st.integers(-9, 9))


@settings(max_examples=40, deadline=None)  # every line is brought to the disk
@given(st.lists(records, min_size=1, max_size=5), st.data())
def test_a_changed_line_is_found_whatever_is_changed(tmp_path_factory, given_records, data):
    folder = tmp_path_factory.mktemp("log")
    for record in given_records:
        append_entry(folder, record)
    assert [entry.record for entry in read_ledger(folder)] == given_records
    path = folder / "log.jsonl"
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(medassay.errors.MedassayError):
        read_ledger(folder)


def test_every_publication_is_a_line_that_holds_the_one_before_it(site):
    lines = [json.loads(line) for line in (site / "log.jsonl").read_text().splitlines()]
    assert [line["record"]["publication"] for line in lines] == ["one", "two"]
    assert lines[0]["prev"] == START
    assert lines[1]["prev"] == lines[0]["hash"]
    front = (site / "index.html").read_text()
    assert front.index("p/two/") < front.index('<li><a href="p/one/')
    assert "p/one/index.html" in (site / "log/index.html").read_text()
    assert json.loads((site / "status/one.json").read_text())["status"] == "current"
    report = verify(site)
    assert report.ok
    assert report.checks[0]["detail"] == f"2 lines, last hash {lines[1]['hash']}"


def test_a_status_is_a_line_too_and_the_publication_keeps_its_bytes(site, cli):
    before = {p: p.read_bytes() for p in (site / "p").rglob("*") if p.is_file()}
    options = ("--reason", "a key was wrong", "--next", "two")
    assert cli("status", site, "one", "corrected", *options)[0] == 0
    assert before == {p: p.read_bytes() for p in (site / "p").rglob("*") if p.is_file()}
    state = json.loads((site / "status/one.json").read_text())
    assert (state["status"], state["next"]) == ("corrected", "two")
    shown = (site / "status/one/index.html").read_text()
    assert "a key was wrong" in shown
    assert "../../p/two/index.html" in shown
    assert verify(site).ok
    for arguments, says in (
        (
            ("nobody", "retracted", "--reason", "x"),
            "no publication 'nobody'; there are one, two",
        ),
        (("one", "wrong", "--reason", "x"), "expected one of current, superseded"),
        (("one", "retracted", "--reason", " "), "readers must learn why"),
        (("one", "retracted", "--reason", "x", "--next", "one"), "the publication itself"),
    ):
        code, _, errors = cli("status", site, *arguments)
        assert code == 3, errors
        assert says in errors
    assert len(read_ledger(site)) == 3


def test_the_second_of_two_publishers_is_refused_and_writes_nothing(published, site):
    before = {p: p.read_bytes() for p in site.rglob("*") if p.is_file()}
    with lock_site(site), pytest.raises(GateError, match="another process is publishing"):
        medassay.publish(published, site, publication="three")
    assert before == {p: p.read_bytes() for p in site.rglob("*") if p.is_file()}
    medassay.publish(published, site, publication="three")


def test_publishers_at_the_same_time_leave_a_whole_site(published, tmp_path):
    code = (
        "import sys, medassay; from pathlib import Path\n"
        "try: medassay.publish(sys.argv[1], Path(sys.argv[2]), publication=sys.argv[3])\n"
        "except medassay.errors.GateError as error: print(error); sys.exit(1)"
    )
    site = tmp_path / "site"
    started = [
        subprocess.Popen([sys.executable, "-c", code, published.path, site, f"p{n}"])
        for n in range(3)
    ]
    codes = [process.wait(60) for process in started]
    assert set(codes) <= {0, 1}
    assert len(read_ledger(site)) == codes.count(0) >= 1
    assert verify(site).ok


def test_a_publication_that_was_cut_off_before_its_line_gets_it_with_the_next_call(
    published, site, monkeypatch
):
    def cut(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("medassay.audit.publish.append_entry", cut)
        medassay.publish(published, site, publication="three")
    assert "p/three: not in log.jsonl" in verify(site).first_mismatch
    with pytest.raises(GateError, match="exists"):
        medassay.publish(published, site, publication="three")
    assert verify(site).ok
    assert len(read_ledger(site)) == 3


def test_a_site_that_lost_its_ledger_is_not_published_to(published, site):
    (site / "log.jsonl").unlink()
    assert verify(site).first_mismatch.startswith("log.jsonl: missing")
    with pytest.raises(GateError, match="bring the ledger back"):
        medassay.publish(published, site, publication="three")


def test_faults_in_ledger_and_status_are_named(site):
    """Flipped bytes, cut ends, lines exchanged or left out."""
    random.seed(4)
    for path in (
        site / "log.jsonl",
        site / "status/one.json",
        site / "p/one/data/MANIFEST.sha256",
    ):
        whole = path.read_bytes()
        path.chmod(0o644)
        lines = whole.splitlines(keepends=True)
        broken = [
            whole[:-1],
            whole[: len(whole) // 2],
            b"",
            *([b"".join(lines[::-1])] * (len(lines) > 1)),
        ]
        broken += [b"".join(lines[:-1]), b"".join(lines[1:])]
        for _ in range(20):
            at = random.randrange(len(whole))
            broken.append(
                whole[:at] + bytes([whole[at] ^ 1 << random.randrange(8)]) + whole[at + 1 :]
            )
        for data in broken:
            path.write_bytes(data)
            found = verify(site)
            assert not found.ok
            assert found.first_mismatch
        path.write_bytes(whole)
    assert verify(site).ok


def test_a_site_that_is_none_has_no_status(tmp_path):
    with pytest.raises(InputError, match="no site"):
        set_status(tmp_path, "one", "retracted", reason="x")


def test_one_answer_is_proved_up_to_the_ledger(site, cli):
    page = next((site / "p/two/cell").rglob("index.html")).read_text()
    digest = re.search(r'data-sha256="([0-9a-f]{64})"', page)[1]
    code, shown, _ = cli("--json", "verify", site, "--answer", digest[:12])
    found = json.loads(shown)
    assert (code, found["ok"]) == (0, True)
    assert [check["name"] for check in found["checks"]] == [
        "record",
        "data root",
        "publication",
        "ledger",
    ]
    proof = found["proof"]
    assert hashlib.sha256(proof["record"].encode()).hexdigest() == proof["sha256"] == digest
    path = [bytes.fromhex(node) for node in proof["path"]]
    root = bytes.fromhex(proof["root"])
    assert proves(proof["record"].encode(), proof["leaf"], proof["count"], path, root)
    assert proof["ledger"]["hash"] == read_ledger(site)[1].hash
    code, shown, _ = cli("verify", site / "p/one", "--answer", digest)
    assert code == 0
    assert "ok       ledger: log.jsonl line 1" in shown
    for wrong, says in (
        ("00000000", "no record whose sha256"),
        ("nonsense", "expected the sha256"),
    ):
        code, _, errors = cli("verify", site, "--answer", wrong)
        assert code == 3
        assert says in errors


def test_a_proof_fails_where_the_ledger_says_another_root(site, monkeypatch):
    trial = (site / "p/one/data/run/trials.jsonl").read_bytes().splitlines()[0]
    entries = read_ledger(site)
    entries[1].record["root"] = "0" * 64
    monkeypatch.setattr("medassay.audit.proof.read_ledger", lambda folder: entries)
    report, _ = prove(site / "p/two", hashlib.sha256(trial).hexdigest())
    assert not report.ok
    assert "log.jsonl line 2" in report.first_mismatch
