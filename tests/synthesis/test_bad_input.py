"""Bad input: one line that says what and where, nothing half-written, no item that is not what
somebody wrote.
"""

import json
import threading
import time

import pytest
from tests import makers
from tests.synthesis.other_makers import make as make_text
from tests.synthesis.pathway_shops import decided, make, released
from tests.synthesis.shops import question, replies, ways, write_shop

from medassay.bank.folder import load_bank
from medassay.bank.lock import register, registered_hash
from medassay.errors import GateError, InputError
from medassay.synthesis import paths
from medassay.synthesis.graph_file import load_graph
from medassay.synthesis.items import present_items
from medassay.synthesis.project import read_workshop
from medassay.synthesis.source import clean_text


@pytest.mark.parametrize(
    ("row", "made"),
    [
        ("e1,What?,a,,c,d,e,3", {}),  # the key would move
        ("e1,What?,a,b,c,d,,3", {"e1": "C"}),
        ("e1,What?,a,b,c,d,e,5", {"e1": "E"}),
        ("e1,What?,a,b,c,d,e,²", {}),
        ("e1,What?,a,b,c,d\x1b[2J,e,1", {}),
        ('e1,"What\nnow?",a,b,c,d,e,B', {"e1": "B"}),
        ("e1,What?,a,b,c,d,e,99999999999999999999", {}),
    ],
)
def test_an_exam_row_is_what_it_says_or_nothing(row, made, tmp_path):
    (tmp_path / "exam.csv").write_text(
        f"exam_id,question,op1,op2,op3,op4,op5,cop\n{row}\nok,Fine?,a,b,c,d,e,1\n"
    )
    make_text(tmp_path, 'name = "exam"\n[exam]\nfile = "exam.csv"\n')
    found = {
        e.result["id"]: e.result["expected"]
        for e in present_items(read_workshop(tmp_path / "shop"))
    }
    assert found == {**made, "ok": "A"}


def test_all_is_no_items_name(tmp_path):
    (tmp_path / "exam.csv").write_text(
        "exam_id,question,op1,op2,op3,op4,cop\nall,What?,a,b,c,d,1\n"
    )
    with pytest.raises(InputError, match="means every item"):
        make_text(tmp_path, 'name = "exam"\n[exam]\nfile = "exam.csv"\n')


def test_names_in_graphs_lose_what_steers_a_terminal():
    graph = {"edges": {"a\x1b[2J": ["b\x00\u202e"]}}
    assert [path.steps for path in paths(graph)] == [("a[2J", "b")]


def test_a_deep_graph_is_journalled_and_read_again(tmp_path):
    write_shop(tmp_path)
    chain = [f"box {at} of 1234567890123456" for at in range(400)]
    (tmp_path / "graphs/fever.json").unlink()
    (tmp_path / "graphs/fever.txt").write_text(" -> ".join(chain))
    make(tmp_path)
    event = read_workshop(tmp_path / "shop").latest("graph", "fever")
    assert len(event.result["boxes"]) == 400


def test_a_graph_with_more_ways_than_can_be_written_as_a_number_is_journalled(tmp_path):
    write_shop(tmp_path)
    levels = range(80)
    edges = {f"{n}-{at}": [f"{n + 1}-{to}" for to in "abcd"] for n in levels for at in "abcd"}
    edges["root"] = [f"0-{at}" for at in "abcd"]
    (tmp_path / "graphs/fever.json").write_text(json.dumps({"edges": edges, "root": "root"}))
    make(tmp_path)
    told = read_workshop(tmp_path / "shop").latest("paths", "fever").result
    assert (told["ways"], told["kept"]) == ("about 10^48", 8)


@pytest.mark.parametrize(
    ("ending", "text", "says"),
    [
        ("csv", 'a,"b\na,c\n', "not readable as a table"),
        ("json", '{"edges": {"a": ["b"]}, "root": {}}', "expected a name"),
        ("json", '{"edges": {"a": [["b"]]}}', "expected a name"),
        (
            "graphml",
            (
                '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph'
                ' edgedefault="directed"><node id="a"/><edge source="a"/></graph></graphml>'
            ),
            "lacks its source or target",
        ),
    ],
)
def test_graph_files_that_would_be_read_wrongly_are_refused(ending, text, says, tmp_path):
    (tmp_path / f"g.{ending}").write_text(text)
    with pytest.raises(InputError, match=says):
        load_graph(tmp_path / f"g.{ending}")


def test_hostile_texts_take_no_time(tmp_path):
    (tmp_path / "g.txt").write_text("a -> b\n" + " " * 300_000 + "x\n")
    started = time.process_time()
    clean_text("x" * 400_000)
    clean_text("x-" * 200_000)
    with pytest.raises(InputError):
        load_graph(tmp_path / "g.txt")
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('licence = "CC0-1.0"', 'licence = " "', "'licence': empty"),
        ('licence = "CC0-1.0"', 'licence = "x"\nlanguage = "de\\nfr"', "'language'"),
        ('name = "shop"', 'name = "overall"', "names a ranking"),
        ("seed = 3", "seed = 3\nattempts = 100000", "1 to 100 are possible"),
        ("seed = 3", f"seed = {'9' * 5000}", "not readable as TOML"),
        ("[pathways]", "[budget]\nmoney = nan\n[pathways]", "budget"),
        ("[pathways]", '[pathways]\nversions = ["quiz", "quiz"]', "each once"),
        (
            'graphs = "graphs"',
            'graphs = "graphs"\ndomains = { fevre = "x" }',
            "no document is named so",
        ),
        (
            'graphs = "graphs"',
            'graphs = "graphs"\ndomains = { fever = "overall" }',
            "names a ranking",
        ),
    ],
)
def test_a_plan_that_cannot_end_well_is_refused_before_any_call(old, new, says, tmp_path):
    plan = write_shop(tmp_path)
    plan.write_text(plan.read_text().replace(old, new))
    with pytest.raises(InputError, match=says):
        make(tmp_path, plan)
    assert not list(tmp_path.glob("responses/*.zst"))


