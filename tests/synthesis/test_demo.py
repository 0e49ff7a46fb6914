"""The demo: five graphs to a released bank in one command, watermarked.

And the bank that ships stays true to its texts.
"""

import json
from pathlib import Path

from tests import makers
from tests.conftest import ROOT

from medassay.bank.folder import load_bank
from medassay.synthesis.project import read_workshop
from medassay.synthesis.source import share_from

SHIPPED = ROOT / "src/medassay/bank/shipped/demo_paths"


def test_five_graphs_become_a_released_bank_in_one_command(cli, tmp_path):
    code, shown, _ = cli("--json", "demo", "synthesis", "--to", "demo")
    found = json.loads(shown)
    assert code == 0
    assert (found["items"], found["waiting"], found["released"]["version"]) == (
        76,
        0,
        "demo_synthesis-2026.1",
    )
    assert {row["step"] for row in found["queue"]} == {"refine", "question"}
    bank = load_bank(tmp_path / "demo/workshop/bank", lock=tmp_path / "demo/banks.lock")
    assert bank.title.startswith("DEMONSTRATION")
    assert "Of 76 items 0 (0 %) were reviewed or decided by people one by one" in bank.limits
    assert sorted(found["letters"]) == list("ABCDE")
    assert {item.condition for item in bank.items} == {
        "Anaemia",
        "Chest pain",
        "Dyspnoea",
        "Headache",
        "Hyponatraemia",
    }
    for item in bank.items:
        assert "->" not in item.question
        assert item.path is not None
        assert item.path.count("->") >= 1
        assert item.source
    pictures = sorted(path.name for path in (tmp_path / "demo/workshop/graphs").glob("*.svg"))
    assert len(pictures) == 5
    before = (tmp_path / "demo/workshop/journal.jsonl").read_bytes()
    code, shown, _ = cli("--json", "demo", "synthesis", "--to", "demo")
    assert (code, json.loads(shown)["calls"]) == (0, 0)
    assert (tmp_path / "demo/workshop/journal.jsonl").read_bytes() == before


def test_a_real_generator_takes_the_scripts_place(cli, tmp_path):
    makers.write_models(
        tmp_path, {**makers.fake("mine"), "family": "own", "script": {"reply": "no"}}
    )
    code, _, errors = cli("demo", "synthesis", "--to", "demo", "--models", "models.json")
    assert (code, "go together" in errors) == (2, True)
    code, _, errors = cli(
        "demo", "synthesis", "--to", "demo", "--models", "models.json", "--generator", "mine"
    )
    assert (code, "no item is accepted" in errors) == (
        3,
        True,
    )  # it writes nothing usable, and nothing is released
    queue = [e for e in read_workshop(tmp_path / "demo/workshop").events if e.status == "queued"]
    assert len(queue) == 40


def words_of(node):
    yield f"{node['node']} {node['content']}"
    for child in node.get("children", ()):
        yield from words_of(child)


def test_the_graphs_that_ship_say_what_their_texts_say():
    for path in sorted((SHIPPED / "graphs").glob("*.json")):
        tree = json.loads(path.read_text(encoding="utf-8"))
        text = (SHIPPED / "texts" / f"{path.stem}.txt").read_text(encoding="utf-8")
        known = f"{text} {text.lower()} " * 40
        assert share_from(" ".join(words_of(tree)), known) > 0.9, path.name


def test_no_shipped_question_names_a_condition_twice():
    questions = json.loads((SHIPPED / "questions.json").read_text(encoding="utf-8"))
    asked = [one[0] for of in questions.values() for one in of.values()]
    assert len(asked) == len(set(asked)) == 40
    assert Path(SHIPPED / "questions.json").stat().st_size < 60_000
