"""Rows of rankings and manifests as records: they say what the documents say."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.core.records.estimate import Estimate, RowEstimate, Second
from medassay.core.records.manifest import Manifest, RunModel, RunPlan
from medassay.core.records.statistics import LeaderboardRow, Statistics

SHARES = st.floats(0, 1)
ROW = {"model": "m", "setting": "zero_shot", "mode": "solo", "metric": "accuracy"}


@given(
    SHARES,
    st.sampled_from([(), ("degenerate",), ("few",)]),
    st.none() | st.builds(Second, method=st.just("wilson"), lo=SHARES, hi=SHARES),
)
def test_the_interval_that_is_shown_is_the_one_of_the_pages(value, flags, second):
    estimate = Estimate(
        value=value, lo=value, hi=value, n=24, n_clusters=24, flags=flags, second=second
    )
    shown = (second.lo, second.hi) if second and "degenerate" in flags else (value, value)
    assert estimate.ends == shown
    assert msgspec.convert(estimate.to_dict(), RowEstimate).ends == shown


@pytest.mark.parametrize(
    ("rank", "rule", "tied", "text"),
    [
        ((None, None, None), {}, False, "–"),
        ((None, None, None), {"interval": "wilson"}, True, "–"),
        ((2, 2, 2), {}, False, "2 (2–2)"),
        ((3, 2, 4), {}, True, "3 = (2–4)"),
        ((2, 2, 2), {"interval": "wilson"}, True, "2"),
        ((3, 2, 4), {"interval": None}, False, "2–4"),
    ],
)
def test_a_rank_reads_as_its_rule_has_it(rank, rule, tied, text):
    ranks = dict(zip(("rank", "rank_lo", "rank_hi"), rank, strict=True))
    document = {**ROW, "scale": [0, 1], "n": 10, "coverage": 1.0, **ranks, **rule}
    assert msgspec.convert(document, LeaderboardRow).rank_text(tied=tied) == text


def test_a_family_that_nobody_says_is_unknown_and_one_that_is_blank_stays_blank():
    models = {
        "said": RunModel(id="said", provider="fake", family="Acme"),
        "blank": RunModel(id="blank", provider="fake", family=""),
        "imported": RunModel(id="imported", provider="import"),
    }
    manifest = Manifest(
        run="r-1",
        task="closed",
        plan=RunPlan(seed=1, n_resamples=100, rank_rule="simultaneous", separation="both"),
        banks=[],
        domains={},
        models=models,
        template="none",
        methodology="x",
    )
    names = ("said", "blank", "imported", "absent")
    assert [manifest.family_of(name) for name in names] == ["acme", "", "unknown", "unknown"]
    assert [manifest.provider_of(name) for name in names] == ["fake", "fake", "import", ""]


def test_each_part_of_the_statistics_becomes_a_record_once():
    """Every page of a board asks for the rows of all models."""
    row = {**ROW, "scale": [0, 1], "n": 10, "coverage": 1.0}
    relations = {"n_items": 10, "n_common": 10, "pairs": []}
    document = {
        "metric": "accuracy",
        "scale": {"lo": 0, "hi": 1},
        "domains": {"overall": [row, {**row, "mode": "tools"}]},
        "fields": {"solo": {"overall": relations}},
        "by_kind": {"public": {}, "synthetic": {}, "gap": [], "tools_minus_solo": []},
    }
    statistics = Statistics(document)
    assert statistics.rows("overall", "tools")[0] is statistics.rows("overall")[1]
    assert statistics.relations("overall", "solo") is statistics.relations("overall", "solo")
    assert statistics.by_provenance is statistics.by_provenance
    statistics.rows("overall").clear()  # a list of the caller's own
    assert len(statistics.rows("overall")) == 2
