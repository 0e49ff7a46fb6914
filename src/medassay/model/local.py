"""Local weights with transformers: prompts that wait together are batched by length.

Weights are read from the entry's `path`, or, for `embedded:smollm2`, from the user's cache
(`embedded.py`). The heavy imports happen when the first prompt arrives.
"""

import asyncio
import time
from typing import Any

from medassay.core.model import ModelSpec, Sampling
from medassay.core.trial import Completion, Prompt, Usage
from medassay.errors import Permanent

_Job = tuple[int, int, Prompt, Sampling, "asyncio.Future[Completion]"]


class Local:
    """One model in memory; a single worker batches the longest waiting prompts first."""

    def __init__(self, spec: ModelSpec, secrets: dict[str, str]) -> None:
        self._spec = spec
        self._waiting: list[_Job] = []
        self._worker: asyncio.Task[None] | None = None
        self._loaded: tuple[Any, Any] | None = None
        self._arrived = 0

    async def complete(self, prompt: Prompt, sampling: Sampling, *, repeat: int) -> Completion:
        """Return the completion once its batch is done; `seconds` is the batch's time per prompt."""
        if self._worker is None:
            self._worker = asyncio.create_task(self._work())
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self._arrived += 1
        length = sum(len(message["content"]) for message in prompt.messages)
        self._waiting.append((-length, self._arrived, prompt, sampling, future))
        return await future

    async def close(self) -> None:
        """Stop the worker and drop the weights."""
        if self._worker is not None:
            self._worker.cancel()
        self._loaded = None

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(0.005)  # let prompts that arrive together be batched together
            if not self._waiting:
                continue
            # Longest first: like lengths share a batch, so little is spent on padding.
            self._waiting.sort(key=lambda job: job[:2])
            sampling = self._waiting[0][3]
            batch = [job for job in self._waiting if job[3] == sampling][
                : self._spec.batch_size
            ]
            for job in batch:
                self._waiting.remove(job)
            try:
                done = await asyncio.to_thread(
                    self._generate, [job[2] for job in batch], sampling
                )
            except Exception as error:  # noqa: BLE001 -- torch raises many kinds; each prompt of the batch must hear of it
                known = isinstance(error, Permanent)
                told = (
                    error
                    if known
                    else Permanent(f"{self._spec.id}: {type(error).__name__}: {error}")
                )
                for job in batch:
                    if not job[4].done():
                        job[4].set_exception(told)
                continue
            for job, completion in zip(batch, done, strict=True):
                if not job[4].done():
                    job[4].set_result(completion)

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            self._loaded = load_weights(self._spec)
        return self._loaded

    def _text(self, prompt: Prompt) -> str:
        tokenizer, _ = self._load()
        if self._spec.protocol == "completions" or not tokenizer.chat_template:
            return "\n\n".join(message["content"] for message in prompt.messages)
        text: str = tokenizer.apply_chat_template(
            list(prompt.messages), tokenize=False, add_generation_prompt=True
        )
        return text

    def _generate(self, prompts: list[Prompt], sampling: Sampling) -> list[Completion]:
        tokenizer, model = self._load()  # only the worker calls this, one batch at a time
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
        drawn: dict[str, Any] = {"do_sample": False}
        if sampling.temperature:
            drawn = {
                "do_sample": True,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
            }
            torch.manual_seed((sampling.seed or 0) % 2**63)
        with torch.inference_mode():
            output = model.generate(
                **encoded,
                max_new_tokens=sampling.max_tokens,
                pad_token_id=tokenizer.pad_token_id,
                **drawn,
            )
        seconds = (time.perf_counter() - started) / len(texts)
        made = []
        for row, mask in zip(output, encoded["attention_mask"], strict=True):
            new = row[longest:].tolist()
            ends = {tokenizer.eos_token_id, tokenizer.pad_token_id}
            stop = next((i for i, token in enumerate(new) if token in ends), None)
            kept = new if stop is None else new[:stop]
            made.append(
                Completion(
                    text=tokenizer.decode(kept, skip_special_tokens=True),
                    finish="length" if stop is None else "stop",
                    usage=Usage(prompt=int(mask.sum()), completion=len(kept)),
                    seconds=seconds,
                )
            )
        return made


def load_weights(spec: ModelSpec) -> tuple[Any, Any]:
    """Return (tokenizer, model) in evaluation mode, padding on the left."""
    try:
        import torch
        import transformers
    except ImportError:
        raise Permanent(
            f"{spec.id}: needs the extra [local]: pip install 'medassay[local]'",
            endpoint_wide=True,
        ) from None
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    from medassay.model.embedded import embedded_folder

    folder = embedded_folder(spec.path) if spec.path.startswith("embedded:") else spec.path
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, dtype=getattr(torch, spec.dtype)
        )
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0][:200]
        raise Permanent(
            f"{spec.id}: no weights at '{spec.path}': {reason}", endpoint_wide=True
        ) from None
    tokenizer.padding_side = "left"
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token_id = tokenizer.eos_token_id
    device = spec.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return tokenizer, model.to(device).eval()
