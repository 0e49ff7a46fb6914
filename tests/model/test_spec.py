import json
from importlib.resources import files

import pytest

from medassay.errors import InputError
from medassay.model import load_models


def load(tmp_path, *entries):
    path = tmp_path / "models.json"
    path.write_text(json.dumps({"schema_version": 1, "models": list(entries)}))
    return load_models(path)


GOOD = {"id": "m", "provider": "openai_compatible", "url": "http://localhost:1/v1"}


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({**GOOD, "colour": 1}, "'colour'"),
        ({**GOOD, "provider": "nope"}, "known are anthropic, baseline"),
        ({**GOOD, "url": "ftp://x"}, "expected http://"),
        ({**GOOD, "max_tokens": "many"}, "'max_tokens'"),
        ({**GOOD, "concurrency": 0}, "'concurrency': 0; at least 1"),
        ({"provider": "fake"}, "'id'"),
        ({**GOOD, "location": "moon"}, "'location'"),
        ({**GOOD, "api_key_env": "sk-abcdefghijklmnop"}, "looks like a secret"),
        ({**GOOD, "id": " m "}, "'id'"),
        ("text", "expected an object"),
        ({**GOOD, "gpus": -1}, "'gpus'"),
        ({"id": "m", "provider": "fake", "script": {"letters": "Hash"}}, "expected hash"),
        ({"id": "m", "provider": "fake", "script": {"fail_every": -1}}, "a number from 0"),
        ({"id": "m", "provider": "fake", "script": {"delay": "1"}}, "a number from 0"),
        ({**GOOD, "max_tokens": True}, "'max_tokens'"),
        ({**GOOD, "requests_per_minute": -1}, "'requests_per_minute': -1"),
        ({**GOOD, "top_p": -1.0}, "'top_p'"),
        ({**GOOD, "temperature": -5.0}, "'temperature'"),
        ({**GOOD, "price": {"input": -1.0}}, "'price'"),
        ({**GOOD, "token_parameter": "messages"}, "set by medassay itself"),
        ({**GOOD, "extra_body": {"model": "x"}}, "set by medassay itself"),
        ({**GOOD, "extra_body": {"a": [{"token": "t"}]}}, "'token' looks like a secret"),
        ({**GOOD, "extra_body": {"meta": {"api_key": "k"}}}, "'api_key' looks like a secret"),
        ({**GOOD, "url": "http://"}, "expected http://host"),
        ({**GOOD, "url": "http://[::"}, "expected http://host"),
        ({**GOOD, "url": "http://h:99999"}, "expected http://host"),
        ({"id": "m", "provider": "mistral", "logprobs": True}, "'mistral' gives none"),
        ({**GOOD, "headers_env": {"X\nY": "V"}}, "'headers_env'"),
    ],
)
def test_a_bad_entry_names_file_entry_and_field(tmp_path, entry, says):
    with pytest.raises(InputError, match=r"models\.json: models\[0\]") as caught:
        load(tmp_path, entry)
    assert says in str(caught.value)


def test_ids_are_unique_and_disabled_entries_left_out(tmp_path):
    with pytest.raises(InputError, match="occurs twice"):
        load(tmp_path, GOOD, GOOD)
    assert list(load(tmp_path, GOOD, {**GOOD, "id": "off", "enabled": False})) == ["m"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"concurrency": 10**30}, "expected at most 9,007,199,254,740,991"),
        ({"extra_body": {"a": [10**30]}}, "expected at most 9,007,199,254,740,991"),
        ({"id": f"sk-{'abcdefghijklmnop'}"}, "looks like a secret"),
        ({"price": {"input": 1, "output": 1, "currency": f"sk-{'abcdefghijklmnop'}"}}, "'price'"),
    ],
)
def test_what_no_run_could_write_down_or_show_is_refused(tmp_path, change, says):
    with pytest.raises(InputError) as caught:
        load(tmp_path, {**GOOD, **change})
    assert says in str(caught.value)
    assert "abcdefghijklmnop" not in str(caught.value)


def test_two_names_that_look_the_same_are_refused(tmp_path):
    path = tmp_path / "models.json"
    entries = [{**GOOD, "id": name} for name in ("a", "a\u200b")]
    path.write_text(json.dumps({"schema_version": 1, "models": entries}))
    with pytest.raises(InputError, match=r"models\[1\]: field 'id': 'a.u200b' looks like an"):
        load_models(path)


def test_broken_files_are_one_line(tmp_path):
    (tmp_path / "m.json").write_text("{")
    with pytest.raises(InputError, match="not valid JSON"):
        load_models(tmp_path / "m.json")
    (tmp_path / "m.json").write_text("[]")
    with pytest.raises(InputError, match="expected"):
        load_models(tmp_path / "m.json")
    with pytest.raises(InputError, match="no such models file"):
        load_models(tmp_path / "none.json")


def test_every_example_entry_of_init_is_valid(tmp_path):
    document = json.loads((files("medassay.cli") / "starter" / "models.json").read_text())
    for entry in document["models"]:
        entry["enabled"] = True
    found = load(tmp_path, *document["models"])
    assert {
        "openai",
        "mistral",
        "together",
        "openrouter",
        "ollama",
        "vllm",
        "llama-cpp",
    } <= found.keys()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"models": [], "models": []}', "the key 'models' stands twice in one object"),
        (
            '{"models": [{"id": "a", "provider": "fake", "temperature": 0, "temperature": 1}]}',
            "the key 'temperature' stands twice",
        ),
        ('{"models": [], "temperature": 1}', "'temperature' is unknown beside the models; known"),
        ('{"schema_version": 99, "models": []}', "schema_version 99; expected 1"),
        ('{"schema_version": true, "models": []}', "schema_version True; expected 1"),
    ],
)
def test_what_stands_beside_the_entries_is_not_passed_over(tmp_path, text, says):
    (tmp_path / "models.json").write_text(text)
    with pytest.raises(InputError) as error:
        load_models(tmp_path / "models.json")
    assert says in str(error.value)
