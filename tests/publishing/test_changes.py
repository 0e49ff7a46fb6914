"""What a publication says otherwise than the one before it: who moved and why, and what left."""

import json

import pytest
from tests import makers
from tests.publishing import tampering

import medassay
from medassay.core.canonical import canonical
from medassay.core.records.dispute import DisputedThing
from medassay.publishing.disputes import close_dispute, open_dispute
from medassay.publishing.history import set_status
from medassay.publishing.publish import About
from medassay.publishing.report import Mismatch
from medassay.publishing.verify import _check_changes


def publish(folder, name, models, *, bank="bank", reason="", **plan):
    """Publish scripted models: each replies the same letter to all items."""
    makers.write_models(folder, *(makers.fake(m, reply=reply) for m, reply in models.items()))
    wanted = {"banks": [bank], "models": list(models), "demonstration": True, **plan}
    run = medassay.run(makers.write_plan(folder, **wanted), secrets={}, workspace=folder / name)
    medassay.publish(run, folder / "site", publication=name, about=About(reason=reason))
    return run


def changes(site, name):
    return json.loads((site / "p" / name / "data/changes.json").read_text())


def page(site, name):
    return (site / "p" / name / "changes/index.html").read_text()


def rows_of(document, domain="overall"):
    return {row["model"]: row for row in document["rows"] if row["domain"] == domain}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("changes")
    items = makers.many_items(40)
    told = "# Changes\n\n## law-2026.1\n\nFirst.\n"
    makers.write_bank(folder / "bank", items)
    (folder / "bank/CHANGES.md").write_text(told)
    other = [dict(item) for item in items[1:]]
    other[0]["expected"] = "B" if other[0]["expected"] != "B" else "A"
    other[0]["revision"] = 2
    makers.write_bank(folder / "newer", other, question_bank_version="law-2026.2")
    (folder / "newer/CHANGES.md").write_text(f"{told}\n## law-2026.2\n\nA key was <wrong>.\n")
    publish(folder, "p1", {"a": "A", "b": "B"})
    publish(folder, "p2", {"a": "A", "b": "C", "c": "D"})
    name = f"law/{other[0]['id']}"
    assert (
        open_dispute(folder / "site", "p2", "Its key is wrong.", about=DisputedThing(item=name))
        == 1
    )
    close_dispute(folder / "site", 1, "upheld", reason="It was.")
    publish(folder, "p3", {"a": "A", "c": "D"}, bank="newer", reason="One key was corrected.")
    publish(folder, "p4", {"a": "A", "c": "D"}, bank="newer")
    return folder / "site"


def test_the_first_publication_of_a_site_has_no_such_page(site):
    assert not (site / "p/p1/changes").exists()
    assert not (site / "p/p1/data/changes.json").exists()
    assert "What changed" not in (site / "p/p1/index.html").read_text()


def test_a_new_model_and_new_answers_are_told_apart(site):
    document = changes(site, "p2")
    assert document["same_series"]
    assert document["earlier"]["publication"] == "p1"
    root = json.loads((site / "p/p1/data/run/seal.json").read_text())["root"]
    assert document["earlier"]["root"] == root
    assert [(m["model"], m["what"]) for m in document["models"]] == [("c", "new")]
    assert document["items"] == []
    rows = rows_of(document)
    assert rows["c"]["before"] is None
    assert rows["b"]["answers"] == 40
    assert rows["b"]["rescored"] == rows["b"]["items"] == 0
    assert rows["a"]["answers"] == 0  # only the rows beside it are others
    told = page(site, "p2")
    assert "new model" in told
    assert "40 answers to unchanged items are other ones" in told
    assert "1 new row in this ranking" in told
    assert "Questions and methodology are those of p1" in told


