"""Local weights with transformers: prompts that wait together are batched by length.

Weights are read from the entry's `path`, or, for `embedded:smollm2`, from the user's cache
(`embedded.py`). The heavy imports happen when the first prompt arrives.
"""

import asyncio
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from medassay.core.canonical import sha256_hex
from medassay.core.catch import caught
from medassay.core.records.completion import Completion, TokenLogprob, Usage
from medassay.core.records.model import ModelSpec, Sampling
from medassay.core.records.prompt import Prompt, message_text
from medassay.core.records.relaxed import RelaxedSetting
from medassay.errors import Permanent
from medassay.model.weights import load_weights

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Job = tuple[int, int, Prompt, Sampling, int, "asyncio.Future[Completion]"]

_Made = list[Completion | Permanent]


class TokenCandidates(TypedDict):
    """The tokens of a completion with their log-probabilities, and the likeliest at each place."""

    logprobs: tuple[TokenLogprob, ...]
    alternatives: tuple[tuple[TokenLogprob, ...], ...] | None


class LocalModel:
    """One model in memory; a single worker batches the longest waiting prompts first."""

    def __init__(self, spec: ModelSpec, secrets: dict[str, str]) -> None:
        self._spec = spec
        self._waiting: list[Job] = []
        self._worker: asyncio.Task[None] | None = None
        self._loaded: tuple[Any, Any] | None = None
        self._engine: Any = None
        self._arrived = 0

    async def complete(self, prompt: Prompt, sampling: Sampling, *, repeat: int) -> Completion:
        """Return the completion once its batch is done.

        `seconds` is the batch's time per prompt.
        """
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._arrived += 1
        length = sum(len(message_text(message)) for message in prompt.messages)
        self._waiting.append((-length, self._arrived, prompt, sampling, repeat, future))
        return await future

    async def close(self) -> None:
        """Stop the worker and drop the weights."""
        if self._worker is not None:
            self._worker.cancel()
        self._loaded = self._engine = None

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(0.005)  # let prompts that arrive together be batched together
            if not self._waiting:
                continue
            # Longest first: like lengths share a batch, so little is spent on padding.
            self._waiting.sort(key=lambda job: job[:2])
            batch = self._next()
            for job in batch:
                self._waiting.remove(job)
            with caught() as errors:  # torch raises many kinds
                done = await asyncio.to_thread(self._answered, batch)
            for error in errors:  # of which each prompt of the batch must hear
                cause = f"{self._spec.id}: {type(error).__name__}: {error}"
                failure = error if isinstance(error, Permanent) else Permanent(cause)
                for job in batch:
                    if not job[-1].done():
                        job[-1].set_exception(failure)
            if errors:
                continue
            for job, completion in zip(batch, done, strict=True):
                if job[-1].done():
                    continue
                if isinstance(completion, Permanent):
                    job[-1].set_exception(completion)
                else:
                    job[-1].set_result(completion)

    def _next(self) -> list[Job]:
        """Return the jobs that are done together.

        Likelihoods are batched by tokens, so all that wait are; drawing completions fills a batch
        by itself.
        """
        first = self._waiting[0]
        if first[2].likely is not None and first[2].likely.relaxed is not None:
            return [first]

        def alike(job: Job) -> tuple[Sampling, int, bool | RelaxedSetting | None]:
            likely = job[2].likely
            return job[3], job[2].alternatives, likely is None or likely.relaxed

        jobs = [job for job in self._waiting if alike(job) == alike(first)]
        return jobs[: self._spec.batch_size] if first[2].likely is None else jobs

    def _answered(self, batch: list[Job]) -> _Made:
        """Return the completions of a batch; only the worker calls this, one batch at a time."""
        prompts, sampling = [job[2] for job in batch], batch[0][3]
        if prompts[0].likely is None:
            keys = [(job[2].encoded, job[4]) for job in batch]
            return [*self._generate(prompts, sampling, keys)]
        from medassay.model.likelihood import LikelihoodEngine
        from medassay.model.likelihood_adapter import measure

        if self._engine is None:
            tokenizer, model = self._load()
            self._engine = LikelihoodEngine(
                model,
                tokenizer=tokenizer,
                add_bos=self._spec.add_bos,
                budget=self._spec.batch_tokens,
            )
        repeats = [job[4] for job in batch]
        name, seed = self._spec.id, sampling.seed or 0
        return measure(self._engine, prompts, seed=seed, repeats=repeats, name=name)

    def _load(self) -> "tuple[PreTrainedTokenizerBase, PreTrainedModel]":
        if self._loaded is None:
            self._loaded = load_weights(self._spec)
        return self._loaded

    def _text(self, prompt: Prompt) -> str:
        tokenizer, _ = self._load()
        if self._spec.protocol == "completions" or not tokenizer.chat_template:
            return "\n\n".join(map(message_text, prompt.messages))
        text: str = tokenizer.apply_chat_template(
            list(prompt.messages), tokenize=False, add_generation_prompt=True
        )
        return text

    def _generate(
        self, prompts: list[Prompt], sampling: Sampling, drawn_for: Sequence[tuple[bytes, int]]
    ) -> list[Completion]:
        """Return completions; what is drawn depends on the seed, and on the prompts and repeats
        that share the batch.
        """
        tokenizer, model = self._load()
        import torch

        texts = [self._text(prompt) for prompt in prompts]
        started = time.perf_counter()
        encoded = tokenizer(texts, return_tensors="pt", padding=True).to(model.device)
        longest = int(encoded["input_ids"].shape[1])
        limit = getattr(model.config, "max_position_embeddings", None)
        if limit is not None and longest + sampling.max_tokens > limit:
            raise Permanent(
                f"{self._spec.id}: a prompt of {longest} tokens and {sampling.max_tokens} new ones "
                f"exceed the context of {limit}"
            )
        options: dict[str, Any] = {"do_sample": False}
        if sampling.temperature:
            options = {
                "do_sample": True,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
            }
            torch.manual_seed(_seed(sampling.seed or 0, drawn_for))
        if sampling.stop:
            options |= {"stop_strings": list(sampling.stop), "tokenizer": tokenizer}
        heard = _Likelihoods(prompts[0].alternatives) if self._spec.logprobs else None
        with torch.inference_mode():
            output = model.generate(
                **encoded,
                max_new_tokens=sampling.max_tokens,
                pad_token_id=tokenizer.pad_token_id,
                logits_processor=[] if heard is None else [heard],
                **options,
            )
        if heard is not None:
            heard.end(output)
        seconds = (time.perf_counter() - started) / len(texts)
        generated = []
        for place, (row, mask) in enumerate(zip(output, encoded["attention_mask"], strict=True)):
            new = row[longest:].tolist()
            ends = {tokenizer.eos_token_id, tokenizer.pad_token_id}
            stop = next((i for i, token in enumerate(new) if token in ends), None)
            tokens = new if stop is None else new[:stop]
            text = tokenizer.decode(tokens, skip_special_tokens=True)
            candidates = None if heard is None else heard.of(place, tokens, tokenizer)
            is_stopped = stop is not None or any(end in text for end in sampling.stop)
            generated.append(
                Completion(
                    text=text,
                    finish="stop" if is_stopped else "length",
                    usage=Usage(prompt=int(mask.sum()), completion=len(tokens)),
                    seconds=seconds,
                    logprobs=None if candidates is None else candidates["logprobs"],
                    alternatives=None if candidates is None else candidates["alternatives"],
                )
            )
        return generated


