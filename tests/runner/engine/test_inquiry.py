"""Studies that ask: any engine finds the same, nothing is asked twice, and nothing but replies
stays behind.
"""

import asyncio
import errno
import json
import threading
from collections import Counter
from functools import partial

import pytest
from tests import makers
from tests.commands import requests_in, result_of, start_command, wait_for_requests
from tests.runner.engine.scripted_workers import keys_of
from tests.study.silver_banks import GOOD, RECORD_OF, letters

from medassay.bank.find import find_bank
from medassay.bank.folder import load_bank
from medassay.cli.main import call
from medassay.errors import IncompleteError, InputError, Interrupted, ModelError
from medassay.model.fake import Fake
from medassay.model.spec import load_models
from medassay.prompt.render import load_template, render
from medassay.runner import stages
from medassay.runner.batch_prompts import prompt_batch
from medassay.runner.engine.worker import Worker
from medassay.runner.progress import Stop
from medassay.storage.object_store import Mirror, remote
from medassay.study import silver as silver_module
from medassay.study.injection import injection_study
from medassay.study.rephrase import REPHRASINGS, Rephraser
from medassay.study.silver import SilverOptions, write_silver


def judged(folder, engine, **judge):
    folder.mkdir(exist_ok=True)
    makers.write_models(folder, {**judge, "id": "judge", "family": "x"})
    items = [i for i in find_bank("demo", folder, folder / "lock").items if i.form == "open"]
    return makers.plain(
        injection_study(
            "judge",
            folder / "models.json",
            items,
            secrets={},
            workspace=folder,
            engine=engine,
        )
    )


@pytest.mark.slow
def test_many_workers_find_what_one_process_finds_about_a_judge(tmp_path, in_process, mock_server):
    log = tmp_path / "asked"
    judge = makers.endpoint(mock_server("--log", log, "--fail", "0.1"))
    alone = judged(tmp_path / "a", "local", **judge)
    once = requests_in(log)
    engines = in_process()
    assert judged(tmp_path / "b", "in_process", **judge) == alone
    assert alone["tried"] > 0
    assert requests_in(log) - once == once
    assert len(engines[0].handles) == 3
    assert judged(tmp_path / "b", "in_process", **judge) == alone
    assert requests_in(log) - once == once  # from the store
    assert list((tmp_path / "b" / "studies").iterdir()) == []


class Interview:
    """Asks six things about each subject, one after the other."""

    study = "interview"
    repeats = 1

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def handle(self, subject):
        return f"s{subject}"

    def first(self, subject):
        return render(
            load_template("rephrase"),
            makers.item(id=f"s{subject}", domain="d", question=f"Subject {subject}?", form="text"),
        )

    async def about(self, subject, ask):
        prompt = self.first(subject)
        return [(await ask(prompt, repeat=repeat)).text for repeat in range(6)]


@pytest.mark.parametrize("filled", [False, True])
def test_of_lost_workers_no_stored_reply_is_asked_for_again(
    tmp_path, in_process, mock_server, monkeypatch, filled
):
    log, lost, calls = tmp_path / "asked", [], 4
    url = mock_server("--log", log, "--delay-ms", "40")
    makers.write_models(tmp_path, makers.endpoint(url, "m", concurrency=calls))
    if filled:
        rephraser(tmp_path, "local").rephrase(["zero"])
    before, real = requests_in(log).total(), Worker.start

    async def slow(self, secrets):
        if lost:  # as of a process that must first start: meanwhile the others take the work over
            await asyncio.sleep(2)
        await real(self, secrets)

    def lose(name, beat):
        if beat != "leave" and not lost and requests_in(log).total() - before > 60:
            lost.append(name)
            return True
        return False

    monkeypatch.setattr(Worker, "start", slow)
    in_process(workers=2, lose=lose)
    spec = load_models(tmp_path / "models.json")["m"]
    ask = partial(prompt_batch, "interviews", Interview(40), spec, secrets={}, workspace=tmp_path)
    found = ask(engine="in_process")
    assert lost
    assert requests_in(log).total() - before - 40 * 6 <= calls  # those under way at the loss
    stored = Counter(
        key for path in (tmp_path / "responses").glob("*.jsonl.zst") for key in keys_of(path)
    )
    assert max(stored.values()) == 1
    again = requests_in(log)
    assert ask() == found
    assert requests_in(log) == again


