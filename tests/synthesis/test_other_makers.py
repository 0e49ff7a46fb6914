"""Proposals for a mandate, exams closed and open, translations, and votes."""

import json

import pytest
from tests import makers
from tests.bank.dates import TODAY
from tests.synthesis.other_makers import ACCEPT, PROPOSALS, draft, make, models, names

from medassay.bank.folder import load_bank
from medassay.errors import GateError, InputError
from medassay.synthesis.decide import decide
from medassay.synthesis.exam_paper import asks_for_wrong
from medassay.synthesis.project import open_workshop, read_workshop
from medassay.synthesis.release import release_items
from medassay.synthesis.translation import read_translation
from medassay.synthesis.votes import acceptance, read_ballot

REVISE = json.dumps(
    {"verdict": "revise", "issues": [{"criterion": "ambiguity", "text": "Two answers fit."}]}
)
REJECT = json.dumps(
    {"verdict": "reject", "issues": [{"criterion": "leakage", "text": "It tells the answer."}]}
)
TOPICS = {"first": "a7937b64", "second": "16367aac", "third": "", "fourth": ""}


def test_drafts_go_through_rounds_and_only_a_person_approves(tmp_path):
    a, b, c, d = names(tmp_path)
    writer = {
        f"{one}/round-{r}": draft(
            10 * n + r, question=f"{'abcd'[n] * 9} case {one * 3} round {r}: what now?"
        )
        for n, one in enumerate((a, b, c, d))
        for r in (1, 2, 3)
    }
    reviewer = {
        f"{a}/round-1": ACCEPT,
        f"{b}/round-1": REVISE,
        f"{b}/round-2": ACCEPT,
        f"{c}/round-1": REJECT,
    }
    reviewer |= {f"{d}/round-{r}": REVISE for r in (1, 2, 3)}
    models(tmp_path, writer, reviewer)
    made = make(tmp_path, PROPOSALS)
    shop = read_workshop(tmp_path / "shop")
    assert made.items == 2
    assert made.dropped == {"waits for a person": 2}
    assert [row["subject"] for row in made.queue] == [f"{c}/round-1", f"{d}/round-3"]
    asked = [e.place for e in shop.events if e.place[0] in ("draft", "verdict")]
    assert len(asked) == 2 * (1 + 2 + 1 + 3)
    assert "Two answers fit." in json.dumps(shop.latest("end", f"{d}/round-3").record)
    with open_workshop(tmp_path / "shop") as opened:
        decide(opened, "accept", [f"mandate-{a}"], who="Owner")
        decide(opened, "remove", [f"mandate-{b}"], who="Owner")
        decide(opened, "change", [f"end:{d}/round-3"], who="Owner", change=json.loads(draft(7)))
        with pytest.raises(
            GateError,
            match=(
                rf"1 entry of the queue, first 'end:{d}/round-3', was accepted and is no item yet:"
                r" `medassay bank synthesize`"
            ),
        ):
            release_items(opened, reason="first", lock=tmp_path / "banks.lock", today=TODAY)
    assert make(tmp_path, PROPOSALS).items == 3
    with open_workshop(tmp_path / "shop") as opened:
        decide(opened, "accept", [f"mandate-{d}"], who="Owner")
        folder, *_ = release_items(
            opened, reason="first", lock=tmp_path / "banks.lock", today=TODAY
        )
    bank = load_bank(folder, lock=None)
    assert {item.kind for item in bank.items} == {"synthetic"}
    assert "0 sources" not in bank.limits
    assert (
        "The items name 1 source, 1 with a year of 2024, as the model that wrote them says; nobody"
        " looked them up." in bank.limits
    )
    assert [item.id for item in bank.items] == sorted([f"mandate-{a}", f"mandate-{d}"])
    assert not bank.may_leave
    from medassay.exchange.bank_export import export_bank

    with pytest.raises(GateError, match="private items are never exported"):
        export_bank(bank, "csv", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_near_duplicate_of_a_known_item_is_not_accepted(tmp_path):
    a, *_ = names(tmp_path)
    known = {**makers.law_items()[0], "question": json.loads(draft(1))["question"]}
    makers.write_bank(tmp_path / "law", [known])
    models(
        tmp_path,
        {f"{a}/round-{r}": draft(1) for r in (1, 2, 3)},
        {f"{a}/round-{r}": ACCEPT for r in (1, 2, 3)},
    )
    text = PROPOSALS.replace(
        '["first", "second", "third", "fourth"]', '["first"]\nagainst = ["la*"]'
    )
    made = make(tmp_path, text)
    assert made.items == 0
    assert "needs revision after 3 rounds" in made.queue[0]["why"]
    issues = read_workshop(tmp_path / "shop").latest("end", f"{a}/round-3").record["issues"]
    assert issues == [f"duplicate: near duplicate of law law-00: {known['question']}"]


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (
            json.dumps({"verdict": "accept", "issues": [{"criterion": "leakage", "text": "x"}]}),
            "issues with an acceptance",
        ),
        (json.dumps({"verdict": "revise", "issues": []}), "without an issue"),
        (json.dumps({"verdict": "maybe", "issues": []}), "expected accept, revise, reject"),
        (
            json.dumps({"verdict": "revise", "issues": [{"criterion": "style", "text": "x"}]}),
            "expected a criterion",
        ),
        ("fine", "no complete JSON"),
    ],
)
def test_a_verdict_that_is_none_goes_to_the_queue(reply, says, tmp_path):
    a, *_ = names(tmp_path)
    models(tmp_path, {f"{a}/round-1": draft(1)}, {f"{a}/round-1": reply})
    made = make(tmp_path, PROPOSALS.replace('["first", "second", "third", "fourth"]', '["first"]'))
    assert made.items == 0
    assert says in made.queue[0]["why"]


