import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medassay.errors import InputError, ScaleError
from medassay.exchange.healthbench import read_healthbench
from medassay.score import rubric_points

points = st.integers(-10, 10).filter(bool)


def test_reproduces_every_stored_score(data):
    path = data / "healthbench_sample" / "judge_responses.jsonl"
    stored = [json.loads(line) for line in path.read_text().splitlines()]
    found = list(read_healthbench(path))
    assert len(found) == 100
    for ours, theirs in zip(found, stored, strict=True):
        assert ours.id == theirs["prompt_id"]
        assert ours.score == pytest.approx(theirs["score"], abs=1e-9)
    overall = json.loads((path.parent / "final_metrics.json").read_text())["overall_score"]
    assert sum(f.score for f in found) / 100 == pytest.approx(overall, abs=1e-9)
    assert min(f.score for f in found) < 0  # only the mean is clipped


@given(st.lists(st.tuples(points, st.booleans()), min_size=1, max_size=9))
def test_a_score_is_at_most_1_and_rises_with_every_wanted_criterion(rows):
    criteria, met = [{"points": p} for p, _ in rows], [yes for _, yes in rows]
    if not any(p > 0 for p, _ in rows):
        with pytest.raises(ScaleError):
            rubric_points(criteria, met)
        return
    score = rubric_points(criteria, met)
    assert score <= 1
    assert rubric_points(criteria, [p > 0 for p, _ in rows]) == 1
    for at, (p, yes) in enumerate(rows):
        if not yes:
            more = rubric_points(criteria, [*met[:at], True, *met[at + 1 :]])
            assert (more > score) == (p > 0)


def test_a_row_of_another_form_is_named(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"prompt_id": "a", "example_tags": [], "responses": [{"points": 1}]}\n')
    with pytest.raises(InputError, match=r"r\.jsonl row 1: expected"):
        list(read_healthbench(path))
    with pytest.raises(ScaleError, match="2 criteria, 1 verdicts"):
        rubric_points([{"points": 1}, {"points": 2}], [True])
