"""A setting of Relaxed Perplexity for tiny models."""

from tests.model.tiny_models import engine

from medassay.core.records.relaxed import RelaxedSetting

SETTING = RelaxedSetting(samples=6, keep=4, stride=3, max_tokens=14)


CONTEXT, TARGETS = "Which drug helps?", ["oxygen", "rest and fluids"]


class Talking:
    """The tokenizer of these tests, which can also decode."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self.bos_token_id, self.eos_token_id = 1, 2

    def __call__(self, *args, **more):
        """Return tokens."""
        return self._tokenizer(*args, **more)

    def decode(self, ids):
        """Return some text."""
        return " ".join(map(str, ids))


def ready(of, **more):
    made = engine(of, **more)
    made.tokenizer = Talking(made.tokenizer)
    return made
