"""Weights on this machine → tokenizer and model."""

import threading
from typing import TYPE_CHECKING

from medassay.core.records.model import ModelSpec
from medassay.errors import Permanent
from medassay.model.embedded import embedded_folder

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Two threads that import transformers at once find it half made; while one makes a model, the
# parameters of others have no data.
_LOADING = threading.Lock()


def load_weights(spec: ModelSpec) -> "tuple[PreTrainedTokenizerBase, PreTrainedModel]":
    """Return (tokenizer, model) in evaluation mode, padding on the left.

    One model is loaded at a time.
    """
    with _LOADING:
        return _loaded(spec)


def _loaded(spec: ModelSpec) -> "tuple[PreTrainedTokenizerBase, PreTrainedModel]":
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
