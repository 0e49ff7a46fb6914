"""Subjects of a study of which nothing usable was said: asked about once more on request, by
themselves, and nobody else.
"""

import json
import shutil
from collections import Counter

import msgspec
import pytest
from tests import makers
from tests.study.silver_banks import GOOD, letters

from medassay.bank.folder import load_bank
from medassay.cli.main import call
from medassay.core.records.model import ModelSpec
from medassay.errors import IncompleteError, InputError
from medassay.model.fake import Fake
from medassay.prompt.render import load_template, render
from medassay.runner.batch_prompts import UnusableReply, prompt_batch
from medassay.study.silver import SilverOptions, write_silver


@pytest.fixture
def calls(monkeypatch):
    """Count what a scripted model is asked for, by item and token limit."""
    found = Counter()
    complete = Fake.complete

    async def count(self, prompt, sampling, *, repeat):
        found[prompt.item_id, sampling.max_tokens] += 1
        return await complete(self, prompt, sampling, repeat=repeat)

    monkeypatch.setattr(Fake, "complete", count)
    return found


def write(folder, *again, engine="local", accept=False, max_tokens=256, **script):
    """Write references of l-1, l-2, l-3 into a new folder."""
    if not (folder / "bank").exists():
        letters(folder)
    entry = makers.fake("strong", **script) | {"max_tokens": max_tokens}
    makers.write_models(folder, entry)
    wanted = SilverOptions(
        maker="strong",
        models_file=folder / "models.json",
        to=folder / f"silver-{len(list(folder.glob('silver-*')))}",
        accept_failures=accept,
        again=again,
    )
    bank = load_bank(folder / "bank", lock=None)
    return write_silver(bank, wanted, secrets={}, workspace=folder, engine=engine)


# What is said the first time for l-2 is of no use; when it is asked for once more (attempt 1000 and
# up), it is a record.
LATER = {"reply": GOOD, "replies": {"l-2": ["no"] * 1000 + [GOOD]}}
NEVER = {"reply": GOOD, "replies": {"l-2": "no"}}


@pytest.mark.parametrize("engine", ["local", "in_process"])
def test_again_asks_for_just_what_was_of_no_use_and_it_counts_from_then_on(
    tmp_path, calls, in_process, engine
):
    in_process()
    with pytest.raises(IncompleteError, match=r"1 of 3 .*--again failed asks once more"):
        write(tmp_path, engine=engine, **LATER)
    calls.clear()
    with pytest.raises(IncompleteError, match="1 of 3"):
        write(tmp_path, engine=engine, **LATER)
    assert not calls
    assert write(tmp_path, "failed", engine=engine, **LATER).written == 3
    assert calls == {("l-2", 256): 1}
    calls.clear()
    assert write(tmp_path, engine=engine, **LATER).written == 3  # no --again needed any more
    assert not calls


def test_a_report_is_asked_about_once_more_by_its_id_unless_it_has_a_usable_reply(tmp_path, calls):
    script = {"reply": GOOD, "replies": {"l-2": "no", "l-3": ["no"] * 1000 + [GOOD]}}
    write(tmp_path, accept=True, **script)
    calls.clear()
    written = write(tmp_path, "l-3", "l-1", accept=True, **script)
    assert calls == {("l-3", 256): 1}
    assert list(written.failed) == ["l-2"]
    with pytest.raises(
        InputError, match=r"--again l-9: .*expected failed, or one of l-1, l-2, l-3"
    ):
        write(tmp_path, "l-9", **script)


def test_a_raised_token_limit_asks_again_for_what_failed_and_for_nothing_else(tmp_path, calls):
    written = write(tmp_path, accept=True, **NEVER)
    assert list(written.failed) == ["l-2"]
    calls.clear()
    write(tmp_path, accept=True, max_tokens=512, **NEVER)
    assert set(calls) == {("l-2", 512)}
    calls.clear()
    write(tmp_path, accept=True, max_tokens=512, **NEVER)
    write(tmp_path, accept=True, max_tokens=128, **NEVER)  # nor does a lower one
    assert not calls


def test_what_a_killed_process_had_asked_for_is_not_asked_for_once_more(tmp_path, calls):
    """Its replies are stored, but nobody noted which of them count."""
    write(tmp_path, accept=True, **LATER)
    before = {path.name for path in (tmp_path / "inquiries").iterdir()}
    write(tmp_path, "failed", accept=True, **LATER)
    for path in (tmp_path / "inquiries").iterdir():
        if path.name not in before:
            path.unlink()
    calls.clear()
    assert write(tmp_path, "failed", **LATER).written == 3
    assert not calls