def test_failures_of_asking_are_no_findings(tmp_path, in_process, monkeypatch):
    """What goes wrong while asking is told as such: only what was said may be of no use."""
    in_process()
    makers.write_models(tmp_path, makers.fake("m", reply="Said."))
    spec = load_models(tmp_path / "models.json")["m"]
    complete = Fake.complete

    async def odd(self, prompt, sampling, *, repeat):
        if prompt.item_id == "s1":
            raise ValueError("a header with a line break")
        return await complete(self, prompt, sampling, repeat=repeat)

    monkeypatch.setattr(Fake, "complete", odd)
    ask = partial(prompt_batch, "interviews", Interview(5), spec, secrets={}, workspace=tmp_path)
    for engine in ("local", "in_process"):
        first, failed, *others = ask(engine=engine)
        assert first.value == ["Said."] * 6
        assert failed.unanswered
        assert failed.problem == "ValueError: a header with a line break"
        assert others == [first] * 3


def test_a_model_that_never_answers_is_given_up_soon(tmp_path, in_process):
    in_process()
    makers.write_models(tmp_path, makers.fake("m", fail_every=1) | {"concurrency": 25})
    spec = load_models(tmp_path / "models.json")["m"]
    for engine in ("local", "in_process"):
        with pytest.raises(
            ModelError,
            match=r"model 'm' is given up for this start: \d+ requests in a row failed",
        ):
            prompt_batch(
                "interviews",
                Interview(2000),
                spec,
                secrets={},
                workspace=tmp_path,
                engine=engine,
            )


def rephraser(folder, engine, name="m"):
    return Rephraser(name, folder / "models.json", secrets={}, workspace=folder, engine=engine)


def silver(folder, engine, *, accept_failures=False):
    bank = letters(folder, n=12)
    script = {"reply": GOOD, "replies": {"l-2": "no"}, "fail_items": ["l-5"]}
    makers.write_models(folder, {**makers.fake("strong", **script), "family": "acme"})
    wanted = SilverOptions(
        maker="strong",
        models_file=folder / "models.json",
        to=folder / "silver",
        accept_failures=accept_failures,
    )
    return write_silver(bank, wanted, secrets={}, workspace=folder, engine=engine)


def test_references_come_back_in_order_and_failures_with_their_reasons(tmp_path, in_process):
    in_process()
    found = {}
    for engine in ("local", "in_process"):
        written = silver(tmp_path / engine, engine, accept_failures=True)
        assert list(written.failed) == ["l-2", "l-5"]
        assert "scripted failure" in written.failed["l-5"]
        found[engine] = list(load_bank(tmp_path / engine / "silver", lock=None).items)
    assert found["local"] == found["in_process"]
    with pytest.raises(IncompleteError, match=r"2 of 11 reports got no usable record, 'l-2'"):
        silver(tmp_path / "again", "in_process")
    assert not (tmp_path / "again" / "silver").exists()


def test_a_judge_that_does_not_always_answer_is_told_and_what_it_said_is_kept(tmp_path, in_process):
    in_process()
    [first, *_] = [i.id for i in find_bank("demo", tmp_path, tmp_path).items if i.form == "open"]
    script = {"judge": 0.6, "fail_items": [first]}
    with pytest.raises(IncompleteError, match=r"verdicts have no answer: .*scripted failure"):
        judged(tmp_path, "in_process", **makers.fake("judge", **script))


@pytest.mark.parametrize("engine", ["local", "in_process"])
def test_ctrl_c_keeps_what_was_said_and_the_same_call_goes_on(
    tmp_path, in_process, mock_server, engine, monkeypatch
):
    in_process()
    log = tmp_path / "asked"
    url = mock_server("--log", log, "--delay-ms", "20")
    makers.write_models(tmp_path, makers.endpoint(url, "m", concurrency=2))
    texts = [f"Text {n}." for n in range(30)]
    stops = []
    monkeypatch.setattr(stages, "Stop", lambda: stops.append(Stop()) or stops[-1])

    def interrupt():
        wait_for_requests(log, 20)
        stops[0].ask()

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(Interrupted, match=r"\d+ of 180 rephrasings are done and kept"):
        rephraser(tmp_path, engine).rephrase(texts)
    assert requests_in(log).total() < 30 * REPHRASINGS
    assert list((tmp_path / "studies").iterdir()) == []
    rephraser(tmp_path, engine).rephrase(texts)
    assert requests_in(log).total() == 30 * REPHRASINGS


