import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.core.records.diagnosis import RELATIONS, SEVERITY_MAPS
from medassay.kinds.diagnoses.scorer import score_case
from medassay.statistic import rescale

NEAR = 1e-9


def near(x):
    return x if x is None else pytest.approx(x, abs=NEAR)


def test_golden_cases(golden):
    for case in golden("ddx")["cases"]:
        found = score_case(case["rel"], case["sev"], case["golden"])
        assert (found.n, found.n_considered) == (case["n"], case["n_considered"]), case["id"]
        assert found.semantic == near(case["semantic_score"]), case["id"]
        assert found.severity == near(case["severity_score"]), case["id"]
        assert float(rescale(found.semantic)) == near(case["semantic_rescaled"])
        for k in (1, 3, 5):
            assert (found.hit is not None and found.hit <= k) == case[f"top{k}_hit"], case["id"]
        for published in (k for k in ("doc_sem", "doc_sev") if k in case):
            score = found.semantic if published == "doc_sem" else found.severity
            assert score == pytest.approx(case[published], abs=0.005)


relations = st.sampled_from([*RELATIONS, None])
severities = st.sampled_from([*SEVERITY_MAPS["published"].levels, None])
lists = st.lists(st.tuples(relations, severities), max_size=9)


@given(lists, severities)
def test_scores_lie_on_their_scale_and_better_labels_never_cost(pairs, golden_severity):
    rel, sev = [r for r, _ in pairs], [s for _, s in pairs]
    found = score_case(rel, sev, golden_severity)
    assert 0 <= found.semantic <= 16
    assert found.severity is None if golden_severity is None else 0 <= found.severity <= 16
    better = score_case(["Exact Synonym", *rel[1:]] if rel else [], sev, golden_severity)
    assert better.semantic >= found.semantic - NEAR


@given(st.lists(st.integers(1, 12), unique=True, max_size=6), st.randoms())
def test_order_of_rows_does_not_matter_ranks_do(ranks, random):
    rows = [(rank, list(RELATIONS)[rank % 5], "rare") for rank in ranks]
    found = []
    for _ in range(2):
        random.shuffle(rows)
        rel, sev = [r for _, r, _ in rows], [s for *_, s in rows]
        found.append(score_case(rel, sev, "severe", ranks=[rank for rank, *_ in rows]))
    assert found[0] == found[1]


def test_gaps_keep_the_weights_of_their_ranks():
    found = score_case(["Exact Synonym", "Not Related"], ["rare"] * 2, "rare", ranks=[2, 5])
    assert found.semantic == near(16 * 0.8 / (0.8 + 0.2))
    assert found.hit == 2


def test_an_unjudged_rank_may_be_left_out():
    names = ["Exact Synonym", None, "Exact Disease Group"]
    found = score_case(names, ["rare", None, None], "rare", unjudged="exclude_rank")
    assert found.semantic == near((16 + 0.6 * 4) / 1.6)
    assert found.severity == 16.0
    assert found.unjudged == 3
    nothing = score_case([None], [None], "rare", unjudged="exclude_rank")
    assert (nothing.semantic, nothing.severity) == (None, None)
    assert score_case([], [], "rare", unjudged="exclude_rank").semantic == 0.0


def test_signed_severity_is_predicted_minus_golden_weighted_by_rank():
    found = score_case(["Not Related"] * 2, ["mild", "severe"], "severe")
    assert found.severity_shift == near((1.0 * -2 + 0.8 * 0) / 1.8)
    assert score_case(["Not Related"], [None], "severe").severity_shift is None


def test_rarity_apart_from_severity():
    assert SEVERITY_MAPS["separate"].distance("rare mild", "mild") == 2
    assert SEVERITY_MAPS["separate"].distance("rare mild", "critical") == 5
    found = score_case(["Not Related"], ["rare severe"], "severe", severity_map="separate")
    assert found.severity == near(9.0)
    with pytest.raises(ValueError, match="severity 'rare'"):
        score_case(["Not Related"], ["rare"], "severe", severity_map="separate")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"relations": ["Cousin"]}, "relation 'Cousin'"),
        ({"severities": ["high"]}, "severity 'high'"),
        ({"golden_severity": "none"}, "severity 'none'"),
        ({"ranks": [0]}, "rank 0"),
        ({"ranks": [True]}, "rank True"),
        ({"ranks": [1, 2]}, "2 ranks"),
        (
            {"relations": ["Not Related"] * 2, "severities": ["rare"] * 2, "ranks": [1, 1]},
            "twice",
        ),
        ({"severities": []}, "0 severities"),
        ({"unjudged": "guess"}, "unjudged 'guess'"),
        ({"rank_limit": 0}, "rank_limit 0"),
        ({"severity_map": "none"}, "severity_map 'none'"),
    ],
)
def test_what_is_wrong_is_a_value_error(change, says):
    given = {"relations": ["Not Related"], "severities": ["rare"], "golden_severity": "rare"}
    with pytest.raises(ValueError, match=says):
        score_case(**(given | change))
