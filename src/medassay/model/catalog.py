"""Every provider: one line each."""

from collections.abc import Callable

from medassay.core.records.model import Chat, ModelSpec
from medassay.model.baseline import Baseline
from medassay.model.fake import Fake
from medassay.model.local import LocalModel
from medassay.model.replay import Replay
from medassay.model.vllm_weights import Vllm


def _openai_compatible(spec: ModelSpec, secrets: dict[str, str]) -> Chat:
    from medassay.model.openai_compatible import OpenAICompatible  # aiohttp is slow to import

    return OpenAICompatible(spec, secrets)


def _vendor(spec: ModelSpec, secrets: dict[str, str]) -> Chat:
    from medassay.model.vendor import Vendor  # as aiohttp

    return Vendor(spec, secrets)


PROVIDERS: dict[str, Callable[[ModelSpec, dict[str, str]], Chat]] = {
    "anthropic": _vendor,
    "baseline": Baseline,
    "fake": Fake,
    "google": _vendor,
    "mistral": _vendor,
    "openai_compatible": _openai_compatible,
    "replay": Replay,
    "transformers": LocalModel,
    "vllm": Vllm,
}