def test_without_notes_the_replies_of_a_workspace_of_before_count(tmp_path, calls):
    write(tmp_path, accept=True, **NEVER)
    for path in (tmp_path / "inquiries").iterdir():
        path.unlink()
    calls.clear()
    assert list(write(tmp_path, accept=True, **NEVER).failed) == ["l-2"]
    assert not calls


def test_damaged_notes_and_lost_replies_stop_nothing(tmp_path, calls):
    write(tmp_path, accept=True, **NEVER)
    notes = tmp_path / "inquiries"
    (notes / "zz.jsonl").write_text('{"basis":"x","times":1000000000000000000000000,')
    assert list(write(tmp_path, accept=True, **NEVER).failed) == ["l-2"]
    shutil.rmtree(tmp_path / "responses")
    calls.clear()
    write(tmp_path, accept=True, max_tokens=512, **NEVER)
    assert {limit for _, limit in calls} == {512}  # not under the limit of replies that are gone
    shutil.rmtree(notes)
    notes.write_text("")
    calls.clear()
    with pytest.raises(InputError, match=r"inquiries: is a file"):
        write(tmp_path, accept=True, max_tokens=64, **NEVER)
    assert not calls


@pytest.mark.parametrize("engine", ["local", "in_process"])
def test_a_bound_of_the_workspace_ends_a_study_with_its_reason(tmp_path, in_process, engine):
    in_process()
    (tmp_path / "medassay.toml").write_text("[budget]\ntotal = 0.0005\n")
    letters(tmp_path)
    priced = makers.fake("strong", reply=GOOD) | {"price": {"input": 1.0, "output": 1.0}}
    makers.write_models(tmp_path, priced)
    wanted = SilverOptions(
        maker="strong", models_file=tmp_path / "models.json", to=tmp_path / "silver"
    )
    bank = load_bank(tmp_path / "bank", lock=None)
    with pytest.raises(IncompleteError, match=r"budget in all has no room .*what was said is kept"):
        write_silver(bank, wanted, secrets={}, workspace=tmp_path, engine=engine)
    (tmp_path / "medassay.toml").write_text("[budget]\ntotal = 100.0\n")
    assert write_silver(bank, wanted, secrets={}, workspace=tmp_path, engine=engine).written == 3


def test_steps_that_cannot_be_used_can_be_asked_for_once_more(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    listed = "1. Read both.\n2. Compare them.\n3. Choose."
    makers.write_models(tmp_path, makers.fake("j", replies={"steps.en": ["no"] * 1000 + [listed]}))
    command = ["study", "steps", "--judge", "j", "--to", "s.toml"]
    assert call(command) == 4
    assert "no usable steps in 'en': 0 numbered steps; expected at least 3, when asked 3" in (
        capsys.readouterr().err
    )
    assert call([*command, "--again", "fr"]) == 3
    assert "--again fr: nothing is asked about it; expected failed, or one of en" in (
        capsys.readouterr().err
    )
    assert call([*command, "--again", "failed"]) == 0
    assert "3. Choose." in (tmp_path / "s.toml").read_text()


@pytest.mark.slow
def test_verdicts_of_the_injection_study_can_be_asked_for_once_more(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    makers.write_models(tmp_path, makers.fake("j", reply="no verdict") | {"family": "x"})
    command = ["--json", "study", "injection", "--judge", "j"]
    assert call(command) == 0
    silent = json.loads(capsys.readouterr().out)["no_verdict"]
    assert silent
    assert call([*command, "--again", silent[0]]) == 0
    lines = [
        json.loads(line)
        for path in (tmp_path / "inquiries").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert Counter(one["times"] for one in lines)[1] == 1


class Twice(msgspec.Struct, frozen=True):
    """Two subjects ask one prompt; "no" is of no use."""

    study = "twice"
    repeats = 2

    def __len__(self):
        return 2

    def handle(self, subject):
        return f"q.{subject}"

    def first(self, subject):
        return render(load_template("rephrase"), makers.item(id="q", domain="d", question="Why?"))

    async def about(self, subject, ask):
        reply = await ask(self.first(subject), repeat=subject % 2)
        if reply.text == "no":
            raise UnusableReply("it says no")
        return reply.text


def test_of_two_subjects_with_one_prompt_each_has_its_own_later_reply(tmp_path, calls):
    replies = ["yes", "no", *["no"] * 999, "later"]  # the second is asked again as number 1001
    spec = ModelSpec(id="m", provider="fake", location="local", script={"replies": {"q": replies}})

    def ask(*again):
        return prompt_batch("replies", Twice(), spec, secrets={}, workspace=tmp_path, again=again)

    assert [finding.value for finding in ask()] == ["yes", None]
    assert [finding.value for finding in ask("q.1")] == ["yes", "later"]
    calls.clear()
    assert [finding.value for finding in ask()] == ["yes", "later"]
    assert not calls
