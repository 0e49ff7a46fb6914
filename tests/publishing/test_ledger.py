import errno
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import makers

import medassay
from medassay.core.canonical import canonical
from medassay.errors import GateError, IncompleteError, InputError
from medassay.publishing import history
from medassay.publishing.history import set_status
from medassay.publishing.proof import prove
from medassay.publishing.publish import About
from medassay.publishing.verify import verify
from medassay.storage.ledger import START, append_entry, chained, lock_site, read_ledger
from medassay.storage.merkle import MerkleTree, consistency_proof, extends, proves
from medassay.storage.signature import Signer, new_key


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
    said = dict.fromkeys(("publication", "at", "status", "reason"), "x")
    given_records = [{**said, "event": "status", "more": record} for record in given_records]
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
        (
            ("two", "retracted", "--reason", "x", "--next", "one"),
            "'one' sends its readers on to two",
        ),
    ):
        code, _, errors = cli("status", site, *arguments)
        assert code == 3, errors
        assert says in errors
    assert len(read_ledger(site)) == 3


def test_the_second_of_two_publishers_is_refused_and_writes_nothing(published, site):
    before = {p: p.read_bytes() for p in site.rglob("*") if p.is_file()}
    with lock_site(site), pytest.raises(IncompleteError, match="another process is publishing"):
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
        patched.setattr("medassay.publishing.history.append_entry", cut)
        medassay.publish(published, site, publication="three")
    assert "p/three: not in log.jsonl" in verify(site).first_mismatch
    medassay.publish(published, site, publication="three")
    assert verify(site).ok
    assert len(read_ledger(site)) == 3


def test_a_site_that_lost_its_ledger_is_not_published_to(published, site):
    (site / "log.jsonl").unlink()
    assert verify(site).first_mismatch.startswith("log.jsonl: missing")
    with pytest.raises(GateError, match="bring the ledger back"):
        medassay.publish(published, site, publication="three")


def faulty(whole, chance):
    """Return the bytes of a file with one fault: a flipped bit, a cut end, lines exchanged or
    gone.
    """
    if not whole:
        return b"x"
    lines = whole.splitlines(keepends=True)
    at = chance.randrange(len(whole))
    flipped = whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :]
    first = chance.randrange(len(lines))
    fewer = lines[:first] + lines[first + 1 :]
    moved = b"".join([*fewer[: chance.randrange(len(lines))], lines[first], *fewer])
    return chance.choice([flipped, flipped, whole[:at], b"".join(fewer), moved])


@pytest.mark.slow
def test_five_hundred_faults_in_a_site_are_all_found(site, tmp_path):
    key = tmp_path / "key.pem"
    new_key(key)
    set_status(site, "one", "superseded", reason="newer", following="two", signer=Signer(key))
    chance = random.Random(4)
    files = sorted(p for p in site.rglob("*") if p.is_file() and p.name != ".lock")
    for path in files:
        path.chmod(0o644)
    for place in (
        "log.jsonl",
        "log/head.json",
        "status/one.json",
        "p/two/data/MANIFEST.sha256",
    ):
        assert site / place in files
    for number in range(500):
        # Every file once, then most often those whose bytes nothing else vouches for.
        path = files[number] if number < len(files) else chance.choice(files)
        whole = path.read_bytes()
        if number % 50 == 49:
            path.unlink()
        elif (data := faulty(whole, chance)) != whole:
            path.write_bytes(data)
        else:
            continue
        found = verify(site)
        assert not found.ok, path
        assert found.first_mismatch
        path.write_bytes(whole)
    assert verify(site).ok


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rerun", {"run": "another", "differing": 0, "trials": 48, "within": True}),
        ("joined", ["invented-1", "invented-2"]),
        ("demonstration", True),
    ],
)
def test_a_line_that_tells_of_a_run_what_it_does_not_hold_is_found(
    published, tmp_path, monkeypatch, key, value
):
    whole = history.recorded
    with monkeypatch.context() as patched:
        patched.setattr(history, "recorded", lambda *of_run: {**whole(*of_run), key: value})
        medassay.publish(published, tmp_path / "site", publication="one")
    assert f"says another {key}" in verify(tmp_path / "site").first_mismatch


