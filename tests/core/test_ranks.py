"""Every sentence that pages and terminal print about ranks is true of the relation that it comes
from.
"""

import re

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import makers

from medassay.core.ranks import (
    overlap_sentence,
    range_title,
    ranking_sentence,
)
from medassay.core.records.estimate import Estimate
from medassay.core.records.plan import plan_from_dict
from medassay.core.records.relations import RowPair
from medassay.core.records.statistics import Statistics
from medassay.core.scale import Scale
from medassay.errors import InputError
from medassay.kinds.catalog import find_task
from medassay.statistic.ranking.field import field_of
from medassay.statistic.ranking.pool import Options, Stratum
from medassay.statistic.ranking.shared import separated, shared_ranks
from medassay.statistic.test.planner import items_to_show
from medassay.summary.pairs import relations_of

NAMES = "ABCDEFGHIJ"


@st.composite
def boards(draw):
    """Draw the field of some models over one domain or two, ranked by ranges."""
    n = draw(st.integers(1, 8))
    sizes = draw(st.lists(st.integers(10, 60), min_size=1, max_size=2))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    levels = random.uniform(0.2, 0.95, n)
    graded = draw(st.booleans())
    strata, start = [], 0
    for number, size in enumerate(sizes):
        hard = random.normal(0, 0.2, size)
        chance = np.clip(levels[:, None] + hard, 0, 1)
        scores = chance if graded else (random.random((n, size)) < chance).astype(float)
        clusters = np.arange(start, start + size)
        start += size
        strata.append(Stratum(name=f"d{number}", scores=scores, clusters=clusters, seed=number))
    rows = [(name, "zero_shot") for name in NAMES[:n]]
    options = Options(pool_seed=1, scale=Scale(), rule="simultaneous", n_resamples=200)
    return field_of(rows, strata, options)


def facts(field):
    """Return names in the order of score, and who is shown to be better than whom, from the pairs
    alone.
    """
    value = {s.row[0]: s.estimate.value for s in field.standings}
    better = set()
    for pair in field.pairs:
        one, other = pair.first[0], pair.second[0]
        if pair.better:
            better.add((one, other) if pair.better == "first" else (other, one))
    return sorted(value, key=lambda name: (-value[name], name)), better


def test_two_close_models_over_domains_of_unequal_size_have_a_sentence():
    """They differ in 3 of 60 items of one domain: no share of 72 items is behind that
    difference.
    """
    scores = [np.ones((2, 60)), np.ones((2, 12))]
    scores[0][1, :3] = 0
    scores[0][:, 10:30] = 0
    strata = [
        Stratum(name=f"d{n}", scores=part, clusters=np.arange(part.shape[1]) + 100 * n, seed=n)
        for n, part in enumerate(scores)
    ]
    options = Options(pool_seed=1, scale=Scale(), rule="simultaneous", n_resamples=200)
    field = field_of([("A", "zero_shot"), ("B", "zero_shot")], strata, options)
    task = find_task("closed")
    said = relations_of(field, {s.row: 0.0 for s in field.standings}, task)["sentence"]
    # d = 0.025, sd = sqrt(72 SE² - d²) with SE² = 3 / 120²: graded items as the specification of
    # ranks has it.
    deviation = (72 * 3 / 120**2 - 0.025**2) ** 0.5
    wanted = items_to_show(0.025, deviation=deviation, c=field.relation.c)
    assert f"About {wanted} items would be needed" in said


