"""What goes into one pass: requests side by side in a row, batches that fit, windows over long
texts.

A request is the tokens of a context and of a continuation. In a row continuations of one context
stand behind it; a mask lets each see the context and itself, and positions go on from the context.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import field

from medassay.core.records.likelihood import LogLikelihood

if TYPE_CHECKING:
    import torch

Ids = tuple[int, ...]
Request = tuple[Ids, Ids]  # tokens of context and continuation
SHARED = 32  # tokens from which on a common beginning is kept
_NO_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


class PackedRow(msgspec.Struct):
    """Some requests in one sequence: contexts with their continuations behind them.

    `shared` tokens stand before the row, read already; a context sees all of them, or as many as it
    is put `after`.
    """

    shared: int
    ids: list[int] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)  # context of each token
    branches: list[int] = field(default_factory=list)  # 0 in a context, else which continuation
    visible: list[int] = field(default_factory=list)  # tokens before the row that each one sees
    positions: list[int] = field(default_factory=list)
    predicting: list[int] = field(default_factory=list)  # places whose logits are wanted
    targets: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    _last: tuple[Ids, int, int] | None = None
    _group: int = -1
    _branch: int = 0

    def add(self, context: Ids, continuation: Ids, *, after: int | None = None) -> None:
        """Put a continuation behind its context, which stands there already if the last request had
        the same.
        """
        after = self.shared if after is None else after
        if self._last is None or self._last[:2] != (context, after):
            self._group += 1
            for at, token in enumerate(context):
                self._put(token, branch=0, position=after + at, seen_tokens=after)
            self._last = (context, after, len(self.ids) - 1)
        before = self._last[2]  # the last token of the context predicts the first one behind it
        self._branch += 1
        for at, token in enumerate(continuation):
            self.predicting.append(before)
            self.targets.append(token)
            if at < len(continuation) - 1:  # the last token predicts nothing that is asked for
                self._put(token, self._branch, after + len(context) + at, after)
                before = len(self.ids) - 1
        self.sizes.append(len(continuation))

    def cost(self, context: Ids, continuation: Ids, after: int) -> int:
        """Return how many tokens a request would add."""
        there = self._last is not None and self._last[:2] == (context, after)
        return (0 if there else len(context)) + len(continuation) - 1

    def _put(self, token: int, branch: int, position: int, seen_tokens: int) -> None:
        self.ids.append(token)
        self.visible.append(seen_tokens)
        self.groups.append(self._group)
        self.branches.append(branch)
        self.positions.append(position)

    def tensors(self, device: "torch.device", dtype: "torch.dtype") -> "dict[str, torch.Tensor]":
        """Return ids, positions, and the mask of who sees whom, as the model takes them."""
        import torch

        group, branch = (torch.tensor(n, device=device) for n in (self.groups, self.branches))
        order = torch.arange(len(self.ids), device=device)
        # A token sees what stands before it in its own group: the context (branch 0) and its own
        # continuation, never a neighbour's. So a context is computed once for all its
        # continuations, and each gets the logits that it would get alone.
        sees = (group[:, None] == group[None, :]) & (order[:, None] >= order[None, :])
        sees &= (branch[None, :] == 0) | (branch[:, None] == branch[None, :])
        seen_counts = torch.tensor(self.visible, device=device)
        before = torch.arange(self.shared, device=device)[None, :] < seen_counts[:, None]
        sees = torch.cat([before, sees], dim=1)
        lowest = torch.finfo(dtype).min
        mask = torch.zeros(sees.shape, dtype=dtype, device=device).masked_fill(~sees, lowest)
        return {
            "input_ids": torch.tensor([self.ids], device=device),
            "position_ids": torch.tensor([self.positions], device=device),
            "attention_mask": mask[None, None],
        }

    def read(self, scores: "tuple[list[float], list[bool]]") -> list[LogLikelihood]:
        """Return the likelihood of each request from the scores of all wanted tokens."""
        values, likeliest = scores
        values_read, at = [], 0
        for size in self.sizes:
            values_read.append(of_tokens(values[at : at + size], likeliest[at : at + size]))
            at += size
        return values_read


def at_least_single(logits: "torch.Tensor") -> "torch.Tensor":
    """Return logits in single precision, or in the double precision that they have.

    A `logsumexp` is taken from them then: in single precision on a CPU, torch's `log_softmax` is
    too high by up to 1.6e-5 a token where a vocabulary has 49,152.
    """
    import torch

    return logits if logits.dtype == torch.float64 else logits.float()


def log_probabilities(
    logits: "torch.Tensor", tokens: Sequence[int], device: "torch.device"
) -> tuple[list[float], list[bool]]:
    """Return the log-probability of each wanted token, and whether it is the likeliest."""
    import torch

    ids = torch.tensor(tokens, device=device)
    logits = at_least_single(logits)
    log_probs = logits.gather(1, ids[:, None])[:, 0] - logits.logsumexp(dim=1)
    return log_probs.tolist(), (logits.argmax(dim=1) == ids).tolist()


def of_tokens(values: Sequence[float], likeliest: Sequence[bool]) -> LogLikelihood:
    """Return a likelihood from the log-probability of each token, and whether each is the
    likeliest.
    """
    return LogLikelihood(
        total=sum(values), n_tokens=len(values), greedy=all(likeliest), tokens=tuple(values)
    )


def windows_over(tokens: Ids, prefix: int, longest: int) -> Iterator[Request]:
    """Yield windows over a text: every token is scored once, with as much context as fits, at least
    one token.
    """
    first = min(longest, len(tokens))
    yield (prefix,), tokens[:first]
    done = first
    while done < len(tokens):
        size = min(len(tokens) - done, longest)
        end = done + size
        start = end - longest - 1
        yield tokens[start:done], tokens[done:end]
        done = end


def by_beginning(requests: Sequence[Request]) -> Iterator[tuple[Ids, list[Request]]]:
    """Yield requests by what their contexts have in common at the beginning.

    () where that is too little to keep.
    """
    groups: dict[Ids, list[Request]] = {}
    for request in requests:
        groups.setdefault(request[0][:SHARED], []).append(request)
    alone: list[Request] = []
    for beginning, group in groups.items():
        contexts = sorted({context for context, _ in group})
        if len(beginning) < SHARED or len(contexts) < 2:
            alone += group
            continue
        shared = _common(contexts[0], contexts[-1])
        # A context must keep a token of its own: the one that predicts.
        yield shared[: min(map(len, contexts)) - 1], group
    yield (), alone


def _common(first: Ids, last: Ids) -> Ids:
    """Return the beginning that the first and the last of sorted contexts share, and so all between
    them.
    """
    n = 0
    for a, b in zip(first, last, strict=False):
        if a != b:
            break
        n += 1
    return first[:n]


def within(
    waiting: Sequence[Request], budget: int, cost: Callable[[Sequence[Request]], int]
) -> list[Request]:
    """Return the requests that come next and fit a pass, at least one."""
    batch = [waiting[0]]
    for request in waiting[1:]:
        if cost([*batch, request]) > budget:
            break
        batch.append(request)
    return batch


def packed_cost(shared: int, batch: Sequence[Request]) -> int:
    """Return the tokens of one row that holds some requests, each context once."""
    contexts = {context for context, _ in batch}
    own_cost = sum(len(context) - shared for context in contexts)
    return own_cost + sum(len(continuation) - 1 for _, continuation in batch)


def plain_cost(batch: Sequence[Request]) -> int:
    """Return the tokens of a padded batch."""
    return len(batch) * max(len(context) + len(continuation) - 1 for context, continuation in batch)


def lacks_memory(error: BaseException) -> bool:
    """Return whether an error says that memory has ended."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(part in text for part in _NO_MEMORY)
