"""References by a named model: whole or not at all, stored replies, every origin stated."""

import json

import pytest
from tests import makers
from tests.study.silver_banks import GOOD, RECORD_OF, letters

from medassay.bank.folder import load_bank
from medassay.core.records.health_record import RECORD
from medassay.errors import IncompleteError, InputError
from medassay.study.silver import SilverOptions, write_silver


def silver(folder, bank, *, accept_failures=False, **script):
    makers.write_models(folder, {**makers.fake("strong", **script), "family": "acme"})
    wanted = SilverOptions(
        maker="strong",
        models_file=folder / "models.json",
        to=folder / "silver",
        accept_failures=accept_failures,
    )
    return write_silver(bank, wanted, secrets={}, workspace=folder)


def test_each_report_gets_a_record_that_says_by_whom(tmp_path):
    made = silver(tmp_path, letters(tmp_path), reply=f"Here it is:\n```json\n{GOOD}\n```")
    bank = load_bank(tmp_path / "silver", lock=None)
    assert (made.written, made.kept, made.version) == (3, 1, bank.version)
    assert bank.version != "letters-2026.1"
    assert bank.limits == "3 references are silver, written by the model strong."
    gold, *others = bank.items
    assert (gold.target.origin.standing, gold.revision) == ("gold", 1)
    for item in others:
        assert item.target.record == RECORD_OF
        origin = item.target.origin
        assert (origin.standing, origin.maker, origin.family) == ("silver", "strong", "acme")
        assert len(origin.prompt_sha256) == 64
        assert item.revision == 2
    assert len({item.target.origin.prompt_sha256 for item in others}) == 3


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("I would rather not.", "no complete JSON"),
        ("{}", f"{RECORD}: absent"),
        (json.dumps({RECORD: {**RECORD_OF, "diagnosis": "x"}}), "diagnosis: "),
        (GOOD.replace("Hypertonie", r"\ud800"), "record: Invalid JSON"),
    ],
)
def test_a_reply_that_is_no_record_is_asked_for_again_and_nothing_half_written(
    tmp_path, reply, why
):
    replies = {"l-2": reply}
    with pytest.raises(IncompleteError, match=f"1 of 3 reports got no usable record, 'l-2': {why}"):
        silver(tmp_path, letters(tmp_path), reply=GOOD, replies=replies)
    assert not (tmp_path / "silver").exists()


def test_failures_may_be_accepted_and_stay_reports(tmp_path):
    made = silver(
        tmp_path, letters(tmp_path), accept_failures=True, reply=GOOD, replies={"l-2": "no"}
    )
    assert list(made.failed) == ["l-2"]
    forms = {i.id: i.form for i in load_bank(tmp_path / "silver", lock=None).items}
    assert forms == {"l-0": "record", "l-1": "record", "l-2": "report", "l-3": "record"}


def test_stored_replies_are_not_asked_for_again(tmp_path, monkeypatch):
    from medassay.model.fake import Fake

    with pytest.raises(IncompleteError):
        silver(tmp_path, letters(tmp_path), reply=GOOD, replies={"l-3": "no"})
    asked = []
    complete = Fake.complete

    async def count(self, prompt, sampling, *, repeat):
        asked.append(prompt.item_id)
        return await complete(self, prompt, sampling, repeat=repeat)

    monkeypatch.setattr(Fake, "complete", count)
    with pytest.raises(IncompleteError):
        silver(tmp_path, load_bank(tmp_path / "bank", lock=None), reply=GOOD, replies={"l-3": "no"})
    assert asked == []


def test_a_model_that_does_not_answer_is_a_failure_of_that_report(tmp_path):
    with pytest.raises(IncompleteError, match="scripted failure"):
        silver(tmp_path, letters(tmp_path), reply=GOOD, fail_items=["l-1"])


def test_what_cannot_be_written_is_refused_before_any_call(tmp_path):
    bank = letters(tmp_path)
    (tmp_path / "silver").mkdir()
    with pytest.raises(InputError, match="exists"):
        silver(tmp_path, bank, reply=GOOD)
    (tmp_path / "silver").rmdir()
    with pytest.raises(InputError, match="is not an enabled entry"):
        wanted = SilverOptions(
            maker="nobody", models_file=tmp_path / "models.json", to=tmp_path / "silver"
        )
        write_silver(bank, wanted, secrets={}, workspace=tmp_path)
    full = tmp_path / "full"
    gold = letters(full, n=1)
    with pytest.raises(InputError, match="has its reference already"):
        silver(full, gold, reply=GOOD)


def test_a_bank_that_may_not_leave_is_not_sent_out(tmp_path):
    bank = letters(tmp_path, may_leave=False)
    makers.write_models(tmp_path, makers.endpoint("http://example.org/v1", location="external"))
    wanted = SilverOptions(maker="m", models_file=tmp_path / "models.json", to=tmp_path / "silver")
    with pytest.raises(InputError, match="may not leave"):
        write_silver(bank, wanted, secrets={}, workspace=tmp_path)