def test_who_reviews_must_be_of_another_family(tmp_path):
    models(tmp_path, {}, {})
    document = json.loads((tmp_path / "models.json").read_text())
    document["models"][1]["family"] = "one"
    (tmp_path / "models.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="are of one family, one"):
        make(tmp_path, PROPOSALS)


def test_golden_negation_filter(golden):
    for case in golden("bank_synthesis")["careqa"]["negation_filter"]:
        assert asks_for_wrong(case["text"]) != case["keep"], case["text"]


EXAM_CSV = """exam_id,question,op1,op2,op3,op4,cop,year,category
e1,What lowers sodium?,thiazide,water only,salt,milk,1,2024,Medicine
e2,Which is NOT a sign of fever?,heat,cold feet at rest,sweat,chills,2,2024,Medicine
e3,Withdrawn by the board?,a,b,c,d,impugned,2024,Medicine
e4,Misparsed because two are the same?,a,a,c,d,1,2024,Medicine
e5,What raises potassium?,spironolactone,salt water,bread,tea,1,2023,Pharmacology
e6,Which of these is right?,x y,y z,z x,q r,1,2023,Pharmacology
e7,What treats anaphylaxis first?,adrenaline,tea,sleep,a walk,1,2023,Pharmacology
"""
EXAM = 'name = "exam"\ngenerator = "writer"\nlicence = "CC0-1.0"\n[exam]\nfile = "exam.csv"\n'


def test_a_closed_exam_needs_no_model_and_names_what_it_leaves_out(tmp_path):
    (tmp_path / "exam.csv").write_text(EXAM_CSV)
    made = make(tmp_path, EXAM.replace('generator = "writer"\n', ""))
    assert (made.items, made.calls) == (5, 0)
    assert made.dropped == {"impugned": 1, "misparsed": 1}
    record = read_workshop(tmp_path / "shop").latest("item", "e5").result
    assert (record["expected"], record["year"], record["domain"], record["category"]) == (
        "A",
        2023,
        "Pharmacology",
        "Pharmacology",
    )
    assert record["source"].startswith("exam.csv (sha256 ")


def opened(question):
    return json.dumps({"convertible": True, "question": question})


def test_an_exam_becomes_open_questions_that_two_models_agree_on(tmp_path):
    (tmp_path / "exam.csv").write_text(EXAM_CSV)
    no = json.dumps({"convertible": False})
    writer = {
        f"{e}/{v}": opened(f"Open {e} {v}, in other words?")
        for e in ("e1", "e5", "e7")
        for v in ("direct", "answer_first")
    }
    writer |= {"e1/direct": no, "e6/direct": no, "e6/answer_first": no}
    reviewer = {
        "make_choice/e1": json.dumps({"choice": 1, "reason": "fine"}),
        "make_choice/e5": json.dumps({"choice": 2, "reason": "clearer"}),
        "make_choice/e7": json.dumps({"choice": 0, "reason": "both are vague"}),
        "make_only_answer/e1": json.dumps({"only": False, "other": ["furosemide"]}),
        "make_only_answer/e5": json.dumps({"only": True, "other": []}),
    }
    models(tmp_path, writer, reviewer)
    made = make(tmp_path, EXAM + 'open_versions = true\nselector = "reviewer"\n')
    assert (made.items, made.queue) == (6, [])
    assert made.dropped == {
        "impugned": 1,
        "misparsed": 1,
        "asks for what is wrong": 1,
        "not convertible into an open question": 1,
        "no open version is good": 1,
        "the key is not the only right answer": 1,
    }
    record = read_workshop(tmp_path / "shop").latest("item", "e5-open").result
    assert (record["question"], record["reference"]) == (
        "Open e5 answer_first, in other words?",
        "spironolactone",
    )
    assert make(tmp_path, EXAM + 'open_versions = true\nselector = "reviewer"\n').calls == 0
    with pytest.raises(InputError, match=r"a \[translation\] to en first"):
        make(
            tmp_path,
            EXAM.replace("licence", 'language = "es"\nlicence')
            + 'open_versions = true\nselector = "reviewer"\n',
        )


def test_an_exams_text_is_parsed_with_its_table_of_keys(tmp_path):
    (tmp_path / "paper.txt").write_text(
        "Exam 2024\n\n1. What lowers sodium\nin the old?\n1. Thiazides\n2. Salt\n3. Bread\n4."
        " Milk\n2. Which organ makes insulin?\n1. Liver\n2. Pancreas\n3. Heart\n4. Spleen\n3. Three"
        " options only?\n1. a\n2. b\n3. c\n4. Withdrawn?\n1. a\n2. b\n3. c\n4. d\n5) With letters"
        " and five?\na) one\nb) two goes on\nhere\nc) three\nd) four\ne) five\n"
    )
    (tmp_path / "key.csv").write_text("number,cop\n1,1\n2,2\n3,1\n4,anulada\n5,b\n6,1\n")
    text = (
        'name = "exam"\n[exam]\nfile = "paper.txt"\nkey = "key.csv"\nyear = 2024\ncategory ='
        ' "Medicine"\n'
    )
    made = make(tmp_path, text)
    shop = read_workshop(tmp_path / "shop")
    assert (made.items, made.dropped) == (3, {"misparsed": 2, "impugned": 1})
    first, last = (shop.latest("item", f"paper-00{n}").result for n in (1, 5))
    assert (first["question"], first["options"][0], first["expected"]) == (
        "What lowers sodium in the old?",
        "Thiazides",
        "A",
    )
    assert (last["options"][1], last["expected"], last["year"]) == (
        "two goes on here",
        "B",
        2024,
    )


@pytest.mark.parametrize(
    ("table", "key", "says"),
    [
        ("exam_id,question\n1,a\n", "", "no column 'op1'"),
        (
            "unique_id,question,op1,op2,op3,op4,cop\nu,x?,a,b,c,d,1\nu,y?,a,b,c,d,1\n",
            "",
            "the id 'u' occurs twice",
        ),
        ("", "number,cop\nx,1\n", "expected a whole number"),
        ("", "number,cop\n1,1\n1,2\n", "number 1 occurs twice"),
        ("", "n,cop\n1,1\n", "expected number, cop"),
    ],
)
def test_a_broken_exam_is_refused_with_the_row(table, key, says, tmp_path):
    (tmp_path / "exam.csv").write_text(table)
    (tmp_path / "paper.txt").write_text("1. Question?\n1. a\n2. b\n3. c\n4. d\n")
    (tmp_path / "key.csv").write_text(key)
    text = EXAM if table else EXAM.replace('"exam.csv"', '"paper.txt"\nkey = "key.csv"')
    with pytest.raises(InputError, match=says):
        make(tmp_path, text.replace('generator = "writer"\n', ""))


def test_a_bank_is_translated_and_checked_number_by_number(tmp_path):
    items = makers.law_items()[:2]
    items[0]["question"] = "Within 30 days or 1.5 years?"
    makers.write_bank(tmp_path / "law", items)
    spanish = {"question": "¿En 30 días o en 1,5 años?", "options": ["Uno", "Dos", "Tres"]}
    wrong = {"question": "¿Qué?", "options": ["Uno", "Uno", "Tres"]}
    models(
        tmp_path,
        {"law-00": json.dumps(spanish, ensure_ascii=False), "law-01": json.dumps(wrong)},
        {},
    )
    made = make(
        tmp_path, 'name = "ley"\ngenerator = "writer"\n[translation]\nbank = "law"\nto = "es"\n'
    )
    assert made.items == 1
    assert "two translations are the same" in made.queue[0]["why"]
    record = read_workshop(tmp_path / "shop").latest("item", "law-00-es").result
    assert (record["language"], record["expected"], record["question"]) == (
        "es",
        "B",
        "¿En 30 días o en 1,5 años?",
    )
    assert record["source"] == "translation of law-2026.1, item law-00"
    assert (record["cluster"], record["meta"]["of"], record["meta"]["question"]) == (
        "law-00",
        "law-00",
        "law-00-es",
    )


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ({"question": "Within 31 days?", "options": ["a", "b"]}, "the numbers differ"),
        ({"question": "Within 30 days?"}, "no key 'options'"),
        ({"question": "Within 30 days?", "options": ["a"]}, "a list of 2 texts"),
        ({"question": "Within 30 days\u0000?", "options": ["a", "b"]}, "control character"),
    ],
)
def test_a_translation_must_be_whole(reply, says):
    with pytest.raises(ValueError, match=says):
        read_translation(json.dumps(reply), {"question": "In 30 Tagen?", "options": ["x", "y"]})