def test_a_corrected_and_a_removed_item_are_named_with_reason_and_dispute(site):
    document = changes(site, "p3")
    assert not document["same_series"]
    told = {item["item"]: item for item in document["items"]}
    assert sorted(item["what"] for item in told.values()) == ["corrected", "removed"]
    (corrected,) = [item for item in told.values() if item["what"] == "corrected"]
    assert corrected["fields"] == ["expected"]
    assert corrected["disputes"] == [1]
    assert [(m["model"], m["what"]) for m in document["models"]] == [("b", "left")]
    rows = rows_of(document)
    assert rows["b"]["after"] is None
    assert rows["a"]["items"] == 2
    assert rows["a"]["answers"] == rows["a"]["rescored"] == 0
    (bank,) = document["banks"]
    assert (bank["before"], bank["after"]) == ("law-2026.1", "law-2026.2")
    assert bank["text"] == "## law-2026.2\n\nA key was <wrong>."
    text = page(site, "p3")
    assert "One key was corrected." in text
    assert "A key was &lt;wrong&gt;." in text
    assert 'upheld <a href="../../../dispute/1/index.html">dispute 1</a>' in text
    assert "The question bank changed, the methodology did not</strong>" in text


def test_the_same_again_says_that_nothing_moved(site):
    document = changes(site, "p4")
    assert document["rows"] == document["items"] == document["models"] == []
    assert "no range of ranks is another" in page(site, "p4")


def test_verify_computes_the_changes_again(site, tmp_path):
    assert medassay.verify(site).ok
    forged = tampering.copy(site, tmp_path / "site")
    _check_changes(forged)
    document = changes(forged, "p2")
    document["rows"] = document["rows"][1:]
    (forged / "p/p2/data/changes.json").write_bytes(canonical(document) + b"\n")
    with pytest.raises(Mismatch, match=r"p/p2/data/changes.json: not what p/p1 and p/p2 say"):
        _check_changes(forged)


def test_equal_answers_with_other_scores_are_rescored(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    run = publish(tmp_path, "one", {"a": "A", "b": "B"})
    publish(tmp_path, "two", {"a": "A", "b": "B"}, extraction="paper")
    document = changes(tmp_path / "site", "two")
    assert [field["name"] for field in document["further"]] == ["methodology"]
    assert all(row["answers"] == 0 for row in document["rows"])
    assert run.sealed


def test_a_retracted_publication_is_not_what_the_next_is_held_against(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    publish(tmp_path, "one", {"a": "A", "b": "B"})
    publish(tmp_path, "two", {"a": "A", "b": "C"})
    set_status(tmp_path / "site", "two", "retracted", reason="b was asked wrongly.")
    publish(tmp_path, "three", {"a": "A", "b": "B"})
    document = changes(tmp_path / "site", "three")
    assert document["earlier"]["publication"] == "one"
    assert document["rows"] == []
    assert medassay.verify(tmp_path / "site").ok


def test_withheld_items_and_answers_are_counted_not_compared(tmp_path):
    items = [
        dict(item, kind="synthetic") if n < 6 else item
        for n, item in enumerate(makers.many_items(18))
    ]
    makers.write_bank(tmp_path / "bank", items)
    publish(tmp_path, "one", {"a": "A", "b": "B"})
    publish(tmp_path, "two", {"a": "A", "b": "C"})
    document = changes(tmp_path / "site", "two")
    assert document["not_compared"] == 6 + 2 * 6
    assert rows_of(document)["b"]["answers"] == 12
    assert "withheld or deleted by law" in page(tmp_path / "site", "two")
    assert medassay.verify(tmp_path / "site").ok


def test_items_of_another_bank_are_others_though_their_names_are_equal(tmp_path):
    makers.write_bank(tmp_path / "bank", makers.many_items(12))
    makers.write_bank(tmp_path / "other", makers.many_items(12), name="other")
    publish(tmp_path, "one", {"a": "A", "b": "B"})
    publish(tmp_path, "two", {"a": "A", "b": "B"}, bank="other")
    document = changes(tmp_path / "site", "two")
    counts = [item["what"] for item in document["items"]]
    assert (counts.count("added"), counts.count("removed"), len(counts)) == (12, 12, 24)
    assert medassay.verify(tmp_path / "site").ok


def test_a_forged_reason_and_a_file_that_is_missing_are_found(site, tmp_path):
    forged = tampering.copy(site, tmp_path / "site")
    document = changes(forged, "p3")
    document["reason"] = "Nothing changed."
    (forged / "p/p3/data/changes.json").write_bytes(canonical(document) + b"\n")
    with pytest.raises(Mismatch, match=r"p/p3/data/changes\.json: not what"):
        _check_changes(forged)
    (forged / "p/p3/data/changes.json").unlink()
    with pytest.raises(Mismatch, match=r"p/p3/data/changes\.json: missing"):
        _check_changes(forged)