def test_a_site_that_is_being_published_to_is_no_broken_one(site):
    draft = site / "p" / ".three.part" / "data"
    draft.mkdir(parents=True)
    (draft / "x").write_text("x")
    with lock_site(site), pytest.raises(IncompleteError, match="another process is publishing"):
        verify(site)
    assert ".three.part" in verify(site).first_mismatch
    shutil.rmtree(draft.parent)
    with lock_site(site):
        assert verify(site).ok


SECRET = "sk-" + "a1" * 20


def test_no_text_of_a_publisher_becomes_public_with_a_secret_in_it(site, published, tmp_path):
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    with pytest.raises(GateError, match="--reason: looks like a secret"):
        set_status(site, "one", "retracted", reason=f"The key {SECRET} was in it.")
    board = tmp_path / "board.toml"
    board.write_text(
        f'title = "T"\npurpose = "It uses {SECRET}."\npublisher = "P"\ncontact = "c"\n'
    )
    for about, name in (
        (About(board=board), "board.toml"),
        (About(reason=f"It is {SECRET}."), "--reason"),
    ):
        with pytest.raises(GateError, match=f"{name}: looks like a secret"):
            medassay.publish(published, site, publication="three", about=about)
    after = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    assert after == before


def test_of_an_answer_that_was_published_twice_the_newer_is_proved(published, tmp_path):
    site = tmp_path / "site"
    for name in ("z-older", "a-newer"):
        medassay.publish(published, site, publication=name)
    line = (published.path / "trials.jsonl").read_bytes().splitlines()[0]
    _, proof = prove(site, hashlib.sha256(line).hexdigest())
    assert proof["ledger"]["line"] == 2


def test_a_site_that_is_none_has_no_status(tmp_path):
    with pytest.raises(InputError, match="no site"):
        set_status(tmp_path, "one", "retracted", reason="x")


def test_one_answer_is_proved_up_to_the_ledger(site, cli):
    page = next((site / "p/two/cell").rglob("index.html")).read_text()
    digest = re.search(r'data-sha256="([0-9a-f]{64})"', page)[1]
    code, shown, _ = cli("--json", "verify", site, "--answer", digest[:12])
    found = json.loads(shown)
    assert (code, found["ok"]) == (0, True)
    assert [check["name"] for check in found["checks"]][-4:] == [
        "proof: record",
        "proof: data root",
        "proof: publication",
        "proof: ledger",
    ]
    proof = found["proof"]
    assert hashlib.sha256(proof["record"].encode()).hexdigest() == proof["sha256"] == digest
    path = [bytes.fromhex(node) for node in proof["path"]]
    root = bytes.fromhex(proof["root"])
    assert proves(proof["record"].encode(), proof["leaf"], proof["count"], path, root)
    assert proof["ledger"]["hash"] == read_ledger(site)[1].hash
    code, shown, _ = cli("verify", site / "p/one", "--answer", digest)
    assert code == 0
    assert "ok       proof: ledger: log.jsonl line 1" in shown
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
    monkeypatch.setattr("medassay.publishing.proof.read_ledger", lambda folder: entries)
    report, _ = prove(site / "p/two", hashlib.sha256(trial).hexdigest())
    assert not report.ok
    assert "log.jsonl line 2" in report.first_mismatch


def tree_root(leaves):
    """Return the root by the definition of RFC 6962, section 2.1."""
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\x01" + tree_root(leaves[:k]) + tree_root(leaves[k:])).digest()


@given(st.integers(1, 70), st.integers(1, 70), st.integers(0, 2**32))
def test_a_consistency_proof_holds_for_what_grew_and_for_nothing_else(one, other, seed):
    earlier, later = sorted((one, other))
    leaves = [f"record {n}".encode() for n in range(later)]
    before = (earlier, tree_root(leaves[:earlier]))
    now = (later, tree_root(leaves))
    proof = consistency_proof(leaves, earlier)
    assert len(proof) <= 2 * later.bit_length()
    assert extends(before, now, proof)
    changed = list(leaves)
    changed[seed % later] = b"changed"
    if seed % later < earlier:  # history rewritten: no proof from there leads to the kept root
        forged = (later, tree_root(changed))
        assert not extends(before, forged, consistency_proof(changed, earlier))
    if proof:
        assert not extends(before, now, proof[:-1])
        assert not extends(before, now, [*proof[:-1], b"x" * 32])


