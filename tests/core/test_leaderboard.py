"""Rows of rankings and manifests as records: they say what the documents say."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.core.records.estimate import Estimate, Second
from medassay.core.records.leaderboard import Interval, LeaderboardRow, honest_ends, rank_text
from medassay.core.records.manifest import Manifest, RunModel, RunPlan

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
    document = estimate.to_dict()
    ends = honest_ends(document)
    assert msgspec.convert(document, Interval).ends == (ends["lo"], ends["hi"])


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("rule", [{}, {"interval": "wilson"}, {"interval": None}])
@pytest.mark.parametrize("rank", [(None, None, None), (2, 2, 2), (3, 2, 4)])
def test_a_rank_reads_as_on_the_pages(rank, rule, tied):
    ranks = dict(zip(("rank", "rank_lo", "rank_hi"), rank, strict=True))
    document = {**ROW, "scale": [0, 1], "n": 10, "coverage": 1.0, **ranks, **rule}
    row = msgspec.convert(document, LeaderboardRow)
    assert row.rank_text(tied=tied) == rank_text(document, tied)


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
