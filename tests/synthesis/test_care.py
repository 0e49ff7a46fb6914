"""What must never happen: private items made public, corrections undone, decisions about something
else, replies lost.
"""

import json

import pytest
from tests import makers
from tests.bank.dates import TODAY
from tests.synthesis.flawed_runs import (
    CORRECTION,
    MODELS,
    commission,
    items,
)
from tests.synthesis.other_makers import ACCEPT, PROPOSALS, draft, names
from tests.synthesis.other_makers import make as make_text
from tests.synthesis.other_makers import models as two_models
from tests.synthesis.pathway_shops import decided, make, released
from tests.synthesis.shops import question, replies, ways, write_shop

from medassay import pipeline
from medassay.bank.folder import load_bank
from medassay.errors import GateError, IncompleteError, InputError
from medassay.exchange.bank_export import export_bank
from medassay.study.corrections import corrections_sheet, corrections_study
from medassay.synthesis import release as release_module
from medassay.synthesis.decide import decide
from medassay.synthesis.flaws import flaws_of_runs
from medassay.synthesis.items import present_items
from medassay.synthesis.project import open_workshop, read_workshop
from medassay.synthesis.release import release_items
from medassay.synthesis.reviewing import review_flaws
from medassay.synthesis.source import read_source
from medassay.synthesis.translation import _same_numbers


def test_an_edit_cannot_make_a_private_item_public(tmp_path):
    a, *_ = names(tmp_path)
    two_models(tmp_path, {f"{a}/round-1": draft(1)}, {f"{a}/round-1": ACCEPT})
    text = PROPOSALS.replace('["first", "second", "third", "fourth"]', '["first"]').replace(
        "may_leave = false\n", ""
    )
    make_text(tmp_path, text)
    name = f"mandate-{a}"
    with pytest.raises(InputError, match="field 'kind' stays"):
        decided(tmp_path, "change", name, change={"question": "Now?", "kind": "public"})
    decided(tmp_path, "change", name, change={"question": "Asked better, and what now?"})
    folder, *_ = released(tmp_path)
    bank = load_bank(folder, lock=None)
    assert (bank.items[0].kind, bank.items[0].question, bank.may_leave) == (
        "synthetic",
        "Asked better, and what now?",
        False,
    )
    with pytest.raises(GateError, match="never exported"):
        export_bank(bank, "csv", tmp_path / "out")


def test_a_translation_is_as_private_and_as_limited_as_its_source(tmp_path):
    card = {"may_leave": False, "limits": "For members only.", "title": "DEMONSTRATION"}
    bank = makers.law_items()[:1]
    bank[0]["meta"] = {"family": "author"}
    makers.write_bank(tmp_path / "law", bank, **card)
    reply = {"question": "¿Qué?", "options": ["Uno", "Dos", "Tres"]}
    writer = {
        **makers.fake("writer"),
        "family": "one",
        "location": "local",
        "script": {"replies": {"law-00": json.dumps(reply)}},
    }
    makers.write_models(tmp_path, writer)
    make_text(
        tmp_path, 'name = "ley"\ngenerator = "writer"\n[translation]\nbank = "law"\nto = "es"\n'
    )
    decided(tmp_path, "accept", "all")
    folder, *_ = released(tmp_path)
    made = load_bank(folder, lock=None)
    assert not made.may_leave
    assert "For members only." in made.limits
    record = read_workshop(tmp_path / "shop").latest("item", "law-00-es").result
    assert (record["meta"]["family"], record["meta"]["of_family"]) == ("one", "author")


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("1.5 mg", "15 mg", False),
        ("135", "1,35", False),
        ("1.5 mg", "1,5 mg", True),
        ("1,500 ml", "1.500 ml", True),
        ("1,500 ml", "1500 ml", True),
        ("1.500.000", "1,500,000", True),
        ("30 and 31", "31 and 30", True),
        ("30", "30 and 30", False),
    ],
)
def test_a_tenfold_dose_is_another_number(first, second, same):
    assert _same_numbers(first, second) == same