def test_the_proofs_of_the_tree_of_rfc_9162_are_those_it_prints():
    """RFC 9162, section 2.1.5: seven leaves, proofs between sizes 3, 4, 6 and 7."""
    leaves = [f"d{n}".encode() for n in range(7)]
    a, b, c, d, e, f, j = (hashlib.sha256(b"\x00" + leaf).digest() for leaf in leaves)

    def node(left, right):
        return hashlib.sha256(b"\x01" + left + right).digest()

    g, h, i = node(a, b), node(c, d), node(e, f)
    k, l = node(g, h), node(i, j)  # noqa: E741 -- the letters of the RFC
    assert consistency_proof(leaves, 3) == [c, d, g, l]
    assert consistency_proof(leaves, 4) == [l]
    assert consistency_proof(leaves, 6) == [i, j, k]
    tree = MerkleTree()
    for leaf in leaves:
        tree.add(leaf)
    assert tree.root() == node(k, l)


def test_a_signed_log_names_its_signer_and_stays_signed(published, tmp_path, cli):
    key, site = tmp_path / "key.pem", tmp_path / "site"
    code, shown, said = cli("--json", "keys", "new", key)
    public = json.loads(shown)["public_key"]
    assert code == 0
    assert "secret" in said
    assert key.stat().st_mode & 0o777 == 0o600
    assert public in cli("keys", "show", key)[1]
    assert cli("keys", "new", key)[0] == 3  # never overwritten
    first = ("publish", published.path, "--to", site, "--id", "one")
    assert cli(*first, "--key", key)[0] == 0
    code, shown, _ = cli("verify", site, "--signed-by", public)
    assert code == 0
    assert f"ok       signature: signed by {public}" in shown
    assert public in (site / "log/index.html").read_text()
    code, _, errors = cli("publish", published.path, "--to", site, "--id", "two")
    assert code == 3
    assert "sign with --key" in errors
    reason = ("--reason", "x", "--key", key)
    assert cli("status", site, "one", "retracted", *reason)[0] == 0
    assert cli("verify", site, "--signed-by", "0" * 64)[0] == 6
    inside = site / "key.pem"
    inside.write_bytes(key.read_bytes())
    code, _, errors = cli("status", site, "one", "current", "--reason", "x", "--key", inside)
    assert code == 1
    assert "outside" in errors
    (tmp_path / "none.pem").write_text("no key")
    code, _, errors = cli("keys", "show", tmp_path / "none.pem")
    assert code == 3
    assert "medassay keys new" in errors


def test_a_signature_of_another_line_or_another_spelling_is_refused(published, tmp_path):
    site = tmp_path / "site"
    new_key(tmp_path / "key.pem")
    signer = Signer(tmp_path / "key.pem")
    for name in ("one", "two"):
        medassay.publish(published, site, publication=name, signer=signer)
    path = site / "log.jsonl"
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    for wrong in (
        first["signature"],
        {**second["signature"], "value": second["signature"]["value"].upper()},
        {"key": second["signature"]["key"]},
        "signed",
    ):
        path.write_bytes(
            b"".join(canonical(x) + b"\n" for x in (first, {**second, "signature": wrong}))
        )
        assert "log.jsonl line 2: its signature is not of this line" in verify(site).first_mismatch


def test_what_an_outsider_kept_shows_a_rewritten_history(published, tmp_path, cli):
    site, other = tmp_path / "site", tmp_path / "other"
    medassay.publish(published, site, publication="one")
    medassay.publish(published, other, publication="one-b")
    kept = tmp_path / "kept.json"
    kept.write_bytes((site / "log/head.json").read_bytes())
    line = read_ledger(site)[0].hash
    for name in ("two", "three"):
        medassay.publish(published, site, publication=name)
        medassay.publish(published, other, publication=name)
    for since, says in ((kept, "1 kept lines are the first of 3"), (line, "line 1 of 3")):
        code, shown, _ = cli("verify", site, "--since", since)
        assert code == 0
        assert says in shown
        code, _, errors = cli("verify", other, "--since", since)
        assert code == 6
        assert "history was rewritten" in errors
    assert cli("verify", site, "--since", "nothing")[0] == 3
    assert cli("verify", published.path, "--since", kept)[0] == 3


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"event": "status", "publication": "one", "at": "x", "status": "retracted"},
        {"event": "status", "publication": ["one"], "at": "x", "status": "x", "reason": "x"},
        {"event": "publication", "publication": "one", "at": "x", "banks": []},
    ],
)
def test_a_chained_line_that_says_nothing_readers_know_is_refused_by_name(site, record, cli):
    append_entry(site, record)
    code, _, errors = cli("verify", site)
    assert (code, errors.count("\n")) == (6, 1)
    assert (
        "log.jsonl line 3: neither a publication, a change of status nor a step of a dispute"
        in errors
    )
    assert cli("status", site, "one", "retracted", "--reason", "x")[0] == 6


