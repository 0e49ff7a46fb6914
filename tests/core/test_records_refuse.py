"""Records refuse on construction what their file refuses, with the same words."""

import json
import pickle
from dataclasses import asdict

import pytest

from medassay.core.record_check import RecordError
from medassay.core.records.context_config import ToolRules
from medassay.core.records.model import PROVIDER_NAMES, ModelSpec
from medassay.core.records.plan import plan_from_dict
from medassay.errors import InputError
from medassay.model.catalog import PROVIDERS
from medassay.model.spec import load_models, remembered
from medassay.synthesis.plan import Proposals, SynthesisPlan, load_synthesis_plan


def refusals(make, load):
    """Return what a record, and what its file, says, without their names."""
    with pytest.raises(InputError) as here:
        make()
    with pytest.raises(InputError) as there:
        load()
    assert "\n" not in str(here.value)
    return str(here.value).partition(": ")[2], str(there.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": " a"},
        {"provider": "openai"},
        {"provider": "openai_compatible", "url": "localhost:8000"},
        {"logprobs": True},
        {"concurrency": 0},
        {"concurrency": "4"},
        {"temperature": -1.0},
        {"top_p": 0.0},
        {"stop": ["", "x"]},
        {"stop": "x"},
        {"extra_body": {"model": "other"}},
        {"headers_env": {"X Y": "KEY"}},
        {"licence": "sk-abcdefghijklmnop"},
        {"price": {"input": -1.0, "output": 1.0}},
        {"max_tokens": True},
    ],
    ids=str,
)
def test_an_entry_of_a_models_file_in_python(tmp_path, wrong):
    entry = {"id": "m", "provider": "fake", **wrong}
    path = tmp_path / "models.json"
    path.write_text(json.dumps({"schema_version": 1, "models": [entry]}))
    if "price" in entry:
        from medassay.core.records.model import Price

        entry = {**entry, "price": Price(**entry["price"])}
    here, there = refusals(lambda: ModelSpec(**entry), lambda: load_models(path))
    assert here.removeprefix("field ").split(";")[0] in there.replace("field ", "")
    assert "abcdefgh" not in here


def test_every_provider_has_its_name_in_the_record_and_runs_remember_who_was_not_asked():
    assert PROVIDERS.keys() == set(PROVIDER_NAMES)
    for provider in ("rule", "import"):
        spec = ModelSpec(id="given", provider=provider)
        assert remembered(spec.to_dict()).provider == provider


TOOLS = {"use": ["pubmed_search"]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"use": []},
        {"use": ["pubmed_search", "pubmed_search"]},
        {"use": ["scalpel"]},
        {"use": "pubmed_search"},
        {"max_calls": 0},
        {"max_calls": 2.5},
        {"parallel": 9},
        {"timeout": 0.0},
        {"use": ["web_search"]},
        {"use": ["web_search"], "search": "brave"},
        {"pubmed_url": "https://host/?key=1"},
        {"pubmed_key_env": "not a name"},
        {"allow": ["https://example.org"]},
    ],
    ids=str,
)
def test_rules_of_tools_in_python(wrong):
    keys = {**TOOLS, **wrong}
    plan = {"banks": ["demo"], "models": ["random"], "modes": ["solo", "tools"], "tools": keys}
    here, there = refusals(lambda: ToolRules(**keys), lambda: plan_from_dict(plan, "plan.toml"))
    assert here.replace("'tools.", "'") == there.removeprefix("plan.toml: ").replace("'tools.", "'")


PLAN = {"name": "made", "generator": "g"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a/b"},
        {"name": "overall"},
        {"seed": -1},
        {"attempts": 0},
        {"attempts": "3"},
        {"licence": " "},
        {"language": "english language"},
        {"generator": ""},
        {"proposals": None},
        {"proposals": {"topics": [], "domain": "d", "reviewer": "r"}},
        {"proposals": {"topics": ["t"], "domain": "overall", "reviewer": "r"}},
        {"proposals": {"topics": "t", "domain": "d", "reviewer": "r"}},
    ],
    ids=str,
)
def test_a_plan_of_items_in_python(tmp_path, wrong):
    keys = {**PLAN, "proposals": {"topics": ["t"], "domain": "d", "reviewer": "r"}, **wrong}
    table = keys.pop("proposals")
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    lines += ["[proposals]", *(f"{k} = {json.dumps(v)}" for k, v in table.items())] if table else []
    path = tmp_path / "plan.toml"
    path.write_text("\n".join(lines))
    proposals = None if table is None else Proposals(**table)
    here, there = refusals(
        lambda: SynthesisPlan(**keys, proposals=proposals), lambda: load_synthesis_plan(path)
    )
    assert here == there.removeprefix(f"{path}: ")


def test_what_is_right_is_made_and_lists_become_tuples():
    assert ModelSpec(id="m", provider="fake", stop=["a"]).stop == ("a",)
    assert ToolRules(use=["pubmed_search"]).use == ("pubmed_search",)
    made = SynthesisPlan(**PLAN, proposals=Proposals(topics=("t",), domain="d", reviewer="r"))
    assert asdict(made)["name"] == "made"


def test_a_value_that_holds_itself_is_named():
    whole = {}
    whole["part"] = whole
    deep = []
    for _ in range(5000):
        deep = [deep]
    for value in (whole, {"deep": deep}):
        with pytest.raises(RecordError, match="'extra_body' holds itself, or is nested too deeply"):
            ModelSpec(id="m", provider="fake", extra_body=value)


def test_another_process_is_told_the_same():
    with pytest.raises(RecordError) as told:
        ModelSpec(id=" a", provider="fake")
    again = pickle.loads(pickle.dumps(told.value))
    assert (type(again), str(again), again.problem) == (
        RecordError,
        str(told.value),
        told.value.problem,
    )