@pytest.fixture
def corrected_shop(tmp_path):
    """Release a made bank, run models on it, and correct an item's key."""
    write_shop(tmp_path, location="local")
    make(tmp_path)
    shop = read_workshop(tmp_path / "shop")
    first = present_items(shop)[0].place[1]
    decided(tmp_path, "accept", first, present_items(shop)[1].place[1])
    released(tmp_path)
    record = shop.latest("item", first).result
    other = next(i for i in range(5) if "ABCDE"[i] != record["expected"])
    change = {
        **CORRECTION,
        "item": [
            record["question"],
            record["options"][other],
            record["options"],
            "ABCDE"[other],
        ],
        "path": record["path"],
    }
    wrong = "ABCDE"[other]
    models = [
        {**makers.fake(n), "size": s, "script": {"reply": wrong}}
        for n, s in (("a", 9), ("b", 8), ("c", 1))
    ]
    checker = {
        **makers.fake("checker"),
        "family": "other",
        "script": {"reply": json.dumps(change)},
    }
    known = json.loads((tmp_path / "models.json").read_text())["models"]
    makers.write_models(tmp_path, *known, *models, checker)
    (tmp_path / "run.toml").write_text(
        'banks = ["shop/bank"]\nmodels = ["a", "b", "c"]\ntask = "closed"\n'
    )
    run = pipeline.run(tmp_path / "run.toml", secrets={})
    wanted = commission(tmp_path)
    wanted = type(wanted)(
        reviewer="checker", models_file=wanted.models_file, bank=tmp_path / "shop/bank"
    )
    review_flaws(flaws_of_runs([run]), wanted, tmp_path / "fixes", secrets={}, workspace=tmp_path)
    return first, wrong


def release_fixes(folder):
    with open_workshop(folder / "fixes") as fixes:
        return release_items(fixes, reason="flaw", lock=folder / "banks.lock", today=TODAY)


def item_of(folder, name):
    return {i.id: i for i in load_bank(folder / "shop/bank", lock=folder / "banks.lock").items}[
        name
    ]


def test_a_correction_is_undone_by_no_later_release(corrected_shop, tmp_path):
    name, key = corrected_shop
    with open_workshop(tmp_path / "fixes") as fixes:
        decide(fixes, "accept", [f"review:{name}"], who="B. Corrector")
    release_fixes(tmp_path)
    assert (item_of(tmp_path, name).target.expected, item_of(tmp_path, name).revision) == (key, 2)
    assert item_of(tmp_path, name.replace("-quiz", "-open")).reference != "right 0"
    with pytest.raises(GateError, match="nothing to release"):
        release_fixes(tmp_path)
    left = [e.place[1] for e in present_items(read_workshop(tmp_path / "shop"))][2]
    decided(tmp_path, "accept", left)
    released(tmp_path, reason="one more")
    assert (item_of(tmp_path, name).target.expected, item_of(tmp_path, name).revision) == (key, 2)
    decided(tmp_path, "change", name, change={"question": "Asked anew by hand?"})
    released(tmp_path, reason="by hand")
    with pytest.raises(InputError, match="no longer what was reviewed"):
        release_fixes(tmp_path)
    assert item_of(tmp_path, name).question == "Asked anew by hand?"
    steps = [e.place[0] for e in read_workshop(tmp_path / "fixes").history(name)]
    assert steps == ["plan", "review", "decision", "release"]


def test_a_bank_that_something_else_changed_is_not_written_over(tmp_path):
    write_shop(tmp_path)
    make(tmp_path)
    decided(tmp_path, "accept", "all")
    folder, *_ = released(tmp_path)
    lines = (folder / "items.jsonl").read_text().replace("what now?", "what then?", 1)
    (folder / "items.jsonl").write_text(lines)
    decided(tmp_path, "remove", present_items(read_workshop(tmp_path / "shop"))[0].place[1])
    with pytest.raises(InputError, match="changed by something else"):
        released(tmp_path, reason="again")
    assert (folder / "items.jsonl").read_text() == lines


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("step", ["register", "release", "_note_release"])
def test_a_release_that_was_cut_off_is_finished_by_the_same_call(
    step, again, tmp_path, monkeypatch
):
    write_shop(tmp_path)
    make(tmp_path)
    decided(tmp_path, "accept", "all")
    if again:
        released(tmp_path)
        decided(tmp_path, "remove", present_items(read_workshop(tmp_path / "shop"))[0].place[1])
    reaches = step == "_note_release" or (step == "release") == again
    with monkeypatch.context() as patch:

        def killed(*args, **kwargs):
            raise KeyboardInterrupt

        patch.setattr(release_module, step, killed)
        if reaches:
            with pytest.raises(KeyboardInterrupt):
                released(tmp_path, reason="cut off")
    if reaches:
        released(tmp_path, reason="finished")
    else:
        released(tmp_path)
    bank = load_bank(tmp_path / "shop/bank", lock=tmp_path / "banks.lock")
    assert (bank.version, len(bank.items)) == (f"shop-2026.{1 + again}", 8 - again)
    with pytest.raises(GateError, match="nothing to release"):
        released(tmp_path)


