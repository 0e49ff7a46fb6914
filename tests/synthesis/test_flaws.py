"""Flawed items: two stages over real runs, a review by another family, people's decisions, and what
they change.
"""

import json

import pytest
from tests import makers
from tests.bank.dates import TODAY
from tests.context.services import Services
from tests.synthesis.flawed_runs import CORRECTION, MODELS, commission, items, unchanged

from medassay import pipeline
from medassay.bank.folder import load_bank
from medassay.errors import GateError, InputError
from medassay.storage.run import open_run
from medassay.study.corrections import corrections_sheet, corrections_study
from medassay.synthesis.correction import read_correction
from medassay.synthesis.decide import decide, waiting
from medassay.synthesis.flaws import flaws_of_runs, select_flaws
from medassay.synthesis.project import open_workshop, read_workshop
from medassay.synthesis.release import release_items
from medassay.synthesis.reviewing import review_flaws, type_counts


def test_golden_flaws_are_selected(golden):
    known = golden("bank_synthesis")["flaw_selection"]
    large = {
        f"large{n}": {q["id"]: not q["large"][n] for q in known["questions"]} for n in range(2)
    }
    small = {
        m: {q["id"]: not q["small"][n] for q in known["questions"]}
        for n, m in enumerate(known["models"])
    }
    found = {one.item for one in select_flaws(large, small).flaws}
    assert found == {q["id"] for q in known["questions"] if q["selected"]}


def test_two_stages_over_a_real_run(runs, cli):
    found = flaws_of_runs(runs)
    assert found.large == ("huge", "big")
    assert [item for _, item in found.selected.candidates] == ["q0-quiz", "q1-quiz"]
    assert [(one.item[1], len(one.wrong_small), one.n_small) for one in found.selected.flaws] == [
        ("q0-quiz", 4, 4),
        ("q1-quiz", 2, 4),
    ]
    code, shown, _ = cli("--json", "bank", "flaws", runs[0].path)
    assert code == 0
    assert [one["item"] for one in json.loads(shown)["selected"]] == ["q0-quiz", "q1-quiz"]
    assert [one.item[1] for one in flaws_of_runs(runs, ["small0", "small1"]).selected.flaws] == [
        "q0-quiz",
        "q1-quiz",
    ]
    for large, says in (
        (["nobody"], "not among the models"),
        (["huge"], "name them with --large"),
    ):
        with pytest.raises(InputError, match=says):
            flaws_of_runs(runs, large)
    with pytest.raises(InputError, match="in another run, too"):
        flaws_of_runs([*runs, *runs])


def test_no_item_changes_without_a_person_and_then_as_decided(runs, tmp_path):
    found = flaws_of_runs(runs)
    shop = tmp_path / "shop"
    with pytest.raises(InputError, match="was written by the family author"):
        review_flaws(found, commission(tmp_path, "author"), shop, secrets={}, workspace=tmp_path)
    told = review_flaws(found, commission(tmp_path), shop, secrets={}, workspace=tmp_path)
    assert told["reviewed"] == {"q0-quiz": [1], "q1-quiz": [0]}
    assert (
        review_flaws(found, commission(tmp_path), shop, secrets={}, workspace=tmp_path)["calls"]
        == 0
    )
    assert type_counts(read_workshop(shop)) == [(0, "waiting", 1), (1, "waiting", 1)]
    assert [row["handle"] for row in waiting(read_workshop(shop))] == [
        "review:q0-quiz",
        "review:q1-quiz",
    ]
    lock = tmp_path / "banks.lock"
    with open_workshop(shop) as opened:
        with pytest.raises(GateError, match="no decided correction"):
            release_items(opened, reason="x", lock=lock, today=TODAY)
        with pytest.raises(InputError, match=r"type 0\): expected change or remove"):
            decide(opened, "accept", ["review:q1-quiz"], who="A")
        with pytest.raises(InputError, match="equals the item"):
            decide(opened, "change", ["review:q1-quiz"], who="A", change={"expected": "A"})
        decide(opened, "accept", ["review:q0-quiz"], who="A. Reviewer", reason="guideline")
        decide(opened, "change", ["review:q1-quiz"], who="A", change={"question": "Asked clearly?"})
        _, version, _ = release_items(opened, reason="flaws", lock=lock, today=TODAY)
    bank = {item.id: item for item in load_bank(tmp_path / "bank", lock=lock).items}
    assert version == "salt-2026.2"
    assert (bank["q0-quiz"].target.expected, bank["q0-quiz"].revision) == ("A", 2)
    assert (bank["q0-open"].reference, bank["q0-open"].revision) == (
        "one 0",
        2,
    )  # the open form of the same question
    assert (bank["q1-quiz"].question, bank["q1-quiz"].revision) == ("Asked clearly?", 2)
    assert {
        item.revision
        for name, item in bank.items()
        if name not in ("q0-quiz", "q0-open", "q1-quiz")
    } == {1}
    steps = [event.place[0] for event in read_workshop(shop).history("q0-quiz")]
    assert steps[-2:] == ["release", "release"] or steps[-1] == "release"
    # the same models on the corrected bank
    names = [one["id"] for one in MODELS]
    after = pipeline.run(makers.write_plan(tmp_path, models=names), secrets={})
    study = corrections_study(runs, [after], type_counts(read_workshop(shop)))
    assert (study.changed, study.removed, study.scripted) == (
        ["q0-quiz", "q1-quiz"],
        [],
        True,
    )
    huge = next(row for row in study.rows if row.model == "huge")
    assert (huge.before, huge.after, huge.difference) == pytest.approx(
        (1000 / 12, 1100 / 12, 100 / 12)
    )
    assert (huge.before_changed, huge.after_changed, huge.n_changed) == (0, 50, 2)
    files = corrections_sheet(study).files()
    assert {
        "before-after.svg",
        "differences.svg",
        "types.svg",
        "corrections.csv",
    } <= files.keys()
    with pytest.raises(InputError, match="one version"):
        corrections_study(runs, runs)


