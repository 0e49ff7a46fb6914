"""Bytes that are read are bytes that are kept, whatever the records in them become."""

import json

import pytest

import medassay
from medassay.core.canonical import canonical, content_hash
from medassay.publishing.publish import publish
from medassay.runner.rescore import rescore
from medassay.storage.run import SEAL, open_run
from tests.net.fixtures import FIXTURES
from tests.packs import unpack
from tests.publishing.tampering import reseal

SEALED_LINES = ("items", "trials", "scores", "verdicts", "audit")


@pytest.mark.parametrize("name", FIXTURES)
def test_sealed_lines_have_one_writer(name, tmp_path):
    """Each line is the canonical form of what it says, so that a Merkle leaf can be made by
    anyone.
    """
    lines = [
        line
        for seal in unpack(name, tmp_path).rglob(SEAL)
        for kind in SEALED_LINES
        if (path := seal.parent / f"{kind}.jsonl").exists()
        for line in path.read_bytes().removesuffix(b"\n").split(b"\n")
    ]
    assert lines or name in ("review", "workshop")
    for line in lines:
        if line:
            assert canonical(json.loads(line)) == line


LATER = {"a": None, "b": [1, 2.5, {}], "c": "später"}


def with_later_keys(run):
    """Add a key that this code does not know to items, trials and manifest of a sealed run, and
    seal it again.
    """
    for name in ("items.jsonl", "trials.jsonl", "manifest.json"):
        path = run / name
        path.chmod(0o644)
        lines = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
        path.write_bytes(b"".join(canonical({**line, "later": LATER}) + b"\n" for line in lines))
    reseal(run)


@pytest.fixture
def later(tmp_path):
    """Return a run that newer code has made: it says more than this one knows."""
    folder = unpack("clustered", tmp_path / "runs")
    [run] = [path for path in folder.iterdir() if (path / SEAL).exists()]
    with_later_keys(run)
    return run


def test_a_run_with_keys_that_are_not_known_verifies(later):
    report = medassay.verify(later)
    assert report.ok, report.first_mismatch


def test_what_is_published_are_the_bytes_of_the_run(later, tmp_path):
    before = {
        name: (later / name).read_bytes()
        for name in ("items.jsonl", "trials.jsonl", "scores.jsonl")
    }
    publish(later, tmp_path / "site")
    [public] = (tmp_path / "site").rglob("data/run")
    for name, data in before.items():
        assert (public / name).read_bytes() == data
    assert json.loads((public / "manifest.json").read_bytes())["later"] == LATER
    assert medassay.verify(tmp_path / "site").ok


def test_a_run_that_is_scored_again_keeps_the_bytes_of_answers_and_items(later):
    again = rescore(open_run(later))
    for name in ("items.jsonl", "trials.jsonl"):
        assert (again.path / name).read_bytes() == (later / name).read_bytes()
    assert again.manifest_document["later"] == LATER
    assert medassay.verify(again.path).ok


def test_an_item_hash_is_of_the_object_that_was_read():
    """`null` and absent differ, and numbers are not those of a record in between."""
    records = [
        {
            "id": "a",
            "domain": "d",
            "question": "Q?",
            "options": ["x", "y"],
            "expected": "A",
            "source": "s",
        },
        {
            "id": "a",
            "domain": "d",
            "question": "Q?",
            "options": ["x", "y"],
            "expected": "A",
            "source": "s",
            "cluster": None,
        },
    ]
    hashes = {content_hash([record]) for record in records}
    assert len(hashes) == 2