def test_an_item_that_comes_back_changed_has_its_next_revision(tmp_path):
    write_shop(tmp_path)
    make(tmp_path)
    decided(tmp_path, "accept", "all")
    released(tmp_path)
    name = present_items(read_workshop(tmp_path / "shop"))[0].place[1]
    decided(tmp_path, "remove", name)
    released(tmp_path, reason="out")
    decided(tmp_path, "change", name, change={"question": "Back, and changed?"})
    released(tmp_path, reason="in")
    assert item_of(tmp_path, name).revision == 2


def test_the_bank_under_review_must_be_that_of_the_runs(runs, tmp_path):
    found = flaws_of_runs(runs)
    changed = items()
    changed[5]["question"] = "Another question under an old id?"
    for path in (tmp_path / "bank").iterdir():
        path.unlink()
    makers.write_bank(tmp_path / "bank", changed, name="salt", domains=("medicine",))
    with pytest.raises(InputError, match="is not what the runs asked"):
        review_flaws(found, commission(tmp_path), tmp_path / "shop", secrets={}, workspace=tmp_path)


def test_an_item_whose_review_failed_may_stay(runs, tmp_path):
    found = flaws_of_runs(runs)
    document = json.loads((tmp_path / "models.json").read_text())
    for one in document["models"]:
        if one["id"] == "checker":
            one["script"] = {"reply": "I would rather not."}
    (tmp_path / "models.json").write_text(json.dumps(document))
    review_flaws(found, commission(tmp_path), tmp_path / "shop", secrets={}, workspace=tmp_path)
    with open_workshop(tmp_path / "shop") as shop:
        with pytest.raises(InputError, match="expected keep, change or remove"):
            decide(shop, "accept", ["review:q0-quiz"], who="A")
        decide(shop, "keep", ["review:q0-quiz"], who="A")
        decide(shop, "change", ["review:q1-quiz"], who="A", change={"expected": "C"})
        release_items(shop, reason="one", lock=tmp_path / "banks.lock", today=TODAY)
    bank = {item.id: item for item in load_bank(tmp_path / "bank").items}
    assert (bank["q0-quiz"].target.expected, bank["q1-quiz"].target.expected) == ("B", "C")


def test_a_workshop_is_of_one_thing(runs, tmp_path):
    write_shop(tmp_path)
    make(tmp_path)
    makers.write_models(tmp_path, *MODELS, {**makers.fake("checker"), "family": "other"})
    with pytest.raises(InputError, match="a workshop of something else"):
        review_flaws(
            flaws_of_runs(runs),
            commission(tmp_path),
            tmp_path / "shop",
            secrets={},
            workspace=tmp_path,
        )
    (tmp_path / "exam.csv").write_text("question,op1,op2,op3,op4,cop\nWhat?,a,b,c,d,1\n")
    with pytest.raises(InputError, match="another maker"):
        make_text(tmp_path, 'name = "shop"\n[exam]\nfile = "exam.csv"\n')


def test_a_spent_budget_loses_no_reply_that_was_paid(tmp_path):
    write_shop(tmp_path, more="[budget]\ncalls = 3", concurrency=4)
    document = json.loads((tmp_path / "models.json").read_text())
    document["models"][0]["script"]["delay"] = 0.05
    (tmp_path / "models.json").write_text(json.dumps(document))
    with pytest.raises(IncompleteError, match="the budget is spent"):
        make(tmp_path)
    assert sum(e.place[0] == "refine" for e in read_workshop(tmp_path / "shop").events) == 3
    text = (tmp_path / "plan.toml").read_text().replace("calls = 3", "calls = 99")
    (tmp_path / "plan.toml").write_text(text)
    assert make(tmp_path).calls == 5


def test_another_model_under_the_same_name_writes_anew(tmp_path):
    write_shop(tmp_path)
    make(tmp_path)
    decided(tmp_path, "accept", "all")
    write_shop(tmp_path, family="three", version="2")
    made = make(tmp_path)
    assert made.calls + made.replayed == 8
    with pytest.raises(InputError, match="no item is accepted"):
        released(tmp_path)
    write_shop(tmp_path)
    assert (
        make(tmp_path).calls == 0
    )  # the first model's items are there still, and so are the decisions about them
    assert len(load_bank(released(tmp_path)[0], lock=None).items) == 8


