"""The process of own code against code that wants an answer to count for another item."""

import os
import time

import pytest

from medassay.core.canonical import sha256_hex
from medassay.core.records.own_code import CodePart
from medassay.own_code.process import CodeProcess, OwnCodeError


@pytest.fixture
def process():
    """Make a process for the code of a scorer; all are ended after the test."""
    made = []

    def make(code, seconds=5.0):
        text = code.encode()
        part = CodePart(name="my.py:score", sha256=sha256_hex(text), text=text)
        made.append(CodeProcess("scorer", part, seconds))
        return made[-1]

    yield make
    for one in made:
        one.close()


EARLY = """
import json, os, sys

def score(item, answer):
    if item == "first":  # answers of its own, to this request and to those that follow
        frame = sys._getframe()
        while frame and "number" not in frame.f_locals:
            frame = frame.f_back
        for number in (frame.f_locals["number"], *range(9)):
            for fd in range(3, 20):
                try:
                    text = json.dumps({"number": number, "value": 1.0}).encode()
                    os.write(fd, len(text).to_bytes(8, "big") + text)
                except OSError:
                    pass
    return 0.25
"""


def test_answers_written_by_hand_count_for_no_later_item(process):
    own = process(EARLY)
    assert own.call("scorer", "first", "answer") == 1.0  # it decides that by returning, too
    for item in ("x" * 120_000, "second", "third"):
        try:
            assert own.call("scorer", item, "answer") == 0.25
        except OwnCodeError as error:
            assert "wrote into its answers" in str(error)


def test_a_process_that_the_code_splits_off_answers_nothing(process):
    own = process("import os\n\ndef score(item, answer):\n    os.fork()\n    return item\n")
    assert [own.call("scorer", n, "") for n in range(5)] == list(range(5))


def test_code_that_reads_nothing_more_is_ended_in_time(process):
    own = process(
        "import os, time\n\ndef score(item, answer):\n"
        "    for fd in range(3, 20):\n        try: os.set_blocking(fd, True)\n"
        "        except OSError: pass\n    time.sleep(60)\n",
        seconds=1,
    )
    began = time.monotonic()
    with pytest.raises(OwnCodeError, match="did not return within 1 s"):
        own.call("scorer", "x" * 4_000_000, "")
    assert time.monotonic() - began < 20


def test_texts_that_cannot_be_stored_are_made_storable(process):
    own = process("def score(item, answer):\n    return {'score': 1, 'note': 'a\\ud800b'}\n")
    value = own.call("scorer", "", "")
    assert value["mapping"]["note"].encode()
    failing = process("def score(item, answer):\n    raise ValueError('a\\ud800b')\n")
    with pytest.raises(OwnCodeError, match="ValueError") as error:
        failing.call("scorer", "", "")
    assert str(error.value).encode()


def test_no_more_of_the_environment_than_what_finds_programs(process, monkeypatch):
    for name in ("DATABASE_URL", "OPENAI_API_KEY", "AWS_PROFILE", "LD_PRELOAD_X"):
        monkeypatch.setenv(name, "hidden")
    own = process("import os\n\ndef score(item, answer):\n    return sorted(os.environ)\n")
    names = own.call("scorer", "", "")
    assert "PATH" in names
    assert not {"DATABASE_URL", "OPENAI_API_KEY", "AWS_PROFILE", "LD_PRELOAD_X"} & {*names}
    assert set(names) <= {*os.environ, "LC_CTYPE", "PYTHONPATH"}


def test_modules_are_found_where_this_process_finds_them(process, monkeypatch, tmp_path):
    (tmp_path / "helper_of_mine.py").write_text("HALF = 0.5\n")
    monkeypatch.chdir(tmp_path.parent)
    monkeypatch.syspath_prepend(tmp_path.name)  # relative: this process has another folder
    own = process(
        "import helper_of_mine\n\ndef score(item, answer):\n    return helper_of_mine.HALF\n"
    )
    assert own.call("scorer", "", "") == 0.5
