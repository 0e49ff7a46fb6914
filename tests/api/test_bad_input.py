"""What nobody should give to the verbs: each is told in one line, and nothing is switched on by it."""

import re
import shutil

import numpy as np
import pytest
from tests import makers

import medassay
from medassay.errors import IncompleteError, InputError, IntegrityError, MedassayError
from medassay.model.spec import remembered, remembered_price
from medassay.runner.progress import Notebook
from medassay.runner.rescore import rescore

KEY = "sk-proj-abcdefghijklmnop"


def entry(**fields):
    return medassay.ModelSpec(
        **{"id": "m", "provider": "openai_compatible", "url": "http://h/v1", **fields}
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "http://user:password@h/v1"},
        {"url": "http://h/v1?api_key=QQQQQQQQ"},
        {"url": "http://h/v1?key=QQQQQQQQ"},
        {"headers_env": {"Authorization": f"Bearer {KEY}"}},
        {"headers_env": {"X-A": "AIzaSyA-abcdefghijklmnopqrst"}},
        {"api_key_env": "AIzaSyAabcdefghijklmnopqrst"},
        {"api_key_env": "not a name"},
        {"extra_body": {"api_key": "whatever"}},
        {"extra_body": {"deep": [{"er": KEY}]}},
        {"system_line": f"use {KEY}"},
    ],
    ids=str,
)
def test_no_secret_is_sealed_into_a_run(fields):
    with pytest.raises(InputError) as told:
        entry(**fields)
    for secret in (KEY, "password@", "QQQQ", "AIza", "whatever"):
        assert secret not in str(told.value)
    assert re.search(r"field '\w+'", str(told.value))


def test_what_a_run_remembers_is_read_by_the_rules_of_its_day():
    """Runs that were sealed before entries were looked through are verified, judged, published."""
    old = entry().to_dict() | {"url": "http://user:password@h/v1", "extra_body": {"api_key": "x"}}
    assert remembered(old).id == "m"
    scripted = entry(provider="fake", url="", script={"reply": "A"}).to_dict()
    assert remembered(scripted | {"script": {"note": 1, "finish": "odd"}}).is_scripted
    with pytest.raises(InputError, match=r"manifest\.json: entry 'm': field 'timeout': Input"):
        remembered(old | {"timeout": "abc"})
    assert remembered_price(old | {"timeout": "abc"}) is None  # pages and sums go without it
    with pytest.raises(InputError):  # and no entry that is made now
        entry(url="http://user:password@h/v1")


def test_what_only_looks_like_a_key_is_taken():
    assert entry(extra_body={"max_keys": 3, "keyword": "x"}, api_key_env="my_key_1").id == "m"
    assert entry(url="http://h:8000/v1?version=2").url.endswith("=2")


@pytest.mark.parametrize("flag", ["trust_code", "fresh", "accept_failures", "progress"])
@pytest.mark.parametrize("value", ["no", "false", 1, {}])
def test_only_true_switches_something_on(tmp_path, flag, value):
    plan = makers.workspace(tmp_path, makers.law_items(), makers.fake("m", reply="A"))
    with pytest.raises(InputError, match=f"{flag}: expected True or False"):
        medassay.run(plan, **{flag: value})
    assert not (tmp_path / "runs").exists()


def test_a_text_is_no_consent_to_execute_code_wherever_it_is_asked_for(tmp_path):
    mark = tmp_path / "mark"
    (tmp_path / "w").mkdir()
    (tmp_path / "w/my.py").write_text(
        f"open({str(mark)!r}, 'a').write('x')\ndef score(item, answer):\n    return 1.0\n"
    )
    plan = makers.workspace(
        tmp_path / "w",
        makers.law_items(),
        makers.fake("m", reply="A"),
        task={"like": "closed", "scorer": "my.py:score"},
    )
    run = medassay.run(plan, secrets={}, trust_code=True)
    mark.unlink()
    with pytest.raises(InputError):
        medassay.rescore(run, trust_code="no")
    with pytest.raises(InputError):  # nor below the verbs
        rescore(run, trust_code="no")
    assert medassay.verify(run, trust_code="no").ok
    assert not mark.exists()


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: medassay.run(None), "plan: expected a Plan, a mapping or a path; got None"),
        (lambda: medassay.open_run(None), "a run: expected a folder's path, or a Run; got None"),
        (lambda: medassay.leaderboard(3), "a run: expected"),
        (lambda: medassay.figure([]), "a run: expected"),
        (lambda: medassay.compare([medassay.example_run()]), "a run: expected a path or a Run"),
        (lambda: medassay.verify(5), "verify: expected a path, an address or a Run; got 5"),
        (lambda: medassay.preview({"banks": ["demo"], "models": ["m"]}, models=[{}]), "ModelSpec"),
        (lambda: medassay.preview({"banks": ["demo"], "models": ["m"]}, models=["m"]), "ModelSpec"),
        (lambda: medassay.preview({"banks": ["demo"], "models": ["m"]}, models=5), "ModelSpec"),
        (lambda: medassay.example_run().leaderboard.rows("typo"), "no domain 'typo'; expected one"),
        (lambda: medassay.show("x", 5), "a run: expected"),
        (lambda: medassay.export(None, "a.csv"), "a run: expected"),
        (
            lambda: medassay.read(next(iter(medassay.example_run().items())), "A", extraction="x"),
            "extraction 'x'; expected standard, paper",
        ),
        (lambda: entry(provider="fake", script={"finish": "never"}), "script.finish.*expected one"),
        (lambda: entry(provider="fake", script={"reply": 5}), "script.reply.*expected a text"),
        (lambda: medassay.paired_difference([1, None], [1, 1], seed=1), "a score of both for each"),
    ],
)
def test_each_wrong_argument_is_told_in_one_line(call, told):
    with pytest.raises(MedassayError, match=told) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("secrets", [5, "x", [("K", "v")], {"K": 5}, {"K": b"x"}])
