"""Tiny random models of several architectures."""

from types import SimpleNamespace

from tests.optional import torch, transformers

from medassay.model.likelihood import LikelihoodEngine

V = 199


SMALL = {
    "vocab_size": V,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}


HEADS = {"vocab_size": V, "n_layer": 2, "n_head": 4, "bos_token_id": 1, "eos_token_id": 2}


ARCHITECTURES = {
    "llama": lambda: transformers.LlamaConfig(**SMALL),
    "gpt2": lambda: transformers.GPT2Config(n_embd=32, n_positions=256, **HEADS),
    "qwen2": lambda: transformers.Qwen2Config(**SMALL),
    # A cap on logits, and every other layer with a sliding window.
    "gemma2": lambda: transformers.Gemma2Config(
        **SMALL,
        head_dim=8,
        sliding_window=48,
        final_logit_softcapping=5.0,
        query_pre_attn_scalar=8,
    ),
    "granite": lambda: transformers.GraniteConfig(**SMALL, logits_scaling=3.0),
    "mistral": lambda: transformers.MistralConfig(**SMALL, sliding_window=48),
}


class Tokenizer:
    """One token a byte; a BOS where it is asked for."""

    bos_token_id, eos_token_id = 1, 2

    def __call__(self, text, add_special_tokens=True):
        """Return the tokens of a text."""
        ids = [3 + byte % 190 for byte in text.encode()]
        return SimpleNamespace(input_ids=[1, *ids] if add_special_tokens else ids)


def model(name):
    torch.manual_seed(7)
    return transformers.AutoModelForCausalLM.from_config(ARCHITECTURES[name]()).eval()


def engine(of, **more):
    return LikelihoodEngine(of, tokenizer=Tokenizer(), **more)
