"""vLLM needs a GPU, which tests have not: what it is asked, and how its outputs are read, by its
documented interface.
"""

import asyncio
import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import ClassVar

import pytest

from medassay.core.canonical import canonical
from medassay.core.records.model import ModelSpec, Sampling
from medassay.core.records.prompt import Prompt
from medassay.errors import Permanent
from medassay.model.catalog import PROVIDERS


@dataclass
class Parameters:
    temperature: float
    top_p: float
    max_tokens: int
    seed: int | None
    stop: list


@dataclass
class Output:
    text: str
    finish_reason: str
    token_ids: list = field(default_factory=lambda: [1, 2])


@dataclass
class Request:
    outputs: list
    prompt_token_ids: list = field(default_factory=lambda: [1, 2, 3])


class LLM:
    made: ClassVar[list] = []

    def __init__(self, **options):
        self.options, self.calls = options, []
        LLM.made.append(self)

    def chat(self, messages, parameters, use_tqdm):
        self.calls.append((messages, parameters))
        told = [m[-1]["content"] for m in messages]
        return [Request([Output(t, "length" if "long" in t else "stop")]) for t in told]


@pytest.fixture
def vllm(monkeypatch):
    module = ModuleType("vllm")
    module.LLM, module.SamplingParams = LLM, Parameters
    monkeypatch.setitem(sys.modules, "vllm", module)
    LLM.made = []


def ask(spec, texts):
    async def all_of():
        chat = PROVIDERS["vllm"](spec, {})
        sampling = Sampling(temperature=0.7, top_p=0.9, max_tokens=5, seed=7)
        prompts = [
            Prompt(item_id=t, messages=m, encoded=canonical(m), template="t")
            for t in texts
            for m in [({"role": "user", "content": t},)]
        ]
        found = await asyncio.gather(
            *(chat.complete(p, sampling, repeat=n) for n, p in enumerate(prompts))
        )
        await chat.close()
        return found

    return asyncio.run(all_of())


def test_all_that_waits_is_one_batch_on_all_devices_of_a_replica(vllm):
    spec = ModelSpec(id="m", provider="vllm", path="weights", gpus=4, batch_size=2)
    texts = [f"q{n}" for n in range(9)] + ["a long one"]
    found = ask(spec, texts)
    assert [one.text for one in sorted(found, key=lambda o: o.text)] == sorted(texts)
    assert [one.finish for one in found] == ["stop"] * 9 + ["length"]
    assert (found[0].usage.prompt, found[0].usage.completion) == (3, 2)
    [engine] = LLM.made
    assert engine.options["tensor_parallel_size"] == 4
    [(_, parameters)] = engine.calls
    # Each repeat draws by a seed of its own, whatever shares the batch.
    assert sorted(one.seed for one in parameters) == list(range(7, 17))


def test_without_vllm_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(Permanent, match=r"pip install 'medassay\[vllm\]'"):
        ask(ModelSpec(id="m", provider="vllm", path="weights"), ["q"])
