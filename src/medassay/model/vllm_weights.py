"""Local weights with vLLM in this process: all prompts that wait are one batch, which vLLM
schedules itself.

Written from the documentation of vLLM 0.33; it needs a GPU. Generation only: likelihoods and
Relaxed Perplexity take the provider `transformers`. A vLLM server is asked as any endpoint, by
`openai_compatible`.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from medassay.core.records.completion import Completion, Usage
from medassay.core.records.model import ModelSpec, Sampling
from medassay.core.records.prompt import Prompt, message_text
from medassay.errors import Permanent
from medassay.model.local import Job, LocalModel

if TYPE_CHECKING:
    import vllm


class Vllm(LocalModel):
    """One vLLM engine, split over as many devices as the entry's `gpus` says."""

    def __init__(self, spec: ModelSpec, secrets: dict[str, str]) -> None:
        super().__init__(spec, secrets)
        self._llm: vllm.LLM | None = None

    async def close(self) -> None:
        """Stop the worker and drop the engine."""
        await super().close()
        self._llm = None

    def _next(self) -> list[Job]:
        """Return all jobs that wait and are drawn alike."""
        first = self._waiting[0]
        return [job for job in self._waiting if job[3] == first[3]]

    def _start(self) -> "vllm.LLM":
        if self._llm is None:
            try:
                import vllm
            except ImportError:
                raise Permanent(
                    f"{self._spec.id}: needs the extra [vllm]: pip install 'medassay[vllm]'",
                    endpoint_wide=True,
                ) from None
            self._llm = vllm.LLM(
                model=self._spec.path,
                tensor_parallel_size=max(1, int(self._spec.gpus)),
                dtype=self._spec.dtype,
            )
        return self._llm

    def _generate(
        self, prompts: list[Prompt], sampling: Sampling, drawn_for: Sequence[tuple[bytes, int]]
    ) -> list[Completion]:
        """Return completions; what is drawn depends on the seed and the repeat, not on what else is
        in the batch.
        """
        llm = self._start()
        from vllm import SamplingParams

        parameters = [
            SamplingParams(
                temperature=sampling.temperature or 0.0,
                top_p=sampling.top_p,
                max_tokens=sampling.max_tokens,
                seed=None if sampling.seed is None else sampling.seed + repeat,
                stop=list(sampling.stop),
            )
            for _, repeat in drawn_for
        ]
        began = time.perf_counter()
        if self._spec.protocol == "completions":
            texts = ["\n\n".join(map(message_text, p.messages)) for p in prompts]
            outputs = llm.generate(texts, parameters, use_tqdm=False)
        else:
            outputs = llm.chat([list(p.messages) for p in prompts], parameters, use_tqdm=False)
        seconds = (time.perf_counter() - began) / len(prompts)
        return [
            Completion(
                text=output.outputs[0].text,
                finish="length" if output.outputs[0].finish_reason == "length" else "stop",
                usage=Usage(
                    prompt=len(output.prompt_token_ids or ()),
                    completion=len(output.outputs[0].token_ids),
                ),
                seconds=seconds,
            )
            for output in outputs
        ]