def test_pages_that_lie_are_found_though_their_sums_are_adapted(site):
    """The sums of the site's own pages vouch for themselves only: the pages are made once more."""
    set_status(site, "one", "retracted", reason="wrong key", following="two")
    sums = site / "log/SITE.sha256"
    for name, old, new in (
        ("status/one/index.html", "retracted", "current"),
        ("log/index.html", "retracted", "current"),
        ("index.html", "Overall ranking", "Best models"),
    ):
        path, whole = site / name, (site / name).read_text()
        listed = sums.read_text()
        path.write_text(whole.replace(old, new))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        changed = [
            f"{digest}  {name}" if x.endswith(f"  {name}") else x for x in listed.splitlines()
        ]
        sums.write_text("\n".join(changed) + "\n")
        assert f"{name}: not the page that" in verify(site).first_mismatch
        path.write_text(whole)
        sums.write_text(listed)
    assert verify(site).ok


def test_a_page_that_is_gone_is_told_as_missing(site):
    (site / "status/one/index.html").unlink()
    (site / "status/one").rmdir()
    assert re.fullmatch("missing: .*status/one/index.html", verify(site).first_mismatch)


def test_a_line_that_says_another_root_than_the_publication_is_found(published, tmp_path):
    site = tmp_path / "site"
    medassay.publish(published, site, publication="one")
    [entry] = read_ledger(site)
    (site / "log.jsonl").unlink()
    append_entry(site, {**entry.record, "root": "0" * 64})
    assert "p/one: log.jsonl says another root" in verify(site).first_mismatch


def test_foreign_files_in_a_site_are_named(site):
    for name in ("p/index.html", "p/.hidden/index.html", "p/one/seal.json", "p/one/lock"):
        path = site / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
        assert not verify(site).ok, name
        path.unlink()
        if path.parent.name == ".hidden":
            path.parent.rmdir()
    assert verify(site).ok


def test_nothing_is_written_into_what_must_not_change(published, site, tmp_path, cli):
    before = {p: p.read_bytes() for p in site.rglob("*") if p.is_file()}
    for arguments in (
        ("publish", published.path, "--to", site / "p/one", "--id", "x"),
        ("publish", published.path, "--to", site / "p", "--id", "x"),
        ("export", published.path, "--format", "csv", "--to", site / "p/one/x.csv"),
        ("export", published.path, "--format", "csv", "--to", published.path / "x.csv"),
        ("keys", "new", site / "k.pem"),
    ):
        code, _, errors = cli(*arguments)
        assert (code, errors.count("\n")) == (3, 1), (arguments, errors)
    assert before == {p: p.read_bytes() for p in site.rglob("*") if p.is_file()}
    assert verify(published.path).ok


def test_a_site_with_an_unlogged_publication_takes_no_other(published, site, monkeypatch):
    def cut(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("medassay.publishing.history.append_entry", cut)
        medassay.publish(published, site, publication="three")
    with pytest.raises(GateError, match=r"p/three is not in log\.jsonl"):
        medassay.publish(published, site, publication="four")
    medassay.publish(published, site, publication="three")  # finishes it
    medassay.publish(published, site, publication="four")
    assert verify(site).ok


def test_a_key_that_a_full_disk_did_not_take_leaves_no_file(tmp_path, monkeypatch):
    def full(descriptor, mode):
        os.close(descriptor)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdopen", full)
        with pytest.raises(OSError, match="No space left") as caught:
            new_key(tmp_path / "key.pem")
        assert caught.value.filename == str(tmp_path / "key.pem")
    assert len(new_key(tmp_path / "key.pem")) == 64
