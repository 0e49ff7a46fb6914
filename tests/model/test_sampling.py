"""Completions drawn by the model's own probabilities, each by itself; beams against enumeration.

Memory that ends.
"""

import math
from collections import Counter

import pytest
from tests.model.relaxed_setting import CONTEXT, SETTING, TARGETS, ready
from tests.model.tiny_models import SMALL, engine, model
from tests.optional import torch

from medassay.core.records.relaxed import RelaxedSetting
from medassay.model import relaxed, sampling
from medassay.model.relaxed import relaxed_tables

pytestmark = pytest.mark.local_model


def drawn(of, setting, seed=1, *, cached=True):
    made = ready(of)
    asked = made.begun(made.ids(CONTEXT))
    found, kept, _ = sampling.draw(made, asked, setting, seed=seed, cached=cached)
    return found, kept


def chances(of, temperature=1.0):
    """Return the model's probabilities after the context."""
    made = engine(of)
    ids = torch.tensor([made.begun(made.ids(CONTEXT))])
    with torch.inference_mode():
        return (of(input_ids=ids).logits[0, -1].double() / temperature).softmax(-1)


def sharp():
    """Return a model that finds some tokens much likelier than others."""
    of = model("llama")
    with torch.no_grad():
        of.lm_head.weight.mul_(40)
    return of


def test_the_others_of_a_batch_change_no_completion():
    of = sharp()
    few, many = (
        drawn(of, RelaxedSetting(samples=n, keep=n, max_tokens=20), seed=9)[0] for n in (3, 9)
    )
    assert [one.tokens for one in few] == [one.tokens for one in many[:3]]
    for one, other in zip(few, many, strict=False):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def test_completions_that_end_leave_the_batch_and_keep_their_states(monkeypatch):
    of = model("llama")
    with torch.no_grad():
        of.lm_head.weight.zero_()
        of.lm_head.bias = torch.nn.Parameter(torch.zeros(SMALL["vocab_size"]))
        of.lm_head.bias[2] = math.log(20)
    sizes = []
    forward = of.forward

    def watched(*args, **more):
        sizes.append(more["input_ids"].shape[0])
        return forward(*args, **more)

    monkeypatch.setattr(of, "forward", watched)
    made = ready(of)
    asked = made.begun(made.ids(CONTEXT))
    setting = RelaxedSetting(samples=12, keep=12, max_tokens=40)
    found, kept, states = sampling.draw(made, asked, setting, seed=3, cached=True)
    steps = sizes[1:]
    assert steps == sorted(steps, reverse=True)
    assert steps[-1] < 12
    assert sum(steps) == sum(min(len(c.tokens), 39) for c in found)
    for number, one in enumerate(kept):
        assert states.length(number) in (
            len(asked) + len(one.tokens),
            len(asked) + len(one.tokens) - 1,
        )


@pytest.mark.parametrize(("top_p", "temperature"), [(1.0, 1.0), (0.7, 1.0), (1.0, 2.0)])
def test_tokens_are_drawn_as_often_as_they_are_likely(top_p, temperature):
    of, n = sharp(), 4000
    setting = RelaxedSetting(samples=n, keep=1, max_tokens=1, top_p=top_p, temperature=temperature)
    found, _ = drawn(of, setting, seed=5)
    counted = Counter(one.tokens[0] if one.tokens else 2 for one in found)
    expected = chances(of, temperature)
    order = expected.argsort(descending=True)
    before = expected[order].cumsum(0) - expected[order]
    allowed = {int(t) for t, b in zip(order, before, strict=True) if b < top_p}
    whole = sum(float(expected[t]) for t in allowed)
    assert counted.keys() <= allowed
    for token in allowed:
        p = float(expected[token]) / whole
        assert abs(counted[token] - n * p) <= 5 * math.sqrt(n * p * (1 - p)) + 1


def test_how_many_tokens_are_looked_at_first_changes_nothing(monkeypatch):
    of = sharp()
    setting = RelaxedSetting(samples=8, keep=8, max_tokens=12, top_p=0.95)
    whole, _ = drawn(of, setting)
    monkeypatch.setattr(sampling, "_NUCLEUS", 2)
    few, _ = drawn(of, setting)
    assert [one.tokens for one in few] == [one.tokens for one in whole]


