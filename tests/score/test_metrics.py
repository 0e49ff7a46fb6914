"""Metrics that need a model: what every entry of TEXT_MEASURES owes, and values worked out another way on
tiny random models.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medassay.errors import UnavailableError
from medassay.score.bge import combined, sparse_likeness
from medassay.score.catalog import TEXT_MEASURES
from medassay.score.contextual import Encoder
from medassay.score.measure import EMBEDDED
from medassay.score.moverscore import Rarity, mover_score

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/text_metrics.json").read_text())
OURS = ("bertscore", "bge_m3", "moverscore")
PAIRS = [
    ("the patient has chest pain", "no acute finding, lungs are clear"),
    ("lungs are clear", "the lungs are clear . no acute finding"),
    ("stop aspirin 5 mg", "start aspirin 5 mg"),
    ("pains", "the patient has pain in the chest"),
]
pytestmark = pytest.mark.local_model


@pytest.fixture
def made(encoder, bge):
    def make(name):
        metric = TEXT_MEASURES[name](bge if name == "bge_m3" else encoder)
        metric.prepare([reference for _, reference in PAIRS])
        return metric

    return make


@pytest.mark.parametrize("name", OURS)
def test_the_same_text_is_the_likest_and_the_order_is_kept(made, name):
    metric = made(name)
    text = PAIRS[1][1]
    several = [(said, text) for said, _ in PAIRS]
    *others, same = metric.score([*several, (text, text)])
    assert len(others) == len(several)
    assert all(value[0] <= same[0] + 1e-6 for value in others)
    assert others == [metric.score([pair])[0] for pair in several] or np.allclose(
        others, [metric.score([pair])[0] for pair in several], atol=1e-5
    )


@pytest.mark.parametrize("name", OURS)
def test_every_value_has_a_column_and_lies_on_its_scale(made, name):
    metric = made(name)
    for values in metric.score(PAIRS):
        assert len(values) == len(metric.columns)
        for value, scale in zip(values, metric.columns.values(), strict=True):
            assert scale.lo <= value <= scale.hi
    assert "@" in metric.id


@pytest.mark.parametrize("name", OURS)
def test_a_text_without_words_has_no_value_and_breaks_nothing(made, name):
    [values] = made(name).score([("", "the patient has pain")])
    assert values[0] is None or math.isfinite(values[0])


@pytest.mark.parametrize("name", OURS)
def test_texts_longer_than_the_model_are_cut(made, name):
    long = "the patient has pain " * 60
    [values] = made(name).score([(long, long)])
    assert math.isfinite(values[0])


@pytest.mark.parametrize("name", TEXT_MEASURES)
def test_a_metric_without_its_model_is_unavailable_and_says_what_to_do(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with pytest.raises(UnavailableError, match=name):
        TEXT_MEASURES[name](str(tmp_path / "nowhere"))


def test_bertscore_is_the_mean_of_the_nearest_tokens(encoder):
    """Worked out token by token: special tokens may be nearest, but do not count."""
    said, wanted = PAIRS[1]
    found = Encoder(Path(encoder)).encode([said, wanted])

    def unit(text):
        states = found[text].states.double().numpy()
        return states / np.linalg.norm(states, axis=1, keepdims=True)

    near = unit(said) @ unit(wanted).T
    precision = np.mean([max(row) for row in near[1:-1]])
    recall = np.mean([max(column) for column in near.T[1:-1]])
    [(value,)] = TEXT_MEASURES["bertscore"](encoder).score([(said, wanted)])
    assert value == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-6)


def test_moverscore_is_the_least_cost_by_linear_programming(encoder):
    from scipy.optimize import linprog

    said, wanted = PAIRS[2]
    reader = Encoder(Path(encoder))
    rarity = Rarity(reader.ids(reference) for _, reference in PAIRS)
    found = reader.encode([said, wanted])
    weights, points = [], []
    for text in (wanted, said):
        one = found[text]
        given = np.array(
            [
                0.0 if "##" in t or t in ",." else rarity.weight(i)
                for t, i in zip(one.tokens, one.ids, strict=True)
            ]
        )
        weights.append(given / given.sum())
        states = one.states.double().numpy()
        points.append(states / np.linalg.norm(states, axis=1, keepdims=True))
    cost = np.linalg.norm(points[0][:, None] - points[1][None], axis=2)
    n, m = cost.shape
    rows = [np.kron(np.eye(n)[i], np.ones(m)) for i in range(n)]
    columns = [np.kron(np.ones(n), np.eye(m)[j]) for j in range(m)]
    best = linprog(cost.ravel(), A_eq=np.array(rows + columns), b_eq=np.concatenate(weights))
    value = mover_score(found[said], found[wanted], rarity, rarity)
    assert value == pytest.approx(1 / (1 + best.fun), abs=1e-9)


def test_moverscore_depends_on_the_references_and_says_so(encoder):
    first, second = (TEXT_MEASURES["moverscore"](encoder) for _ in range(2))
    first.prepare(["the patient has pain"])
    second.prepare(["stop aspirin", "start aspirin"])
    assert first.context != second.context
    assert first.score(PAIRS[2:3]) != second.score(PAIRS[2:3])


@pytest.mark.parametrize("case", GOLDEN["bge_m3"])
def test_the_golden_means_of_bge(case):
    both, everything = combined(case["dense"], case["sparse"], case["colbert"], tuple(case["w"]))
    assert (both, everything) == pytest.approx(
        (case["sparse_plus_dense"], case["all_three"]), abs=1e-9
    )


def test_the_golden_sparse_likeness():
    case = GOLDEN["sparse"]
    found = sparse_likeness(case["query"], case["passage"])
    assert found == pytest.approx(case["sparse_score"], abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_bge_is_symmetric_but_for_colbert(bge, data):
    words = st.lists(
        st.sampled_from(["the", "patient", "has", "pain", "lungs", "clear", "aspirin"]),
        min_size=1,
    )
    said, wanted = (" ".join(data.draw(words)) for _ in range(2))
    metric = TEXT_MEASURES["bge_m3"](bge)
    one, other = metric.score([(said, wanted), (wanted, said)])
    assert one[:3] == pytest.approx(other[:3], abs=1e-5)


@pytest.mark.parametrize("name", ["bertscore", "moverscore"])
def test_with_a_real_model_the_right_summary_is_likest(name):
    """Sanity with all-MiniLM-L6-v2: the same in other words before something else."""
    metric = TEXT_MEASURES[name](EMBEDDED)
    reference = "The patient has no pneumonia and the heart is of normal size."
    same, other = "Normal heart size, no pneumonia.", "He likes to play football on Sundays."
    metric.prepare([reference, "Fracture of the left wrist.", "The liver is enlarged."])
    [near], [far] = metric.score([(same, reference), (other, reference)])
    assert near > far
