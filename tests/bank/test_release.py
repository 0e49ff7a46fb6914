import json
import sys

import pytest
from tests import makers
from tests.bank.dates import TODAY

from medassay.bank import diff_banks, load_bank, release
from medassay.errors import GateError, InputError

module = sys.modules["medassay.bank.release"]  # its name is that of the function, too


def test_a_change_makes_a_new_version_with_its_reason(tmp_path):
    lock = tmp_path / "banks.lock"
    folder = makers.write_bank(tmp_path / "law", makers.law_items())
    assert release(folder, reason="first", lock=lock, today=TODAY)[0] == "law-2026.1"
    with pytest.raises(GateError, match="nothing to release"):
        release(folder, reason="again", lock=lock, today=TODAY)
    old = load_bank(folder, lock=lock)
    items = makers.law_items()[1:]
    items[0]["expected"] = "C"
    (folder / "items.jsonl").write_text(
        "".join(__import__("json").dumps(i) + "\n" for i in [*items, {**items[0], "id": "law-99"}])
    )
    new = load_bank(folder, lock=lock, check=False)
    found = diff_banks(load_bank(makers.write_bank(tmp_path / "old", makers.law_items())), new)
    assert (found.added, found.removed, found.changed) == (
        ("law-99",),
        ("law-00",),
        {"law-01": ("expected",)},
    )
    version, content = release(folder, reason="a key was wrong", lock=lock, today=TODAY)
    assert version == "law-2026.2"
    assert content == load_bank(folder, lock=lock).content_hash != old.content_hash
    assert "a key was wrong" in (folder / "CHANGES.md").read_text()


def test_a_release_needs_a_reason(tmp_path):
    folder = makers.write_bank(tmp_path / "law", makers.law_items())
    with pytest.raises(InputError, match="reason"):
        release(folder, reason=" ", lock=tmp_path / "banks.lock", today=TODAY)


def _changed(folder, **fields):
    """Change the first item of a bank on the disk."""
    lines = (folder / "items.jsonl").read_text().splitlines()
    first = {**json.loads(lines[0]), **fields}
    (folder / "items.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")


def _items(folder):
    return [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]


def test_a_release_raises_the_revision_of_each_item_that_changed(tmp_path):
    lock = tmp_path / "banks.lock"
    folder = makers.write_bank(tmp_path / "law", makers.law_items())
    release(folder, reason="first", lock=lock, today=TODAY)
    second = _items(folder)[1]
    _changed(folder, expected="C")
    _, content = release(folder, reason="a wrong key", lock=lock, today=TODAY)
    assert _items(folder)[0]["revision"] == 2
    assert _items(folder)[1] == second
    assert load_bank(folder, lock=lock).content_hash == content
    assert "a wrong key Changed: law-00 (revision 2)." in (folder / "CHANGES.md").read_text()
    _changed(folder, expected="B", revision=5)  # raised by hand
    release(folder, reason="once more", lock=lock, today=TODAY)
    assert _items(folder)[0]["revision"] == 5
    lines = [*_items(folder)[1:], {**second, "id": "law-99"}]
    (folder / "items.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    release(folder, reason="others", lock=lock, today=TODAY)
    assert "others Added: law-99. Removed: law-00." in (folder / "CHANGES.md").read_text()


def test_a_release_that_was_cut_off_raises_a_revision_once(tmp_path, monkeypatch):
    lock = tmp_path / "banks.lock"
    folder = makers.write_bank(tmp_path / "law", makers.law_items())
    release(folder, reason="first", lock=lock, today=TODAY)
    _changed(folder, expected="C")
    with monkeypatch.context() as patched:
        patched.setattr(module, "register", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            release(folder, reason="a wrong key", lock=lock, today=TODAY)
    release(folder, reason="a wrong key", lock=lock, today=TODAY)
    assert _items(folder)[0]["revision"] == 2


def test_a_bank_whose_last_release_noted_no_items_says_so(tmp_path):
    lock = tmp_path / "banks.lock"
    folder = makers.write_bank(tmp_path / "law", makers.law_items())
    release(folder, reason="first", lock=lock, today=TODAY)
    (folder / "released.jsonl").unlink()
    _changed(folder, expected="C")
    release(folder, reason="a wrong key", lock=lock, today=TODAY)
    text = (folder / "CHANGES.md").read_text()
    assert "Which items changed since law-2026.1 is not known" in text
    (folder / "released.jsonl").write_text('{"id": "law-00"}\n')
    _changed(folder, expected="A", question="Which one?")
    with pytest.raises(InputError, match=r"released.jsonl row 1: expected id, revision"):
        release(folder, reason="another", lock=lock, today=TODAY)
