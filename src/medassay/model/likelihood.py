"""How likely a local model finds given texts: many continuations in one pass, each beginning read
once.

Continuations of one context stand behind it in one sequence; a mask lets each see the context and
itself, and positions go on from the context, so that every log-probability is the one that the text
alone would get. What all contexts share (few-shot examples) is read once and kept. Only the states
that predict a token are turned into logits. On the first call the packed path is compared with
plain ones of the same model; an architecture for which they differ is scored plainly, with a
warning.

Token handling is that of lm-evaluation-harness: blanks at the end of a context belong to the
continuation, both are tokenised together, an empty context is the model's BOS, or else its EOS.
Whether a BOS is put before a context is `add_bos`.
"""

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from medassay.core.records.likelihood import LogLikelihood
from medassay.core.records.model import ModelSpec
from medassay.model.packing import (
    SHARED,
    Ids,
    PackedRow,
    Request,
    by_beginning,
    lacks_memory,
    log_probabilities,
    of_tokens,
    packed_cost,
    plain_cost,
    windows_over,
    within,
)

if TYPE_CHECKING:
    import torch
    from transformers import Cache, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
    from transformers.utils import ModelOutput

BUDGET = 1024  # tokens of one pass: beyond, a CPU spends more on masked attention than it saves
_LEAST_BUDGET = 64
_TOLERANCE = 1e-3  # of a log-probability, packed against plain
# What a model raises that takes no mask of four dimensions, or keeps no cache of this kind.
_UNFIT = (AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError)