def test_two_graphs_of_one_name_are_refused(tmp_path):
    write_shop(tmp_path)
    (tmp_path / "graphs/fever.csv").write_text("a,b\n")
    with pytest.raises(InputError, match="another graph has the same name"):
        make(tmp_path)


def test_a_release_without_reason_or_with_a_broken_lock_writes_nothing(tmp_path):
    write_shop(tmp_path)
    make(tmp_path)
    decided(tmp_path, "accept", "all")
    with pytest.raises(InputError, match="a reason is needed"):
        released(tmp_path, reason=" ")
    (tmp_path / "banks.lock").write_text("{")
    with pytest.raises(InputError, match=r"banks\.lock"):
        released(tmp_path)
    assert not (tmp_path / "shop/bank").exists()
    (tmp_path / "banks.lock").unlink()
    assert released(tmp_path)[1] == "shop-2026.1"
    assert "first" in (tmp_path / "shop/bank/CHANGES.md").read_text()


def test_released_items_that_wait_again_are_not_lost_by_the_way(tmp_path):
    plan = write_shop(tmp_path)
    make(tmp_path)
    decided(tmp_path, "accept", "all")
    released(tmp_path)
    plan.write_text(plan.read_text().replace("seed = 3", "seed = 4"))
    make(tmp_path)
    decided(tmp_path, "accept", present_items(read_workshop(tmp_path / "shop"))[-1].place[1])
    with pytest.raises(GateError, match="made anew and wait for a decision"):
        released(tmp_path, reason="again")
    assert len(load_bank(tmp_path / "shop/bank", lock=None).items) == 8
    decided(tmp_path, "accept", "all")
    for kind, end in (("graphs", "json"), ("texts", "txt")):
        (tmp_path / kind / f"fever.{end}").unlink()
    make(tmp_path)
    released(tmp_path, reason="fever left out")
    assert "No longer made: fever-" in (tmp_path / "shop/bank/CHANGES.md").read_text()


def test_releases_at_once_lose_no_version(tmp_path):
    lock = tmp_path / "banks.lock"
    names = [f"b{n}-2026.1" for n in range(24)]
    threads = [threading.Thread(target=register, args=(lock, name, name)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [registered_hash(lock, name) for name in names] == names


def test_foreign_journals_do_not_hide_a_history(cli, tmp_path):
    write_shop(tmp_path)
    make(tmp_path)
    (tmp_path / "diary").mkdir()
    (tmp_path / "diary/journal.jsonl").write_text('{"dear": "diary"}\n')
    name = present_items(read_workshop(tmp_path / "shop"))[0].place[1]
    code, shown, errors = cli("show", name, "--history")
    assert (code, "graph " in shown, "no journal of a workshop" in errors) == (0, True, True)


def test_a_wrong_name_for_who_approves_is_told_before_any_call(cli, tmp_path):
    write_shop(tmp_path)
    assert cli("bank", "synthesize", "plan.toml", "--to", "shop", "--approve-all-by", "  ")[0] == 3
    assert not (tmp_path / "shop").exists()
    assert cli("bank", "synthesize", "plan.toml", "--to", "shop", "--approve-all-by", "A")[0] == 0
    assert cli("bank", "synthesize", "plan.toml", "--to", "shop", "--approve-all-by", "A")[0] == 0
    text = (tmp_path / "plan.toml").read_text().replace('name = "shop"', 'name = "other"')
    (tmp_path / "plan.toml").write_text(text)
    for extra in ([], ["--plan"]):
        assert cli("bank", "synthesize", "plan.toml", "--to", "shop", *extra)[0] == 3


def test_options_that_are_marks_are_none(tmp_path):
    subject = next(iter(ways()))
    bad = ["Q, what now?", "?", ["A. ?", "B. !", "C. .", "D. ,", "E. ;"], "A"]
    write_shop(
        tmp_path,
        {**replies(), f"make_question/{subject}": [json.dumps(bad), json.dumps(question(0))]},
    )
    assert make(tmp_path).items == 8


def test_items_equal_to_one_that_is_equal_to_another_are_told(cli, tmp_path):
    items = makers.law_items()[:1]
    text = {
        "domain": "law",
        "answer_type": "open",
        "question": items[0]["question"] + " Tell in full why you think so, please.",
        "reference": "x",
        "source": "t",
    }
    bank = [
        {**items[0], "id": "a-quiz", "question": text["question"]},
        {**text, "id": "b1"},
        {**text, "id": "b2"},
    ]
    makers.write_bank(tmp_path / "one", bank)
    makers.write_bank(tmp_path / "two", [{**text, "id": "c"}])
    code, shown, _ = cli("--json", "bank", "duplicates", "one", "two")
    pairs = {(a["first"][1], a["second"][1]) for a in json.loads(shown)["pairs"]}
    assert (code, pairs) == (
        1,
        {
            ("a-quiz", "b1"),
            ("a-quiz", "b2"),
            ("b1", "b2"),
            ("a-quiz", "c"),
            ("b1", "c"),
            ("b2", "c"),
        },
    )
