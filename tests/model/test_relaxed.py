"""Relaxed Perplexity's samples and tables: the cache gives what whole sequences give."""

import math
import warnings

import pytest
from tests.model.relaxed_setting import CONTEXT, SETTING, TARGETS, ready
from tests.model.tiny_models import ARCHITECTURES, HEADS, V, model
from tests.optional import torch, transformers

from medassay.core.records.relaxed import MODES, RelaxedSetting
from medassay.kinds.likelihood.relaxed_perplexity import combine
from medassay.model.relaxed import relaxed_tables

pytestmark = pytest.mark.local_model


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_tables_are_those_of_whole_sequences(name):
    """The oracle: each beginning with the target behind it, one forward pass for each."""
    of = model(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = relaxed_tables(ready(of), CONTEXT, TARGETS, SETTING, seed=3)
    plain = ready(of, packed=False)
    asked = plain.bos + plain.ids(CONTEXT)
    assert drawn.completions
    for target, table in zip(TARGETS, drawn.tables, strict=True):
        tokens = plain.ids(f" {target}")
        assert table.target_tokens == len(tokens)
        for position in table.positions:
            beginnings = list(
                dict.fromkeys(
                    c.tokens[: position.at]
                    for c in drawn.completions
                    if len(c.tokens) >= position.at
                )
            )
            if position.at == 0:
                beginnings = [()]
            assert len(position.prefixes) == len(beginnings)
            requests = [((*asked, *beginning), tokens) for beginning in beginnings]
            found = [one.total for one in plain.score_tokens(requests)]
            assert [p.target for p in position.prefixes] == pytest.approx(found, abs=5e-5)
            if position.at:
                [own] = plain.score_tokens([(asked, beginnings[0])])
                assert position.prefixes[0].prefix == pytest.approx(own.total, abs=5e-5)


@pytest.mark.parametrize("name", ["mistral", "gemma2"])
def test_beyond_a_sliding_window_whole_sequences_are_scored(name):
    """A mask of ours would show a layer what its window hides."""
    of = model(name)
    long = "Which of these drugs helps against a cough at night?"  # more than the window of 48
    cached = relaxed_tables(ready(of), long, TARGETS, SETTING, seed=4)
    plain = relaxed_tables(ready(of, packed=False), long, TARGETS, SETTING, seed=4)
    assert [c.tokens for c in cached.completions] == [c.tokens for c in plain.completions]
    for one, other in zip(cached.tables, plain.tables, strict=True):
        assert combine(one, "sum").value == pytest.approx(combine(other, "sum").value, rel=1e-5)


def test_the_log_probabilities_of_completions_are_the_models_own_without_top_p():
    of = model("llama")
    drawn = relaxed_tables(ready(of), CONTEXT, TARGETS, SETTING, seed=5)
    plain = ready(of, packed=False)
    for completion in drawn.completions:
        [found] = plain.score_tokens([(plain.bos + plain.ids(CONTEXT), completion.tokens)])
        assert completion.logprobs == pytest.approx(found.tokens, abs=5e-5)


def test_the_seed_decides_and_nothing_else():
    of = model("llama")
    first, again, other = (
        relaxed_tables(ready(of), CONTEXT, TARGETS, SETTING, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again
    assert first.completions != other.completions


def test_with_and_without_the_cache_the_same_completions_are_drawn():
    of = model("qwen2")
    cached = relaxed_tables(ready(of), CONTEXT, TARGETS, SETTING, seed=4)
    plain = relaxed_tables(ready(of, packed=False), CONTEXT, TARGETS, SETTING, seed=4)
    assert [c.tokens for c in cached.completions] == [c.tokens for c in plain.completions]
    for mode in MODES:
        for one, other in zip(cached.tables, plain.tables, strict=True):
            assert combine(one, mode).value == pytest.approx(combine(other, mode).value, rel=1e-5)


def test_an_architecture_without_such_a_cache_is_sampled_and_scored_plainly():
    torch.manual_seed(7)
    config = transformers.BloomConfig(hidden_size=32, **HEADS)
    of = transformers.AutoModelForCausalLM.from_config(config).eval()
    with pytest.warns(UserWarning, match="scored sequence by sequence"):
        drawn = relaxed_tables(ready(of), CONTEXT, TARGETS, SETTING, seed=3)
    assert drawn.completions
    assert all(p.target < 0 for t in drawn.tables for x in t.positions for p in x.prefixes)


def test_a_stop_ends_a_completion_and_is_no_part_of_it():
    of = model("llama")
    with torch.no_grad():  # the stop token has a chance of about a third everywhere
        of.lm_head.weight.zero_()
        of.lm_head.bias = torch.nn.Parameter(torch.zeros(V))
        of.lm_head.bias[2] = math.log((V - 1) / 2)
    drawn = relaxed_tables(ready(of), CONTEXT, TARGETS, RelaxedSetting(samples=20, keep=20), seed=1)
    lengths = {len(c.tokens) for c in drawn.completions}
    assert min(lengths) < 3
    assert max(lengths) < 128
    assert all(2 not in c.tokens for c in drawn.completions)
    assert drawn.distinct <= drawn.samples == 20


def test_top_p_keeps_the_likeliest_and_nothing_beyond():
    of = model("llama")
    narrow = RelaxedSetting(samples=8, keep=8, stride=4, max_tokens=6, top_p=1e-6)
    drawn = relaxed_tables(ready(of), CONTEXT, TARGETS, narrow, seed=1)
    assert drawn.distinct == 1  # greedy: one completion, drawn eight times
    ids = torch.tensor([ready(of).bos + ready(of).ids(CONTEXT)])
    said = of.generate(ids, max_new_tokens=6, do_sample=False, pad_token_id=0)[0, ids.shape[1] :]
    assert drawn.completions[0].tokens == tuple(said.tolist())


@pytest.mark.parametrize(
    ("targets", "setting", "says"),
    [
        ([" "], SETTING, "empty target"),
        (["x"], RelaxedSetting(max_tokens=250), "the model reads 256"),
    ],
)
def test_what_cannot_be_scored_is_refused(targets, setting, says):
    with pytest.raises(ValueError, match=says):
        relaxed_tables(ready(model("llama")), CONTEXT, targets, setting, seed=1)


def test_more_positions_than_completions_reach_are_not_made_up():
    drawn = relaxed_tables(ready(model("llama")), CONTEXT, TARGETS, SETTING, seed=8)
    longest = max(len(c.tokens) for c in drawn.completions)
    assert [p.at for p in drawn.tables[0].positions] == list(range(0, longest + 1, 3))
    assert len(drawn.texts) == len(drawn.completions)