def test_a_removed_item_leaves_the_bank(runs, tmp_path, cli):
    code, *_ = cli(
        "bank",
        "flaws",
        runs[0].path,
        "--review",
        "checker",
        "--bank",
        "bank",
        "--to",
        "shop",
        "--models",
        "models.json",
    )
    assert code == 0
    assert cli("bank", "decide", "shop", "remove", "review:q1-quiz", "--by", "A")[0] == 0
    assert cli("bank", "decide", "shop", "keep", "review:q0-quiz", "--by", "A")[0] == 0
    assert cli("bank", "release", "shop", "--reason", "one out")[0] == 0
    assert "q1-quiz" not in {item.id for item in load_bank(tmp_path / "bank").items}
    assert "q1-quiz removed" in (tmp_path / "bank/CHANGES.md").read_text()
    after = pipeline.run(
        makers.write_plan(tmp_path, models=[one["id"] for one in MODELS]), secrets={}
    )
    code, shown, _ = cli(
        "--json",
        "study",
        "corrections",
        runs[0].path,
        "--after",
        after.path,
        "--workshop",
        "shop",
        "--to",
        "page",
    )
    found = json.loads(shown)
    assert (code, found["removed"]) == (0, ["q1-quiz"])
    assert found["types"] == [
        {"type": 0, "decision": "remove", "n": 1},
        {"type": 1, "decision": "keep", "n": 1},
    ]
    assert (tmp_path / "page/index.html").is_file()
    assert open_run(after.path).sealed


def test_a_reviewer_may_search_and_what_it_looked_up_is_kept(runs, tmp_path, cli):
    services = Services()
    try:
        turns = [[{"name": "pubmed_search", "arguments": {"query": "gout {item}", "k": 1}}]]
        script = {
            "reply": json.dumps(unchanged(1, types=[], path="Start -> Middle -> End")),
            "tools": turns,
        }
        document = json.loads((tmp_path / "models.json").read_text())
        for one in document["models"]:
            if one["id"] == "checker":
                one |= {"script": script, "capabilities": ["chat", "tools"]}
        (tmp_path / "models.json").write_text(json.dumps(document))
        rules = services.rules(use=["pubmed_search"])
        lines = [f"{key} = {json.dumps(value)}" for key, value in rules.items()]
        (tmp_path / "tools.toml").write_text("\n".join(["[tools]", *lines]) + "\n")
        asked = [
            "bank",
            "flaws",
            runs[0].path,
            "--review",
            "checker",
            "--bank",
            "bank",
            "--to",
            "shop",
        ]
        code, *_ = cli(*asked, "--tools", "tools.toml")
        assert code == 0
        event = read_workshop(tmp_path / "shop").latest("review", "q1-quiz")
        assert event.result["types"] == []
        [look] = event.record["calls"][0]["looked_up"]
        assert (look["tool"], look["status"], json.loads(look["arguments"])["query"]) == (
            "pubmed_search",
            "ok",
            "gout q1-quiz",
        )
        assert services.asked
        (tmp_path / "tools.toml").write_text('[tools]\nuse = ["web"]\n')
        code, _, errors = cli(*asked, "--tools", "tools.toml")
        assert (code, "tools.toml" in errors) == (3, True)
    finally:
        services.stop()


RECORD = items()[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"types": [2]}, "types .2., but the change is of types .1."),
        ({"types": []}, "but the change is of types"),
        ({"types": [0]}, "no change with type 0"),
        ({"types": [5]}, "numbers from 0 to 3"),
        ({"types": [True]}, "numbers from 0 to 3"),
        ({"item": ["Q?", "x", ["a"], "A"]}, "1 options; expected 5"),
        ({"item": [*CORRECTION["item"][:3], "E"]}, "not the option of its letter"),
        ({"path": "nowhere"}, "at least two steps"),
        ({"sense": "yes"}, "expected true or false"),
        ({"also_right": ["Z"]}, "expected letters A to E"),
        ({"guidelines": "none"}, "expected a list of texts"),
        ({"reasons": " "}, "not blank"),
    ],
)
def test_a_review_must_name_what_it_changes(change, says):
    with pytest.raises(ValueError, match=says):
        read_correction(json.dumps({**CORRECTION, **change}), RECORD)


def test_types_follow_from_the_change():
    def types(**change):
        return read_correction(json.dumps({**CORRECTION, **change}), RECORD).types

    same = [*CORRECTION["item"][:1], "two 0", CORRECTION["item"][2], "B"]
    assert types() == [1]
    assert types(types=[], item=same) == []
    assert types(types=[0], item=same) == [0]
    assert types(types=[3], item=same, path="Start -> End") == [3]
    assert types(types=[1, 3], path="Start -> End") == [1, 3]
    new = ["Asked anew?", "x", ["x", "b", "c", "d", "e"], "A"]
    assert types(types=[2], item=new) == [2]
    with pytest.raises(ValueError, match="no complete JSON"):
        read_correction("no", RECORD)