SHEET = "item,evaluator,vote\n" + "".join(
    f"{item},{person},{vote}\n"
    for item, votes in {"i1": "111", "i2": "110", "i3": "000", "i4": "100", "i5": "111"}.items()
    for person, vote in zip("xyz", votes, strict=True)
)


def test_votes_give_the_published_table_and_accept_a_set_or_not(cli, tmp_path):
    (tmp_path / "votes.csv").write_text(SHEET)
    code, shown, _ = cli("--json", "bank", "votes", "votes.csv")
    found = json.loads(shown)
    shares = [
        round(found[name]["share"], 9)
        for name in ("at_least_1", "at_least_2", "at_least_3", "unanimous")
    ]
    assert (code, shares, found["accepted"]) == (1, [0.8, 0.6, 0.4, 0.6], False)
    assert round(found["pairwise"], 4) == 0.7333
    assert found["at_least_3"]["lo"] < 0.4 < found["at_least_3"]["hi"]
    code, shown, _ = cli("bank", "votes", "votes.csv", "--min-all", "0.4")
    assert (code, "the set is accepted" in shown) == (0, True)
    ballot = read_ballot(tmp_path / "votes.csv")
    assert acceptance(ballot).refused == ("i3", "i4")


def test_votes_decide_about_the_drafts_of_an_accepted_set(cli, tmp_path):
    (tmp_path / "exam.csv").write_text(EXAM_CSV)
    make(tmp_path, EXAM.replace('generator = "writer"\n', ""))
    said = {"e1": "111", "e2": "111", "e5": "111", "e6": "001", "e7": "111"}
    rows = [
        f"{item},{person},{vote}"
        for item, votes in said.items()
        for person, vote in zip("xyz", votes, strict=True)
    ]
    (tmp_path / "votes.csv").write_text("\n".join(["item,evaluator,vote", *rows]) + "\n")
    code, shown, _ = cli("bank", "votes", "votes.csv", "--workshop", "shop")
    assert (code, "noted: 4 accepted, 1 removed" in shown) == (0, True)
    assert cli("bank", "release", "shop", "--reason", "voted")[0] == 0
    bank = load_bank(tmp_path / "shop/bank")
    assert [item.id for item in bank.items] == ["e1", "e2", "e5", "e7"]
    code, shown, _ = cli("bank", "votes", "votes.csv", "--workshop", "shop", "--population", "5621")
    assert (code, "noted: 0 accepted, 0 removed" in shown) == (0, True)  # the same sheet again
    (tmp_path / "votes.csv").write_text("\n".join(["item,evaluator,vote", *rows[:3]]) + "\n")
    code, _, errors = cli("bank", "votes", "votes.csv", "--workshop", "shop")
    assert (code, "does not wait for a decision" in errors) == (3, True)
    sheet = read_workshop(tmp_path / "shop").latest("votes", "votes.csv")
    assert sheet.result["votes"]["e6"] == {"x": False, "y": False, "z": True}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("item,evaluator,vote\ni,x,2\n", "row 2: vote '2'"),
        ("item,evaluator,vote\ni,x,1\ni,x,1\n", "second vote of 'x'"),
        ("item,evaluator,vote\ni,x,1\ni,y,1\n", "has 2 votes; expected 3"),
        ("item,person,vote\ni,x,1\n", "expected item, evaluator, vote"),
        ("item,evaluator,vote\n", "no votes"),
    ],
)
def test_a_broken_sheet_of_votes_is_refused(text, says, tmp_path):
    (tmp_path / "votes.csv").write_text(text)
    with pytest.raises(InputError, match=says):
        read_ballot(tmp_path / "votes.csv")