class LikelihoodEngine:
    """Scores texts by a causal model in memory.

    Parameters
    ----------
    model : a folder of weights, a loaded transformers model, or an entry of a models file
    tokenizer : of a loaded model; read from its folder where it is not given
    add_bos : whether a BOS stands before each context; None does what the entry says, or else the
        tokenizer
    scores_bos : whether a text by itself begins with a BOS that is scored too, behind the one it is
        conditioned on: so does lm-evaluation-harness with tokenizers that add a BOS, where it
        counts the model's surprise at a second one
    budget : tokens of one pass; halved, and the pass repeated, where memory ends
    packed : whether continuations share a pass; False scores each sequence by itself

    Attributes
    ----------
    tokenizer, model : as loaded
    budget : tokens of one pass, as it is by now
    longest : tokens that the model reads at once
    prefix : the token that stands for an empty context: BOS, or else EOS
    bos : what is put before each context, one token or none
    """

    def __init__(
        self,
        model: "str | Path | ModelSpec | PreTrainedModel",
        *,
        tokenizer: "PreTrainedTokenizerBase | None" = None,
        add_bos: bool | None = None,
        scores_bos: bool = False,
        budget: int = BUDGET,
        packed: bool = True,
    ) -> None:
        if isinstance(model, ModelSpec) and add_bos is None:
            add_bos = model.add_bos
        self.tokenizer, self.model = _loaded(model, tokenizer)
        self.budget = budget
        self._packed: bool | None = None if packed else False  # None: not compared yet
        self._whole = False  # whether the model itself must make all logits
        self._kept: tuple[Ids, ModelOutput] | None = None  # a common beginning and its cache
        text = getattr(self.model.config, "get_text_config", lambda: self.model.config)()
        self._window = _window(text)
        self.longest = int(getattr(text, "max_position_embeddings", 0) or 2048)
        bos, eos = self.tokenizer.bos_token_id, self.tokenizer.eos_token_id
        self.prefix = eos if bos is None else bos
        if add_bos is None:
            add_bos = bos is not None and self.tokenizer("a").input_ids[:1] == [bos]
        self.bos: Ids = (bos,) if add_bos and bos is not None else ()
        self._first: Ids = self.bos if scores_bos else ()

    def score(self, pairs: Iterable[tuple[str, str]]) -> list[LogLikelihood]:
        """Return how likely each continuation is after its context, in the order given.

        A context that is too long loses its beginning.

        Raises
        ------
        ValueError
            When a continuation is empty, or does not fit the model's context at all.
        """
        return self.score_tokens([self.encode(*pair) for pair in pairs])

    def rolling(self, texts: Iterable[str]) -> list[LogLikelihood]:
        """Return how likely each text is by itself: every token once, the first after the model's
        prefix token.

        A text longer than the model's context is cut in windows, each with at least one token of
        context.

        Raises
        ------
        ValueError
            When a text is empty.
        """
        requests: list[Request] = []
        sizes = []
        for text in texts:
            windows = self.windows(text)
            requests += windows
            sizes.append(len(windows))
        parts = iter(self.score_tokens(requests))
        return [self.joined([next(parts) for _ in range(size)]) for size in sizes]

    def windows(self, text: str) -> list[Request]:
        """Return the requests over a text by itself: every token is scored once.

        Raises
        ------
        ValueError
            When the text is empty.
        """
        tokens = self.ids(text)
        if not tokens:
            raise ValueError("a text without tokens has no likelihood; leave it out")
        return list(windows_over(self._first + tokens, self.prefix, self.longest))

    @staticmethod
    def joined(parts: Sequence[LogLikelihood]) -> LogLikelihood:
        """Return the likelihood of a text from those of its windows."""
        tokens = tuple(value for part in parts for value in part.tokens)
        return of_tokens(tokens, [bool(part.greedy) for part in parts])

    def encode(self, context: str, continuation: str) -> Request:
        """Return the tokens of a context and of its continuation, tokenised together."""
        if not continuation:
            raise ValueError("an empty continuation has no likelihood")
        bare = context.rstrip()
        context, continuation = bare, context[len(bare) :] + continuation
        if not context:
            tokens = self.ids(continuation)
            if tokens[:1] == (self.prefix,) and len(tokens) > 1:
                return tokens[:1], tokens[1:]
            return (self.prefix,), tokens
        all_ids, begun = self.ids(context + continuation), self.ids(context)
        return self.begun(begun), all_ids[len(begun) :]

    def begun(self, context: Ids) -> Ids:
        """Return the tokens of a context as the model reads them: with its BOS, and never empty."""
        if context[:1] == (self.tokenizer.bos_token_id,):  # a chat template writes its own
            return context
        return self.bos + context or (self.prefix,)

    def score_tokens(self, requests: Sequence[Request]) -> list[LogLikelihood]:
        """Return what `score` returns, of tokens."""
        fitting = [self._fitting(*request) for request in requests]
        places: dict[Request, list[int]] = {}
        for at, request in enumerate(fitting):
            places.setdefault(request, []).append(at)
        likelihoods: list[LogLikelihood | None] = [None] * len(requests)
        for request, likelihood in self._scored(list(places)):
            for at in places[request]:
                likelihoods[at] = likelihood
        return [likelihood for likelihood in likelihoods if likelihood is not None]

    def ids(self, text: str) -> Ids:
        """Return the tokens of a text, nothing added."""
        return tuple(self.tokenizer(text, add_special_tokens=False).input_ids)

    def _fitting(self, context: Ids, continuation: Ids) -> Request:
        """Return a request cut on the left to the model's context."""
        self.refuse_too_long(continuation)
        return context[-(self.longest + 1 - len(continuation)) :], continuation

    def refuse_too_long(self, continuation: Ids) -> None:
        """Refuse what has no likelihood, or does not fit the model's context.

        Raises
        ------
        ValueError
            Saying which of the two.
        """
        if not continuation:
            raise ValueError("a continuation without tokens has no likelihood")
        if len(continuation) > self.longest:
            raise ValueError(
                f"a continuation of {len(continuation)} tokens does not fit a context of"
                f" {self.longest}; score it with `rolling`"
            )

    def _scored(self, requests: Sequence[Request]) -> Iterator[tuple[Request, LogLikelihood]]:
        """Yield each distinct request with its likelihood, longest first: memory that is too small
        shows at once.
        """
        within = [r for r in requests if self._packs(r)]
        plain = [r for r in requests if not self._packs(r)]
        for shared, requests_sharing in by_beginning(within):
            cost = partial(packed_cost, len(shared))
            yield from self._in_passes(requests_sharing, partial(self._pack, shared=shared), cost)
        yield from self._in_passes(plain, self._plainly, plain_cost)

    def _packs(self, request: Request) -> bool:
        return self.packs_up_to(sum(map(len, request)))

    def packs_up_to(self, n: int) -> bool:
        """Return whether sequences of n tokens may be packed: a layer with a sliding window would
        need a mask of its own.
        """
        return self.packs and (self._window is None or n <= self._window)

    def _in_passes(
        self,
        requests: Sequence[Request],
        score: Callable[[Sequence[Request]], list[LogLikelihood]],
        cost: Callable[[Sequence[Request]], int],
    ) -> Iterator[tuple[Request, LogLikelihood]]:
        # Continuations of one context stand side by side, and long contexts come first.
        waiting = sorted(requests, key=lambda r: (-len(r[0]), r))
        while waiting:
            batch = within(waiting, self.budget, cost)
            try:
                scores = score(batch)
            except (RuntimeError, MemoryError) as error:
                if not lacks_memory(error) or self.budget <= _LEAST_BUDGET:
                    raise
                self.budget //= 2
                continue
            yield from zip(batch, scores, strict=True)
            waiting = waiting[len(batch) :]

    def _pack(self, batch: Sequence[Request], *, shared: Ids) -> list[LogLikelihood]:
        """Return the likelihoods of some requests from one pass.

        All their contexts begin with `shared`.
        """
        import torch

        row = PackedRow(len(shared))
        for context, continuation in batch:
            row.add(context[len(shared) :], continuation)
        device = self.model.device
        with torch.inference_mode():
            past = self._begun(shared) if shared else None
            logits = self.logits(row.tensors(device, self.model.dtype), past)
            scores = log_probabilities(logits(0, row.predicting), row.targets, device)
        return row.read(scores)

    def _begun(self, shared: Ids) -> "Cache":
        """Return the cache of a common beginning; a copy, since a pass writes into it."""
        import torch

        if self._kept is None or self._kept[0] != shared:
            ids = torch.tensor([shared], device=self.model.device)
            self._kept = (shared, self.model.base_model(input_ids=ids, use_cache=True))
        return copy.deepcopy(self._kept[1].past_key_values)

    @property
    def packs(self) -> bool:
        """Return whether the packed path gives what the plain one gives.

        The two are compared on the first call.
        """
        if self._packed is None:
            self._packed = self._compared()
        return self._packed

    def logits(
        self, inputs: "Mapping[str, torch.Tensor]", past: "Cache | None"
    ) -> "Callable[[int, Sequence[int]], torch.Tensor]":
        """Return what gives the logits of a pass at some places of one of its rows.

        Parameters
        ----------
        inputs : ids, positions and mask of a packed pass
        past : the cache of what stands before it; None for nothing
        """
        cache = {"past_key_values": past, "use_cache": past is not None}
        if self._whole:
            all_logits = self.model(**inputs, **cache).logits
            return lambda row, places: all_logits[row, list(places)]
        hidden = self.model.base_model(**inputs, **cache).last_hidden_state
        head = self.model.get_output_embeddings()
        cap = getattr(self.model.config, "final_logit_softcapping", None)
        return lambda row, places: _capped(head(hidden[row, list(places)]), cap)

    def _plainly(self, batch: Sequence[Request]) -> list[LogLikelihood]:
        """Return the likelihoods of some requests, each a sequence of its own, padded on the
        right.
        """
        import torch

        device = self.model.device
        rows = [(*context, *continuation)[:-1] for context, continuation in batch]
        longest = max(map(len, rows))
        ids = torch.zeros((len(rows), longest), dtype=torch.long, device=device)
        mask = torch.zeros_like(ids)
        for at, row in enumerate(rows):
            ids[at, : len(row)] = torch.tensor(row, device=device)
            mask[at, : len(row)] = 1
        with torch.inference_mode():
            logits = self.model(input_ids=ids, attention_mask=mask).logits
            likelihoods = []
            for at, (context, continuation) in enumerate(batch):
                start = len(context) - 1
                own_logits = logits[at, start : start + len(continuation)]
                likelihoods.append(of_tokens(*log_probabilities(own_logits, continuation, device)))
        return likelihoods

    def _compared(self) -> bool:
        """Return whether the packed path gives what the plain one gives, on a few tokens of the
        model's own.

        Where it does not with the output layer alone (some models scale logits afterwards), the
        whole model is tried.
        """
        size = int(self.model.get_input_embeddings().weight.shape[0])
        sampled = [(7 * n * n + 3 * n + 1) % size for n in range(48)]
        shared = tuple(sampled[:SHARED])
        requests: list[Request] = [
            ((*shared, *sampled[32:36]), (sampled[40],)),
            ((*shared, *sampled[32:36]), (sampled[40], sampled[41], sampled[42])),
            ((*shared, *sampled[32:36]), (sampled[43], sampled[44])),
            ((*shared, sampled[37]), (sampled[45], sampled[46])),
        ]
        # Half precision differs more between two right ways than the tolerance of single precision.
        allowed = _TOLERANCE if str(self.model.dtype) == "torch.float32" else 0.3
        plain, notice = self._plainly(requests), ""
        for self._whole in (False, True):
            try:
                packed = [self._pack(requests, shared=()), self._pack(requests, shared=shared)]
            except _UNFIT as error:
                if lacks_memory(error):
                    raise
                notice = f"{type(error).__name__}: {str(error)[:120]}"
                continue
            apart = max(_apart(packed_values, plain) for packed_values in packed)
            if apart <= allowed:
                return True
            notice = f"log-probabilities differ by up to {apart:.3g}"
        warnings.warn(
            f"this architecture is scored sequence by sequence, not packed: {notice}",
            stacklevel=4,
        )
        return False