@pytest.mark.parametrize("cached", [True, False])
def test_a_wide_beam_search_finds_the_likeliest_completions_there_are(cached):
    of, size = sharp(), SMALL["vocab_size"]
    made = ready(of)
    asked = made.begun(made.ids(CONTEXT))
    first = chances(of).log()
    with torch.inference_mode():
        rows = torch.tensor([[*asked, token] for token in range(size)])
        second = of(input_ids=rows).logits[:, -1].double().log_softmax(-1)
    # A completion that ended with the stop token (2) competes with its end, and loses it.
    every = {(): float(first[2])}
    for one in range(size):
        if one == 2:
            continue
        every[one,] = float(first[one] + second[one, 2])
        for two in range(size):
            if two != 2:
                every[one, two] = float(first[one] + second[one, two])
    best = sorted(every, key=every.get, reverse=True)[:30]
    setting = RelaxedSetting(samples=size, keep=30, max_tokens=2, sampler="beam")
    found, _ = drawn(of, setting, cached=cached)
    assert [one.tokens for one in found[:30]] == best


def test_beams_are_scored_on_their_states_as_whole_sequences_are():
    setting = RelaxedSetting(samples=4, keep=3, stride=3, max_tokens=9, sampler="beam")
    of = sharp()
    cached = relaxed_tables(ready(of), CONTEXT, TARGETS, setting, seed=1)
    plain = relaxed_tables(ready(of, packed=False), CONTEXT, TARGETS, setting, seed=2)
    assert [c.tokens for c in cached.completions] == [c.tokens for c in plain.completions]
    for one, other in zip(cached.tables, plain.tables, strict=True):
        for p, q in zip(one.positions, other.positions, strict=True):
            assert [x.target for x in p.prefixes] == pytest.approx(
                [x.target for x in q.prefixes], abs=1e-3
            )


def test_memory_that_ends_narrows_the_passes_and_changes_nothing(monkeypatch):
    of = model("llama")
    whole = relaxed_tables(ready(of), CONTEXT, TARGETS, SETTING, seed=3)
    read, sizes = relaxed._read, []

    def small(engine_, row, past):
        sizes.append(len(row.ids))
        if len(row.ids) > 40:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return read(engine_, row, past)

    monkeypatch.setattr(relaxed, "_read", small)
    narrow = relaxed_tables(ready(of), CONTEXT, TARGETS, SETTING, seed=3)
    assert max(sizes) > 40
    assert narrow.completions == whole.completions
    for one, other in zip(narrow.tables, whole.tables, strict=True):
        for p, q in zip(one.positions, other.positions, strict=True):
            assert [x.target for x in p.prefixes] == pytest.approx(
                [x.target for x in q.prefixes], abs=1e-4
            )


def test_passes_are_no_wider_than_the_budget(monkeypatch):
    read, sizes = relaxed._read, []

    def watched(engine_, row, past):
        sizes.append(len(row.ids))
        return read(engine_, row, past)

    monkeypatch.setattr(relaxed, "_read", watched)
    relaxed_tables(ready(model("llama"), budget=30), CONTEXT, TARGETS, SETTING, seed=3)
    assert max(sizes) <= 30


def test_memory_that_is_too_small_for_one_statement_is_told(monkeypatch):
    def never(*args):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(relaxed, "_read", never)
    with pytest.raises(RuntimeError, match="out of memory"):
        relaxed_tables(ready(model("llama")), CONTEXT, TARGETS, SETTING, seed=3)


def test_a_bos_that_is_scored_is_one_token_more():
    of = model("llama")
    usual, doubled = engine(of), engine(of, scores_bos=True)
    [one], [two] = usual.rolling(["rest"]), doubled.rolling(["rest"])
    assert two.n_tokens == one.n_tokens + 1
    [whole] = usual.score_tokens([((1,), (1, *usual.ids("rest")))])
    assert two.total == pytest.approx(whole.total, abs=1e-5)