def test_keys_of_another_type_are_told_before_anything_is_made(tmp_path, secrets):
    plan = makers.workspace(tmp_path, makers.law_items(), makers.fake("m", reply="A"))
    with pytest.raises(InputError, match="secrets: expected a mapping of names to keys"):
        medassay.run(plan, secrets=secrets)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "script", [{"fail_items": 5}, {"tools": [[{"name": "search"}]]}, {"replies": {"law-00": 5}}]
)
def test_a_script_with_a_wrong_value_is_told_before_anything_is_asked(tmp_path, script):
    model = {"id": "m", "provider": "fake", "script": script}
    plan = makers.workspace(tmp_path, makers.law_items(), model)
    with pytest.raises(InputError, match=r"m: field 'script': .*\$\.") as error:
        medassay.run(plan, secrets={})
    assert "\n" not in str(error.value)
    assert not list(tmp_path.rglob("trials.jsonl"))


def test_runs_and_their_places_stand_for_each_other():
    run = medassay.example_run()
    assert medassay.Run(str(run.path)) == run
    assert medassay.verify(run).ok


def test_names_from_outside_steer_nothing(tmp_path):
    evil = "a\u202e\x1b[31m\x00"
    plan = {"banks": ["demo"], "task": "closed", "models": ["m"], "name": evil, "sample": 3}
    model = medassay.ModelSpec(id="m", provider="fake", script={"reply": "\u202eA"})
    with pytest.warns(UserWarning, match="not asked"):
        run = medassay.run(plan, models=[model], workspace=tmp_path)
    item = next(iter(run.items())).id
    texts = [repr(run), run._repr_html_(), str(medassay.show(item, run)), str(run.leaderboard)]
    assert not {"\u202e", "\x1b", "\x00"} & set("".join(texts))


def test_a_model_called_as_what_is_counted_has_its_own_numbers():
    sizes = {("trials", "d"): 3, ("other", "d"): 5}
    bars = Notebook("trials", sizes, makers_counter())
    bars.advance("trials", "d", "answered")
    assert re.findall(r">(\d of \d)", bars.html()) == ["1 of 8", "1 of 3", "0 of 5"]


def makers_counter():
    from collections import Counter

    return Counter()


def unfinished(tmp_path):
    plan = makers.workspace(
        tmp_path, makers.law_items(), makers.fake("m", reply="A"), budget={"calls": 6}
    )
    with pytest.raises(IncompleteError):
        medassay.run(plan, secrets={})
    [folder] = (tmp_path / "runs").iterdir()
    return medassay.open_run(folder)


def test_a_run_that_is_sealed_while_it_is_read_is_read_to_its_end(tmp_path):
    run = unfinished(tmp_path)
    [segment] = (run.path / "journal").glob("*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(lines[:3]))
    (run.path / "journal/d-2.jsonl").write_bytes(b"".join(lines[3:]))
    n_before = len(run.trials())
    trials = iter(run.trials())
    next(trials)
    medassay.run(makers.write_plan(tmp_path, models=["m"]), secrets={})
    assert not (run.path / "journal").exists()
    assert len(list(trials)) == n_before - 1
    assert len(run.trials()) == len(run.to_pandas()) == 10


def test_a_journal_that_goes_between_two_looks_is_no_empty_run(tmp_path, monkeypatch):
    run = unfinished(tmp_path)
    sealed = tmp_path / "sealed"
    shutil.copytree(run.path, sealed)
    medassay.run(makers.write_plan(tmp_path, models=["m"]), secrets={})
    exists, seen = type(run.path).exists, []

    def late(path):  # as if it was sealed just behind the first look
        if path.name == "trials.jsonl" and not seen:
            seen.append(path)
            return False
        return exists(path)

    monkeypatch.setattr(type(run.path), "exists", late)
    assert len(run.to_pandas()) == 10
    assert seen


@pytest.mark.parametrize(
    ("part", "told"), [("timing", "'timing' is no object"), ("score", "Expected `object`")]
)
def test_a_damaged_journal_line_is_named_by_file_and_byte(tmp_path, part, told):
    run = unfinished(tmp_path)
    [segment] = (run.path / "journal").glob("*.jsonl")
    lines = segment.read_text().splitlines()
    lines[1] = re.sub(rf'"{part}":\{{[^}}]*\}}', f'"{part}":5', lines[1], count=1)
    segment.write_text("\n".join(lines) + "\n")
    with pytest.raises(
        IntegrityError, match=rf"{segment.name} at byte {len(lines[0]) + 1}.*{told}"
    ):
        run.to_pandas()


def test_numbers_of_numpy_are_numbers():
    assert medassay.Plan(banks=("demo",), models=("m",), seed=int(np.int64(7))).seed == 7