@given(boards())
@settings(max_examples=150, deadline=None)
def test_every_sentence_is_true_of_its_board(field):
    order, better = facts(field)
    n = len(order)
    relations = relations_of(field, {s.row: 0.0 for s in field.standings}, find_task("closed"))
    said = relations["sentence"]
    unbeaten = [x for x in order if not any((y, x) in better for y in order)]
    if found := re.fullmatch(r"(\w) is shown to be better than each of the (\d+) others .*", said):
        assert all((found[1], other) in better for other in order if other != found[1])
        assert int(found[2]) == n - 1
    elif found := re.fullmatch(r"(\w) is shown to be better than (\w) \(same.*", said):
        assert better == {(found[1], found[2])}
    elif found := re.fullmatch(
        r"No model is shown to be better than (.+): with (?:about )?95 % .*", said
    ):
        assert re.findall(r"\b[A-J]\b", found[1]) == unbeaten
        assert f"best of the {n} is among them" in said
    elif found := re.match(
        r"With (?:about )?95 % confidence the best of the (\d+) is among (\d+)", said
    ):
        assert (int(found[1]), int(found[2])) == (n, len(unbeaten))
    elif said.startswith("No difference between"):
        assert not better
    else:
        assert said == f"{order[0]} is the only model that is ranked."
    if "no difference is shown" in said:
        assert not {(a, b) for a, b in better if a in unbeaten and b in unbeaten}
    for standing in field.standings:
        name, rank = standing.row[0], standing.rank
        above = sum((other, name) in better for other in order)
        below = sum((name, other) in better for other in order)
        assert (rank.lo, rank.hi) == (1 + above, n - below)
        title = range_title(rank.lo, rank.hi, n)
        told = re.search(r": (no|\d+) models? (?:is|are) shown to be better, (none|\d+)", title)
        assert [
            {"no": 0, "none": 0}.get(t) if t in ("no", "none") else int(t) for t in told.groups()
        ] == [above, below]
    for document, pair in zip(relations["pairs"], field.pairs, strict=True):
        names = pair.first[0], pair.second[0]
        text = msgspec.convert(document, RowPair).reading_text(names)
        winner = next((a for a, b in better if {a, b} == {*names}), None)
        assert text == (f"{winner} better" if winner else "no difference shown")
        # The interval beside it never says otherwise.
        assert (document["lo"] > 1e-12) == (winner == names[0])
        assert (document["hi"] < -1e-12) == (winner == names[1])


def test_no_sentence_uses_a_word_that_promises_too_much():
    for text in (
        ranking_sentence(["A", "B"], []),
        ranking_sentence(["A", "B"], ["C"]),
        overlap_sentence(["A", "B"], [("A", "B")], rule="rule leader"),
    ):
        for never in ("tell them apart", "equally well", "separable", "different", "equal "):
            assert never not in text


def test_the_published_rule_has_its_sentence(golden):
    for case in golden("ranks")["published"]:
        bands = case["inputs"]
        names = [row[0] for row in bands]
        estimates = [Estimate(value=v, lo=lo, hi=hi, n=99, n_clusters=99) for _, v, lo, hi in bands]
        above = separated(estimates, percentile_only=True, touching=True)
        ranks = shared_ranks(names, [r[1] for r in bands], above, rule="closure", better="high")
        assert [r.rank for r in ranks] == case["rank"], case["name"]
    assert (
        _sentence_of_source(ordered=True)
        == "3 models share rank 1: their 95 % intervals overlap (the rule of the source). Overlap"
        " is no test: the paired test shows o3-mini to be better than o1-mini."
    )
    assert (
        _sentence_of_source(ordered=False)
        == "3 models share rank 1: their 95 % intervals overlap (the rule of the source)."
    )


def _sentence_of_source(*, ordered):
    """Return the sentence of three rows on rank 1, two of them ordered by the paired test."""
    row = {
        "setting": "s",
        "mode": "solo",
        "metric": "accuracy",
        "scale": [0, 1],
        "n": 99,
        "coverage": 1.0,
        "rank": 1,
    }
    rows = [
        {**row, "model": name, "score": score}
        for name, score in (("o3-mini", 0.9), ("o1-mini", 0.88), ("gpt-4o", 0.87))
    ]
    pair = {"first": ["o1-mini", "s"], "second": ["o3-mini", "s"], "difference": -0.02}
    pair |= {"lo": -0.05, "hi": 0.01, "n": 99, "p": 0.01, "ordered": ordered}
    relations = {"n_items": 99, "n_common": 99, "pairs": [pair]}
    document = {
        "metric": "accuracy",
        "rank_rule": "closure",
        "separation": "overlap",
        "scale": {"lo": 0, "hi": 1, "better": "high"},
        "domains": {"overall": rows},
        "fields": {"solo": {"overall": relations}},
    }
    return Statistics(document).sentence("overall", "solo")


def test_a_preset_stands_for_its_rule_and_contradicts_nothing(tmp_path):
    wanted = {"banks": ["b"], "models": ["m"], "preset": "published"}
    plan = plan_from_dict(wanted, "plan")
    assert (plan.rank_rule, plan.separation, plan.n_resamples) == (
        "closure",
        "overlap",
        1000,
    )
    spelled = {**wanted, "preset": "", "rank_rule": "closure", "separation": "overlap"}
    assert plan_from_dict(spelled, "plan").hash == plan.hash
    with pytest.raises(InputError, match="'preset' is \"published\" and 'rank_rule' is 'leader'"):
        plan_from_dict({**wanted, "rank_rule": "leader"}, "plan")
    assert makers.write_plan(tmp_path, **wanted).exists()