def test_a_scan_is_never_turned_into_text_that_nobody_can_check(tmp_path):
    pytest.importorskip("pypdfium2")
    from pypdf import PdfWriter

    (tmp_path / "texts").mkdir()
    writer = PdfWriter()
    writer.add_blank_page(300, 300)
    writer.write(tmp_path / "texts/scan.pdf")
    for capabilities, wanted in ((["chat"], None), (["chat", "vision"], "text")):
        model = {
            **makers.fake("eyes"),
            "family": "one",
            "capabilities": capabilities,
            "script": {"reply": "Invented words."},
        }
        makers.write_models(tmp_path, model)
        plan = 'name = "scan"\ngenerator = "eyes"\n[pathways]\nsources = "texts"\nrefine = false\n'
        if wanted is None:
            made = make_text(tmp_path, plan)
            assert "sees no pictures" in made.queue[0]["why"]
        else:
            made = make_text(tmp_path, plan)
            assert made.items == 0
            assert "no text to check against" in made.queue[0]["why"]
    writer = PdfWriter()
    for _ in range(3):
        writer.add_blank_page(300, 300)
    writer.write(tmp_path / "long.pdf")
    assert len(read_source(tmp_path / "long.pdf", tmp_path / "pages").pictures) == 3
    assert len(read_source(tmp_path / "texts/scan.pdf", tmp_path / "pages").pictures) == 1


def test_a_run_of_one_cluster_has_a_row_without_an_interval(tmp_path):
    made = []
    for version in (1, 2):
        bank = [{**item, "cluster": "one"} for item in makers.law_items()]
        bank[0]["expected"] = "AB"[version - 1]
        folder = tmp_path / str(version)
        makers.write_bank(folder / "bank", bank, question_bank_version=f"law-2026.{version}")
        makers.write_models(folder, makers.fake("m", reply="A"))
        made.append(pipeline.run(makers.write_plan(folder), secrets={}))
    study = corrections_study([made[0]], [made[1]])
    [row] = study.rows
    assert (row.lo, row.p_holm, row.different, row.n_changed) == (
        None,
        None,
        False,
        1,
    )
    assert row.difference == pytest.approx(-10)
    assert "one cluster: no interval" in corrections_sheet(study).markdown()


def test_one_failed_rephrasing_does_not_lose_the_other(tmp_path):
    (tmp_path / "exam.csv").write_text(
        "exam_id,question,op1,op2,op3,op4,cop\ne1,What lowers sodium?,thiazide,b,c,d,1\n"
    )
    opened = json.dumps({"convertible": True, "question": "Which drug lowers sodium?"})
    two_models(
        tmp_path,
        {"e1/direct": "no", "e1/answer_first": opened},
        {"make_choice/e1": '{"choice": 1}', "make_only_answer/e1": '{"only": true}'},
    )
    plan = (
        'name = "exam"\ngenerator = "writer"\n[exam]\nfile = "exam.csv"\nopen_versions ='
        ' true\nselector = "reviewer"\n'
    )
    assert make_text(tmp_path, plan).items == 1
    decided(tmp_path, "remove", "rephrase:e1/direct")
    assert make_text(tmp_path, plan).items == 2


def test_what_vanished_from_the_plan_is_in_no_queue(tmp_path):
    subject = next(iter(ways()))
    write_shop(tmp_path, {**replies(), f"make_question/{subject}": "no"})
    assert len(make(tmp_path).queue) == 1
    for kind, end in (("graphs", "json"), ("texts", "txt")):
        (tmp_path / kind / f"fever.{end}").unlink()
    made = make(tmp_path)
    assert (made.items, made.queue, made.dropped) == (4, [], {})
    with pytest.raises(InputError, match="does not wait"):
        decided(tmp_path, "change", f"question:{subject}", change=question(1))


def test_the_plan_counts_every_paid_model_before_it_asks(cli, tmp_path):
    two_models(tmp_path, {}, {})
    document = json.loads((tmp_path / "models.json").read_text())
    document["models"][1]["price"] = {"input": 5.0, "output": 5.0}
    (tmp_path / "models.json").write_text(json.dumps(document))
    (tmp_path / "plan.toml").write_text(PROPOSALS)
    code, _, errors = cli("bank", "synthesize", "plan.toml", "--to", "shop")
    assert (code, "--yes is needed" in errors) == (2, True)
