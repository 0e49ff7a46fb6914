"""The likelihood engine: packed as plain, whatever the architecture, the batch, or the memory."""

import random
import warnings

import pytest
from tests.model.tiny_models import ARCHITECTURES, HEADS, Tokenizer, V, engine, model
from tests.optional import torch, transformers

from medassay.model.likelihood import LikelihoodEngine
from medassay.model.packing import packed_cost, windows_over

pytestmark = pytest.mark.local_model


@pytest.fixture(scope="module")
def llama():
    return model("llama")


def requests(seed, n=8):
    """Contexts with and without a common beginning.

    Continuations that begin each other, of odd lengths.
    """
    rng = random.Random(seed)

    def ids(k):
        return tuple(rng.randrange(3, V) for _ in range(k))

    shared, made = ids(40), []
    for at in range(n):
        context = (shared if at % 2 else ()) + ids(rng.randrange(1, 60))
        long = ids(7)
        made += [(context, long[:k]) for k in (1, 2, 7)]
        made.append((context, ids(rng.randrange(1, 9))))
    rng.shuffle(made)
    return made


def values(found):
    return [value for one in found for value in one.tokens]


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_packed_is_plain(name, seed):
    of, asked = model(name), requests(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        packed = engine(of).score_tokens(asked)
    plain = engine(of, packed=False).score_tokens(asked)
    assert values(packed) == pytest.approx(values(plain), abs=2e-5)
    assert [p.greedy for p in packed] == [p.greedy for p in plain]
    assert [p.n_tokens for p in packed] == [len(continuation) for _, continuation in asked]


@pytest.mark.parametrize("budget", [1, 17, 64, 5000])
def test_what_goes_into_a_pass_changes_no_value(llama, budget):
    asked = requests(5)
    found = engine(llama, budget=budget).score_tokens(asked)
    assert values(found) == pytest.approx(values(engine(llama).score_tokens(asked)), abs=2e-5)


def test_each_value_is_the_models_own(llama):
    """The oracle: one forward pass of the whole sequence, softmax, the token taken."""
    for context, continuation in requests(9, n=3):
        ids = torch.tensor([[*context, *continuation]])
        with torch.no_grad():
            logp = llama(ids).logits[0].log_softmax(-1)
        wanted = [
            logp[len(context) - 1 + at, token].item() for at, token in enumerate(continuation)
        ]
        [found] = engine(llama).score_tokens([(context, continuation)])
        assert found.tokens == pytest.approx(wanted, abs=2e-5)
        assert found.total == pytest.approx(sum(wanted), abs=1e-4)


def test_an_architecture_without_such_a_cache_is_scored_plainly_and_says_so():
    torch.manual_seed(7)
    config = transformers.BloomConfig(hidden_size=32, **HEADS)
    of = transformers.AutoModelForCausalLM.from_config(config).eval()
    asked = requests(4, n=2)
    with pytest.warns(UserWarning, match="scored sequence by sequence"):
        found = engine(of).score_tokens(asked)
    assert values(found) == values(engine(of, packed=False).score_tokens(asked))


def test_greedy_is_what_the_model_would_have_said(llama):
    prompt = torch.tensor([[5, 6, 7]])
    said = llama.generate(prompt, max_new_tokens=5, do_sample=False, pad_token_id=0)[0, 3:]
    told = tuple(said.tolist())
    other = (*told[:-1], (told[-1] + 1) % V)
    found = engine(llama).score_tokens([((5, 6, 7), told), ((5, 6, 7), other)])
    assert [one.greedy for one in found] == [True, False]


def test_memory_that_ends_halves_the_pass_and_changes_nothing(llama, monkeypatch):
    asked = requests(6)
    wanted = values(engine(llama).score_tokens(asked))
    starved = engine(llama, budget=2048)
    starved.score_tokens(asked[:1])
    pack, sizes = starved._pack, []

    def small(batch, *, shared):
        size = packed_cost(len(shared), batch)
        sizes.append(size)
        if size > 150:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return pack(batch, shared=shared)

    monkeypatch.setattr(starved, "_pack", small)
    assert values(starved.score_tokens(asked)) == pytest.approx(wanted, abs=2e-5)
    assert max(sizes) > 150 >= min(sizes)
    assert starved.budget < 2048


def test_other_errors_are_not_taken_for_memory(llama, monkeypatch):
    broken = engine(llama)
    broken.score_tokens([((5,), (6,))])

    def fail(batch, *, shared):
        raise RuntimeError("device-side assert")

    monkeypatch.setattr(broken, "_pack", fail)
    with pytest.raises(RuntimeError, match="device-side"):
        broken.score_tokens([((5,), (7,))])


@pytest.mark.parametrize(
    ("context", "continuation", "add_bos", "wanted"),
    [
        ("ab", "c", None, ((1, 3 + 97, 3 + 98), (3 + 99,))),
        ("ab", "c", False, ((3 + 97, 3 + 98), (3 + 99,))),
        # Blanks at the end of a context belong to the continuation.
        ("ab ", "c", False, ((3 + 97, 3 + 98), (3 + 32, 3 + 99))),
        # An empty context is the prefix token, and none is put before it.
        ("", "c", None, ((1,), (3 + 99,))),
        ("", "c", False, ((1,), (3 + 99,))),
        (" ", "c", False, ((1,), (3 + 32, 3 + 99))),
    ],
)
def test_pairs_become_tokens_as_the_harness_makes_them(
    llama, context, continuation, add_bos, wanted
):
    assert engine(llama, add_bos=add_bos).encode(context, continuation) == wanted


def test_what_has_no_token_is_refused(llama):
    with pytest.raises(ValueError, match="empty continuation"):
        engine(llama).score([("a", "")])
    with pytest.raises(ValueError, match="without tokens"):
        engine(llama).rolling([""])
    with pytest.raises(ValueError, match="does not fit a context of 256"):
        engine(llama).score([("a", "b" * 300)])


def test_a_long_context_loses_its_beginning(llama):
    [cut] = engine(llama, add_bos=False).score([("x" * 400 + "tail", "end")])
    [same] = engine(llama, add_bos=False).score([(("x" * 400 + "tail")[-254:], "end")])
    assert cut.tokens == pytest.approx(same.tokens, abs=2e-5)


@pytest.mark.parametrize("n", [1, 9, 10, 11, 20, 21, 35])
def test_windows_score_every_token_once_with_a_token_of_context(n):
    tokens = tuple(range(100, 100 + n))
    windows = list(windows_over(tokens, 1, 10))
    assert tuple(t for _, scored in windows for t in scored) == tokens
    assert windows[0][0] == (1,)
    for context, scored in windows:
        assert context
        assert len(context) + len(scored) - 1 <= 10
    for context, scored in windows[1:]:
        at = tokens.index(scored[0])
        assert context == tokens[at - len(context) : at]


def test_a_long_text_rolls_over_windows(llama):
    text = "the patient takes ramipril. " * 30  # 840 tokens, windows of 256
    [found] = engine(llama).rolling([text])
    assert found.n_tokens == len(text)
    windows = list(windows_over(engine(llama).ids(text), 1, 256))
    parts = engine(llama, packed=False).score_tokens(windows)
    assert found.total == pytest.approx(sum(part.total for part in parts), abs=1e-2)


def test_equal_pairs_have_one_likelihood(llama):
    found = engine(llama).score([("ab", "c"), ("ab", "d"), ("ab", "c")])
    assert found[0] == found[2]
    assert found[0] != found[1]


def test_a_folder_an_entry_and_a_loaded_model_are_the_same(weights):
    from medassay.core.records.model import ModelSpec

    spec = ModelSpec(id="tiny", provider="transformers", path=weights)
    pairs = [("Give", " oxygen"), ("Give", " fluids")]
    totals = [[one.total for one in LikelihoodEngine(of).score(pairs)] for of in (weights, spec)]
    loaded = transformers.AutoModelForCausalLM.from_pretrained(weights)
    totals.append([one.total for one in LikelihoodEngine(loaded).score(pairs)])
    assert totals[0] == pytest.approx(totals[1])
    assert totals[0] == pytest.approx(totals[2], abs=1e-5)


@pytest.mark.parametrize(
    ("entry", "given", "bos"), [(None, None, (1,)), (False, None, ()), (False, True, (1,))]
)
def test_an_entry_decides_about_the_bos_unless_the_engine_is_told(
    llama, monkeypatch, entry, given, bos
):
    from medassay.core.records.model import ModelSpec
    from medassay.model import likelihood

    monkeypatch.setattr(likelihood, "_loaded", lambda model, tokenizer: (Tokenizer(), llama))
    spec = ModelSpec(id="m", provider="transformers", path="p", add_bos=entry)
    assert LikelihoodEngine(spec, add_bos=given).bos == bos
