"""Documents that cannot be used wait in the queue with the reason; the others go on."""

import json

import pytest
from tests.synthesis.documents import make
from tests.synthesis.shops import TREES, question, replies, write_shop

from medassay.errors import InputError
from medassay.synthesis import paths
from medassay.synthesis.decide import decide
from medassay.synthesis.items import accepted
from medassay.synthesis.pathway import subject_of
from medassay.synthesis.project import open_workshop, read_workshop
from medassay.synthesis.source import source_files
from medassay.synthesis.synthesize import synthesize


def write_four(folder):
    """Two more conditions with the trees and replies of the first two, in a sub-folder."""
    told, trees = replies(), dict(TREES)
    for number, (name, copy) in enumerate((("fever", "heat"), ("low-salt", "salt-low"))):
        trees[copy] = TREES[name]
        for at, path in enumerate(paths(TREES[name])):
            subject = subject_of(copy, path)
            told[f"make_path/{subject}"] = path.full_text
            told[f"make_question/{subject}"] = json.dumps(question(10 + 2 * number + at))
    write_shop(folder, told)
    for copy in trees.keys() - TREES.keys():
        (folder / "graphs" / f"{copy}.json").write_text(json.dumps(trees[copy]))
        (folder / "texts" / "more").mkdir(exist_ok=True)
        (folder / "texts" / "more" / f"{copy}.txt").write_text(f"About {copy}.")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (b"\xff\xfe\x00 no text", "not UTF-8 text"),
        (b"", "holds no text"),
        (b"word " * 30_000, "at most 100,000 can be shown"),
    ],
    ids=["damaged", "empty", "too-long"],
)
def test_of_four_documents_one_that_cannot_be_used_waits_and_three_are_made(tmp_path, damage, why):
    write_four(tmp_path)
    broken = tmp_path / "texts" / "more" / "heat.txt"
    broken.write_bytes(damage)
    made = make(tmp_path)
    assert made.items == 12
    [waits] = made.queue
    assert (waits["step"], waits["subject"]) == ("source", "heat")
    assert why in waits["why"]
    assert str(tmp_path) not in waits["why"]
    assert make(tmp_path).queue == made.queue  # noted once
    lines = (tmp_path / "shop" / "journal.jsonl").read_text().splitlines()
    assert sum('"subject":"heat"' in line and '"queued"' in line for line in lines) == 1
    broken.write_text("About heat.")
    mended = make(tmp_path)
    assert (mended.items, mended.queue) == (16, [])
    assert mended.calls == made.calls / 3  # only what it needs is asked


def question_handle(folder):
    [waits] = make(folder).queue
    return f"{waits['step']}:{waits['subject']}"


def test_what_a_model_could_not_make_is_asked_for_again_and_nothing_else(tmp_path):
    told = replies()
    unwell = next(key for key in told if key.startswith("make_question/"))
    good, told[unwell] = told[unwell], ["no question"] * 3 + ["still none"] * 9
    write_shop(tmp_path, told)
    made = make(tmp_path)
    assert (made.items, len(made.queue)) == (6, 1)
    handle = question_handle(tmp_path)
    assert make(tmp_path).calls == 0
    told[unwell] = good
    write_shop(tmp_path, told)  # the model is well again
    with pytest.raises(InputError, match=r"--again nobody: no step of this workshop"):
        synthesize_again(tmp_path, "nobody")
    again = synthesize_again(tmp_path, handle)
    assert (again.items, again.queue, again.calls) == (8, [], 1)
    assert synthesize_again(tmp_path, "failed").calls == 0


def synthesize_again(folder, *handles):
    return synthesize(
        folder / "plan.toml", folder / "shop", secrets={}, workspace=folder, again=handles
    )


def test_a_raised_token_limit_asks_for_what_failed_alone_and_keeps_decisions(tmp_path):
    told = replies()
    unwell = next(key for key in told if key.startswith("make_question/"))
    good, told[unwell] = told[unwell], "cut of"
    write_shop(tmp_path, told, max_tokens=1000)
    assert len(make(tmp_path).queue) == 1
    with open_workshop(tmp_path / "shop") as shop:
        decide(shop, "accept", ["all"], who="A. Reviewer")
        before = len(accepted(shop))
    told[unwell] = good
    write_shop(tmp_path, told, max_tokens=4096, concurrency=2, timeout=9.0)
    made = make(tmp_path)
    assert (made.items, made.queue, made.calls) == (8, [], 1)
    assert len(accepted(read_workshop(tmp_path / "shop"))) == before == 6


def test_a_step_that_a_person_decided_about_is_not_asked_for_again(tmp_path):
    told = replies()
    unwell = next(key for key in told if key.startswith("make_question/"))
    told[unwell] = "no question"
    write_shop(tmp_path, told)
    handle = question_handle(tmp_path)
    with open_workshop(tmp_path / "shop") as shop:
        decide(shop, "reject", [handle], who="A. Reviewer", reason="no way to ask this")
    assert synthesize_again(tmp_path, "failed").calls == 0
    with pytest.raises(InputError, match=r"A. Reviewer decided about it"):
        synthesize_again(tmp_path, handle)


def test_sub_folders_are_read_and_hidden_ones_are_not(tmp_path):
    for name in ("b.txt", "deep/er/a.md", ".git/c.txt", "deep/.d.txt", "deep/e.docx"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    assert [path.name for path in source_files(tmp_path)] == ["b.txt", "a.md"]
    (tmp_path / "deep" / "b.md").write_text("x")
    with pytest.raises(InputError, match="another document has the same name"):
        source_files(tmp_path)
