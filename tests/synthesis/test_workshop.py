"""The journal of a workshop: chained, torn lines dropped, flipped bytes told, one writer.

And its history.
"""

import subprocess
import sys

import pytest

from medassay.errors import IncompleteError, InputError, IntegrityError
from medassay.synthesis.project import (
    BY_PROGRAM,
    JOURNAL,
    basis_of,
    open_workshop,
    read_workshop,
)


def note(shop, subject, step="question", **more):
    return shop.note(step, subject, "made", basis=basis_of(subject), by=BY_PROGRAM, **more)


def test_a_step_is_done_once_for_its_inputs_and_again_for_others(tmp_path):
    with open_workshop(tmp_path / "w") as shop:
        note(shop, "a", result=[1])
    shop = read_workshop(tmp_path / "w")
    assert shop.done("question", "a", basis_of("a")).result == [1]
    assert shop.done("question", "a", basis_of("b")) is None
    assert shop.latest("question", "b") is None


def test_a_torn_line_is_dropped_and_written_anew(tmp_path):
    with open_workshop(tmp_path / "w") as shop:
        note(shop, "a")
        note(shop, "b")
    path = tmp_path / "w" / JOURNAL
    whole = path.read_bytes()
    for cut in (1, 40, len(whole.splitlines()[1])):
        path.write_bytes(whole[:-cut])
        assert [event.place[1] for event in read_workshop(tmp_path / "w").events] == ["a"]
        with open_workshop(tmp_path / "w") as shop:
            note(shop, "c")
        assert [event.place[1] for event in read_workshop(tmp_path / "w").events] == ["a", "c"]
        path.write_bytes(whole)
    path.write_bytes(whole + b"x" * 5000)  # longer than the line that comes in its place
    with open_workshop(tmp_path / "w") as shop:
        note(shop, "c")
    assert [event.place[1] for event in read_workshop(tmp_path / "w").events] == ["a", "b", "c"]
    assert path.read_bytes().endswith(b"}\n")


def test_every_flipped_byte_is_told_with_its_line(tmp_path):
    with open_workshop(tmp_path / "w") as shop:
        for name in "abc":
            note(shop, name, result={"text": name})
    path = tmp_path / "w" / JOURNAL
    whole = path.read_bytes()
    ends = [at for at, byte in enumerate(whole) if byte == 10]
    for at in range(0, len(whole) - 1, 7):
        if at in ends:
            continue
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        line = sum(end < at for end in ends) + 1
        with pytest.raises(IntegrityError, match=f"line ({line}|{line + 1}):"):
            read_workshop(tmp_path / "w")
    lines = whole.splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    with pytest.raises(IntegrityError, match="line 2: does not follow"):
        read_workshop(tmp_path / "w")


def test_one_process_writes_at_a_time(tmp_path):
    with open_workshop(tmp_path / "w"):
        code = (
            "from pathlib import Path\nfrom medassay.synthesis.project import open_workshop\nwith"
            f" open_workshop(Path({str(tmp_path / 'w')!r})): pass"
        )
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert "IncompleteError" in found.stderr
        with pytest.raises(IncompleteError, match="another process"), open_workshop(tmp_path / "w"):
            pass


def test_a_folder_of_other_things_is_no_workshop(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"), open_workshop(tmp_path):
        pass
    with pytest.raises(InputError, match=r"no journal\.jsonl"):
        read_workshop(tmp_path)
    with pytest.raises(InputError, match="is a file"), open_workshop(tmp_path / "thesis.txt"):
        pass


def test_a_history_follows_what_something_was_made_from(tmp_path):
    with open_workshop(tmp_path / "w") as shop:
        note(shop, "text", "source")
        note(shop, "other", "source")
        note(shop, "text", "graph", sources=[("source", "text")])
        note(shop, "text/1", sources=[("graph", "text")])
        note(shop, "item-1", "item", sources=[("question", "text/1")])
        note(shop, "item-2", "item", sources=[("source", "other")])
        # As the first versions noted it: without revisions.
        released = {"version": "v1", "content_sha256": "0", "items": ["item-1"]}
        note(shop, "v1", "release", result=released)
        found = [event.place for event in shop.history("item-1")]
    assert found == [
        ("source", "text"),
        ("graph", "text"),
        ("question", "text/1"),
        ("item", "item-1"),
        ("release", "v1"),
    ]
    with pytest.raises(InputError, match="nothing is called 'x'"):
        read_workshop(tmp_path / "w").history("x")


def test_a_workshop_that_is_read_is_not_written(tmp_path):
    with open_workshop(tmp_path / "w") as shop:
        note(shop, "a")
    with pytest.raises(RuntimeError):
        note(read_workshop(tmp_path / "w"), "b")