@pytest.mark.slow
def test_what_a_killed_study_left_is_removed_by_a_later_one(tmp_path, mock_server):
    log = tmp_path / "asked"
    url = mock_server("--log", log, "--delay-ms", "20")
    judge = makers.endpoint(url, "judge", family="x", concurrency=1)
    makers.write_models(tmp_path, judge, makers.fake("m", reply="Said."))
    models = ("--models", tmp_path / "models.json", "--workspace", tmp_path)
    process = start_command("study", "injection", "--judge", "judge", *models)
    wait_for_requests(log, 5, process)
    process.kill()
    process.communicate()
    [left] = (tmp_path / "studies").iterdir()
    assert list(left.glob("journal/*.jsonl"))
    rephraser(tmp_path, "local").rephrase(["one"])
    assert left.exists()  # it may be at work
    left.rename(left.with_name("20250101T000000Z-0a"))
    rephraser(tmp_path, "local").rephrase(["one"])
    assert list((tmp_path / "studies").iterdir()) == []
    code, out, errors = result_of(
        start_command("--json", "study", "injection", "--judge", "judge", *models)
    )
    assert code == 0, errors
    resumed = requests_in(log)
    whole = judged(tmp_path / "other", "local", **judge)
    assert json.loads(out) == {"schema_version": 1, **whole}
    assert (resumed - (requests_in(log) - resumed)).total() <= 1  # what was under way at the kill


@pytest.mark.slow
def test_replies_to_a_study_live_in_an_object_store(
    tmp_path, patient_workers, machine, mock_server, capsys
):
    patient_workers()
    log, address = tmp_path / "asked", f"{machine.bucket}/shop"
    judge = makers.endpoint(mock_server("--log", log), "judge", family="x")
    makers.write_models(tmp_path, judge)
    command = ["--json", "study", "injection", "--judge", "judge", "--workspace", address]
    command += ["--models", str(tmp_path / "models.json"), "--engine", "in_process"]
    assert call(command) == 0
    found = json.loads(capsys.readouterr().out)
    whole = judged(tmp_path / "folder", "local", **judge)
    assert found == {"schema_version": 1, **whole}
    once = requests_in(log)
    names = Mirror(address).listed()
    assert names
    assert {name.partition("/")[0] for name in names} == {"responses", "spend", "inquiries"}
    assert not any("@" in name for name in names)
    left = tmp_path / "manifest.json"
    left.write_text("{}")
    Mirror(address)._files.put_file(
        str(left), f"{address}/studies/20250101T000000Z-0a/manifest.json"
    )
    machine("two")
    assert call(command) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert requests_in(log) == once
    assert Mirror(address).listed("studies") == {}


def test_a_store_that_refuses_at_the_end_loses_no_reply_and_no_bank_is_half_told(
    tmp_path, machine, mock_server, monkeypatch
):
    log, address = tmp_path / "asked", f"{machine.bucket}/shop"
    makers.write_models(tmp_path, makers.endpoint(mock_server("--log", log), "m"))
    bank = letters(tmp_path, n=4)

    def write():
        wanted = SilverOptions(
            maker="m", models_file=tmp_path / "models.json", to=tmp_path / "silver"
        )
        return write_silver(bank, wanted, secrets={}, workspace=address)

    real = remote._carry_stores

    def refuse(mirror):
        raise OSError(errno.EIO, "the store refuses")

    monkeypatch.setattr(silver_module, "_read", lambda text: RECORD_OF)
    monkeypatch.setattr(remote, "_carry_stores", refuse)
    with pytest.raises(OSError, match="the store refuses"):
        write()
    assert not (tmp_path / "silver").exists()
    with pytest.raises(InputError, match="not an enabled entry"):
        judged_at(address, tmp_path, "nobody")
    once = requests_in(log)
    monkeypatch.setattr(remote, "_carry_stores", real)
    assert write().written == 3
    assert requests_in(log) == once


def judged_at(address, folder, judge):
    items = [i for i in find_bank("demo", folder, folder).items if i.form == "open"]
    models = folder / "models.json"
    return makers.plain(injection_study(judge, models, items, secrets={}, workspace=address))


def test_nobody_is_asked_about_nothing(tmp_path):
    makers.write_models(tmp_path, makers.fake("m", reply="Said."))
    spec = load_models(tmp_path / "models.json")["m"]
    assert prompt_batch("things", (), spec, secrets={}, workspace=tmp_path) == []
