"""An audit of a publication is named where its readers look, and is never what a site opens
with.
"""

import json

import pytest
from tests import makers

import medassay
from medassay import pipeline
from medassay.publishing.history import set_status


@pytest.fixture
def place(tmp_path, mock_server):
    """Return (folder, publish) with a published run, its audit and a run made after the audit."""
    makers.write_bank(tmp_path / "bank", makers.many_items(40))
    plan = makers.write_plan(tmp_path, models=["m"])
    makers.write_models(tmp_path, makers.endpoint(mock_server("--text", "A")))
    stored = medassay.run(plan, secrets={})
    makers.write_models(tmp_path, makers.endpoint(mock_server("--text", "B")))
    audit = pipeline.run(plan, secrets={}, fresh=True)
    for name, run in (("first", stored), ("audit", audit), ("third", stored)):
        medassay.publish(run, tmp_path / "site", publication=name)
    return tmp_path / "site"


SENTENCE = "40 answers of 40 differ; some rows are beyond tolerance."


def test_ranking_status_log_and_front_page_name_an_audit_with_its_counts(place):
    told = '<a href="../../p/audit/index.html">audit</a>: ' + SENTENCE
    assert told in (place / "status/first/index.html").read_text()
    later = (place / "p/third/index.html").read_text()
    assert 'by the audit <a href="./../audit/index.html">audit</a>: ' + SENTENCE in later
    assert "reruns.json" in (place / "p/third/data/index.html").read_text()
    own = (place / "p/audit/index.html").read_text()
    assert "This is an audit: every model of run" in own
    assert SENTENCE in own
    assert "An audit: " + SENTENCE in (place / "log/index.html").read_text()
    before = (place / "p/first/index.html").read_text()
    assert "data-rerun" not in before
    state = json.loads((place / "status/first.json").read_text())
    [rerun] = state["reruns"]
    assert (rerun["publication"], rerun["differing"], rerun["trials"], rerun["within"]) == (
        "audit",
        40,
        40,
        False,
    )
    assert rerun["of"] == ["first", "third"]
    assert medassay.verify(place).ok


def test_a_publication_that_hides_an_audit_is_found(place):
    reruns = place / "p/third/data/reruns.json"
    document = json.loads(reruns.read_text())
    assert document["reruns"][0]["of"] == ["first"]  # it was not published yet itself
    reruns.chmod(0o644)
    reruns.write_text(json.dumps({"schema_version": 1, "reruns": []}))
    assert not medassay.verify(place).ok


def test_a_site_opens_with_the_newest_that_is_neither_retracted_nor_an_audit(tmp_path, place):
    def front():
        text = (place / "index.html").read_text()
        assert medassay.verify(place).ok
        return text

    assert 'data-standing="current">Publication third: current.' in front()
    assert SENTENCE in front()
    set_status(place, "third", "retracted", reason="keys were wrong", following="first")
    assert 'data-standing="current">Publication first: current.' in front()
    set_status(place, "first", "corrected", reason="a key was wrong")
    assert "Publication first: corrected since" in front()
    assert "a key was wrong" in front()
    set_status(place, "first", "retracted", reason="all keys were wrong")
    assert "Publication third: retracted since" in front()
    assert '<a href="p/first/index.html">first</a>' in front()
