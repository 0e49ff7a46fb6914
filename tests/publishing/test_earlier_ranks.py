"""What was sealed by the earlier rank rules verifies as before, and publishes with sentences that
are true.
"""

import json

import pytest
from tests.packs import unpack

import medassay
from medassay.cli.main import call
from medassay.storage.run import open_run

RULES = ["leader-both", "leader-percentile", "arena-both", "closure-percentile"]


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    """Unpack runs of each rule, and a site, made before ranks were ranges."""
    return unpack("earlier_ranks", tmp_path_factory.mktemp("sealed"))


@pytest.mark.parametrize("rule", RULES)
def test_a_run_verifies_by_the_rule_that_it_names(sealed, rule):
    found = open_run(sealed / rule)
    plan = found.manifest_document["plan"]
    assert f"{plan['rank_rule']}-{plan['separation']}" == rule
    report = medassay.verify(sealed / rule)
    assert report.ok, report.first_mismatch
    assert any("intervals, ranks and pairs recomputed" in c["detail"] for c in report.checks)
    ranks = {row["model"]: row["rank"] for row in found.statistics.document["domains"]["overall"]}
    assert (ranks["three"], ranks["one"], ranks["random"]) == (1, 2, None)


@pytest.mark.parametrize("rule", RULES)
def test_a_rank_of_an_earlier_rule_that_was_changed_is_found(sealed, rule, tmp_path):
    from shutil import copytree

    copy = copytree(sealed / rule, tmp_path / rule)
    text = (copy / "statistics.json").read_text()
    (copy / "statistics.json").write_text(text.replace('"rank":2', '"rank":1', 1))
    assert not medassay.verify(copy).ok


def test_a_site_verifies_byte_for_byte(sealed, capsys):
    assert call(["verify", str(sealed / "site")]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("rule", RULES)
def test_its_page_says_what_the_paired_test_shows(sealed, rule, tmp_path):
    page = medassay.publish(sealed / rule, tmp_path / "site").read_text()
    assert "three is alone on rank 1" in page
    for never in ("cannot tell them apart", "equally well supported", "separable"):
        assert never not in page
    fields = json.loads((sealed / rule / "statistics.json").read_text())["fields"]["solo"]
    ordered = [pair["ordered"] for pair in fields["overall"]["pairs"]]
    assert page.count("three better") == sum(ordered) == 2
