import datetime as dt

import pytest
from tests import makers

from medassay.bank import diff_banks, load_bank, release
from medassay.errors import GateError, InputError

TODAY = dt.date(2026, 11, 20)


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
        "".join(
            __import__("json").dumps(i) + "\n" for i in [*items, {**items[0], "id": "law-99"}]
        )
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
