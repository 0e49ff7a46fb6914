"""What a model is asked: the messages of one item exactly as sent."""

from typing import Required, TypedDict

import msgspec
from msgspec.structs import replace

from medassay.core.canonical import canonical
from medassay.core.records.likelihood import LikelihoodRequest


class ImageAddress(TypedDict):
    """Where a picture is: a `data:` address that holds it."""

    url: str


class MessagePart(TypedDict, total=False):
    """A text or a picture of a message; `type` is `text` or `image_url`."""

    type: Required[str]
    text: str
    image_url: ImageAddress


class CalledFunction(TypedDict):
    """Which tool a model called, with its arguments as JSON."""

    name: str
    arguments: str


class MessageCall(TypedDict, total=False):
    """A call of a tool in a message of the model; `details` is what its vendor wants back."""

    id: Required[str]
    type: str
    function: Required[CalledFunction]
    details: str


class Message(TypedDict, total=False):
    """One message as it is sent: of the system, the user, the model (`assistant`) or a `tool`."""

    role: Required[str]
    content: Required[str | list[MessagePart]]
    tool_calls: list[MessageCall]
    tool_call_id: str


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of one item exactly as sent, and how its options were shown.

    `order[i]` is the bank's position of the option shown at place i; None when as in the bank.
    `encoded` is the canonical JSON of the messages: what is hashed, and what is sent. `schema` is
    the JSON Schema that the reply should fit, for endpoints that can hold a model to one; empty for
    none. `alternatives` is how many candidates of each token the reply should name, with
    log-probabilities. `likely` asks for no reply at all, but how likely some texts are. `tools` is
    the canonical JSON of the functions that the model may call; empty for none. `retrieved` are the
    places (document, start) of the passages that are shown, `own_source` whether one is of the
    item's own source, None where that is not known. `max_tokens` is a shorter limit of the reply
    than the entry's, for what the prompt leaves of the model's window; 0 where nothing useful is
    left, so that nobody is asked.
    """

    item_id: str
    messages: tuple[Message, ...]
    encoded: bytes
    template: str
    letters: str = ""
    options: tuple[str, ...] = ()
    order: tuple[int, ...] | None = None
    schema: bytes = b""
    alternatives: int = 0
    likely: LikelihoodRequest | None = None
    tools: bytes = b""
    retrieved: tuple[tuple[str, int], ...] = ()
    own_source: bool | None = None
    max_tokens: int | None = None

    @property
    def asked(self) -> bytes:
        """Return all that is asked: what the key of a stored reply is made from."""
        candidates = b"\x1f%d" % self.alternatives if self.alternatives else b""
        likely = b"" if self.likely is None else b"\x1f" + canonical(self.likely.to_dict())
        tools = b"\x1f" + self.tools if self.tools else b""
        limit = b"" if self.max_tokens is None else b"\x1fmax_tokens=%d" % self.max_tokens
        return self.encoded + self.schema + candidates + likely + tools + limit

    def with_turns(self, *turns: Message) -> "Prompt":
        """Return the prompt with more messages at its end."""
        messages = (*self.messages, *turns)
        return replace(self, messages=messages, encoded=canonical(list(messages)))


def message_text(message: Message) -> str:
    """Return the text of a message, without the pictures that may stand in it.

    Examples
    --------
    >>> message_text({"role": "user", "content": [{"type": "text", "text": "Read:"}, {
    ...     "type": "image_url"}]})
    'Read:'
    """
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n\n".join(part["text"] for part in content if part["type"] == "text")


def pictures_in(message: Message) -> list[str]:
    """Return the pictures of a message as data URLs."""
    content = message["content"]
    if isinstance(content, str):
        return []
    return [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
