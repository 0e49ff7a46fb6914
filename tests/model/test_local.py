import asyncio

import pytest
from msgspec.structs import replace

from medassay.core.canonical import canonical
from medassay.core.records.model import ModelSpec, Sampling
from medassay.core.records.prompt import Prompt
from medassay.model.local import LocalModel

pytestmark = pytest.mark.local_model


def prompt(text):
    messages = ({"role": "user", "content": text},)
    return Prompt(item_id=str(text), messages=messages, encoded=canonical(messages), template="t")


def generate(spec, texts, temperature=0.0):
    async def all_at_once():
        model = LocalModel(spec, {})
        sampling = Sampling(temperature=temperature, top_p=0.9, max_tokens=6, seed=3)
        try:
            return await asyncio.gather(
                *(model.complete(prompt(t), sampling, repeat=0) for t in texts)
            )
        finally:
            await model.close()

    return asyncio.run(all_at_once())


def spec(weights, **more):
    return ModelSpec(id="tiny", provider="transformers", path=weights, **more)


def test_a_batch_of_unlike_lengths_gives_what_each_prompt_gives_alone(weights):
    texts = ["A?", "A much longer question about something else entirely?", "B or C?"]
    together = generate(spec(weights, batch_size=3), texts)
    alone = [generate(spec(weights, batch_size=1), [t])[0] for t in texts]
    assert [c.text for c in together] == [c.text for c in alone]
    assert [c.usage.prompt for c in together] == [c.usage.prompt for c in alone]
    assert all(c.seconds > 0 and c.finish in ("stop", "length") for c in together)


def test_plain_generation_needs_no_chat_template(weights):
    chat, plain = (
        generate(spec(weights), ["A?"])[0],
        generate(spec(weights, protocol="completions"), ["A?"])[0],
    )
    assert plain.usage.prompt == 2
    assert chat.usage.prompt > plain.usage.prompt


def test_a_message_in_parts_is_read_as_its_text(weights):
    parts = [
        {"type": "text", "text": "A?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    plain = spec(weights, protocol="completions")
    [in_parts], [as_text] = generate(plain, [parts]), generate(plain, ["A?"])
    assert (in_parts.text, in_parts.usage) == (as_text.text, as_text.usage)


def test_bfloat16_and_sampling_run(weights):
    assert (
        generate(spec(weights, dtype="bfloat16"), ["A?"], temperature=1.0)[0].usage.completion >= 0
    )


def test_a_prompt_beyond_the_context_fails_with_its_length(weights):
    from medassay.errors import Permanent

    with pytest.raises(Permanent, match="exceed the context of 512"):
        generate(spec(weights), ["x" * 600])


def test_likelihoods_are_those_of_the_model(weights):
    """Oracle: one forward pass over prompt and reply."""
    import torch

    told = spec(weights, device="cpu", logprobs=True)
    wished = [replace(prompt(text), alternatives=4) for text in ("short", "a longer question")]

    async def both():
        model = LocalModel(told, {})
        sampling = Sampling(temperature=0.0, top_p=1.0, max_tokens=6, seed=3)
        return (
            await asyncio.gather(*(model.complete(p, sampling, repeat=0) for p in wished)),
            model._load(),
        )

    found, (tokenizer, network) = asyncio.run(both())
    for asked, completion in zip(wished, found, strict=True):
        shown = tokenizer.apply_chat_template(
            list(asked.messages), tokenize=False, add_generation_prompt=True
        )
        ids = tokenizer(shown, return_tensors="pt")["input_ids"]
        assert len(completion.logprobs) == len(completion.alternatives) == 6
        for (token, logprob), tops in zip(
            completion.logprobs, completion.alternatives, strict=True
        ):
            with torch.inference_mode():
                likely = network(ids).logits[0, -1].log_softmax(-1)
            best = likely.topk(4)
            assert logprob == pytest.approx(float(best.values[0]), abs=1e-4)
            assert [v for _, v in tops] == pytest.approx(best.values.tolist(), abs=1e-4)
            assert token == tops[0][0] == tokenizer.decode([int(best.indices[0])])
            ids = torch.cat([ids, best.indices[None, :1]], dim=1)
    silent = generate(spec(weights), ["short"])
    assert silent[0].logprobs is None
    assert silent[0].text == found[0].text


def test_repeats_are_drawn_apart_and_again_alike(weights):
    """A further repeat of one prompt is another draw; the same one comes out again."""
    told = spec(weights, device="cpu")
    sampling = Sampling(temperature=1.0, top_p=0.9, max_tokens=12, seed=3)

    async def drawn():
        model = LocalModel(told, {})
        return [
            (await model.complete(prompt("short"), sampling, repeat=repeat)).text
            for repeat in range(4)
        ]

    first, again = (asyncio.run(drawn()) for _ in range(2))
    assert first == again
    assert len(set(first)) > 1


def test_a_completion_ends_where_the_entry_says(weights):
    """The stop text may be kept at the end, since whoever reads cuts there.

    Nothing is generated behind it.
    """
    whole = generate(spec(weights, device="cpu"), ["short"])[0]
    stop = whole.text[2:4]
    sampling = Sampling(temperature=0.0, top_p=1.0, max_tokens=24, seed=3, stop=(stop,))

    async def ended():
        return await LocalModel(spec(weights, device="cpu"), {}).complete(
            prompt("short"), sampling, repeat=0
        )

    found = asyncio.run(ended())
    assert found.finish == "stop"
    assert found.text.index(stop) == len(found.text) - len(stop)
