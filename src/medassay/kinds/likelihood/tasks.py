"""Tasks that ask for no reply, but how likely a model finds texts: options, references, and
statements in completions.

Each has a name of its own, since its numbers are comparable to no other's; `_chat` puts prompts
into the model's own form of a conversation.

Source: specification of tasks and prompts, 14.1 and 14.3; perplexity.
"""

from msgspec.structs import replace

from medassay.core.records.relaxed import RelaxedSetting
from medassay.core.records.task import CHAT_SUFFIX, Task
from medassay.core.scale import PERPLEXITY as SCALE

CLOSED_LIKELIHOOD = Task(
    name="closed_likelihood",
    metric="acc",
    split="test",
    template="choice_letters",
    readers={"choice": ("choice", "choice")},
    asks="choices",
    fallback="closed",
)
PERPLEXITY = Task(
    name="perplexity",
    metric="bits_per_byte_of_a_document",
    split="test",
    template="open",
    readers={"open": ("text", "bits_per_byte"), "text": ("text", "bits_per_byte")},
    scale=SCALE,
    asks="alone",
)
PERPLEXITY_COND = replace(
    PERPLEXITY,
    name="perplexity_cond",
    metric="bits_per_byte_of_a_document_cond",
    asks="conditional",
)
RELAXED_PERPLEXITY = Task(
    name="relaxed_perplexity",
    metric=RelaxedSetting().name("sum"),
    split="test",
    template="open",
    readers={
        "open": ("text", "relaxed_perplexity"),
        "text": ("text", "relaxed_perplexity"),
    },
    scale=SCALE,
    asks="relaxed",
)


_WITH_PROMPTS = (CLOSED_LIKELIHOOD, PERPLEXITY_COND, RELAXED_PERPLEXITY)
# The same again with prompts in the model's own form of a conversation.
_IN_CONVERSATION = tuple(
    replace(task, name=task.name + CHAT_SUFFIX, chat_template=True) for task in _WITH_PROMPTS
)
TASKS = (PERPLEXITY, *_WITH_PROMPTS, *_IN_CONVERSATION)
