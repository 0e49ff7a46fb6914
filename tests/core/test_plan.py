import pytest
from tests.makers import write_plan

from medassay.core.plan import load_plan
from medassay.errors import InputError


def test_the_hash_ignores_name_and_budget_only(tmp_path):
    first = load_plan(write_plan(tmp_path, name="a"))
    assert first.hash == load_plan(write_plan(tmp_path, name="b", budget={"calls": 1})).hash
    assert first.hash != load_plan(write_plan(tmp_path, seed=2)).hash


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"modell": ["m"]}, "unknown key 'modell'"),
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


def test_broken_toml_and_missing_files_are_one_line(tmp_path):
    (tmp_path / "p.toml").write_text("banks = [")
    with pytest.raises(InputError, match="not readable as TOML"):
        load_plan(tmp_path / "p.toml")
    with pytest.raises(InputError, match="no such plan file"):
        load_plan(tmp_path / "none.toml")