def _apart(first: Sequence[LogLikelihood], other: Sequence[LogLikelihood]) -> float:
    """Return the largest difference of a token's log-probability."""
    return max(
        abs(a - b)
        for likelihood, same in zip(first, other, strict=True)
        for a, b in zip(likelihood.tokens, same.tokens, strict=True)
    )


def _capped(logits: "torch.Tensor", cap: float | None) -> "torch.Tensor":
    """Return logits under a soft cap, where the model has one."""
    import torch

    return logits if not cap else torch.tanh(logits / cap) * cap


def _window(config: "PretrainedConfig") -> int | None:
    """Return the sliding window of a model's attention, None if it has none in use."""
    window = getattr(config, "sliding_window", None)
    used = getattr(config, "use_sliding_window", True)
    return int(window) if window and used else None


def _loaded(
    model: "str | Path | ModelSpec | PreTrainedModel", tokenizer: "PreTrainedTokenizerBase | None"
) -> "tuple[PreTrainedTokenizerBase, PreTrainedModel]":
    """Return tokenizer and model of whatever names them."""
    from medassay.model.weights import load_weights

    if isinstance(model, str | Path):
        model = ModelSpec(id=str(model), provider="transformers", path=str(model))
    if isinstance(model, ModelSpec):
        return load_weights(model)
    if tokenizer is None:
        import transformers

        tokenizer = transformers.AutoTokenizer.from_pretrained(
            model.config.name_or_path, local_files_only=True
        )
    return tokenizer, model.eval()
