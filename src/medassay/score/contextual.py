"""Texts as the vectors of their tokens in context: what BERTScore, MoverScore and BGE-M3
compare.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

BATCH = 32


class EncodedText(msgspec.Struct, frozen=True):
    """One text: ids of its tokens, the tokens, and the hidden states wanted, shape (n_tokens,
    width), special tokens among them.
    """

    ids: list[int]
    tokens: list[str]
    states: Any


class Encoder:
    """A transformers folder, loaded at the first text; nothing is ever downloaded.

    Parameters
    ----------
    layer : which hidden states, 0 being the embeddings; None for the last
    longest : tokens kept of a text; None for as many as the model takes
    """

    def __init__(
        self, folder: Path, *, layer: int | None = None, longest: int | None = None
    ) -> None:
        self._folder = folder
        self._layer = layer
        self._longest = longest
        self._loaded: tuple[PreTrainedTokenizerBase, PreTrainedModel] | None = None

    def load(self) -> "tuple[PreTrainedTokenizerBase, PreTrainedModel]":
        """Return (tokenizer, model)."""
        if self._loaded is None:
            import torch
            import transformers

            transformers.logging.set_verbosity_error()
            transformers.logging.disable_progress_bar()
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                self._folder, local_files_only=True
            )
            model = transformers.AutoModel.from_pretrained(
                self._folder, local_files_only=True, dtype=torch.float32
            )
            self._loaded = (tokenizer, model.eval())
        return self._loaded

    def close(self) -> None:
        """Drop the weights."""
        self._loaded = None

    @property
    def special(self) -> set[int]:
        """Return the ids of tokens that stand for no text."""
        return set(self.load()[0].all_special_ids)

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text's tokens, as many as the model reads."""
        tokenizer, model = self.load()
        most = min(tokenizer.model_max_length, model.config.max_position_embeddings)
        if model.config.model_type in ("roberta", "xlm-roberta"):
            most = min(most, model.config.max_position_embeddings - 2)
        if self._longest is not None:
            most = min(most, self._longest)
        # Byte-level tokenizers know a word by the blank before it, the first word of a text too.
        padded = f" {text}" if model.config.model_type in ("roberta", "gpt2") else text
        token_ids: list[int] = tokenizer(padded, truncation=True, max_length=most)["input_ids"]
        return token_ids

    def encode(self, texts: Sequence[str]) -> dict[str, EncodedText]:
        """Return every distinct text.

        Like lengths are read together, so that little is spent on padding.
        """
        ordered = sorted((self.ids(text), text) for text in set(texts))
        ordered.sort(key=lambda pair: len(pair[0]))
        encoded: dict[str, EncodedText] = {}
        for at in range(0, len(ordered), BATCH):
            encoded |= self._batch(ordered[at : at + BATCH])
        return encoded

    def _batch(self, batch: Sequence[tuple[list[int], str]]) -> Iterator[tuple[str, EncodedText]]:
        import torch

        tokenizer, model = self.load()
        padded = tokenizer.pad(
            {"input_ids": [ids for ids, _ in batch]}, return_tensors="pt", padding=True
        )
        with torch.inference_mode():
            read = model(**padded, output_hidden_states=True)
        states = read.hidden_states[-1 if self._layer is None else self._layer]
        for (ids, text), row in zip(batch, states, strict=True):
            token_states = (
                row[: len(ids)] if tokenizer.padding_side == "right" else row[-len(ids) :]
            )
            yield text, EncodedText(ids, tokenizer.convert_ids_to_tokens(ids), token_states.clone())
