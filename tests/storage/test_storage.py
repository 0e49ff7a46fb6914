import json
import multiprocessing
import os
import tempfile
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medassay.core.canonical import canonical
from medassay.core.records.completion import Completion, Usage
from medassay.errors import IncompleteError, InputError, IntegrityError
from medassay.storage.journal import Journal, JournalLine, Segment
from medassay.storage.merkle import MerkleTree, inclusion_proof, proves
from medassay.storage.response import (
    ResponseStore,
    completion_to_dict,
    request_key,
)
from medassay.storage.run import create_run, lock_run, write_new


def naive_root(leaves):
    """RFC 6962, section 2.1, word for word."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return sha256(b"\x01" + naive_root(leaves[:k]) + naive_root(leaves[k:])).digest()


@given(st.lists(st.binary(max_size=8), max_size=40))
def test_the_streamed_tree_is_the_rfc_tree(leaves):
    tree = MerkleTree()
    for leaf in leaves:
        tree.add(leaf)
    assert (tree.root(), tree.count) == (naive_root(leaves), len(leaves))


@pytest.mark.parametrize("alone", [0, 1, 700, 1024])
@pytest.mark.parametrize("together", [0, 1, 323, 1024, 2500])
def test_leaves_that_come_together_make_the_tree_of_those_that_come_alone(alone, together):
    leaves = [str(number).encode() for number in range(alone + together)]
    tree = MerkleTree()
    for leaf in leaves[:alone]:
        tree.add(leaf)
    tree.extend(iter(leaves[alone:]))
    assert (tree.root(), tree.count) == (naive_root(leaves), len(leaves))


@given(st.lists(st.binary(max_size=3), min_size=1, max_size=70), st.data())
def test_a_record_is_proved_alone_and_no_other_in_its_place(leaves, data):
    at = data.draw(st.integers(0, len(leaves) - 1))
    root, path = naive_root(leaves), inclusion_proof(leaves, at)
    assert len(path) <= (len(leaves) - 1).bit_length()
    assert proves(leaves[at], at, len(leaves), path, root)
    assert not proves(leaves[at] + b"x", at, len(leaves), path, root)
    assert not proves(leaves[at], at, len(leaves), [*path, root], root)
    assert not path or not proves(leaves[at], at, len(leaves), path[:-1], root)
    assert not proves(leaves[at], len(leaves), len(leaves), path, root)
    other = (at + 1) % len(leaves)
    if leaves[other] != leaves[at]:
        assert not proves(leaves[at], other, len(leaves), path, root)


likely = st.lists(
    st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.floats(-9, 0)), max_size=4
).map(tuple)
completions = st.builds(
    Completion,
    text=st.text(st.characters(exclude_categories=["Cs"])),
    finish=st.sampled_from(["stop", "length", "refusal"]),
    usage=st.builds(Usage, prompt=st.integers(0, 9**9), completion=st.integers(0, 9**9)),
    seconds=st.integers(0, 10**9).map(lambda n: n / 1e6),
    logprobs=st.none() | likely,
    alternatives=st.none() | st.lists(likely, max_size=3).map(tuple),
)


@settings(max_examples=40, deadline=None)  # every reply is brought to the disk
@given(completions)
def test_a_completion_survives_the_store(completion):
    with tempfile.TemporaryDirectory() as folder:
        with ResponseStore(Path(folder)) as store:
            store.put("k", completion, {"model": "m"})
        [found] = stored(Path(folder), "k")
    assert found == completion
    assert canonical(completion_to_dict(completion))


def stored(folder, *keys):
    with ResponseStore(folder) as store:
        return [store.get(key) for key in keys]


def test_a_reply_is_found_again_and_the_first_one_is_kept(tmp_path):
    with ResponseStore(tmp_path) as store:
        store.put("k", Completion(text="first"), {"model": "m"})
    with ResponseStore(tmp_path) as store:
        assert store.get("k").text == "first"
        store.put("k", Completion(text="second"), {"model": "m"})
    assert stored(tmp_path, "k", "none") == [Completion(text="first"), None]


def test_the_index_can_be_deleted_and_a_segment_removed(tmp_path):
    with ResponseStore(tmp_path) as store:
        store.put("k", Completion(text="x"), {})
    for path in tmp_path.glob("index.sqlite*"):
        path.unlink()
    assert stored(tmp_path, "k")[0].text == "x"
    next(tmp_path.glob("*.zst")).unlink()
    assert stored(tmp_path, "k") == [None]


def test_a_segment_of_a_dead_process_is_taken_over_without_its_torn_line(tmp_path):
    store = ResponseStore(tmp_path)
    store.put("k", Completion(text="kept"), {})
    os.write(store._active, b'{"key":"torn","comp')
    os.close(store._active)  # what the kernel does to a killed process
    assert [c and c.text for c in stored(tmp_path, "k", "torn")] == ["kept", None]
    assert not list(tmp_path.glob("active-*"))


def test_a_segment_of_a_living_process_is_left_alone(tmp_path):
    with ResponseStore(tmp_path) as one:
        one.put("k", Completion(text="x"), {})
        with ResponseStore(tmp_path) as other:
            assert other.get("k") is None
        assert list(tmp_path.glob("active-*"))
    assert stored(tmp_path, "k")[0].text == "x"


def test_what_others_have_stored_is_found_within_a_second_and_at_once_where_it_is_adopted(
    tmp_path, monkeypatch
):
    seconds = 100.0
    clock = SimpleNamespace(monotonic=lambda: seconds)  # of this module alone
    monkeypatch.setattr("medassay.storage.response.time", clock)
    with ResponseStore(tmp_path) as store:
        assert store.get("a") is None
        with ResponseStore(tmp_path) as other:
            other.put("a", Completion(text="A"), {})
        seconds += 1.0
        assert store.get("a").text == "A"
        with ResponseStore(tmp_path) as other:
            other.put("b", Completion(text="B"), {})
        store.adopt()
        assert store.get("b").text == "B"


def test_replies_are_deleted_while_another_process_reads(tmp_path):
    with ResponseStore(tmp_path) as store:
        store.put("a", Completion(text="A"), {})
    with ResponseStore(tmp_path) as reader, ResponseStore(tmp_path) as store:
        assert reader.get("a").text == store.get("a").text == "A"
        assert store.purge(lambda record: record["key"] == "a") == 1
        assert store.get("a") is None
        reader.adopt()
        assert reader.get("a") is None


def test_what_is_written_anew_is_taken_over_by_nobody_meanwhile(tmp_path, monkeypatch):
    with ResponseStore(tmp_path) as store:
        for key in "ab":
            store.put(key, Completion(text=key), {})
    whole = ResponseStore._compress

    def compress(self, path, **options):
        if "purge" in path.name:
            ResponseStore(tmp_path).close()  # another process opens it at this moment
        whole(self, path, **options)

    monkeypatch.setattr(ResponseStore, "_compress", compress)
    with ResponseStore(tmp_path) as store:
        assert store.purge(lambda record: record["key"] == "a") == 1
        assert store.get("a") is None
        assert store.get("b").text == "b"
    assert not list(tmp_path.glob("active-*"))


def test_a_reply_that_another_process_writes_is_not_passed_over_in_silence(tmp_path):
    with ResponseStore(tmp_path) as store:
        store.put("a", Completion(text="A"), {"item": "q"})
    with ResponseStore(tmp_path) as writer:
        writer.put("b", Completion(text="B"), {"item": "q"})
        with (
            ResponseStore(tmp_path) as store,
            pytest.raises(IncompleteError, match="another process is writing"),
        ):
            store.purge(lambda record: record["item"] == "q")
        assert writer.get("a").text == "A"
        with ResponseStore(tmp_path) as store:
            assert store.purge(lambda record: record["item"] == "another") == 0
    with ResponseStore(tmp_path) as store:
        assert store.purge(lambda record: record["item"] == "q") == 2


def test_an_index_that_is_made_anew_finds_the_same_replies(tmp_path):
    """Two processes asked at once; segments are named by their content, in no order of time."""
    for n in range(8):
        folder = tmp_path / str(n)
        stores = [ResponseStore(folder) for _ in range(3)]
        for at, store in enumerate(stores):
            store.put("k", Completion(text=f"{n}-{at}"), {"model": "m"})
            store.put(f"only-{at}", Completion(text=""), {"model": "m"})
        for store in stores:
            store.close()
        assert stored(folder, "k")[0].text == f"{n}-0"
        for path in folder.glob("index.sqlite*"):
            path.unlink()
        assert stored(folder, "k")[0].text == f"{n}-0"
        with ResponseStore(folder) as store:  # a segment that is written anew keeps its place
            assert store.purge(lambda record: record["key"] == "only-0") == 1
            assert store.get("k").text == f"{n}-0"


def test_a_damaged_segment_is_named_where_replies_are_deleted(tmp_path):
    with ResponseStore(tmp_path) as store:
        store.put("a", Completion(text="A" * 500), {})
    with ResponseStore(tmp_path) as store:
        [segment] = tmp_path.glob("*.zst")
        segment.write_bytes(segment.read_bytes()[:-20])
        with pytest.raises(IntegrityError, match=segment.name):
            store.purge(lambda record: True)


def test_the_key_depends_on_every_part():
    base = (b"c", b"m", 0, 0)
    keys = {
        request_key(*base),
        request_key(b"d", *base[1:]),
        request_key(b"c", b"n", 0),
        request_key(b"c", b"m", 1),
        request_key(b"c", b"m", 0, 1),
    }
    assert len(keys) == 5


def trial(n, outcome="answered"):
    return canonical({"n": n, "outcome": outcome})


def reopened(folder, n=10):
    journal = Journal(folder, n)
    journal.resume(lambda t: t["n"] if t["n"] < n else None)
    return journal


def test_a_journal_survives_reopening_and_failures_are_never_done(tmp_path):
    journal = Journal(tmp_path, 10)
    journal.append(3, trial(3), b'{"because":",\\"timing\\":","score":1}', {"seconds": 1})
    journal.append(None, trial(4, "failed"), b"null", {})
    journal.close()
    again = reopened(tmp_path)
    assert not again.is_done(4)
    again.append(4, trial(4), b"null", {})
    assert (again.done, again.is_done(3), again.is_done(5)) == (2, True, False)
    again.close()
    last = reopened(tmp_path)
    assert list(last.lines()) == [
        JournalLine(3, trial(3), b'{"because":",\\"timing\\":","score":1}', b'{"seconds":1}'),
        JournalLine(4, trial(4), b"null", b"{}"),
    ]
    assert len(list(tmp_path.iterdir())) == 2


@given(cut=st.integers(1, 200))
def test_wherever_a_kill_cuts_the_journal_whole_lines_are_kept(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp("j")
    journal = Journal(folder, 10)
    for n in range(5):
        journal.append(n, trial(n), b"null", {"seconds": 0})
    journal.close()
    [path] = folder.iterdir()
    data = path.read_bytes()[: -cut or None]
    path.write_bytes(data)
    assert reopened(folder).done == data.count(b"\n")


def test_a_damaged_journal_line_is_named(tmp_path):
    (tmp_path / "00000.jsonl").write_bytes(b'{"timing":{},"rec\n')
    with pytest.raises(IntegrityError, match=r"00000\.jsonl at byte 0"):
        reopened(tmp_path)


def test_files_are_written_whole_and_never_over_another(tmp_path):
    write_new(tmp_path / "a", b"1")
    with pytest.raises(InputError, match="exists"):
        write_new(tmp_path / "a", b"2")
    assert (tmp_path / "a").read_bytes() == b"1"


def test_two_processes_cannot_work_on_one_run(tmp_path):
    run = create_run(tmp_path, "x-1", {})
    with lock_run(run), pytest.raises(IncompleteError, match="another process"):
        lock_run(run)


def test_a_damaged_index_is_made_anew_and_a_damaged_segment_named(tmp_path):
    with ResponseStore(tmp_path) as store:
        store.put("k", Completion(text="x"), {})
    (tmp_path / "index.sqlite").write_bytes(b"junk" * 1000)
    for path in tmp_path.glob("index.sqlite-*"):
        path.unlink()
    assert stored(tmp_path, "k")[0].text == "x"
    [segment] = tmp_path.glob("*.zst")
    segment.write_bytes(b"junk")
    for path in tmp_path.glob("index.sqlite*"):
        path.unlink()
    with pytest.raises(IntegrityError, match=segment.name):
        ResponseStore(tmp_path)


def test_a_disk_that_takes_part_of_a_line_leaves_no_line_torn_before_others(tmp_path, monkeypatch):
    segment = Segment(tmp_path, "one")
    segment.write(b'{"n":1}', b"null", {})
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[: len(data) // 2]))
    with pytest.raises(OSError, match="only part of a line"):
        segment.write(b'{"n":2}', b"null", {})
    monkeypatch.setattr(os, "write", real)
    offset, length = segment.write(b'{"n":3}', b"null", {})
    segment.close()
    lines = segment.path.read_bytes().splitlines(keepends=True)
    assert [json.loads(line)["record"]["n"] for line in lines] == [1, 3]
    assert segment.path.read_bytes()[offset : offset + length] == lines[1]


def test_a_reply_of_which_the_disk_takes_a_part_harms_no_other(tmp_path, monkeypatch):
    with ResponseStore(tmp_path) as store:
        store.put("k1", Completion(text="one"), {})
        real = os.write
        monkeypatch.setattr(os, "write", lambda file, data: real(file, data[: len(data) // 2]))
        with pytest.raises(OSError, match="only part of a line"):
            store.put("k2", Completion(text="two"), {})
        monkeypatch.setattr(os, "write", real)
        store.put("k3", Completion(text="three"), {})
    with ResponseStore(tmp_path) as store:
        found = [store.get(key) for key in ("k1", "k2", "k3")]
    assert [one and one.text for one in found] == ["one", None, "three"]


def _open_and_close(folder, number):
    for turn in range(5):
        with ResponseStore(folder) as store:
            store.put(f"k{number}-{turn}", Completion(text="x"), {})


def test_many_processes_open_and_close_one_store_at_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_open_and_close, args=(tmp_path, n)) for n in range(4)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert [one.exitcode for one in workers] == [0, 0, 0, 0]
    with ResponseStore(tmp_path) as store:
        found = [store.get(f"k{n}-{turn}") for n in range(4) for turn in range(5)]
    assert None not in found
