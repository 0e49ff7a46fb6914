"""Weights of a tiny model, made once a session."""

import pytest
from tests.conftest import absent


@pytest.fixture(scope="session")
def weights(tmp_path_factory):
    """Make a tiny random Llama with a byte-level tokenizer: real code, no download."""
    try:
        import tokenizers
        import torch
        import transformers
    except ImportError:
        absent("the extra [local] is not installed")
    folder = tmp_path_factory.mktemp("tiny")
    base = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            # Sorted: the alphabet comes in another order each time, and some orders end a reply early.
            {
                c: i
                for i, c in enumerate(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))
            },
            [],
        )
    )
    base.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    base.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=base, eos_token="<e>", pad_token="<p>"
    )
    tokenizer.chat_template = (
        "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
    )
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tiny models are slower on several threads, and tests run side by side."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)
