"""Cases from decision graphs: plan to released bank, resumed, repeated, changed, decided."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.synthesis.pathway_shops import decided, make, released
from tests.synthesis.shops import TREES, question, replies, ways, write_shop

from medassay.bank.folder import bank_records, load_bank
from medassay.errors import GateError, IncompleteError, InputError
from medassay.synthesis.card import limits_of
from medassay.synthesis.decide import decide, waiting
from medassay.synthesis.items import undecided
from medassay.synthesis.project import open_workshop, read_workshop
from medassay.synthesis.synthesize import preview


def test_a_plan_becomes_a_released_bank_under_a_persons_name(tmp_path):
    write_shop(tmp_path, table='[pathways.domains]\nfever = "infections"')
    made = make(tmp_path)
    assert (made.items, made.queue, made.calls) == (8, [], 8)
    with pytest.raises(InputError, match="no item is accepted, 8 wait"):
        released(tmp_path)
    decided(tmp_path, "accept", "all")
    folder, version, _ = released(tmp_path)
    bank = load_bank(folder, lock=tmp_path / "banks.lock")
    assert (version, len(bank.items), bank.domains) == (
        "shop-2026.1",
        8,
        ("infections", "shop"),
    )
    records = {record["id"]: record for _, record in bank_records(bank)}
    subject, path = next(iter(ways().items()))
    name = subject.replace("/", "-")
    quiz, text = records[f"{name}-quiz"], records[f"{name}-open"]
    assert quiz["approval"] == {
        "who": "A. Reviewer",
        "when": read_workshop(tmp_path / "shop").events[-1].record["at"][:10],
    }
    assert (quiz["path"], quiz["leaf"], quiz["condition"], quiz["cluster"]) == (
        path.full_text,
        path.leaf,
        "Fever",
        "Fever",
    )
    assert quiz["options"]["ABCDE".index(quiz["expected"])] == text["reference"] == "right 0"
    assert quiz["source"].startswith("fever.txt (sha256 ")
    assert bank.limits.startswith("DEMONSTRATION: written by a script")
    assert "Of 8 items 0 (0 %) were reviewed or decided by people one by one" in bank.limits
    with pytest.raises(GateError, match="nothing to release"):
        released(tmp_path)


def test_the_same_call_asks_nothing_again_and_a_changed_graph_only_its_own(tmp_path):
    plan = write_shop(tmp_path)
    make(tmp_path)
    before = (tmp_path / "shop/journal.jsonl").read_bytes()
    again = make(tmp_path)
    assert (again.calls, again.items) == (0, 8)
    assert (tmp_path / "shop/journal.jsonl").read_bytes() == before
    tree = json.loads(json.dumps(TREES["fever"]))
    tree["children"].append(
        {"node": "Rash", "content": "", "children": [{"node": "Look again", "content": ""}]}
    )
    (tmp_path / "graphs/fever.json").write_text(json.dumps(tree))
    given = replies()
    subjects = {s for s in make_preview_subjects(tmp_path, plan)} - set(ways())
    [new] = subjects
    given |= {
        f"make_path/{new}": "Fever -> Rash -> Look again",
        f"make_question/{new}": json.dumps(question(9)),
    }
    script = json.loads((tmp_path / "models.json").read_text())
    script["models"][0]["script"]["replies"] = given
    (tmp_path / "models.json").write_text(json.dumps(script))
    made = make(tmp_path)
    assert (made.items, made.replayed + made.calls) == (10, 2)


def make_preview_subjects(folder, plan):
    from medassay.synthesis.graph_file import load_graph
    from medassay.synthesis.pathway import paths, subject_of

    return [
        subject_of("fever", path) for path in paths(load_graph(folder / "graphs/fever.json"))
    ] + [one for one in ways() if one.startswith("low-salt")]


def test_what_it_would_cost_is_told_before_anything_is_asked(tmp_path):
    plan = write_shop(tmp_path, price={"input": 2.0, "output": 8.0}, max_tokens=1000)
    found = preview(plan, tmp_path / "shop")
    [stage] = found.stages
    assert (stage.stage, stage.calls, stage.most_calls) == ("pathways", 4, 12)
    assert 0 < stage.money < stage.most_money
    assert not (tmp_path / "shop").exists()
    assert not (tmp_path / "responses").exists()
    make(tmp_path)
    assert preview(plan, tmp_path / "shop").calls == 0


def test_a_question_is_asked_for_ten_times_and_then_waits_in_the_queue(tmp_path):
    subject = next(iter(ways()))
    bad = json.dumps(question(0)[:3])
    plan = write_shop(tmp_path, {**replies(), f"make_question/{subject}": bad})
    made = make(tmp_path)
    assert made.items == 6
    [row] = made.queue
    assert (
        row["why"]
        == "3 fields; expected a list of question, answer, five options, letter (asked 10 times)"
    )
    event = read_workshop(tmp_path / "shop").latest("question", subject)
    assert [call["attempt"] for call in event.record["calls"]] == list(range(10))
    assert all(call["reply"] == bad and call["prompt_sha256"] for call in event.record["calls"])
    assert make(tmp_path).calls == 0  # queued is done: asking again is for changed inputs
    with pytest.raises(InputError, match="nothing usable was made"):
        decided(tmp_path, "accept", f"question:{subject}")
    with pytest.raises(InputError, match="4 options"):
        decided(
            tmp_path,
            "change",
            f"question:{subject}",
            change=[*question(0)[:2], ["a", "b", "c", "d"], "A"],
        )
    decided(tmp_path, "change", f"question:{subject}", change=question(5), reason="written by hand")
    decided(tmp_path, "remove", f"question:{subject}")
    assert make(tmp_path, plan).items == 6
    decided(tmp_path, "change", f"question:{subject}", change=question(5), reason="after all")
    made = make(tmp_path, plan)
    assert (made.items, made.queue) == (8, [])
    record = (
        read_workshop(tmp_path / "shop").latest("item", subject.replace("/", "-") + "-open").result
    )
    assert record["reference"] == "right 5"


def test_a_second_reply_mends_the_first(tmp_path):
    subject = next(iter(ways()))
    good = json.dumps(question(0))
    write_shop(tmp_path, {**replies(), f"make_question/{subject}": ["no", good[:-9], good]})
    assert make(tmp_path).items == 8
    event = read_workshop(tmp_path / "shop").latest("question", subject)
    problems = [call.get("problem") for call in event.record["calls"]]
    assert problems[0] == "no complete JSON object or array"
    assert (bool(problems[1]), problems[2]) == (True, None)


@pytest.mark.parametrize("verb", ["accept", "keep", "change", "remove"])
def test_a_person_decides_about_a_pathway_of_many_more_steps(verb, tmp_path):
    subject, path = next(iter(ways().items()))
    long = " -> ".join("abcdefghij")
    write_shop(tmp_path, {**replies(), f"make_path/{subject}": long})
    made = make(tmp_path)
    assert (made.items, made.queue[0]["subject"]) == (6, subject)
    change = "Fever -> Meningism -> Antibiotics" if verb == "change" else None
    decided(tmp_path, verb, f"refine:{subject}", change=change)
    assert make(tmp_path).items == (6 if verb == "remove" else 8)
    if verb != "remove":
        record = (
            read_workshop(tmp_path / "shop")
            .latest("item", subject.replace("/", "-") + "-quiz")
            .result
        )
        assert record["path"] == {"accept": long, "keep": path.full_text, "change": change}[verb]


def test_decisions_are_of_what_was_read_not_of_what_comes_later(tmp_path):
    subject = next(iter(ways()))
    name = subject.replace("/", "-") + "-quiz"
    write_shop(tmp_path)
    make(tmp_path)
    decided(tmp_path, "accept", name)
    write_shop(
        tmp_path,
        {**replies(), f"make_question/{subject}": json.dumps(question(7))},
        version="2",
        temperature=0.1,
    )
    make(tmp_path)
    with open_workshop(tmp_path / "shop") as shop:
        assert name in {event.place[1] for event in undecided(shop)}


def test_a_changed_item_gets_its_next_revision_and_the_bank_its_next_version(tmp_path):
    write_shop(tmp_path)
    make(tmp_path)
    decided(tmp_path, "accept", "all")
    folder, *_ = released(tmp_path)
    item = next(iter(load_bank(folder, lock=None).items))
    record = {
        **read_workshop(tmp_path / "shop").latest("item", item.id).result,
        "question": "Asked better?",
    }
    with pytest.raises(InputError, match="field 'id' stays"):
        decided(tmp_path, "change", item.id, change={**record, "id": "other"})
    with pytest.raises(InputError, match="expected text"):
        decided(tmp_path, "change", item.id, change={**record, "question": 5})
    decided(tmp_path, "change", item.id, change=record, reason="clearer")
    last = [one.id for one in load_bank(folder, lock=None).items][-1]
    decided(tmp_path, "remove", last)
    _, version, _ = released(tmp_path, reason="one clearer, one out")
    bank = load_bank(folder, lock=tmp_path / "banks.lock")
    found = {one.id: one for one in bank.items}
    assert (version, found[item.id].revision, found[item.id].question) == (
        "shop-2026.2",
        2,
        "Asked better?",
    )
    assert last not in found
    assert {one.revision for name, one in found.items() if name != item.id} == {1}
    assert "one clearer, one out" in (folder / "CHANGES.md").read_text()
    history = read_workshop(tmp_path / "shop").history(item.id)
    assert [e.place[0] for e in history if e.place[0] in ("decision", "release")] == [
        "decision",
        "release",
        "decision",
        "release",
    ]


def test_limits_name_families_share_of_review_and_age_of_sources(tmp_path):
    write_shop(tmp_path, more='limits = "Not validated."')
    make(tmp_path)
    with open_workshop(tmp_path / "shop") as shop:
        names = [event.place[1] for event in undecided(shop)]
    for name in names[:3]:
        decided(tmp_path, "accept", name)
    decided(tmp_path, "accept", "all")
    note = " ".join(limits_of(read_workshop(tmp_path / "shop")))
    for part in (
        "Not validated.",
        "writer (family one)",
        "Of 8 items 3 (38 %) were reviewed or decided by people one by one",
        "2 sources, undated",
    ):
        assert part in note


def test_a_workshop_that_was_killed_goes_on_without_asking_again(tmp_path):
    plan = write_shop(tmp_path, {**replies()}, concurrency=1)
    models = json.loads((tmp_path / "models.json").read_text())
    models["models"][0]["script"]["delay"] = 0.15
    (tmp_path / "models.json").write_text(json.dumps(models))
    code = (
        "from pathlib import Path\nfrom medassay.synthesis.synthesize import"
        f" synthesize\nsynthesize(Path({str(plan)!r}), Path({str(tmp_path / 'shop')!r}),"
        f" secrets={{}}, workspace=Path({str(tmp_path)!r}))"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    path = tmp_path / "shop/journal.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b'"step":"refine"') >= 2:
            break
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = path.read_bytes()
    done = sum(
        '"step":"' + step + '"' in line
        for line in kept.decode().splitlines()
        for step in ("refine", "question")
    )
    assert 2 <= done < 8
    made = make(tmp_path)
    assert made.items == 8
    assert (
        made.calls <= 8 - done
    )  # what was journalled, and what the store had taken in, is not asked again
    assert path.read_bytes().startswith(kept[: kept.rindex(b"\n") + 1])


def test_no_reply_is_unfinished_and_the_same_call_goes_on(tmp_path):
    plan = write_shop(tmp_path)
    models = json.loads((tmp_path / "models.json").read_text())
    models["models"][0]["script"]["fail_items"] = [next(iter(ways()))]
    (tmp_path / "models.json").write_text(json.dumps(models))
    with pytest.raises(IncompleteError, match="scripted failure"):
        make(tmp_path)
    write_shop(tmp_path)
    assert make(tmp_path, plan).items == 8


def test_a_budget_is_never_passed(tmp_path):
    write_shop(tmp_path, more="[budget]\ncalls = 5")
    with pytest.raises(IncompleteError, match="the budget is spent"):
        make(tmp_path)
    write_shop(tmp_path)
    assert make(tmp_path).items == 8


def test_what_waits_is_listed_with_the_reason(tmp_path):
    subject = next(iter(ways()))
    write_shop(tmp_path, {**replies(), f"make_question/{subject}": "no"})
    make(tmp_path)
    rows = waiting(read_workshop(tmp_path / "shop"))
    assert [row["what"] for row in rows] == ["question"] + ["item"] * 6
    for names, verb, says in (
        (["nothing"], "accept", "nothing is called"),
        ([], "accept", "nothing is named"),
        ([rows[1]["handle"]], "keep", "expected accept, change or remove"),
        ([rows[1]["handle"]], "change", "needs what shall stand there"),
        (["graph:fever"], "accept", "does not wait"),
    ):
        with pytest.raises(InputError, match=says):
            decided(tmp_path, verb, *names)
    with (
        open_workshop(tmp_path / "shop") as shop,
        pytest.raises(InputError, match="nobody is named"),
    ):
        decide(shop, "accept", ["all"], who=" ")
    assert not [e for e in read_workshop(tmp_path / "shop").events if e.place[0] == "decision"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('name = "x"\ngenerator = "writer"', "none; expected one of the tables"),
        ('name = "x"\n[pathways]\nsources = "texts"', "'generator': absent"),
        (
            'name = "../x"\ngenerator = "writer"\n[pathways]\nsources = "texts"',
            "without slashes",
        ),
        (
            'name = "x"\ngenerator = "nobody"\n[pathways]\nsources = "texts"',
            "'nobody' is not an enabled entry",
        ),
        (
            'name = "x"\ngenerator = "writer"\n[pathways]\nsources = "nowhere"',
            "no such file or folder",
        ),
        (
            'name = "x"\ngenerator = "writer"\n[pathways]\nsources = "texts"\ngraphs = "no"',
            "no such folder",
        ),
        (
            'name = "x"\ngenerator = "writer"\n[pathways]\nsources = "graphs"\ngraph = "y"',
            "graph",
        ),
        (
            'name = "x"\ngenerator = "writer"\nwords = 3\n[pathways]\nsources = "texts"',
            "unknown key 'words'",
        ),
        (
            'name = "x"\ngenerator = "writer"\nattempts = 0\n[pathways]\nsources = "texts"',
            "at least 1 is needed",
        ),
        ('name = "x"\ngenerator = "writer"\n[pathways]\nsources = "graphs"', "holds none of"),
        ("name = ", "not readable as TOML"),
    ],
)
def test_a_wrong_plan_is_refused_with_the_field(text, says, tmp_path):
    plan = write_shop(tmp_path)
    plan.write_text(text)
    with pytest.raises(InputError, match=says):
        make(tmp_path, plan)
    assert not (tmp_path / "shop/bank").exists()


def test_commands_make_decide_release_and_tell_the_history(cli, tmp_path):
    write_shop(tmp_path)
    code, shown, _ = cli("--json", "bank", "synthesize", "plan.toml", "--to", "shop")
    assert (code, json.loads(shown)["items"]) == (0, 8)
    code, shown, _ = cli("bank", "queue", "shop")
    assert (code, len(shown.splitlines())) == (0, 8)
    name = shown.split()[0]
    assert cli("bank", "decide", "shop", "accept", name, "--by", "A. Reviewer")[0] == 0
    assert cli("bank", "decide", "shop", "refuse", name, "--by", "A. Reviewer")[0] == 2
    code, shown, _ = cli("bank", "release", "shop", "--reason", "one item")
    assert (code, shown.split()[0]) == (0, "shop-2026.1")
    code, shown, _ = cli("show", name, "--history")
    assert code == 0
    for word in (
        "source ",
        "graph ",
        "paths ",
        "refine ",
        "question ",
        "item ",
        "accept by A. Reviewer",
        "release ",
    ):
        assert word in shown
    code, shown, _ = cli("--json", "show", name, "--history", "--workshop", "shop")
    steps = [event["step"] for event in json.loads(shown)["history"]]
    assert steps == [
        "source",
        "graph",
        "paths",
        "refine",
        "question",
        "item",
        "decision",
        "release",
    ]
    code, shown, _ = cli(
        "--json", "bank", "synthesize", "plan.toml", "--to", "shop", "--approve-all-by", "B"
    )
    assert json.loads(shown)["released"]["version"] == "shop-2026.2"
    code, shown, _ = cli("--json", "bank", "synthesize", "plan.toml", "--to", "shop", "--plan")
    assert json.loads(shown)["calls"] == 0


def test_paid_calls_need_a_yes_where_nobody_can_be_asked(cli, tmp_path):
    write_shop(tmp_path, price={"input": 1.0, "output": 1.0})
    code, _, errors = cli("bank", "synthesize", "plan.toml", "--to", "shop")
    assert code == 2
    assert "--yes is needed" in errors
    assert cli("bank", "synthesize", "plan.toml", "--to", "shop", "--yes")[0] == 0


def test_paths_are_printed_counted_and_drawn(cli, tmp_path):
    (tmp_path / "g.json").write_text(json.dumps(TREES["fever"]))
    code, shown, _ = cli("--json", "bank", "paths", "g.json", "--svg", "g.svg")
    found = json.loads(shown)
    assert code == 0
    assert [path["text"] for path in found["paths"]] == [
        "Fever -> Stiff neck -> Antibiotics at once",
        "Fever -> Cough -> Chest radiograph",
    ]
    assert (found["nodes"], found["leaves"], found["ways"]) == (5, 2, 2)
    assert (tmp_path / "g.svg").read_text().startswith("<svg")
    assert cli("bank", "paths", "none.json")[0] == 3
