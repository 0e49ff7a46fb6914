"""What is hashed has the keys, and so the bytes, that it had when the first of its kind was
sealed.
"""

import ast
import dataclasses
import json
from pathlib import Path

import pytest
from tests.core.hashed_examples import EXAMPLES

import medassay
from medassay.core.canonical import canonical
from medassay.core.keyed import keyed
from medassay.core.records.model import ModelSpec
from medassay.core.records.plan import Plan

STORED = json.loads((Path(__file__).parents[1] / "golden/hashed_records.json").read_text())
# Reports on the terminal and the meter of what was spent: read by people, hashed by nobody.
NOT_HASHED = {"storage/spend.py", "study/judges.py"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_record_is_written_as_it_was(name):
    assert canonical(EXAMPLES[name].to_dict()).decode() == STORED[name]


def test_every_example_is_stored():
    assert EXAMPLES.keys() == STORED.keys()


def test_nothing_that_is_hashed_follows_from_a_class():
    package = Path(medassay.__file__).parent
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "asdict"
        if ast.unparse(node.func) != "msgspec.structs.asdict"  # into another record, in memory
    }
    assert users == NOT_HASHED


def test_a_new_field_changes_no_hash():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class LaterPlan(Plan):
        later: str = "x"

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class LaterSpec(ModelSpec):
        later: str = "x"

    asked = {"banks": ("demo",), "models": ("random",)}
    assert LaterPlan(**asked, later="y").hash == Plan(**asked).hash
    spec = LaterSpec(id="m", provider="fake", later="y")
    assert spec.to_dict() == ModelSpec(id="m", provider="fake").to_dict()


def test_keyed_takes_the_fields_that_are_named_and_records_in_them_as_they_write_themselves():
    @dataclasses.dataclass
    class Inner:
        value: int

        def to_dict(self):
            return {"v": self.value}

    @dataclasses.dataclass
    class Outer:
        one: Inner
        many: tuple[Inner, ...]
        table: dict[str, Inner]
        aside: int = 0

    made = keyed(Outer(Inner(1), (Inner(2),), {"k": Inner(3)}), "one", "many", "table")
    assert made == {"one": {"v": 1}, "many": ({"v": 2},), "table": {"k": {"v": 3}}}
