import json
from pathlib import Path

import pytest
from tests.makers import write_plan

from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import DdxRules, Plan, load_plan, plan_from_dict
from medassay.errors import InputError
from medassay.model.spec import load_models


def test_the_hash_ignores_name_and_budget_only(tmp_path):
    first = load_plan(write_plan(tmp_path, name="a"))
    assert first.hash == load_plan(write_plan(tmp_path, name="b", budget={"calls": 1})).hash
    assert first.hash != load_plan(write_plan(tmp_path, seed=2)).hash


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"modell": ["m"]}, "unknown key 'modell'"),
        ({"modell": ["m"]}, "n_resamples, name, pooled_small,"),  # no `own`: a file says [task]
        ({"settings": ["zero"]}, "settings"),
        ({"repeats": 0}, "'repeats' is 0"),
        ({"models": []}, "'models' is empty"),
        ({"models": ["m", "m"]}, "names something twice"),
        ({"sample": 0}, "'sample' is 0"),
        ({"budget": {"cals": 3}}, "budget"),
        ({"repeats": True}, "'repeats'"),
        ({"seed": "3"}, "'seed'"),
        ({"shuffle_options": 0}, "'shuffle_options'"),
    ],
)
def test_a_bad_plan_names_file_field_and_expectation(tmp_path, values, says):
    with pytest.raises(InputError, match=r"plan\.toml") as caught:
        load_plan(write_plan(tmp_path, **values))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ("repeats = N", "repeats"),
        ("[ddx]\nrank_limit = N", "ddx.rank_limit"),
        ("[[benchmark]]\nseeds = [1, -N]", "benchmark.seeds"),
    ],
)
def test_an_integer_that_no_number_of_ours_has_is_named_not_printed(tmp_path, table, place):
    path = tmp_path / "p.toml"
    text = f'banks = ["b"]\nmodels = ["m"]\n{table}\n'
    for number in (2**64, 10**400):
        path.write_text(text.replace("N", str(number)))
        with pytest.raises(InputError) as caught:
            load_plan(path)
        assert str(caught.value) == (
            f"{path}: not readable as TOML: '{place}' is an integer of more than 64 bits"
        )
    path.write_text(text.replace("N", "9" * 5000))  # more digits than Python converts
    with pytest.raises(InputError, match=r"TOML: an integer of more than 64 bits$"):
        load_plan(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_plan_or_models_file_in_utf_16_is_called_that(tmp_path, encoding):
    mark = "\ufeff" if encoding.endswith("be") else ""  # Python writes one with `utf-16` alone
    for name, read in (("p.toml", load_plan), ("models.json", load_models)):
        path = tmp_path / name
        path.write_text(mark + "seed = 1\n", encoding=encoding)
        with pytest.raises(InputError, match=r"is UTF-16; save it as UTF-8$"):
            read(path)
        path.write_text("\ufeffbanks = []\n", encoding="utf-8")
        with pytest.raises(InputError, match=r"models|not valid JSON"):
            read(path)


def test_a_key_of_very_many_parts_is_refused_in_one_line(tmp_path):
    (tmp_path / "p.toml").write_text(".".join(["a"] * 3000) + " = 1\n")
    with pytest.raises(InputError, match="nested too deeply"):
        load_plan(tmp_path / "p.toml")


def test_broken_toml_and_missing_files_are_one_line(tmp_path):
    (tmp_path / "p.toml").write_text("banks = [")
    with pytest.raises(InputError, match="not readable as TOML"):
        load_plan(tmp_path / "p.toml")
    with pytest.raises(InputError, match="no such plan file"):
        load_plan(tmp_path / "none.toml")
    with pytest.raises(InputError, match=r"is a folder; expected a plan, .* in it are p\.toml"):
        load_plan(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"is a folder; .* holds none"):
        load_plan(tmp_path / "empty")


SHIPPED = Path(__file__).parents[1] / "golden" / "plan_hashes.json"


def test_shipped_plans_have_the_hashes_that_are_stored():
    """Every draw of a run is seeded by the hash of its plan: a new key must not change those there
    are.
    """
    from medassay.core.plan_file import is_suite
    from medassay.suite.plan import load_suite_plan

    found = {
        path.name: (load_suite_plan(path) if is_suite(path) else load_plan(path)).hash
        for path in sorted((Path(__file__).parents[2] / "plans").glob("*.toml"))
    }
    assert found == json.loads(SHIPPED.read_text())


ASKED = {"banks": ("demo",), "models": ("random",)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"settings": ("zero",)},
        {"n_resamples": 3},
        {"modes": ("sol",)},
        {"rank_rule": "best"},
        {"separation": "none"},
        {"seed": -5},
        {"models": ("random", "random")},
        {"banks": "demo"},
        {"banks": ()},
        {"seed": True},
        {"sample": 0},
        {"max_cut_off": 1.5},
        {"preset": "published", "n_resamples": 500},
        {"modes": ("solo", "tools")},
        {"settings": ("rag",)},
    ],
    ids=str,
)
def test_a_plan_in_python_is_refused_with_the_words_of_its_file(wrong):
    keys = {**ASKED, **wrong}
    with pytest.raises(InputError) as here:
        Plan(**keys)
    data = {k: list(v) if isinstance(v, tuple) else v for k, v in keys.items()}
    with pytest.raises(InputError) as there:
        plan_from_dict(data, "plan.toml")
    assert str(here.value).removeprefix("Plan: ") == str(there.value).removeprefix("plan.toml: ")
    assert "\n" not in str(here.value)


def test_records_in_a_plan_are_checked_and_lists_become_tuples():
    with pytest.raises(
        InputError, match=r"Plan: 'ddx.rank_limit': Input should be a valid integer"
    ):
        Plan(**ASKED, ddx=DdxRules(rank_limit="5"))
    with pytest.raises(InputError, match="'ddx' is a mapping; expected a record"):
        Plan(**ASKED, ddx={"rank_limit": 5})
    for lone in ("\ud800", ["\ud800"]):
        with pytest.raises(InputError, match="'name' holds half a character; expected valid Uni"):
            Plan(**ASKED, name=lone)
    with pytest.raises(InputError, match="ModelSpec: 'extra_body' is a record; expected a mapping"):
        ModelSpec(id="m", provider="fake", extra_body=DdxRules())
    deep = {}
    for _ in range(300):
        deep = {"a": deep}
    with pytest.raises(InputError, match="ModelSpec: Invalid JSON: recursion limit exceeded"):
        ModelSpec(id="m", provider="fake", extra_body=deep)
    assert Plan(banks=["demo"], models=["random"]) == Plan(**ASKED)
    assert Plan(**ASKED, preset="published").n_resamples == 1000
    assert Plan(**ASKED, preset="published").rank_rule == "closure"