def _seed(seed: int, drawn_for: Sequence[tuple[bytes, int]]) -> int:
    """Return the seed of a batch: the same for the same prompts in the same repeats, another for
    the next repeat.
    """
    parts = [str(seed).encode(), *(b"%d\x1f%s" % (repeat, text) for text, repeat in drawn_for)]
    return int(sha256_hex(b"\x1e".join(parts))[:15], 16)


class _Likelihoods:
    """Listens to a generation: the log-probability of each token taken, and the likeliest tokens.

    It is a logits processor that changes nothing; only the likeliest of each step stay in memory.
    The log-probabilities are the model's own, before temperature and top-p.
    """

    def __init__(self, alternatives: int) -> None:
        self._n_alternatives = alternatives
        self._tops: list[tuple[list[list[float]], list[list[int]]]] = []  # step → row → candidate
        self._token_logprobs: list[list[float]] = []  # step → row
        self._last: torch.Tensor | None = None

    def __call__(self, ids: "torch.Tensor", scores: "torch.Tensor") -> "torch.Tensor":
        """Note what the model thinks of the next token; see transformers' `LogitsProcessor`."""
        self.end(ids)
        self._last = scores.float().log_softmax(dim=-1)
        top = self._last.topk(max(1, self._n_alternatives), dim=-1)
        self._tops.append((top.values.tolist(), top.indices.tolist()))
        return scores

    def end(self, ids: "torch.Tensor") -> None:
        """Note the last token of `ids` as taken."""
        if self._last is not None:
            self._token_logprobs.append(self._last.gather(1, ids[:, -1:])[:, 0].tolist())

    def of(
        self, row: int, tokens: list[int], tokenizer: "PreTrainedTokenizerBase"
    ) -> TokenCandidates:
        """Return `logprobs` and `alternatives` of one completion."""
        steps = zip(
            tokens, self._token_logprobs, strict=False
        )  # not what follows the end of the text
        logprobs = tuple((tokenizer.decode([token]), step[row]) for token, step in steps)
        tops = [
            zip(tokens[row], values[row], strict=True)
            for values, tokens in self._tops[: len(tokens)]
        ]
        alternatives = tuple(
            tuple((tokenizer.decode([t]), v) for t, v in top if math.isfinite(v)) for top in tops
        )
        return {
            "logprobs": logprobs,
            "alternatives": alternatives if self._n_alternatives else None,
        }
