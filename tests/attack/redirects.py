"""Ways by which a server sends a request elsewhere, and an entry that is asked there."""

from medassay.core.canonical import canonical
from medassay.core.records.model import ModelSpec, Sampling
from medassay.core.records.prompt import Prompt

KEY = "sk-SECRETKEY-9f8e7d6c5b4a3"


MESSAGES = ({"role": "user", "content": "Q00001: a question that may not leave?"},)


PROMPT = Prompt(item_id="q", messages=MESSAGES, encoded=canonical(MESSAGES), template="t")


SAMPLING = Sampling(temperature=0.0, top_p=1.0, max_tokens=5, seed=7)


WAYS = {
    "chat": {"provider": "openai_compatible"},
    "completions": {"provider": "openai_compatible", "protocol": "completions"},
    "own header": {
        "provider": "openai_compatible",
        "api_key_env": "",
        "headers_env": {"api-key": "KEY"},
    },
    "embeddings": {"provider": "openai_compatible"},
    "anthropic": {"provider": "anthropic"},
    "google": {"provider": "google"},
    "mistral": {"provider": "mistral"},
}


def entry(way, url, **more):
    given = {"id": "m", "api_key_env": "KEY", "url": url, "timeout": 5, **WAYS[way], **more}
    return ModelSpec(**given)
